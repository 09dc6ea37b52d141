/* SPDX-License-Identifier: MIT */
/*
 * Distributes counts over intervals. Invariant: the attributed amount equals the measured amount,
 * to the nanosecond; if memory is short, the caller gets the amount that was attributed.
 *
 * CPU time of a run is split where the run crosses an interval end; other CPU time belongs to the
 * open interval. A thread does not switch during a run: a switch belongs to the end of the run, or
 * to the runs before it. What else is counted in a run of several intervals has no known time: it
 * is reported in the largest part and unknown in the others. A source may have missed a switch.
 * Then an interval may have to take more CPU time than it is long, which is impossible; the time is
 * instead laid out from the point up to which the thread was last accounted.
 */
#include "sampler/internal.h"

#define CLOCK_SLACK_NS 50000u /* wall clock and CPU clock never agree exactly */

#if defined(__SIZEOF_INT128__)
__extension__ typedef unsigned __int128 wide;

static uint64_t scale_wide(uint64_t total, uint64_t part, uint64_t whole)
{
    return (uint64_t)(((wide)total * part + whole / 2) / whole);
}
#else
/* Processors of 32 bits: the product by halves, the quotient bit by bit. */
static uint64_t scale_wide(uint64_t total, uint64_t part, uint64_t whole)
{
    uint64_t t0 = (uint32_t)total, t1 = total >> 32, p0 = (uint32_t)part, p1 = part >> 32;
    uint64_t low = t0 * p0, middle = t1 * p0 + (low >> 32), other = t0 * p1 + (uint32_t)middle;
    uint64_t high = t1 * p1 + (middle >> 32) + (other >> 32), quotient = 0;
    low = other << 32 | (uint32_t)low;
    high += low + whole / 2 < low;
    low += whole / 2;
    high %= whole;
    for (int bit = 63; bit >= 0; bit--) {
        bool carry = high >> 63 != 0;
        high = high << 1 | (low >> bit & 1);
        quotient <<= 1;
        if (carry || high >= whole) {
            high -= whole;
            quotient |= 1;
        }
    }
    return quotient;
}
#endif

uint64_t ew_distribute_scale(uint64_t total, uint64_t part, uint64_t whole)
{
    if (total == whole)
        return part;
    if ((total | part | whole) >> 32 == 0)
        return (total * part + whole / 2) / whole;
    return scale_wide(total, part, whole);
}

bool ew_distribute_fits(uint64_t cpu_ns, uint64_t wall_ns)
{
    return cpu_ns <= wall_ns + wall_ns / 16 + CLOCK_SLACK_NS;
}

/* Divides a total in proportion to weights: each share is within 1 of the exact one, and the shares
 * add up to the total, because each is the difference of two rounded running sums. */
struct dealer {
    uint64_t total, dealt;
    uint64_t weight, weight_dealt;
};

static uint64_t deal(struct dealer *dealer, uint64_t weight)
{
    dealer->weight_dealt += weight;
    uint64_t up_to = dealer->weight == 0
                         ? dealer->total
                         : ew_distribute_scale(dealer->total, dealer->weight_dealt, dealer->weight);
    uint64_t share = up_to - dealer->dealt;
    dealer->dealt = up_to;
    return share;
}

/* --------------------------------------------------------------------- measuring */

static bool any_of(const struct ew_delta *delta)
{
    uint64_t any = 0;
    for (uint32_t i = 0; i < EW_COUNTER_COUNT; i++)
        any |= delta->count[i];
    return any != 0;
}

/* The split into user and kernel time is a sampled share of the exact sum and may go backwards; the
 * counted parts always add up to the sum. */
static void split_cpu(struct ew_delta *delta)
{
    if ((delta->has & EW_CPU_COUNTERS) != EW_CPU_COUNTERS)
        return;
    uint64_t cpu_ns = delta->count[EW_C_cpu_ns];
    uint64_t kernel_ns = delta->count[EW_C_cpu_kernel_ns];
    if (kernel_ns + delta->count[EW_C_cpu_user_ns] == cpu_ns)
        return;
    kernel_ns = kernel_ns < cpu_ns ? kernel_ns : cpu_ns;
    delta->count[EW_C_cpu_kernel_ns] = kernel_ns;
    delta->count[EW_C_cpu_user_ns] = cpu_ns - kernel_ns;
    delta->plain = false;
    delta->any = any_of(delta);
}

