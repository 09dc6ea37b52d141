/* SPDX-License-Identifier: MIT */
/* Random numbers of the system. */
#include "base/hash.h"

#include <sys/random.h>
#include <time.h>

/* Without entropy (early boot) or without the system call: the clock and an address, which the
 * writer of a file does not know either. */
uint64_t ew_random_u64(void)
{
    uint64_t value = 0;
    if (getrandom(&value, sizeof value, GRND_NONBLOCK) == (ssize_t)sizeof value)
        return value;
    return (uint64_t)time(NULL) * UINT64_C(0x9E3779B97F4A7C15) ^ (uintptr_t)&value;
}
