/* SPDX-License-Identifier: MIT */
/*
 * Owns the threads of one process and their sums. The counters of a thread end with it, so the sums
 * keep the values of its last reading: switches and wait time of a process are a lower bound that
 * lacks what happened after that.
 *
 * schedstat is read first and shows whether a thread ran; the other two files are read only then.
 */
#include "source/poll/poll.h"

#include <string.h>

#include "base/alloc.h"

void ew_poll_threads_close_files(struct ew_poll *poll, struct ew_poll_process *process)
{
    for (uint32_t i = 0; i < process->thread_count; i++)
        for (int file = 0; file < EW_POLL_FILE_COUNT; file++)
            ew_proc_drop(&poll->files, &process->threads[i].fd[file]);
}

void ew_poll_threads_free(struct ew_poll *poll, struct ew_poll_process *process)
{
    ew_poll_threads_close_files(poll, process);
    poll->base.thread_count -= process->thread_count;
    ew_free(process->threads);
    process->threads = NULL;
    process->thread_count = process->thread_capacity = 0;
}

/* The kernel lists threads in the same order every time: start the search after the last match. */
static struct ew_poll_thread *find_thread(struct ew_poll_process *process, uint32_t tid)
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

static struct ew_poll_thread *add_thread(struct ew_poll *poll, struct ew_poll_process *process,
                                         uint32_t tid)
{
    if (process->thread_count == process->thread_capacity) {
        uint32_t capacity = process->thread_capacity ? process->thread_capacity * 2 : 4;
        struct ew_poll_thread *grown = ew_realloc_array(process->threads, capacity, sizeof *grown);
        if (!grown)
            return NULL;
        process->threads = grown;
        process->thread_capacity = capacity;
    }
    struct ew_poll_thread *thread = &process->threads[process->thread_count++];
    *thread = (struct ew_poll_thread){.tid = tid};
    for (int file = 0; file < EW_POLL_FILE_COUNT; file++)
        thread->fd[file] = -1;
    poll->base.thread_count++;
    return thread;
}

static void emit_thread(struct ew_poll *poll, const struct ew_poll_process *process,
                        const struct ew_poll_thread *thread, enum ew_reading_kind kind)
{
    struct ew_reading reading = {.kind = kind,
                                 .pid = process->pid,
                                 .tid = thread->tid,
                                 .start_ns = thread->start_ns,
                                 .t_ns = poll->base.now_ns,
                                 .ran_from_ns = poll->base.now_ns,
                                 .ran_from_cpu_ns = thread->counter[EW_C_cpu_ns],
                                 .counter_has = thread->counter_has,
                                 .gauge_has = thread->gauge_has,
                                 .thread_name = thread->name};
    memcpy(reading.counter, thread->counter, sizeof reading.counter);
    reading.gauge[EW_G_priority] = (uint64_t)thread->priority;
    reading.gauge[EW_G_affinity] = thread->affinity;
    ew_poller_emit_reading(&poll->base, &reading);
}

static void drop_thread(struct ew_poll *poll, struct ew_poll_process *process,
                        struct ew_poll_thread *thread)
{
    for (int file = 0; file < EW_POLL_FILE_COUNT; file++)
        ew_proc_drop(&poll->files, &thread->fd[file]);
    *thread = process->threads[--process->thread_count];
    poll->base.thread_count--;
}

/* Counters of a thread never decrease; increases also count for the process. */
static void count(struct ew_poll_process *process, struct ew_poll_thread *thread,
                  enum ew_counter which, uint64_t value)
{
    if (value < thread->counter[which])
        return;
    process->summed[which] += value - thread->counter[which];
    process->summed_has |= 1u << which;
    thread->counter[which] = value;
    thread->counter_has |= 1u << which;
}

static bool read_file(struct ew_poll *poll, const struct ew_poll_process *process,
                      struct ew_poll_thread *thread, enum ew_poll_file which)
{
    return ew_proc_read(&poll->files, process->pid, thread->tid, ew_poll_file_names[which],
                        process->busy, &thread->fd[which]) == EW_PROC_OK;
}

/* False if there is none, or the kernel does not count. */
static bool read_schedstat(struct ew_poll *poll, struct ew_poll_process *process,
                           struct ew_poll_thread *thread, struct ew_proc_schedstat *ret_schedstat)
{
    if (!read_file(poll, process, thread, EW_POLL_SCHEDSTAT))
        return false;
    if (ew_proc_parse_schedstat(poll->files.text, poll->files.len, ret_schedstat, NULL) != 0) {
        poll->base.stats.undecoded++;
        return false;
    }
    return ret_schedstat->slices != 0;
}

