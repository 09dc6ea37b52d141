/* SPDX-License-Identifier: MIT */
/*
 * Gauges that need a call or a file of their own per process and are therefore read rarely:
 * descriptors, I/O priority, thread states. Used by polling, and by eBPF for polled gauges; there
 * also for memory, if the figures of /proc are preferred.
 *
 * Tracks when each gauge is due: after a process ran, it is read again when its period has ended,
 * even if the process sleeps by then, so that the last value of a sleeping process is accurate.
 */
#include "source/poll/slow_gauges.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "source/poll/proc_text.h"

#define STATES                                                                                   \
    EW_METRIC_SET(ETWATCH_M_threads_running, ETWATCH_M_threads_ready, ETWATCH_M_threads_waiting, \
                  ETWATCH_M_threads_suspended)
#define MEMORY                                                                            \
    EW_METRIC_SET(ETWATCH_M_rss_bytes, ETWATCH_M_rss_peak_bytes, ETWATCH_M_private_bytes, \
                  ETWATCH_M_virtual_bytes)

const struct etwatch_metric_set ew_slow_gauge_states = STATES, ew_slow_gauge_memory = MEMORY;

static const struct {
    struct etwatch_metric_set metrics;
    uint32_t gauges;
} kinds[EW_SLOW_GAUGE_COUNT] = {
    [EW_SLOW_GAUGE_HANDLES] = {EW_METRIC_SET(ETWATCH_M_handles, ETWATCH_M_handles_peak),
                               EW_HAS_G(handles) | EW_HAS_G(handles_peak)},
    [EW_SLOW_GAUGE_IO_PRIORITY] = {EW_METRIC_SET(ETWATCH_M_io_priority), EW_HAS_G(io_priority)},
    [EW_SLOW_GAUGE_STATES] = {STATES, EW_HAS_G(threads_running) | EW_HAS_G(threads_ready) |
                                          EW_HAS_G(threads_waiting) | EW_HAS_G(threads_suspended)},
    [EW_SLOW_GAUGE_MEMORY] = {MEMORY, EW_HAS_G(rss_bytes) | EW_HAS_G(rss_peak_bytes) |
                                          EW_HAS_G(private_bytes) | EW_HAS_G(virtual_bytes)},
};

void ew_slow_gauges_init(struct ew_slow_gauges *slow, const struct ew_source_config *config)
{
    for (int i = 0; i < EW_SLOW_GAUGE_COUNT; i++) {
        struct etwatch_metric_set metrics = kinds[i].metrics;
        if (i == EW_SLOW_GAUGE_MEMORY)
            etwatch_metric_set_intersect(&metrics, &config->polled);
        slow->period_ns[i] =
            ew_metrics_period_ns(&config->metrics, config->rates, config->rate_count, &metrics);
    }
}

bool ew_slow_gauges_wanted(const struct ew_slow_gauges *slow)
{
    for (int i = 0; i < EW_SLOW_GAUGE_COUNT; i++)
        if (slow->period_ns[i] != 0)
            return true;
    return false;
}

void ew_slow_gauges_ran(struct ew_slow_gauges_item *item)
{
    item->stale = (1u << EW_SLOW_GAUGE_COUNT) - 1;
}

uint64_t ew_slow_gauges_due_ns(const struct ew_slow_gauges *slow,
                               const struct ew_slow_gauges_item *item)
{
    uint64_t due_ns = UINT64_MAX;
    for (int i = 0; i < EW_SLOW_GAUGE_COUNT; i++)
        if ((item->stale >> i & 1) != 0 && slow->period_ns[i] != 0 && item->due_ns[i] < due_ns)
            due_ns = item->due_ns[i];
    return due_ns;
}

static bool read_stat(struct ew_slow_gauges *slow, uint32_t pid, uint32_t tid,
                      struct ew_proc_stat *ret_stat)
{
    int fd = -1;
    return ew_proc_read(slow->files, pid, tid, "stat", false, &fd) == EW_PROC_OK &&
           ew_proc_parse_stat(slow->files->text, slow->files->len, ret_stat, NULL) == 0;
}

/* By the state letter of the kernel. */
static void count_state(char state, uint64_t *gauge)
{
    gauge[EW_G_threads_running] += state == 'R';
    gauge[EW_G_threads_suspended] += state == 'T' || state == 't';
    gauge[EW_G_threads_waiting] += strchr("SDIPKW", state) != NULL;
}

/* Most processes have one thread, with its state in the stat file of the process: no directory
 * is listed. */
