/* SPDX-License-Identifier: MIT */
/*
 * Structs that may grow, and batches of them: the one implementation of the rule of etwatch.h.
 *
 * The first member is a uint32_t `size` that the caller sets to its own sizeof. A caller built with
 * an older header passes fewer bytes, one built with a newer header passes more:
 *
 *   in   fields that an older caller lacks are 0, the default; bytes of a newer caller that this
 *        library does not know must be 0, otherwise a request would be silently ignored.
 *   out  an older caller gets as much as it has room for; fields of a newer caller that this
 *        library does not know become 0. `size` itself is never changed.
 *
 * Elements of a batch are read where they are, unless the caller's are shorter than ours: then each
 * is copied into a struct of ours first, so that no read goes beyond the caller's element.
 */
#ifndef EW_BASE_SIZED_H
#define EW_BASE_SIZED_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Lower bound of all such structs; a smaller `size` means that it was not set. */
enum { EW_SIZED_MIN = 8 };

/* Copies the caller's struct into ours (to_size bytes). EINVAL: size is not set; ENOTSUP: a newer
 * field is set. `what` names the struct in the message. */
int ew_sized_in(void *to, size_t to_size, const void *from, const char *what,
                struct ew_error *reterr);
/* Copies our struct (from_size bytes) into the caller's. EINVAL: its size is not set. */
int ew_sized_out(void *to, const void *from, size_t from_size);
/* EINVAL if the size of a struct to be filled is not set: for calls that consume something before
 * they fill it. */
int ew_sized_check(const void *to);
/* For a struct that is only read during a call: *ret_view is the caller's struct itself, or scratch
 * (size bytes) with a copy if the caller's is shorter. Errors as ew_sized_in. */
int ew_sized_view(const void **ret_view, void *scratch, size_t size, const void *from);
/* The same as a pointer, for calls at a high rate: NULL on an error, or if from is NULL. */
const void *ew_sized_or_null(const void *from, void *scratch, size_t size);
/* The error of a struct that ew_sized_or_null refuses; EINVAL for any other. */
int ew_sized_error(const void *from, size_t size);

/* What struct etwatch_samples and the other batches have in common. */
struct ew_items {
    uint32_t size, stride;
    size_t count;
    const void *items;
};

/* Reads a caller's batch. EINVAL: size or stride is not set, or items is NULL with a count. */
int ew_items_in(struct ew_items *ret_items, const void *batch);
/* Element i: in place, or scratch (size bytes) with a copy if the caller's elements are shorter. */
const void *ew_items_at(const struct ew_items *items, size_t i, void *scratch, size_t size);

#endif
