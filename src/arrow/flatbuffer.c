/* SPDX-License-Identifier: MIT */
/*
 * Owns one growing block that is filled from its end. Alignment is relative to the end too: the
 * finished buffer is a multiple of 8 bytes, and nothing in it needs more.
 */
#include "arrow/flatbuffer.h"

#include <string.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"

enum { FIRST_SIZE = 1024 };

void ew_flatbuffer_init(struct ew_flatbuffer *flat)
{
    memset(flat, 0, sizeof *flat);
}

void ew_flatbuffer_done(struct ew_flatbuffer *flat)
{
    ew_free(flat->data);
    memset(flat, 0, sizeof *flat);
}

void ew_flatbuffer_clear(struct ew_flatbuffer *flat)
{
    flat->used = 0;
    flat->error = 0;
}

/* Makes room for `size` bytes in front; returns their address, or NULL. */
static uint8_t *reserve(struct ew_flatbuffer *flat, size_t size)
{
    if (flat->error != 0)
        return NULL;
    if (flat->used + size > flat->size) {
        size_t new_size = flat->size == 0 ? FIRST_SIZE : flat->size;
        while (new_size < flat->used + size)
            new_size *= 2;
        uint8_t *data = ew_calloc(new_size, 1);
        if (data == NULL) {
            flat->error = ETWATCH_ENOMEM;
            return NULL;
        }
        if (flat->used > 0)
            memcpy(data + new_size - flat->used, flat->data + flat->size - flat->used, flat->used);
        ew_free(flat->data);
        flat->data = data;
        flat->size = new_size;
    }
    flat->used += size;
    return flat->data + flat->size - flat->used;
}

/* Adds zeros in front, so that after `extra` more bytes the position is a multiple of align. */
static void pad(struct ew_flatbuffer *flat, size_t align, size_t extra)
{
    size_t over = (flat->used + extra) % align;
    uint8_t *at = over == 0 ? NULL : reserve(flat, align - over);
    if (at != NULL)
        memset(at, 0, align - over);
}

void ew_flatbuffer_push(struct ew_flatbuffer *flat, uint64_t value, size_t size)
{
    uint8_t *at = reserve(flat, size);
    for (size_t i = 0; at != NULL && i < size; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

void ew_flatbuffer_push_ref(struct ew_flatbuffer *flat, size_t position)
{
    ew_flatbuffer_push(flat, flat->used + 4 - position, 4);
}

size_t ew_flatbuffer_string(struct ew_flatbuffer *flat, const char *text)
{
    size_t len = strlen(text);
    pad(flat, 4, len + 1);
    uint8_t *at = reserve(flat, len + 1);
    if (at != NULL)
        memcpy(at, text, len + 1);
    ew_flatbuffer_push(flat, len, 4);
    return flat->used;
}

void ew_flatbuffer_vector_begin(struct ew_flatbuffer *flat, size_t count, size_t item_size,
                                size_t align)
{
    pad(flat, 4, count * item_size);
    pad(flat, align, count * item_size);
}

size_t ew_flatbuffer_vector_end(struct ew_flatbuffer *flat, size_t count)
{
    ew_flatbuffer_push(flat, count, 4);
    return flat->used;
}

void ew_flatbuffer_table_begin(struct ew_flatbuffer *flat)
{
    memset(flat->slots, 0, sizeof flat->slots);
    flat->table = flat->used;
}

void ew_flatbuffer_field(struct ew_flatbuffer *flat, unsigned field, uint64_t value, size_t size)
{
    pad(flat, size, size);
    ew_flatbuffer_push(flat, value, size);
    flat->slots[field] = flat->used;
}

void ew_flatbuffer_field_ref(struct ew_flatbuffer *flat, unsigned field, size_t position)
{
    pad(flat, 4, 4);
    ew_flatbuffer_push_ref(flat, position);
    flat->slots[field] = flat->used;
}

/* The fields are preceded by the distance to the table's vtable, which in turn precedes that: its
 * size, the size of the table, and the offset of each field. */
size_t ew_flatbuffer_table_end(struct ew_flatbuffer *flat)
{
    unsigned count = EW_FLAT_FIELDS_MAX;
    while (count > 0 && flat->slots[count - 1] == 0)
        count--;
    size_t list_size = 4 + 2 * (size_t)count;
    pad(flat, 4, 4);
    ew_flatbuffer_push(flat, list_size, 4);
    size_t position = flat->used;
    for (unsigned i = count; i > 0; i--)
        ew_flatbuffer_push(flat, flat->slots[i - 1] == 0 ? 0 : position - flat->slots[i - 1], 2);
    ew_flatbuffer_push(flat, position - flat->table, 2);
    ew_flatbuffer_push(flat, list_size, 2);
    return position;
}

const uint8_t *ew_flatbuffer_finish(struct ew_flatbuffer *flat, size_t root, size_t *ret_size)
{
    pad(flat, 8, 4);
    ew_flatbuffer_push_ref(flat, root);
    if (flat->error != 0)
        return NULL;
    *ret_size = flat->used;
    return flat->data + flat->size - flat->used;
}
