/* SPDX-License-Identifier: MIT */
/*
 * The one place that wires source, sampler and the user together, and decides when to wake up.
 *
 * Samples are cut by event time, so the rate of samples does not set the rate of wake-ups: the loop
 * wakes when a latency's worth of intervals is over, a moment after the last of them ended, or
 * earlier if the source's buffers fill up. A polling source knows nothing of the past and has to be
 * woken for each interval.
 */
#include <stdio.h>
#include <string.h>

#include "monitor/monitor.h"
#include "source/etw/consumer.h"
#include "source/etw/session_options.h"

/* After an interval's end, before its facts are taken: longer than a switch takes to be noted. */
static const uint64_t grace_ns = 1000 * 1000ULL;
static const uint64_t budget_period_ns = 1000 * 1000 * 1000ULL;

/* A whole number of the windows that alerts are looked for in. */
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
    if (monitor->config.callbacks.on_samples != NULL)
        monitor->config.callbacks.on_samples(monitor->config.callbacks.ctx, samples, count);
}

/* Alerts are on every process, whoever is delivered. */
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
    bool events = loss->stage == ETWATCH_LOSS_STREAM || loss->stage == ETWATCH_LOSS_KERNEL_LOG;
    if (events && monitor->wait_tracker != NULL)
        ew_wait_tracker_gap(monitor->wait_tracker);
    if (monitor->config.callbacks.on_loss != NULL)
        monitor->config.callbacks.on_loss(monitor->config.callbacks.ctx, loss);
}

/* The full stream passes through, with its times turned and waits told. */
static void on_events(void *ctx, const struct etwatch_event *events, size_t count)
{
    struct etwatch_monitor *monitor = ctx;
    for (size_t i = 0; i < count && monitor->wait_tracker != NULL; i++) {
        struct etwatch_event event = events[i];
        ew_wait_tracker_event(monitor->wait_tracker, &event);
        monitor->config.callbacks.on_events(monitor->config.callbacks.ctx, &event, 1);
    }
}

static void on_describe(void *ctx, uint32_t pid, uint32_t uid, uint64_t cgroup_id,
                        const char **ret_user, const char **ret_cgroup, const char **ret_cmdline)
{
    struct etwatch_monitor *monitor = ctx;
    if (ew_monitor_replays(monitor)) {
        /* The processes of this machine have nothing to do with those of a recording. */
        *ret_user = *ret_cgroup = NULL;
        *ret_cmdline = monitor->source->ops->cmdline(monitor->source, pid);
        return;
    }
    ew_describe_process(&monitor->describe, pid, uid, cgroup_id, ret_user, ret_cgroup, ret_cmdline);
}

/* --------------------------------------------------------------------- the source */

static void source_config(const struct etwatch_monitor *monitor, struct ew_source_config *ret)
{
    const struct etwatch_config *config = &monitor->config;
    memset(ret, 0, sizeof *ret);
    ret->filter = (struct ew_filter){
        .all = (config->flags & ETWATCH_CONFIG_ALL) != 0,
        .kernel_threads = (config->flags & ETWATCH_CONFIG_KERNEL_THREADS) != 0,
        .pids = config->pids,
        .pid_count = config->pid_count,
        .names = config->names,
        .name_count = config->name_count,
        .uids = config->uids,
        .uid_count = config->uid_count,
        .cgroups = config->cgroups,
        .cgroup_count = config->cgroup_count,
    };
    if (config->uid_count > 0 && !ew_os_has_uids()) {
        ret->filter.all = true; /* the gate chooses */
        ret->filter.uid_count = 0;
    }
    const struct ew_process_filter_rules rules = ew_monitor_filter_rules(monitor);
    ret->filter.excludes = ew_process_filter_needed(&rules);
    ret->threads = (config->flags & ETWATCH_CONFIG_THREADS) != 0 || config->alert_count > 0;
    ret->events = (config->flags & ETWATCH_CONFIG_EVENTS) != 0;
    ret->events_all = (config->flags & ETWATCH_CONFIG_EVENTS_ALL) != 0;
    ret->max_processes = config->max_processes;
    ret->proc_root = config->proc_root;
    ret->epoch_ns = monitor->epoch_ns;
    ret->interval_ns = monitor->interval_ns / monitor->alerts.divisor;
    ret->sample_ns = monitor->interval_ns;
    ret->traces = config->traces;
    ret->trace_count = config->trace_count;
    ret->max_threads = config->max_threads;
    ret->cmdlines = (config->flags & ETWATCH_CONFIG_CMDLINE) != 0;
    ret->metrics = monitor->metrics;
    ret->rates = config->rates;
    ret->rate_count = config->rate_count;
}

