/* SPDX-License-Identifier: MIT */
/*
 * The JSON of the API. 64-bit times are milliseconds (exact in a double) or, as an id, text. Every
 * text of a process is escaped by ew_buf_json_string. Columns of processes are the metrics that any
 * process has, in the order of the table, so a new metric needs no change here.
 */
#include "serve/api.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

enum { THREADS_SHOWN = 16, TREND_SECONDS = 60 };

static void put_text(struct ew_buf *out, const char *text)
{
    if (text == NULL)
        ew_buf_text(out, "null");
    else
        ew_buf_json_string(out, text, strlen(text));
}

static void put_key(struct ew_buf *out, const char *key, bool *first)
{
    if (!*first)
        ew_buf_char(out, ',');
    *first = false;
    ew_buf_char(out, '"');
    ew_buf_text(out, key);
    ew_buf_text(out, "\":");
}

static void put_ms(struct ew_buf *out, uint64_t ns)
{
    if (ns == 0)
        ew_buf_text(out, "null");
    else
        ew_catalog_put_short(out, (double)(ns / 1000) / 1000);
}

static void put_field_text(struct ew_buf *out, const char *key, const char *text)
{
    bool first = false;
    put_key(out, key, &first);
    put_text(out, text);
}

static void put_field_number(struct ew_buf *out, const char *key, double value)
{
    bool first = false;
    put_key(out, key, &first);
    ew_catalog_put_short(out, value);
}

static void put_field_ms(struct ew_buf *out, const char *key, uint64_t ns)
{
    bool first = false;
    put_key(out, key, &first);
    put_ms(out, ns);
}

void ew_api_put_id(struct ew_buf *out, const struct ew_state_process *process)
{
    ew_buf_char(out, '"');
    ew_buf_u64(out, process->pid);
    ew_buf_char(out, '-');
    ew_buf_u64(out, process->start_ns);
    ew_buf_char(out, '"');
}

/* ----------------------------------------------------------------------------- meta */

static const char *exactness_name(const struct ew_state *state, uint32_t metric)
{
    uint32_t exactness = ew_state_exactness(state, metric);
    return exactness != ETWATCH_EXACTNESS_UNAVAILABLE ? etwatch_exactness_name(exactness)
                                                      : "unknown";
}

static void put_metric(struct ew_buf *out, const struct etwatch_metric_info *info,
                       const char *exactness)
{
    ew_buf_text(out, "{\"name\":");
    put_text(out, info->name);
    put_field_text(out, "kind", info->kind);
    put_field_text(out, "unit", info->unit);
    put_field_text(out, "group", info->group);
    put_field_text(out, "help", info->help);
    if (exactness != NULL)
        put_field_text(out, "exactness", exactness);
    ew_buf_char(out, '}');
}

static void put_self(const struct ew_state *state, struct ew_buf *out)
{
    const struct etwatch_stats *stats = &state->stats;
    ew_buf_text(out, "{\"lost\":");
    ew_buf_u64(out, state->lost);
    put_field_number(out, "dropped", (double)(state->dropped + state->malformed));
    put_field_number(out, "live", (double)state->live);
    put_field_number(out, "samples", (double)state->samples);
    bool known = stats->size != 0;
    put_field_number(out, "cpu_percent", known ? stats->self_cpu_percent : NAN);
    put_field_number(out, "rss_bytes", known ? (double)stats->self_rss_bytes : NAN);
    put_field_number(out, "hz_requested", known ? stats->hz_requested : NAN);
    put_field_number(out, "hz_effective", known ? stats->hz_effective : NAN);
    put_field_number(out, "threads", known ? (double)stats->threads : NAN);
    ew_buf_char(out, '}');
}

