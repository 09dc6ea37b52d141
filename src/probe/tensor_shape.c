/* SPDX-License-Identifier: MIT */
/* Pure: words in, text out. */
#include "probe/tensor_shape.h"

#include <stdbool.h>
#include <stdio.h>

enum { DIMENSIONS_MAX = 5 };
static const uint64_t dimension_max = UINT64_C(1) << 40;

static bool are_dimensions(const uint64_t *words, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (words[i] > dimension_max)
            return false;
    return true;
}

int ew_probe_shape(uint64_t address, const uint64_t *words, size_t count, char *text, size_t size)
{
    int len = 0;
    text[0] = '\0';
    for (size_t i = 1; i < count; i++) {
        /* The pointer, and the number of dimensions before or after it. */
        uint64_t offset = words[i] - address, at = offset / 8;
        if (offset % 8 != 0 || at <= i || at >= count)
            continue;
        uint64_t dims = words[i - 1] >= 1 && words[i - 1] <= DIMENSIONS_MAX ? words[i - 1]
                        : i + 1 < at                                        ? words[i + 1]
                                                                            : 0;
        if (dims == 0 || dims > DIMENSIONS_MAX || at + dims > count ||
            !are_dimensions(words + at, dims))
            continue;
        for (uint64_t d = 0; d < dims && len >= 0 && (size_t)len < size; d++)
            len += snprintf(text + len, size - (size_t)len, "%s%llu", d == 0 ? "" : "x",
                            (unsigned long long)words[at + d]);
        return (size_t)len < size ? len : 0;
    }
    return 0;
}