/* One line for the user: what failed, what happens instead, and what would mend it. */
static void note_fallback(struct etwatch_monitor *monitor, const struct ew_error *error)
{
    (void)snprintf(monitor->fallback, sizeof monitor->fallback,
                   "%.200s; polling instead (short-lived processes are missed)%s%.220s",
                   error->message, error->fix[0] == '\0' ? "" : "; fix: ", error->fix);
}

/* Missing rights. For ETW also: no session is to be had, or somebody else stopped ours. */
static bool may_poll(const struct etwatch_monitor *monitor, uint32_t source, int error)
{
    bool has_reason = error == ETWATCH_EPERM || error == ETWATCH_ENOTSUP;
    if (source == ETWATCH_SOURCE_ETW)
        has_reason = has_reason || error == ETWATCH_ELIMIT || error == ETWATCH_ESTATE;
    return has_reason && monitor->config.source == ETWATCH_SOURCE_AUTO &&
           monitor->config.session == NULL &&
           (monitor->config.flags & ETWATCH_CONFIG_NO_FALLBACK) == 0 &&
           (monitor->config.flags & (ETWATCH_CONFIG_EVENTS | ETWATCH_CONFIG_EVENTS_ALL)) !=
               ETWATCH_CONFIG_EVENTS;
}

/* A session that was described is what is meant, also where another source would be the first. */
static const struct ew_source_ops *event_source(const struct etwatch_monitor *monitor)
{
    bool described =
        monitor->etw != NULL || monitor->config.session != NULL || monitor->wanted != NULL;
    return described ? &ew_source_etw : ew_source_native();
}

/* On a system without ETW it is not silently something else that watches. Processes and threads are
 * always logged: without them nobody would know whose the rest is. */
static int describe_session(struct etwatch_monitor *monitor, struct ew_etw_config *etw,
                            struct ew_error *reterr)
{
    const struct ew_etw_api *api = etw->api != NULL ? etw->api : ew_etw_real_api(reterr);
    if (api == NULL) /* on Windows the source will say the same, and polling may be meant then */
        return ew_source_native()->id == ETWATCH_SOURCE_ETW ? 0 : ETWATCH_ENOTSUP;
    int error = ew_session_options_resolve(monitor->wanted, api, reterr);
    etw->session = monitor->wanted->session;
    etw->flush_ms = monitor->wanted->flush_ms != 0 ? monitor->wanted->flush_ms : etw->flush_ms;
    if (etw->session.kernel != 0)
        etw->session.kernel |= EW_ETW_PROCESS | EW_ETW_THREAD;
    return error;
}

/* What is measured depends on what this source brings by itself; what an alert or the choice of the
 * busiest goes by is measured too. */
static int open_one(struct etwatch_monitor *monitor, const struct ew_source_ops *ops,
                    struct ew_source_config *wanted, struct ew_error *reterr)
{
    monitor->metrics = ew_metrics_selected(ops->backend, &monitor->config.metrics);
    ew_watch_alerts_add_metrics(&monitor->alerts, &monitor->metrics);
    if (monitor->config.top_n != 0)
        etwatch_metric_set_add(&monitor->metrics, monitor->config.top_n_metric);
    wanted->metrics = monitor->metrics;
    wanted->polled = (struct etwatch_metric_set){{0}};
    if (ops->id == ETWATCH_SOURCE_EBPF)
        wanted->polled = ew_metrics_polled(&monitor->config.polled_metrics);
    return ops->open(wanted, &monitor->source, reterr);
}

static int open_source(struct etwatch_monitor *monitor, struct ew_error *reterr)
{
    const struct etwatch_config *config = &monitor->config;
    struct ew_source_config wanted;
    struct ew_etw_config etw = {0};
    struct ew_error why;
    source_config(monitor, &wanted);
    if (monitor->etw != NULL)
        etw = *monitor->etw;
    if (config->session != NULL)
        etw.attach = config->session;
    if (monitor->wanted != NULL) {
        int error = describe_session(monitor, &etw, reterr);
        if (error != 0)
            return error;
    }
    wanted.etw = &etw; /* until it is open */
    monitor->fallback[0] = '\0';
    if (config->source == ETWATCH_SOURCE_POLL)
        return open_one(monitor, &ew_source_poll, &wanted, reterr);
    if (config->source == ETWATCH_SOURCE_ETL)
        return open_one(monitor, &ew_source_etl, &wanted, reterr);
    memset(&why, 0, sizeof why);
    const struct ew_source_ops *events = event_source(monitor);
    int error = open_one(monitor, events, &wanted, &why);
    if (error == 0)
        return 0;
    if (!may_poll(monitor, events->id, error)) {
        if (reterr != NULL)
            *reterr = why;
        return error;
    }
    note_fallback(monitor, &why);
    return open_one(monitor, &ew_source_poll, &wanted, reterr);
}