void ew_api_meta(const struct ew_state *state, struct ew_buf *out)
{
    const struct ew_serve_meta *meta = &state->meta;
    struct etwatch_metric_set columns = ew_state_columns(state);
    const char *source = etwatch_source_name(meta->meta.source);
    ew_buf_text(out, "{\"version\":");
    put_text(out, etwatch_version());
    put_field_text(out, "host", meta->host[0] != '\0' ? meta->host : NULL);
    put_field_text(out, "os", meta->os[0] != '\0' ? meta->os : NULL);
    put_field_text(out, "source", source);
    put_field_text(out, "fallback", meta->meta.fallback[0] != '\0' ? meta->meta.fallback : NULL);
    put_field_number(out, "cpus", meta->meta.cpu_count);
    put_field_number(out, "hz", meta->meta.hz_requested);
    ew_buf_text(out, meta->recorded ? ",\"recorded\":true" : ",\"recorded\":false");
    ew_buf_text(out, state->ended ? ",\"ended\":true" : ",\"ended\":false");
    ew_buf_text(out, state->sched.available ? ",\"details\":true" : ",\"details\":false");
    ew_buf_text(out, state->store.enabled ? ",\"store\":true" : ",\"store\":false");
    ew_buf_text(out, meta->inferences ? ",\"inferences\":true" : ",\"inferences\":false");
    ew_buf_text(out, meta->marks ? ",\"marks\":true" : ",\"marks\":false");
    put_field_ms(out, "first_ms", state->first_ns);
    put_field_ms(out, "now_ms", state->now_ns);
    put_field_ms(out, "fine_from_ms", ew_history_oldest_ns(&state->fine));
    put_field_ms(out, "coarse_from_ms", ew_history_oldest_ns(&state->coarse));
    put_field_number(out, "history_bytes",
                     (double)(state->fine.size + state->coarse.size + state->machine.size));
    ew_buf_text(out, ",\"columns\":[");
    bool first = true;
    for (uint32_t m = 0; m < ETWATCH_METRIC_COUNT; m++) {
        if (!etwatch_metric_set_has(&columns, m))
            continue;
        ew_buf_text(out, first ? "" : ",");
        first = false;
        put_metric(out, &state->catalog.process[m], exactness_name(state, m));
    }
    ew_buf_text(out, "],\"system\":[");
    for (uint32_t m = 0; m < ETWATCH_SYSTEM_METRIC_COUNT; m++) {
        ew_buf_text(out, m == 0 ? "" : ",");
        put_metric(out, &state->catalog.system[m], NULL);
    }
    ew_buf_text(out, "],\"self\":");
    put_self(state, out);
    ew_buf_text(out, "}\n");
}

/* ------------------------------------------------------------------------ processes */

static void put_values(const struct ew_state *state, const struct ew_state_process *process,
                       const struct etwatch_metric_set *columns, bool first, struct ew_buf *out)
{
    for (uint32_t m = 0; m < ETWATCH_METRIC_COUNT; m++) {
        if (!etwatch_metric_set_has(columns, m))
            continue;
        if (!first)
            ew_buf_char(out, ',');
        first = false;
        ew_catalog_put_short(out, ew_state_shown(state, process, m));
    }
}

static void put_identity(const struct ew_state_process *process, struct ew_buf *out)
{
    ew_buf_text(out, "{\"id\":");
    ew_api_put_id(out, process);
    put_field_number(out, "pid", process->pid);
    put_field_number(out, "ppid",
                     (process->flags & ETWATCH_SAMPLE_HAS_PPID) != 0 ? (double)process->ppid : NAN);
    put_field_text(out, "name", process->name);
    put_field_text(out, "user", process->user);
    put_field_text(out, "cgroup", process->cgroup);
    if (process->cmdline != NULL)
        put_field_text(out, "cmdline", process->cmdline);
    put_field_ms(out, "start_ms", process->start_ns);
    put_field_ms(out, "exit_ms", process->exit_ns);
    if (etwatch_metric_set_has(&process->has, ETWATCH_M_exit_code))
        put_field_number(out, "exit_code", (double)(int64_t)process->values[ETWATCH_M_exit_code]);
    if (etwatch_metric_set_has(&process->has, ETWATCH_M_exit_signal))
        put_field_number(out, "exit_signal",
                         (double)(int64_t)process->values[ETWATCH_M_exit_signal]);
}

static void put_columns(const struct ew_state *state, const struct etwatch_metric_set *columns,
                        struct ew_buf *out)
{
    bool first = true;
    ew_buf_text(out, "\"columns\":[");
    for (uint32_t m = 0; m < ETWATCH_METRIC_COUNT; m++) {
        if (!etwatch_metric_set_has(columns, m))
            continue;
        ew_buf_text(out, first ? "\"" : ",\"");
        first = false;
        ew_buf_text(out, state->catalog.process[m].name);
        ew_buf_char(out, '"');
    }
    ew_buf_char(out, ']');
}

