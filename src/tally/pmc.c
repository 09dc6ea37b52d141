/* SPDX-License-Identifier: MIT */
/*
 * Hardware counters that switches carry. They belong to the CPU and never stop: what one counted
 * from a switch to the next is of the thread that ran in between. Invariant: nothing is added
 * unless both ends of a run are known, on the same CPU, of the same thread, and the counter rose.
 *
 * They are added up by their place in the event, because what they are may be told only at the end;
 * as what they are they can be told once it is known, and only if all of the recording agrees on
 * it.
 */
#include "tally/pmc.h"

#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"

/* What each CPU's counters said at its last switch. */
struct ew_tally_pmc {
    uint8_t count; /* 0: it carried none */
    uint64_t last[EW_PMC_MAX];
};

uint32_t ew_pmc_known(const struct ew_tally *tally)
{
    bool sure = !tally->pmc_unsure && tally->pmc_seen != 0 && tally->pmc_seen == tally->pmc.count;
    return sure ? ew_pmc_has(&tally->pmc) : 0;
}

static void unsure(struct ew_tally *tally)
{
    tally->pmc_unsure = true;
    ew_tally_saw_class(tally, 0);
}

void ew_pmc_saw(struct ew_tally *tally, uint8_t count)
{
    if (count == 0 || count == tally->pmc_seen)
        return;
    if (tally->pmc_seen != 0) {
        unsure(tally);
        return;
    }
    tally->pmc_seen = count;
    ew_tally_saw_class(tally, 0);
}

void ew_pmc_names(struct ew_tally *tally, const struct ew_pmc_map *map)
{
    if (map->count == 0)
        return; /* none were asked for when this was told */
    /* What was counted before they had names is in no sample: the next would have too much. */
    bool late = tally->pmc.count == 0 && tally->pmc_seen != 0 && tally->interval_ns != 0 &&
                !tally->learning;
    if (late || (tally->pmc.count != 0 && !ew_pmc_same(&tally->pmc, map))) {
        unsure(tally);
        return;
    }
    tally->pmc = *map;
    ew_tally_saw_class(tally, 0);
}

void ew_pmc_disturbed(struct ew_tally *tally)
{
    unsure(tally);
}

/* gap: there were counters before on this CPU; until there are, they have not begun. */
static void mark(struct ew_tally *tally, struct ew_tally_thread *thread, bool gap)
{
    if ((thread->flags & EW_TT_IDLE) != 0 || (tally->counter_has & EW_HAS_PMC) == 0)
        return;
    thread->flags |= EW_TT_INCOMPLETE;
    if (gap && thread->process != NULL)
        thread->process->flags |= EW_TP_INCOMPLETE;
}

static bool add(struct ew_tally_thread *thread, const struct ew_tally_pmc *before,
                const uint8_t *now)
{
    uint64_t *sums = &thread->deeds->deed[EW_DEED_PMC];
    bool whole = true;
    for (uint8_t i = 0; i < before->count; i++) {
        uint64_t value = ew_load_u64(now + 8 * (size_t)i);
        /* It began anew, or its bits, of which nobody says how many, ran out. */
        whole &= value >= before->last[i];
        sums[i] += value >= before->last[i] ? value - before->last[i] : 0;
    }
    return whole;
}

void ew_pmc_switch(struct ew_tally *tally, struct ew_tally_cpu *cpu, const struct ew_event *event,
                   struct ew_tally_thread *ran)
{
    uint8_t count = event->u.cswitch.pmc_count;
    struct ew_tally_pmc *pmc = cpu->pmc;
    ew_pmc_saw(tally, count);
    if (pmc == NULL && count > 0) {
        pmc = cpu->pmc = ew_calloc(1, sizeof *pmc);
        if (pmc == NULL)
            ew_tally_short_of_memory(tally);
    }
    bool known = pmc != NULL && pmc->count != 0 && pmc->count == count;
    if (ran != NULL && (!known || !add(ran, pmc, event->u.cswitch.pmc)))
        mark(tally, ran, pmc != NULL);
    if (pmc == NULL)
        return;
    pmc->count = count;
    for (uint8_t i = 0; i < count; i++)
        pmc->last[i] = ew_load_u64(event->u.cswitch.pmc + 8 * (size_t)i);
}

void ew_pmc_finish(struct ew_tally *tally)
{
    for (uint32_t i = 0; i < tally->cpu_count; i++)
        if (tally->cpus[i].running != NULL)
            mark(tally, tally->cpus[i].running, false);
}

void ew_pmc_counters(const struct ew_tally *tally, const uint64_t deed[EW_DEED_COUNT],
                     uint64_t counter[EW_COUNTER_COUNT])
{
    counter[EW_C_cycles] = counter[EW_C_instructions] = counter[EW_C_cache_misses] = 0;
    for (uint8_t i = 0; i < tally->pmc.count; i++)
        if (tally->pmc.counter[i] != EW_PMC_NONE)
            counter[tally->pmc.counter[i]] = deed[EW_DEED_PMC + i];
}
