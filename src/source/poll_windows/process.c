/* SPDX-License-Identifier: MIT */
/*
 * Owns the readings of one watched process and its threads. Invariant: a counter never decreases;
 * if a list shows less than before, the previous value is kept and the reading is marked
 * incomplete.
 *
 * A watched process is held open: Windows then keeps its times, its I/O and its exit status after
 * its end, and does not reuse its pid. So the totals of a process that was seen once are final,
 * even if it ended between two rounds.
 */
#include <string.h>

#include "base/alloc.h"
#include "source/poll_windows/poll.h"

enum { NS_PER_UNIT = 100 };

uint64_t ew_winpoll_raw_ns(const struct ew_winpoll *poll, uint64_t time)
{
    /* A process older than the raw clock, started early at boot, gets the clock's start; 0 would
     * mean unknown. */
    uint64_t zero = poll->system.raw_zero;
    return time > zero ? (time - zero) * NS_PER_UNIT : 1;
}

struct ew_poll_process *ew_winpoll_process_new(struct ew_winpoll *poll,
                                               const struct ew_listed_process *listed)
{
    struct ew_poll_process *process = ew_calloc(1, sizeof *process);
    if (!process)
        return NULL;
    process->pid = listed->pid;
    process->ppid = listed->ppid;
    process->session_id = listed->session_id;
    process->created = listed->created;
    process->start_ns = ew_winpoll_raw_ns(poll, listed->created);
    process->held = poll->system.hold(poll->system.ctx, listed->pid);
    process->faults = listed->faults;
    process->faults_hard = listed->faults_hard;
    process->figures.counter[EW_C_faults_major] = listed->faults_hard;
    process->figures.counter[EW_C_faults_minor] =
        listed->faults > listed->faults_hard ? listed->faults - listed->faults_hard : 0;
    ew_listed_name(listed, process->name, sizeof process->name);
    return process;
}

static void release_thread(struct ew_winpoll *poll, struct ew_winpoll_thread *thread)
{
    if (!thread->held)
        return;
    poll->system.release(poll->system.ctx, thread->held);
    poll->held_threads--;
    thread->held = NULL;
}

void ew_winpoll_process_free(struct ew_winpoll *poll, struct ew_poll_process *process)
{
    if (!process)
        return;
    if (process->held)
        poll->system.release(poll->system.ctx, process->held);
    for (uint32_t i = 0; i < process->thread_count; i++)
        release_thread(poll, &process->threads[i]);
    poll->base.thread_count -= process->thread_count;
    ew_free(process->threads);
    ew_free(process);
}

/* -------------------------------------------------------------------- figures */

static bool count(struct ew_poll_process *process, enum ew_counter which, uint64_t value)
{
    return ew_poll_count(&process->figures, which, value);
}

/* Adds an increase: the system's own counter has 32 bits. */
static bool add_to_counter(struct ew_poll_process *process, enum ew_counter which,
                           uint32_t increase)
{
    return count(process, which, process->figures.counter[which] + increase);
}

/* Stores the gauges in has; true if any of them is new. */
static bool gauges(struct ew_poll_process *process, uint32_t has,
                   const uint64_t gauge[EW_GAUGE_COUNT])
{
    bool new = (has & ~process->figures.gauge_has) != 0;
    for (uint32_t i = 0; i < EW_GAUGE_COUNT; i++) {
        if ((has >> i & 1) == 0)
            continue;
        new |= process->figures.gauge[i] != gauge[i];
        process->figures.gauge[i] = gauge[i];
    }
    process->figures.gauge_has |= has;
    return new;
}

static bool take_times(struct ew_poll_process *process, uint64_t user, uint64_t kernel)
{
    bool new = count(process, EW_C_cpu_user_ns, user * NS_PER_UNIT);
    new |= count(process, EW_C_cpu_kernel_ns, kernel * NS_PER_UNIT);
    new |= count(process, EW_C_cpu_ns, (user + kernel) * NS_PER_UNIT);
    return new;
}

/* Windows counts all faults, and those that waited for a disk. */
static bool take_faults(struct ew_poll_process *process, uint32_t faults, uint32_t hard)
{
    uint32_t increase = faults - process->faults, hard_increase = hard - process->faults_hard;
    process->faults = faults;
    process->faults_hard = hard;
    bool new = add_to_counter(process, EW_C_faults_major, hard_increase);
    new |= add_to_counter(process, EW_C_faults_minor,
                          increase > hard_increase ? increase - hard_increase : 0);
    return new;
}

