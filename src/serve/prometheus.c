/* SPDX-License-Identifier: MIT */
/*
 * Families come from the tables of metrics: rows with the same name are one family with several
 * label sets. All samples of a family stand together, as both formats require. A metric that no
 * process has is left out: an absent series is the form of "unknown" in Prometheus.
 */
#include "serve/prometheus.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "serve/device_series.h"

struct writer {
    const struct ew_state *state;
    struct ew_buf *out;
    bool openmetrics;
};

void ew_prometheus_label(struct ew_buf *out, const char *text)
{
    size_t len = strlen(text);
    while (len > 0) {
        uint32_t code;
        size_t used = ew_utf8_decode(text, len, &code);
        if (*text == '\n')
            ew_buf_text(out, "\\n");
        else if (ew_buf_acts_on_terminal(code)) /* /metrics is read in terminals too */
            ew_buf_text(out, "\xef\xbf\xbd");
        else if (*text == '\\' || *text == '"') {
            ew_buf_char(out, '\\');
            ew_buf_char(out, *text);
        } else
            ew_buf_bytes(out, text, used);
        text += used;
        len -= used;
    }
}

static bool ends_with(const char *text, size_t len, const char *end)
{
    size_t end_len = strlen(end);
    return len >= end_len && memcmp(text + len - end_len, end, end_len) == 0;
}

/* OpenMetrics names a family without _total, and gives a unit that the name ends with. */
static void put_head(struct writer *w, const char *name, const char *type, const char *help)
{
    static const char *const units[] = {"seconds", "bytes", "joules", "ratio",
                                        "celsius", "watts", "hertz"};
    struct ew_buf *out = w->out;
    size_t len = strlen(name);
    bool counter = strcmp(type, "counter") == 0;
    size_t family = counter && w->openmetrics && ends_with(name, len, "_total") ? len - 6 : len;
    ew_buf_text(out, "# TYPE ");
    ew_buf_bytes(out, name, family);
    ew_buf_char(out, ' ');
    ew_buf_text(out, type);
    for (size_t i = 0; w->openmetrics && i < sizeof units / sizeof units[0]; i++) {
        size_t unit_len = strlen(units[i]);
        if (!ends_with(name, family, units[i]) || family == unit_len ||
            name[family - unit_len - 1] != '_')
            continue;
        ew_buf_text(out, "\n# UNIT ");
        ew_buf_bytes(out, name, family);
        ew_buf_char(out, ' ');
        ew_buf_text(out, units[i]);
    }
    ew_buf_text(out, "\n# HELP ");
    ew_buf_bytes(out, name, family);
    ew_buf_char(out, ' ');
    for (; *help != '\0'; help++) {
        if (*help == '\\' || *help == '\n' || (w->openmetrics && *help == '"'))
            ew_buf_char(out, '\\');
        ew_buf_char(out, *help == '\n' ? 'n' : *help);
    }
    ew_buf_char(out, '\n');
}

static void put_value(struct ew_buf *out, double value)
{
    if (isfinite(value) && value == floor(value) && fabs(value) < 9e15)
        ew_buf_i64(out, (int64_t)value);
    else
        ew_catalog_put_json(out, value);
    ew_buf_char(out, '\n');
}

/* A scale of 1e-9 is a division by 1e9, which is exact to the last digit. */
static void put_scaled(struct ew_buf *out, double value, double scale)
{
    put_value(out, scale < 1 ? value / rint(1 / scale) : value * scale);
}

static void put_plain(struct writer *w, const char *name, const char *type, const char *help,
                      double value)
{
    put_head(w, name, type, help);
    ew_buf_text(w->out, name);
    ew_buf_char(w->out, ' ');
    put_value(w->out, value);
}

/* ------------------------------------------------------------------------ processes */

