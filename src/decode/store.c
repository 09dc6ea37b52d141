/* SPDX-License-Identifier: MIT */
/*
 * One arena of blocks and one hash table with open addressing for all three kinds of entries.
 * Nothing is ever removed, so probing needs no tombstones and pointers to names stay valid.
 */
#include "decode/store.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/utf16.h"

enum { BLOCK_BYTES = 64 << 10, FIRST_CAPACITY = 64 };

struct ew_store_block {
    struct ew_store_block *next;
    size_t size, used;
    max_align_t data[];
};

enum kind { KIND_SCHEMA = 1, KIND_PROVIDER, KIND_MAP };

struct ew_store_entry {
    uint8_t guid[16];
    uint8_t kind; /* 0: free */
    uint8_t version;
    uint32_t id;      /* maps: the length of the name */
    const char *name; /* maps */
    const void *value;
};

void ew_store_init(struct ew_store *store)
{
    memset(store, 0, sizeof *store);
}

void ew_store_done(struct ew_store *store)
{
    while (store->blocks) {
        struct ew_store_block *next = store->blocks->next;
        ew_free(store->blocks);
        store->blocks = next;
    }
    ew_free(store->table);
    ew_store_init(store);
}

static struct ew_store_block *add_block(struct ew_store *store, size_t size)
{
    size_t bytes = size > BLOCK_BYTES ? size : BLOCK_BYTES;
    if (bytes > EW_STORE_BYTES_MAX - store->bytes) {
        store->refused++;
        return NULL;
    }
    struct ew_store_block *block = ew_calloc(1, sizeof *block + bytes);
    if (!block) {
        store->refused++;
        return NULL;
    }
    block->size = bytes;
    block->next = store->blocks;
    store->blocks = block;
    store->bytes += bytes;
    return block;
}

void *ew_store_alloc(struct ew_store *store, size_t count, size_t size)
{
    if (size && count > EW_STORE_BYTES_MAX / size) {
        store->refused++;
        return NULL;
    }
    size_t align = sizeof(max_align_t);
    size_t need = (count * size + align - 1) / align * align;
    struct ew_store_block *block = store->blocks;
    if (!block || block->size - block->used < need)
        block = add_block(store, need);
    if (!block)
        return NULL;
    void *memory = (char *)block->data + block->used;
    block->used += need;
    return memory;
}

const char *ew_store_text(struct ew_store *store, const char *text, size_t len)
{
    char *copy = ew_store_alloc(store, len + 1, 1);
    if (copy && len)
        memcpy(copy, text, len);
    return copy;
}

const char *ew_store_utf16(struct ew_store *store, const uint8_t *bytes, size_t len)
{
    size_t size = EW_UTF16_UTF8_MAX(len) + 1;
    char *copy = ew_store_alloc(store, size, 1);
    if (!copy)
        return NULL;
    size_t used = ew_utf16_to_utf8(bytes, len, copy, size);
    while (used && copy[used - 1] == ' ')
        copy[--used] = '\0';
    return copy;
}

/* ---------------------------------------------------------------- the table */

/* FNV-1a from a random start: keys are short. */
static uint32_t mix(uint32_t hash, const void *bytes, size_t len)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ at[i]) * 16777619u;
    return hash;
}

static uint32_t hash_of(const struct ew_store_entry *key)
{
    uint8_t number[6] = {key->kind,
                         key->version,
                         (uint8_t)key->id,
                         (uint8_t)(key->id >> 8),
                         (uint8_t)(key->id >> 16),
                         (uint8_t)(key->id >> 24)};
    uint32_t hash = mix((uint32_t)ew_hash_seed(), key->guid, 16);
    hash = mix(hash, number, sizeof number);
    if (key->name)
        hash = mix(hash, key->name, key->id);
    return hash ^ hash >> 15;
}