static void take_status(struct ew_poll *poll, struct ew_poll_process *process,
                        struct ew_poll_thread *thread)
{
    struct ew_proc_status status;
    if (!read_file(poll, process, thread, EW_POLL_STATUS))
        return;
    if (ew_proc_parse_status(poll->files.text, poll->files.len, &status, NULL) != 0) {
        poll->base.stats.undecoded++;
        return;
    }
    if (status.has & EW_STATUS_SWITCHES) {
        count(process, thread, EW_C_switches_voluntary, status.switches_voluntary);
        count(process, thread, EW_C_switches_involuntary, status.switches_involuntary);
    }
    if (status.has & EW_STATUS_AFFINITY) {
        thread->affinity = status.affinity;
        thread->gauge_has |= EW_HAS_G(affinity);
    }
}

/* A tid that now names another thread of the same process starts over. */
static void restart_thread(struct ew_poll *poll, struct ew_poll_process *process,
                           struct ew_poll_thread *thread, uint64_t start_ns)
{
    if (thread->known)
        emit_thread(poll, process, thread, EW_READING_FINAL);
    thread->known = false;
    thread->start_ns = start_ns;
    thread->counter_has = thread->gauge_has = 0;
    memset(thread->counter, 0, sizeof thread->counter);
}

static void take_stat(struct ew_poll *poll, struct ew_poll_process *process,
                      struct ew_poll_thread *thread, const struct ew_proc_stat *stat)
{
    count(process, thread, EW_C_cpu_user_ns, ew_poll_ticks_to_ns(poll, stat->user_ticks));
    count(process, thread, EW_C_cpu_kernel_ns, ew_poll_ticks_to_ns(poll, stat->kernel_ticks));
    count(process, thread, EW_C_faults_minor, stat->faults_minor);
    count(process, thread, EW_C_faults_major, stat->faults_major);
    thread->priority = stat->priority;
    thread->gauge_has |= EW_HAS_G(priority);
    memcpy(thread->name, stat->comm, sizeof thread->name);
}

static void read_thread(struct ew_poll *poll, struct ew_poll_process *process,
                        struct ew_poll_thread *thread)
{
    struct ew_proc_stat stat;
    struct ew_proc_schedstat schedstat;
    bool exact = read_schedstat(poll, process, thread, &schedstat);
    if (exact && thread->known && schedstat.run_ns == thread->counter[EW_C_cpu_ns] &&
        schedstat.wait_ns == thread->counter[EW_C_runq_wait_ns])
        return;
    if (ew_poll_read_stat(poll, process->pid, thread->tid, process->busy, &thread->fd[EW_POLL_STAT],
                          &stat) != EW_POLL_READ)
        return;
    uint64_t start_ns = ew_poll_start_ns(poll, &stat);
    if (start_ns != thread->start_ns)
        restart_thread(poll, process, thread, start_ns);
    take_stat(poll, process, thread, &stat);
    if (exact) {
        count(process, thread, EW_C_cpu_ns, schedstat.run_ns);
        count(process, thread, EW_C_runq_wait_ns, schedstat.wait_ns);
    } else {
        count(process, thread, EW_C_cpu_ns,
              thread->counter[EW_C_cpu_user_ns] + thread->counter[EW_C_cpu_kernel_ns]);
    }
    take_status(poll, process, thread);
    thread->known = thread->changed = true;
}

void ew_poll_threads_read(struct ew_poll *poll, struct ew_poll_process *process)
{
    uint32_t room = EW_POLL_THREADS_MAX - (poll->base.thread_count - process->thread_count);
    if (ew_proc_list(&poll->files, process->pid, room, &poll->listed) < 0)
        return;
    if (poll->listed.overflow)
        ew_poller_emit_full(&poll->base, poll->listed.overflow);
    for (uint32_t i = 0; i < poll->listed.count; i++) {
        uint32_t tid = poll->listed.ids[i];
        struct ew_poll_thread *thread = find_thread(process, tid);
        if (!thread)
            thread = add_thread(poll, process, tid);
        if (!thread) {
            ew_poller_emit_full(&poll->base, 1);
            continue;
        }
        thread->round = poll->base.round;
        read_thread(poll, process, thread);
    }
}

void ew_poll_threads_emit(struct ew_poll *poll, struct ew_poll_process *process)
{
    for (uint32_t i = process->thread_count; i-- > 0;) {
        struct ew_poll_thread *thread = &process->threads[i];
        bool ended = thread->round != poll->base.round;
        if (thread->changed || (ended && thread->known))
            emit_thread(poll, process, thread, ended ? EW_READING_FINAL : EW_READING_AT);
        thread->changed = false;
        if (ended)
            drop_thread(poll, process, thread);
    }
}
