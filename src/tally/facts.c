/* SPDX-License-Identifier: MIT */
/*
 * Emits the tally's state as facts, interval by interval. A thread's first activity in an interval
 * emits an OPEN with the counters from before it, and all such threads are read at the interval's
 * end. So everything is reported in the interval in which it happened, and the time of a long run
 * is split exactly at each end. An interval in which a thread is inactive costs nothing.
 *
 * Facts depend on the events alone, never on how they arrive: an interval ends when an event
 * arrives that is not before its end, or when the caller reports that none will follow. During a
 * long silence only an event proves that time has passed.
 */
#include <string.h>

#include "model/device.h"
#include "tally/internal.h"

/* After this many intervals without any event no thread is assumed to be still running. */
enum { SILENT_INTERVALS = 1024 };

static bool is_reported(const struct ew_tally *tally, const struct ew_tally_thread *thread)
{
    const struct ew_tally_process *process = thread->process;
    return tally->facts != NULL && process != NULL && (process->flags & EW_TP_REPORTED) != 0 &&
           ((process->flags & EW_TP_ENDED) == 0 || (thread->flags & EW_TT_ENDING) != 0);
}

/* --------------------------------------------------------------------- readings */

static void put_thread_gauges(struct ew_tally *tally, const struct ew_tally_thread *thread,
                              struct ew_reading *reading)
{
    const struct ew_tally_thread_cold *cold = thread->cold;
    reading->gauge_has = 0;
    reading->thread_name = NULL;
    if (!tally->config.threads || (thread->flags & EW_TT_OWN) != 0)
        return;
    if (cold->name[0] != '\0')
        reading->thread_name = cold->name;
    if (cold->has_priority || (tally->classes & EW_TALLY_SWITCHES) != 0) {
        reading->gauge[EW_G_priority] = (uint64_t)(int64_t)thread->priority;
        reading->gauge_has |= EW_HAS_G(priority);
    }
    if (cold->has_affinity) {
        reading->gauge[EW_G_affinity] = cold->affinity;
        reading->gauge_has |= EW_HAS_G(affinity);
    }
}

/* What the process did on GPUs in this interval; 0 if it did something before. */
static void emit_use(struct ew_tally *tally, struct ew_tally_process *process, uint64_t t_ns)
{
    const struct ew_tally_thread *own = process->own;
    if (own == NULL || tally->facts->use == NULL || t_ns <= tally->begin_ns)
        return;
    uint64_t gpu_ns = own->cold->work[EW_WORK_GPU_NS];
    uint64_t presents = own->cold->work[EW_WORK_PRESENTS];
    if (gpu_ns == 0 && presents == 0)
        return;
    const struct ew_device_use use = {
        .from_ns = tally->begin_ns,
        .t_ns = t_ns,
        .process = {.pid = process->pid,
                    .has = gpu_ns != 0 ? ETWATCH_DEVICE_PROCESS_GPU_TIME : 0u,
                    .gpu_ns = gpu_ns - process->gpu_given_ns},
        .has_presents = presents != 0,
        .presents = presents - process->presents_given,
    };
    process->gpu_given_ns = gpu_ns;
    process->presents_given = presents;
    tally->facts->use(tally->facts->ctx, &use);
}

/* from_zero: all counters 0, as if it had not run yet. */
static void read_thread(struct ew_tally *tally, struct ew_tally_thread *thread,
                        enum ew_reading_kind kind, uint64_t t_ns, bool from_zero)
{
    struct ew_reading *reading = &tally->reading;
    reading->kind = kind;
    reading->pid = thread->process->pid;
    reading->tid = thread->cold->tid;
    reading->start_ns = thread->cold->start_ns;
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
    thread->flags |= EW_TT_REPORTED;
    tally->facts->reading(tally->facts->ctx, reading);
    if ((thread->flags & EW_TT_OWN) != 0 && kind == EW_READING_FINAL)
        emit_use(tally, thread->process, reading->t_ns);
}

static void list(struct ew_tally *tally, struct ew_tally_thread *thread)
{
    struct ew_tally_thread_cold *cold = thread->cold;
    thread->flags |= EW_TT_LISTED;
    cold->listed = NULL;
    cold->list_prev = tally->last_listed;
    if (tally->last_listed != NULL)
        tally->last_listed->cold->listed = thread;
    else
        tally->first_listed = thread;
    tally->last_listed = thread;
    ew_facts_list_process(tally, thread->process);
}

static void unlist(struct ew_tally *tally, struct ew_tally_thread *thread)
{
    struct ew_tally_thread_cold *cold = thread->cold;
    thread->flags &= (uint8_t)~EW_TT_LISTED;
    if (cold->list_prev != NULL)
        cold->list_prev->cold->listed = cold->listed;
    else
        tally->first_listed = cold->listed;
    if (cold->listed != NULL)
        cold->listed->cold->list_prev = cold->list_prev;
    else
        tally->last_listed = cold->list_prev;
}

void ew_facts_open(struct ew_tally *tally, struct ew_tally_thread *thread, uint64_t t_ns)
{
    thread->epoch = tally->epoch;
    if (!is_reported(tally, thread))
        return;
    read_thread(tally, thread, EW_READING_OPEN, t_ns, false);
    list(tally, thread);
}

