/* SPDX-License-Identifier: MIT */
/*
 * The fields of recorded events as JSON: a flat list with opening and closing entries becomes
 * nested text, written directly into the buffer. Values nested deeper than 63 levels become null.
 */
#include "sink/json.h"

#include <string.h>

#include "base/real.h"

#define RAW(at, literal) \
    (memcpy((at), (literal), sizeof(literal) - 1), (at) + (sizeof(literal) - 1))

enum { NUMBER_ROOM = 48, DEPTH_MAX = 63 };

void ew_json_hex(struct ew_buf *out, const uint8_t *bytes, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    if (!ew_buf_reserve(out, 2 * len + 2))
        return;
    char *at = ew_buf_end(out);
    *at++ = '"';
    for (size_t i = 0; i < len; i++) {
        *at++ = digits[bytes[i] >> 4];
        *at++ = digits[bytes[i] & 15];
    }
    *at++ = '"';
    ew_buf_take(out, at);
}

static char *raw_real(char *at, double value, bool single)
{
    char *end = ew_raw_real(at, value, single);
    return end != NULL ? end : RAW(at, "null");
}

static void put_value(struct ew_buf *out, const struct etwatch_field *field)
{
    bool text = field->type == ETWATCH_FIELD_TEXT;
    if (field->type == ETWATCH_FIELD_BINARY) {
        ew_json_hex(out, field->v.bytes, field->len);
        return;
    }
    if (!ew_buf_reserve(out, text ? EW_JSON_LEN(field->len) : NUMBER_ROOM))
        return;
    char *at = ew_buf_end(out);
    switch (field->type) {
    case ETWATCH_FIELD_U64:
    case ETWATCH_FIELD_HEX:
        at = ew_raw_u64(at, field->v.u);
        break;
    case ETWATCH_FIELD_I64:
        if (field->v.i < 0)
            *at++ = '-';
        at = ew_raw_u64(at, field->v.i < 0 ? 0 - field->v.u : field->v.u);
        break;
    case ETWATCH_FIELD_BOOL:
        at = field->v.u != 0 ? RAW(at, "true") : RAW(at, "false");
        break;
    case ETWATCH_FIELD_DOUBLE:
    case ETWATCH_FIELD_FLOAT:
        at = raw_real(at, field->v.d, field->type == ETWATCH_FIELD_FLOAT);
        break;
    case ETWATCH_FIELD_TEXT:
        at = ew_raw_json_string(at, field->v.text, field->len);
        break;
    default:
        at = RAW(at, "null");
        break;
    }
    ew_buf_take(out, at);
}

/* The index of the entry that closes what fields[i] opens, or the last one. */
static uint32_t find_close(const struct etwatch_field *fields, uint32_t count, uint32_t i)
{
    uint32_t open = 0;
    for (; i < count; i++) {
        uint32_t type = fields[i].type;
        open += type == ETWATCH_FIELD_ARRAY || type == ETWATCH_FIELD_STRUCT;
        if (type == ETWATCH_FIELD_CLOSE && --open == 0)
            break;
    }
    return i < count ? i : count - 1;
}

/* The kinds of the open levels are kept as one bit per level; deeper values become null. bare:
 * without the outermost braces and the name of the first entry. */
static void put_list(struct ew_buf *out, const struct etwatch_field *fields, uint32_t count,
                     bool bare)
{
    uint64_t arrays = 0; /* bit 0: the innermost open one is an array */
    uint32_t depth = 0;
    bool first = true;
    for (uint32_t i = 0; i < count && out->error == 0; i++) {
        const struct etwatch_field *field = &fields[i];
        if (field->type == ETWATCH_FIELD_CLOSE) {
            if (depth == 0)
                continue;
            ew_buf_char(out, (arrays & 1) != 0 ? ']' : '}');
            arrays >>= 1;
            depth--;
            first = false;
            continue;
        }
        if (!first)
            ew_buf_char(out, ',');
        if ((arrays & 1) == 0 && !(bare && i == 0)) {
            const char *name = field->name != NULL ? field->name : "";
            ew_buf_json_string(out, name, strlen(name));
            ew_buf_char(out, ':');
        }
        bool opens = field->type == ETWATCH_FIELD_ARRAY || field->type == ETWATCH_FIELD_STRUCT;
        first = opens && depth < DEPTH_MAX;
        if (!first) {
            put_value(out, field);
            i = opens ? find_close(fields, count, i) : i;
            continue;
        }
        bool array = field->type == ETWATCH_FIELD_ARRAY;
        arrays = arrays << 1 | array;
        depth++;
        ew_buf_char(out, array ? '[' : '{');
    }
    for (; depth > 0; depth--, arrays >>= 1)
        ew_buf_char(out, (arrays & 1) != 0 ? ']' : '}');
}

void ew_json_put_fields(struct ew_buf *out, const struct etwatch_field *fields, uint32_t count)
{
    ew_buf_char(out, '{');
    put_list(out, fields, count, false);
    ew_buf_char(out, '}');
}

void ew_json_put_field(struct ew_buf *out, const struct etwatch_field *fields, uint32_t count)
{
    put_list(out, fields, count, true);
}
