/* SPDX-License-Identifier: MIT */
/*
 * Owns the monitor and the sink of one watch. Everything happens on one thread: the loop calls the
 * monitor, the monitor calls back with samples, the sink formats, and one write follows. So the
 * rights given up are those of the whole program, and a slow reader slows only us.
 *
 * The order of the output is kept here: meta before anything else, stats after everything.
 */
#include "cli/watch_run.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <etwatch/metrics.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "cli/args/etw_options.h"
#include "cli/signals.h"
#include "cli/term.h"
#include "os/os.h"
#include "sampler/alert.h"
#include "sink/alert.h"
#include "base/units.h"

enum { LONGEST_WAIT_MS = 250 };

static void say(const char *format, va_list args)
{
    char line[1200];
    (void)vsnprintf(line, sizeof line, format, args);
    (void)fprintf(stderr, "etwatch: %s\n", line);
}

void ew_complain(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
}

void ew_say(const struct ew_options *options, const char *format, ...)
{
    va_list args;
    if (options->quiet)
        return;
    va_start(args, format);
    say(format, args);
    va_end(args);
}

/* --------------------------------------------------------------------- callbacks */

static void keep_error(struct ew_watch *session, int rc)
{
    if (rc < 0 && session->error == 0)
        session->error = rc;
}

/* The first delivery may come while the monitor still opens: meta is asked for as late as that. */
/* A condition about what is not measured here never holds: better to be told than to wait. */
static void warn_of_alerts(const struct ew_watch *session)
{
    const struct ew_list *alerts = &session->options->alerts;
    for (uint32_t i = 0; i < alerts->count; i++) {
        struct ew_alert_rule rule;
        const char *why = NULL;
        if (ew_alert_parse(alerts->words[i], &rule, NULL) == 0)
            why = etwatch_monitor_unavailable_reason(session->monitor, rule.metric);
        if (why != NULL)
            ew_say(session->options, "\"%s\" will never be told, it is not measured here: %s",
                   alerts->words[i], why);
    }
}

static void begin_output(struct ew_watch *session)
{
    if (session->meta_known)
        return;
    session->meta.size = sizeof session->meta;
    int rc = etwatch_monitor_meta(session->monitor, &session->meta);
    keep_error(session, rc);
    if (rc < 0)
        return;
    session->meta_known = true;
    if (session->meta.source == ETWATCH_SOURCE_ETL && session->options->duration_s > 0)
        session->end_unix_ns =
            session->meta.anchor_unix_ns + (uint64_t)(session->options->duration_s * 1e9);
    if (session->meta.fallback[0] != '\0')
        ew_say(session->options, "%s", session->meta.fallback);
    warn_of_alerts(session);
    if (session->options->alerts.count > 0 && session->meta.source == ETWATCH_SOURCE_POLL)
        ew_say(session->options, "polling: alerts are as fine as --hz, shorter spikes are missed");
    if (session->tap != NULL)
        keep_error(session, session->tap->meta(session->tap_ctx, &session->meta));
    if (session->sink != NULL)
        keep_error(session, etwatch_sink_meta(session->sink, &session->meta));
}

static void flush(struct ew_watch *session)
{
    if (session->tap != NULL)
        keep_error(session, session->tap->flush(session->tap_ctx));
    if (session->sink != NULL)
        keep_error(session, etwatch_sink_flush(session->sink));
}

static void count_live(struct ew_watch *session, const struct etwatch_sample *sample)
{
    if (sample->type == ETWATCH_TYPE_START) {
        session->live++;
        session->any_started = true;
        session->system_started += (sample->flags & ETWATCH_SAMPLE_PREEXISTING) == 0;
    } else if (sample->type == ETWATCH_TYPE_EXIT) {
        session->live -= session->live > 0;
        session->system_ended++;
    }
}

/* How many of them lie before the end of --duration in a recording: intervals come in order. */
static size_t before_end(struct ew_watch *session, const struct etwatch_sample *samples,
                         size_t count)
{
    size_t kept = 0;
    while (kept < count && samples[kept].t_ns <= session->end_unix_ns)
        kept++;
    session->past_end = session->past_end || kept < count;
    return kept;
}