void ew_distribute_measure(const uint64_t *restrict last, uint32_t last_has,
                           const struct ew_reading *restrict reading,
                           struct ew_delta *restrict ret_delta)
{
    uint64_t any = 0, unknown = 0;
    uint32_t has = ret_delta->has = reading->counter_has & last_has;
    for (uint32_t i = 0; i < EW_COUNTER_BASE_COUNT; i++) {
        ret_delta->count[i] = reading->counter[i] - last[i];
        any |= ret_delta->count[i];
        unknown |= ret_delta->count[i] & ((uint64_t)(has >> i & 1) - 1);
    }
    for (uint32_t i = EW_COUNTER_BASE_COUNT; i < EW_COUNTER_COUNT; i++)
        ret_delta->count[i] = 0;
    for (uint32_t more = has >> EW_COUNTER_BASE_COUNT; more != 0; more &= more - 1) {
        uint32_t i = EW_COUNTER_BASE_COUNT + (uint32_t)__builtin_ctz(more);
        ret_delta->count[i] = reading->counter[i] - last[i];
        any |= ret_delta->count[i];
    }
    ret_delta->any = any != 0;
    ret_delta->plain = unknown == 0 && any >> 63 == 0;
    if (!ret_delta->plain) {
        for (uint32_t i = 0; i < EW_COUNTER_COUNT; i++) {
            bool counted = (ret_delta->has >> i & 1) != 0 && reading->counter[i] > last[i];
            ret_delta->count[i] = counted ? reading->counter[i] - last[i] : 0;
        }
        ret_delta->any = any_of(ret_delta);
    }
    split_cpu(ret_delta);
}

/* ------------------------------------------------------------------------ adding */

void ew_distribute_add(uint64_t *restrict sums, const struct ew_delta *restrict delta,
                       uint32_t wanted)
{
    if ((delta->has & ~wanted) == 0) {
        for (uint32_t i = 0; i < EW_COUNTER_BASE_COUNT; i++)
            sums[i] += delta->count[i];
    } else {
        for (uint32_t i = 0; i < EW_COUNTER_BASE_COUNT; i++)
            sums[i] += delta->count[i] & (0 - (uint64_t)(wanted >> i & 1));
    }
    uint32_t more = (delta->has & wanted) >> EW_COUNTER_BASE_COUNT;
    for (; more != 0; more &= more - 1) {
        uint32_t i = EW_COUNTER_BASE_COUNT + (uint32_t)__builtin_ctz(more);
        sums[i] += delta->count[i];
    }
}

static void add_to_total(struct ew_process *process, const struct ew_delta *delta, uint32_t mask)
{
    ew_distribute_add(process->value, delta, mask & ~process->exit_has);
    if ((process->flags & EW_P_STARTED) != 0)
        process->total_has |= delta->has & mask;
}

/* Adds the counts in `has` to the cell and, if it is a thread's cell, to that of the process. */
static void add_to_cell(struct ew_cell *cell, const struct ew_delta *delta, uint32_t has,
                        uint32_t summed_mask, uint32_t flags)
{
    if (cell->parent != NULL) {
        ew_distribute_add(cell->counter, delta, has);
        cell->has |= has;
        cell->flags |= flags;
        cell = cell->parent;
    }
    ew_distribute_add(cell->counter, delta, has & summed_mask);
    cell->has |= has & summed_mask;
    cell->flags |= flags;
}

static uint32_t cell_flags(const struct ew_reading *reading)
{
    return reading->incomplete ? EW_CELL_INCOMPLETE : 0;
}

bool ew_distribute_process(struct ew_sampler *sampler, struct ew_process *process,
                           const struct ew_reading *reading, const struct ew_delta *delta)
{
    /* The best estimate of when the activity happened is the process's newest cell. */
    uint64_t index = ew_pending_index(sampler, reading->t_ns);
    struct ew_cell *newest = ew_pending_newest(process);
    if (newest != NULL && newest->index < index)
        index = newest->index;
    struct ew_cell *cell = ew_pending_cell(sampler, process, NULL, index);
    if (cell == NULL)
        return false;
    add_to_cell(cell, delta, delta->has, ~0u, cell_flags(reading));
    return true;
}

/* -------------------------------------------------------------------------- runs */

/* A delta being distributed over several intervals. */
struct run {
    struct ew_process *process;
    struct ew_thread *thread;
    uint32_t mask, flags;
    uint32_t everywhere; /* known in each interval: CPU time, and counters without an increment */
    struct dealer user, kernel; /* distributed like the CPU time */
    struct ew_delta attributed;
    struct ew_cell *most; /* cell with the largest part so far */
    uint64_t most_cpu_ns;
};

