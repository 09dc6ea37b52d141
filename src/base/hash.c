/* SPDX-License-Identifier: MIT */
/* Owns the seed of this process: set once, by whichever thread needs it first. */
#include "base/hash.h"

#include <stdatomic.h>

static _Atomic uint64_t process_seed; /* 0: not set yet */

uint64_t ew_hash_seed(void)
{
    uint64_t seed = atomic_load_explicit(&process_seed, memory_order_relaxed);
    if (seed != 0)
        return seed;
    uint64_t fresh = ew_random_u64() | 1;
    if (atomic_compare_exchange_strong(&process_seed, &seed, fresh))
        return fresh;
    return seed; /* another thread was first */
}
