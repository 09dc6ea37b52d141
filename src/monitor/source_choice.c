/* SPDX-License-Identifier: MIT */
/*
 * Which source a monitor watches with: what the configuration means for it, how an ETW session of
 * ours is described, and when polling replaces a source that cannot be opened or has failed.
 *
 * Every source is opened by open_one, because the metrics that a monitor measures are those of the
 * source it really has.
 */
#include <stdio.h>
#include <string.h>

#include "monitor/monitor.h"
#include "source/etw/consumer.h"
#include "source/etw/session_options.h"

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
        ret->filter.all = true; /* the process filter selects */
        ret->filter.uid_count = 0;
    }
    const struct ew_process_filter_rules rules = ew_monitor_filter_rules(monitor);
    ret->filter.excludes = ew_process_filter_needed(&rules);
    ret->threads = (config->flags & ETWATCH_CONFIG_THREADS) != 0 || config->alert_count > 0;
    ret->events = (config->flags & ETWATCH_CONFIG_EVENTS) != 0;
    ret->events_all = (config->flags & ETWATCH_CONFIG_EVENTS_ALL) != 0;
    ret->causes = (config->flags & ETWATCH_CONFIG_EVENTS_CAUSES) != 0;
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

/* One line for the user: what failed, what happens instead, and the fix. */
static void note_fallback(struct etwatch_monitor *monitor, const struct ew_error *error)
{
    (void)snprintf(monitor->fallback, sizeof monitor->fallback,
                   "%.200s; polling instead (short-lived processes are missed)%s%.220s",
                   error->message, error->fix[0] == '\0' ? "" : "; fix: ", error->fix);
}

/* Likewise: a requested extra was refused, and the source goes on without it. */
static void note_refused(struct etwatch_monitor *monitor, const struct ew_source *source)
{
    const struct ew_error *why = source->ops->refused != NULL ? source->ops->refused(source) : NULL;
    if (why != NULL)
        (void)snprintf(monitor->fallback, sizeof monitor->fallback,
                       "%.200s; the session goes on without it%s%.220s", why->message,
                       why->fix[0] == '\0' ? "" : "; fix: ", why->fix);
}

/* Missing rights. ETW also: no session is available, another program stopped ours, or Windows
 * refused a call for any reason. What we refuse ourselves (no os_code) is the caller's mistake. */
bool ew_monitor_may_poll(const struct etwatch_monitor *monitor, uint32_t source, int error,
                         const struct ew_error *why)
{
    bool has_reason = error == ETWATCH_EPERM || error == ETWATCH_ENOTSUP;
    if (source == ETWATCH_SOURCE_ETW)
        has_reason =
            has_reason || error == ETWATCH_ELIMIT || error == ETWATCH_ESTATE || why->os_code != 0;
    return has_reason && monitor->config.source == ETWATCH_SOURCE_AUTO &&
           monitor->config.session == NULL &&
           (monitor->config.flags & ETWATCH_CONFIG_NO_FALLBACK) == 0 &&
           (monitor->config.flags & (ETWATCH_CONFIG_EVENTS | ETWATCH_CONFIG_EVENTS_ALL)) !=
               ETWATCH_CONFIG_EVENTS;
}

/* A described ETW session selects ETW even where another source is the native one. */
static const struct ew_source_ops *event_source(const struct etwatch_monitor *monitor)
{
    bool described =
        monitor->etw != NULL || monitor->config.session != NULL || monitor->session_options != NULL;
    return described ? &ew_source_etw : ew_source_native();
}

/* On a system without ETW session options are an error; they do not select another source silently.
 * Process and thread events are always logged: without them no other event could be attributed. */
static int describe_session(struct etwatch_monitor *monitor, struct ew_etw_config *etw,
                            struct ew_error *reterr)
{
    const struct ew_etw_api *api = etw->api != NULL ? etw->api : ew_etw_real_api(reterr);
    if (api == NULL) /* on Windows the source will fail likewise, and polling may be allowed */
        return ew_source_native()->id == ETWATCH_SOURCE_ETW ? 0 : ETWATCH_ENOTSUP;
    int error = ew_session_options_resolve(monitor->session_options, api, reterr);
    etw->session = monitor->session_options->session;
    etw->no_buffers = monitor->session_options->no_buffers;
    etw->flush_ms = monitor->session_options->flush_ms != 0 ? monitor->session_options->flush_ms
                                                            : etw->flush_ms;
    if (etw->session.kernel != 0)
        etw->session.kernel |= EW_ETW_PROCESS | EW_ETW_THREAD;
    return error;
}

/* The metrics depend on the defaults of the source. Those of alerts and of top_n are measured too.
 */
static int open_one(struct etwatch_monitor *monitor, const struct ew_source_ops *ops,
                    struct ew_source_config *wanted, struct ew_source **ret_source,
                    struct ew_error *reterr)
{
    monitor->metrics = ew_metrics_selected(ops->backend, &monitor->config.metrics);
    ew_watch_alerts_add_metrics(&monitor->alerts, &monitor->metrics);
    if (monitor->config.top_n != 0)
        etwatch_metric_set_add(&monitor->metrics, monitor->config.top_n_metric);
    wanted->metrics = monitor->metrics;
    wanted->polled = (struct etwatch_metric_set){{0}};
    if (ops->id == ETWATCH_SOURCE_EBPF)
        wanted->polled = ew_metrics_polled(&monitor->config.polled_metrics);
    return ops->open(wanted, ret_source, reterr);
}

int ew_monitor_open_polling(struct etwatch_monitor *monitor, const struct ew_error *why,
                            struct ew_source **ret_source, struct ew_error *reterr)
{
    struct ew_source_config wanted;
    struct ew_error own;
    const struct etwatch_metric_set metrics = monitor->metrics;
    memset(&own, 0, sizeof own);
    source_config(monitor, &wanted);
    int error = open_one(monitor, &ew_source_poll, &wanted, ret_source, &own);
    if (error != 0) {
        monitor->metrics = metrics;
        (void)ew_error_set(reterr, error, own.os_code, "%.120s; polling failed too: %.100s",
                           why->message, own.message);
        ew_error_fix(reterr, "%s", why->fix);
        return error;
    }
    note_fallback(monitor, why);
    return 0;
}

int ew_monitor_open_source(struct etwatch_monitor *monitor, struct ew_source **ret_source,
                           struct ew_error *reterr)
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
    if (monitor->session_options != NULL) {
        int error = describe_session(monitor, &etw, reterr);
        if (error != 0)
            return error;
    }
    etw.session.optional =
        config->source == ETWATCH_SOURCE_AUTO && (config->flags & ETWATCH_CONFIG_NO_FALLBACK) == 0;
    wanted.etw = &etw; /* only used during open */
    monitor->fallback[0] = '\0';
    if (config->source == ETWATCH_SOURCE_POLL)
        return open_one(monitor, &ew_source_poll, &wanted, ret_source, reterr);
    if (config->source == ETWATCH_SOURCE_ETL)
        return open_one(monitor, &ew_source_etl, &wanted, ret_source, reterr);
    memset(&why, 0, sizeof why);
    const struct ew_source_ops *events = event_source(monitor);
    int error = open_one(monitor, events, &wanted, ret_source, &why);
    if (error == 0)
        note_refused(monitor, *ret_source);
    if (error == 0)
        return 0;
    if (ew_monitor_may_poll(monitor, events->id, error, &why))
        return ew_monitor_open_polling(monitor, &why, ret_source, reterr);
    if (reterr != NULL)
        *reterr = why;
    return error;
}
