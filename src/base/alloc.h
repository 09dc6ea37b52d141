/* SPDX-License-Identifier: MIT */
/*
 * The only door to the heap. Tests count and fail allocations through it; nothing else in the
 * library calls malloc. The hook is per thread of the test program and NULL in production.
 */
#ifndef EW_BASE_ALLOC_H
#define EW_BASE_ALLOC_H

#include <stddef.h>

/* Zeroed memory, or NULL. count * size is checked for overflow. */
void *ew_calloc(size_t count, size_t size);
/* As realloc for an array; the old block stays valid on failure. New bytes are not zeroed. */
void *ew_realloc_array(void *old, size_t count, size_t size);
char *ew_strdup(const char *text);
void ew_free(void *block);

/* Tests only: returns nonzero to make the next allocation fail. Set to NULL to end. */
typedef int (*ew_alloc_hook)(void *ctx, size_t size);
void ew_alloc_set_hook(ew_alloc_hook hook, void *ctx);

#endif
