/* SPDX-License-Identifier: MIT */
/*
 * Tells what the tally knows as facts, interval by interval. Whoever does something for the first
 * time in an interval gets an OPEN with the counters from before it, and all of those are read at
 * the interval's end: so everything is told in the interval in which it happened, and the time of a
 * long run is split at each end, exactly. An interval in which a thread does nothing costs nothing.
 *
 * Facts depend on the events alone, never on how they arrive: an interval is over when an event
 * comes that is not before its end, or when the caller says that none will come. Through a long
 * silence only an event tells that time went on.
 */
#include <string.h>

#include "tally/internal.h"

/* After so many intervals without any event nobody is believed to run on. */
enum { SILENT_INTERVALS = 1024 };

static bool telling(const struct ew_tally *tally, const struct ew_tally_thread *thread)
{
    const struct ew_tally_process *process = thread->process;
    return tally->facts != NULL && process != NULL && (process->flags & EW_TP_TOLD) != 0 &&
           ((process->flags & EW_TP_ENDED) == 0 || (thread->flags & EW_TT_ENDING) != 0);
}

/* --------------------------------------------------------------------- readings */

static void put_thread_gauges(struct ew_tally *tally, const struct ew_tally_thread *thread,
                              struct ew_reading *reading)
{
    const struct ew_tally_deeds *deeds = thread->deeds;
    reading->gauge_has = 0;
    reading->thread_name = NULL;
    if (!tally->config.threads || (thread->flags & EW_TT_OWN) != 0)
        return;
    if (deeds->name[0] != '\0')
        reading->thread_name = deeds->name;
    if (deeds->has_priority || (tally->classes & EW_TALLY_SWITCHES) != 0) {
        reading->gauge[EW_G_priority] = (uint64_t)(int64_t)thread->priority;
        reading->gauge_has |= EW_HAS_G(priority);
    }
    if (deeds->has_affinity) {
        reading->gauge[EW_G_affinity] = deeds->affinity;
        reading->gauge_has |= EW_HAS_G(affinity);
    }
}

/* from_zero: as if it had done nothing yet. */
static void read_thread(struct ew_tally *tally, struct ew_tally_thread *thread,
                        enum ew_reading_kind kind, uint64_t t_ns, bool from_zero)
{
    struct ew_reading *reading = &tally->reading;
    reading->kind = kind;
    reading->pid = thread->process->pid;
    reading->tid = thread->deeds->tid;
    reading->start_ns = thread->deeds->start_ns;
    reading->t_ns = reading->ran_from_ns = t_ns > tally->begin_ns ? t_ns : tally->begin_ns;
    reading->counter_has = tally->counter_has;
    if (from_zero) {
        memset(reading->counter, 0, sizeof reading->counter);
    } else {
        struct ew_tally_sums sums;
        ew_totals_of_thread(thread, &sums);
        ew_totals_counters(tally, &sums, reading->counter);
    }
    reading->ran_from_cpu_ns = reading->counter[EW_C_cpu_ns];
    reading->incomplete = false;
    if (kind != EW_READING_OPEN) {
        reading->incomplete = (thread->flags & EW_TT_INCOMPLETE) != 0 || tally->blind_cpus > 0;
        thread->flags &= (uint8_t)~EW_TT_INCOMPLETE;
    }
    put_thread_gauges(tally, thread, reading);
    thread->flags |= EW_TT_TOLD;
    tally->facts->reading(tally->facts->ctx, reading);
}

static void list(struct ew_tally *tally, struct ew_tally_thread *thread)
{
    struct ew_tally_deeds *deeds = thread->deeds;
    thread->flags |= EW_TT_LISTED;
    deeds->listed = NULL;
    deeds->list_prev = tally->last_listed;
    if (tally->last_listed != NULL)
        tally->last_listed->deeds->listed = thread;
    else
        tally->first_listed = thread;
    tally->last_listed = thread;
    ew_facts_list_process(tally, thread->process);
}

static void unlist(struct ew_tally *tally, struct ew_tally_thread *thread)
{
    struct ew_tally_deeds *deeds = thread->deeds;
    thread->flags &= (uint8_t)~EW_TT_LISTED;
    if (deeds->list_prev != NULL)
        deeds->list_prev->deeds->listed = deeds->listed;
    else
        tally->first_listed = deeds->listed;
    if (deeds->listed != NULL)
        deeds->listed->deeds->list_prev = deeds->list_prev;
    else
        tally->last_listed = deeds->list_prev;
}

void ew_facts_open(struct ew_tally *tally, struct ew_tally_thread *thread, uint64_t t_ns)
{
    thread->epoch = tally->epoch;
    if (!telling(tally, thread))
        return;
    read_thread(tally, thread, EW_READING_OPEN, t_ns, false);
    list(tally, thread);
}

