/* SPDX-License-Identifier: MIT */
/*
 * Hardware counters carried by switches. They belong to the CPU and never stop: the difference
 * between two switches belongs to the thread that ran in between. Invariant: nothing is added
 * unless both ends of a run are known, on the same CPU, of the same thread, and the counter rose.
 *
 * Sums are kept by position in the event, because the meaning of the positions may be recorded only
 * at the end. They are reported as named counters once the meaning is known, and only if the whole
 * recording agrees on it.
 */
#include "tally/pmc.h"

#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"

/* Counter values of a CPU at its last switch. */
struct ew_tally_pmc {
    uint8_t count; /* 0: that switch carried none */
    uint64_t last[EW_PMC_MAX];
};

uint32_t ew_tally_pmc_known(const struct ew_tally *tally)
{
    bool sure = !tally->pmc_unsure && tally->pmc_seen != 0 && tally->pmc_seen == tally->pmc.count;
    return sure ? ew_pmc_has(&tally->pmc) : 0;
}

static void set_unsure(struct ew_tally *tally)
{
    tally->pmc_unsure = true;
    ew_tally_saw_class(tally, 0);
}

void ew_tally_pmc_saw(struct ew_tally *tally, uint8_t count)
{
    if (count == 0 || count == tally->pmc_seen)
        return;
    if (tally->pmc_seen != 0) {
        set_unsure(tally);
        return;
    }
    tally->pmc_seen = count;
    ew_tally_saw_class(tally, 0);
}

void ew_tally_pmc_names(struct ew_tally *tally, const struct ew_pmc_map *map)
{
    if (map->count == 0)
        return; /* no counters were configured at that time */
    /* Counts from before the names were known are in no sample; the next one would be too large. */
    bool late = tally->pmc.count == 0 && tally->pmc_seen != 0 && tally->interval_ns != 0 &&
                !tally->learning;
    if (late || (tally->pmc.count != 0 && !ew_pmc_same(&tally->pmc, map))) {
        set_unsure(tally);
        return;
    }
    tally->pmc = *map;
    ew_tally_saw_class(tally, 0);
}

void ew_tally_pmc_disturbed(struct ew_tally *tally)
{
    set_unsure(tally);
}

/* gap: this CPU had counters before. Without that, counting has not started yet. */
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
    uint64_t *sums = &thread->cold->work[EW_WORK_PMC];
    bool whole = true;
    for (uint8_t i = 0; i < before->count; i++) {
        uint64_t value = ew_load_u64(now + 8 * (size_t)i);
        /* The counter was reset, or it overflowed (its width is unknown). */
        whole &= value >= before->last[i];
        sums[i] += value >= before->last[i] ? value - before->last[i] : 0;
    }
    return whole;
}

void ew_tally_pmc_switch(struct ew_tally *tally, struct ew_tally_cpu *cpu,
                         const struct ew_event *event, struct ew_tally_thread *ran)
{
    uint8_t count = event->u.cswitch.pmc_count;
    struct ew_tally_pmc *pmc = cpu->pmc;
    ew_tally_pmc_saw(tally, count);
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

void ew_tally_pmc_finish(struct ew_tally *tally)
{
    for (uint32_t i = 0; i < tally->cpu_count; i++)
        if (tally->cpus[i].running != NULL)
            mark(tally, tally->cpus[i].running, false);
}

void ew_tally_pmc_counters(const struct ew_tally *tally, const uint64_t work[EW_WORK_COUNT],
                           uint64_t counter[EW_COUNTER_COUNT])
{
    counter[EW_C_cycles] = counter[EW_C_instructions] = counter[EW_C_cache_misses] = 0;
    for (uint8_t i = 0; i < tally->pmc.count; i++)
        if (tally->pmc.counter[i] != EW_PMC_NONE)
            counter[tally->pmc.counter[i]] = work[EW_WORK_PMC + i];
}
