/* SPDX-License-Identifier: MIT */
/*
 * Wires source, samplers and the user together, and decides when to wake up.
 *
 * Facts flow in one direction, inside ew_monitor_step and with the lock held:
 *
 *   source -> process filter -+-> alert sampler -> alerts -------------------> on_alert
 *                             +-> sampler -> top-n -+-> queue ---------------> etwatch_monitor_read
 *                                    |              +-> on_samples
 *                                    +-> events with waits -> on_events, losses -> on_loss
 *   sensors (threads) -> queues -> sampler; devices -> on_devices
 *
 * monitor->facts is the entry of that chain. open_stages builds it from its end: the sampler's
 * facts, replaced by facts that serve both samplers if an alert needs shorter windows, replaced by
 * those of the process filter if processes are excluded. Closing a stage therefore invalidates
 * monitor->facts. Conditions that do not need shorter windows are evaluated on the sampler's
 * output, before top-n drops processes.
 *
 * Samples are cut by event time, so the rate of samples does not set the rate of wake-ups: the loop
 * wakes when as many intervals are complete as the latency allows, a moment after the last of them
 * ended, or earlier if the source's buffers fill up. A polling source has no past and has to be
 * woken for each interval.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/sid.h"
#include "monitor/monitor.h"

/* Between the end of an interval and the drain: longer than the kernel takes to record a switch. */
static const uint64_t grace_ns = 1000 * 1000ULL;
static const uint64_t budget_period_ns = 1000 * 1000 * 1000ULL;
/* Sensors queue 64 readings of at least 10 ms each. */
static const uint64_t sensor_wake_ns = 600 * 1000 * 1000ULL;
enum { LAST_READING_MS = 50 };

/* A whole number of the windows in which alerts are evaluated. */
static uint64_t interval_of(const struct etwatch_monitor *monitor, double hz)
{
    uint64_t interval_ns = (uint64_t)(1e9 / hz + 0.5);
    return interval_ns - interval_ns % monitor->alerts.divisor;
}

bool ew_monitor_replays(const struct etwatch_monitor *monitor)
{
    return monitor->source_id == ETWATCH_SOURCE_ETL;
}

uint64_t ew_monitor_replay_horizon_ns(const struct etwatch_monitor *monitor)
{
    return monitor->replayed_ns + monitor->interval_ns;
}

uint64_t ew_monitor_now(const struct etwatch_monitor *monitor)
{
    return ew_monitor_replays(monitor) ? monitor->replayed_ns : ew_os_raw_ns();
}

static bool polls(const struct etwatch_monitor *monitor)
{
    return monitor->source->ops->id == ETWATCH_SOURCE_POLL;
}

/* ------------------------------------------------------------------- to the user */

static void deliver(void *ctx, const struct etwatch_sample *samples, size_t count)
{
    struct etwatch_monitor *monitor = ctx;
    if (monitor->config.flags & ETWATCH_CONFIG_QUEUE)
        for (size_t i = 0; i < count; i++)
            ew_queue_put(&monitor->queue, &samples[i]);
    monitor->delivered += count;
    if (monitor->callbacks.on_samples != NULL) {
        struct etwatch_samples batch = etwatch_samples_of(samples, count);
        struct ew_alloc_limit *memory = ew_alloc_limit_use(NULL);
        monitor->callbacks.on_samples(monitor->callbacks.ctx, &batch);
        (void)ew_alloc_limit_use(memory);
    }
}

/* Alerts see every process, also those that top-n drops. */
static void on_emit(void *ctx, const struct etwatch_sample *samples, size_t count)
{
    struct etwatch_monitor *monitor = ctx;
    if (monitor->top_n.count > 0)
        ew_top_n_put(&monitor->top_n, samples, count);
    else
        deliver(monitor, samples, count);
    ew_watch_alerts_samples(&monitor->alerts, samples, count);
}

static void on_emitted(void *ctx)
{
    struct etwatch_monitor *monitor = ctx;
    if (monitor->top_n.count > 0)
        ew_top_n_flush(&monitor->top_n);
}