static void on_samples(void *ctx, const struct etwatch_sample *samples, size_t count)
{
    struct ew_watch *session = ctx;
    bool windows = session->windows.length_ns > 0;
    begin_output(session);
    if (session->past_end)
        return;
    if (session->end_unix_ns != 0)
        count = before_end(session, samples, count);
    for (size_t i = 0; i < count; i++) {
        count_live(session, &samples[i]);
        if (session->on_sample != NULL)
            keep_error(session, session->on_sample(session->ctx, &samples[i]));
        if (windows && session->error == 0)
            keep_error(session,
                       ew_window_aggregate_add(&session->windows, &samples[i], session->sink));
    }
    if (session->tap != NULL)
        keep_error(session, session->tap->samples(session->tap_ctx, samples, count));
    bool held = session->options->keep > 0 || session->no_samples;
    if (session->sink != NULL && !windows && !held)
        keep_error(session, etwatch_sink_samples(session->sink, samples, count));
}

static void on_events(void *ctx, const struct etwatch_event *events, size_t count)
{
    struct ew_watch *session = ctx;
    begin_output(session);
    if (session->tap != NULL)
        keep_error(session, session->tap->events(session->tap_ctx, events, count));
    if (session->on_events != NULL)
        session->on_events(session->ctx, events, count);
    if (session->sink != NULL && !session->no_samples && !session->no_events)
        keep_error(session, etwatch_sink_events(session->sink, events, count));
}

static void on_loss(void *ctx, const struct etwatch_loss *loss)
{
    struct ew_watch *session = ctx;
    begin_output(session);
    if (session->on_loss != NULL)
        session->on_loss(session->ctx, loss);
    if (session->tap != NULL)
        keep_error(session, session->tap->loss(session->tap_ctx, loss));
    if (session->sink != NULL)
        keep_error(session, etwatch_sink_loss(session->sink, loss));
}

/* In the stream where that has a place for it, else as words. */
static void on_alert(void *ctx, const struct etwatch_alert *alert)
{
    struct ew_watch *session = ctx;
    struct ew_buf words;
    begin_output(session);
    session->alerts++;
    if (session->tap != NULL)
        keep_error(session, session->tap->alert(session->tap_ctx, alert));
    if (session->sink != NULL && session->options->json) {
        keep_error(session, etwatch_sink_alert(session->sink, alert));
        return;
    }
    ew_buf_init(&words, 0, NULL, NULL);
    ew_alert_text(&words, alert);
    ew_buf_char(&words, '\0');
    if (words.error == 0)
        (void)snprintf(session->last_alert, sizeof session->last_alert, "%s", words.data);
    ew_buf_done(&words);
    if (session->options->command != EW_CMD_TOP)
        ew_say(session->options, "alert: %s", session->last_alert);
}

/* ----------------------------------------------------------------------- opening */

/* The machine that was watched: this one, or the one that a recording is from. */
static int name_machine(const struct ew_options *options, char *host, char *os, size_t size)
{
    struct etwatch_error_info err = {.size = sizeof err};
    struct etwatch_trace_file file = {.size = sizeof file};
    struct etwatch_trace *trace = NULL;
    if (options->files.count == 0) {
        ew_os_host_name(host, size);
        ew_os_system_name(os, size);
        return EW_EXIT_OK;
    }
    int rc = etwatch_trace_open((const char *const *)options->files.words, options->files.count,
                                NULL, &trace, &err);
    if (rc == 0)
        rc = etwatch_trace_file(trace, 0, &file);
    if (rc == 0)
        (void)snprintf(os, size, "Windows %u.%u.%u", file.os_major, file.os_minor, file.os_build);
    else
        ew_complain("%s%s%s", err.message[0] != '\0' ? err.message : etwatch_strerror(rc),
                    err.fix[0] != '\0' ? "; " : "", err.fix);
    etwatch_trace_free(trace);
    host[0] = '\0';
    return rc == 0 ? EW_EXIT_OK : EW_EXIT_FAILED;
}

static int make_sink(struct ew_watch *session, uint32_t format)
{
    const struct ew_options *options = session->options;
    struct etwatch_error_info err = {.size = sizeof err};
    char host[256], os[256];
    uint32_t rows;
    int code = name_machine(options, host, os, sizeof host);
    if (code != EW_EXIT_OK)
        return code;
    struct etwatch_sink_options wanted = {
        .size = sizeof wanted,
        .host = host[0] != '\0' ? host : NULL,
        .os = os,
        .columns = (const char *const *)options->columns.words,
        .column_count = options->columns.count,
    };
    if ((options->config_flags & ETWATCH_CONFIG_CMDLINE) != 0)
        wanted.flags |= ETWATCH_SINK_CMDLINE;
    if (options->output_path == NULL && ew_term_is(EW_TERM_OUT))
        ew_term_size(&wanted.width, &rows);
    if (options->output_path == NULL && ew_term_color(EW_TERM_OUT))
        wanted.flags |= ETWATCH_SINK_COLOR;
    int rc =
        etwatch_sink_new(format, ew_output_write, &session->output, &wanted, &session->sink, &err);
    if (rc == 0)
        return EW_EXIT_OK;
    ew_complain("%s%s%s", err.message, err.fix[0] != '\0' ? "; " : "", err.fix);
    return rc == ETWATCH_EINVAL ? EW_EXIT_USAGE : EW_EXIT_FAILED;
}

