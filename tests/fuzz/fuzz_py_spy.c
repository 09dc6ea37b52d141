/* SPDX-License-Identifier: MIT */
/* What py-spy wrote: any bytes are read or refused, and parts are in order. */
#include "cli/py_spy.c"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ew_py_spy spy;
    (void)ew_py_spy_parse(&spy, data, size);
    for (size_t i = 1; i < spy.part_count; i++)
        require(by_time(&spy.parts[i - 1], &spy.parts[i]) <= 0, "parts in order");
    for (size_t i = 0; i < spy.part_count; i++)
        require(spy.parts[i].stack == UINT32_MAX || spy.parts[i].stack < spy.stacks->count,
                "a known stack");
    ew_py_spy_done(&spy);
    return 0;
}
