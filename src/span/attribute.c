/* SPDX-License-Identifier: MIT */
/*
 * Follows the thread of a span through the span's time and gives each stretch to one cause, so that
 * causes add up to the latency. A sleep that another thread of the process ended is a wait for that
 * thread. In an inference it is followed into that thread, if the inference woke it before: then it
 * belongs to the pool and works for the inference. Where the session was loaded under observation,
 * only the threads created then can do so: Python's interpreter lock is handed over by wake-ups
 * too, and its next holder works for itself. For the same reason other spans are not followed.
 */
#include "span/attribute.h"

#include <string.h>

enum { HELPERS_MAX = 64, ALL_CAUSES = 32, DEPTH_MAX = 4 };

/* CPython waits for its lock in steps of 5 ms: a sleep that a timer ended, a moment on the CPU, and
 * the next sleep are one wait, which ends with the wake-up by the holder. */
static const uint64_t step_min_ns = 4500000, step_max_ns = 8000000, moment_ns = 200000;

struct job {
    const struct ew_spans_history *history;
    const struct ew_spans_process *process;
    struct etwatch_span *span;
    uint32_t tid; /* the thread of the span */
    uint32_t helpers[HELPERS_MAX];
    uint32_t helper_count;
    struct etwatch_cause causes[ALL_CAUSES];
    uint32_t cause_count;
};

void ew_spans_cause_add(struct etwatch_cause *causes, uint32_t *count, uint32_t max,
                        const struct etwatch_cause *cause)
{
    for (uint32_t i = 0; i < *count; i++)
        if (causes[i].kind == cause->kind && causes[i].pid == cause->pid &&
            causes[i].tid == cause->tid) {
            causes[i].ns += cause->ns;
            return;
        }
    if (*count < max)
        causes[(*count)++] = *cause;
}

void ew_spans_cause_sort(struct etwatch_cause *causes, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        struct etwatch_cause moved = causes[i];
        uint32_t at = i;
        for (; at > 0 && causes[at - 1].ns < moved.ns; at--)
            causes[at] = causes[at - 1];
        causes[at] = moved;
    }
}

static void blame(struct job *job, uint32_t kind, uint32_t pid, uint32_t tid, const char *name,
                  uint64_t ns)
{
    struct etwatch_cause cause = {.kind = kind, .pid = pid, .tid = tid, .ns = ns};
    size_t len = strlen(name);
    memcpy(cause.name, name, len < sizeof cause.name ? len : sizeof cause.name - 1);
    ew_spans_cause_add(job->causes, &job->cause_count, ALL_CAUSES, &cause);
}

/* ---------------------------------------------------------------------- helpers */

static bool is_helper(const struct job *job, uint32_t tid)
{
    for (uint32_t i = 0; i < job->helper_count; i++)
        if (job->helpers[i] == tid)
            return true;
    return false;
}

static bool in_chain(const struct job *job, uint32_t tid)
{
    return tid == job->tid || is_helper(job, tid);
}

static uint64_t part_end(const struct ew_spans_history *history,
                         const struct ew_spans_thread *thread, uint32_t i)
{
    (void)history;
    return i + 1 < thread->parts.count ? ew_spans_part_at(thread, i + 1)->from_ns : UINT64_MAX;
}

static bool woken_by_chain(const struct job *job, const struct ew_spans_thread *thread)
{
    const struct etwatch_span *span = job->span;
    uint32_t i = ew_spans_list_find(&thread->parts, sizeof(struct ew_spans_part), span->start_ns);
    for (; i < thread->parts.count; i++) {
        const struct ew_spans_part *part = ew_spans_part_at(thread, i);
        if (part->from_ns >= span->end_ns)
            break;
        if (part->from_ns >= span->start_ns && part->state == EW_SPANS_READY &&
            part->waker_tid != UINT32_MAX && in_chain(job, part->waker_tid))
            return true;
    }
    return false;
}

/* Threads of a pool work for inferences and their operators. */
static bool uses_pool(const struct etwatch_span *span)
{
    return span->kind == ETWATCH_SPAN_INFERENCE || span->kind == ETWATCH_SPAN_OPERATOR;
}

/* Whether this thread can work for the span at all. */
static bool may_help(const struct job *job, const struct ew_spans_thread *thread)
{
    bool only_pool = uses_pool(job->span) && job->process->has_pool;
    return thread->tid != job->tid && (thread->pool || !only_pool);
}

