/* SPDX-License-Identifier: MIT */
/*
 * Owns the strings: chained buckets, one allocation per distinct string, header and text together.
 * The returned text is at a fixed offset in its entry, so a release needs no lookup key.
 */
#include "ledger/ledger.h"

#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

struct ew_intern_entry {
    struct ew_intern_entry *next;
    uint32_t hash;
    uint32_t holders;
    char text[];
};

void ew_intern_init(struct ew_intern *intern)
{
    *intern = (struct ew_intern){0};
}

void ew_intern_done(struct ew_intern *intern)
{
    for (uint32_t i = 0; i < intern->capacity; i++) {
        struct ew_intern_entry *entry = intern->buckets[i];
        while (entry != NULL) {
            struct ew_intern_entry *next = entry->next;
            ew_free(entry);
            entry = next;
        }
    }
    ew_free(intern->buckets);
    ew_intern_init(intern);
}

/* FNV-1a from a random start: the strings are short. */
static uint32_t hash_text(const char *text, size_t *ret_len)
{
    uint32_t hash = (uint32_t)ew_hash_seed();
    size_t len = 0;
    for (; text[len] != '\0'; len++)
        hash = (hash ^ (unsigned char)text[len]) * 16777619u;
    *ret_len = len;
    return hash;
}

static int grow(struct ew_intern *intern)
{
    uint32_t capacity = intern->capacity == 0 ? 32 : intern->capacity * 2;
    struct ew_intern_entry **buckets = ew_calloc(capacity, sizeof(struct ew_intern_entry *));
    if (buckets == NULL)
        return -1;
    for (uint32_t i = 0; i < intern->capacity; i++) {
        struct ew_intern_entry *entry = intern->buckets[i];
        while (entry != NULL) {
            struct ew_intern_entry *next = entry->next;
            struct ew_intern_entry **home = &buckets[entry->hash & (capacity - 1)];
            entry->next = *home;
            *home = entry;
            entry = next;
        }
    }
    ew_free(intern->buckets);
    intern->buckets = buckets;
    intern->capacity = capacity;
    return 0;
}

const char *ew_intern_take(struct ew_intern *intern, const char *text)
{
    size_t len;
    uint32_t hash = hash_text(text, &len);
    if (intern->capacity > 0) {
        struct ew_intern_entry *entry = intern->buckets[hash & (intern->capacity - 1)];
        for (; entry != NULL; entry = entry->next) {
            if (entry->hash == hash && strcmp(entry->text, text) == 0) {
                entry->holders++;
                return entry->text;
            }
        }
    }
    if (intern->used >= intern->capacity && grow(intern) < 0)
        return NULL;
    struct ew_intern_entry *entry = ew_calloc(1, sizeof *entry + len + 1);
    if (entry == NULL)
        return NULL;
    entry->hash = hash;
    entry->holders = 1;
    memcpy(entry->text, text, len + 1);
    struct ew_intern_entry **home = &intern->buckets[hash & (intern->capacity - 1)];
    entry->next = *home;
    *home = entry;
    intern->used++;
    return entry->text;
}

void ew_intern_release(struct ew_intern *intern, const char *text)
{
    if (text == NULL)
        return;
    size_t len;
    uint32_t hash = hash_text(text, &len);
    struct ew_intern_entry **link = &intern->buckets[hash & (intern->capacity - 1)];
    while ((*link)->text != text)
        link = &(*link)->next;
    struct ew_intern_entry *entry = *link;
    if (--entry->holders > 0)
        return;
    *link = entry->next;
    intern->used--;
    ew_free(entry);
}
