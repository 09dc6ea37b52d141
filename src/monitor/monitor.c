/* SPDX-License-Identifier: MIT */
/*
 * The public functions of a monitor: states, threads and locks. What a monitor does is in loop.c.
 *
 * One lock guards a monitor. The loop holds it for a step (some 50 µs, a few times a second) and
 * never while it waits. It is recursive, so that a callback may call its own monitor: a thread that
 * holds the lock and sees `stepping` is inside such a callback and must not change or close the
 * stages. Source and sampler are closed by one thread only, when no other thread waits on them.
 */
#include "monitor/monitor.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "source/etw/session_options.h"

#define MEMORY_MAX (UINT64_C(1) << 30) /* unless the configuration sets a limit */

/* config.c does not keep the pointer: an older caller does not have it. */
static int take_session_options(struct etwatch_monitor *monitor,
                                const struct etwatch_config *config, struct ew_error *reterr)
{
    size_t end = offsetof(struct etwatch_config, session_options) + sizeof config->session_options;
    if (config->size < end || config->session_options == NULL)
        return 0;
    monitor->session_options = ew_calloc(1, sizeof *monitor->session_options);
    if (monitor->session_options == NULL)
        return ETWATCH_ENOMEM;
    return ew_session_options_copy(monitor->session_options, config->session_options, reterr);
}

/* Memory that a callback needs is not the monitor's. */
static void on_alert(void *ctx, const struct etwatch_alert *alert)
{
    struct etwatch_monitor *monitor = ctx;
    struct ew_alloc_limit *memory = ew_alloc_limit_use(NULL);
    monitor->callbacks.on_alert(monitor->callbacks.ctx, alert);
    (void)ew_alloc_limit_use(memory);
}

int etwatch_monitor_new(const struct etwatch_config *config,
                        const struct etwatch_callbacks *callbacks,
                        struct etwatch_monitor **ret_monitor, struct etwatch_error_info *reterr)
{
    struct ew_error why;
    memset(&why, 0, sizeof why);
    if (config == NULL || ret_monitor == NULL)
        return ETWATCH_EINVAL;
    struct etwatch_monitor *monitor = ew_calloc(1, sizeof *monitor);
    if (monitor == NULL)
        return ETWATCH_ENOMEM;
    int error = ew_config_copy(&monitor->config, config, &why);
    uint64_t max = monitor->config.max_memory_bytes;
    monitor->memory = ew_alloc_limit_new(max != 0 ? max : MEMORY_MAX);
    if (error == 0 && monitor->memory == NULL)
        error = ETWATCH_ENOMEM;
    if (error == 0 && callbacks != NULL)
        error = ew_sized_in(&monitor->callbacks, sizeof monitor->callbacks, callbacks, "callbacks",
                            &why);
    if (error == 0)
        error = ew_watch_alerts_init(&monitor->alerts, monitor->config.alerts,
                                     monitor->config.alert_count, &why);
    monitor->alerts.ctx = monitor;
    monitor->alerts.on_alert = monitor->callbacks.on_alert != NULL ? on_alert : NULL;
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
        ew_error_out(reterr, &why, error);
        etwatch_monitor_free(monitor);
        return error;
    }
    *ret_monitor = monitor;
    return 0;
}

/* Whether the caller is inside a callback of this monitor. */
static bool in_callback(struct etwatch_monitor *monitor)
{
    ew_mutex_lock(monitor->lock);
    bool stepping = monitor->stepping;
    ew_mutex_unlock(monitor->lock);
    return stepping;
}

void etwatch_monitor_free(struct etwatch_monitor *monitor)
{
    if (monitor == NULL || (monitor->lock != NULL && in_callback(monitor)))
        return;
    if (monitor->lock != NULL)
        (void)etwatch_monitor_stop(monitor);
    ew_queue_done(&monitor->queue);
    ew_describe_done(&monitor->describe);
    ew_cond_free(monitor->arrived);
    ew_waiter_free(monitor->waiter);
    ew_mutex_free(monitor->lock);
    ew_config_done(&monitor->config);
    if (monitor->session_options != NULL)
        ew_session_options_done(monitor->session_options);
    ew_free(monitor->session_options);
    ew_free(monitor->changes);
    ew_alloc_limit_drop(monitor->memory);
    ew_free(monitor);
}

