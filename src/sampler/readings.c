/* SPDX-License-Identifier: MIT */
/*
 * Converts absolute readings to counts per interval.
 *
 * A thread keeps the values up to which it is accounted (`last`). The sum of all attributed counts
 * is always `last` minus its baseline: `last` only increases, by exactly what was attributed. So a
 * value that decreases (time stolen by a hypervisor made an extrapolation too large; a user/kernel
 * split was rounded) counts nothing until it has caught up, and a count that finds no memory is not
 * lost: the next reading includes it.
 */
#include <string.h>

#include "sampler/internal.h"

/* Whether the whole lifetime was monitored, so that the counters started at 0. */
static bool monitored_from_start(const struct ew_sampler *sampler, const struct ew_process *process,
                                 const struct ew_reading *reading)
{
    if ((process->flags & EW_P_REBASE) != 0)
        return false;
    if ((process->flags & EW_P_STARTED) != 0)
        return true;
    uint64_t since_ns =
        (process->flags & EW_P_SEEN) != 0 ? process->watched_ns : sampler->config.epoch_ns;
    return reading->start_ns != 0 && reading->start_ns >= since_ns;
}

/* The thread's CPU time at t_ns, interpolated linearly over the run. */
static uint64_t run_at(const struct ew_reading *reading, uint64_t t_ns)
{
    uint64_t from_ns = reading->ran_from_ns;
    if (t_ns <= from_ns)
        return reading->ran_from_cpu_ns;
    if (t_ns >= reading->t_ns)
        return reading->counter[EW_C_cpu_ns];
    uint64_t run_ns = reading->counter[EW_C_cpu_ns] - reading->ran_from_cpu_ns;
    return reading->ran_from_cpu_ns +
           ew_distribute_scale(run_ns, t_ns - from_ns, reading->t_ns - from_ns);
}

/* The baseline of a thread on a CPU is as old as the kernel's last update of its counters. The end
 * of that run shows how much was missing. */
static void correct_baseline(struct ew_thread *thread, const struct ew_reading *reading)
{
    thread->flags &= ~(uint32_t)EW_T_BASED;
    uint64_t from_ns = reading->ran_from_ns;
    uint64_t cpu_ns = reading->counter[EW_C_cpu_ns];
    if (!ew_distribute_ran(reading) ||
        (reading->counter_has & thread->last_has & EW_HAS_C(cpu_ns)) == 0 ||
        from_ns >= thread->credited_ns || from_ns >= reading->t_ns ||
        cpu_ns < reading->ran_from_cpu_ns ||
        !ew_distribute_fits(cpu_ns - reading->ran_from_cpu_ns, reading->t_ns - from_ns))
        return;
    uint64_t then_ns = run_at(reading, thread->credited_ns);
    if (then_ns > thread->last[EW_C_cpu_ns])
        thread->last[EW_C_cpu_ns] = then_ns;
}

/* Sets the values from which the first reading of a thread is counted. */
static void set_baseline(const struct ew_sampler *sampler, const struct ew_process *process,
                         struct ew_thread *thread, const struct ew_reading *reading)
{
    bool cpu_known = (reading->counter_has & EW_HAS_C(cpu_ns)) != 0;
    bool from_start = monitored_from_start(sampler, process, reading);
    /* Evicted threads also return with an OPEN; one that never ran was never evicted. */
    bool never_ran = cpu_known && reading->counter[EW_C_cpu_ns] == 0;
    if (from_start && (reading->kind != EW_READING_OPEN || never_ran)) {
        thread->flags |= EW_T_WHOLE;
        return;
    }
    for (uint32_t i = 0; i < EW_COUNTER_COUNT; i++)
        thread->last[i] = (reading->counter_has >> i & 1) != 0 ? reading->counter[i] : 0;
    thread->last_has = reading->counter_has;
    thread->flags |= EW_T_BASED;
    if (!ew_distribute_ran(reading) || !cpu_known || (process->flags & EW_P_REBASE) != 0)
        return;
    /* On the CPU when monitoring started: its run is known, and the part since then counts. */
    uint64_t since_ns =
        (process->flags & EW_P_SEEN) != 0 ? process->watched_ns : sampler->config.epoch_ns;
    uint64_t cpu_ns = reading->counter[EW_C_cpu_ns];
    uint64_t from_ns = reading->ran_from_ns;
    if (reading->t_ns <= from_ns || since_ns >= reading->t_ns || cpu_ns < reading->ran_from_cpu_ns)
        return;
    if (!ew_distribute_fits(cpu_ns - reading->ran_from_cpu_ns, reading->t_ns - from_ns))
        return; /* impossible: a switch was missed */
    thread->last[EW_C_cpu_ns] = run_at(reading, since_ns);
    thread->credited_ns = since_ns > from_ns ? since_ns : from_ns;
}

