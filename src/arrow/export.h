/* SPDX-License-Identifier: MIT */
/* Exports layouts, batches and sequences of batches as Arrow's C structs. */
#ifndef EW_ARROW_EXPORT_H
#define EW_ARROW_EXPORT_H

#include <etwatch/arrow.h>

#include "arrow/columns.h"
#include "base/error.h"

/* The source of the batches of a stream. */
struct ew_batches {
    /* Returns the next batch, which the caller then owns; NULL after the last. 0 or an error with a
     * message of at most `size` bytes (may stay empty). */
    int (*next)(void *ctx, struct ew_batch **ret_batch, char *message, size_t size);
    void (*done)(void *ctx);
    void *ctx;
};

/* Takes a reference to the layout and, on success, ownership of ctx. 0 or ETWATCH_ENOMEM. */
int ew_stream_export(struct ew_layout *layout, const struct ew_batches *batches,
                     struct ArrowArrayStream *ret_stream);
/* Converts an error of get_next to an ETWATCH_E* code, with the stream's message. */
int ew_stream_error(struct ArrowArrayStream *stream, int failed, struct ew_error *reterr);
/* 0 or ETWATCH_ENOMEM. */
int ew_layout_export(const struct ew_layout *layout, struct ArrowSchema *ret_schema);
/* The array holds its own reference to the batch; the caller keeps the existing one. */
int ew_batch_export(struct ew_batch *batch, struct ArrowArray *ret_array);

/* A queue of batches. */
struct ew_batch_list {
    struct ew_batch **list;
    size_t first, count, size; /* first: entries before it were taken */
    uint64_t rows;             /* of the remaining batches */
};
void ew_batch_list_done(struct ew_batch_list *list);
/* Takes ownership of the reference, even if out of memory: it is then dropped. batch may be NULL.
 */
int ew_batch_list_add(struct ew_batch_list *list, struct ew_batch *batch);
/* Removes and returns the first batch; NULL if empty. */
struct ew_batch *ew_batch_list_take(struct ew_batch_list *list);
/* A list with references to the same batches. */
int ew_batch_list_copy(const struct ew_batch_list *from, struct ew_batch_list *ret_list);
/* Exports all batches of the list as a stream; the list is empty afterwards. 0 or ETWATCH_ENOMEM.
 */
int ew_batch_list_export(struct ew_batch_list *list, struct ew_layout *layout,
                         struct ArrowArrayStream *ret_stream);

#endif
