/* SPDX-License-Identifier: MIT */
/*
 * The public face of a monitor: states, threads and locks. What a monitor does is in loop.c.
 *
 * One lock guards a monitor. The loop holds it for a step (some 50 µs, a few times a second) and
 * never while it waits. It is recursive, so that a callback may ask its own monitor; whoever holds
 * the lock and finds `stepping` set is inside such a callback and must not take the stages away.
 * Source and sampler are closed by one thread only, when no other waits on them.
 */
#include "monitor/monitor.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "source/etw/session_options.h"

/* The caller's struct may be older than the field. */
static int take_session_options(struct etwatch_monitor *monitor,
                                const struct etwatch_config *config, struct ew_error *reterr)
{
    size_t end = offsetof(struct etwatch_config, session_options) + sizeof config->session_options;
    if (config->size < end || config->session_options == NULL)
        return 0;
    monitor->wanted = ew_calloc(1, sizeof *monitor->wanted);
    if (monitor->wanted == NULL)
        return ETWATCH_ENOMEM;
    return ew_session_options_copy(monitor->wanted, config->session_options, reterr);
}

int etwatch_monitor_new(const struct etwatch_config *config, struct etwatch_monitor **ret_monitor,
                        struct etwatch_error_info *reterr)
{
    struct ew_error why;
    memset(&why, 0, sizeof why);
    if (config == NULL || ret_monitor == NULL)
        return ETWATCH_EINVAL;
    struct etwatch_monitor *monitor = ew_calloc(1, sizeof *monitor);
    if (monitor == NULL)
        return ETWATCH_ENOMEM;
    int error = ew_config_copy(&monitor->config, config, &why);
    if (error == 0)
        error = ew_watch_alerts_init(&monitor->alerts, monitor->config.alerts,
                                     monitor->config.alert_count, &why);
    monitor->alerts.ctx = monitor->config.callbacks.ctx;
    monitor->alerts.on_alert = monitor->config.on_alert;
    ew_describe_init(&monitor->describe, monitor->config.proc_root,
                     (monitor->config.flags & ETWATCH_CONFIG_CMDLINE) != 0);
    if (error == 0)
        error = take_session_options(monitor, config, &why);
    if (error == 0)
        error = ew_mutex_new(&monitor->lock);
    if (error == 0)
        error = ew_waiter_new(&monitor->waiter);
    if (error == 0)
        error = ew_cond_new(&monitor->arrived);
    if (error == 0 && (monitor->config.flags & ETWATCH_CONFIG_QUEUE))
        error = ew_queue_init(&monitor->queue, monitor->config.queue_samples);
    if (error != 0) {
        if (why.code == 0)
            ew_error_set(&why, error, 0, "%s", etwatch_strerror(error));
        ew_error_out(reterr, &why, why.code);
        etwatch_monitor_free(monitor);
        return error;
    }
    *ret_monitor = monitor;
    return 0;
}

void etwatch_monitor_free(struct etwatch_monitor *monitor)
{
    if (monitor == NULL)
        return;
    if (monitor->lock != NULL)
        (void)etwatch_monitor_stop(monitor);
    ew_queue_done(&monitor->queue);
    ew_describe_done(&monitor->describe);
    ew_cond_free(monitor->arrived);
    ew_waiter_free(monitor->waiter);
    ew_mutex_free(monitor->lock);
    ew_config_done(&monitor->config);
    if (monitor->wanted != NULL)
        ew_session_options_done(monitor->wanted);
    ew_free(monitor->wanted);
    ew_free(monitor);
}

static void run(void *arg)
{
    struct etwatch_monitor *monitor = arg;
    struct ew_error why;
    ew_mutex_lock(monitor->lock);
    int fd = monitor->source->ops->wake_fd(monitor->source);
    ew_monitor_meter(monitor, false);
    while (!monitor->stopping) {
        uint64_t until_ns = monitor->next_wake_ns;
        ew_mutex_unlock(monitor->lock);
        int woken = ew_waiter_wait(monitor->waiter, until_ns, fd);
        ew_mutex_lock(monitor->lock);
        if (monitor->stopping)
            break;
        /* A recording does not outrun its reader: nothing is lost if he takes his time. */
        if (ew_monitor_replays(monitor) && monitor->queue.count > 0) {
            (void)ew_cond_wait(monitor->arrived, monitor->lock, 10);
            continue;
        }
        int error = woken < 0 ? woken : ew_monitor_step(monitor, &why);
        ew_cond_signal(monitor->arrived);
        monitor->failed = error;
        if (error != 0 || monitor->ended)
            break;
    }
    ew_mutex_unlock(monitor->lock);
}

