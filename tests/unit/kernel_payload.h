/* SPDX-License-Identifier: MIT */
/*
 * Builders for payloads of kernel events and the records around them, and lookup of decoded fields
 * by name.
 */
#ifndef KERNEL_PAYLOAD_H
#define KERNEL_PAYLOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "model/field.h"
#include "model/record.h"
#include "test.h"

struct payload {
    uint8_t bytes[8192];
    uint32_t size;
    uint8_t pointer_size;
};

static inline void put(struct payload *payload, uint64_t value, unsigned size)
{
    for (unsigned i = 0; i < size; i++)
        payload->bytes[payload->size++] = (uint8_t)(i < 8 ? value >> (8 * i) : 0);
}

static inline void put_pointer(struct payload *payload, uint64_t value)
{
    put(payload, value, payload->pointer_size);
}

static inline void put_ansi(struct payload *payload, const char *text)
{
    for (; *text; text++)
        put(payload, (uint8_t)*text, 1);
    put(payload, 0, 1);
}

static inline void put_wide(struct payload *payload, const char *text)
{
    for (; *text; text++)
        put(payload, (uint8_t)*text, 2);
    put(payload, 0, 2);
}

/* S-1-5-21-… with two sub-authorities, after a TOKEN_USER. */
static inline void put_sid(struct payload *payload)
{
    put_pointer(payload, 0xffff8000u);
    put_pointer(payload, 0);
    put(payload, 1, 1);
    put(payload, 2, 1);
    put(payload, 0, 5);
    put(payload, 5, 1);
    put(payload, 21, 4);
    put(payload, 1001, 4);
}

/*
 * Bytes without long runs of equal values, so that the strings of a layout end somewhere in them.
 */
static inline void fill(struct payload *payload, uint32_t size, uint32_t seed)
{
    payload->size = size;
    for (uint32_t i = 0; i < size; i++) {
        seed = seed * 1664525u + 1013904223u;
        payload->bytes[i] = (uint8_t)(seed >> 24);
    }
}

static inline struct ew_record kernel_record(const struct payload *payload, uint8_t group,
                                             uint8_t opcode, uint8_t version)
{
    return (struct ew_record){.t_ns = 1000,
                              .t_raw = 77,
                              .payload = payload->bytes,
                              .payload_size = payload->size,
                              .pid = 11,
                              .tid = 12,
                              .cpu = 3,
                              .kind = EW_RECORD_KERNEL,
                              .header_type = payload->pointer_size == 8 ? 2 : 1,
                              .pointer_size = payload->pointer_size,
                              .version = version,
                              .opcode = opcode,
                              .group = group};
}

/* The first entry with that name at any depth; NULL if there is none. */
static inline const struct ew_field *field_named(const struct ew_fields *fields, const char *name)
{
    for (uint32_t i = 0; i < fields->count; i++) {
        const struct ew_field *field = &fields->list[i];
        if (field->name && field->type != EW_FIELD_CLOSE && field->name_len == strlen(name) &&
            memcmp(field->name, name, field->name_len) == 0)
            return field;
    }
    return NULL;
}

/*
 * The value as a number: signed values are sign-extended, addresses and ports are taken as they
 * are.
 */
static inline uint64_t field_number(const struct ew_fields *fields, const char *name)
{
    test_row(name);
    const struct ew_field *field = field_named(fields, name);
    CHECK(field != NULL);
    return field->type == EW_FIELD_I64 ? (uint64_t)field->v.i : field->v.u;
}

static inline void check_text(const struct ew_fields *fields, const char *name, const char *want)
{
    test_row(name);
    const struct ew_field *field = field_named(fields, name);
    CHECK(field != NULL);
    CHECK_EQ_INT(field->type, EW_FIELD_TEXT);
    CHECK_EQ_UINT(field->len, strlen(want));
    CHECK_EQ_MEM(field->v.text, want, field->len);
}

#endif