/* Oldest first. Nothing if the process did nothing in this time. */
static void put_trend(const struct ew_state *state, const struct ew_state_process *process,
                      struct ew_history_point *point, struct ew_buf *out)
{
    double percents[TREND_SECONDS] = {0};
    bool any = false;
    uint64_t t_ns, before;
    for (uint64_t mark = process->coarse;
         ew_history_peek(&state->coarse, mark, &t_ns, &before) &&
         t_ns + (TREND_SECONDS - 1) * EW_STATE_SECOND_NS >= state->now_ns;
         mark = before) {
        uint64_t ago = state->now_ns > t_ns ? (state->now_ns - t_ns) / EW_STATE_SECOND_NS : 0;
        if (!ew_history_read(&state->coarse, mark, point) || point->dt_ns == 0)
            break;
        any = any || point->values[ETWATCH_M_cpu_ns] > 0;
        percents[TREND_SECONDS - 1 - ago] =
            100.0 * (double)point->values[ETWATCH_M_cpu_ns] / (double)point->dt_ns;
    }
    if (!any)
        return;
    ew_buf_text(out, ",\"trend\":[");
    for (uint32_t i = 0; i < TREND_SECONDS; i++) {
        ew_buf_text(out, i == 0 ? "" : ",");
        if (!ew_buf_fixed(out, percents[i], percents[i] < 10 && percents[i] > 0 ? 1 : 0))
            ew_buf_char(out, '0');
    }
    ew_buf_char(out, ']');
}

void ew_api_processes(const struct ew_state *state, bool exited, bool trend, struct ew_buf *out)
{
    struct ew_history_point *point = trend ? ew_calloc(1, sizeof *point) : NULL;
    struct etwatch_metric_set columns = ew_state_columns(state);
    bool first = true;
    ew_buf_char(out, '{');
    put_columns(state, &columns, out);
    put_field_ms(out, "t_ms", state->now_ns);
    ew_buf_text(out, ",\"processes\":[");
    for (uint32_t i = 0; i < state->process_size; i++) {
        const struct ew_state_process *process = ew_state_at(state, i);
        if (process == NULL || (process->exit_ns != 0 && !exited))
            continue;
        ew_buf_text(out, first ? "\n" : ",\n");
        first = false;
        put_identity(process, out);
        ew_buf_text(out, ",\"values\":[");
        put_values(state, process, &columns, true, out);
        ew_buf_char(out, ']');
        if (point != NULL)
            put_trend(state, process, point, out);
        ew_buf_char(out, '}');
    }
    ew_buf_text(out, "]}\n");
    ew_free(point);
}

static void put_threads(const struct ew_state *state, const struct ew_state_process *process,
                        struct ew_buf *out)
{
    bool first = true;
    uint32_t shown = 0;
    ew_buf_text(out, ",\"threads\":[");
    for (uint32_t i = process->threads; i != EW_STATE_NONE && shown < 1024;
         i = state->threads[i].next_of_process, shown++) {
        const struct ew_state_thread *thread = &state->threads[i];
        ew_buf_text(out, first ? "{\"tid\":" : ",{\"tid\":");
        first = false;
        ew_buf_u64(out, thread->tid);
        put_field_text(out, "name", thread->name);
        put_field_number(out, "cpu_ns", (double)thread->cpu_ns);
        put_field_number(out, "runq_wait_ns", (double)thread->wait_ns);
        ew_buf_char(out, '}');
    }
    ew_buf_char(out, ']');
}

void ew_api_process(const struct ew_state *state, const struct ew_state_process *process,
                    struct ew_buf *out)
{
    put_identity(process, out);
    put_field_ms(out, "seen_ms", process->seen_ns);
    ew_buf_text(out, ",\"values\":{");
    bool first = true;
    for (uint32_t m = 0; m < ETWATCH_METRIC_COUNT; m++) {
        if (!etwatch_metric_set_has(&process->has, m))
            continue;
        put_key(out, state->catalog.process[m].name, &first);
        ew_catalog_put_short(out, ew_state_shown(state, process, m));
    }
    ew_buf_text(out, "},\"totals\":{");
    first = true;
    for (uint32_t m = 0; m < ETWATCH_METRIC_COUNT; m++) {
        if (!etwatch_metric_set_has(&process->has, m) ||
            !etwatch_metric_set_has(&state->catalog.process_counters, m))
            continue;
        put_key(out, state->catalog.process[m].name, &first);
        ew_catalog_put_short(
            out, ew_catalog_number(state->catalog.process_types[m], process->values[m]));
    }
    ew_buf_char(out, '}');
    put_threads(state, process, out);
    ew_buf_text(out, "}\n");
}