static void attribute_part(struct ew_sampler *sampler, struct run *run, uint64_t index,
                           uint64_t cpu_ns)
{
    uint64_t user_ns = deal(&run->user, cpu_ns);
    uint64_t kernel_ns = deal(&run->kernel, cpu_ns);
    if (cpu_ns == 0 && user_ns == 0 && kernel_ns == 0)
        return;
    struct ew_cell *cell = ew_pending_cell(sampler, run->process, run->thread, index);
    if (cell == NULL)
        return;
    struct ew_delta part = {.has = run->everywhere};
    part.count[EW_C_cpu_ns] = cpu_ns;
    part.count[EW_C_cpu_user_ns] = user_ns;
    part.count[EW_C_cpu_kernel_ns] = kernel_ns;
    add_to_cell(cell, &part, part.has, run->mask, run->flags);
    run->attributed.count[EW_C_cpu_ns] += cpu_ns;
    run->attributed.count[EW_C_cpu_user_ns] += user_ns;
    run->attributed.count[EW_C_cpu_kernel_ns] += kernel_ns;
    if (run->most == NULL || cpu_ns > run->most_cpu_ns) {
        run->most = cell;
        run->most_cpu_ns = cpu_ns;
    }
}

/* Splits cpu_ns over [from_ns, to_ns] at each interval end. Intervals that are already delivered or
 * too far ahead are merged with the nearest one that is available. */
static void attribute_over(struct ew_sampler *sampler, struct run *run, uint64_t from_ns,
                           uint64_t to_ns, uint64_t cpu_ns)
{
    if (cpu_ns == 0)
        return;
    struct dealer by_time = {.total = cpu_ns, .weight = to_ns - from_ns};
    uint64_t index = ew_pending_index(sampler, from_ns);
    uint64_t last = ew_pending_index(sampler, to_ns);
    uint64_t limit = sampler->first + EW_RING_MAX - 1;
    uint64_t at_ns = from_ns;
    do {
        uint64_t reach = index < sampler->first ? sampler->first : index;
        uint64_t end_ns = to_ns;
        if (reach < last && reach < limit)
            end_ns = ew_ticks_end(&sampler->ticks, reach);
        attribute_part(sampler, run, index, deal(&by_time, end_ns - at_ns));
        at_ns = end_ns;
        index = reach + 1;
    } while (at_ns < to_ns);
}

/* Earliest time at which unaccounted CPU time may have been spent; 0: unknown. */
static uint64_t open_since(const struct ew_thread *thread)
{
    if (thread->credited_ns != 0)
        return thread->credited_ns;
    return (thread->flags & EW_T_WHOLE) != 0 ? thread->start_ns : 0;
}

/* The interval to which counts without a known time belong. */
static uint64_t open_index(struct ew_sampler *sampler, const struct ew_thread *thread,
                           uint64_t t_ns)
{
    return (thread->flags & EW_T_OPEN) != 0 ? thread->open_index : ew_pending_index(sampler, t_ns);
}

/* Whether the interval has room for cpu_ns between the last accounting and until_ns. */
static bool fits_open(const struct ew_sampler *sampler, const struct ew_thread *thread,
                      uint64_t index, uint64_t until_ns, uint64_t cpu_ns)
{
    uint64_t since_ns = open_since(thread);
    if (cpu_ns <= CLOCK_SLACK_NS || since_ns == 0)
        return true;
    uint64_t begin_ns = ew_ticks_start(&sampler->ticks, index);
    uint64_t end_ns = ew_ticks_end(&sampler->ticks, index);
    begin_ns = begin_ns > since_ns ? begin_ns : since_ns;
    end_ns = end_ns < until_ns ? end_ns : until_ns;
    return ew_distribute_fits(cpu_ns, end_ns > begin_ns ? end_ns - begin_ns : 0);
}

/* Distributes CPU time from before the run of the reading, if it has one. */
static void attribute_before(struct ew_sampler *sampler, struct run *run,
                             const struct ew_reading *reading, uint64_t until_ns, uint64_t cpu_ns)
{
    struct ew_thread *thread = run->thread;
    uint64_t index = open_index(sampler, thread, until_ns);
    if (fits_open(sampler, thread, index, until_ns, cpu_ns)) {
        attribute_part(sampler, run, index, cpu_ns);
        return;
    }
    uint64_t from_ns = open_since(thread);
    from_ns = from_ns < until_ns ? from_ns : until_ns;
    if (cpu_ns < until_ns - from_ns) {
        /* Either it started to run when it was last seen, or it has just left the CPU and ran until
         * now. */
        if (ew_distribute_ran(reading) && reading->ran_from_ns >= reading->t_ns)
            from_ns = until_ns - cpu_ns;
        else
            until_ns = from_ns + cpu_ns;
    }
    attribute_over(sampler, run, from_ns, until_ns, cpu_ns);
}

