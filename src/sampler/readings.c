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
#include "sampler/internal.h"

#include <string.h>

/* What happened since the last reading. */
struct delta {
    uint32_t has;
    bool any;   /* anything at all */
    bool plain; /* of all counters, none of which fell back */
    uint64_t count[EW_COUNTER_COUNT];
};

__extension__ typedef unsigned __int128 wide;

/* round(total * part / whole) */
static uint64_t scale(uint64_t total, uint64_t part, uint64_t whole)
{
    if (total == whole)
        return part;
    if ((total | part | whole) >> 32 == 0)
        return (total * part + whole / 2) / whole;
    return (uint64_t)(((wide)total * part + whole / 2) / whole);
}

/* Deals out a total in proportion to weights: each share is within 1 of the exact one, and together
 * they are the total, because each is the difference of two rounded running sums. */
struct dealer {
    uint64_t total, dealt;
    uint64_t weight, weight_dealt;
};

static uint64_t deal(struct dealer *dealer, uint64_t weight)
{
    dealer->weight_dealt += weight;
    uint64_t up_to = dealer->weight == 0
                         ? dealer->total
                         : scale(dealer->total, dealer->weight_dealt, dealer->weight);
    uint64_t share = up_to - dealer->dealt;
    dealer->dealt = up_to;
    return share;
}

static void measure(const uint64_t *restrict last, uint32_t last_has,
                    const struct ew_reading *restrict reading, struct delta *restrict ret_delta)
{
    uint64_t any = 0;
    ret_delta->has = reading->counter_has & last_has;
    for (uint32_t i = 0; i < EW_COUNTER_COUNT; i++) {
        ret_delta->count[i] = reading->counter[i] - last[i];
        any |= ret_delta->count[i];
    }
    ret_delta->plain = ret_delta->has == EW_ALL_COUNTERS && any >> 63 == 0;
    if (!ret_delta->plain) {
        any = 0;
        for (uint32_t i = 0; i < EW_COUNTER_COUNT; i++) {
            bool counted = (ret_delta->has >> i & 1) != 0 && reading->counter[i] > last[i];
            ret_delta->count[i] = counted ? reading->counter[i] - last[i] : 0;
            any |= ret_delta->count[i];
        }
    }
    ret_delta->any = any != 0;
}

/* Counters that the threads of the process add up to; others are read of the process itself. */
static uint32_t summed(const struct ew_sampler *sampler, const struct ew_process *process)
{
    return sampler->config.rounds ? 0 : ~process->own_has;
}

/* Counts outside delta->has are 0, so there is nothing to mask if all of it is wanted. */
static void add(uint64_t *restrict sums, const struct delta *restrict delta, uint32_t wanted)
{
    if ((delta->has & ~wanted) == 0) {
        for (uint32_t i = 0; i < EW_COUNTER_COUNT; i++)
            sums[i] += delta->count[i];
        return;
    }
    for (uint32_t i = 0; i < EW_COUNTER_COUNT; i++)
        sums[i] += delta->count[i] & (0 - (uint64_t)(wanted >> i & 1));
}

static void add_to_total(struct ew_process *process, const struct delta *delta, uint32_t mask)
{
    add(process->value, delta, mask & ~process->exit_has);
    if ((process->flags & EW_P_STARTED) != 0)
        process->total_has |= delta->has & mask;
}

/* Adds the counts named by `has` to the cell and, if it is a thread's, to the process's above. */
static void add_to_cell(struct ew_cell *cell, const struct delta *delta, uint32_t has,
                        uint32_t summed_mask, uint32_t flags)
{
    if (cell->parent != NULL) {
        add(cell->counter, delta, has);
        cell->has |= has;
        cell->flags |= flags;
        cell = cell->parent;
    }
    add(cell->counter, delta, has & summed_mask);
    cell->has |= has & summed_mask;
    cell->flags |= flags;
}

static uint32_t cell_flags(const struct ew_reading *reading)
{
    return reading->incomplete ? EW_CELL_INCOMPLETE : 0;
}