static void put_alert(const struct ew_serve_alert *alert, struct ew_buf *out)
{
    const struct ew_state_process process = {.pid = alert->pid, .start_ns = alert->start_ns};
    ew_buf_text(out, "{\"id\":");
    ew_api_put_id(out, &process);
    put_field_text(out, "name", alert->name);
    put_field_text(out, "metric", alert->metric);
    put_field_text(out, "condition", alert->condition);
    put_field_text(out, "text", alert->text);
    put_field_ms(out, "from_ms", alert->from_ns);
    put_field_ms(out, "to_ms", alert->to_ns);
    ew_buf_text(out, alert->ended ? ",\"ended\":true" : ",\"ended\":false");
    put_field_number(out, "value", alert->value);
    put_field_number(out, "peak", alert->peak);
    ew_buf_char(out, '}');
}

static void put_alerts(const struct ew_state *state, uint64_t after, struct ew_buf *out)
{
    uint64_t from =
        state->alert_count > EW_STATE_ALERTS_MAX ? state->alert_count - EW_STATE_ALERTS_MAX : 0;
    if (from < after)
        from = after;
    ew_buf_char(out, '[');
    for (uint64_t i = from; i < state->alert_count; i++) {
        ew_buf_text(out, i == from ? "" : ",");
        put_alert(&state->alerts[i % EW_STATE_ALERTS_MAX], out);
    }
    ew_buf_char(out, ']');
}

void ew_api_alerts(const struct ew_state *state, struct ew_buf *out)
{
    ew_buf_text(out, "{\"count\":");
    ew_buf_u64(out, state->alert_count);
    ew_buf_text(out, ",\"alerts\":");
    put_alerts(state, 0, out);
    ew_buf_text(out, "}\n");
}

/* -------------------------------------------------------------------------- history */

static void put_range(const struct ew_range *range, struct ew_buf *out)
{
    ew_buf_text(out, "{\"from_ms\":");
    put_ms(out, range->from_ns);
    put_field_ms(out, "to_ms", range->from_ns + range->buckets * range->step_ns);
    put_field_ms(out, "step_ms", range->step_ns);
    put_field_number(out, "count", range->buckets);
    put_field_text(out, "resolution", range->fine ? "sample" : "second");
}

static void put_series(struct ew_buf *out, const double *values, uint32_t count, double scale)
{
    ew_buf_char(out, '[');
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0)
            ew_buf_char(out, ',');
        ew_catalog_put_short(out, values[i] * scale);
    }
    ew_buf_char(out, ']');
}

/* Values of all metrics in one block. */
static double *give_values(struct ew_range_metric *metrics, uint32_t count, uint32_t buckets,
                           bool peaks)
{
    size_t values = (size_t)count * buckets * (peaks ? 2 : 1);
    double *block = ew_calloc(values > 0 ? values : 1, sizeof *block);
    for (uint32_t i = 0; block != NULL && i < count; i++) {
        metrics[i].values = block + (size_t)i * buckets;
        metrics[i].peaks = peaks ? block + (size_t)(count + i) * buckets : NULL;
    }
    return block;
}

static const struct ew_history *history_of(const struct ew_state *state,
                                           const struct ew_range *range)
{
    return range->fine ? &state->fine : &state->coarse;
}

