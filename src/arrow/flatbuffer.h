/* SPDX-License-Identifier: MIT */
/*
 * Writes FlatBuffers, the encoding of Arrow's messages, as far as those need it. A buffer is built
 * from its end to its start, as the format requires: an object is written before what refers to it.
 * A position is the distance from the end.
 */
#ifndef EW_ARROW_FLATBUFFER_H
#define EW_ARROW_FLATBUFFER_H

#include <stddef.h>
#include <stdint.h>

enum { EW_FLAT_FIELDS_MAX = 8 };

struct ew_flatbuffer {
    uint8_t *data; /* the last `used` bytes are valid */
    size_t size, used;
    size_t slots[EW_FLAT_FIELDS_MAX]; /* positions of the open table's fields, or 0 */
    size_t table;                     /* its start position */
    int error;                        /* sticky: ETWATCH_ENOMEM */
};

void ew_flatbuffer_init(struct ew_flatbuffer *flat);
void ew_flatbuffer_done(struct ew_flatbuffer *flat);
/* Empties the buffer for the next message. */
void ew_flatbuffer_clear(struct ew_flatbuffer *flat);

/* Writes a string or a vector; returns its position. Elements of a vector are pushed in reverse
 * order between begin and end. */
size_t ew_flatbuffer_string(struct ew_flatbuffer *flat, const char *text);
void ew_flatbuffer_vector_begin(struct ew_flatbuffer *flat, size_t count, size_t item_size,
                                size_t align);
size_t ew_flatbuffer_vector_end(struct ew_flatbuffer *flat, size_t count);
/* Elements: numbers (for structs their members in reverse order), or references to tables. */
void ew_flatbuffer_push(struct ew_flatbuffer *flat, uint64_t value, size_t size);
void ew_flatbuffer_push_ref(struct ew_flatbuffer *flat, size_t position);

/* A table: fields in any order, each by its number in the schema; nothing else may be written
 * meanwhile. */
void ew_flatbuffer_table_begin(struct ew_flatbuffer *flat);
void ew_flatbuffer_field(struct ew_flatbuffer *flat, unsigned field, uint64_t value, size_t size);
void ew_flatbuffer_field_ref(struct ew_flatbuffer *flat, unsigned field, size_t position);
size_t ew_flatbuffer_table_end(struct ew_flatbuffer *flat);

/* The finished buffer with this root: a multiple of 8 bytes, valid until the next clear. NULL: out
 * of memory. */
const uint8_t *ew_flatbuffer_finish(struct ew_flatbuffer *flat, size_t root, size_t *ret_size);

#endif