/* All of it into one interval. False without memory: nothing is counted. */
static bool place(struct ew_sampler *sampler, struct ew_process *process, struct ew_thread *thread,
                  uint64_t index, const struct delta *delta, uint32_t mask, uint32_t flags)
{
    struct ew_cell *cell = ew_pending_cell(sampler, process, thread, index);
    if (cell == NULL)
        return false;
    add_to_cell(cell, delta, delta->has, mask, flags);
    add_to_total(process, delta, mask);
    return true;
}

/* A run on its way into the intervals. */
struct run {
    struct ew_process *process;
    struct ew_thread *thread;
    uint32_t mask, flags;
    uint32_t everywhere;        /* known in each interval: CPU time, and what was not counted */
    struct dealer user, kernel; /* follow the CPU time */
    struct delta placed;
    struct ew_cell *most; /* got the largest part so far */
    uint64_t most_cpu_ns;
};

static void place_part(struct ew_sampler *sampler, struct run *run, uint64_t index, uint64_t cpu_ns)
{
    uint64_t user_ns = deal(&run->user, cpu_ns);
    uint64_t kernel_ns = deal(&run->kernel, cpu_ns);
    if (cpu_ns == 0 && user_ns == 0 && kernel_ns == 0)
        return;
    struct ew_cell *cell = ew_pending_cell(sampler, run->process, run->thread, index);
    if (cell == NULL)
        return;
    struct delta part = {.has = run->everywhere};
    part.count[EW_C_cpu_ns] = cpu_ns;
    part.count[EW_C_cpu_user_ns] = user_ns;
    part.count[EW_C_cpu_kernel_ns] = kernel_ns;
    add_to_cell(cell, &part, part.has, run->mask, run->flags);
    run->placed.count[EW_C_cpu_ns] += cpu_ns;
    run->placed.count[EW_C_cpu_user_ns] += user_ns;
    run->placed.count[EW_C_cpu_kernel_ns] += kernel_ns;
    if (run->most == NULL || cpu_ns > run->most_cpu_ns) {
        run->most = cell;
        run->most_cpu_ns = cpu_ns;
    }
}

/* Splits cpu_ns over [from_ns, to_ns] at each interval end. Intervals that are delivered already or
 * too far ahead are one piece with the nearest that can take it. */
static void place_over(struct ew_sampler *sampler, struct run *run, uint64_t from_ns,
                       uint64_t to_ns, uint64_t cpu_ns)
{
    struct dealer by_time = {.total = cpu_ns, .weight = to_ns - from_ns};
    uint64_t index = ew_pending_index(sampler, from_ns);
    uint64_t last = ew_pending_index(sampler, to_ns);
    uint64_t limit = sampler->first + EW_RING_MAX - 1;
    uint64_t at_ns = from_ns;
    while (at_ns < to_ns) {
        uint64_t reach = index < sampler->first ? sampler->first : index;
        uint64_t end_ns = to_ns;
        if (reach < last && reach < limit)
            end_ns = ew_ticks_end(&sampler->ticks, reach);
        place_part(sampler, run, index, deal(&by_time, end_ns - at_ns));
        at_ns = end_ns;
        index = reach + 1;
    }
}

/* The delta of a reading that ends a run: CPU time before the run belongs to the open interval,
 * that of the run to the intervals it crossed. Returns what could be placed. */
