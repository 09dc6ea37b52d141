/* SPDX-License-Identifier: MIT */
/*
 * Owns the chunks. Invariant: a free object is all zero except its first four bytes, which hold the
 * number of the next free one. So taking is O(1), and code that walks a pool can distinguish free
 * objects by any own field that is never zero in a live object.
 */
#include "ledger/pool.h"

#include <string.h>

#include "base/alloc.h"

void ew_pool_init(struct ew_pool *pool, size_t object_size)
{
    *pool = (struct ew_pool){.object_size = object_size};
}

void ew_pool_done(struct ew_pool *pool)
{
    for (uint32_t i = 0; i < pool->chunk_count; i++)
        ew_free(pool->chunks[i]);
    ew_free(pool->chunks);
    *pool = (struct ew_pool){.object_size = pool->object_size};
}

static int grow(struct ew_pool *pool)
{
    if (pool->chunk_count == pool->chunk_capacity) {
        uint32_t capacity = pool->chunk_capacity == 0 ? 8 : pool->chunk_capacity * 2;
        unsigned char **chunks = ew_realloc_array(pool->chunks, capacity, sizeof *chunks);
        if (chunks == NULL)
            return -1;
        pool->chunks = chunks;
        pool->chunk_capacity = capacity;
    }
    unsigned char *chunk = ew_calloc(EW_POOL_CHUNK, pool->object_size);
    if (chunk == NULL)
        return -1;
    uint32_t first = pool->chunk_count * EW_POOL_CHUNK + 1;
    for (uint32_t i = 0; i < EW_POOL_CHUNK; i++) {
        uint32_t next = i + 1 < EW_POOL_CHUNK ? first + i + 1 : pool->free_ref;
        memcpy(chunk + i * pool->object_size, &next, sizeof next);
    }
    pool->chunks[pool->chunk_count++] = chunk;
    pool->free_ref = first;
    return 0;
}

static void fetch(const unsigned char *object, size_t size)
{
    for (size_t at = 0; at < size && at < 256; at += 64)
        __builtin_prefetch(object + at, 1);
}

void *ew_pool_take(struct ew_pool *pool, uint32_t *ret_ref)
{
    if (pool->free_ref == 0 && grow(pool) < 0)
        return NULL;
    uint32_t ref = pool->free_ref;
    unsigned char *object = ew_pool_at(pool, ref);
    memcpy(&pool->free_ref, object, sizeof pool->free_ref);
    memset(object, 0, sizeof pool->free_ref);
    pool->used++;
    *ret_ref = ref;
    /* The next free object is probably not cached: prefetch it for the next call. */
    if (pool->free_ref != 0)
        fetch(ew_pool_at(pool, pool->free_ref), pool->object_size);
    return object;
}

void ew_pool_give(struct ew_pool *pool, uint32_t ref)
{
    unsigned char *object = ew_pool_at(pool, ref);
    memset(object, 0, pool->object_size);
    memcpy(object, &pool->free_ref, sizeof pool->free_ref);
    pool->free_ref = ref;
    pool->used--;
}