int ew_api_history(const struct ew_state *state, const struct ew_state_process *process,
                   const struct ew_range *range, const struct etwatch_metric_set *metrics,
                   struct ew_buf *out)
{
    struct ew_range_metric wanted[EW_RANGE_METRICS_MAX];
    uint32_t count = 0;
    struct etwatch_metric_set all = process->has;
    etwatch_metric_set_remove(&all, ETWATCH_M_cpu_percent); /* from cpu_ns */
    const struct etwatch_metric_set *set = etwatch_metric_set_is_empty(metrics) ? &all : metrics;
    for (uint32_t m = 0; m < ETWATCH_METRIC_COUNT && count < EW_RANGE_METRICS_MAX; m++)
        if (etwatch_metric_set_has(set, m) && m != ETWATCH_M_cpu_percent)
            wanted[count++] = (struct ew_range_metric){
                .metric = m,
                .counter = etwatch_metric_set_has(&state->catalog.process_counters, m)};
    double *block = give_values(wanted, count, range->buckets, true);
    if (block == NULL)
        return ETWATCH_ENOMEM;
    int rc = ew_range_read(history_of(state, range), range->fine ? process->fine : process->coarse,
                           range, process->seen_ns, process->exit_ns, wanted, count);
    put_range(range, out);
    ew_buf_text(out, ",\"series\":{");
    bool first = true;
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        put_key(out, state->catalog.process[wanted[i].metric].name, &first);
        put_series(out, wanted[i].values, range->buckets, 1);
    }
    ew_buf_text(out, "},\"peaks\":{");
    first = true;
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        if (wanted[i].metric != ETWATCH_M_cpu_ns && wanted[i].metric != ETWATCH_M_runq_wait_ns)
            continue;
        put_key(out, state->catalog.process[wanted[i].metric].name, &first);
        put_series(out, wanted[i].peaks, range->buckets, 1);
    }
    ew_buf_text(out, "}}\n");
    ew_free(block);
    return rc;
}

int ew_api_machine(const struct ew_state *state, const struct ew_range *range, struct ew_buf *out)
{
    struct ew_range_metric wanted[ETWATCH_SYSTEM_METRIC_COUNT];
    struct ew_range_metric cpu_series = {.metric = EW_CATALOG_CPU};
    _Static_assert((int)ETWATCH_SYSTEM_METRIC_COUNT <= (int)EW_RANGE_METRICS_MAX, "all at once");
    uint32_t count = 0;
    for (uint32_t m = 0; m < ETWATCH_SYSTEM_METRIC_COUNT; m++)
        if (etwatch_metric_set_has(&state->system_has, m))
            wanted[count++] = (struct ew_range_metric){
                .metric = m, .counter = etwatch_metric_set_has(&state->catalog.system_counters, m)};
    double *block = give_values(wanted, count, range->buckets, false);
    double *cpu_block = give_values(&cpu_series, 1, range->buckets, false);
    if (block == NULL || cpu_block == NULL) {
        ew_free(block);
        ew_free(cpu_block);
        return ETWATCH_ENOMEM;
    }
    int rc = ew_range_read(&state->machine, state->machine_mark, range, state->first_ns, 0, wanted,
                           count);
    put_range(range, out);
    ew_buf_text(out, ",\"series\":{");
    bool first = true;
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        put_key(out, state->catalog.system[wanted[i].metric].name, &first);
        put_series(out, wanted[i].values, range->buckets, 1);
    }
    ew_buf_text(out, "},\"cpus\":[");
    for (uint32_t cpu = 0; cpu < state->system.cpu_count && rc == 0; cpu++) {
        cpu_series.metric = EW_CATALOG_CPU + cpu;
        rc = ew_range_read(&state->machine, state->machine_mark, range, state->first_ns, 0,
                           &cpu_series, 1);
        ew_buf_text(out, cpu == 0 ? "" : ",");
        put_series(out, cpu_series.values, range->buckets, 1);
    }
    ew_buf_text(out, "]}\n");
    ew_free(block);
    ew_free(cpu_block);
    return rc;
}

/* -------------------------------------------------------------------------- devices */

/* Counters are rates per second: of energy, microwatts. */
static double device_value(const struct ew_state *state, const struct ew_serve_device *latest,
                           uint32_t metric)
{
    double value = ew_catalog_number(state->catalog.device_types[metric], latest->values[metric]);
    double dt_s = (double)latest->dt_ns / (double)EW_STATE_SECOND_NS;
    if (!etwatch_metric_set_has(&state->catalog.device_counters, metric))
        return value;
    return dt_s > 0 ? value / dt_s : NAN;
}