void ew_facts_join(struct ew_tally *tally, struct ew_tally_thread *thread)
{
    if (!telling(tally, thread))
        return;
    /* First heard of in this interval: all it did is of this interval. Else what it did before can
     * be in no sample any more. */
    bool all = thread->deeds->made_epoch == tally->epoch;
    if (!all)
        thread->flags |= EW_TT_INCOMPLETE;
    read_thread(tally, thread, EW_READING_OPEN, tally->begin_ns, all);
    list(tally, thread);
}

void ew_facts_final(struct ew_tally *tally, struct ew_tally_thread *thread, uint64_t t_ns)
{
    bool listed = (thread->flags & EW_TT_LISTED) != 0;
    if (listed)
        unlist(tally, thread);
    if (tally->interval_ns == 0 || !telling(tally, thread) ||
        (!listed && (thread->flags & EW_TT_TOLD) == 0))
        return;
    if (!listed)
        read_thread(tally, thread, EW_READING_OPEN, t_ns, false);
    read_thread(tally, thread, EW_READING_FINAL, t_ns, false);
}

/* -------------------------------------------------------------------- processes */

void ew_facts_list_process(struct ew_tally *tally, struct ew_tally_process *process)
{
    if (tally->interval_ns == 0 || process->epoch == tally->epoch ||
        (process->flags & (EW_TP_TOLD | EW_TP_ENDED)) != EW_TP_TOLD)
        return;
    process->epoch = tally->epoch;
    process->listed = NULL;
    if (tally->last_active != NULL)
        tally->last_active->listed = process;
    else
        tally->first_active = process;
    tally->last_active = process;
}

/* Ends at a whole character: what follows must not be the middle of one. */
static void copy_name(char to[EW_NAME_SIZE], const char *name)
{
    size_t len = strlen(name);
    if (len >= EW_NAME_SIZE) {
        len = EW_NAME_SIZE - 1;
        while (len > 0 && ((unsigned char)name[len] & 0xC0) == 0x80)
            len--;
    }
    memcpy(to, name, len);
    to[len] = '\0';
}

void ew_facts_process(struct ew_tally *tally, struct ew_tally_process *process,
                      enum ew_process_kind kind, uint64_t t_ns)
{
    if (tally->facts == NULL || tally->interval_ns == 0)
        return;
    struct ew_process_fact fact = {.kind = kind,
                                   .t_ns = t_ns > tally->begin_ns ? t_ns : tally->begin_ns,
                                   .start_ns = process->start_ns,
                                   .pid = process->pid,
                                   .ppid = process->ppid,
                                   .session_id = process->session_id};
    if ((process->flags & EW_TP_HAS_PPID) != 0)
        fact.has |= EW_HAS_PPID;
    if ((process->flags & EW_TP_HAS_SESSION) != 0)
        fact.has |= EW_HAS_SESSION;
    if (process->name[0] != '\0') {
        fact.has |= EW_HAS_NAME;
        copy_name(fact.name, process->name);
    }
    if (kind == EW_PROCESS_EXIT) {
        if ((process->flags & EW_TP_HAS_EXIT) != 0)
            fact.has |= EW_HAS_EXIT_STATUS;
        fact.exit_code = process->exit_status;
        fact.gauge_has = process->gauge_new;
        memcpy(fact.gauge, process->gauge, sizeof fact.gauge);
    } else {
        process->flags |= EW_TP_TOLD;
        process->gauge_new = 0;
    }
    tally->facts->process(tally->facts->ctx, &fact);
}

static void read_process(struct ew_tally *tally, struct ew_tally_process *process, uint64_t t_ns)
{
    struct ew_reading reading = {.kind = EW_READING_AT,
                                 .pid = process->pid,
                                 .start_ns = process->start_ns,
                                 .t_ns = t_ns,
                                 .gauge_has = process->gauge_new};
    process->gauge_new = 0;
    memcpy(reading.gauge, process->gauge, sizeof reading.gauge);
    if (process->other_new) {
        reading.counter_has |= EW_HAS_C(io_other_bytes) | EW_HAS_C(io_other_ops);
        reading.counter[EW_C_io_other_bytes] = process->other_bytes;
        reading.counter[EW_C_io_other_ops] = process->other_ops;
        process->other_new = false;
    }
    if (process->cycles_new && (tally->counter_has & EW_HAS_C(cycles)) == 0) {
        reading.counter_has |= EW_HAS_C(cycles);
        reading.counter[EW_C_cycles] = process->cycles;
    }
    process->cycles_new = false;
    if (process->modes_new && (tally->counter_has & EW_HAS_C(cpu_user_ns)) == 0) {
        reading.counter_has |= EW_HAS_C(cpu_user_ns) | EW_HAS_C(cpu_kernel_ns);
        reading.counter[EW_C_cpu_user_ns] = process->user_ns;
        reading.counter[EW_C_cpu_kernel_ns] = process->kernel_ns;
    }
    process->modes_new = false;
    /* After a loss it is not known how many there are. */
    if ((process->flags & EW_TP_ALL_THREADS) != 0 && process->losses == tally->losses) {
        reading.gauge[EW_G_threads] = process->live_threads - process->ending_threads;
        reading.gauge_has |= EW_HAS_G(threads);
    }
    if ((reading.gauge_has | reading.counter_has) != 0 && (process->flags & EW_TP_ENDED) == 0)
        tally->facts->reading(tally->facts->ctx, &reading);
}