static void put_group_labels(struct writer *w, const struct ew_state_group *group,
                             const char *labels)
{
    struct ew_buf *out = w->out;
    bool other = group == &w->state->other;
    ew_buf_text(out, "{name=\"");
    ew_prometheus_label(out, other ? EW_GROUPS_OTHER : group->name);
    ew_buf_char(out, '"');
    if (w->state->options.pid_label && !other) {
        ew_buf_text(out, ",pid=\"");
        ew_buf_u64(out, group->pid);
        ew_buf_char(out, '"');
    }
    if (labels[0] != '\0') {
        ew_buf_char(out, ',');
        ew_buf_text(out, labels);
    }
    ew_buf_text(out, "} ");
}

/* The sum of a gauge over the live processes of each group; the last entry is "other". */
static void sum_gauge(const struct ew_state *state, uint32_t metric, double *sums, bool *known)
{
    for (uint32_t g = 0; g <= state->group_count; g++) {
        sums[g] = 0;
        known[g] = false;
    }
    for (uint32_t i = 0; i < state->process_size; i++) {
        const struct ew_state_process *process = &state->processes[i];
        if (process->seen_ns == 0 || process->exit_ns != 0 ||
            !etwatch_metric_set_has(&process->has, metric))
            continue;
        uint32_t g = ew_groups_slot(state, process);
        sums[g] += ew_catalog_number(state->catalog.process_types[metric], process->values[metric]);
        known[g] = true;
    }
}

static void put_gauge(struct writer *w, uint32_t metric, double *sums, bool *known)
{
    const struct ew_state *state = w->state;
    const struct etwatch_metric_info *info = &state->catalog.process[metric];
    sum_gauge(state, metric, sums, known);
    for (uint32_t g = 0; g <= state->group_count; g++) {
        const struct ew_state_group *group = ew_groups_at(state, g);
        if (group == NULL || !known[g])
            continue;
        ew_buf_text(w->out, info->prometheus);
        put_group_labels(w, group, info->prometheus_labels);
        put_scaled(w->out, sums[g], info->scale);
    }
}

static void put_counter(struct writer *w, uint32_t metric)
{
    const struct ew_state *state = w->state;
    const struct etwatch_metric_info *info = &state->catalog.process[metric];
    for (uint32_t g = 0; g <= state->group_count; g++) {
        const struct ew_state_group *group = ew_groups_at(state, g);
        if (group == NULL || !etwatch_metric_set_has(&group->has, metric))
            continue;
        ew_buf_text(w->out, info->prometheus);
        put_group_labels(w, group, info->prometheus_labels);
        put_value(w->out,
                  ew_catalog_number(state->catalog.process_types[metric], group->counters[metric]) *
                      info->scale);
    }
}

static bool is_first_of_family(const struct ew_state *state,
                               const struct etwatch_metric_set *columns, uint32_t metric)
{
    for (uint32_t m = 0; m < metric; m++)
        if (ew_groups_export(state, columns, m) &&
            strcmp(state->catalog.process[m].prometheus,
                   state->catalog.process[metric].prometheus) == 0)
            return false;
    return true;
}

static void put_processes(struct writer *w)
{
    const struct ew_state *state = w->state;
    double *sums = ew_calloc(state->group_count + 1, sizeof *sums);
    bool *known = ew_calloc(state->group_count + 1, sizeof *known);
    struct etwatch_metric_set columns = ew_state_columns(state);
    if (sums == NULL || known == NULL)
        w->out->error = ETWATCH_ENOMEM;
    for (uint32_t first = 0; w->out->error == 0 && first < ETWATCH_METRIC_COUNT; first++) {
        if (!ew_groups_export(state, &columns, first) ||
            !is_first_of_family(state, &columns, first))
            continue;
        const struct etwatch_metric_info *info = &state->catalog.process[first];
        put_head(w, info->prometheus, info->kind, info->help);
        for (uint32_t m = first; m < ETWATCH_METRIC_COUNT; m++) {
            if (!ew_groups_export(state, &columns, m) ||
                strcmp(state->catalog.process[m].prometheus, info->prometheus) != 0)
                continue;
            if (etwatch_metric_set_has(&state->catalog.process_counters, m))
                put_counter(w, m);
            else
                put_gauge(w, m, sums, known);
        }
    }
    ew_free(sums);
    ew_free(known);
}

