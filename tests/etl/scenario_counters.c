/* SPDX-License-Identifier: MIT */
/*
 * The hardware counters of the synthetic machine. They never stop: each run adds its counts, idle
 * ones too, and a switch has the current values. The counts of each thread are the truth.
 */
#include "scenario_machine.h"

static const char *const names[ETL_COUNTER_COUNT] = {
    [ETL_INSTRUCTIONS] = "InstructionRetired",
    [ETL_BRANCHES] = "BranchInstructions",
    [ETL_CYCLES] = "TotalCycles",
    [ETL_CACHE_MISSES] = "LLCMisses",
};

enum { PAUSE_FROM = 500, PAUSE_TO = 600, FALL_AT = 500, RENAME_AT = 500 };

static uint64_t counted(struct machine *m, uint32_t which, uint64_t ticks)
{
    static const uint32_t per_tick[ETL_COUNTER_COUNT] = {300, 40, 240, 1};
    return ticks * per_tick[which] + (etl_random(&m->counter_random) >> 33) % 1000;
}

/* The counters of this CPU restart, only once. */
static bool falls(struct machine *m)
{
    bool now = m->config.counters == ETL_COUNTERS_RESTART && m->truth.switches >= FALL_AT &&
               !m->counters_fell;
    m->counters_fell |= now;
    return now;
}

void count_run(struct machine *m, uint16_t cpu, uint32_t thread, uint64_t ticks)
{
    struct machine_cpu *c = &m->cpus[cpu];
    struct etl_truth_thread *t = thread == ETL_IDLE ? NULL : &m->truth.threads[thread];
    bool pause = m->config.counters == ETL_COUNTERS_PAUSE && m->truth.switches >= PAUSE_FROM &&
                 m->truth.switches < PAUSE_TO;
    if (!machine_has(m, ETL_COUNTERS))
        return;
    if (m->config.counters == ETL_COUNTERS_RENAMED && m->truth.switches == RENAME_AT)
        emit_counter_names(m, true);
    bool fell = t != NULL && falls(m), known = c->counters_known && !pause && !fell;
    for (uint32_t i = 0; i < ETL_COUNTER_COUNT; i++) {
        uint64_t more = counted(m, i, ticks);
        c->counters[i] = fell ? more / 2 : c->counters[i] + more;
        if (t != NULL && known)
            t->counters[i] += more;
    }
    if (t != NULL && !known)
        t->counters_gap = true;
    c->counters_known = !pause;
}

uint32_t carry_counters(const struct machine *m, uint16_t cpu, uint64_t to[ETL_COUNTER_COUNT])
{
    const uint64_t *counters = m->cpus[cpu].counters;
    if (!machine_has(m, ETL_COUNTERS) || !m->cpus[cpu].counters_known)
        return 0;
    for (uint32_t i = 0; i < ETL_COUNTER_COUNT; i++)
        to[i] = counters[i];
    if (m->config.counters != ETL_COUNTERS_OURS)
        return ETL_COUNTER_COUNT;
    to[0] = counters[ETL_CYCLES];
    to[1] = counters[ETL_INSTRUCTIONS];
    to[2] = counters[ETL_CACHE_MISSES];
    return 3;
}

void emit_counter_names(struct machine *m, bool others)
{
    static const char *const other[ETL_COUNTER_COUNT] = {"TotalCycles", "InstructionRetired",
                                                         "BranchInstructions", "LLCMisses"};
    etl_counter_names(&m->payload, others ? other : names, ETL_COUNTER_COUNT);
    emit_short(m, 0, 0x0F30);
}

void emit_counters_disturbed(struct machine *m)
{
    etl_counter_corruption(&m->payload, 0, 19, m->truth.first_raw);
    emit_short(m, 0, 0x0F31);
}
