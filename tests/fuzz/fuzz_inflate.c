/* SPDX-License-Identifier: MIT */
/*
 * Arbitrary compressed data: the output never exceeds the maximum, and only output with a valid
 * checksum is accepted.
 */
#include "fuzz.h"
#include "source/pftrace/inflate.h"

#include <etwatch/etwatch.h>

enum { MOST = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ew_inflated out = {.max = MOST};
    size_t at = 0;
    int rc = ew_inflate(data, size, &out, &at);
    require(rc <= 0, "an error code or no error");
    require(at <= size, "the position lies within the input");
    require(out.len <= MOST, "the maximum holds");
    (void)touch(out.data, out.len);
    ew_inflated_done(&out);
    return 0;
}