static void put_device(const struct ew_state *state, uint32_t i, struct ew_buf *out)
{
    const struct ew_state_device *device = &state->devices[i];
    const struct ew_serve_device *latest = &device->latest;
    ew_buf_text(out, "{\"number\":");
    ew_buf_u64(out, i);
    put_field_text(out, "kind", etwatch_device_kind_name(latest->kind));
    put_field_text(out, "driver", latest->driver);
    put_field_text(out, "id", latest->id[0] != '\0' ? latest->id : NULL);
    put_field_text(out, "name", latest->name[0] != '\0' ? latest->name : NULL);
    put_field_text(out, "problem", device->problem[0] != '\0' ? device->problem : NULL);
    put_field_ms(out, "t_ms", latest->t_ns);
    ew_buf_text(out, ",\"values\":{");
    bool first = true;
    for (uint32_t m = 0; m < ETWATCH_DEVICE_METRIC_COUNT; m++) {
        if (!etwatch_metric_set_has(&latest->has, m))
            continue;
        put_key(out, ew_catalog_device_name(m), &first);
        ew_catalog_put_short(out, device_value(state, latest, m));
    }
    ew_buf_text(out, "},\"estimated\":[");
    first = true;
    for (uint32_t m = 0; m < ETWATCH_DEVICE_METRIC_COUNT; m++) {
        if (!etwatch_metric_set_has(&latest->estimated, m))
            continue;
        ew_buf_text(out, first ? "\"" : ",\"");
        first = false;
        ew_buf_text(out, ew_catalog_device_name(m));
        ew_buf_char(out, '"');
    }
    ew_buf_text(out, "]}");
}

static void put_devices(const struct ew_state *state, struct ew_buf *out)
{
    ew_buf_char(out, '[');
    for (uint32_t i = 0; i < state->device_count; i++) {
        ew_buf_text(out, i == 0 ? "" : ",");
        put_device(state, i, out);
    }
    ew_buf_char(out, ']');
}

void ew_api_devices(const struct ew_state *state, struct ew_buf *out)
{
    ew_buf_text(out, "{\"devices\":");
    put_devices(state, out);
    ew_buf_text(out, "}\n");
}

int ew_api_device(const struct ew_state *state, const struct ew_state_device *device,
                  const struct ew_range *range, struct ew_buf *out)
{
    struct ew_range_metric wanted[ETWATCH_DEVICE_METRIC_COUNT];
    _Static_assert((int)ETWATCH_DEVICE_METRIC_COUNT <= (int)EW_RANGE_METRICS_MAX, "all at once");
    uint32_t count = 0;
    for (uint32_t m = 0; m < ETWATCH_DEVICE_METRIC_COUNT; m++)
        if (etwatch_metric_set_has(&device->has, m))
            wanted[count++] = (struct ew_range_metric){
                .metric = m, .counter = etwatch_metric_set_has(&state->catalog.device_counters, m)};
    double *block = give_values(wanted, count, range->buckets, false);
    if (block == NULL)
        return ETWATCH_ENOMEM;
    int rc = ew_range_read(&state->device, device->mark, range, device->seen_ns, 0, wanted, count);
    put_range(range, out);
    ew_buf_text(out, ",\"series\":{");
    bool first = true;
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        put_key(out, ew_catalog_device_name(wanted[i].metric), &first);
        put_series(out, wanted[i].values, range->buckets, 1);
    }
    ew_buf_text(out, "}}\n");
    ew_free(block);
    return rc;
}

/* -------------------------------------------------------------------------- threads */

struct ranked {
    const struct ew_state_thread *thread;
    double sum;
};

/* The threads with the most CPU time in the range, the highest first. */
static void rank(struct ranked *ranked, uint32_t *count, const struct ew_state_thread *thread,
                 double sum)
{
    uint32_t at = *count;
    if (sum <= 0 || (at == THREADS_SHOWN && ranked[at - 1].sum >= sum))
        return;
    if (at < THREADS_SHOWN)
        ++*count;
    else
        at--;
    for (; at > 0 && ranked[at - 1].sum < sum; at--)
        ranked[at] = ranked[at - 1];
    ranked[at] = (struct ranked){thread, sum};
}

static double sum_of(const struct ew_history *history, uint64_t mark, const struct ew_range *range,
                     struct ew_history_point *point)
{
    double sum = 0;
    uint64_t t_ns, before;
    for (; ew_history_peek(history, mark, &t_ns, &before) && t_ns > range->from_ns; mark = before)
        if (t_ns <= range->to_ns && ew_history_read(history, mark, point))
            sum += (double)point->values[ETWATCH_M_cpu_ns];
    return sum;
}