int ew_watch_prepare(struct ew_watch *session, const struct ew_options *options, uint32_t format)
{
    session->options = options;
    int error = ew_output_open(&session->output, options->output_path);
    if (error != 0) {
        ew_complain("cannot write to %s: %s", options->output_path, strerror(error));
        return EW_EXIT_FAILED;
    }
    session->output_open = true;
    ew_window_aggregate_init(&session->windows, options->window_s);
    ew_window_aggregate_want(&session->windows, options->aggregation);
    return format == 0 ? EW_EXIT_OK : make_sink(session, format);
}

/* What is to be summed up over windows is to be measured. */
static uint64_t wanted_metrics(const struct ew_watch *session)
{
    uint64_t metrics = session->options->metrics, more = session->windows.more;
    if (session->windows.length_ns == 0 || more == 0)
        return metrics;
    return more | (metrics != 0 ? metrics : ETWATCH_METRICS_DEFAULT);
}

static struct etwatch_config make_config(struct ew_watch *session)
{
    const struct ew_options *o = session->options;
    double budget = o->budget_percent > 0 ? o->budget_percent : o->profile_percent;
    struct etwatch_config config = {
        .size = sizeof config,
        .source = o->source,
        .flags = o->config_flags | (o->budget_off ? (uint32_t)ETWATCH_CONFIG_NO_BUDGET : 0),
        .latency_ms = o->latency_ms,
        .hz = o->hz,
        .budget_percent = budget,
        .pids = o->pids,
        .pid_count = o->pid_count,
        .names = (const char *const *)o->names.words,
        .name_count = o->names.count,
        .uids = o->uids,
        .uid_count = o->uid_count,
        .cgroups = (const char *const *)o->cgroups.words,
        .cgroup_count = o->cgroups.count,
        .proc_root = o->proc_root,
        .traces = (const char *const *)o->files.words,
        .trace_count = o->files.count,
        .metrics = wanted_metrics(session),
        .polled_metrics = o->polled_metrics,
        .rates = o->rates,
        .rate_count = o->rate_count,
        .callbacks = {.size = sizeof config.callbacks,
                      .on_samples = on_samples,
                      .on_loss = on_loss,
                      .ctx = session},
    };
    if ((o->config_flags & ETWATCH_CONFIG_EVENTS) != 0)
        config.callbacks.on_events = on_events;
    config.alerts = (const char *const *)o->alerts.words;
    config.alert_count = o->alerts.count;
    config.on_alert = on_alert;
    if (o->keep > 0) {
        config.flags |= ETWATCH_CONFIG_QUEUE;
        config.queue_samples = o->keep;
    }
    config.top_n = o->top_n;
    config.top_n_metric = o->top_n_metric;
    config.exclude_pids = o->exclude_pids;
    config.exclude_pid_count = o->exclude_pid_count;
    config.exclude_names = (const char *const *)o->exclude_names.words;
    config.exclude_name_count = o->exclude_names.count;
    config.exclude_uids = o->exclude_uids;
    config.exclude_uid_count = o->exclude_uid_count;
    config.exclude_cgroups = (const char *const *)o->exclude_cgroups.words;
    config.exclude_cgroup_count = o->exclude_cgroups.count;
    return config;
}

int ew_exit_code(int rc)
{
    switch (rc) {
    case ETWATCH_EINVAL:
        return EW_EXIT_USAGE;
    case ETWATCH_EPERM:
    case ETWATCH_ENOTSUP:
        return EW_EXIT_RIGHTS;
    default:
        return EW_EXIT_FAILED;
    }
}

int ew_complain_about(const struct etwatch_error_info *err, int rc)
{
    const char *message = err->message[0] != '\0' ? err->message : etwatch_strerror(rc);
    ew_complain("%s%s%s", message, err->fix[0] != '\0' ? "; " : "", err->fix);
    return ew_exit_code(rc);
}

