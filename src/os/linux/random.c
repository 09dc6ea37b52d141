/* SPDX-License-Identifier: MIT */
/* Random numbers of the system. */
#include "base/hash.h"

#include <sys/random.h>

#include "os/os.h"

/* Without entropy (early boot) or without the system call: the clock and an address, which the
 * writer of a file does not know either. */
uint64_t ew_os_random(void)
{
    uint64_t value = 0;
    if (getrandom(&value, sizeof value, GRND_NONBLOCK) == (ssize_t)sizeof value)
        return value;
    return ew_os_raw_ns() * UINT64_C(0x9E3779B97F4A7C15) ^ (uintptr_t)&value;
}