void ew_facts_join(struct ew_tally *tally, struct ew_tally_thread *thread)
{
    if (!is_reported(tally, thread))
        return;
    /* First mentioned in this interval: all its counts are of this interval. Otherwise its earlier
     * counts are missing from samples that were already delivered. */
    bool all = thread->cold->made_epoch == tally->epoch;
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
    if (tally->interval_ns == 0 || !is_reported(tally, thread) ||
        (!listed && (thread->flags & EW_TT_REPORTED) == 0))
        return;
    if (!listed)
        read_thread(tally, thread, EW_READING_OPEN, t_ns, false);
    read_thread(tally, thread, EW_READING_FINAL, t_ns, false);
}

/* -------------------------------------------------------------------- processes */

void ew_facts_list_process(struct ew_tally *tally, struct ew_tally_process *process)
{
    if (tally->interval_ns == 0 || process->epoch == tally->epoch ||
        (process->flags & (EW_TP_REPORTED | EW_TP_ENDED)) != EW_TP_REPORTED)
        return;
    process->epoch = tally->epoch;
    process->listed = NULL;
    if (tally->last_active != NULL)
        tally->last_active->listed = process;
    else
        tally->first_active = process;
    tally->last_active = process;
}

/* Truncates between characters, never inside of one. */
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
    fact.sid = process->sid[0] != '\0' ? process->sid : NULL;
    if (kind == EW_PROCESS_EXIT) {
        if ((process->flags & EW_TP_HAS_EXIT) != 0)
            fact.has |= EW_HAS_EXIT_STATUS;
        fact.exit_code = process->exit_status;
        fact.gauge_has = process->gauge_new;
        memcpy(fact.gauge, process->gauge, sizeof fact.gauge);
    } else {
        if ((process->flags & EW_TP_REPORTED) == 0 && process->own != NULL) {
            process->gpu_given_ns = process->own->cold->work[EW_WORK_GPU_NS];
            process->presents_given = process->own->cold->work[EW_WORK_PRESENTS];
        }
        process->flags |= EW_TP_REPORTED;
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
    if (process->faults_new && (tally->counter_has & EW_HAS_C(faults_minor)) == 0) {
        reading.counter_has |= EW_HAS_C(faults_minor);
        reading.counter[EW_C_faults_minor] = process->faults_minor;
    }
    process->faults_new = false;
    /* After a loss the number of threads is unknown. */
    if ((process->flags & EW_TP_ALL_THREADS) != 0 && process->losses == tally->losses) {
        reading.gauge[EW_G_threads] = process->live_threads - process->ending_threads;
        reading.gauge_has |= EW_HAS_G(threads);
    }
    if ((reading.gauge_has | reading.counter_has) != 0 && (process->flags & EW_TP_ENDED) == 0)
        tally->facts->reading(tally->facts->ctx, &reading);
    if ((process->flags & EW_TP_ENDED) == 0)
        emit_use(tally, process, t_ns);
}

/* -------------------------------------------------------------------- intervals */

void ew_facts_init(struct ew_tally *tally)
{
    tally->interval_ns = tally->config.interval_ns;
    tally->begin_ns = tally->config.epoch_ns;
    tally->end_ns = tally->interval_ns == 0 ? UINT64_MAX : tally->begin_ns + tally->interval_ns;
    tally->epoch = 1;
}

static bool is_busy(const struct ew_tally_cpu *cpu)
{
    return cpu->running != NULL && (cpu->running->flags & EW_TT_IDLE) == 0;
}

/* Reads all threads and processes that were active, at t_ns. */
static void read_all(struct ew_tally *tally, uint64_t t_ns)
{
    ew_graphics_charge(tally, t_ns);
    for (uint32_t i = 0; i < tally->cpu_count; i++)
        if (is_busy(&tally->cpus[i]))
            ew_run_charge(tally, &tally->cpus[i], t_ns);
    struct ew_tally_thread *next;
    for (struct ew_tally_thread *thread = tally->first_listed; thread != NULL; thread = next) {
        next = thread->cold->listed;
        thread->flags &= (uint8_t)~EW_TT_LISTED;
        if (tally->facts != NULL && (thread->process->flags & EW_TP_REPORTED) != 0)
            read_thread(tally, thread, EW_READING_AT, t_ns, false);
    }
    tally->first_listed = tally->last_listed = NULL;
    struct ew_tally_process *process = tally->first_active;
    for (; process != NULL && tally->facts != NULL; process = process->listed)
        if ((process->flags & EW_TP_REPORTED) != 0)
            read_process(tally, process, t_ns);
    tally->first_active = tally->last_active = NULL;
}

/* Starts the interval after the one that ends at end_ns. */
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
        if (is_busy(&tally->cpus[i]))
            ew_facts_active(tally, tally->cpus[i].running, end_ns);
}

static bool silent(const struct ew_tally *tally)
{
    uint64_t latest_ns =
        tally->now_ns > tally->config.epoch_ns ? tally->now_ns : tally->config.epoch_ns;
    return tally->end_ns > latest_ns &&
           (tally->end_ns - latest_ns) / tally->interval_ns > SILENT_INTERVALS;
}

/* Assumes that no thread runs any more; closes the open interval and all others up to t_ns. */
static void skip_silence(struct ew_tally *tally, uint64_t t_ns)
{
    for (uint32_t i = 0; i < tally->cpu_count; i++)
        if (is_busy(&tally->cpus[i]))
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
    ew_graphics_charge(tally, t_ns);
    for (uint32_t i = 0; i < tally->cpu_count; i++)
        ew_run_charge(tally, &tally->cpus[i], t_ns);
    if (tally->interval_ns != 0)
        read_all(tally, t_ns);
}