/* The run ends without a stop: delivers the rest and reports the end, once. With the lock. */
static void end_by_itself(struct etwatch_monitor *monitor, int error, const struct ew_error *why)
{
    struct etwatch_error_info info = {.size = sizeof info};
    if (monitor->over)
        return;
    monitor->over = true;
    monitor->failed = error;
    if (error != 0)
        monitor->error = *why;
    ew_monitor_flush(monitor);
    if (monitor->callbacks.on_end != NULL) {
        ew_error_out(&info, &monitor->error, error);
        monitor->stepping = true;
        monitor->callbacks.on_end(monitor->callbacks.ctx, error != 0 ? &info : NULL);
        monitor->stepping = false;
    }
    ew_cond_signal(monitor->arrived);
}

/* The library's thread. The descriptor is read each time: a step may change the source. */
static void run(void *arg)
{
    struct etwatch_monitor *monitor = arg;
    struct ew_error why;
    memset(&why, 0, sizeof why);
    ew_mutex_lock(monitor->lock);
    ew_monitor_meter(monitor, false);
    while (!monitor->stopping) {
        uint64_t until_ns = monitor->next_wake_ns;
        int fd = monitor->source->ops->wake_fd(monitor->source);
        ew_mutex_unlock(monitor->lock);
        int woken = ew_waiter_wait(monitor->waiter, until_ns, fd);
        ew_mutex_lock(monitor->lock);
        if (monitor->stopping)
            break;
        /* A recording waits for its reader, so that no sample is dropped. */
        if (ew_monitor_replays(monitor) && monitor->queue.count > 0) {
            (void)ew_cond_wait(monitor->arrived, monitor->lock, 10);
            continue;
        }
        int error = woken < 0 ? woken : ew_monitor_step(monitor, &why);
        ew_cond_signal(monitor->arrived);
        /* A callback that requested the end has it: nothing ended by itself. */
        if ((error != 0 || monitor->ended) && !monitor->stopping) {
            end_by_itself(monitor, error, &why);
            break;
        }
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
        error = ew_error_set(&why, ETWATCH_ESTATE, 0,
                             monitor->stepping ? "not possible in a callback of the monitor"
                                               : "the monitor is already running");
    } else {
        monitor->stopping = monitor->over = false;
        monitor->failed = 0;
        memset(&monitor->error, 0, sizeof monitor->error);
        struct ew_alloc_limit *before = ew_alloc_limit_use(monitor->memory);
        error = ew_monitor_begin(monitor, &why);
        (void)ew_alloc_limit_use(before);
        error = ew_monitor_explain_limit(monitor, error, &why);
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

/* Delivers the rest and closes the stages. With the lock, outside of a step. */
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

/* With the lock. Returns the number of samples, or the error with *why. */
static int poll_once(struct etwatch_monitor *monitor, int timeout_ms, struct ew_error *why)
{
    if (monitor->state != EW_MONITOR_OPEN || monitor->stepping || monitor->stopping ||
        monitor->over)
        return ew_error_set(why, ETWATCH_ESTATE, 0,
                            monitor->stepping ? "not possible in a callback of the monitor"
                                              : "the monitor is not open for poll");
    uint64_t before = monitor->delivered;
    int result = wait_until_due(monitor, timeout_ms);
    bool due = result > 0;
    if (monitor->stopping || monitor->over) /* by another thread */
        return ew_error_set(why, ETWATCH_ESTATE, 0, "the monitor was stopped");
    if (due)
        result = ew_monitor_step(monitor, why);
    if ((result != 0 || monitor->ended) && !monitor->stopping)
        end_by_itself(monitor, result, why);
    /* A callback may have requested the end: this is the first moment at which it is possible. */
    if ((monitor->stopping || monitor->over) && monitor->waiting == 0)
        finish(monitor);
    uint64_t count = monitor->delivered - before;
    return result != 0 ? result : count > INT_MAX ? INT_MAX : (int)count;
}

int etwatch_monitor_poll(struct etwatch_monitor *monitor, int timeout_ms,
                         struct etwatch_error_info *reterr)
{
    struct ew_error why;
    memset(&why, 0, sizeof why);
    if (monitor == NULL)
        return ETWATCH_EINVAL;
    ew_mutex_lock(monitor->lock);
    int result = poll_once(monitor, timeout_ms, &why);
    ew_mutex_unlock(monitor->lock);
    if (result < 0)
        ew_error_out(reterr, &why, result);
    return result;
}

int etwatch_monitor_last_error(struct etwatch_monitor *monitor,
                               struct etwatch_error_info *ret_error)
{
    if (monitor == NULL)
        return ETWATCH_EINVAL;
    ew_mutex_lock(monitor->lock);
    int failed = monitor->failed;
    if (failed != 0)
        ew_error_out(ret_error, &monitor->error, failed);
    ew_mutex_unlock(monitor->lock);
    return failed;
}

/* Until no other thread uses the stages. */
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
    /* In a callback the end can only be requested; the loop, the next stop or free does it. */
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
        timeout_ms = 0; /* in a callback: nothing can arrive during the wait */
    /* Every step signals, also one without samples: the limit is a time, not a number of waits. */
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

/* With the lock: the result of a read that took `count`. */
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

/* The size of the caller's batch is checked before samples are taken out of the queue. */
static int check_read(const struct etwatch_monitor *monitor, size_t max,
                      const struct etwatch_samples *ret_batch)
{
    if (monitor == NULL || max == 0 || ret_batch == NULL || ew_sized_check(ret_batch) < 0)
        return ETWATCH_EINVAL;
    return (monitor->config.flags & ETWATCH_CONFIG_QUEUE) == 0 ? ETWATCH_ESTATE : 0;
}

int etwatch_monitor_read(struct etwatch_monitor *monitor, size_t max, int timeout_ms,
                         struct etwatch_samples *ret_batch)
{
    struct ew_items items;
    int count = check_read(monitor, max, ret_batch);
    if (count < 0)
        return count;
    ew_mutex_lock(monitor->lock);
    wait_for_samples(monitor, timeout_ms);
    count = ew_queue_take(&monitor->queue, at_most_int(max), &items);
    if (count >= 0)
        (void)ew_sized_out(ret_batch, &items, sizeof items);
    count = finish_read(monitor, count);
    ew_mutex_unlock(monitor->lock);
    return count;
}

int etwatch_monitor_read_copy(struct etwatch_monitor *monitor, void *buffer, size_t buffer_size,
                              size_t max, int timeout_ms, struct etwatch_samples *ret_batch,
                              size_t *ret_used)
{
    struct ew_items items;
    size_t used = 0;
    if (buffer == NULL || (uintptr_t)buffer % 8 != 0 || buffer_size < ETWATCH_READ_COPY_MIN)
        return ETWATCH_EINVAL;
    int count = check_read(monitor, max, ret_batch);
    if (count < 0)
        return count;
    ew_mutex_lock(monitor->lock);
    wait_for_samples(monitor, timeout_ms);
    count = ew_queue_copy(&monitor->queue, buffer, buffer_size, at_most_int(max), &items, &used);
    (void)ew_sized_out(ret_batch, &items, sizeof items);
    if (ret_used != NULL)
        *ret_used = used;
    count = finish_read(monitor, count);
    ew_mutex_unlock(monitor->lock);
    return count;
}

/* In the first step the state is still STOPPED, but callbacks may query the stages. */
static bool is_open(const struct etwatch_monitor *monitor)
{
    return monitor->state != EW_MONITOR_STOPPED || monitor->stepping;
}

/* With the lock, in a callback: a source must not be changed while it is drained, nor a sampler
 * while it delivers. */
static int postpone(struct etwatch_monitor *monitor, uint32_t pid, bool add)
{
    if (monitor->change_count == monitor->change_size) {
        uint32_t size = monitor->change_size == 0 ? 16 : monitor->change_size * 2;
        struct ew_monitor_change *changes =
            ew_realloc_array(monitor->changes, size, sizeof *changes);
        if (changes == NULL)
            return ETWATCH_ENOMEM;
        monitor->changes = changes;
        monitor->change_size = size;
    }
    monitor->changes[monitor->change_count++] = (struct ew_monitor_change){.pid = pid, .add = add};
    return 0;
}

int etwatch_monitor_add(struct etwatch_monitor *monitor, uint32_t pid)
{
    if (monitor == NULL || pid == 0)
        return ETWATCH_EINVAL;
    if (monitor->config.source != ETWATCH_SOURCE_ETL &&
        !ew_os_process_exists(monitor->config.proc_root, pid))
        return ETWATCH_ENOENT;
    ew_mutex_lock(monitor->lock);
    int error = 0;
    if (monitor->stepping)
        error = postpone(monitor, pid, true);
    else if (is_open(monitor))
        error = monitor->source->ops->add(monitor->source, pid);
    else
        error = ew_config_add_pid(&monitor->config, pid);
    /* It is read now, not only at the end of the interval. */
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
    if (monitor->stepping) {
        error = postpone(monitor, pid, false);
    } else if (is_open(monitor)) {
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
    if (monitor->stepping)
        return ew_error_set(reterr, ETWATCH_ESTATE, 0, "not possible in a callback of the monitor");
    if (!is_open(monitor))
        return ew_error_set(reterr, ETWATCH_ESTATE, 0, "the monitor is not running");
    const struct ew_source_ops *ops = monitor->source->ops;
    if (ops->set_kernel == NULL)
        return ew_error_set(reterr, ETWATCH_ENOTSUP, 0,
                            "the source %s has no kinds of kernel events to select",
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
    if (error == 0)
        *ret_aggregate = aggregate;
    return error;
}

static double percent(uint64_t part_ns, uint64_t whole_ns)
{
    return whole_ns == 0 ? 0 : 100.0 * (double)part_ns / (double)whole_ns;
}

/* The time up to which intervals could be delivered: those that are held for the next delivery are
 * not missing unless that is late. */
static uint64_t deliverable_until(const struct etwatch_monitor *monitor, uint64_t end_ns)
{
    bool on_time = end_ns < monitor->next_wake_ns + monitor->interval_ns;
    bool held = is_open(monitor) && !ew_monitor_replays(monitor) && on_time;
    return held && monitor->delivered_ns > monitor->opened_ns ? monitor->delivered_ns : end_ns;
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
    uint64_t time_ns = deliverable_until(monitor, end_ns) - monitor->opened_ns;
    stats.hz_reached = time_ns == 0 ? 0 : (double)monitor->counts.intervals * 1e9 / (double)time_ns;
    /* The last interval is shorter, and a poll may come early: never above the requested rate. */
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
    stats.self_cpu_percent =
        percent(monitor->self_cpu_ns + monitor->sensor_cpu_ns + source->kernel_ns, wall_ns);
    stats.self_sensor_percent = percent(monitor->sensor_cpu_ns, wall_ns);
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
        why = "the monitor is not running";
    } else if (!etwatch_metric_set_has(&monitor->source_available, metric)) {
        const struct ew_source_ops *ops = monitor->source->ops;
        const struct ew_metric_backend *backend = &ew_metric_rows[metric].backend[ops->backend];
        why = ops->unavailable_reason != NULL ? ops->unavailable_reason(monitor->source, metric)
                                              : NULL;
        if (why == NULL && backend->exactness == ETWATCH_EXACTNESS_UNAVAILABLE)
            why = backend->how;
        if (why == NULL)
            why = etwatch_metric_set_has(&monitor->metrics, metric) ? "not available on this system"
                                                                    : "not requested";
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
