/* SPDX-License-Identifier: MIT */
/*
 * Owns the monitor and the sink of one watch. Everything happens on one thread: the loop calls the
 * monitor, the monitor calls back with samples, the sink formats, and one write follows. So
 * dropping privileges concerns the whole program, and a slow reader delays nothing but etwatch.
 *
 * This file keeps the order of the output: meta before anything else, stats after everything.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include <etwatch/metrics.h>

#include "base/units.h"
#include "os/os.h"

enum { LONGEST_WAIT_MS = 250 };

/* --------------------------------------------------------------------- callbacks */

static void keep_error(struct ew_watch *watch, int rc)
{
    if (rc < 0 && watch->error == 0)
        watch->error = rc;
}

/* A condition on a metric that is not measured here can never hold. */
static void warn_of_alerts(const struct ew_watch *watch)
{
    const struct ew_list *alerts = &watch->options->alerts;
    for (uint32_t i = 0; i < alerts->count; i++) {
        uint32_t metric = 0;
        const char *reason = NULL;
        if (etwatch_alert_check(alerts->words[i], &metric, NULL) == 0)
            reason = etwatch_monitor_unavailable_reason(watch->monitor, metric);
        if (reason != NULL)
            ew_print_info(watch->options, "alert \"%s\" can never fire: %s", alerts->words[i],
                          reason);
    }
    if (alerts->count > 0 && watch->meta.source == ETWATCH_SOURCE_POLL)
        ew_print_info(watch->options, "polling: alerts are evaluated once per interval of --hz, so "
                                      "shorter spikes are missed");
}

/* Writes meta. Called by the first delivery too, which may come while the monitor still opens. */
static void begin_output(struct ew_watch *watch)
{
    if (watch->meta_known)
        return;
    watch->meta.size = sizeof watch->meta;
    int rc = etwatch_monitor_meta(watch->monitor, &watch->meta);
    keep_error(watch, rc);
    if (rc < 0)
        return;
    watch->meta_known = true;
    if (watch->meta.source == ETWATCH_SOURCE_ETL && watch->options->duration_ns > 0)
        watch->end_unix_ns = watch->meta.anchor_unix_ns + watch->options->duration_ns;
    if (watch->meta.fallback[0] != '\0')
        ew_print_info(watch->options, "%s", watch->meta.fallback);
    warn_of_alerts(watch);
    if (watch->tap != NULL)
        keep_error(watch, watch->tap->meta(watch->tap_ctx, &watch->meta));
    if (watch->sink != NULL)
        keep_error(watch, etwatch_sink_meta(watch->sink, &watch->meta));
}

static void flush(struct ew_watch *watch)
{
    if (watch->tap != NULL)
        keep_error(watch, watch->tap->flush(watch->tap_ctx));
    if (watch->sink != NULL)
        keep_error(watch, etwatch_sink_flush(watch->sink));
}

static void count_live(struct ew_watch *watch, const struct etwatch_sample *sample)
{
    if (sample->type == ETWATCH_TYPE_START) {
        watch->live++;
        watch->any_started = true;
        watch->system_started += (sample->flags & ETWATCH_SAMPLE_PREEXISTING) == 0;
    } else if (sample->type == ETWATCH_TYPE_EXIT) {
        watch->live -= watch->live > 0;
        watch->system_ended++;
    }
}

/* The number of samples before the end of --duration in a recording: intervals come in order. */
static size_t before_end(struct ew_watch *watch, const struct etwatch_samples *batch)
{
    size_t kept = 0;
    while (kept < batch->count && etwatch_sample_at(batch, kept)->t_ns <= watch->end_unix_ns)
        kept++;
    watch->past_end = watch->past_end || kept < batch->count;
    return kept;
}

static void on_samples(void *ctx, const struct etwatch_samples *batch)
{
    struct ew_watch *watch = ctx;
    struct etwatch_samples kept = *batch;
    bool windows = watch->windows != NULL;
    begin_output(watch);
    if (watch->past_end)
        return;
    if (watch->end_unix_ns != 0)
        kept.count = before_end(watch, batch);
    for (size_t i = 0; i < kept.count; i++) {
        const struct etwatch_sample *sample = etwatch_sample_at(batch, i);
        count_live(watch, sample);
        if (watch->on_sample != NULL)
            keep_error(watch, watch->on_sample(watch->ctx, sample));
        if (windows && watch->error == 0)
            keep_error(watch, etwatch_aggregator_add(watch->windows, sample));
    }
    if (watch->tap != NULL)
        keep_error(watch, watch->tap->samples(watch->tap_ctx, &kept));
    bool held = watch->options->last_samples > 0 || watch->no_samples;
    if (watch->sink != NULL && !windows && !held)
        keep_error(watch, etwatch_sink_samples(watch->sink, &kept));
}

