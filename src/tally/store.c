/* SPDX-License-Identifier: MIT */
/*
 * Pools, maps and interned strings. Invariant: an object does not move until it is given back, so
 * threads, processes and CPUs may point to each other.
 */
#include "tally/internal.h"

#include <string.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"
#include "base/hash.h"

enum { CACHE_LINE = 64, CHUNK_OBJECTS = 128, TEXT_BLOCK = 65536 };

void ew_tally_pool_init(struct ew_tally_pool *pool, size_t object_size)
{
    *pool = (struct ew_tally_pool){.object_size = object_size};
}

void ew_tally_pool_done(struct ew_tally_pool *pool)
{
    for (uint32_t i = 0; i < pool->chunk_count; i++)
        ew_free(pool->chunks[i]);
    ew_free(pool->chunks);
    *pool = (struct ew_tally_pool){0};
}

static int add_chunk(struct ew_tally_pool *pool)
{
    if (pool->chunk_count == pool->chunk_capacity) {
        uint32_t capacity = pool->chunk_capacity == 0 ? 16 : pool->chunk_capacity * 2;
        void **chunks = ew_realloc_array(pool->chunks, capacity, sizeof *chunks);
        if (chunks == NULL)
            return ETWATCH_ENOMEM;
        pool->chunks = chunks;
        pool->chunk_capacity = capacity;
    }
    unsigned char *chunk = ew_calloc(1, CHUNK_OBJECTS * pool->object_size + CACHE_LINE);
    if (chunk == NULL)
        return ETWATCH_ENOMEM;
    pool->chunks[pool->chunk_count++] = chunk;
    unsigned char *object = chunk + (CACHE_LINE - (uintptr_t)chunk % CACHE_LINE) % CACHE_LINE;
    object += (CHUNK_OBJECTS - 1) * pool->object_size;
    for (int i = 0; i < CHUNK_OBJECTS; i++, object -= pool->object_size) {
        memcpy(object, &pool->free, sizeof pool->free);
        pool->free = object;
    }
    return 0;
}

void *ew_tally_pool_take(struct ew_tally_pool *pool)
{
    if (pool->free == NULL && add_chunk(pool) < 0)
        return NULL;
    void *object = pool->free;
    memcpy(&pool->free, object, sizeof pool->free);
    memset(object, 0, pool->object_size);
    pool->used++;
    return object;
}

void ew_tally_pool_give(struct ew_tally_pool *pool, void *object)
{
    memcpy(object, &pool->free, sizeof pool->free);
    pool->free = object;
    pool->used--;
}

/* --------------------------------------------------------------------------- map */

void ew_tally_map_done(struct ew_tally_map *map)
{
    ew_free(map->slots);
    *map = (struct ew_tally_map){0};
}

static void insert(struct ew_tally_map *map, uint32_t key, void *value)
{
    uint32_t mask = map->capacity - 1;
    uint32_t at = ew_tally_hash(key ^ map->seed) & mask;
    while (map->slots[at].value != NULL && map->slots[at].key != key)
        at = (at + 1) & mask;
    if (map->slots[at].value == NULL)
        map->used++;
    map->slots[at] = (struct ew_tally_slot){.value = value, .key = key};
}

int ew_tally_map_put(struct ew_tally_map *map, uint32_t key, void *value)
{
    if (map->used + 1 > map->capacity / 4 * 3) {
        struct ew_tally_map larger = {.capacity = map->capacity == 0 ? 64 : map->capacity * 2,
                                      .seed = (uint32_t)(ew_hash_seed() >> 32)};
        larger.slots = ew_calloc(larger.capacity, sizeof *larger.slots);
        if (larger.slots == NULL)
            return ETWATCH_ENOMEM;
        for (uint32_t i = 0; i < map->capacity; i++)
            if (map->slots[i].value != NULL)
                insert(&larger, map->slots[i].key, map->slots[i].value);
        ew_free(map->slots);
        *map = larger;
    }
    insert(map, key, value);
    return 0;
}