/* Threads that the span woke, and those that they woke. */
static void find_helpers(struct job *job)
{
    bool found = true;
    for (uint32_t round = 0; found && round < DEPTH_MAX; round++) {
        const struct ew_spans_thread *thread;
        found = false;
        for (uint32_t ref = job->process->threads; ref != 0; ref = thread->next) {
            thread = ew_pool_at(&job->history->threads, ref);
            if (job->helper_count == HELPERS_MAX || !may_help(job, thread) ||
                is_helper(job, thread->tid) || !woken_by_chain(job, thread))
                continue;
            job->helpers[job->helper_count++] = thread->tid;
            found = true;
        }
    }
    job->span->helpers = job->helper_count;
}

/* What another thread of the process did in the span's time. */
static void add_other(struct job *job, const struct ew_spans_thread *thread)
{
    struct etwatch_span *span = job->span;
    bool mine = false, helper = is_helper(job, thread->tid);
    uint32_t i = ew_spans_list_find(&thread->parts, sizeof(struct ew_spans_part), span->start_ns);
    for (; i < thread->parts.count; i++) {
        const struct ew_spans_part *part = ew_spans_part_at(thread, i);
        uint64_t from_ns = part->from_ns > span->start_ns ? part->from_ns : span->start_ns;
        uint64_t to_ns = part_end(job->history, thread, i);
        to_ns = to_ns < span->end_ns ? to_ns : span->end_ns;
        if (from_ns >= span->end_ns)
            break;
        if (to_ns <= from_ns)
            continue;
        if (part->state == EW_SPANS_READY && part->waker_tid != UINT32_MAX)
            mine = helper && part->from_ns >= span->start_ns && in_chain(job, part->waker_tid);
        if (part->state == EW_SPANS_RUN && mine)
            span->helper_cpu_ns += to_ns - from_ns;
        else if (part->state == EW_SPANS_RUN)
            span->shared_cpu_ns += to_ns - from_ns;
        else if (part->state == EW_SPANS_READY && mine)
            span->helper_ready_ns += to_ns - from_ns;
    }
}

/* ---------------------------------------------------------------------- causes */

/* Whether a thread of the process is throttled at this time. */
static bool is_throttled(const struct job *job, uint64_t t_ns)
{
    const struct ew_spans_thread *thread;
    for (uint32_t ref = job->process->threads; ref != 0; ref = thread->next) {
        thread = ew_pool_at(&job->history->threads, ref);
        if (thread->parts.count == 0)
            continue;
        uint32_t i = ew_spans_list_find(&thread->parts, sizeof(struct ew_spans_part), t_ns);
        const struct ew_spans_part *part = ew_spans_part_at(thread, i);
        if (part->from_ns <= t_ns && part->state == EW_SPANS_READY && part->throttled)
            return true;
    }
    return false;
}

static void add_turn(struct job *job, const struct ew_spans_turn *turn, uint64_t from_ns,
                     uint64_t to_ns)
{
    struct etwatch_span *span = job->span;
    if (turn->tid == 0 && is_throttled(job, from_ns)) {
        span->ns[ETWATCH_CAUSE_THROTTLED] += to_ns - from_ns;
        return;
    }
    span->ns[ETWATCH_CAUSE_CPU] += to_ns - from_ns;
    const char *name =
        turn->tid == 0 ? "idle" : ew_spans_history_name(job->history, turn->pid, turn->tid);
    blame(job, ETWATCH_CAUSE_CPU, turn->tid == 0 ? 0 : turn->pid, 0, name, to_ns - from_ns);
}