static void on_events(void *ctx, const struct etwatch_events *batch)
{
    struct ew_watch *watch = ctx;
    begin_output(watch);
    if (watch->tap != NULL)
        keep_error(watch, watch->tap->events(watch->tap_ctx, batch));
    if (watch->on_events != NULL)
        watch->on_events(watch->ctx, batch);
    if (watch->sink != NULL && !watch->no_samples && !watch->no_events)
        keep_error(watch, etwatch_sink_events(watch->sink, batch));
}

static void on_loss(void *ctx, const struct etwatch_loss *loss)
{
    struct ew_watch *watch = ctx;
    begin_output(watch);
    if (watch->on_loss != NULL)
        watch->on_loss(watch->ctx, loss);
    if (watch->tap != NULL)
        keep_error(watch, watch->tap->loss(watch->tap_ctx, loss));
    if (watch->sink != NULL)
        keep_error(watch, etwatch_sink_loss(watch->sink, loss));
}

/* An object of the JSON stream, else one line of words. */
static void on_alert(void *ctx, const struct etwatch_alert *alert)
{
    struct ew_watch *watch = ctx;
    begin_output(watch);
    watch->alerts++;
    if (watch->tap != NULL)
        keep_error(watch, watch->tap->alert(watch->tap_ctx, alert));
    if (watch->sink != NULL && watch->options->json) {
        keep_error(watch, etwatch_sink_alert(watch->sink, alert));
        return;
    }
    (void)etwatch_alert_text(alert, watch->last_alert, sizeof watch->last_alert);
    if (watch->options->command != EW_CMD_TOP)
        ew_print_info(watch->options, "alert: %s", watch->last_alert);
}

/* Objects of the JSON stream. A problem is a line of words too: once when it begins, once when it
 * ends. */
static void on_devices(void *ctx, const struct etwatch_devices *batch)
{
    struct ew_watch *watch = ctx;
    begin_output(watch);
    for (size_t i = 0; i < batch->count; i++) {
        const struct etwatch_device *device = etwatch_device_at(batch, i);
        const char *kind = etwatch_device_kind_name(device->kind);
        if ((device->flags & ETWATCH_DEVICE_PROBLEM) != 0)
            ew_print_info(watch->options, "%s (%s): %s", kind != NULL ? kind : "device",
                          device->driver, device->problem);
        if (watch->on_device != NULL)
            watch->on_device(watch->ctx, device);
    }
    if (watch->tap != NULL && watch->tap->devices != NULL)
        keep_error(watch, watch->tap->devices(watch->tap_ctx, batch));
    if (watch->sink != NULL && !watch->no_samples)
        keep_error(watch, etwatch_sink_devices(watch->sink, batch));
}

static int on_window(void *ctx, const struct etwatch_window *window)
{
    const struct etwatch_windows one = etwatch_windows_of(window, 1);
    return etwatch_sink_windows(((struct ew_watch *)ctx)->sink, &one);
}

/* ----------------------------------------------------------------------- opening */

/* The machine that is watched: this one, or that of the recording. */
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
        (void)ew_print_failure(&err, rc);
    etwatch_trace_free(trace);
    host[0] = '\0';
    return rc == 0 ? EW_EXIT_OK : EW_EXIT_FAILED;
}

static int make_sink(struct ew_watch *watch, uint32_t format)
{
    const struct ew_options *options = watch->options;
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
        .utc_offset_s = ew_os_utc_offset_s,
    };
    if ((options->config_flags & ETWATCH_CONFIG_CMDLINE) != 0)
        wanted.flags |= ETWATCH_SINK_CMDLINE;
    if (options->output_path == NULL && ew_term_is(EW_TERM_OUT))
        ew_term_size(&wanted.width, &rows);
    if (options->output_path == NULL && ew_term_color(EW_TERM_OUT))
        wanted.flags |= ETWATCH_SINK_COLOR;
    int rc = etwatch_sink_new(format, ew_output_write, &watch->output, &wanted, &watch->sink, &err);
    if (rc == 0)
        return EW_EXIT_OK;
    (void)ew_print_failure(&err, rc);
    return rc == ETWATCH_EINVAL ? EW_EXIT_USAGE : EW_EXIT_FAILED;
}

