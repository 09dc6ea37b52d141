/* SPDX-License-Identifier: MIT */
/*
 * What the tally keeps its things in: objects that never move, a map from 32-bit ids, and texts
 * kept once. All grow in chunks, never per event, and all have a stated maximum.
 */
#ifndef EW_TALLY_STORE_H
#define EW_TALLY_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Objects of one size (a multiple of 8), each chunk begins at a cache line. */
struct ew_store_pool {
    void **chunks; /* as allocated */
    void *free;    /* the first word of a free object points to the next */
    size_t object_size;
    uint32_t chunk_count, chunk_capacity;
    uint32_t used;
};

void ew_store_pool_init(struct ew_store_pool *pool, size_t object_size);
void ew_store_pool_done(struct ew_store_pool *pool);
/* Zeroed, or NULL. */
void *ew_store_pool_take(struct ew_store_pool *pool);
void ew_store_pool_give(struct ew_store_pool *pool, void *object);

struct ew_store_slot {
    void *value; /* NULL: empty */
    uint32_t key;
};

struct ew_store_map {
    struct ew_store_slot *slots;
    uint32_t capacity; /* 0 or a power of two */
    uint32_t used;
};

void ew_store_map_done(struct ew_store_map *map);
/* 0 or ETWATCH_ENOMEM; replaces. */
int ew_store_map_put(struct ew_store_map *map, uint32_t key, void *value);
void ew_store_map_remove(struct ew_store_map *map, uint32_t key);

static inline uint32_t ew_store_hash(uint32_t key)
{
    key *= 2654435769u;
    return key ^ key >> 15;
}

static inline void *ew_store_map_get(const struct ew_store_map *map, uint32_t key)
{
    if (map->capacity == 0)
        return NULL;
    uint32_t mask = map->capacity - 1;
    for (uint32_t at = ew_store_hash(key) & mask; map->slots[at].value != NULL;
         at = (at + 1) & mask)
        if (map->slots[at].key == key)
            return map->slots[at].value;
    return NULL;
}

/* Equal texts are one. */
struct ew_store_texts {
    char *block; /* the one being filled; its first word points to the one before */
    size_t block_used, block_size;
    const char **slots;
    uint32_t capacity, used;
    size_t bytes, max_bytes;
    uint64_t refused;
    bool failed; /* for want of memory, not of room; whoever asks clears it */
};

void ew_store_texts_init(struct ew_store_texts *texts, size_t max_bytes);
void ew_store_texts_done(struct ew_store_texts *texts);
/* A terminated copy that lives as long as the texts do; "" if there is no room, which is counted.
 */
const char *ew_store_keep_text(struct ew_store_texts *texts, const char *text, size_t len);

#endif
