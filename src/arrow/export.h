/* SPDX-License-Identifier: MIT */
/* Layouts, batches and sequences of batches as Arrow's C structs. */
#ifndef EW_ARROW_EXPORT_H
#define EW_ARROW_EXPORT_H

#include <etwatch/arrow.h>

#include "arrow/columns.h"
#include "base/error.h"

/* Where the batches of a stream come from. */
struct ew_batches {
    /* The next one, which is the caller's then; NULL after the last. 0 or an error with a message
     * of at most `size` bytes (may stay empty). */
    int (*next)(void *ctx, struct ew_batch **ret_batch, char *message, size_t size);
    void (*done)(void *ctx);
    void *ctx;
};

/* Takes a reference to the layout, and ctx on success. 0 or ETWATCH_ENOMEM. */
int ew_stream_export(struct ew_layout *layout, const struct ew_batches *batches,
                     struct ArrowArrayStream *ret_stream);
/* What get_next returned, as a code of ours, with the stream's text. */
int ew_stream_error(struct ArrowArrayStream *stream, int failed, struct ew_error *reterr);
/* 0 or ETWATCH_ENOMEM. */
int ew_layout_export(const struct ew_layout *layout, struct ArrowSchema *ret_schema);
/* The array refers to the batch; the caller keeps his own reference. */
int ew_batch_export(struct ew_batch *batch, struct ArrowArray *ret_array);

/* Batches that are there already, one after the other. */
struct ew_batch_list {
    struct ew_batch **list;
    size_t first, count, size; /* first: those before it are gone */
    uint64_t rows;             /* of what is left */
};
void ew_batch_list_done(struct ew_batch_list *list);
/* Takes the reference, also if there is no memory: then it is dropped. NULL is fine. */
int ew_batch_list_add(struct ew_batch_list *list, struct ew_batch *batch);
/* The first one, taken out; NULL if there is none. */
struct ew_batch *ew_batch_list_take(struct ew_batch_list *list);
/* A list with references to the same batches. */
int ew_batch_list_copy(const struct ew_batch_list *from, struct ew_batch_list *ret_list);
/* Everything in the list as a stream; the list is empty afterwards. 0 or ETWATCH_ENOMEM. */
int ew_batch_list_export(struct ew_batch_list *list, struct ew_layout *layout,
                         struct ArrowArrayStream *ret_stream);

#endif