static int make_windows(struct ew_watch *watch)
{
    const struct ew_options *options = watch->options;
    struct etwatch_window_metric metrics[ETWATCH_METRIC_COUNT];
    struct etwatch_error_info err = {.size = sizeof err};
    struct etwatch_aggregator_options wanted = {
        .size = sizeof wanted,
        .length_ns = options->window_ns,
        .metrics = metrics,
        .on_window = on_window,
        .ctx = watch,
    };
    if (options->window_ns == 0)
        return EW_EXIT_OK;
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++)
        if (options->aggregation[i] != 0)
            metrics[wanted.metric_count++] =
                (struct etwatch_window_metric){i, options->aggregation[i]};
    int rc = etwatch_aggregator_new(&wanted, &watch->windows, &err);
    return rc < 0 ? ew_print_failure(&err, rc) : EW_EXIT_OK;
}

uint32_t ew_cli_text_format(const struct ew_options *options)
{
    if (options->json)
        return ETWATCH_FORMAT_JSONL;
    if (options->csv)
        return options->csv_raw ? ETWATCH_FORMAT_CSV_RAW : ETWATCH_FORMAT_CSV;
    return ETWATCH_FORMAT_TABLE;
}

int ew_cli_watch_prepare(struct ew_watch *watch, const struct ew_options *options, uint32_t format)
{
    watch->options = options;
    /* A file of spans (--spans, --onnx with -o FILE.arrow or FILE.pftrace) is written at the end.
     */
    int error = options->spans_format == 0
                    ? ew_output_open(&watch->output, options->output_path, options->mode)
                    : ew_output_open_whole(&watch->output, options->output_path, options->mode,
                                           &watch->place);
    if (error != 0)
        return ew_print_write_error(options->output_path, error);
    watch->output_open = true;
    int code = options->files.count > 0 ? ew_cli_recording_confine(options) : EW_EXIT_OK;
    if (code == EW_EXIT_OK)
        code = make_windows(watch);
    return code != EW_EXIT_OK || format == 0 ? code : make_sink(watch, format);
}

/* --gpu, --npu, --energy. */
static void add_devices(const struct ew_options *options, struct etwatch_metric_set *metrics)
{
    if (options->gpu || options->gpu_trace) {
        etwatch_metric_set_add(metrics, ETWATCH_M_gpu_ns);
        etwatch_metric_set_add(metrics, ETWATCH_M_gpu_percent);
        etwatch_metric_set_add(metrics, ETWATCH_M_gpu_memory_bytes);
        etwatch_metric_set_add(metrics, ETWATCH_M_presents);
        etwatch_metric_set_add(metrics, ETWATCH_M_gpu_encoder_ns);
        etwatch_metric_set_add(metrics, ETWATCH_M_gpu_decoder_ns);
    }
    if (options->npu) {
        etwatch_metric_set_add(metrics, ETWATCH_M_npu_ns);
        etwatch_metric_set_add(metrics, ETWATCH_M_npu_percent);
    }
    if (options->energy)
        etwatch_metric_set_add(metrics, ETWATCH_M_energy_uj);
}

/* The selected metrics, those of devices, and those that windows aggregate. */
static struct etwatch_metric_set selected_metrics(const struct ew_options *options)
{
    struct etwatch_metric_set metrics = options->metrics, aggregated = {{0}};
    add_devices(options, &aggregated);
    for (uint32_t i = 0; options->window_ns > 0 && i < ETWATCH_METRIC_COUNT; i++)
        if (options->aggregation[i] != 0 && i != ETWATCH_M_cpu_percent && i != ETWATCH_M_rss_bytes)
            etwatch_metric_set_add(&aggregated, i);
    if (etwatch_metric_set_is_empty(&aggregated))
        return metrics;
    if (etwatch_metric_set_is_empty(&metrics))
        etwatch_metric_set_add(&metrics, ETWATCH_METRIC_DEFAULT);
    etwatch_metric_set_union(&metrics, &aggregated);
    return metrics;
}