static int begin(struct etwatch_monitor *monitor, enum ew_monitor_state state,
                 struct etwatch_error_info *reterr)
{
    struct ew_error why;
    memset(&why, 0, sizeof why);
    ew_mutex_lock(monitor->lock);
    int error = 0;
    if (monitor->state != EW_MONITOR_STOPPED || monitor->stepping) {
        error = ew_error_set(&why, ETWATCH_ESTATE, 0, "the monitor is already running");
    } else {
        monitor->stopping = false;
        monitor->failed = 0;
        error = ew_monitor_begin(monitor, &why);
    }
    if (error == 0 && state == EW_MONITOR_RUNNING) {
        error = ew_os_thread_start(run, monitor, &monitor->thread);
        if (error != 0) {
            ew_monitor_end(monitor);
            ew_error_set(&why, error, 0, "cannot start a thread");
        }
    }
    if (error == 0)
        monitor->state = state;
    ew_mutex_unlock(monitor->lock);
    if (error != 0)
        ew_error_out(reterr, &why, why.code);
    return error;
}

int etwatch_monitor_start(struct etwatch_monitor *monitor, struct etwatch_error_info *reterr)
{
    return monitor == NULL ? ETWATCH_EINVAL : begin(monitor, EW_MONITOR_RUNNING, reterr);
}

int etwatch_monitor_open(struct etwatch_monitor *monitor, struct etwatch_error_info *reterr)
{
    return monitor == NULL ? ETWATCH_EINVAL : begin(monitor, EW_MONITOR_OPEN, reterr);
}

/* Ends the run: the rest is delivered, the stages are closed. With the lock, outside of a step. */
static void finish(struct etwatch_monitor *monitor)
{
    ew_monitor_end(monitor);
    monitor->state = EW_MONITOR_STOPPED;
    ew_cond_signal(monitor->arrived);
}

/* Waits without the lock until a step is due. 1: it is; 0: the timeout came first. */
static int wait_until_due(struct etwatch_monitor *monitor, int timeout_ms)
{
    uint64_t due_ns = monitor->next_wake_ns, until_ns = due_ns;
    int fd = monitor->source->ops->wake_fd(monitor->source);
    if (timeout_ms >= 0) {
        uint64_t limit_ns = ew_os_raw_ns() + (uint64_t)timeout_ms * 1000000u;
        until_ns = limit_ns < due_ns ? limit_ns : due_ns;
    }
    ew_monitor_meter(monitor, false);
    monitor->waiting++;
    ew_mutex_unlock(monitor->lock);
    int woken = ew_waiter_wait(monitor->waiter, until_ns, fd);
    ew_mutex_lock(monitor->lock);
    monitor->waiting--;
    if (monitor->stopping) {
        ew_cond_signal(monitor->arrived);
        return ETWATCH_ESTATE;
    }
    return woken < 0 ? woken : woken > 0 || until_ns == due_ns;
}

int etwatch_monitor_poll(struct etwatch_monitor *monitor, int timeout_ms)
{
    if (monitor == NULL)
        return ETWATCH_EINVAL;
    struct ew_error why;
    uint64_t count = 0;
    ew_mutex_lock(monitor->lock);
    int result = ETWATCH_ESTATE;
    if (monitor->state == EW_MONITOR_OPEN && !monitor->stepping && !monitor->stopping)
        result = wait_until_due(monitor, timeout_ms);
    if (result > 0) {
        uint64_t before = monitor->delivered;
        result = ew_monitor_step(monitor, &why);
        count = monitor->delivered - before;
        /* A callback asked for the end: this is the first moment at which it can come. */
        if ((monitor->stopping || monitor->ended) && monitor->waiting == 0)
            finish(monitor);
    }
    ew_mutex_unlock(monitor->lock);
    return result != 0 ? result : count > INT_MAX ? INT_MAX : (int)count;
}

/* Until nobody but us is on the stages any more. */
static void wait_for_others(struct etwatch_monitor *monitor)
{
    while (monitor->joining)
        (void)ew_cond_wait(monitor->arrived, monitor->lock, -1);
    while (monitor->waiting > 0) {
        ew_waiter_wake(monitor->waiter);
        (void)ew_cond_wait(monitor->arrived, monitor->lock, 10);
    }
    if (monitor->thread != NULL) {
        monitor->joining = true;
        ew_mutex_unlock(monitor->lock);
        ew_os_thread_join(monitor->thread);
        ew_mutex_lock(monitor->lock);
        monitor->thread = NULL;
        monitor->joining = false;
        ew_cond_signal(monitor->arrived);
    }
}