static void on_loss(void *ctx, const struct etwatch_loss *loss)
{
    struct etwatch_monitor *monitor = ctx;
    bool events = loss->stage == ETWATCH_LOSS_STREAM || loss->stage == ETWATCH_LOSS_KERNEL_LOG ||
                  loss->stage == ETWATCH_LOSS_BUFFERS;
    if (events && monitor->wait_tracker != NULL)
        ew_wait_tracker_gap(monitor->wait_tracker);
    struct ew_alloc_limit *memory = ew_alloc_limit_use(NULL);
    if (monitor->callbacks.on_loss != NULL)
        monitor->callbacks.on_loss(monitor->callbacks.ctx, loss);
    (void)ew_alloc_limit_use(memory);
}

/* The full stream, with Unix times and with the waits of incoming threads. */
static void on_events(void *ctx, const struct etwatch_event *events, size_t count)
{
    struct etwatch_monitor *monitor = ctx;
    for (size_t i = 0; i < count && monitor->wait_tracker != NULL; i++) {
        struct etwatch_event event = events[i];
        ew_wait_tracker_event(monitor->wait_tracker, &event);
        struct etwatch_events batch = etwatch_events_of(&event, 1);
        struct ew_alloc_limit *memory = ew_alloc_limit_use(NULL);
        monitor->callbacks.on_events(monitor->callbacks.ctx, &batch);
        (void)ew_alloc_limit_use(memory);
    }
}

static void on_describe(void *ctx, uint32_t pid, uint32_t uid, const char *sid, uint64_t cgroup_id,
                        const char **ret_user, const char **ret_cgroup, const char **ret_cmdline)
{
    struct etwatch_monitor *monitor = ctx;
    if (ew_monitor_replays(monitor)) {
        /* A recording has other processes than this machine. */
        *ret_user = sid == NULL ? NULL : ew_sid_name(sid);
        *ret_cgroup = NULL;
        *ret_cmdline = monitor->source->ops->cmdline(monitor->source, pid);
        return;
    }
    ew_describe_process(&monitor->describe, pid, uid, sid, cgroup_id, ret_user, ret_cgroup,
                        ret_cmdline);
}

/* ------------------------------------------------------------------------ stages */

static uint32_t unproven_of(const void *ctx)
{
    const struct ew_source *source = ctx;
    return source->ops->unproven(source);
}

static int open_stages(struct etwatch_monitor *monitor)
{
    const struct etwatch_config *config = &monitor->config;
    struct ew_sampler_config wanted = {
        .source = monitor->source->ops->id,
        .rounds = polls(monitor),
        .threads = (config->flags & ETWATCH_CONFIG_THREADS) != 0,
        .dense = (config->flags & ETWATCH_CONFIG_DENSE) != 0,
        .aggregate = (config->flags & ETWATCH_CONFIG_AGGREGATE) != 0,
        .available = monitor->source->ops->available,
        .metrics = monitor->metrics,
        .epoch_ns = monitor->epoch_ns,
        .interval_ns = monitor->interval_ns,
        .unix_minus_raw_ns = monitor->unix_minus_raw_ns,
        .max_processes = config->max_processes,
        .max_threads = config->max_threads,
        .ctx = monitor,
        .emit = on_emit,
        .emitted = on_emitted,
        .loss = on_loss,
        .event = on_events,
        .describe = on_describe,
        .unproven = monitor->source->ops->unproven != NULL ? unproven_of : NULL,
        .unproven_ctx = monitor->source,
    };
    monitor->top_n.count = config->top_n;
    monitor->top_n.metric = config->top_n_metric;
    monitor->top_n.ctx = monitor;
    monitor->top_n.deliver = deliver;
    int error = 0;
    if (monitor->callbacks.on_events != NULL && monitor->wait_tracker == NULL)
        error = ew_wait_tracker_new(&monitor->wait_tracker);
    if (error == 0)
        error = ew_sampler_new(&wanted, &monitor->sampler);
    if (error != 0)
        return error;
    ew_sampler_facts(monitor->sampler, &monitor->facts);
    error = ew_watch_alerts_open(&monitor->alerts, &wanted, &monitor->facts);
    if (error != 0) {
        ew_sampler_free(monitor->sampler);
        monitor->sampler = NULL;
        return error;
    }
    ew_monitor_open_filter(monitor);
    return 0;
}

/* --------------------------------------------------------------------------- time */

