/* SPDX-License-Identifier: MIT */
/* Helpers that read values out of Arrow arrays. */
#ifndef ARROW_KIT_H
#define ARROW_KIT_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <etwatch/arrow.h>

#include "test.h"

static inline int column_of(const struct ArrowSchema *schema, const char *name)
{
    for (int64_t i = 0; i < schema->n_children; i++)
        if (strcmp(schema->children[i]->name, name) == 0)
            return (int)i;
    FAIL(name);
    return -1;
}

static inline bool is_null(const struct ArrowArray *array, size_t row)
{
    const uint8_t *valid = array->buffers[0];
    return valid != NULL && (valid[row >> 3] >> (row & 7) & 1) == 0;
}

/* The text of a dictionary column; NULL for a null. Valid until the next call. */
static inline const char *text_at(const struct ArrowArray *array, size_t row)
{
    static char text[64];
    if (is_null(array, row))
        return NULL;
    int32_t word = ((const int32_t *)array->buffers[1])[row];
    CHECK(word >= 0 && word < array->dictionary->length);
    const int32_t *offsets = array->dictionary->buffers[1];
    int len = offsets[word + 1] - offsets[word];
    (void)snprintf(text, sizeof text, "%.*s", len,
                   (const char *)array->dictionary->buffers[2] + offsets[word]);
    return text;
}

static inline int64_t number_at(const struct ArrowArray *array, size_t row)
{
    return ((const int64_t *)array->buffers[1])[row];
}

/* Reads a stream to its end and counts its rows and batches. */
static inline uint64_t drain(struct ArrowArrayStream *stream, unsigned *ret_batches)
{
    uint64_t rows = 0;
    unsigned batches = 0;
    for (;;) {
        struct ArrowArray batch;
        CHECK_EQ_INT(stream->get_next(stream, &batch), 0);
        if (batch.release == NULL)
            break;
        rows += (uint64_t)batch.length;
        batches++;
        batch.release(&batch);
    }
    if (ret_batches != NULL)
        *ret_batches = batches;
    return rows;
}

#endif