int etwatch_monitor_stop(struct etwatch_monitor *monitor)
{
    if (monitor == NULL)
        return ETWATCH_EINVAL;
    ew_mutex_lock(monitor->lock);
    monitor->stopping = true;
    /* In a callback the end can only be asked for; the loop, the next stop or free brings it. */
    if (monitor->stepping || monitor->state == EW_MONITOR_STOPPED) {
        ew_mutex_unlock(monitor->lock);
        return 0;
    }
    ew_waiter_wake(monitor->waiter);
    wait_for_others(monitor);
    int failed = monitor->failed;
    if (monitor->state != EW_MONITOR_STOPPED)
        finish(monitor);
    ew_mutex_unlock(monitor->lock);
    return failed;
}

/* With the lock. */
static void wait_for_samples(struct etwatch_monitor *monitor, int timeout_ms)
{
    if (monitor->stepping)
        timeout_ms = 0; /* in a callback: nothing can arrive while it waits */
    /* Every step signals, also one that brought nothing: the limit is a time, not a wait. */
    uint64_t until_ns = ew_os_raw_ns() + (timeout_ms > 0 ? (uint64_t)timeout_ms : 0) * 1000000u;
    while (monitor->queue.count == 0 && monitor->state == EW_MONITOR_RUNNING &&
           monitor->failed == 0 && !monitor->ended) {
        uint64_t now_ns = ew_os_raw_ns();
        if (timeout_ms >= 0 && now_ns >= until_ns)
            break;
        int left_ms = timeout_ms < 0 ? -1 : (int)((until_ns - now_ns + 999999u) / 1000000u);
        (void)ew_cond_wait(monitor->arrived, monitor->lock, left_ms);
    }
}

/* With the lock: what a read says that took so many. */
static int finish_read(struct etwatch_monitor *monitor, int count)
{
    if (count == 0 && monitor->failed != 0)
        count = monitor->failed;
    if (count == 0 && monitor->ended)
        count = ETWATCH_ESTATE;
    if (monitor->began && ew_monitor_replays(monitor))
        ew_cond_signal(monitor->arrived); /* there is room again */
    return count;
}

static size_t at_most_int(size_t max)
{
    return max > INT_MAX ? INT_MAX : max;
}

int etwatch_monitor_read(struct etwatch_monitor *monitor, struct etwatch_sample *ret_samples,
                         size_t max, int timeout_ms)
{
    if (monitor == NULL || ret_samples == NULL || max == 0)
        return ETWATCH_EINVAL;
    if ((monitor->config.flags & ETWATCH_CONFIG_QUEUE) == 0)
        return ETWATCH_ESTATE;
    ew_mutex_lock(monitor->lock);
    wait_for_samples(monitor, timeout_ms);
    int count = ew_queue_take(&monitor->queue, ret_samples, at_most_int(max));
    count = finish_read(monitor, count);
    ew_mutex_unlock(monitor->lock);
    return count;
}

int etwatch_monitor_read_copy(struct etwatch_monitor *monitor, struct etwatch_sample *ret_samples,
                              size_t max, char *ret_texts, size_t texts_size,
                              size_t *ret_texts_used, int timeout_ms)
{
    if (monitor == NULL || ret_samples == NULL || max == 0 || ret_texts == NULL ||
        ret_texts_used == NULL)
        return ETWATCH_EINVAL;
    if ((monitor->config.flags & ETWATCH_CONFIG_QUEUE) == 0)
        return ETWATCH_ESTATE;
    ew_mutex_lock(monitor->lock);
    wait_for_samples(monitor, timeout_ms);
    int count = ew_queue_copy(&monitor->queue, ret_samples, at_most_int(max), ret_texts, texts_size,
                              ret_texts_used);
    count = finish_read(monitor, count);
    ew_mutex_unlock(monitor->lock);
    return count;
}

static bool is_open(const struct etwatch_monitor *monitor)
{
    return monitor->state != EW_MONITOR_STOPPED;
}

int etwatch_monitor_add(struct etwatch_monitor *monitor, uint32_t pid)
{
    if (monitor == NULL || pid == 0)
        return ETWATCH_EINVAL;
    if (monitor->config.source != ETWATCH_SOURCE_ETL &&
        !ew_os_process_exists(monitor->config.proc_root, pid))
        return ETWATCH_ENOENT;
    ew_mutex_lock(monitor->lock);
    int error = is_open(monitor) ? monitor->source->ops->add(monitor->source, pid)
                                 : ew_config_add_pid(&monitor->config, pid);
    /* It is looked at now, not when the next interval is over. */
    ew_waiter_wake(monitor->waiter);
    ew_mutex_unlock(monitor->lock);
    return error;
}