bool ew_winpoll_process_read(struct ew_winpoll *poll, struct ew_poll_process *process,
                             const struct ew_listed_process *listed)
{
    process->figures.fell = false;
    bool new = take_times(process, listed->user, listed->kernel);
    if (poll->counts_cycles)
        new |= count(process, EW_C_cycles, listed->cycles);
    if (poll->counts_faults)
        new |= take_faults(process, listed->faults, listed->faults_hard);
    if (poll->counts_io) {
        new |= count(process, EW_C_io_read_bytes, listed->read_bytes);
        new |= count(process, EW_C_io_write_bytes, listed->write_bytes);
        new |= count(process, EW_C_io_read_ops, listed->read_ops);
        new |= count(process, EW_C_io_write_ops, listed->write_ops);
        new |= count(process, EW_C_io_other_bytes, listed->other_bytes);
        new |= count(process, EW_C_io_other_ops, listed->other_ops);
    }
    uint64_t gauge[EW_GAUGE_COUNT];
    /* Each of these needs a call; a process that did nothing keeps its values without one. */
    if (new && process->held && poll->system.slow)
        (void)gauges(process, poll->system.slow(poll->system.ctx, process->held, gauge), gauge);
    new |= gauges(process, ew_listed_gauges(listed, poll->has_states, gauge), gauge);
    return new;
}

static void take_last(struct ew_winpoll *poll, struct ew_poll_process *process,
                      const struct ew_winpoll_last *last)
{
    process->figures.fell = false;
    process->figures.gauge_has = 0;
    (void)take_times(process, last->user, last->kernel);
    if (poll->counts_cycles)
        (void)count(process, EW_C_cycles, last->cycles);
    /* The kind of the last faults is unknown: they count as minor. */
    if (poll->counts_faults)
        (void)take_faults(process, last->faults, process->faults_hard);
    if (!poll->counts_io)
        return;
    (void)count(process, EW_C_io_read_bytes, last->read_bytes);
    (void)count(process, EW_C_io_write_bytes, last->write_bytes);
    (void)count(process, EW_C_io_read_ops, last->read_ops);
    (void)count(process, EW_C_io_write_ops, last->write_ops);
    (void)count(process, EW_C_io_other_bytes, last->other_bytes);
    (void)count(process, EW_C_io_other_ops, last->other_ops);
}

/* ---------------------------------------------------------------------- facts */

void ew_winpoll_emit_process(struct ew_winpoll *poll, const struct ew_poll_process *process,
                             enum ew_process_kind kind, const struct ew_winpoll_last *last)
{
    struct ew_process_fact fact = {.kind = kind,
                                   .has = EW_HAS_NAME | EW_HAS_PPID | EW_HAS_SESSION,
                                   .t_ns = poll->base.now_ns,
                                   .start_ns = process->start_ns,
                                   .pid = process->pid,
                                   .ppid = process->ppid,
                                   .session_id = process->session_id,
                                   .gauge_has = process->figures.gauge_has};
    memcpy(fact.name, process->name, sizeof fact.name);
    memcpy(fact.gauge, process->figures.gauge, sizeof fact.gauge);
    if (kind == EW_PROCESS_SEEN) {
        fact.counter_has = process->figures.counter_has;
        memcpy(fact.counter, process->figures.counter, sizeof fact.counter);
    }
    if (last) {
        fact.has |= EW_HAS_EXIT_STATUS;
        fact.exit_code = (int32_t)last->exit_code;
    }
    poll->base.stats.events++;
    poll->base.facts->process(poll->base.facts->ctx, &fact);
}

void ew_winpoll_emit_figures(struct ew_winpoll *poll, const struct ew_poll_process *process,
                             bool incomplete)
{
    ew_poller_emit_figures(&poll->base, process->pid, process->start_ns, &process->figures,
                           incomplete);
}

/* -------------------------------------------------------------------- threads */

/* Windows lists threads in the same order every time: start the search after the last match. */
static struct ew_winpoll_thread *find_thread(struct ew_poll_process *process, uint32_t tid)
{
    for (uint32_t i = 0; i < process->thread_count; i++) {
        uint32_t at = (process->thread_cursor + i) % process->thread_count;
        if (process->threads[at].tid == tid) {
            process->thread_cursor = at + 1;
            return &process->threads[at];
        }
    }
    return NULL;
}

static struct ew_winpoll_thread *add_thread(struct ew_winpoll *poll,
                                            struct ew_poll_process *process, uint32_t tid)
{
    if (poll->base.thread_count >= EW_WINPOLL_THREADS_MAX)
        return NULL;
    if (process->thread_count == process->thread_capacity) {
        uint32_t capacity = process->thread_capacity ? process->thread_capacity * 2 : 4;
        struct ew_winpoll_thread *grown =
            ew_realloc_array(process->threads, capacity, sizeof *grown);
        if (!grown)
            return NULL;
        process->threads = grown;
        process->thread_capacity = capacity;
    }
    struct ew_winpoll_thread *thread = &process->threads[process->thread_count++];
    *thread = (struct ew_winpoll_thread){.tid = tid};
    poll->base.thread_count++;
    return thread;
}