/* Numbers of processes, starts and exits by group. which: 0 alive, 1 started, 2 exited. */
static void put_lives(struct writer *w, const char *name, const char *help, int which)
{
    const struct ew_state *state = w->state;
    put_head(w, name, which == 0 ? "gauge" : "counter", help);
    for (uint32_t g = 0; g <= state->group_count; g++) {
        const struct ew_state_group *group = ew_groups_at(state, g);
        if (group == NULL)
            continue;
        uint64_t value = which == 0   ? ew_groups_live(state, g)
                         : which == 1 ? group->started
                                      : group->exited;
        ew_buf_text(w->out, name);
        put_group_labels(w, group, "");
        put_value(w->out, (double)value);
    }
}

/* -------------------------------------------------------------------------- machine */

static void put_machine(struct writer *w)
{
    const struct ew_state *state = w->state;
    for (uint32_t m = 0; m < ETWATCH_SYSTEM_METRIC_COUNT; m++) {
        const struct etwatch_metric_info *info = &state->catalog.system[m];
        if (info->prometheus == NULL || !etwatch_metric_set_has(&state->system_has, m))
            continue;
        bool again = m > 0 && state->catalog.system[m - 1].prometheus != NULL &&
                     strcmp(state->catalog.system[m - 1].prometheus, info->prometheus) == 0 &&
                     etwatch_metric_set_has(&state->system_has, m - 1);
        if (!again)
            put_head(w, info->prometheus, info->kind, info->help);
        ew_buf_text(w->out, info->prometheus);
        if (info->prometheus_labels[0] != '\0') {
            ew_buf_char(w->out, '{');
            ew_buf_text(w->out, info->prometheus_labels);
            ew_buf_char(w->out, '}');
        }
        ew_buf_char(w->out, ' ');
        put_scaled(w->out,
                   ew_catalog_number(state->catalog.system_types[m], state->system_counters[m]),
                   info->scale);
    }
}

/* -------------------------------------------------------------------------- devices */

static void put_device_value(struct writer *w, const struct ew_state_device *device,
                             uint32_t metric)
{
    const struct ew_device_series *series = &ew_device_series[metric];
    struct ew_buf *out = w->out;
    const char *kind = etwatch_device_kind_name(device->latest.kind);
    ew_buf_text(out, series->prometheus);
    ew_buf_text(out, "{kind=\"");
    ew_prometheus_label(out, kind != NULL ? kind : "");
    ew_buf_text(out, "\",driver=\"");
    ew_prometheus_label(out, device->latest.driver);
    ew_buf_text(out, "\",device=\"");
    ew_prometheus_label(out, device->latest.id);
    ew_buf_text(out, "\"} ");
    put_scaled(out,
               ew_catalog_number(w->state->catalog.device_types[metric],
                                 ew_device_series_raw(series, device, metric)),
               series->scale);
}

static void put_devices(struct writer *w)
{
    const struct ew_state *state = w->state;
    for (uint32_t m = 0; m < ETWATCH_DEVICE_METRIC_COUNT; m++) {
        const struct ew_device_series *series = &ew_device_series[m];
        bool head = false;
        for (uint32_t i = 0; i < state->device_count; i++) {
            if (!ew_device_series_has(state, &state->devices[i], m))
                continue;
            if (!head)
                put_head(w, series->prometheus, series->counter ? "counter" : "gauge",
                         series->help);
            head = true;
            put_device_value(w, &state->devices[i], m);
        }
    }
}

/* ----------------------------------------------------------------------------- self */

static void put_info(struct writer *w)
{
    const struct ew_serve_meta *meta = &w->state->meta;
    const char *source = etwatch_source_name(meta->meta.source);
    put_head(w, w->openmetrics ? "etwatch_build" : "etwatch_build_info",
             w->openmetrics ? "info" : "gauge",
             "the version of etwatch and the source of its data");
    ew_buf_text(w->out, "etwatch_build_info{version=\"");
    ew_prometheus_label(w->out, etwatch_version());
    ew_buf_text(w->out, "\",source=\"");
    ew_prometheus_label(w->out, source != NULL ? source : "unknown");
    ew_buf_text(w->out, "\"} 1\n");
}