static void take_gauges(struct ew_sampler *sampler, struct ew_process *process,
                        struct ew_thread *thread, const struct ew_reading *reading)
{
    uint32_t of_thread = EW_HAS_G(priority) | EW_HAS_G(affinity);
    uint32_t has = reading->gauge_has;
    if (has == 0)
        return;
    /* Noted at a switch: there are many between two cuts, each valid for another interval. */
    if (has == EW_HAS_G(rss_bytes) && reading->kind != EW_READING_AT) {
        ew_pending_rss_read(sampler, process, reading->t_ns, reading->gauge[EW_G_rss_bytes]);
        return;
    }
    if (thread != NULL && sampler->config.threads && (has & of_thread) != 0) {
        thread->priority = (int32_t)(int64_t)reading->gauge[EW_G_priority];
        thread->affinity = reading->gauge[EW_G_affinity];
        thread->gauge_has = has & of_thread;
        thread->gauge_ns = reading->t_ns;
    }
    /* The process's values are those of its leader. */
    if (thread != NULL && thread->tid != process->pid)
        has &= ~(of_thread | EW_HAS_G(io_priority));
    ew_gauges_take(sampler, process, has, reading->gauge, reading->t_ns);
}

/* Called once per reading, after its counts are attributed. */
static void finish_reading(struct ew_sampler *sampler, struct ew_process *process,
                           const struct ew_reading *reading, bool any, bool attributed)
{
    if (any || reading->kind == EW_READING_OPEN) {
        /* After an OPEN the thread runs. */
        uint64_t until_ns = reading->t_ns + (reading->kind == EW_READING_OPEN ? 1 : 0);
        if (until_ns > process->active_ns)
            process->active_ns = until_ns;
    }
    if (any && ew_distribute_ran(reading) && reading->t_ns > process->exit_ns)
        process->exit_ns = reading->t_ns;
    if (reading->incomplete) {
        process->flags |= EW_P_LOSSY;
        if (!attributed)
            process->flags |= EW_P_MARK;
    }
    if (sampler->late) {
        sampler->late = false;
        sampler->counts.late++;
    }
}

/* The first reading of a process that had exited without any replaces the exit totals. */
static void mark_read(struct ew_process *process)
{
    if ((process->flags & EW_P_READ) != 0)
        return;
    process->flags |= EW_P_READ;
    if ((process->flags & EW_P_EXITING) == 0)
        return;
    struct ew_cell *final = ew_pending_newest(process);
    if (final == NULL || (final->flags & EW_CELL_TENTATIVE) == 0)
        return;
    final->flags &= ~(uint32_t)EW_CELL_TENTATIVE;
    final->has = 0;
    for (uint32_t i = 0; i < EW_COUNTER_COUNT; i++)
        final->counter[i] = 0;
}

static void process_reading(struct ew_sampler *sampler, const struct ew_reading *reading)
{
    struct ew_process *process = ew_lifecycle_of_reading(sampler, reading);
    if (process == NULL)
        return;
    if (reading->counter_has != 0)
        mark_read(process);
    uint32_t based = (process->flags & EW_P_STARTED) != 0 ? EW_ALL_COUNTERS : process->total_has;
    struct ew_delta delta;
    ew_distribute_measure(process->value, based & ~process->exit_has, reading, &delta);
    process->own_has |= reading->counter_has;
    bool attributed = delta.any && ew_distribute_process(sampler, process, reading, &delta);
    for (uint32_t i = 0; i < EW_COUNTER_COUNT; i++) {
        bool first = (reading->counter_has & ~(based | process->exit_has)) >> i & 1;
        if (first)
            process->value[i] = reading->counter[i];
        else if (attributed)
            process->value[i] += delta.count[i];
    }
    process->total_has |= reading->counter_has;
    process->round_has = delta.has;
    take_gauges(sampler, process, NULL, reading);
    finish_reading(sampler, process, reading, delta.any, attributed);
}

/* Creates the entry of a thread at its first reading. A thread that has already ended gets no
 * entry, unless its cells need one. */