static void place_run(struct ew_sampler *sampler, struct ew_process *process,
                      struct ew_thread *thread, const struct ew_reading *reading,
                      struct delta *delta, uint32_t mask)
{
    uint64_t cpu_ns = delta->count[EW_C_cpu_ns];
    uint64_t last_ns = thread->last[EW_C_cpu_ns];
    uint64_t before_ns =
        reading->ran_from_cpu_ns > last_ns ? reading->ran_from_cpu_ns - last_ns : 0;
    before_ns = before_ns < cpu_ns ? before_ns : cpu_ns;
    uint64_t from_ns =
        reading->ran_from_ns > thread->credited_ns ? reading->ran_from_ns : thread->credited_ns;
    from_ns = from_ns < reading->t_ns ? from_ns : reading->t_ns;
    uint64_t index = ew_pending_index(sampler, from_ns);
    uint64_t open = (thread->flags & EW_T_OPEN) != 0 ? thread->open_index : index;
    struct run run = {
        .process = process,
        .thread = thread,
        .mask = mask,
        .flags = cell_flags(reading),
        .everywhere = delta->has & EW_CPU_COUNTERS,
        .user = {.total = delta->count[EW_C_cpu_user_ns], .weight = cpu_ns},
        .kernel = {.total = delta->count[EW_C_cpu_kernel_ns], .weight = cpu_ns},
    };
    for (uint32_t i = 0; i < EW_COUNTER_COUNT; i++)
        run.everywhere |= delta->count[i] == 0 ? delta->has & 1u << i : 0;
    if (before_ns > 0 || cpu_ns == 0)
        place_part(sampler, &run, open, before_ns);
    if (cpu_ns > before_ns && from_ns == reading->t_ns)
        place_part(sampler, &run, index, cpu_ns - before_ns);
    else if (cpu_ns > before_ns)
        place_over(sampler, &run, from_ns, reading->t_ns, cpu_ns - before_ns);

    struct ew_cell *most =
        run.most != NULL ? run.most : ew_pending_cell(sampler, process, thread, open);
    uint32_t others = delta->has & ~EW_CPU_COUNTERS;
    if (most != NULL) {
        add_to_cell(most, delta, others, mask, run.flags);
        for (uint32_t i = 0; i < EW_COUNTER_COUNT; i++) {
            if ((others >> i & 1) != 0)
                run.placed.count[i] = delta->count[i];
        }
    }
    run.placed.has = delta->has;
    add_to_total(process, &run.placed, mask);
    *delta = run.placed;
}

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
    bool ran = reading->kind == EW_READING_SPAN || reading->kind == EW_READING_FINAL;
    if (!ran || !cpu_known || (process->flags & EW_P_REBASE) != 0)
        return;
    /* On the CPU when watching began: its run is known, and the part since then counts. */
    uint64_t since_ns =
        (process->flags & EW_P_SEEN) != 0 ? process->watched_ns : sampler->config.epoch_ns;
    uint64_t cpu_ns = reading->counter[EW_C_cpu_ns];
    uint64_t from_ns = reading->ran_from_ns;
    if (reading->t_ns <= from_ns || since_ns >= reading->t_ns || cpu_ns < reading->ran_from_cpu_ns)
        return;
    uint64_t run_ns = cpu_ns - reading->ran_from_cpu_ns;
    uint64_t before_ns =
        since_ns > from_ns ? scale(run_ns, since_ns - from_ns, reading->t_ns - from_ns) : 0;
    thread->last[EW_C_cpu_ns] = reading->ran_from_cpu_ns + before_ns;
    thread->credited_ns = since_ns > from_ns ? since_ns : from_ns;
}

static void take_process_gauges(const struct ew_sampler *sampler, struct ew_process *process,
                                const struct ew_reading *reading, uint32_t has)
{
    for (uint32_t i = 0; i < EW_GAUGE_COUNT; i++) {
        if ((has >> i & 1) != 0 && reading->t_ns >= process->gauge_ns[i]) {
            process->gauge[i] = reading->gauge[i];
            process->gauge_ns[i] = reading->t_ns;
        }
    }
    process->gauge_has |= has;
    ew_pending_gauges_read(sampler, process, reading->t_ns);
}

