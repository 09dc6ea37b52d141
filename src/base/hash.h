/* SPDX-License-Identifier: MIT */
/*
 * Hashes for tables with keys from recordings. They depend on a random seed of this process, so
 * the author of a file cannot choose keys that collide. Nothing that is output may depend on
 * them, neither its order nor what a full table drops; such tables use a fixed hash.
 */
#ifndef EW_BASE_HASH_H
#define EW_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* The same for the whole life of the process; never 0. */
uint64_t ew_hash_seed(void);
/* Implemented in src/os. */
uint64_t ew_random_u64(void);

static inline uint64_t ew_hash_mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 32;
}

/* The identity of a process or thread. */
static inline uint32_t ew_hash_identity(uint32_t pid, uint64_t start_ns, uint32_t tid)
{
    uint64_t hash = ew_hash_mix(ew_hash_seed(), start_ns);
    hash = ew_hash_mix(hash, (uint64_t)pid << 32 | tid);
    return (uint32_t)(hash >> 16);
}

#endif
