/* SPDX-License-Identifier: MIT */
/*
 * Structs that may grow: the implementation of the "size first" rule of etwatch.h.
 *
 * The first member is a uint32_t `size` that the caller sets to its own sizeof. A caller built with
 * an older header passes fewer bytes, one built with a newer header passes more:
 *
 *   in   fields that an older caller lacks are 0, the default; bytes of a newer caller that this
 *        library does not know must be 0, otherwise a request would be silently ignored.
 *   out  an older caller gets as much as it has room for; fields of a newer caller that this
 *        library does not know become 0. `size` itself is never changed.
 */
#ifndef EW_BASE_SIZED_H
#define EW_BASE_SIZED_H

#include <stddef.h>

#include "base/error.h"

/* Lower bound of all such structs; a smaller `size` means that it was not set. */
enum { EW_SIZED_MIN = 8 };

/* Copies the caller's struct into ours (to_size bytes). EINVAL: size is not set; ENOTSUP: a newer
 * field is set. `what` names the struct in the message. */
int ew_sized_in(void *to, size_t to_size, const void *from, const char *what,
                struct ew_error *reterr);
/* Copies our struct (from_size bytes) into the caller's. EINVAL: its size is not set. */
int ew_sized_out(void *to, const void *from, size_t from_size);
/* For structs that arrive at a high rate: `from` itself if it is at least as large as ours, else
 * *copy (copy_size bytes) with the missing fields set to 0. NULL: its size is not set. */
const void *ew_sized_view(const void *from, void *copy, size_t copy_size);

#endif