static struct ew_thread *first_reading(struct ew_sampler *sampler, const struct ew_reading *reading,
                                       struct ew_thread *scratch)
{
    struct ew_process *process = ew_lifecycle_of_reading(sampler, reading);
    if (process == NULL)
        return NULL;
    struct ew_thread *thread = scratch;
    if (reading->kind == EW_READING_FINAL && !sampler->config.threads) {
        *scratch = (struct ew_thread){.tid = reading->tid, .process = process};
    } else {
        int r = ew_ledger_add_thread(&sampler->ledger, process, reading->tid, reading->start_ns,
                                     sampler->cuts, sampler->first, &thread);
        if (r < 0) {
            process->flags |= EW_P_MARK | EW_P_LOSSY | EW_P_REBASE;
            ew_lifecycle_refuse(sampler, r, reading->t_ns);
            return NULL;
        }
    }
    set_baseline(sampler, process, thread, reading);
    return thread;
}

/* Notes the time up to which the thread is accounted. */
static void note_position(struct ew_sampler *sampler, struct ew_thread *thread,
                          const struct ew_reading *reading)
{
    if (reading->kind != EW_READING_AT) {
        uint64_t index = ew_pending_index(sampler, reading->t_ns);
        if ((thread->flags & EW_T_OPEN) == 0 || index > thread->open_index)
            thread->open_index = index;
        thread->flags |= EW_T_OPEN;
    }
    if ((reading->counter_has & EW_HAS_C(cpu_ns)) != 0 && reading->t_ns > thread->credited_ns)
        thread->credited_ns = reading->t_ns;
}

static void thread_reading(struct ew_sampler *sampler, const struct ew_reading *reading)
{
    struct ew_thread scratch;
    struct ew_thread *thread =
        ew_ledger_find_thread(&sampler->ledger, reading->pid, reading->tid, reading->start_ns);
    if (thread != NULL && reading->base_line)
        return;
    if (thread != NULL && (thread->flags & EW_T_BASED) != 0)
        correct_baseline(thread, reading);
    if (thread == NULL)
        thread = first_reading(sampler, reading, &scratch);
    if (thread == NULL)
        return;
    struct ew_process *process = thread->process;
    if (reading->counter_has != 0)
        mark_read(process);
    if (thread->start_ns == 0)
        thread->start_ns = reading->start_ns;
    thread->active_cut = sampler->cuts;

    struct ew_delta delta;
    uint32_t based = (thread->flags & EW_T_WHOLE) != 0 ? EW_ALL_COUNTERS : thread->last_has;
    ew_distribute_measure(thread->last, based, reading, &delta);
    bool any = delta.any;
    bool attributed = any && ew_distribute_thread(sampler, thread, reading, &delta);
    bool common = delta.has >> EW_COUNTER_BASE_COUNT == 0;
    if (attributed && delta.plain && common)
        memcpy(thread->last, reading->counter, EW_COUNTER_BASE_COUNT * sizeof thread->last[0]);
    else if (attributed)
        ew_distribute_add(thread->last, &delta, delta.has);
    uint32_t first = reading->counter_has & ~based;
    for (; first != 0; first &= first - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(first);
        thread->last[i] = reading->counter[i];
    }
    thread->last_has |= reading->counter_has;
    note_position(sampler, thread, reading);
    if (reading->thread_name != NULL && sampler->config.threads &&
        ew_ledger_set_text(&sampler->ledger, &thread->name, reading->thread_name) < 0)
        sampler->failure = ETWATCH_ENOMEM;
    take_gauges(sampler, process, thread, reading);
    finish_reading(sampler, process, reading, any, attributed);
    if (reading->kind != EW_READING_FINAL)
        return;
    if (thread != &scratch) {
        ew_ledger_retire_thread(&sampler->ledger, thread);
        if (thread->cells == NULL)
            ew_ledger_free_thread(&sampler->ledger, thread);
    }
    /* The process had exited before it was monitored, and this was its last switch: no exit will
     * follow. */
    if ((process->flags & (EW_P_UNKNOWN | EW_P_EXITING)) == EW_P_UNKNOWN &&
        process->thread_count == 0 && reading->tid == reading->pid)
        ew_lifecycle_end(sampler, process, reading->t_ns, EW_P_REPLACED);
}

void ew_reading_take(struct ew_sampler *sampler, const struct ew_reading *reading)
{
    sampler->counts.readings++;
    sampler->known_counters |= reading->counter_has;
    if (reading->t_ns > sampler->latest_ns)
        sampler->latest_ns = reading->t_ns;
    if (reading->tid == 0)
        process_reading(sampler, reading);
    else
        thread_reading(sampler, reading);
}
