/* SPDX-License-Identifier: MIT */
/*
 * Owns the dense array of entries and an open-addressed index over it. Invariants: the index has at
 * least twice as many slots as there are entries; every entry's pid is in it exactly once.
 *
 * Dense, because every round visits all of them; linear probing with backward-shift deletion,
 * because pids come and go all the time and tombstones would accumulate.
 */
#include "source/poll/poller.h"

#include <assert.h>
#include <stddef.h>

#include "base/alloc.h"

#define FIRST_CAPACITY 64u

void ew_poll_table_init(struct ew_poll_table *table, uint32_t max)
{
    *table = (struct ew_poll_table){.max = max};
}

void ew_poll_table_done(struct ew_poll_table *table)
{
    ew_free(table->entries);
    ew_free(table->slots);
    *table = (struct ew_poll_table){0};
}

/* Consecutive pids are common: spread them, or each lookup would walk their run. */
static uint32_t home_slot(const struct ew_poll_table *table, uint32_t pid)
{
    return (pid * 2654435769u >> 7) & table->slot_mask;
}

/* The slot of pid, or the empty one for it. */
static uint32_t *find_slot(struct ew_poll_table *table, uint32_t pid)
{
    uint32_t at = home_slot(table, pid);
    while (table->slots[at] && table->entries[table->slots[at] - 1].pid != pid)
        at = (at + 1) & table->slot_mask;
    return &table->slots[at];
}

struct ew_poll_entry *ew_poll_table_find(struct ew_poll_table *table, uint32_t pid)
{
    if (table->count == 0)
        return NULL;
    uint32_t slot = *find_slot(table, pid);
    return slot ? &table->entries[slot - 1] : NULL;
}

static bool grow(struct ew_poll_table *table)
{
    uint32_t capacity = table->capacity ? table->capacity * 2 : FIRST_CAPACITY;
    uint32_t *slots = ew_calloc((size_t)capacity * 2, sizeof *slots);
    struct ew_poll_entry *entries =
        slots ? ew_realloc_array(table->entries, capacity, sizeof *entries) : NULL;
    if (!entries) {
        ew_free(slots);
        return false;
    }
    ew_free(table->slots);
    table->slots = slots;
    table->slot_mask = capacity * 2 - 1;
    table->entries = entries;
    table->capacity = capacity;
    for (uint32_t i = 0; i < table->count; i++)
        *find_slot(table, entries[i].pid) = i + 1;
    return true;
}

struct ew_poll_entry *ew_poll_table_add(struct ew_poll_table *table, uint32_t pid)
{
    if (table->count == table->max || (table->count == table->capacity && !grow(table)))
        return NULL;
    uint32_t *slot = find_slot(table, pid);
    assert(*slot == 0);
    struct ew_poll_entry *entry = &table->entries[table->count++];
    *slot = table->count;
    *entry = (struct ew_poll_entry){.pid = pid};
    return entry;
}

/* Empties a slot and moves back entries that probing had pushed past it. */
static void clear_slot(struct ew_poll_table *table, uint32_t hole)
{
    uint32_t mask = table->slot_mask;
    for (uint32_t at = (hole + 1) & mask; table->slots[at]; at = (at + 1) & mask) {
        uint32_t home = home_slot(table, table->entries[table->slots[at] - 1].pid);
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            table->slots[hole] = table->slots[at];
            hole = at;
        }
    }
    table->slots[hole] = 0;
}

void ew_poll_table_remove(struct ew_poll_table *table, struct ew_poll_entry *entry)
{
    uint32_t index = (uint32_t)(entry - table->entries);
    assert(index < table->count);
    clear_slot(table, (uint32_t)(find_slot(table, entry->pid) - table->slots));
    uint32_t last = table->count - 1;
    if (index != last) {
        *find_slot(table, table->entries[last].pid) = index + 1;
        table->entries[index] = table->entries[last];
    }
    table->count = last;
}
