/* SPDX-License-Identifier: MIT */
/*
 * Heap access with overflow checks, memory limits and a test hook. The hook and the limit in use
 * are thread-local, so a test that fails the n-th allocation of its own thread does not disturb
 * others, and the library has no shared mutable state.
 *
 * Every block starts with its size and the limit it is charged to. So a block can be freed by any
 * thread, whatever limit is in use there, and after the owner of the limit has dropped it: the
 * limit lives until its last block is freed.
 */
#include "base/alloc.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct ew_alloc_limit {
    uint64_t max;
    _Atomic uint64_t used;
    _Atomic uint64_t references; /* the owner and every block */
    atomic_bool exceeded;
};

struct head {
    size_t size;
    struct ew_alloc_limit *limit; /* may be NULL */
    /* Keeps what follows aligned for any type. */
    _Alignas(max_align_t) unsigned char block[];
};

static _Thread_local ew_alloc_hook test_hook;
static _Thread_local void *test_hook_ctx;
static _Thread_local struct ew_alloc_limit *limit_in_use;

void ew_alloc_set_hook(ew_alloc_hook hook, void *ctx)
{
    test_hook = hook;
    test_hook_ctx = ctx;
}

/* ---------------------------------------------------------------------- limits */

struct ew_alloc_limit *ew_alloc_limit_new(uint64_t max)
{
    struct ew_alloc_limit *limit = calloc(1, sizeof *limit);
    if (limit != NULL) {
        limit->max = max;
        atomic_init(&limit->references, 1);
    }
    return limit;
}

static void release(struct ew_alloc_limit *limit)
{
    if (atomic_fetch_sub(&limit->references, 1) == 1)
        free(limit);
}

void ew_alloc_limit_drop(struct ew_alloc_limit *limit)
{
    if (limit != NULL)
        release(limit);
}

struct ew_alloc_limit *ew_alloc_limit_use(struct ew_alloc_limit *limit)
{
    struct ew_alloc_limit *before = limit_in_use;
    limit_in_use = limit;
    return before;
}

struct ew_alloc_limit *ew_alloc_limit_in_use(void)
{
    return limit_in_use;
}

bool ew_alloc_limit_exceeded(const struct ew_alloc_limit *limit)
{
    return limit != NULL && atomic_load(&limit->exceeded);
}

bool ew_alloc_limit_near(void)
{
    const struct ew_alloc_limit *limit = limit_in_use;
    return limit != NULL && atomic_load(&limit->used) > limit->max - limit->max / 8;
}

uint64_t ew_alloc_limit_max(const struct ew_alloc_limit *limit)
{
    return limit == NULL ? 0 : limit->max;
}

static bool charge(struct ew_alloc_limit *limit, size_t size)
{
    if (limit == NULL)
        return true;
    if (atomic_fetch_add(&limit->used, size) + size <= limit->max)
        return true;
    (void)atomic_fetch_sub(&limit->used, size);
    atomic_store(&limit->exceeded, true);
    return false;
}

static void discharge(struct ew_alloc_limit *limit, size_t size)
{
    if (limit != NULL)
        (void)atomic_fetch_sub(&limit->used, size);
}

/* ---------------------------------------------------------------------- blocks */

static int refused(size_t count, size_t size)
{
    if (size != 0 && count > (SIZE_MAX - sizeof(struct head)) / size)
        return 1;
    return test_hook != NULL && test_hook(test_hook_ctx, count * size) != 0;
}

static void *fill_head(struct head *head, size_t size, struct ew_alloc_limit *limit)
{
    head->size = size;
    head->limit = limit;
    return head->block;
}

static void *make(size_t size, bool zeroed)
{
    struct ew_alloc_limit *limit = limit_in_use;
    if (!charge(limit, size))
        return NULL;
    struct head *head = zeroed ? calloc(1, sizeof *head + size) : malloc(sizeof *head + size);
    if (head == NULL) {
        discharge(limit, size);
        return NULL;
    }
    if (limit != NULL)
        (void)atomic_fetch_add(&limit->references, 1);
    return fill_head(head, size, limit);
}

static struct head *head_of(void *block)
{
    return (struct head *)((unsigned char *)block - offsetof(struct head, block));
}

void *ew_calloc(size_t count, size_t size)
{
    return refused(count, size) ? NULL : make(count * size, true);
}

/* A block stays with the limit that it was first charged to. */
void *ew_realloc_array(void *old, size_t count, size_t size)
{
    if (refused(count, size))
        return NULL;
    if (old == NULL)
        return make(count * size, false);
    struct head *head = head_of(old);
    struct ew_alloc_limit *limit = head->limit;
    size_t before = head->size, after = count * size;
    if (after > before && !charge(limit, after - before))
        return NULL;
    head = realloc(head, sizeof *head + after);
    if (head == NULL) {
        if (after > before)
            discharge(limit, after - before);
        return NULL;
    }
    if (after < before)
        discharge(limit, before - after);
    return fill_head(head, after, limit);
}

char *ew_strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = ew_calloc(size, 1);
    if (copy != NULL)
        memcpy(copy, text, size);
    return copy;
}

void ew_free(void *block)
{
    if (block == NULL)
        return;
    struct head *head = head_of(block);
    struct ew_alloc_limit *limit = head->limit;
    discharge(limit, head->size);
    free(head);
    if (limit != NULL)
        release(limit);
}