/* The first interval end at or after t_ns, at the effective rate. */
static uint64_t next_end(const struct etwatch_monitor *monitor, uint64_t t_ns)
{
    if (t_ns <= monitor->epoch_ns)
        return monitor->epoch_ns;
    uint64_t count = (t_ns - monitor->epoch_ns + monitor->interval_ns - 1) / monitor->interval_ns;
    return monitor->epoch_ns + count * monitor->interval_ns;
}

static void apply_change(struct etwatch_monitor *monitor, uint64_t now_ns)
{
    if (monitor->change_at_ns == 0 || now_ns < monitor->change_at_ns)
        return;
    monitor->epoch_ns = monitor->change_at_ns;
    monitor->interval_ns = monitor->changed_interval_ns;
    monitor->change_at_ns = 0;
}

/* Wake-ups are at interval ends, as many intervals apart as the latency allows. */
static void plan_wake(struct etwatch_monitor *monitor, uint64_t now_ns)
{
    if (ew_monitor_replays(monitor)) {
        monitor->next_wake_ns = 0;
        return;
    }
    apply_change(monitor, now_ns);
    uint64_t latency_ns = polls(monitor) ? 0 : (uint64_t)monitor->config.latency_ms * 1000000ULL;
    uint64_t intervals = latency_ns / monitor->interval_ns;
    uint64_t period_ns = (intervals == 0 ? 1 : intervals) * monitor->interval_ns;
    uint64_t wake_ns = next_end(monitor, now_ns);
    if (intervals > 1) {
        uint64_t count = (wake_ns - monitor->epoch_ns + period_ns - 1) / period_ns;
        wake_ns = monitor->epoch_ns + count * period_ns;
    }
    wake_ns += polls(monitor) ? 0 : grace_ns;
    wake_ns = wake_ns > now_ns ? wake_ns : wake_ns + period_ns;
    const struct ew_source_ops *ops = monitor->source->ops;
    uint64_t due_ns = ops->due_ns != NULL ? ops->due_ns(monitor->source) : UINT64_MAX;
    bool queues = monitor->sensors != NULL || monitor->config.gpu_trace != NULL;
    if (queues && wake_ns > now_ns + sensor_wake_ns)
        wake_ns = now_ns + sensor_wake_ns;
    monitor->next_wake_ns = due_ns > now_ns && due_ns < wake_ns ? due_ns : wake_ns;
}

static void change_rate(struct etwatch_monitor *monitor, double hz, uint64_t now_ns)
{
    uint64_t interval_ns = interval_of(monitor, hz);
    if (interval_ns == monitor->interval_ns || monitor->change_at_ns != 0)
        return;
    uint64_t at_ns = next_end(monitor, now_ns + monitor->interval_ns + EW_SOURCE_AHEAD_NS);
    uint64_t window_ns = interval_ns / monitor->alerts.divisor;
    if (monitor->source->ops->set_interval(monitor->source, at_ns, window_ns) != 0 ||
        ew_watch_alerts_set_interval(&monitor->alerts, at_ns, interval_ns) != 0 ||
        ew_sampler_set_interval(monitor->sampler, at_ns, interval_ns) != 0)
        return;
    monitor->change_at_ns = at_ns;
    monitor->changed_interval_ns = interval_ns;
}

static uint64_t own_cost_ns(const struct etwatch_monitor *monitor)
{
    return monitor->self_cpu_ns + monitor->sensor_cpu_ns + monitor->source_stats.kernel_ns;
}

static void keep_budget(struct etwatch_monitor *monitor, uint64_t now_ns)
{
    if (ew_monitor_replays(monitor) || now_ns - monitor->budget_wall_ns < budget_period_ns)
        return;
    uint64_t cost_ns = own_cost_ns(monitor);
    double hz = ew_budget_feed(&monitor->budget, cost_ns - monitor->budget_cpu_ns,
                               now_ns - monitor->budget_wall_ns);
    monitor->budget_wall_ns = now_ns;
    monitor->budget_cpu_ns = cost_ns;
    if ((monitor->config.flags & ETWATCH_CONFIG_NO_BUDGET) == 0)
        change_rate(monitor, hz, now_ns);
}

/* -------------------------------------------------------------------------- steps */

