/* SPDX-License-Identifier: MIT */
/*
 * Open addressing with linear probing and backward-shift deletion: no tombstones, so lookups stay
 * short no matter how many processes have exited. At most two thirds full; starts at 64 slots.
 */
#include "ledger/index.h"

#include "base/alloc.h"
#include "base/hash.h"

#include <etwatch/etwatch.h>

void ew_index_init(struct ew_index *index)
{
    *index = (struct ew_index){.shift = 31};
}

void ew_index_done(struct ew_index *index)
{
    ew_free(index->slots);
    ew_index_init(index);
}

static void put(struct ew_index *index, uint32_t id, uint32_t ref)
{
    uint32_t mask = index->capacity - 1;
    uint32_t at = ew_index_home(index, id);
    while (index->slots[at].ref != 0)
        at = (at + 1) & mask;
    index->slots[at] = (struct ew_index_slot){.id = id, .ref = ref};
}

static int grow(struct ew_index *index)
{
    struct ew_index bigger = {
        .capacity = index->capacity == 0 ? 64 : index->capacity * 2,
        .shift = index->capacity == 0 ? 26 : index->shift - 1,
        .used = index->used,
        .seed = (uint32_t)(ew_hash_seed() >> 32),
    };
    bigger.slots = ew_calloc(bigger.capacity, sizeof *bigger.slots);
    if (bigger.slots == NULL)
        return ETWATCH_ENOMEM;
    for (uint32_t i = 0; i < index->capacity; i++) {
        if (index->slots[i].ref != 0)
            put(&bigger, index->slots[i].id, index->slots[i].ref);
    }
    ew_free(index->slots);
    *index = bigger;
    return 0;
}

int ew_index_add(struct ew_index *index, uint32_t id, uint32_t ref)
{
    if ((uint64_t)(index->used + 1) * 3 > (uint64_t)index->capacity * 2 && grow(index) < 0)
        return ETWATCH_ENOMEM;
    put(index, id, ref);
    index->used++;
    return 0;
}

void ew_index_remove(struct ew_index *index, uint32_t id, uint32_t ref)
{
    uint32_t mask = index->capacity - 1;
    uint32_t hole = ew_index_home(index, id);
    while (index->slots[hole].id != id || index->slots[hole].ref != ref)
        hole = (hole + 1) & mask;
    /* Close the gap: move back every entry with a probe path across the hole. */
    uint32_t at = hole;
    for (;;) {
        at = (at + 1) & mask;
        if (index->slots[at].ref == 0)
            break;
        uint32_t home = ew_index_home(index, index->slots[at].id);
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            index->slots[hole] = index->slots[at];
            hole = at;
        }
    }
    index->slots[hole] = (struct ew_index_slot){0};
    index->used--;
}
