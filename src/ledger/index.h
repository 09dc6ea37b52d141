/* SPDX-License-Identifier: MIT */
/*
 * Maps a process or thread id to the numbers of its pool objects. One id may have several: ids are
 * reused, and an ended process stays until its last sample is delivered.
 */
#ifndef EW_LEDGER_INDEX_H
#define EW_LEDGER_INDEX_H

#include <stdint.h>

struct ew_index_slot {
    uint32_t id;
    uint32_t ref; /* 0: empty */
};

struct ew_index {
    struct ew_index_slot *slots;
    uint32_t capacity; /* 0 or a power of two */
    uint32_t used;
    uint32_t shift;
    uint32_t seed; /* set with the first slots */
};

void ew_index_init(struct ew_index *index);
void ew_index_done(struct ew_index *index);
/* 0 or ETWATCH_ENOMEM. */
int ew_index_add(struct ew_index *index, uint32_t id, uint32_t ref);
void ew_index_remove(struct ew_index *index, uint32_t id, uint32_t ref);

/* Multiplicative hash: ids are dense, their low bits must be spread over the high ones. */
static inline uint32_t ew_index_home(const struct ew_index *index, uint32_t id)
{
    return ((id ^ index->seed) * 2654435769u) >> index->shift;
}

/* All objects of one id: *cursor starts as ew_index_home(); 0 at the end. */
static inline uint32_t ew_index_next(const struct ew_index *index, uint32_t id, uint32_t *cursor)
{
    if (index->capacity == 0)
        return 0;
    uint32_t mask = index->capacity - 1;
    for (;;) {
        const struct ew_index_slot *slot = &index->slots[*cursor & mask];
        if (slot->ref == 0)
            return 0;
        *cursor = (*cursor + 1) & mask;
        if (slot->id == id)
            return slot->ref;
    }
}

#endif