void ew_monitor_refresh_counts(struct etwatch_monitor *monitor)
{
    if (monitor->source != NULL)
        monitor->source->ops->stats(monitor->source, &monitor->source_stats);
    if (monitor->sampler == NULL)
        return;
    ew_sampler_counts(monitor->sampler, &monitor->counts);
    monitor->counts.lost += ew_watch_alerts_lost(&monitor->alerts) + monitor->process_filter.lost;
}

static void close_retired(struct etwatch_monitor *monitor)
{
    if (monitor->retired != NULL)
        monitor->retired->ops->close(monitor->retired);
    monitor->retired = NULL;
}

static void close_stages(struct etwatch_monitor *monitor)
{
    close_retired(monitor);
    monitor->source->ops->close(monitor->source);
    ew_watch_alerts_close(&monitor->alerts);
    ew_process_filter_close(&monitor->process_filter);
    ew_top_n_done(&monitor->top_n);
    ew_sampler_free(monitor->sampler);
    ew_wait_tracker_free(monitor->wait_tracker);
    ew_sensors_close(monitor->sensors);
    ew_monitor_close_gpu_trace(monitor);
    monitor->sensors = NULL;
    monitor->source = NULL;
    monitor->sampler = NULL;
    monitor->wait_tracker = NULL;
}

/*
 * Own CPU time is that of the thread that waits and steps: waking up is the largest part of it. A
 * caller's loop does other things between two calls, so each call restarts the meter.
 */
void ew_monitor_meter(struct etwatch_monitor *monitor, bool count)
{
    uint64_t cpu_ns = ew_os_thread_cpu_ns();
    if (count)
        monitor->self_cpu_ns += cpu_ns - monitor->metered_ns;
    monitor->metered_ns = cpu_ns;
}

/* A recording has its own time and number of CPUs. */
static void adopt_source(struct etwatch_monitor *monitor)
{
    const struct ew_source_ops *ops = monitor->source->ops;
    monitor->source_id = ops->id;
    monitor->source_available = ops->available;
    monitor->source_estimated = ops->estimated;
    etwatch_metric_set_intersect(&monitor->source_available, &monitor->metrics);
    etwatch_metric_set_intersect(&monitor->source_estimated, &monitor->metrics);
    monitor->cpu_count = ew_os_cpu_count();
    ew_monitor_adopt_devices(monitor);
    if (ops->own_time == NULL)
        return;
    struct ew_source_time time;
    ops->own_time(monitor->source, &time);
    monitor->anchor_unix_ns = time.unix_ns;
    monitor->anchor_raw_ns = time.raw_ns;
    monitor->unix_minus_raw_ns = (int64_t)(time.unix_ns - time.raw_ns);
    monitor->epoch_ns = monitor->replayed_ns = time.raw_ns;
    monitor->cpu_count = time.cpu_count;
}

int ew_monitor_begin(struct etwatch_monitor *monitor, struct ew_error *reterr)
{
    monitor->ended = monitor->flushed = false;
    monitor->change_count = 0;
    ew_os_anchor(&monitor->anchor_unix_ns, &monitor->anchor_raw_ns);
    monitor->unix_minus_raw_ns = (int64_t)(monitor->anchor_unix_ns - monitor->anchor_raw_ns);
    ew_watch_alerts_divide(&monitor->alerts, (uint64_t)(1e9 / monitor->config.hz + 0.5));
    monitor->interval_ns = interval_of(monitor, monitor->config.hz);
    monitor->epoch_ns = monitor->anchor_raw_ns;
    monitor->change_at_ns = 0;
    monitor->self_cpu_ns = monitor->sensor_cpu_ns = 0;
    monitor->wakeups = 0;
    monitor->step_ns = monitor->step_max_ns = 0;
    monitor->closed_ns = monitor->delivered_ns = 0;
    memset(&monitor->source_stats, 0, sizeof monitor->source_stats);
    memset(&monitor->counts, 0, sizeof monitor->counts);
    ew_budget_init(&monitor->budget, monitor->config.hz, monitor->config.budget_percent);
    int error = ew_monitor_open_source(monitor, &monitor->source, reterr);
    if (error != 0)
        return error;
    monitor->source_id = monitor->source->ops->id;
    error = ew_monitor_open_devices(monitor);
    adopt_source(monitor);
    if (error == 0)
        error = open_stages(monitor);
    if (error != 0) {
        close_stages(monitor);
        return ew_error_set(reterr, error, 0, "out of memory");
    }
    monitor->opened_ns = monitor->epoch_ns;
    monitor->began = true;
    monitor->budget_wall_ns = ew_os_raw_ns();
    monitor->budget_cpu_ns = 0;
    ew_monitor_meter(monitor, false);
    /* At once, so that the preexisting processes are known before any event. */
    error = ew_monitor_step(monitor, reterr);
    if (error != 0)
        close_stages(monitor);
    return error;
}

