/* SPDX-License-Identifier: MIT */
/*
 * The only access to the heap: nothing else in the library calls malloc. Tests count and fail
 * allocations through it. The hook is per thread of the test program and NULL in production.
 */
#ifndef EW_BASE_ALLOC_H
#define EW_BASE_ALLOC_H

#include <stddef.h>

/* Zeroed memory, or NULL. count * size is checked for overflow. */
void *ew_calloc(size_t count, size_t size);
/* Like realloc for an array; the old block stays valid on failure. New bytes are not zeroed. */
void *ew_realloc_array(void *old, size_t count, size_t size);
char *ew_strdup(const char *text);
void ew_free(void *block);

/* Tests only: a nonzero result makes the allocation fail. NULL removes the hook. */
typedef int (*ew_alloc_hook)(void *ctx, size_t size);
void ew_alloc_set_hook(ew_alloc_hook hook, void *ctx);

#endif