static void put_push(struct writer *w)
{
    const struct ew_state_push *push = &w->state->push;
    if (!push->enabled)
        return;
    put_plain(w, "etwatch_otlp_sent_exports_total", "counter",
              "exports that the collector accepted", (double)push->sent_exports);
    put_plain(w, "etwatch_otlp_sent_points_total", "counter",
              "data points that the collector accepted", (double)push->sent_points);
    put_plain(w, "etwatch_otlp_rejected_points_total", "counter",
              "data points that the collector refused for good", (double)push->rejected_points);
    put_plain(w, "etwatch_otlp_dropped_points_total", "counter",
              "data points that were dropped because the queue was full",
              (double)push->dropped_points);
    put_plain(w, "etwatch_otlp_retries_total", "counter", "attempts that failed and are repeated",
              (double)push->retries);
    put_plain(w, "etwatch_otlp_queued_exports", "gauge", "exports that wait for the collector",
              (double)push->queued_exports);
    put_plain(w, "etwatch_otlp_queue_bytes", "gauge", "bytes of the exports that wait",
              (double)push->queued_bytes);
    put_plain(w, "etwatch_otlp_up", "gauge", "1: the latest attempt reached the collector",
              push->error[0] == '\0');
}

static void put_store(struct writer *w)
{
    const struct ew_state_store *store = &w->state->store;
    if (!store->enabled)
        return;
    put_plain(w, "etwatch_store_records_total", "counter", "records of history written to disk",
              (double)store->records);
    put_plain(w, "etwatch_store_dropped_records_total", "counter",
              "records of history that could not be written", (double)store->dropped_records);
    put_plain(w, "etwatch_store_replaced_total", "counter", "damaged databases that were replaced",
              (double)store->replaced);
    put_plain(w, "etwatch_store_read_errors_total", "counter",
              "queries of the database that failed", (double)store->read_errors);
    put_plain(w, "etwatch_store_bytes", "gauge", "size of the database", (double)store->bytes);
    put_plain(w, "etwatch_store_up", "gauge", "1: the latest records were written",
              store->error[0] == '\0');
}

static void put_self(struct writer *w)
{
    const struct ew_state *state = w->state;
    const struct etwatch_stats *stats = &state->stats;
    put_info(w);
    put_plain(w, "etwatch_lost_events_total", "counter",
              "kernel events that were lost before they were read", (double)state->lost);
    put_plain(w, "etwatch_dropped_facts_total", "counter",
              "facts of processes and threads that found no room in the server",
              (double)(state->dropped + state->malformed));
    put_plain(w, "etwatch_history_overwritten_total", "counter",
              "records of the history that were overwritten or outdated",
              (double)(state->fine.overwritten + state->coarse.overwritten));
    put_plain(w, "etwatch_samples_total", "counter", "samples of processes taken over",
              (double)state->samples);
    put_plain(w, "etwatch_alerts_total", "counter", "alerts that were reported",
              (double)state->alert_count);
    put_push(w);
    put_store(w);
    if (stats->size == 0)
        return;
    put_plain(w, "etwatch_self_cpu_ratio", "gauge",
              "CPU time of the collecting process and its kernel part, of one core",
              stats->self_cpu_percent / 100);
    put_plain(w, "etwatch_self_resident_memory_bytes", "gauge",
              "resident memory of the collecting process", (double)stats->self_rss_bytes);
    put_plain(w, "etwatch_sample_rate_hertz", "gauge",
              "intervals a second after the budget was applied", stats->hz_effective);
}

void ew_prometheus_write(const struct ew_state *state, bool openmetrics, struct ew_buf *out)
{
    struct writer w = {.state = state, .out = out, .openmetrics = openmetrics};
    put_processes(&w);
    put_lives(&w, "etwatch_processes", "processes that are alive", 0);
    put_lives(&w, "etwatch_process_starts_total", "processes that started", 1);
    put_lives(&w, "etwatch_process_exits_total", "processes that exited", 2);
    put_machine(&w);
    put_devices(&w);
    put_self(&w);
    if (openmetrics)
        ew_buf_text(out, "# EOF\n");
}
