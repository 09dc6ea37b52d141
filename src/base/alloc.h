/* SPDX-License-Identifier: MIT */
/*
 * The only access to the heap: nothing else in the library calls malloc. Tests count and fail
 * allocations through it. The hook is per thread of the test program and NULL in production.
 */
#ifndef EW_BASE_ALLOC_H
#define EW_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed memory, or NULL. count * size is checked for overflow. */
void *ew_calloc(size_t count, size_t size);
/* Like realloc for an array; the old block stays valid on failure. New bytes are not zeroed. */
void *ew_realloc_array(void *old, size_t count, size_t size);
char *ew_strdup(const char *text);
void ew_free(void *block);

/*
 * A maximum for what the allocations of some calls hold at the same time. While a limit is in use
 * in a thread, its allocations are charged to it; one that exceeds the maximum fails, and the limit
 * stays marked as exceeded. A small header per block is not counted. Threads that
 * ew_os_thread_start starts use the limit of their creator.
 */
struct ew_alloc_limit;
struct ew_alloc_limit *ew_alloc_limit_new(uint64_t max);
/* Blocks that are still charged to the limit stay valid. */
void ew_alloc_limit_drop(struct ew_alloc_limit *limit);
/* NULL: no limit. Returns the limit that was in use, to be restored. */
struct ew_alloc_limit *ew_alloc_limit_use(struct ew_alloc_limit *limit);
struct ew_alloc_limit *ew_alloc_limit_in_use(void);
bool ew_alloc_limit_exceeded(const struct ew_alloc_limit *limit);
/* Less than an eighth of the limit in use is left: tables should stop growing. */
bool ew_alloc_limit_near(void);
uint64_t ew_alloc_limit_max(const struct ew_alloc_limit *limit);

/* Tests only: a nonzero result makes the allocation fail. NULL removes the hook. */
typedef int (*ew_alloc_hook)(void *ctx, size_t size);
void ew_alloc_set_hook(ew_alloc_hook hook, void *ctx);

#endif