static int check_pids(const struct ew_options *options)
{
    const char *root = options->proc_root != NULL ? options->proc_root : "/proc";
    for (uint32_t i = 0; i < options->pid_count; i++) {
        if (!ew_os_process_exists(root, options->pids[i])) {
            ew_complain("there is no process %u", options->pids[i]);
            return EW_EXIT_FAILED;
        }
        if (ew_os_process_ended(root, options->pids[i])) {
            ew_complain("process %u has already ended", options->pids[i]);
            return EW_EXIT_FAILED;
        }
    }
    return EW_EXIT_OK;
}

int ew_watch_open(struct ew_watch *session, uint32_t pid)
{
    struct ew_cli_session_options etw;
    struct etwatch_error_info err = {.size = sizeof err};
    struct etwatch_config config = make_config(session);
    bool recorded = session->options->files.count > 0;
    config.session = session->options->etw.session;
    if (ew_cli_session_options(session->options, &etw))
        config.session_options = &etw.options;
    if (!recorded && check_pids(session->options) != EW_EXIT_OK)
        return EW_EXIT_FAILED;
    if (session->options->uid_numbers && !recorded && !ew_os_has_uids()) {
        ew_complain("users of Windows have no numbers: give their names");
        return EW_EXIT_USAGE;
    }
    if (pid != 0) {
        config.pids = &pid;
        config.pid_count = 1;
    }
    int rc = etwatch_monitor_new(&config, &session->monitor, &err);
    if (rc == 0)
        rc = etwatch_monitor_open(session->monitor, &err);
    if (rc < 0)
        return ew_complain_about(&err, rc);
    session->opened_cpu_ns = ew_os_thread_cpu_ns();
    if (session->options->system && !recorded &&
        etwatch_system_open(session->options->proc_root, &session->system) < 0)
        session->system = NULL;
    ew_os_drop_rights();
    begin_output(session);
    flush(session);
    if (session->options->duration_s > 0 && !recorded)
        session->end_raw_ns = ew_os_raw_ns() + (uint64_t)(session->options->duration_s * 1e9);
    return EW_EXIT_OK;
}

/* ------------------------------------------------------------------------ running */

/* Whether every start and exit of the machine comes by here. */
static bool sees_all(const struct ew_watch *session)
{
    const struct ew_options *o = session->options;
    return (o->config_flags & ETWATCH_CONFIG_ALL) != 0 &&
           session->meta.source != ETWATCH_SOURCE_POLL && o->exclude_pid_count == 0 &&
           o->exclude_names.count == 0 && o->exclude_uid_count == 0 &&
           o->exclude_cgroups.count == 0;
}

/* Once a second, in the second that is over. */
static void read_system(struct ew_watch *session)
{
    struct etwatch_system system = {.size = sizeof system};
    uint64_t now_ns = ew_os_raw_ns();
    if (session->system == NULL || now_ns < session->system_next_ns || !session->meta_known)
        return;
    session->system_next_ns = now_ns + 1000000000;
    if (sees_all(session))
        etwatch_system_set_process_counts(session->system, session->system_started,
                                          session->system_ended);
    session->system_started = session->system_ended = 0;
    int rc = etwatch_system_read(session->system, &system);
    keep_error(session, rc < 0 ? rc : etwatch_sink_system(session->sink, &system));
}

bool ew_watch_step(struct ew_watch *session, int max_ms)
{
    int wait_ms = max_ms < LONGEST_WAIT_MS ? max_ms : LONGEST_WAIT_MS;
    if (session->error != 0)
        return false;
    if (session->end_raw_ns != 0) {
        uint64_t now_ns = ew_os_raw_ns();
        if (now_ns >= session->end_raw_ns)
            return false;
        uint64_t left_ms = (session->end_raw_ns - now_ns + 999999) / 1000000;
        if (left_ms < (uint64_t)wait_ms)
            wait_ms = (int)left_ms;
    }
    /* A delivery may call back many times; what they leave in the sink is one write. */
    int rc = etwatch_monitor_poll(session->monitor, wait_ms);
    read_system(session);
    bool over = rc == ETWATCH_ESTATE && session->meta.source == ETWATCH_SOURCE_ETL;
    keep_error(session, over ? 0 : rc);
    flush(session);
    return session->error == 0 && !over && !session->past_end;
}

/* ------------------------------------------------------------------------- ending */