static void take_gauges(struct ew_sampler *sampler, struct ew_process *process,
                        struct ew_thread *thread, const struct ew_reading *reading)
{
    uint32_t of_thread = EW_HAS_G(priority) | EW_HAS_G(affinity);
    uint32_t has = reading->gauge_has;
    if (has == 0)
        return;
    if (thread != NULL && sampler->config.threads && (has & of_thread) != 0) {
        thread->priority = (int32_t)(int64_t)reading->gauge[EW_G_priority];
        thread->affinity = reading->gauge[EW_G_affinity];
        thread->gauge_has = has & of_thread;
        thread->gauge_ns = reading->t_ns;
    }
    /* The process's own are its leader's. */
    if (thread != NULL && thread->tid != process->pid)
        has &= ~of_thread;
    take_process_gauges(sampler, process, reading, has);
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
    struct delta delta;
    measure(process->value, based & ~process->exit_has, reading, &delta);
    process->own_has |= reading->counter_has;
    bool placed = false;
    if (delta.any) {
        /* What the events of a process were, its last cell knows best. */
        uint64_t index = ew_pending_index(sampler, reading->t_ns);
        struct ew_cell *newest = ew_pending_newest(process);
        if (newest != NULL && newest->index < index)
            index = newest->index;
        struct ew_cell *cell = ew_pending_cell(sampler, process, NULL, index);
        if (cell != NULL) {
            add_to_cell(cell, &delta, delta.has, ~0u, cell_flags(reading));
            placed = true;
        }
    }
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

static bool place_thread(struct ew_sampler *sampler, struct ew_thread *thread,
                         const struct ew_reading *reading, struct delta *delta)
{
    struct ew_process *process = thread->process;
    uint32_t mask = summed(sampler, process);
    bool ran = reading->kind == EW_READING_SPAN || reading->kind == EW_READING_FINAL;
    if (ran && !sampler->config.rounds && (delta->has & EW_HAS_C(cpu_ns)) != 0) {
        place_run(sampler, process, thread, reading, delta, mask);
        return true;
    }
    uint64_t index = sampler->first;
    if (!sampler->config.rounds)
        index = (thread->flags & EW_T_OPEN) != 0 ? thread->open_index
                                                 : ew_pending_index(sampler, reading->t_ns);
    return place(sampler, process, thread, index, delta, mask, cell_flags(reading));
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
    /* At an OPEN it is not known how long it has not run. */
    if (reading->kind != EW_READING_OPEN && (reading->counter_has & EW_HAS_C(cpu_ns)) != 0 &&
        reading->t_ns > thread->credited_ns)
        thread->credited_ns = reading->t_ns;
}

static void thread_reading(struct ew_sampler *sampler, const struct ew_reading *reading)
{
    struct ew_thread scratch;
    struct ew_thread *thread =
        ew_ledger_find_thread(&sampler->ledger, reading->pid, reading->tid, reading->start_ns);
    if (thread != NULL && reading->base_line)
        return;
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

    struct delta delta;
    uint32_t based = (thread->flags & EW_T_WHOLE) != 0 ? EW_ALL_COUNTERS : thread->last_has;
    measure(thread->last, based, reading, &delta);
    bool any = delta.any;
    bool placed = any && place_thread(sampler, thread, reading, &delta);
    if (placed && delta.plain)
        memcpy(thread->last, reading->counter, sizeof thread->last);
    else if (placed)
        add(thread->last, &delta, delta.has);
    uint32_t first = reading->counter_has & ~based;
    for (uint32_t i = 0; first != 0 && i < EW_COUNTER_COUNT; i++) {
        if ((first >> i & 1) != 0)
            thread->last[i] = reading->counter[i];
    }
    thread->last_has |= reading->counter_has;
    note_place(sampler, thread, reading);
    if (reading->thread_name != NULL && sampler->config.threads &&
        ew_ledger_set_text(&sampler->ledger, &thread->name, reading->thread_name) < 0)
        sampler->failure = ETWATCH_ENOMEM;
    take_gauges(sampler, process, thread, reading);
    settle(sampler, process, reading, any, placed);
    if (reading->kind == EW_READING_FINAL && thread != &scratch) {
        ew_ledger_retire_thread(&sampler->ledger, thread);
        if (thread->cells == NULL)
            ew_ledger_free_thread(&sampler->ledger, thread);
    }
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
