/* SPDX-License-Identifier: MIT */
/* Owns the seed of this process: set once, by whichever thread needs it first. */
#include "base/hash.h"

#include <stdatomic.h>

#if defined(__GNUC__)
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE
#endif

static _Atomic uint64_t process_seed; /* 0: not set yet */

/* A function of its own, so that a lookup saves no registers for it. */
static NOINLINE uint64_t make_seed(void)
{
    uint64_t seed = 0, fresh = ew_random_u64() | 1;
    if (atomic_compare_exchange_strong(&process_seed, &seed, fresh))
        return fresh;
    return seed; /* another thread was first */
}

uint64_t ew_hash_seed(void)
{
    uint64_t seed = atomic_load_explicit(&process_seed, memory_order_relaxed);
    return seed != 0 ? seed : make_seed();
}