int etwatch_monitor_remove(struct etwatch_monitor *monitor, uint32_t pid)
{
    if (monitor == NULL)
        return ETWATCH_EINVAL;
    ew_mutex_lock(monitor->lock);
    int error = 0;
    if (is_open(monitor)) {
        error = monitor->source->ops->remove(monitor->source, pid);
        if (error == 0)
            error = ew_sampler_forget(monitor->sampler, pid);
    } else {
        error = ew_config_remove_pid(&monitor->config, pid);
    }
    ew_mutex_unlock(monitor->lock);
    return error;
}

int etwatch_monitor_snapshot(struct etwatch_monitor *monitor, uint32_t pid,
                             struct etwatch_sample *ret_sample, char *buffer, size_t buffer_size)
{
    if (monitor == NULL || ret_sample == NULL)
        return ETWATCH_EINVAL;
    struct etwatch_sample sample;
    memset(&sample, 0, sizeof sample);
    ew_mutex_lock(monitor->lock);
    int error = is_open(monitor)
                    ? ew_sampler_snapshot(monitor->sampler, pid, &sample, buffer, buffer_size)
                    : ETWATCH_ESTATE;
    ew_mutex_unlock(monitor->lock);
    return error != 0 ? error : ew_sized_out(ret_sample, &sample, sizeof sample);
}

static int set_kernel(struct etwatch_monitor *monitor, uint32_t kernel, const uint32_t *stacks,
                      struct ew_error *reterr)
{
    if (!is_open(monitor))
        return ew_error_set(reterr, ETWATCH_ESTATE, 0, "the monitor does not run");
    const struct ew_source_ops *ops = monitor->source->ops;
    if (ops->set_kernel == NULL)
        return ew_error_set(reterr, ETWATCH_ENOTSUP, 0,
                            "the source %s has no kinds of kernel events to choose from",
                            etwatch_source_name(ops->id));
    int error = ops->set_kernel(monitor->source, ew_os_raw_ns(), kernel, stacks, reterr);
    if (error != 0)
        return error;
    monitor->source_available = ops->available;
    monitor->source_estimated = ops->estimated;
    ew_sampler_set_available(monitor->sampler, &ops->available);
    return 0;
}

int etwatch_monitor_set_kernel(struct etwatch_monitor *monitor, const char *kernel,
                               const char *stacks, struct etwatch_error_info *reterr)
{
    uint32_t set = 0, stack_set = 0;
    struct ew_error why;
    memset(&why, 0, sizeof why);
    if (monitor == NULL || kernel == NULL)
        return ETWATCH_EINVAL;
    int error = ew_session_options_kernel("kernel", kernel, &set, &why);
    if (error == 0 && stacks != NULL && stacks[0] != '\0')
        error = ew_session_options_kernel("stacks", stacks, &stack_set, &why);
    if (error == 0) {
        ew_mutex_lock(monitor->lock);
        error = set_kernel(monitor, set, stacks == NULL ? NULL : &stack_set, &why);
        ew_mutex_unlock(monitor->lock);
    }
    if (error != 0)
        ew_error_out(reterr, &why, why.code);
    return error;
}

int etwatch_monitor_aggregate(struct etwatch_monitor *monitor, uint32_t pid, uint32_t metric,
                              struct etwatch_aggregate *ret_aggregate)
{
    if (monitor == NULL || ret_aggregate == NULL || metric >= ETWATCH_METRIC_COUNT)
        return ETWATCH_EINVAL;
    struct etwatch_aggregate aggregate;
    memset(&aggregate, 0, sizeof aggregate);
    ew_mutex_lock(monitor->lock);
    int error = is_open(monitor) && (monitor->config.flags & ETWATCH_CONFIG_AGGREGATE)
                    ? ew_sampler_aggregate(monitor->sampler, pid, metric, &aggregate)
                    : ETWATCH_ESTATE;
    ew_mutex_unlock(monitor->lock);
    return error != 0 ? error : ew_sized_out(ret_aggregate, &aggregate, sizeof aggregate);
}

static double percent(uint64_t part_ns, uint64_t whole_ns)
{
    return whole_ns == 0 ? 0 : 100.0 * (double)part_ns / (double)whole_ns;
}

/* Until when intervals could be delivered: what is held for the next delivery is not missing as
 * long as that is not late. */