/* -------------------------------------------------------------------- intervals */

void ew_facts_init(struct ew_tally *tally)
{
    tally->interval_ns = tally->config.interval_ns;
    tally->begin_ns = tally->config.epoch_ns;
    tally->end_ns = tally->interval_ns == 0 ? UINT64_MAX : tally->begin_ns + tally->interval_ns;
    tally->epoch = 1;
}

static bool works(const struct ew_tally_cpu *cpu)
{
    return cpu->running != NULL && (cpu->running->flags & EW_TT_IDLE) == 0;
}

/* Reads everybody who did something, at t_ns. */
static void read_all(struct ew_tally *tally, uint64_t t_ns)
{
    for (uint32_t i = 0; i < tally->cpu_count; i++)
        if (works(&tally->cpus[i]))
            ew_run_charge(tally, &tally->cpus[i], t_ns);
    struct ew_tally_thread *next;
    for (struct ew_tally_thread *thread = tally->first_listed; thread != NULL; thread = next) {
        next = thread->deeds->listed;
        thread->flags &= (uint8_t)~EW_TT_LISTED;
        if (tally->facts != NULL && (thread->process->flags & EW_TP_TOLD) != 0)
            read_thread(tally, thread, EW_READING_AT, t_ns, false);
    }
    tally->first_listed = tally->last_listed = NULL;
    struct ew_tally_process *process = tally->first_active;
    for (; process != NULL && tally->facts != NULL; process = process->listed)
        if ((process->flags & EW_TP_TOLD) != 0)
            read_process(tally, process, t_ns);
    tally->first_active = tally->last_active = NULL;
}

/* The interval after the one that ends at end_ns begins. */
static void begin_interval(struct ew_tally *tally, uint64_t end_ns)
{
    tally->epoch++;
    tally->begin_ns = end_ns;
    if (tally->change_count > 0 && tally->change[0].at_ns <= end_ns) {
        tally->interval_ns = tally->change[0].interval_ns;
        tally->change_count--;
        memmove(tally->change, tally->change + 1, tally->change_count * sizeof tally->change[0]);
    }
    tally->end_ns =
        end_ns < UINT64_MAX - tally->interval_ns ? end_ns + tally->interval_ns : UINT64_MAX;
    if (tally->config.interval_over != NULL)
        tally->config.interval_over(tally->config.interval_ctx, end_ns);
    for (uint32_t i = 0; i < tally->cpu_count; i++)
        if (works(&tally->cpus[i]))
            ew_facts_active(tally, tally->cpus[i].running, end_ns);
}

static bool silent(const struct ew_tally *tally)
{
    uint64_t heard_ns =
        tally->now_ns > tally->config.epoch_ns ? tally->now_ns : tally->config.epoch_ns;
    return tally->end_ns > heard_ns &&
           (tally->end_ns - heard_ns) / tally->interval_ns > SILENT_INTERVALS;
}

/* Nobody is believed to run any more; the open interval ends, and with it all up to t_ns. */
static void skip_silence(struct ew_tally *tally, uint64_t t_ns)
{
    for (uint32_t i = 0; i < tally->cpu_count; i++)
        if (works(&tally->cpus[i]))
            ew_run_blind(tally, &tally->cpus[i], tally->begin_ns);
    read_all(tally, tally->end_ns);
    uint64_t until_ns = t_ns;
    if (tally->change_count > 0 && tally->change[0].at_ns < until_ns)
        until_ns = tally->change[0].at_ns;
    uint64_t end_ns = tally->end_ns;
    if (until_ns > end_ns)
        end_ns += (until_ns - end_ns) / tally->interval_ns * tally->interval_ns;
    begin_interval(tally, end_ns);
}

void ew_facts_close(struct ew_tally *tally, uint64_t t_ns, bool happened)
{
    while (tally->end_ns <= t_ns && tally->end_ns != UINT64_MAX) {
        if (silent(tally)) {
            if (!happened)
                return;
            skip_silence(tally, t_ns);
            continue;
        }
        uint64_t end_ns = tally->end_ns;
        read_all(tally, end_ns);
        begin_interval(tally, end_ns);
    }
}

void ew_facts_finish(struct ew_tally *tally, uint64_t t_ns)
{
    for (uint32_t i = 0; i < tally->cpu_count; i++)
        ew_run_charge(tally, &tally->cpus[i], t_ns);
    if (tally->interval_ns != 0)
        read_all(tally, t_ns);
}