/* A thread that lost the CPU waits for that one; a thread that was woken, for the one it gets. */
static void add_ready(struct job *job, const struct ew_spans_thread *thread, uint32_t i,
                      uint64_t from_ns, uint64_t to_ns)
{
    const struct ew_spans_part *part = ew_spans_part_at(thread, i);
    uint16_t cpu = part->cpu;
    if (part->throttled) {
        job->span->ns[ETWATCH_CAUSE_THROTTLED] += to_ns - from_ns;
        return;
    }
    if (cpu == EW_SPANS_NO_CPU && i + 1 < thread->parts.count)
        cpu = ew_spans_part_at(thread, i + 1)->cpu;
    const struct ew_spans_list *turns = cpu < EW_SPANS_CPUS_MAX ? &job->history->cpus[cpu] : NULL;
    uint64_t at_ns = from_ns;
    uint32_t turn = turns == NULL || turns->count == 0
                        ? UINT32_MAX
                        : ew_spans_list_find(turns, sizeof(struct ew_spans_turn), from_ns);
    for (; turn != UINT32_MAX && turn < turns->count && at_ns < to_ns; turn++) {
        const struct ew_spans_turn *now = ew_spans_turn_at(turns, turn);
        uint64_t end_ns =
            turn + 1 < turns->count ? ew_spans_turn_at(turns, turn + 1)->from_ns : to_ns;
        end_ns = end_ns < to_ns ? end_ns : to_ns;
        if (now->from_ns > at_ns || end_ns <= at_ns)
            continue;
        add_turn(job, now, at_ns, end_ns);
        at_ns = end_ns;
    }
    if (at_ns < to_ns) {
        job->span->ns[ETWATCH_CAUSE_CPU] += to_ns - at_ns;
        blame(job, ETWATCH_CAUSE_CPU, UINT32_MAX, 0, "", to_ns - at_ns);
    }
}

/* Page faults of the thread in this stretch, on a CPU. Faults of an event that is cut by the border
 * of the stretch count in proportion. */
static uint64_t faults_in(const struct ew_spans_thread *thread, uint64_t from_ns, uint64_t to_ns,
                          uint64_t *ret_count)
{
    uint32_t i = ew_spans_list_find(&thread->faults, sizeof(struct ew_spans_faults), from_ns);
    uint64_t sum_ns = 0;
    for (; i < thread->faults.count; i++) {
        const struct ew_spans_faults *faults = ew_spans_faults_at(thread, i);
        uint64_t begin_ns = faults->from_ns > from_ns ? faults->from_ns : from_ns;
        uint64_t end_ns = faults->to_ns < to_ns ? faults->to_ns : to_ns;
        if (faults->from_ns >= to_ns)
            break;
        if (end_ns <= begin_ns)
            continue;
        double share = (double)(end_ns - begin_ns) / (double)(faults->to_ns - faults->from_ns);
        sum_ns += (uint64_t)((double)faults->sum_ns * share + 0.5);
        *ret_count += (uint64_t)((double)faults->count * share + 0.5);
    }
    return sum_ns < to_ns - from_ns ? sum_ns : to_ns - from_ns;
}

static void add_run(struct job *job, const struct ew_spans_thread *thread, uint64_t from_ns,
                    uint64_t to_ns)
{
    struct etwatch_span *span = job->span;
    uint64_t count = 0, fault_ns = faults_in(thread, from_ns, to_ns, &count);
    span->ns[ETWATCH_CAUSE_FAULT] += fault_ns;
    span->ns[ETWATCH_CAUSE_WORK] += to_ns - from_ns - fault_ns;
    if (thread->tid == job->tid) {
        span->cpu_ns += to_ns - from_ns;
        span->fault_count += count;
    } else {
        span->wait_cpu_ns += to_ns - from_ns - fault_ns;
        blame(job, ETWATCH_CAUSE_WORK, thread->pid, thread->tid, thread->name,
              to_ns - from_ns - fault_ns);
    }
}

/* The entry with the wake-up that ended this sleep, or NULL: the event is missing. */
static const struct ew_spans_part *wakeup_of(const struct ew_spans_thread *thread, uint32_t i)
{
    const struct ew_spans_part *next =
        i + 1 < thread->parts.count ? ew_spans_part_at(thread, i + 1) : NULL;
    return next != NULL && next->state == EW_SPANS_READY && next->waker_tid != UINT32_MAX ? next
                                                                                          : NULL;
}

static const struct ew_spans_part *final_wakeup(const struct ew_spans_thread *thread, uint32_t i)
{
    const struct ew_spans_part *first = wakeup_of(thread, i), *wakeup = first;
    while (wakeup != NULL && wakeup->waker_tid == 0 && i + 4 < thread->parts.count) {
        uint64_t slept_ns = wakeup->from_ns - ew_spans_part_at(thread, i)->from_ns;
        const struct ew_spans_part *run = ew_spans_part_at(thread, i + 2);
        const struct ew_spans_part *sleep = ew_spans_part_at(thread, i + 3);
        if (slept_ns < step_min_ns || slept_ns > step_max_ns || run->state != EW_SPANS_RUN ||
            sleep->state != EW_SPANS_SLEEP || sleep->from_ns - run->from_ns > moment_ns)
            return first;
        i += 3;
        wakeup = wakeup_of(thread, i);
    }
    return wakeup == NULL ? first : wakeup;
}

