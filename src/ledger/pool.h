/* SPDX-License-Identifier: MIT */
/*
 * Objects of one size in chunks that never move: pointers stay valid until the object is given
 * back, and growing wastes at most one chunk (a doubling array would waste half of itself).
 */
#ifndef EW_LEDGER_POOL_H
#define EW_LEDGER_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EW_POOL_CHUNK 64u

struct ew_pool {
    unsigned char **chunks;
    size_t object_size;
    uint32_t chunk_count;
    uint32_t chunk_capacity;
    uint32_t free_ref; /* 0: none */
    uint32_t used;
};

/* object_size: at least 4 bytes. */
void ew_pool_init(struct ew_pool *pool, size_t object_size);
void ew_pool_done(struct ew_pool *pool);
/* A zeroed object and its number (1 to ew_pool_last), or NULL. */
void *ew_pool_take(struct ew_pool *pool, uint32_t *ret_ref);
void ew_pool_give(struct ew_pool *pool, uint32_t ref);

static inline void *ew_pool_at(const struct ew_pool *pool, uint32_t ref)
{
    uint32_t index = ref - 1;
    return pool->chunks[index / EW_POOL_CHUNK] + (index % EW_POOL_CHUNK) * pool->object_size;
}

/* Taking another object needs memory. */
static inline bool ew_pool_is_full(const struct ew_pool *pool)
{
    return pool->free_ref == 0;
}

/* The highest valid number; free objects are zero except their first four bytes. */
static inline uint32_t ew_pool_last(const struct ew_pool *pool)
{
    return pool->chunk_count * EW_POOL_CHUNK;
}

#endif
