/* SPDX-License-Identifier: MIT */
/*
 * Owns the wire format, without any knowledge of its content. Invariant of the writer: between two
 * calls the buffer holds whole fields, and a length is written when its message is complete, so it
 * need not be known in advance. Most messages are shorter than 128 bytes: one byte is reserved for
 * the length, and the content of the few longer ones is moved when they end.
 */
#include "base/proto.h"

#include <string.h>

#include <etwatch/etwatch.h>

void ew_proto_varint(struct ew_buf *buf, uint64_t value)
{
    if (ew_buf_reserve(buf, EW_PROTO_VARINT_MAX))
        ew_buf_take(buf, ew_proto_raw(ew_buf_end(buf), value));
}

static bool put_tag(struct ew_buf *buf, uint32_t field, uint32_t wire)
{
    if (!ew_buf_reserve(buf, 3 * EW_PROTO_VARINT_MAX))
        return false;
    ew_buf_take(buf, ew_proto_raw(ew_buf_end(buf), (uint64_t)field << 3 | wire));
    return true;
}

void ew_proto_u64(struct ew_buf *buf, uint32_t field, uint64_t value)
{
    if (put_tag(buf, field, EW_PROTO_VARINT))
        ew_buf_take(buf, ew_proto_raw(ew_buf_end(buf), value));
}

void ew_proto_i64(struct ew_buf *buf, uint32_t field, int64_t value)
{
    ew_proto_u64(buf, field, (uint64_t)value);
}

void ew_proto_sint(struct ew_buf *buf, uint32_t field, int64_t value)
{
    ew_proto_u64(buf, field, (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0));
}

void ew_proto_fixed64(struct ew_buf *buf, uint32_t field, uint64_t value)
{
    if (!put_tag(buf, field, EW_PROTO_FIXED64))
        return;
    char *at = ew_buf_end(buf);
    for (unsigned i = 0; i < 8; i++)
        *at++ = (char)(value >> (8 * i));
    ew_buf_take(buf, at);
}

void ew_proto_double(struct ew_buf *buf, uint32_t field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    ew_proto_fixed64(buf, field, bits);
}

void ew_proto_bytes(struct ew_buf *buf, uint32_t field, const void *bytes, size_t len)
{
    if (!put_tag(buf, field, EW_PROTO_LEN))
        return;
    ew_buf_take(buf, ew_proto_raw(ew_buf_end(buf), len));
    ew_buf_bytes(buf, bytes, len);
}

void ew_proto_text(struct ew_buf *buf, uint32_t field, const char *text)
{
    ew_proto_bytes(buf, field, text, strlen(text));
}

size_t ew_proto_begin(struct ew_buf *buf, uint32_t field)
{
    if (!put_tag(buf, field, EW_PROTO_LEN))
        return 0;
    ew_buf_char(buf, 0);
    return buf->len;
}

void ew_proto_end(struct ew_buf *buf, size_t mark)
{
    char length[EW_PROTO_VARINT_MAX];
    if (buf->error != 0 || mark == 0)
        return;
    size_t len = buf->len - mark;
    size_t more = (size_t)(ew_proto_raw(length, len) - length) - 1;
    if (more > 0) {
        if (!ew_buf_reserve(buf, more))
            return;
        memmove(buf->data + mark + more, buf->data + mark, len);
        buf->len += more;
    }
    memcpy(buf->data + mark - 1, length, more + 1);
}

/* ------------------------------------------------------------------ reading */

uint64_t ew_proto_read_varint(struct ew_bytes *bytes)
{
    uint64_t value = 0;
    const size_t from = bytes->pos;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        uint8_t byte = ew_bytes_u8(bytes);
        if (!ew_bytes_ok(bytes))
            return 0;
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7F) << shift;
        if ((byte & 0x80) == 0)
            return value;
    }
    bytes->pos = from;
    ew_bytes_fail(bytes, ETWATCH_EFORMAT);
    return 0;
}

bool ew_proto_next(struct ew_bytes *bytes, struct ew_proto_field *ret_field)
{
    if (ew_bytes_left(bytes) == 0)
        return false;
    uint64_t tag = ew_proto_read_varint(bytes);
    ret_field->wire = (uint32_t)(tag & 7);
    ret_field->number = (uint32_t)(tag >> 3);
    ret_field->u = 0;
    if (ew_bytes_ok(bytes) && (tag >> 3 == 0 || tag >> 3 > 0x1FFFFFFF))
        ew_bytes_fail(bytes, ETWATCH_EFORMAT);
    switch (ret_field->wire) {
    case EW_PROTO_VARINT:
        ret_field->u = ew_proto_read_varint(bytes);
        break;
    case EW_PROTO_FIXED64:
        ret_field->u = ew_bytes_u64(bytes);
        break;
    case EW_PROTO_FIXED32:
        ret_field->u = ew_bytes_u32(bytes);
        break;
    case EW_PROTO_LEN: {
        uint64_t len = ew_proto_read_varint(bytes);
        ew_bytes_sub(bytes, len > SIZE_MAX ? SIZE_MAX : (size_t)len, &ret_field->body);
        break;
    }
    default:
        ew_bytes_fail(bytes, ETWATCH_EFORMAT);
        break;
    }
    return ew_bytes_ok(bytes);
}

double ew_proto_to_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