static int drain(struct etwatch_monitor *monitor, uint64_t now_ns, uint64_t *ret_horizon_ns,
                 struct ew_error *reterr)
{
    return monitor->source->ops->drain(monitor->source, now_ns, &monitor->facts, ret_horizon_ns,
                                       reterr);
}

/* Delivers complete intervals. A recording delivers them while it is drained; the rest at its end.
 */
static int deliver_due(struct etwatch_monitor *monitor, uint64_t horizon_ns)
{
    const struct ew_source_ops *ops = monitor->source->ops;
    int count = 0;
    if (ops->ended == NULL) {
        count = ew_sampler_deliver(monitor->sampler, ew_monitor_gpu_horizon(monitor, horizon_ns));
    } else {
        monitor->replayed_ns = horizon_ns;
        monitor->ended = ops->ended(monitor->source);
        count = monitor->ended ? ew_sampler_finish(monitor->sampler, horizon_ns) : 0;
    }
    if (monitor->ended)
        ew_watch_alerts_finish(&monitor->alerts, horizon_ns);
    else
        ew_watch_alerts_advance(
            &monitor->alerts, horizon_ns, monitor->unix_minus_raw_ns,
            ew_monitor_replays(monitor) ? (uint64_t)monitor->config.latency_ms * 1000000 : 0);
    return count;
}

/*
 * The source has failed: what it reported is delivered, and polling starts from the beginning, with
 * all processes that exist now. Polling is opened first: if that fails, the stages are as they were
 * and the run ends with them.
 */
static int fall_back(struct etwatch_monitor *monitor, uint64_t now_ns, const struct ew_error *why,
                     struct ew_error *reterr)
{
    struct ew_source *polling = NULL, *failed = monitor->source;
    struct ew_sampler *old = monitor->sampler;
    const uint64_t epoch_ns = monitor->epoch_ns;
    monitor->epoch_ns = now_ns;
    int error = ew_monitor_open_polling(monitor, why, &polling, reterr);
    if (error != 0) {
        monitor->epoch_ns = epoch_ns;
        return error;
    }
    (void)ew_sampler_finish(old, now_ns);
    ew_watch_alerts_finish(&monitor->alerts, now_ns);
    ew_watch_alerts_close(&monitor->alerts);
    ew_process_filter_close(&monitor->process_filter);
    monitor->change_at_ns = 0;
    monitor->source = polling;
    error = open_stages(monitor);
    if (error != 0) {
        monitor->source = failed;
        monitor->sampler = old;
        monitor->flushed = true; /* monitor->facts leads nowhere any more */
        polling->ops->close(polling);
        return ew_error_set(reterr, error, 0, "out of memory");
    }
    ew_sampler_free(old);
    monitor->retired = failed; /* closed when no other thread waits on its descriptor */
    adopt_source(monitor);
    return 0;
}

static int drain_or_fall_back(struct etwatch_monitor *monitor, uint64_t now_ns,
                              uint64_t *ret_horizon_ns, struct ew_error *reterr)
{
    struct ew_error why;
    memset(&why, 0, sizeof why);
    int error = drain(monitor, now_ns, ret_horizon_ns, &why);
    if (error != 0 && ew_monitor_may_poll(monitor, monitor->source_id, error, &why)) {
        error = fall_back(monitor, now_ns, &why, reterr);
        return error == 0 ? drain(monitor, now_ns, ret_horizon_ns, reterr) : error;
    }
    if (error != 0 && reterr != NULL)
        *reterr = why;
    return error;
}