static struct etwatch_config make_config(struct ew_watch *watch)
{
    const struct ew_options *o = watch->options;
    double budget = o->budget_percent > 0 ? o->budget_percent : o->profile_percent;
    struct etwatch_config config = {
        .size = sizeof config,
        .source = o->source,
        .flags = o->config_flags | (o->budget_off ? (uint32_t)ETWATCH_CONFIG_NO_BUDGET : 0),
        .latency_ms = (uint32_t)(o->latency_ns / 1000000),
        .hz = o->hz,
        .budget_percent = budget,
        .pids = o->pids.ids,
        .pid_count = o->pids.count,
        .names = (const char *const *)o->names.words,
        .name_count = o->names.count,
        .uids = o->users.ids,
        .uid_count = o->users.count,
        .cgroups = (const char *const *)o->cgroups.words,
        .cgroup_count = o->cgroups.count,
        .proc_root = o->proc_root,
        .sys_root = o->sys_root,
        .nvml_library = o->nvml_library,
        .amdsmi_library = o->amdsmi_library,
        .gpu_trace = watch->gpu_trace,
        .traces = (const char *const *)o->files.words,
        .trace_count = o->files.count,
        .metrics = selected_metrics(o),
        .polled_metrics = o->polled_metrics,
        .rates = o->rates,
        .rate_count = o->rate_count,
    };
    config.alerts = (const char *const *)o->alerts.words;
    config.alert_count = o->alerts.count;
    if (o->last_samples > 0) {
        config.flags |= ETWATCH_CONFIG_QUEUE;
        config.queue_samples = o->last_samples;
    }
    config.max_memory_bytes = o->max_memory;
    config.top_n = o->top_n;
    config.top_n_metric = o->top_n_metric;
    config.exclude_pids = o->exclude_pids.ids;
    config.exclude_pid_count = o->exclude_pids.count;
    config.exclude_names = (const char *const *)o->exclude_names.words;
    config.exclude_name_count = o->exclude_names.count;
    config.exclude_uids = o->exclude_users.ids;
    config.exclude_uid_count = o->exclude_users.count;
    config.exclude_cgroups = (const char *const *)o->exclude_cgroups.words;
    config.exclude_cgroup_count = o->exclude_cgroups.count;
    return config;
}

static int check_pids(const struct ew_options *options)
{
    const char *root = options->proc_root != NULL ? options->proc_root : "/proc";
    for (uint32_t i = 0; i < options->pids.count; i++) {
        if (!ew_os_process_exists(root, options->pids.ids[i])) {
            ew_print_error("there is no process %u", options->pids.ids[i]);
            return EW_EXIT_FAILED;
        }
        if (ew_os_process_ended(root, options->pids.ids[i])) {
            ew_print_error("process %u has already ended", options->pids.ids[i]);
            return EW_EXIT_FAILED;
        }
    }
    return EW_EXIT_OK;
}

int ew_cli_watch_open(struct ew_watch *watch, uint32_t pid)
{
    struct ew_session_options etw;
    struct etwatch_error_info err = {.size = sizeof err};
    struct etwatch_config config = make_config(watch);
    bool recorded = watch->options->files.count > 0;
    config.session = watch->options->etw.session;
    if (ew_args_session_options(watch->options, &etw))
        config.session_options = &etw.options;
    if (!recorded && check_pids(watch->options) != EW_EXIT_OK)
        return EW_EXIT_FAILED;
    if (watch->options->user_numbers && !recorded && !ew_os_has_uids()) {
        ew_print_error("users of Windows have no numbers: use their names");
        return EW_EXIT_USAGE;
    }
    if (pid != 0) {
        config.pids = &pid;
        config.pid_count = 1;
    }
    struct etwatch_callbacks callbacks = {
        .size = sizeof callbacks,
        .ctx = watch,
        .on_samples = on_samples,
        .on_events = (config.flags & ETWATCH_CONFIG_EVENTS) != 0 ? on_events : NULL,
        .on_loss = on_loss,
        .on_alert = on_alert,
        .on_devices = on_devices,
    };
    int rc = etwatch_monitor_new(&config, &callbacks, &watch->monitor, &err);
    if (rc == 0)
        rc = etwatch_monitor_open(watch->monitor, &err);
    if (rc < 0)
        return ew_print_failure(&err, rc);
    watch->opened_cpu_ns = ew_os_thread_cpu_ns();
    bool wants_system = watch->tap != NULL && watch->tap->system != NULL;
    if ((watch->options->system_stats || wants_system) && !recorded &&
        etwatch_system_open(watch->options->proc_root, &watch->system) < 0)
        watch->system = NULL;
    if (!recorded) {
        ew_os_drop_rights();
        /* Not the threads of devices: a driver's library makes calls of its own. */
        ew_print_if_unconfined(ew_os_confine_live());
    }
    begin_output(watch);
    flush(watch);
    if (watch->options->duration_ns > 0 && !recorded)
        watch->end_raw_ns = ew_os_raw_ns() + watch->options->duration_ns;
    return EW_EXIT_OK;
}