static bool count_states(struct ew_slow_gauges *slow, uint32_t pid, uint64_t *gauge)
{
    struct ew_proc_stat stat;
    gauge[EW_G_threads_running] = gauge[EW_G_threads_waiting] = 0;
    gauge[EW_G_threads_suspended] = 0;
    if (!read_stat(slow, pid, 0, &stat))
        return false;
    if (stat.threads == 1) {
        count_state(stat.state, gauge);
    } else {
        if (ew_proc_list(slow->files, pid, EW_SLOW_GAUGE_THREADS_MAX, &slow->listed) < 0 ||
            slow->listed.overflow != 0)
            return false;
        for (uint32_t i = 0; i < slow->listed.count; i++)
            if (read_stat(slow, pid, slow->listed.ids[i], &stat)) /* else it has ended */
                count_state(stat.state, gauge);
    }
    /* None: a zombie. */
    return gauge[EW_G_threads_running] + gauge[EW_G_threads_waiting] +
               gauge[EW_G_threads_suspended] >
           0;
}

static uint32_t read_states(struct ew_slow_gauges *slow, uint32_t pid, uint64_t *gauge)
{
    uint32_t has =
        EW_HAS_G(threads_running) | EW_HAS_G(threads_waiting) | EW_HAS_G(threads_suspended);
    if (!count_states(slow, pid, gauge))
        return 0;
    if (slow->on_cpu == NULL)
        return has;
    uint64_t running = slow->on_cpu(slow->ctx, pid), runnable = gauge[EW_G_threads_running];
    gauge[EW_G_threads_running] = running < runnable ? running : runnable;
    gauge[EW_G_threads_ready] = runnable - gauge[EW_G_threads_running];
    return has | EW_HAS_G(threads_ready);
}

static uint32_t read_io_priority(uint32_t pid, uint64_t *gauge)
{
    enum { IOPRIO_WHO_PROCESS_ = 1 };
    long priority = syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS_, (int)pid);
    if (priority < 0)
        return 0;
    gauge[EW_G_io_priority] = (uint64_t)priority;
    return EW_HAS_G(io_priority);
}

static uint32_t read_handles(struct ew_slow_gauges *slow, uint32_t pid,
                             struct ew_slow_gauges_item *item, uint64_t *gauge)
{
    uint64_t count;
    /* A process that is about to end has no descriptors left and looks like one that never had
     * any. */
    if (!ew_proc_fd_count(slow->files, pid, &count) || count == 0)
        return 0;
    if (count > item->handles_peak)
        item->handles_peak = count;
    gauge[EW_G_handles] = count;
    gauge[EW_G_handles_peak] = item->handles_peak;
    return EW_HAS_G(handles) | EW_HAS_G(handles_peak);
}

static uint32_t read_memory(struct ew_slow_gauges *slow, uint32_t pid, uint64_t *gauge)
{
    struct ew_proc_status status;
    uint32_t has = 0;
    int fd = -1;
    if (ew_proc_read(slow->files, pid, 0, "status", false, &fd) != EW_PROC_OK ||
        ew_proc_parse_status(slow->files->text, slow->files->len, &status, NULL) != 0)
        return 0;
    if (status.has & EW_STATUS_RSS) {
        gauge[EW_G_rss_bytes] = status.rss_bytes;
        has |= EW_HAS_G(rss_bytes);
    }
    if (status.has & EW_STATUS_PEAK) {
        gauge[EW_G_rss_peak_bytes] = status.peak_bytes;
        has |= EW_HAS_G(rss_peak_bytes);
    }
    if (status.has & EW_STATUS_VIRTUAL) {
        gauge[EW_G_virtual_bytes] = status.virtual_bytes;
        has |= EW_HAS_G(virtual_bytes);
    }
    if (status.has & EW_STATUS_ANON) {
        gauge[EW_G_private_bytes] = status.anon_bytes + status.swap_bytes;
        has |= EW_HAS_G(private_bytes);
    }
    return has;
}

uint32_t ew_slow_gauges_read(struct ew_slow_gauges *slow, uint32_t pid,
                             struct ew_slow_gauges_item *item, uint64_t now_ns, uint64_t *gauge)
{
    uint32_t has = 0;
    for (int i = 0; i < EW_SLOW_GAUGE_COUNT; i++) {
        if (slow->period_ns[i] == 0 || (item->stale >> i & 1) == 0 || now_ns < item->due_ns[i])
            continue;
        item->stale &= ~(1u << i);
        item->due_ns[i] = now_ns + slow->period_ns[i];
        if (i == EW_SLOW_GAUGE_HANDLES)
            has |= read_handles(slow, pid, item, gauge);
        else if (i == EW_SLOW_GAUGE_IO_PRIORITY && slow->files->own_ids)
            has |= read_io_priority(pid, gauge);
        else if (i == EW_SLOW_GAUGE_STATES)
            has |= read_states(slow, pid, gauge);
        else if (i == EW_SLOW_GAUGE_MEMORY)
            has |= read_memory(slow, pid, gauge);
    }
    return has;
}