static uint64_t cut_time(const struct etwatch_monitor *monitor, uint64_t end_ns)
{
    bool on_time = end_ns < monitor->next_wake_ns + monitor->interval_ns;
    bool held = is_open(monitor) && !ew_monitor_replays(monitor) && on_time;
    return held && monitor->cut_ns > monitor->opened_ns ? monitor->cut_ns : end_ns;
}

int etwatch_monitor_stats(struct etwatch_monitor *monitor, struct etwatch_stats *ret_stats)
{
    if (monitor == NULL || ret_stats == NULL)
        return ETWATCH_EINVAL;
    struct etwatch_stats stats;
    memset(&stats, 0, sizeof stats);
    ew_mutex_lock(monitor->lock);
    ew_monitor_refresh_counts(monitor);
    uint64_t end_ns = is_open(monitor) ? ew_monitor_now(monitor) : monitor->closed_ns;
    uint64_t wall_ns = end_ns - monitor->opened_ns;
    const struct ew_source_stats *source = &monitor->source_stats;
    stats.source = monitor->source_id;
    stats.hz_requested = monitor->config.hz;
    stats.hz_effective = monitor->interval_ns == 0 ? 0 : 1e9 / (double)monitor->interval_ns;
    uint64_t cut_ns = cut_time(monitor, end_ns) - monitor->opened_ns;
    stats.hz_reached = cut_ns == 0 ? 0 : (double)monitor->counts.intervals * 1e9 / (double)cut_ns;
    /* The last interval is cut short, and a poll may be asked for early: no more than was asked. */
    if (stats.hz_reached > stats.hz_requested)
        stats.hz_reached = stats.hz_requested;
    stats.samples = monitor->counts.samples;
    stats.events = source->events;
    stats.lost = monitor->counts.lost;
    stats.undecoded = source->undecoded;
    stats.late = monitor->counts.late + source->late;
    stats.wakeups = monitor->wakeups;
    stats.step_ns = monitor->step_ns;
    stats.step_max_ns = monitor->step_max_ns;
    stats.processes = monitor->counts.processes;
    stats.threads = monitor->counts.threads;
    (void)ew_os_self_rss(&stats.self_rss_bytes, &stats.self_rss_peak_bytes);
    stats.self_cpu_percent = percent(monitor->self_cpu_ns + source->kernel_ns, wall_ns);
    stats.self_kernel_percent = source->kernel_ns_known ? percent(source->kernel_ns, wall_ns) : -1;
    stats.duration_ns = wall_ns;
    stats.queue_dropped = monitor->queue.dropped;
    ew_mutex_unlock(monitor->lock);
    return ew_sized_out(ret_stats, &stats, sizeof stats);
}

const char *etwatch_monitor_unavailable_reason(struct etwatch_monitor *monitor, uint32_t metric)
{
    const char *why = NULL;
    if (monitor == NULL || metric >= ETWATCH_METRIC_COUNT)
        return "there is no such metric";
    ew_mutex_lock(monitor->lock);
    if (monitor->source == NULL) {
        why = "nothing is watched";
    } else if (!etwatch_metric_set_has(&monitor->source_available, metric)) {
        const struct ew_source_ops *ops = monitor->source->ops;
        const struct ew_metric_backend *backend = &ew_metric_rows[metric].backend[ops->backend];
        why = ops->unavailable_reason != NULL ? ops->unavailable_reason(monitor->source, metric)
                                              : NULL;
        if (why == NULL && backend->exactness == ETWATCH_EXACTNESS_UNAVAILABLE)
            why = backend->how;
        if (why == NULL)
            why = etwatch_metric_set_has(&monitor->metrics, metric) ? "not available here"
                                                                    : "not selected";
    }
    ew_mutex_unlock(monitor->lock);
    return why;
}

int etwatch_monitor_meta(struct etwatch_monitor *monitor, struct etwatch_meta *ret_meta)
{
    if (monitor == NULL || ret_meta == NULL)
        return ETWATCH_EINVAL;
    struct etwatch_meta meta;
    memset(&meta, 0, sizeof meta);
    ew_mutex_lock(monitor->lock);
    int error = monitor->began ? 0 : ETWATCH_ESTATE;
    meta.source = monitor->source_id;
    meta.cpu_count = monitor->cpu_count;
    meta.hz_requested = monitor->config.hz;
    meta.anchor_unix_ns = monitor->anchor_unix_ns;
    meta.anchor_raw_ns = monitor->anchor_raw_ns;
    meta.estimated = monitor->source_estimated;
    meta.available = monitor->source_available;
    memcpy(meta.fallback, monitor->fallback, sizeof meta.fallback);
    ew_mutex_unlock(monitor->lock);
    return error != 0 ? error : ew_sized_out(ret_meta, &meta, sizeof meta);
}
