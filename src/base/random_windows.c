/* SPDX-License-Identifier: MIT */
/* Random numbers of the system. */
#define _CRT_RAND_S
#include <stdlib.h>
#include <time.h>

#include "base/hash.h"

uint64_t ew_random_u64(void)
{
    unsigned low = 0, high = 0;
    if (rand_s(&low) == 0 && rand_s(&high) == 0)
        return (uint64_t)high << 32 | low;
    return (uint64_t)time(NULL) * UINT64_C(0x9E3779B97F4A7C15) ^ (uintptr_t)&low;
}
