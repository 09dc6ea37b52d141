/* SPDX-License-Identifier: MIT */
/*
 * What a decoder has learned: schemas by (provider, event, version), maps by (provider, name) and
 * names of providers. Everything lives until the store is freed, so pointers to names stay valid.
 *
 * Bounded: EW_STORE_BYTES_MAX of memory and EW_STORE_ENTRIES_MAX entries. Anything beyond is
 * refused and counted; its events stay undecoded. Existing entries are kept.
 */
#ifndef EW_DECODE_STORE_H
#define EW_DECODE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/schema.h"

enum {
    EW_STORE_BYTES_MAX = 8 << 20,
    EW_STORE_ENTRIES_MAX = 32768,
};

/* Classic events have no id: the key is their opcode with this added. */
#define EW_KEY_CLASSIC 0x10000u

struct ew_store {
    struct ew_store_block *blocks;
    struct ew_store_entry *table;
    uint32_t count, capacity;
    size_t bytes;
    uint64_t refused;
};

void ew_store_init(struct ew_store *store);
void ew_store_done(struct ew_store *store);

/* Zeroed memory that lives as long as the store; NULL if it is full. */
void *ew_store_alloc(struct ew_store *store, size_t count, size_t size);
/* A terminated copy, or NULL. */
const char *ew_store_text(struct ew_store *store, const char *text, size_t len);
/* The same from UTF-16, without trailing spaces. */
const char *ew_store_utf16(struct ew_store *store, const uint8_t *bytes, size_t len);

const struct ew_schema *ew_store_schema(const struct ew_store *store, const uint8_t guid[16],
                                        uint32_t id, uint8_t version);
void ew_store_put_schema(struct ew_store *store, const uint8_t guid[16], uint32_t id,
                         uint8_t version, const struct ew_schema *schema);

/* Terminated, or NULL. */
const char *ew_store_provider(const struct ew_store *store, const uint8_t guid[16]);
/* The name is copied. */
void ew_store_put_provider(struct ew_store *store, const uint8_t guid[16], const char *name,
                           size_t len);

/*
 * The map of that name, created empty if it does not exist: a field may refer to a map before its
 * entries are known. NULL if the store is full.
 */
struct ew_map *ew_store_map(struct ew_store *store, const uint8_t guid[16], const char *name,
                            size_t len);

#endif