static int open_sampler(struct etwatch_monitor *monitor)
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
    };
    monitor->top_n.count = config->top_n;
    monitor->top_n.metric = config->top_n_metric;
    monitor->top_n.ctx = monitor;
    monitor->top_n.deliver = deliver;
    int error = 0;
    if (config->callbacks.on_events != NULL && monitor->wait_tracker == NULL)
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

/* The first interval end at or after t_ns, in the intervals in force. */
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

/* Wake-ups fall on interval ends, as many intervals apart as the latency allows. */
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
    return monitor->self_cpu_ns + monitor->source_stats.kernel_ns;
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
    if (monitor->sampler != NULL)
        ew_sampler_counts(monitor->sampler, &monitor->counts);
    monitor->counts.lost += ew_watch_alerts_lost(&monitor->alerts) + monitor->process_filter.lost;
}

static void close_stages(struct etwatch_monitor *monitor)
{
    monitor->source->ops->close(monitor->source);
    ew_watch_alerts_close(&monitor->alerts);
    ew_process_filter_close(&monitor->process_filter);
    ew_top_n_done(&monitor->top_n);
    ew_sampler_free(monitor->sampler);
    ew_wait_tracker_free(monitor->wait_tracker);
    monitor->source = NULL;
    monitor->sampler = NULL;
    monitor->wait_tracker = NULL;
}

/*
 * Own CPU time is that of the thread that waits and steps: waking up is the largest part of it. A
 * caller's loop does other things between two calls, so it starts the meter anew with each.
 */
void ew_monitor_meter(struct etwatch_monitor *monitor, bool count)
{
    uint64_t cpu_ns = ew_os_thread_cpu_ns();
    if (count)
        monitor->self_cpu_ns += cpu_ns - monitor->metered_ns;
    monitor->metered_ns = cpu_ns;
}

