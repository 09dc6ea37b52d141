/* SPDX-License-Identifier: MIT */
/*
 * Heap access with overflow checks and a test hook. The hook is thread-local, so a test that fails
 * the n-th allocation of its own thread does not disturb others, and the library has no shared
 * mutable state.
 */
#include "base/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local ew_alloc_hook test_hook;
static _Thread_local void *test_hook_ctx;

void ew_alloc_set_hook(ew_alloc_hook hook, void *ctx)
{
    test_hook = hook;
    test_hook_ctx = ctx;
}

static int refused(size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size)
        return 1;
    return test_hook != NULL && test_hook(test_hook_ctx, count * size) != 0;
}

void *ew_calloc(size_t count, size_t size)
{
    return refused(count, size) ? NULL : calloc(count, size);
}

void *ew_realloc_array(void *old, size_t count, size_t size)
{
    return refused(count, size) ? NULL : realloc(old, count * size);
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
    free(block);
}