void ew_watch_put_cost(struct ew_buf *out, const struct etwatch_stats *stats)
{
    const char *source = etwatch_source_name(stats->source);
    ew_buf_text(out, source != NULL ? source : "?");
    ew_buf_text(out, ", ");
    (void)ew_buf_fixed(out, stats->hz_requested, stats->hz_requested < 10 ? 1 : 0);
    ew_buf_text(out, " Hz asked, ");
    (void)ew_buf_fixed(out, stats->hz_reached, 1);
    ew_buf_text(out, " reached; ");
    ew_buf_u64(out, stats->samples);
    ew_buf_text(out, " samples, ");
    ew_buf_u64(out, stats->events);
    ew_buf_text(out, " events, lost: ");
    ew_buf_u64(out, stats->lost);
    double user =
        stats->self_cpu_percent - (stats->self_kernel_percent > 0 ? stats->self_kernel_percent : 0);
    ew_buf_text(out, "; own cost ");
    (void)ew_buf_fixed(out, user, 3);
    ew_buf_text(out, " % of a core in user space, ");
    if (stats->self_kernel_percent < 0)
        ew_buf_text(out, "unknown");
    else
        (void)ew_buf_fixed(out, stats->self_kernel_percent, 3);
    ew_buf_text(out, stats->self_kernel_percent < 0 ? " in the kernel, " : " % in the kernel, ");
    ew_units_bytes(out, stats->self_rss_bytes);
    ew_buf_text(out, " of memory");
}

/* The monitor knows what its steps cost; formatting, writing and drawing are a cost of ours too. */
static void count_own_cost(struct ew_watch *session)
{
    struct etwatch_stats *stats = &session->stats;
    double cpu_ns = (double)(ew_os_thread_cpu_ns() - session->opened_cpu_ns);
    double percent = stats->duration_ns == 0 ? 0 : 100.0 * cpu_ns / (double)stats->duration_ns;
    if (stats->self_kernel_percent > 0)
        percent += stats->self_kernel_percent;
    if (percent > stats->self_cpu_percent)
        stats->self_cpu_percent = percent;
}

/* With --keep: what is left in the ring. */
static void write_kept(struct ew_watch *session)
{
    struct etwatch_sample samples[16];
    int count;
    while (session->error == 0 &&
           (count = etwatch_monitor_read(session->monitor, samples, 16, 0)) > 0)
        keep_error(session, etwatch_sink_samples(session->sink, samples, (size_t)count));
}

void ew_watch_stop(struct ew_watch *session)
{
    if (session->stopped || session->monitor == NULL || !session->meta_known)
        return;
    session->stopped = true;
    keep_error(session, etwatch_monitor_stop(session->monitor));
    /* eBPF knows at the beginning that there is none; polling sees only who is in one. */
    if (session->options->cgroups.count > 0 && !session->any_started)
        ew_say(session->options, "no process was in %s", session->options->cgroups.words[0]);
    session->stats.size = sizeof session->stats;
    keep_error(session, etwatch_monitor_stats(session->monitor, &session->stats));
    count_own_cost(session);
    if (session->tap != NULL && session->error == 0)
        keep_error(session, session->tap->stats(session->tap_ctx, &session->stats));
    flush(session);
    if (session->on_end != NULL && session->error == 0)
        keep_error(session, session->on_end(session->ctx));
    if (session->sink == NULL)
        return;
    if (session->options->keep > 0)
        write_kept(session);
    if (session->windows.length_ns > 0)
        keep_error(session, ew_window_aggregate_end(&session->windows, session->sink));
    keep_error(session, etwatch_sink_stats(session->sink, &session->stats));
    flush(session);
}

static int report_error(const struct ew_watch *session)
{
    const struct ew_output *output = &session->output;
    if (session->error == 0 || ew_output_reader_gone(output))
        return EW_EXIT_OK;
    if (output->os_error != 0)
        ew_complain("cannot write to %s: %s",
                    output->path != NULL ? output->path : "standard output",
                    strerror(output->os_error));
    else
        ew_complain("%s", etwatch_strerror(session->error));
    return ew_exit_code(session->error) == EW_EXIT_RIGHTS ? EW_EXIT_RIGHTS : EW_EXIT_FAILED;
}

int ew_watch_close(struct ew_watch *session)
{
    ew_watch_stop(session);
    int code = report_error(session);
    etwatch_system_close(session->system);
    session->system = NULL;
    etwatch_monitor_free(session->monitor);
    etwatch_sink_free(session->sink);
    ew_window_aggregate_done(&session->windows);
    session->monitor = NULL;
    session->sink = NULL;
    int error = session->output_open ? ew_output_close(&session->output) : 0;
    session->output_open = false;
    if (error != 0 && code == EW_EXIT_OK) {
        ew_complain("cannot write to %s: %s", session->options->output_path, strerror(error));
        code = EW_EXIT_FAILED;
    }
    return code;
}
