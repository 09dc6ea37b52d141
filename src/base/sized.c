/* SPDX-License-Identifier: MIT */
#include "base/sized.h"

#include <stdbool.h>
#include <string.h>

#include <etwatch/device.h>
#include <etwatch/process.h>
#include <etwatch/span.h>
#include <etwatch/summary.h>
#include <etwatch/trace.h>
#include <etwatch/window.h>

/* Structs that are marked FIXED: they form plain arrays, so their layout can never change. */
#define FIXED(name, bytes)                                                          \
    _Static_assert(sizeof(void *) != 8 || sizeof(struct etwatch_##name) == (bytes), \
                   "etwatch_" #name " is FIXED")
FIXED(aggregate, 40);
FIXED(alert_thread, 24);
FIXED(device_process, 56);
FIXED(cause, 40);
FIXED(field, 24);
FIXED(process_id, 24);
FIXED(metric_set, 32);
FIXED(process_thread, 72);
FIXED(rate, 40);
FIXED(summary_thread, 16);
FIXED(window_metric, 8);
#undef FIXED

static uint32_t size_of(const void *sized)
{
    uint32_t size;
    memcpy(&size, sized, sizeof size);
    return size;
}

/* Whether a newer caller has set a field that we do not know. */
static bool sets_unknown(const void *from, size_t known)
{
    const unsigned char *bytes = from;
    const size_t size = size_of(from);
    for (size_t i = known; i < size; i++)
        if (bytes[i] != 0)
            return true;
    return false;
}

int ew_sized_in(void *to, size_t to_size, const void *from, const char *what,
                struct ew_error *reterr)
{
    const size_t size = size_of(from);
    if (size < EW_SIZED_MIN)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0, "%s.size is not set", what);
    memset(to, 0, to_size);
    memcpy(to, from, size < to_size ? size : to_size);
    if (sets_unknown(from, to_size))
        return ew_error_set(reterr, ETWATCH_ENOTSUP, 0,
                            "%s has a field that this version of the library does not know", what);
    return 0;
}

int ew_sized_view(const void **ret_view, void *scratch, size_t size, const void *from)
{
    *ret_view = from;
    if (size_of(from) < size) {
        *ret_view = scratch;
        return ew_sized_in(scratch, size, from, "", NULL);
    }
    return sets_unknown(from, size) ? ETWATCH_ENOTSUP : 0;
}

int ew_sized_check(const void *to)
{
    return size_of(to) < EW_SIZED_MIN ? ETWATCH_EINVAL : 0;
}

int ew_sized_out(void *to, const void *from, size_t from_size)
{
    const size_t size = size_of(to), own = sizeof(uint32_t);
    if (size < EW_SIZED_MIN)
        return ETWATCH_EINVAL;
    const size_t known = size < from_size ? size : from_size;
    memcpy((char *)to + own, (const char *)from + own, known - own);
    memset((char *)to + known, 0, size - known);
    return 0;
}

const void *ew_sized_or_null(const void *from, void *scratch, size_t size)
{
    const void *view = NULL;
    return from != NULL && ew_sized_view(&view, scratch, size, from) == 0 ? view : NULL;
}

int ew_sized_error(const void *from, size_t size)
{
    if (from == NULL || size_of(from) < EW_SIZED_MIN || !sets_unknown(from, size))
        return ETWATCH_EINVAL;
    return ETWATCH_ENOTSUP;
}

int ew_items_in(struct ew_items *ret_items, const void *batch)
{
    if (batch == NULL)
        return ETWATCH_EINVAL;
    int rc = ew_sized_in(ret_items, sizeof *ret_items, batch, "batch", NULL);
    if (rc < 0 || ret_items->count == 0)
        return rc;
    return ret_items->items == NULL || ret_items->stride < EW_SIZED_MIN ? ETWATCH_EINVAL : 0;
}

const void *ew_items_at(const struct ew_items *items, size_t i, void *scratch, size_t size)
{
    const char *element = (const char *)items->items + i * items->stride;
    if (items->stride >= size)
        return element;
    memset(scratch, 0, size);
    memcpy(scratch, element, items->stride);
    return scratch;
}