/* ------------------------------------------------------------------------ running */

/* Whether every start and exit of the machine is delivered to this watch. */
static bool sees_all(const struct ew_watch *watch)
{
    const struct ew_options *o = watch->options;
    return (o->config_flags & ETWATCH_CONFIG_ALL) != 0 &&
           watch->meta.source != ETWATCH_SOURCE_POLL && o->exclude_pids.count == 0 &&
           o->exclude_names.count == 0 && o->exclude_users.count == 0 &&
           o->exclude_cgroups.count == 0;
}

/* Once per second; the values are those of the last second. */
static void read_system(struct ew_watch *watch)
{
    struct etwatch_system system = {.size = sizeof system};
    uint64_t now_ns = ew_os_raw_ns();
    if (watch->system == NULL || now_ns < watch->system_next_ns || !watch->meta_known)
        return;
    watch->system_next_ns = now_ns + 1000000000;
    if (sees_all(watch))
        etwatch_system_set_process_counts(watch->system, watch->system_started,
                                          watch->system_ended);
    watch->system_started = watch->system_ended = 0;
    int rc = etwatch_system_read(watch->system, &system);
    if (rc == 0 && watch->tap != NULL && watch->tap->system != NULL)
        rc = watch->tap->system(watch->tap_ctx, &system);
    if (rc == 0 && watch->sink != NULL)
        rc = etwatch_sink_system(watch->sink, &system);
    keep_error(watch, rc);
}

bool ew_cli_watch_step(struct ew_watch *watch, int max_ms)
{
    int wait_ms = max_ms < LONGEST_WAIT_MS ? max_ms : LONGEST_WAIT_MS;
    if (watch->error != 0)
        return false;
    if (watch->end_raw_ns != 0) {
        uint64_t now_ns = ew_os_raw_ns();
        if (now_ns >= watch->end_raw_ns)
            return false;
        uint64_t left_ms = (watch->end_raw_ns - now_ns + 999999) / 1000000;
        if (left_ms < (uint64_t)wait_ms)
            wait_ms = (int)left_ms;
    }
    /* A delivery may call back many times; what they leave in the sink is one write. */
    int rc = etwatch_monitor_poll(watch->monitor, wait_ms, NULL);
    read_system(watch);
    bool over = rc == ETWATCH_ESTATE && watch->meta.source == ETWATCH_SOURCE_ETL;
    keep_error(watch, over ? 0 : rc);
    flush(watch);
    return watch->error == 0 && !over && !watch->past_end;
}

/* ------------------------------------------------------------------------- ending */

