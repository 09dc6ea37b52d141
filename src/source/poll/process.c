/* SPDX-License-Identifier: MIT */
/*
 * Owns the readings of one process. Invariant: a counter of a process never decreases; if a file
 * shows less than before, the previous value is kept and the reading is marked incomplete.
 *
 * What the files of a process count (Linux 5.15 to 6.18):
 *   CPU clock                  all threads, past and present, up to this instant, in ns
 *   stat: times, faults        all threads, past and present; times in ticks, scaled by the kernel
 *   io                         all threads, past and present
 *   status: memory             the process
 *   status: switches, schedstat, affinity   only the first thread
 * The last group is a total only while there is one thread. After that it is known only if threads
 * are read one by one (threads.c).
 */
#include "source/poll/poll.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

#define NS_PER_S 1000000000u

const char *const ew_poll_file_names[EW_POLL_FILE_COUNT] = {
    [EW_POLL_STAT] = "stat",
    [EW_POLL_STATUS] = "status",
    [EW_POLL_IO] = "io",
    [EW_POLL_SCHEDSTAT] = "schedstat",
};

static_assert(EW_NAME_SIZE == EW_PROC_COMM_SIZE, "names are copied whole");

/* Saturating: invalid input must not result in a small number. */
static uint64_t multiply(uint64_t a, uint64_t b)
{
    return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

uint64_t ew_poll_ticks_to_ns(const struct ew_poll *poll, uint64_t ticks)
{
    return multiply(ticks, NS_PER_S / poll->units.ticks_per_s);
}

uint64_t ew_poll_start_ns(const struct ew_poll *poll, const struct ew_proc_stat *stat)
{
    return ew_poll_ticks_to_ns(poll, stat->start_ticks);
}

struct ew_poll_process *ew_poll_process_new(const struct ew_proc_stat *stat, uint64_t start_ns)
{
    struct ew_poll_process *process = ew_calloc(1, sizeof *process);
    if (!process)
        return NULL;
    process->pid = stat->pid;
    process->start_ns = start_ns;
    memcpy(process->name, stat->comm, sizeof process->name);
    for (int i = 0; i < EW_POLL_FILE_COUNT; i++)
        process->fd[i] = -1;
    return process;
}

void ew_poll_process_close_files(struct ew_poll *poll, struct ew_poll_process *process)
{
    for (int i = 0; i < EW_POLL_FILE_COUNT; i++)
        ew_proc_drop(&poll->files, &process->fd[i]);
    ew_poll_threads_close_files(poll, process);
}

void ew_poll_process_free(struct ew_poll *poll, struct ew_poll_process *process)
{
    if (!process)
        return;
    ew_poll_process_close_files(poll, process);
    ew_poll_threads_free(poll, process);
    ew_free(process);
}

static void count(struct ew_poll_process *process, enum ew_counter which, uint64_t value)
{
    (void)ew_poll_count(&process->figures, which, value);
}

static void gauge(struct ew_poll_process *process, enum ew_gauge which, uint64_t value)
{
    process->figures.gauge[which] = value;
    process->figures.gauge_has |= 1u << which;
}

/* Reads one file of the process into files->text. */
static bool read_file(struct ew_poll *poll, struct ew_poll_process *process,
                      enum ew_poll_file which)
{
    return ew_proc_read(&poll->files, process->pid, 0, ew_poll_file_names[which], process->busy,
                        &process->fd[which]) == EW_PROC_OK;
}

enum ew_poll_result ew_poll_read_stat(struct ew_poll *poll, uint32_t pid, uint32_t tid, bool keep,
                                      int *fd, struct ew_proc_stat *ret_stat)
{
    struct ew_proc_files *files = &poll->files;
    switch (ew_proc_read(files, pid, tid, ew_poll_file_names[EW_POLL_STAT], keep, fd)) {
    case EW_PROC_OK:
        break;
    case EW_PROC_GONE:
        return EW_POLL_GONE;
    case EW_PROC_DENIED:
        return EW_POLL_UNREADABLE;
    }
    if (ew_proc_parse_stat(files->text, files->len, ret_stat, NULL) != 0 ||
        ret_stat->pid != (tid ? tid : pid)) {
        poll->base.stats.undecoded++;
        return EW_POLL_UNREADABLE;
    }
    return EW_POLL_READ;
}

static void take_stat(struct ew_poll *poll, struct ew_poll_process *process,
                      const struct ew_proc_stat *stat)
{
    count(process, EW_C_cpu_user_ns, ew_poll_ticks_to_ns(poll, stat->user_ticks));
    count(process, EW_C_cpu_kernel_ns, ew_poll_ticks_to_ns(poll, stat->kernel_ticks));
    count(process, EW_C_faults_minor, stat->faults_minor);
    count(process, EW_C_faults_major, stat->faults_major);
    if (stat->threads > 1)
        process->had_threads = true;
    if (process->ended)
        return;
    gauge(process, EW_G_threads, stat->threads);
    gauge(process, EW_G_priority, (uint64_t)stat->priority);
    if (stat->virtual_bytes > 0) { /* status is more accurate, if it can be read */
        gauge(process, EW_G_virtual_bytes, stat->virtual_bytes);
        gauge(process, EW_G_rss_bytes, multiply(stat->rss_pages, poll->units.page_bytes));
    }
}

static void take_status(struct ew_poll *poll, struct ew_poll_process *process)
{
    struct ew_proc_status status;
    if (process->uid_known && !poll->reads_status)
        return;
    if (!read_file(poll, process, EW_POLL_STATUS))
        return;
    if (ew_proc_parse_status(poll->files.text, poll->files.len, &status, NULL) != 0) {
        poll->base.stats.undecoded++;
        return;
    }
    if (status.has & EW_STATUS_UID) {
        process->uid = status.uid;
        process->uid_known = true;
    }
    if (status.has & EW_STATUS_RSS)
        gauge(process, EW_G_rss_bytes, status.rss_bytes);
    if (status.has & EW_STATUS_PEAK)
        gauge(process, EW_G_rss_peak_bytes, status.peak_bytes);
    if (status.has & EW_STATUS_VIRTUAL)
        gauge(process, EW_G_virtual_bytes, status.virtual_bytes);
    if (status.has & EW_STATUS_ANON) /* private memory: resident or swapped out */
        gauge(process, EW_G_private_bytes, add(status.anon_bytes, status.swap_bytes));
    if ((status.has & EW_STATUS_AFFINITY) && !process->ended)
        gauge(process, EW_G_affinity, status.affinity);
    bool only_thread = !process->had_threads && (!poll->base.threads || process->ended);
    if ((status.has & EW_STATUS_SWITCHES) && only_thread) {
        count(process, EW_C_switches_voluntary, status.switches_voluntary);
        count(process, EW_C_switches_involuntary, status.switches_involuntary);
    }
}

static void take_io(struct ew_poll *poll, struct ew_poll_process *process)
{
    struct ew_proc_io io;
    if (process->io_denied || !poll->reads_io)
        return;
    if (!read_file(poll, process, EW_POLL_IO)) {
        process->io_denied = true;
        return;
    }
    if (ew_proc_parse_io(poll->files.text, poll->files.len, &io, NULL) != 0) {
        poll->base.stats.undecoded++;
        return;
    }
    count(process, EW_C_io_read_bytes, io.read_chars);
    count(process, EW_C_io_write_bytes, io.write_chars);
    count(process, EW_C_io_read_ops, io.read_calls);
    count(process, EW_C_io_write_ops, io.write_calls);
    count(process, EW_C_disk_read_bytes, io.read_bytes);
    count(process, EW_C_disk_write_bytes, io.write_bytes);
}

static void take_schedstat(struct ew_poll *poll, struct ew_poll_process *process)
{
    struct ew_proc_schedstat schedstat;
    if (!poll->reads_schedstat)
        return;
    if (!read_file(poll, process, EW_POLL_SCHEDSTAT))
        return;
    if (ew_proc_parse_schedstat(poll->files.text, poll->files.len, &schedstat, NULL) != 0) {
        poll->base.stats.undecoded++;
        return;
    }
    /* A thread that was ever on a CPU has slices, unless the kernel does not count them. */
    if (schedstat.slices)
        count(process, EW_C_runq_wait_ns, schedstat.wait_ns);
}

/* Switches and wait time of the process from those of its threads; once it had several that were
 * not read, there is no total any more. */
static void take_per_thread(struct ew_poll *poll, struct ew_poll_process *process)
{
    static const enum ew_counter kept_by_thread[] = {EW_C_switches_voluntary,
                                                     EW_C_switches_involuntary, EW_C_runq_wait_ns};
    if (poll->base.threads && !process->ended)
        ew_poll_threads_read(poll, process);
    for (size_t i = 0; i < sizeof kept_by_thread / sizeof kept_by_thread[0]; i++) {
        enum ew_counter which = kept_by_thread[i];
        if (process->summed_has & 1u << which)
            count(process, which, process->summed[which]);
        else if (process->had_threads)
            process->figures.counter_has &= ~(1u << which);
    }
}

enum ew_poll_result ew_poll_process_read(struct ew_poll *poll, struct ew_poll_process *process,
                                         bool cpu_known, uint64_t cpu_ns,
                                         struct ew_proc_stat *ret_stat)
{
    enum ew_poll_result result = ew_poll_read_stat(poll, process->pid, 0, process->busy,
                                                   &process->fd[EW_POLL_STAT], ret_stat);
    if (result != EW_POLL_READ)
        return result;
    if (ew_poll_start_ns(poll, ret_stat) != process->start_ns)
        return EW_POLL_OTHER;

    process->figures.fell = false;
    process->figures.gauge_has = 0;
    process->ended = (ret_stat->state == 'Z' || ret_stat->state == 'X') && ret_stat->threads <= 1;
    take_stat(poll, process, ret_stat);
    if (cpu_known)
        count(process, EW_C_cpu_ns, cpu_ns);
    else /* precise to a tick only, but the kernel makes the two add up to the used time */
        count(process, EW_C_cpu_ns,
              ew_poll_ticks_to_ns(poll, add(ret_stat->user_ticks, ret_stat->kernel_ticks)));
    take_status(poll, process);
    take_io(poll, process);
    if (!process->had_threads && !poll->base.threads)
        take_schedstat(poll, process);
    take_per_thread(poll, process);
    if (!process->ended)
        process->figures.gauge_has |= ew_slow_gauges_read(
            &poll->slow, process->pid, &process->slow, poll->base.now_ns, process->figures.gauge);
    process->read_ns = poll->base.now_ns;
    return EW_POLL_READ;
}