static void divide(struct job *job, const struct ew_spans_thread *thread, uint64_t from_ns,
                   uint64_t to_ns, uint32_t depth);

static void add_sleep(struct job *job, const struct ew_spans_thread *thread, uint32_t i,
                      uint64_t from_ns, uint64_t to_ns, uint32_t depth)
{
    struct etwatch_span *span = job->span;
    const struct ew_spans_part *wakeup = final_wakeup(thread, i);
    uint64_t ns = to_ns - from_ns;
    if (wakeup == NULL || wakeup->waker_tid == 0) {
        span->ns[i + 1 < thread->parts.count && wakeup == NULL ? ETWATCH_CAUSE_UNKNOWN
                                                               : ETWATCH_CAUSE_SLEEP] += ns;
        return;
    }
    const struct ew_spans_thread *waker = ew_spans_history_thread(job->history, wakeup->waker_tid);
    if (wakeup->waker_pid != span->pid) {
        span->ns[ETWATCH_CAUSE_PROCESS] += ns;
        blame(job, ETWATCH_CAUSE_PROCESS, wakeup->waker_pid, 0,
              ew_spans_history_name(job->history, wakeup->waker_pid, wakeup->waker_tid), ns);
    } else if (waker != NULL && uses_pool(span) && is_helper(job, waker->tid) &&
               depth < DEPTH_MAX) {
        divide(job, waker, from_ns, to_ns, depth + 1);
    } else {
        span->ns[ETWATCH_CAUSE_LOCK] += ns;
        blame(job, ETWATCH_CAUSE_LOCK, span->pid, wakeup->waker_tid,
              waker == NULL ? "" : waker->name, ns);
    }
}

static void add_part(struct job *job, const struct ew_spans_thread *thread, uint32_t i,
                     uint64_t from_ns, uint64_t to_ns, uint32_t depth)
{
    const struct ew_spans_part *part = ew_spans_part_at(thread, i);
    switch (part->state) {
    case EW_SPANS_RUN:
        add_run(job, thread, from_ns, to_ns);
        break;
    case EW_SPANS_READY:
        if (depth == 0 && part->waker_tid == UINT32_MAX && part->from_ns >= job->span->start_ns &&
            i > 0 && ew_spans_part_at(thread, i - 1)->state == EW_SPANS_RUN)
            job->span->preempted++;
        add_ready(job, thread, i, from_ns, to_ns);
        break;
    case EW_SPANS_DISK:
        job->span->ns[ETWATCH_CAUSE_DISK] += to_ns - from_ns;
        break;
    case EW_SPANS_FAULT:
        job->span->ns[ETWATCH_CAUSE_FAULT] += to_ns - from_ns;
        break;
    case EW_SPANS_SLEEP:
        add_sleep(job, thread, i, from_ns, to_ns, depth);
        break;
    default:
        job->span->ns[ETWATCH_CAUSE_UNKNOWN] += to_ns - from_ns;
        break;
    }
}

/* The thread read the clock at the start: not so of profiles, and of runs that another thread
 * began.
 */
static bool marks_itself(const struct etwatch_span *span)
{
    return span->kind != ETWATCH_SPAN_OPERATOR && (span->flags & ETWATCH_SPAN_ASYNC) == 0;
}

static bool is_waiting(const struct ew_spans_part *part)
{
    return part->state == EW_SPANS_READY || part->state == EW_SPANS_SLEEP ||
           part->state == EW_SPANS_DISK || part->state == EW_SPANS_FAULT;
}