void ew_tally_map_remove(struct ew_tally_map *map, uint32_t key)
{
    if (map->capacity == 0)
        return;
    uint32_t mask = map->capacity - 1;
    uint32_t at = ew_tally_hash(key ^ map->seed) & mask;
    while (map->slots[at].value != NULL && map->slots[at].key != key)
        at = (at + 1) & mask;
    if (map->slots[at].value == NULL)
        return;
    map->used--;
    /* Entries displaced past this slot move up, so that no search ends too early. */
    for (uint32_t next = (at + 1) & mask; map->slots[next].value != NULL;
         next = (next + 1) & mask) {
        uint32_t home = ew_tally_hash(map->slots[next].key ^ map->seed) & mask;
        if (((next - home) & mask) >= ((next - at) & mask)) {
            map->slots[at] = map->slots[next];
            at = next;
        }
    }
    map->slots[at] = (struct ew_tally_slot){0};
}

/* ------------------------------------------------------------------------- texts */

void ew_tally_texts_init(struct ew_tally_texts *texts, size_t max_bytes)
{
    *texts = (struct ew_tally_texts){.max_bytes = max_bytes};
}

void ew_tally_texts_done(struct ew_tally_texts *texts)
{
    while (texts->block != NULL) {
        char *before;
        memcpy(&before, texts->block, sizeof before);
        ew_free(texts->block);
        texts->block = before;
    }
    ew_free(texts->slots);
    *texts = (struct ew_tally_texts){0};
}

static uint32_t hash_text(const char *text, size_t len)
{
    uint32_t hash = (uint32_t)ew_hash_seed();
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)text[i]) * 16777619u;
    return ew_tally_hash(hash);
}

static const char **find_slot(const char **slots, uint32_t capacity, const char *text, size_t len)
{
    uint32_t at = hash_text(text, len) & (capacity - 1);
    while (slots[at] != NULL && (strncmp(slots[at], text, len) != 0 || slots[at][len] != '\0'))
        at = (at + 1) & (capacity - 1);
    return &slots[at];
}

static int grow_slots(struct ew_tally_texts *texts)
{
    uint32_t capacity = texts->capacity == 0 ? 256 : texts->capacity * 2;
    const char **slots = ew_calloc(capacity, sizeof *slots);
    if (slots == NULL)
        return ETWATCH_ENOMEM;
    for (uint32_t i = 0; i < texts->capacity; i++) {
        const char *text = texts->slots[i];
        if (text != NULL)
            *find_slot(slots, capacity, text, strlen(text)) = text;
    }
    ew_free(texts->slots);
    texts->slots = slots;
    texts->capacity = capacity;
    return 0;
}

static char *make_room(struct ew_tally_texts *texts, size_t size)
{
    if (texts->block_size - texts->block_used < size) {
        size_t block_size = size + sizeof(char *) > TEXT_BLOCK ? size + sizeof(char *) : TEXT_BLOCK;
        if (block_size > texts->max_bytes - texts->bytes)
            return NULL;
        char *block = ew_calloc(1, block_size);
        if (block == NULL) {
            texts->failed = true;
            return NULL;
        }
        memcpy(block, &texts->block, sizeof texts->block);
        texts->block = block;
        texts->block_used = sizeof texts->block;
        texts->block_size = block_size;
        texts->bytes += block_size;
    }
    char *room = texts->block + texts->block_used;
    texts->block_used += size;
    return room;
}

const char *ew_tally_keep_text(struct ew_tally_texts *texts, const char *text, size_t len)
{
    const char *end = memchr(text, '\0', len);
    if (end != NULL)
        len = (size_t)(end - text);
    if (len == 0)
        return "";
    if (texts->used + 1 > texts->capacity / 4 * 3 && grow_slots(texts) < 0) {
        texts->failed = true;
        texts->refused++;
        return "";
    }
    const char **slot = find_slot(texts->slots, texts->capacity, text, len);
    if (*slot != NULL)
        return *slot;
    char *copy = make_room(texts, len + 1);
    if (copy == NULL) {
        texts->refused++;
        return "";
    }
    memcpy(copy, text, len);
    *slot = copy;
    texts->used++;
    return copy;
}