/* What callbacks requested while the stages were in use. */
static void apply_changes(struct etwatch_monitor *monitor)
{
    for (uint32_t i = 0; i < monitor->change_count; i++) {
        const struct ew_monitor_change *change = &monitor->changes[i];
        if (change->add)
            (void)monitor->source->ops->add(monitor->source, change->pid);
        else if (monitor->source->ops->remove(monitor->source, change->pid) == 0)
            (void)ew_sampler_forget(monitor->sampler, change->pid);
    }
    monitor->change_count = 0;
}

int ew_monitor_explain_limit(const struct etwatch_monitor *monitor, int error,
                             struct ew_error *reterr)
{
    if (error != ETWATCH_ENOMEM || !ew_alloc_limit_exceeded(monitor->memory))
        return error;
    (void)ew_error_set(reterr, ETWATCH_ELIMIT, 0,
                       "more memory is needed than the limit of %llu KiB",
                       (unsigned long long)(ew_alloc_limit_max(monitor->memory) >> 10));
    ew_error_fix(reterr, "raise the limit (--max-memory, max_memory_bytes), or select processes");
    return ETWATCH_ELIMIT;
}

int ew_monitor_step(struct etwatch_monitor *monitor, struct ew_error *reterr)
{
    uint64_t now_ns = ew_os_raw_ns(), horizon_ns = 0;
    struct ew_alloc_limit *before = ew_alloc_limit_use(monitor->memory);
    monitor->stepping = true;
    int error = drain_or_fall_back(monitor, now_ns, &horizon_ns, reterr);
    if (error == 0) {
        ew_monitor_drain_devices(monitor, now_ns);
        int count = deliver_due(monitor, horizon_ns);
        monitor->delivered_ns = horizon_ns;
        /* Out of memory is a loss: counted and marked; the run continues. */
        error = count < 0 && count != ETWATCH_ENOMEM ? count : 0;
    }
    monitor->stepping = false;
    apply_changes(monitor);
    if (monitor->waiting == 0)
        close_retired(monitor);
    if (monitor->wakeups % 8 == 0 || now_ns - monitor->budget_wall_ns >= budget_period_ns)
        ew_monitor_refresh_counts(monitor);
    monitor->wakeups++;
    keep_budget(monitor, now_ns);
    uint64_t end_ns = ew_os_raw_ns();
    plan_wake(monitor, end_ns);
    monitor->step_ns += end_ns - now_ns;
    if (end_ns - now_ns > monitor->step_max_ns)
        monitor->step_max_ns = end_ns - now_ns;
    ew_monitor_meter(monitor, true);
    (void)ew_alloc_limit_use(before);
    return ew_monitor_explain_limit(monitor, error, reterr);
}

void ew_monitor_flush(struct etwatch_monitor *monitor)
{
    struct ew_error ignored; /* the run is over; what could be delivered was */
    bool complete = true;
    if (monitor->flushed)
        return;
    monitor->flushed = true;
    monitor->stepping = true;
    /* Up to now: otherwise the time since their last reading would be missing. */
    if (monitor->failed == 0 && monitor->sensors != NULL)
        ew_sensors_read_now(monitor->sensors, LAST_READING_MS);
    uint64_t now_ns = ew_monitor_now(monitor), horizon_ns = now_ns;
    struct ew_alloc_limit *before = ew_alloc_limit_use(monitor->memory);
    /* A recording is not read any further, a source that failed neither. */
    if (monitor->failed == 0 && monitor->source->ops->finish != NULL)
        (void)monitor->source->ops->finish(monitor->source, now_ns, &monitor->facts, &ignored);
    else if (monitor->failed == 0 && !ew_monitor_replays(monitor))
        complete = drain(monitor, now_ns, &horizon_ns, &ignored) == 0;
    if (complete) {
        ew_monitor_drain_devices(monitor, now_ns);
        (void)ew_sampler_finish(monitor->sampler, now_ns);
        ew_watch_alerts_finish(&monitor->alerts, now_ns);
    }
    monitor->stepping = false;
    monitor->change_count = 0;
    (void)ew_alloc_limit_use(before);
}

void ew_monitor_end(struct etwatch_monitor *monitor)
{
    ew_monitor_flush(monitor);
    ew_monitor_refresh_counts(monitor);
    monitor->closed_ns = ew_monitor_now(monitor);
    close_stages(monitor);
}