#define SWITCHES (EW_HAS_C(switches_voluntary) | EW_HAS_C(switches_involuntary))
/* Counters that do not change during a run: their time is known. */
#define BETWEEN_RUNS (SWITCHES | EW_HAS_C(runq_wait_ns))

/* The counter of the switch that ended the run; EW_COUNTER_COUNT: none did. The kernel may count a
 * thread that is woken by a signal while it goes to sleep as waiting though it stays runnable. */
static uint32_t last_switch(const struct ew_reading *reading, const struct ew_delta *delta)
{
    uint32_t counter = EW_C_switches_voluntary, other = EW_C_switches_involuntary;
    if (reading->left == EW_LEFT_NOT)
        return EW_COUNTER_COUNT;
    if (reading->left == EW_LEFT_PREEMPTED) {
        counter = EW_C_switches_involuntary;
        other = EW_C_switches_voluntary;
    }
    if (delta->count[counter] > 0)
        return counter;
    return delta->count[other] > 0 ? other : EW_COUNTER_COUNT;
}

/* Adds a count to the interval. */
static void attribute_count(struct ew_sampler *sampler, struct run *run, uint32_t counter,
                            uint64_t count, uint64_t index)
{
    if (count == 0)
        return;
    struct ew_cell *cell = ew_pending_cell(sampler, run->process, run->thread, index);
    if (cell == NULL)
        return;
    struct ew_delta part = {.has = run->everywhere};
    part.count[counter] = count;
    add_to_cell(cell, &part, part.has, run->mask, run->flags);
    run->attributed.count[counter] += count;
}

/* Adds the counters that do not change during a run to the intervals in which they changed. */
static void attribute_switches(struct ew_sampler *sampler, struct run *run,
                               const struct ew_reading *reading, const struct ew_delta *delta,
                               uint64_t open, uint64_t from_ns)
{
    static const uint32_t counters[] = {EW_C_switches_voluntary, EW_C_switches_involuntary};
    uint32_t last = last_switch(reading, delta);
    uint64_t end_ns = reading->t_ns > from_ns ? reading->t_ns - 1 : reading->t_ns;
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t at_end = counters[i] == last ? 1 : 0;
        attribute_count(sampler, run, counters[i], delta->count[counters[i]] - at_end, open);
        attribute_count(sampler, run, counters[i], at_end, ew_pending_index(sampler, end_ns));
    }
    /* A wait ends when the run begins. */
    attribute_count(sampler, run, EW_C_runq_wait_ns, delta->count[EW_C_runq_wait_ns],
                    ew_pending_index(sampler, from_ns));
}

/* Adds the other counters to the cell with the largest part of the CPU time. */
static void attribute_others(struct ew_sampler *sampler, struct run *run,
                             const struct ew_delta *delta, uint64_t open)
{
    struct ew_cell *most = run->most;
    if (most == NULL)
        most = ew_pending_cell(sampler, run->process, run->thread, open);
    if (most == NULL)
        return;
    uint32_t others = delta->has & ~run->everywhere;
    add_to_cell(most, delta, others, run->mask, run->flags);
    for (; others != 0; others &= others - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(others);
        run->attributed.count[i] = delta->count[i];
    }
}

/* The part of the delta spent in the run that ended with the reading: everything since its start or
 * since the last accounting, but no more than fits. */
static uint64_t run_part(const struct ew_thread *thread, const struct ew_reading *reading,
                         uint64_t cpu_ns, uint64_t *ret_from_ns)
{
    *ret_from_ns = reading->t_ns;
    if (!ew_distribute_ran(reading))
        return 0;
    uint64_t from_ns =
        reading->ran_from_ns > thread->credited_ns ? reading->ran_from_ns : thread->credited_ns;
    from_ns = from_ns < reading->t_ns ? from_ns : reading->t_ns;
    uint64_t last_ns = thread->last[EW_C_cpu_ns];
    uint64_t before_ns =
        reading->ran_from_cpu_ns > last_ns ? reading->ran_from_cpu_ns - last_ns : 0;
    uint64_t run_ns = before_ns < cpu_ns ? cpu_ns - before_ns : 0;
    if (!ew_distribute_fits(run_ns, reading->t_ns - from_ns))
        run_ns = reading->t_ns - from_ns;
    /* The thread had used more CPU time before the run than the reading says: the switch to it was
     * missed. It was switched in some time after from_ns and ran until now. */
    bool skipped = reading->ran_from_cpu_ns == 0 && last_ns > 0;
    if (skipped && run_ns < reading->t_ns - from_ns)
        from_ns = reading->t_ns - run_ns;
    *ret_from_ns = from_ns;
    return run_ns;
}