static void divide(struct job *job, const struct ew_spans_thread *thread, uint64_t from_ns,
                   uint64_t to_ns, uint32_t depth)
{
    uint64_t at_ns = from_ns;
    uint32_t i = ew_spans_list_find(&thread->parts, sizeof(struct ew_spans_part), from_ns);
    for (; i < thread->parts.count && at_ns < to_ns; i++) {
        const struct ew_spans_part *part = ew_spans_part_at(thread, i);
        uint64_t end_ns = part_end(job->history, thread, i);
        end_ns = end_ns < to_ns ? end_ns : to_ns;
        if (part->from_ns > at_ns) { /* before the history begins */
            uint64_t known_ns = part->from_ns < to_ns ? part->from_ns : to_ns;
            job->span->ns[ETWATCH_CAUSE_UNKNOWN] += known_ns - at_ns;
            at_ns = known_ns;
        }
        if (end_ns <= at_ns)
            continue;
        /* It ran the mark itself: events up to then that say otherwise are incomplete. */
        if (depth == 0 && at_ns == job->span->start_ns && marks_itself(job->span) &&
            is_waiting(part))
            add_run(job, thread, at_ns, end_ns);
        else
            add_part(job, thread, i, at_ns, end_ns, depth);
        at_ns = end_ns;
    }
    if (at_ns < to_ns)
        job->span->ns[ETWATCH_CAUSE_UNKNOWN] += to_ns - at_ns;
}

static void keep_causes(struct job *job)
{
    struct etwatch_span *span = job->span;
    ew_spans_cause_sort(job->causes, job->cause_count);
    span->cause_count =
        job->cause_count < ETWATCH_SPAN_CAUSES ? job->cause_count : ETWATCH_SPAN_CAUSES;
    memcpy(span->causes, job->causes, span->cause_count * sizeof *span->causes);
}

void ew_spans_attribute(const struct ew_spans_history *history, struct etwatch_span *span)
{
    struct job job = {.history = history, .span = span};
    job.tid = (span->flags & ETWATCH_SPAN_ASYNC) != 0 ? span->end_tid : span->tid;
    job.process = ew_spans_history_find(history, span->pid);
    const struct ew_spans_thread *thread = ew_spans_history_thread(history, job.tid);
    span->flags |= ETWATCH_SPAN_COMPLETE;
    if (history->knows_faults)
        span->flags |= ETWATCH_SPAN_HAS_FAULTS;
    if (job.process == NULL || thread == NULL || thread->pid != span->pid) {
        span->ns[ETWATCH_CAUSE_UNKNOWN] = span->end_ns - span->start_ns;
    } else {
        span->thread_name = thread->name[0] != '\0' ? thread->name : NULL;
        const struct ew_spans_thread *other;
        find_helpers(&job);
        divide(&job, thread, span->start_ns, span->end_ns, 0);
        for (uint32_t ref = job.process->threads; ref != 0; ref = other->next) {
            other = ew_pool_at(&history->threads, ref);
            if (other->tid != job.tid && other->parts.count > 0)
                add_other(&job, other);
        }
        keep_causes(&job);
    }
    if (span->ns[ETWATCH_CAUSE_UNKNOWN] > 0 ||
        ew_spans_history_lost(history, span->start_ns, span->end_ns))
        span->flags &= ~(uint32_t)ETWATCH_SPAN_COMPLETE;
}

uint32_t ew_spans_pool(const struct ew_spans_history *history, const struct etwatch_span *span,
                       uint64_t *ret_run_ns)
{
    const struct ew_spans_process *process = ew_spans_history_find(history, span->pid);
    const struct ew_spans_thread *thread;
    uint32_t count = 0;
    *ret_run_ns = 0;
    if (process == NULL || !process->has_pool)
        return 0;
    for (uint32_t ref = process->threads; ref != 0; ref = thread->next) {
        thread = ew_pool_at(&history->threads, ref);
        if (!thread->pool || thread->tid == span->tid)
            continue;
        count++;
        uint32_t i =
            ew_spans_list_find(&thread->parts, sizeof(struct ew_spans_part), span->start_ns);
        for (; i < thread->parts.count; i++) {
            const struct ew_spans_part *part = ew_spans_part_at(thread, i);
            uint64_t from_ns = part->from_ns > span->start_ns ? part->from_ns : span->start_ns;
            uint64_t to_ns = part_end(history, thread, i);
            to_ns = to_ns < span->end_ns ? to_ns : span->end_ns;
            if (from_ns >= span->end_ns)
                break;
            if (part->state == EW_SPANS_RUN && to_ns > from_ns)
                *ret_run_ns += to_ns - from_ns;
        }
    }
    return count;
}