void ew_cli_watch_put_cost(struct ew_buf *out, const struct etwatch_stats *stats)
{
    const char *source = etwatch_source_name(stats->source);
    ew_buf_text(out, source != NULL ? source : "?");
    ew_buf_text(out, ", ");
    (void)ew_buf_fixed(out, stats->hz_requested, stats->hz_requested < 10 ? 1 : 0);
    ew_buf_text(out, " Hz requested, ");
    (void)ew_buf_fixed(out, stats->hz_reached, 1);
    ew_buf_text(out, " reached; ");
    ew_buf_u64(out, stats->samples);
    ew_buf_text(out, " samples, ");
    ew_buf_u64(out, stats->events);
    ew_buf_text(out, " events");
    /* Polling has no events to lose: what it cannot read is counted, too. */
    bool polls = stats->source == ETWATCH_SOURCE_POLL;
    if (!polls || stats->lost > 0) {
        ew_buf_text(out, polls ? ", not read: " : ", lost: ");
        ew_buf_u64(out, stats->lost);
    }
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

/* The monitor counts its own steps; formatting, writing and drawing cost CPU time as well. */
static void add_own_cost(struct ew_watch *watch)
{
    struct etwatch_stats *stats = &watch->stats;
    double cpu_ns = (double)(ew_os_thread_cpu_ns() - watch->opened_cpu_ns);
    double percent = stats->duration_ns == 0 ? 0 : 100.0 * cpu_ns / (double)stats->duration_ns;
    if (stats->self_kernel_percent > 0)
        percent += stats->self_kernel_percent;
    percent += stats->self_sensor_percent;
    if (percent > stats->self_cpu_percent)
        stats->self_cpu_percent = percent;
}

/* --last-samples: the content of the ring. */
static void write_last_samples(struct ew_watch *watch)
{
    struct etwatch_samples batch = {.size = sizeof batch};
    while (watch->error == 0 && etwatch_monitor_read(watch->monitor, 16, 0, &batch) > 0)
        keep_error(watch, etwatch_sink_samples(watch->sink, &batch));
}

void ew_cli_watch_stop(struct ew_watch *watch)
{
    if (watch->stopped || watch->monitor == NULL || !watch->meta_known)
        return;
    watch->stopped = true;
    keep_error(watch, etwatch_monitor_stop(watch->monitor));
    /* eBPF rejects a cgroup that does not exist; polling cannot know. */
    if (watch->options->cgroups.count > 0 && !watch->any_started)
        ew_print_info(watch->options, "there was no process in the cgroup %s",
                      watch->options->cgroups.words[0]);
    watch->stats.size = sizeof watch->stats;
    keep_error(watch, etwatch_monitor_stats(watch->monitor, &watch->stats));
    add_own_cost(watch);
    if (watch->options->names.count > 0 && !watch->any_started)
        ew_cli_hint_names(watch->options, watch->meta.source != ETWATCH_SOURCE_ETL);
    if (watch->tap != NULL && watch->error == 0)
        keep_error(watch, watch->tap->stats(watch->tap_ctx, &watch->stats));
    flush(watch);
    if (watch->on_end != NULL && watch->error == 0)
        keep_error(watch, watch->on_end(watch->ctx));
    if (watch->sink == NULL)
        return;
    if (watch->options->last_samples > 0)
        write_last_samples(watch);
    if (watch->windows != NULL)
        keep_error(watch, etwatch_aggregator_end(watch->windows));
    keep_error(watch, etwatch_sink_stats(watch->sink, &watch->stats));
    flush(watch);
}

static int report_error(const struct ew_watch *watch)
{
    const struct ew_output *output = &watch->output;
    struct etwatch_error_info err = {.size = sizeof err};
    if (watch->error == 0 || ew_output_reader_gone(output))
        return EW_EXIT_OK;
    if (output->os_error != 0)
        (void)ew_print_write_error(output->path, output->os_error);
    else if (etwatch_monitor_last_error(watch->monitor, &err) == watch->error)
        (void)ew_print_failure(&err, watch->error);
    else
        ew_print_error("%s", etwatch_strerror(watch->error));
    return ew_exit_code(watch->error) == EW_EXIT_RIGHTS ? EW_EXIT_RIGHTS : EW_EXIT_FAILED;
}

int ew_cli_watch_close(struct ew_watch *watch)
{
    ew_cli_watch_stop(watch);
    int code = report_error(watch);
    etwatch_system_close(watch->system);
    watch->system = NULL;
    etwatch_monitor_free(watch->monitor);
    etwatch_sink_free(watch->sink);
    etwatch_aggregator_free(watch->windows);
    watch->monitor = NULL;
    watch->windows = NULL;
    watch->sink = NULL;
    struct ew_output *output = watch->output_open ? &watch->output : NULL;
    int error = ew_output_close_whole(output, watch->place, watch->error == 0);
    watch->output_open = false;
    watch->place = NULL;
    return error != 0 && code == EW_EXIT_OK
               ? ew_print_write_error(watch->options->output_path, error)
               : code;
}