/* Whether the beginning of the run is known: no switch to the thread was missed. */
static bool run_known(const struct ew_thread *thread, const struct ew_reading *reading)
{
    bool skipped = reading->ran_from_cpu_ns == 0 && thread->last[EW_C_cpu_ns] > 0 &&
                   thread->credited_ns <= reading->ran_from_ns;
    return ew_distribute_ran(reading) && reading->ran_from_ns < reading->t_ns && !skipped;
}

static void attribute_run(struct ew_sampler *sampler, struct ew_thread *thread,
                          const struct ew_reading *reading, struct ew_delta *delta, uint32_t mask)
{
    uint64_t cpu_ns = delta->count[EW_C_cpu_ns];
    struct run run = {
        .process = thread->process,
        .thread = thread,
        .mask = mask,
        .flags = cell_flags(reading),
        .everywhere = delta->has & EW_CPU_COUNTERS,
        .user = {.total = delta->count[EW_C_cpu_user_ns], .weight = cpu_ns},
        .kernel = {.total = delta->count[EW_C_cpu_kernel_ns], .weight = cpu_ns},
    };
    uint32_t none = 0;
    for (uint32_t i = 0; i < EW_COUNTER_BASE_COUNT; i++)
        none |= (uint32_t)(delta->count[i] == 0) << i;
    for (uint32_t i = EW_COUNTER_BASE_COUNT; delta->has >> i != 0; i++)
        none |= (uint32_t)(delta->count[i] == 0) << i;
    bool ran = run_known(thread, reading);
    run.everywhere |= (none | (ran ? BETWEEN_RUNS : 0)) & delta->has;
    uint64_t from_ns;
    uint64_t run_ns = run_part(thread, reading, cpu_ns, &from_ns);
    uint64_t open = open_index(sampler, thread, from_ns);
    if (cpu_ns > run_ns || cpu_ns == 0)
        attribute_before(sampler, &run, reading, from_ns, cpu_ns - run_ns);
    attribute_over(sampler, &run, from_ns, reading->t_ns, run_ns);
    if (ran)
        attribute_switches(sampler, &run, reading, delta, open, from_ns);
    attribute_others(sampler, &run, delta, open);
    run.attributed.has = delta->has;
    add_to_total(thread->process, &run.attributed, mask);
    *delta = run.attributed;
}

/* ----------------------------------------------------------------------- threads */

/* Counters that are summed over threads; others are read per process. */
static uint32_t summed(const struct ew_sampler *sampler, const struct ew_process *process)
{
    return sampler->config.rounds ? 0 : ~process->own_has;
}

/* A wait for a CPU is counted when it ends, with the OPEN. If that is the only count, it happened
 * just now. */
static bool only_waited(const struct ew_reading *reading, const struct ew_delta *delta)
{
    if (reading->kind != EW_READING_OPEN || delta->count[EW_C_runq_wait_ns] == 0)
        return false;
    uint64_t others = 0;
    for (uint32_t i = 0; i < EW_COUNTER_BASE_COUNT; i++)
        others |= i == EW_C_runq_wait_ns ? 0 : delta->count[i];
    for (uint32_t i = EW_COUNTER_BASE_COUNT; delta->has >> i != 0; i++)
        others |= delta->count[i];
    return others == 0;
}

bool ew_distribute_thread(struct ew_sampler *sampler, struct ew_thread *thread,
                          const struct ew_reading *reading, struct ew_delta *delta)
{
    struct ew_process *process = thread->process;
    uint32_t mask = summed(sampler, process);
    uint64_t index = sampler->first;
    if (!sampler->config.rounds) {
        index = only_waited(reading, delta) ? ew_pending_index(sampler, reading->t_ns)
                                            : open_index(sampler, thread, reading->t_ns);
        bool cpu_known = (delta->has & EW_HAS_C(cpu_ns)) != 0;
        if (cpu_known &&
            (ew_distribute_ran(reading) ||
             !fits_open(sampler, thread, index, reading->t_ns, delta->count[EW_C_cpu_ns]))) {
            attribute_run(sampler, thread, reading, delta, mask);
            return true;
        }
    }
    struct ew_cell *cell = ew_pending_cell(sampler, process, thread, index);
    if (cell == NULL)
        return false;
    add_to_cell(cell, delta, delta->has, mask, cell_flags(reading));
    add_to_total(process, delta, mask);
    return true;
}
