/* SPDX-License-Identifier: MIT */
/*
 * From absolute readings to counts per interval.
 *
 * A thread keeps the values it is accounted for (`last`), and the sum of all counts placed is
 * always last minus its baseline: `last` only rises, by exactly what was placed. So a value that
 * falls back (time stolen by a hypervisor made an extrapolation too large; a user/kernel split was
 * rounded) counts nothing until it has caught up, and a count that finds no memory is not lost: the
 * next reading brings it again.
 */
#include <string.h>

#include "sampler/internal.h"

/* Watching saw all of its life: its counters began at 0 under our eyes. */
static bool watched_from_birth(const struct ew_sampler *sampler, const struct ew_process *process,
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

/* What the CPU time of the thread was at t_ns, if the run was even. */
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

/* A baseline of a thread that was on the CPU is as old as what the kernel had added up by then. The
 * end of that run tells how much was missing. */
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

/* What the first reading of a thread is counted from. */
static void set_baseline(const struct ew_sampler *sampler, const struct ew_process *process,
                         struct ew_thread *thread, const struct ew_reading *reading)
{
    bool cpu_known = (reading->counter_has & EW_HAS_C(cpu_ns)) != 0;
    bool newborn = watched_from_birth(sampler, process, reading);
    /* Evicted threads come back with an OPEN, too; one that never ran was never evicted. */
    bool never_ran = cpu_known && reading->counter[EW_C_cpu_ns] == 0;
    if (newborn && (reading->kind != EW_READING_OPEN || never_ran)) {
        thread->flags |= EW_T_WHOLE;
        return;
    }
    for (uint32_t i = 0; i < EW_COUNTER_COUNT; i++)
        thread->last[i] = (reading->counter_has >> i & 1) != 0 ? reading->counter[i] : 0;
    thread->last_has = reading->counter_has;
    thread->flags |= EW_T_BASED;
    if (!ew_distribute_ran(reading) || !cpu_known || (process->flags & EW_P_REBASE) != 0)
        return;
    /* On the CPU when watching began: its run is known, and the part since then counts. */
    uint64_t since_ns =
        (process->flags & EW_P_SEEN) != 0 ? process->watched_ns : sampler->config.epoch_ns;
    uint64_t cpu_ns = reading->counter[EW_C_cpu_ns];
    uint64_t from_ns = reading->ran_from_ns;
    if (reading->t_ns <= from_ns || since_ns >= reading->t_ns || cpu_ns < reading->ran_from_cpu_ns)
        return;
    if (!ew_distribute_fits(cpu_ns - reading->ran_from_cpu_ns, reading->t_ns - from_ns))
        return; /* that cannot be: a switch was missed */
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
    /* Noted at a switch: many come between two cuts, each true for another interval. */
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
    /* The process's own are its leader's. */
    if (thread != NULL && thread->tid != process->pid)
        has &= ~(of_thread | EW_HAS_G(io_priority));
    ew_gauges_take(sampler, process, has, reading->gauge, reading->t_ns);
}

/* Once per reading, after its counts are placed. */
static void settle(struct ew_sampler *sampler, struct ew_process *process,
                   const struct ew_reading *reading, bool any, bool placed)
{
    if (any || reading->kind == EW_READING_OPEN) {
        /* An OPEN tells that it runs from now on. */
        uint64_t until_ns = reading->t_ns + (reading->kind == EW_READING_OPEN ? 1 : 0);
        if (until_ns > process->active_ns)
            process->active_ns = until_ns;
    }
    if (any && ew_distribute_ran(reading) && reading->t_ns > process->exit_ns)
        process->exit_ns = reading->t_ns;
    if (reading->incomplete) {
        process->flags |= EW_P_LOSSY;
        if (!placed)
            process->flags |= EW_P_MARK;
    }
    if (sampler->late) {
        sampler->late = false;
        sampler->counts.late++;
    }
}

/* The first reading of a process that had ended without any knows better than its exit totals. */
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
    bool placed = delta.any && ew_distribute_process(sampler, process, reading, &delta);
    for (uint32_t i = 0; i < EW_COUNTER_COUNT; i++) {
        bool first = (reading->counter_has & ~(based | process->exit_has)) >> i & 1;
        if (first)
            process->value[i] = reading->counter[i];
        else if (placed)
            process->value[i] += delta.count[i];
    }
    process->total_has |= reading->counter_has;
    process->round_has = delta.has;
    take_gauges(sampler, process, NULL, reading);
    settle(sampler, process, reading, delta.any, placed);
}

/* The entry of a thread heard of for the first time. A thread that is over at once gets none,
 * unless its cells need one. */
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

/* Where the thread is now in time: what comes next is counted from here on. */
static void note_place(struct ew_sampler *sampler, struct ew_thread *thread,
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
    bool placed = any && ew_distribute_thread(sampler, thread, reading, &delta);
    bool common = delta.has >> EW_COUNTER_BASE_COUNT == 0;
    if (placed && delta.plain && common)
        memcpy(thread->last, reading->counter, EW_COUNTER_BASE_COUNT * sizeof thread->last[0]);
    else if (placed)
        ew_distribute_add(thread->last, &delta, delta.has);
    uint32_t first = reading->counter_has & ~based;
    for (; first != 0; first &= first - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(first);
        thread->last[i] = reading->counter[i];
    }
    thread->last_has |= reading->counter_has;
    note_place(sampler, thread, reading);
    if (reading->thread_name != NULL && sampler->config.threads &&
        ew_ledger_set_text(&sampler->ledger, &thread->name, reading->thread_name) < 0)
        sampler->failure = ETWATCH_ENOMEM;
    take_gauges(sampler, process, thread, reading);
    settle(sampler, process, reading, any, placed);
    if (reading->kind != EW_READING_FINAL)
        return;
    if (thread != &scratch) {
        ew_ledger_retire_thread(&sampler->ledger, thread);
        if (thread->cells == NULL)
            ew_ledger_free_thread(&sampler->ledger, thread);
    }
    /* It had ended before it was watched, and this was its last switch: no exit will come. */
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