/* A recording brings its own time and machine. */
static void adopt_source(struct etwatch_monitor *monitor)
{
    const struct ew_source_ops *ops = monitor->source->ops;
    monitor->source_id = ops->id;
    monitor->source_available = ops->available;
    monitor->source_estimated = ops->estimated;
    etwatch_metric_set_intersect(&monitor->source_available, &monitor->metrics);
    etwatch_metric_set_intersect(&monitor->source_estimated, &monitor->metrics);
    monitor->cpu_count = ew_os_cpu_count();
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
    monitor->ended = false;
    ew_os_anchor(&monitor->anchor_unix_ns, &monitor->anchor_raw_ns);
    monitor->unix_minus_raw_ns = (int64_t)(monitor->anchor_unix_ns - monitor->anchor_raw_ns);
    ew_watch_alerts_divide(&monitor->alerts, (uint64_t)(1e9 / monitor->config.hz + 0.5));
    monitor->interval_ns = interval_of(monitor, monitor->config.hz);
    monitor->epoch_ns = monitor->anchor_raw_ns;
    monitor->change_at_ns = 0;
    monitor->self_cpu_ns = 0;
    monitor->wakeups = 0;
    monitor->step_ns = monitor->step_max_ns = 0;
    monitor->closed_ns = monitor->cut_ns = 0;
    memset(&monitor->source_stats, 0, sizeof monitor->source_stats);
    memset(&monitor->counts, 0, sizeof monitor->counts);
    ew_budget_init(&monitor->budget, monitor->config.hz, monitor->config.budget_percent);
    int error = open_source(monitor, reterr);
    if (error != 0)
        return error;
    adopt_source(monitor);
    error = open_sampler(monitor);
    if (error != 0) {
        close_stages(monitor);
        return ew_error_set(reterr, error, 0, "out of memory");
    }
    monitor->opened_ns = monitor->epoch_ns;
    monitor->began = true;
    monitor->budget_wall_ns = ew_os_raw_ns();
    monitor->budget_cpu_ns = 0;
    ew_monitor_meter(monitor, false);
    /* At once: who is there is known before anything happens. */
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

/* Delivers what is finished. A recording has it cut while it tells; at its end comes the rest. */
static int cut(struct etwatch_monitor *monitor, uint64_t horizon_ns)
{
    const struct ew_source_ops *ops = monitor->source->ops;
    int count = 0;
    if (ops->ended == NULL) {
        count = ew_sampler_deliver(monitor->sampler, horizon_ns);
    } else {
        monitor->replayed_ns = horizon_ns;
        monitor->ended = ops->ended(monitor->source);
        count = monitor->ended ? ew_sampler_finish(monitor->sampler, horizon_ns) : 0;
    }
    if (monitor->ended)
        ew_watch_alerts_finish(&monitor->alerts, horizon_ns);
    else
        ew_watch_alerts_cut(
            &monitor->alerts, horizon_ns, monitor->unix_minus_raw_ns,
            ew_monitor_replays(monitor) ? (uint64_t)monitor->config.latency_ms * 1000000 : 0);
    return count;
}

/* The source is gone in the middle: what it told is told to its end, and polling begins anew, with
 * everybody who is there. */
static int fall_back(struct etwatch_monitor *monitor, uint64_t now_ns, const struct ew_error *why,
                     struct ew_error *reterr)
{
    struct ew_source_config wanted;
    struct ew_source *gone = monitor->source, *poll = NULL;
    struct ew_sampler *old = monitor->sampler;
    (void)ew_sampler_finish(old, now_ns);
    ew_watch_alerts_finish(&monitor->alerts, now_ns);
    ew_watch_alerts_close(&monitor->alerts);
    ew_process_filter_close(&monitor->process_filter);
    monitor->epoch_ns = now_ns;
    monitor->change_at_ns = 0;
    source_config(monitor, &wanted);
    int error = ew_source_poll.open(&wanted, &poll, reterr);
    if (error != 0)
        return error;
    monitor->source = poll;
    error = open_sampler(monitor);
    if (error != 0) {
        monitor->source = gone;
        monitor->sampler = old;
        poll->ops->close(poll);
        return ew_error_set(reterr, error, 0, "out of memory");
    }
    gone->ops->close(gone);
    ew_sampler_free(old);
    adopt_source(monitor);
    note_fallback(monitor, why);
    return 0;
}

static int drain_or_fall_back(struct etwatch_monitor *monitor, uint64_t now_ns,
                              uint64_t *ret_horizon_ns, struct ew_error *reterr)
{
    struct ew_error why;
    memset(&why, 0, sizeof why);
    int error = drain(monitor, now_ns, ret_horizon_ns, &why);
    if (error != 0 && may_poll(monitor, monitor->source_id, error)) {
        error = fall_back(monitor, now_ns, &why, reterr);
        return error == 0 ? drain(monitor, now_ns, ret_horizon_ns, reterr) : error;
    }
    if (error != 0 && reterr != NULL)
        *reterr = why;
    return error;
}

int ew_monitor_step(struct etwatch_monitor *monitor, struct ew_error *reterr)
{
    uint64_t now_ns = ew_os_raw_ns(), horizon_ns = 0;
    monitor->stepping = true;
    int error = drain_or_fall_back(monitor, now_ns, &horizon_ns, reterr);
    if (error == 0) {
        int count = cut(monitor, horizon_ns);
        monitor->cut_ns = horizon_ns;
        /* Short of memory is a loss like any other: counted, marked, and we go on. */
        error = count < 0 && count != ETWATCH_ENOMEM ? count : 0;
    }
    monitor->stepping = false;
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
    return error;
}

void ew_monitor_end(struct etwatch_monitor *monitor)
{
    struct ew_error ignored;
    uint64_t now_ns = ew_monitor_now(monitor), horizon_ns = now_ns;
    bool told = true;
    monitor->stepping = true;
    /* Of a recording only what was told so far: the rest is not asked for any more. */
    if (monitor->source->ops->finish != NULL)
        (void)monitor->source->ops->finish(monitor->source, now_ns, &monitor->facts, &ignored);
    else if (!ew_monitor_replays(monitor))
        told = drain(monitor, now_ns, &horizon_ns, &ignored) == 0;
    if (told) {
        (void)ew_sampler_finish(monitor->sampler, now_ns);
        ew_watch_alerts_finish(&monitor->alerts, now_ns);
    }
    monitor->stepping = false;
    ew_monitor_refresh_counts(monitor);
    monitor->closed_ns = ew_monitor_now(monitor);
    close_stages(monitor);
}
