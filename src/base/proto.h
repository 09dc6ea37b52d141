/* SPDX-License-Identifier: MIT */
/*
 * Protobuf by hand: the wire format of Perfetto traces, written and read without a schema.
 *
 * Writing appends to an ew_buf. A nested message is written between ew_proto_begin and
 * ew_proto_end, which writes its length. Reading walks the fields of one message with the bounded
 * cursor; unknown fields are ignored by the caller.
 */
#ifndef EW_BASE_PROTO_H
#define EW_BASE_PROTO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"

enum ew_proto_wire {
    EW_PROTO_VARINT = 0,
    EW_PROTO_FIXED64 = 1,
    EW_PROTO_LEN = 2,
    EW_PROTO_FIXED32 = 5,
};

enum { EW_PROTO_VARINT_MAX = 10 };

/* The caller guarantees room for EW_PROTO_VARINT_MAX bytes. Returns the new end. */
static inline char *ew_proto_raw(char *at, uint64_t value)
{
    while (value >= 0x80) {
        *at++ = (char)(value | 0x80);
        value >>= 7;
    }
    *at++ = (char)value;
    return at;
}

void ew_proto_varint(struct ew_buf *buf, uint64_t value);
/* uint32, uint64, bool and enums; int32 and int64 as their 64-bit two's complement. */
void ew_proto_u64(struct ew_buf *buf, uint32_t field, uint64_t value);
void ew_proto_i64(struct ew_buf *buf, uint32_t field, int64_t value);
void ew_proto_sint(struct ew_buf *buf, uint32_t field, int64_t value);
void ew_proto_double(struct ew_buf *buf, uint32_t field, double value);
void ew_proto_fixed64(struct ew_buf *buf, uint32_t field, uint64_t value);
void ew_proto_bytes(struct ew_buf *buf, uint32_t field, const void *bytes, size_t len);
void ew_proto_text(struct ew_buf *buf, uint32_t field, const char *text);
/* Returns a mark for ew_proto_end, which moves the content if its length needs several bytes. */
size_t ew_proto_begin(struct ew_buf *buf, uint32_t field);
void ew_proto_end(struct ew_buf *buf, size_t mark);

/* One field as read. */
struct ew_proto_field {
    uint32_t number;
    uint32_t wire;        /* enum ew_proto_wire */
    uint64_t u;           /* VARINT, FIXED64, FIXED32 */
    struct ew_bytes body; /* LEN */
};

/* A varint; EFORMAT if it has more than ten bytes. */
uint64_t ew_proto_read_varint(struct ew_bytes *bytes);
/* The next field of the message: false at its end and after an error, which the cursor keeps. */
bool ew_proto_next(struct ew_bytes *bytes, struct ew_proto_field *ret_field);
double ew_proto_to_double(uint64_t bits);

static inline int64_t ew_proto_unzigzag(uint64_t value)
{
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

#endif