int ew_api_threads(const struct ew_state *state, const struct ew_state_process *process,
                   const struct ew_range *range, struct ew_buf *out)
{
    struct ranked ranked[THREADS_SHOWN];
    uint32_t count = 0;
    const struct ew_history *history = history_of(state, range);
    struct ew_history_point *point = ew_calloc(1, sizeof *point);
    struct ew_range_metric wanted[2] = {{.metric = ETWATCH_M_cpu_ns, .counter = true},
                                        {.metric = ETWATCH_M_runq_wait_ns, .counter = true}};
    double *block = give_values(wanted, 2, range->buckets, false);
    if (block == NULL || point == NULL) {
        ew_free(block);
        ew_free(point);
        return ETWATCH_ENOMEM;
    }
    for (uint32_t i = process->threads; i != EW_STATE_NONE; i = state->threads[i].next_of_process) {
        const struct ew_state_thread *thread = &state->threads[i];
        rank(ranked, &count, thread,
             sum_of(history, range->fine ? thread->fine : thread->coarse, range, point));
    }
    int rc = 0;
    put_range(range, out);
    put_field_number(out, "thread_count", process->thread_count);
    ew_buf_text(out, ",\"threads\":[");
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        const struct ew_state_thread *thread = ranked[i].thread;
        rc = ew_range_read(history, range->fine ? thread->fine : thread->coarse, range,
                           process->seen_ns, process->exit_ns, wanted, 2);
        ew_buf_text(out, i == 0 ? "{\"tid\":" : ",{\"tid\":");
        ew_buf_u64(out, thread->tid);
        put_field_text(out, "name", thread->name);
        ew_buf_text(out, ",\"cpu_ns\":");
        put_series(out, wanted[0].values, range->buckets, 1);
        ew_buf_text(out, ",\"runq_wait_ns\":");
        put_series(out, wanted[1].values, range->buckets, 1);
        ew_buf_char(out, '}');
    }
    ew_buf_text(out, "]}\n");
    ew_free(block);
    ew_free(point);
    return rc;
}

/* --------------------------------------------------------------------------- stream */

static void put_machine_now(const struct ew_state *state, struct ew_buf *out)
{
    const struct ew_serve_system *system = &state->system;
    double dt_s = (double)system->system.dt_ns / (double)EW_STATE_SECOND_NS;
    bool first = true;
    ew_buf_text(out, ",\"system\":{");
    for (uint32_t m = 0; m < ETWATCH_SYSTEM_METRIC_COUNT; m++) {
        if (!etwatch_metric_set_has(&system->system.has, m))
            continue;
        double value = ew_catalog_number(state->catalog.system_types[m],
                                         ew_catalog_system_raw(&system->system, m));
        if (etwatch_metric_set_has(&state->catalog.system_counters, m))
            value = dt_s > 0 ? value / dt_s : NAN;
        put_key(out, state->catalog.system[m].name, &first);
        ew_catalog_put_short(out, value);
    }
    ew_buf_text(out, "},\"cpus\":");
    put_series(out, system->cpus, system->cpu_count, 1);
}

void ew_api_second(const struct ew_state *state, uint64_t t_ns, struct ew_buf *out)
{
    struct etwatch_metric_set columns = ew_state_columns(state);
    ew_buf_text(out, "{\"t_ms\":");
    put_ms(out, t_ns);
    put_machine_now(state, out);
    ew_buf_char(out, ',');
    put_columns(state, &columns, out);
    ew_buf_text(out, ",\"news\":[");
    bool first = true;
    for (uint32_t n = 0; n < state->news_count; n++) {
        const struct ew_state_process *process = ew_state_at(state, state->news[n]);
        if (process == NULL)
            continue;
        ew_buf_text(out, first ? "" : ",");
        first = false;
        put_identity(process, out);
        ew_buf_char(out, '}');
    }
    ew_buf_text(out, "],\"active\":[");
    for (uint32_t n = 0; n < state->active_count; n++) {
        const struct ew_state_process *process = &state->processes[state->active[n]];
        ew_buf_text(out, n == 0 ? "[" : ",[");
        ew_api_put_id(out, process);
        put_values(state, process, &columns, false, out);
        ew_buf_char(out, ']');
    }
    ew_buf_text(out, "],\"alerts\":");
    put_alerts(state, state->alerts_told, out);
    ew_buf_text(out, ",\"devices\":");
    put_devices(state, out);
    ew_buf_text(out, ",\"self\":");
    put_self(state, out);
    ew_buf_char(out, '}');
}
