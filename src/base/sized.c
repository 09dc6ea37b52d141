/* SPDX-License-Identifier: MIT */
#include "base/sized.h"

#include <string.h>

static uint32_t size_of(const void *sized)
{
    uint32_t size;
    memcpy(&size, sized, sizeof size);
    return size;
}

int ew_sized_in(void *to, size_t to_size, const void *from, const char *what,
                struct ew_error *reterr)
{
    const unsigned char *bytes = from;
    const size_t size = size_of(from);
    if (size < EW_SIZED_MIN)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0, "%s.size is not set", what);
    memset(to, 0, to_size);
    memcpy(to, from, size < to_size ? size : to_size);
    for (size_t i = to_size; i < size; i++)
        if (bytes[i] != 0)
            return ew_error_set(reterr, ETWATCH_ENOTSUP, 0,
                                "%s has a field that this version of the library does not know",
                                what);
    return 0;
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

const void *ew_sized_view(const void *from, void *copy, size_t copy_size)
{
    const size_t size = size_of(from);
    if (size >= copy_size)
        return from;
    if (size < EW_SIZED_MIN)
        return NULL;
    memset(copy, 0, copy_size);
    memcpy(copy, from, size);
    return copy;
}