static bool same(const struct ew_store_entry *a, const struct ew_store_entry *b)
{
    return a->kind == b->kind && a->id == b->id && a->version == b->version &&
           memcmp(a->guid, b->guid, 16) == 0 &&
           (a->kind != KIND_MAP || a->id == 0 || memcmp(a->name, b->name, a->id) == 0);
}

/* The slot of the key, or the free slot where it belongs. */
static struct ew_store_entry *probe(const struct ew_store *store, const struct ew_store_entry *key)
{
    uint32_t i = hash_of(key) & (store->capacity - 1);
    while (store->table[i].kind && !same(&store->table[i], key))
        i = (i + 1) & (store->capacity - 1);
    return &store->table[i];
}

static const void *find(const struct ew_store *store, const struct ew_store_entry *key)
{
    if (!store->capacity)
        return NULL;
    return probe(store, key)->value;
}

static bool grow(struct ew_store *store)
{
    struct ew_store old = *store;
    uint32_t capacity = old.capacity ? old.capacity * 2 : FIRST_CAPACITY;
    struct ew_store_entry *table = ew_calloc(capacity, sizeof *table);
    if (!table)
        return false;
    store->table = table;
    store->capacity = capacity;
    for (uint32_t i = 0; i < old.capacity; i++)
        if (old.table[i].kind)
            *probe(store, &old.table[i]) = old.table[i];
    ew_free(old.table);
    return true;
}

/* An existing entry is kept. */
static void put(struct ew_store *store, const struct ew_store_entry *entry)
{
    if (store->count * 2 >= store->capacity &&
        (store->count >= EW_STORE_ENTRIES_MAX || !grow(store))) {
        store->refused++;
        return;
    }
    struct ew_store_entry *place = probe(store, entry);
    if (place->kind)
        return;
    *place = *entry;
    store->count++;
}

static struct ew_store_entry key_of(enum kind kind, const uint8_t guid[16], uint32_t id,
                                    uint8_t version)
{
    struct ew_store_entry key = {.kind = (uint8_t)kind, .id = id, .version = version};
    memcpy(key.guid, guid, 16);
    return key;
}

const struct ew_schema *ew_store_schema(const struct ew_store *store, const uint8_t guid[16],
                                        uint32_t id, uint8_t version)
{
    struct ew_store_entry key = key_of(KIND_SCHEMA, guid, id, version);
    return find(store, &key);
}

void ew_store_put_schema(struct ew_store *store, const uint8_t guid[16], uint32_t id,
                         uint8_t version, const struct ew_schema *schema)
{
    struct ew_store_entry entry = key_of(KIND_SCHEMA, guid, id, version);
    entry.value = schema;
    put(store, &entry);
}

const char *ew_store_provider(const struct ew_store *store, const uint8_t guid[16])
{
    struct ew_store_entry key = key_of(KIND_PROVIDER, guid, 0, 0);
    return find(store, &key);
}

void ew_store_put_provider(struct ew_store *store, const uint8_t guid[16], const char *name,
                           size_t len)
{
    struct ew_store_entry entry = key_of(KIND_PROVIDER, guid, 0, 0);
    if (len == 0 || find(store, &entry))
        return;
    entry.value = ew_store_text(store, name, len);
    if (entry.value)
        put(store, &entry);
}

struct ew_map *ew_store_map(struct ew_store *store, const uint8_t guid[16], const char *name,
                            size_t len)
{
    struct ew_store_entry entry = key_of(KIND_MAP, guid, (uint32_t)len, 0);
    entry.name = name;
    const void *known = find(store, &entry);
    if (known)
        return (struct ew_map *)(uintptr_t)known; /* created below as non-const */
    struct ew_map *map = ew_store_alloc(store, 1, sizeof *map);
    const char *copy = map ? ew_store_text(store, name, len) : NULL;
    if (!copy)
        return NULL;
    map->name = copy;
    map->name_len = (uint32_t)len;
    entry.name = copy;
    entry.value = map;
    put(store, &entry);
    return map;
}