/* Opens the thread before it is emitted for the first time; true if the cycles increased. */
static bool read_cycles(struct ew_winpoll *poll, struct ew_winpoll_thread *thread)
{
    if (!poll->holds_threads)
        return false;
    if (!thread->emitted && poll->held_threads < EW_WINPOLL_HELD_THREADS_MAX) {
        thread->held = poll->system.hold_thread(poll->system.ctx, thread->tid);
        poll->held_threads += thread->held != NULL;
    }
    if (!thread->held)
        return false;
    uint64_t cycles = poll->system.thread_cycles(poll->system.ctx, thread->held);
    if (cycles <= thread->cycles)
        return false;
    thread->cycles = cycles;
    return true;
}

static void emit_thread(struct ew_winpoll *poll, const struct ew_poll_process *process,
                        const struct ew_winpoll_thread *thread, enum ew_reading_kind kind)
{
    uint64_t cpu_ns = (thread->user + thread->kernel) * NS_PER_UNIT;
    struct ew_reading reading = {.kind = kind,
                                 .pid = process->pid,
                                 .tid = thread->tid,
                                 .start_ns = ew_winpoll_raw_ns(poll, thread->created),
                                 .t_ns = poll->base.now_ns,
                                 .ran_from_ns = poll->base.now_ns,
                                 .ran_from_cpu_ns = cpu_ns,
                                 .counter_has = EW_HAS_C(cpu_ns) | EW_HAS_C(cpu_user_ns) |
                                                EW_HAS_C(cpu_kernel_ns),
                                 .gauge_has = EW_HAS_G(priority)};
    reading.counter[EW_C_cpu_ns] = cpu_ns;
    reading.counter[EW_C_cpu_user_ns] = thread->user * NS_PER_UNIT;
    reading.counter[EW_C_cpu_kernel_ns] = thread->kernel * NS_PER_UNIT;
    if (thread->cycles != 0) {
        reading.counter[EW_C_cycles] = thread->cycles;
        reading.counter_has |= EW_HAS_C(cycles);
    }
    reading.gauge[EW_G_priority] = (uint64_t)(int64_t)thread->priority;
    ew_poller_emit_reading(&poll->base, &reading);
}

static void take_thread(struct ew_winpoll *poll, struct ew_poll_process *process,
                        struct ew_winpoll_thread *thread, const struct ew_listed_thread *listed)
{
    /* The tid was reused by another thread of the same process. */
    if (thread->emitted && thread->created != listed->created) {
        (void)read_cycles(poll, thread);
        emit_thread(poll, process, thread, EW_READING_FINAL);
        release_thread(poll, thread);
        *thread = (struct ew_winpoll_thread){.tid = listed->tid};
    }
    bool ran = read_cycles(poll, thread);
    bool same = !ran && thread->emitted && thread->user == listed->user &&
                thread->kernel == listed->kernel && thread->priority == listed->priority;
    thread->round = poll->base.round;
    thread->created = listed->created;
    thread->priority = listed->priority;
    if (listed->user > thread->user)
        thread->user = listed->user;
    if (listed->kernel > thread->kernel)
        thread->kernel = listed->kernel;
    thread->emitted = true;
    if (!same)
        emit_thread(poll, process, thread, EW_READING_AT);
}

static void drop_ended(struct ew_winpoll *poll, struct ew_poll_process *process)
{
    for (uint32_t i = process->thread_count; i-- > 0;) {
        if (process->threads[i].round == poll->base.round)
            continue;
        (void)read_cycles(poll, &process->threads[i]);
        emit_thread(poll, process, &process->threads[i], EW_READING_FINAL);
        release_thread(poll, &process->threads[i]);
        process->threads[i] = process->threads[--process->thread_count];
        poll->base.thread_count--;
    }
}

void ew_winpoll_threads_emit(struct ew_winpoll *poll, struct ew_poll_process *process,
                             const struct ew_listed_process *listed)
{
    uint64_t overflow = 0;
    if (!poll->base.threads)
        return;
    for (uint32_t i = 0; i < listed->thread_count; i++) {
        struct ew_listed_thread one;
        ew_listed_thread(listed, i, &one);
        struct ew_winpoll_thread *thread = find_thread(process, one.tid);
        if (!thread)
            thread = add_thread(poll, process, one.tid);
        if (thread)
            take_thread(poll, process, thread, &one);
        else
            overflow++;
    }
    if (overflow > 0)
        ew_poller_emit_full(&poll->base, overflow);
    drop_ended(poll, process);
}

/* ------------------------------------------------------------------------ end */

void ew_winpoll_process_end(struct ew_winpoll *poll, struct ew_poll_process *process)
{
    struct ew_winpoll_last last;
    bool known = process->held && poll->system.last(poll->system.ctx, process->held, &last);
    bool figures = known && !last.only_exit_code;
    if (figures)
        take_last(poll, process, &last);
    bool whole = figures && (!poll->counts_cycles || last.cycles != 0);
    process->figures.gauge_has = 0;
    ew_winpoll_emit_figures(poll, process, !whole || process->figures.fell);
    drop_ended(poll, process);
    ew_winpoll_emit_process(poll, process, EW_PROCESS_EXIT, known ? &last : NULL);
}
