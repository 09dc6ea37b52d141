/* SPDX-License-Identifier: MIT */
/*
 * Field numbers are those of opentelemetry-proto 1.x (metrics.proto, common.proto, resource.proto).
 * Scopes and metrics are opened by their first data point, so nothing empty is sent.
 */
#include "serve/otlp_encode.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/proto.h"
#include "base/utf8.h"
#include "serve/device_series.h"

enum { DEPTH_MAX = 16, TEXT_MAX = 512 };
enum temporality { DELTA = 1, CUMULATIVE = 2 };

/* What one metric is, for its head. */
struct metric {
    const char *name, *help, *unit;
    bool counter; /* a monotonic sum */
    bool adds_up; /* else: a sum that may fall, or a gauge */
};

/* One value. */
struct point {
    const struct ew_state_group *group; /* NULL: the host */
    const char *attributes;             /* key=value, with ',' between several */
    uint64_t since_ns;
    bool is_int;
    int64_t number;
    double real;
};

struct walk {
    struct ew_otlp_encoder *encoder;
    const struct ew_state *state;
    struct ew_buf *out;
    uint64_t t_ns, points;
    /* Of the writer: what is open. */
    size_t marks[DEPTH_MAX];
    bool first[DEPTH_MAX];
    uint32_t depth;
    /* Of the walk. */
    const struct ew_state_group *resource; /* NULL: the host */
    const char *exactness;
    bool scope_open, metric_open;
    struct etwatch_metric_set columns;
    uint32_t family[ETWATCH_METRIC_COUNT]; /* the first metric with the same name and exactness */
    double *sums;                          /* of gauges, a row per slot of ew_groups_at */
    struct etwatch_metric_set *known;      /* a set per slot */
};

/* ---------------------------------------------------------------------------- writer */

static void put_key(struct walk *w, const char *key)
{
    if (!w->encoder->json)
        return;
    if (!w->first[w->depth])
        ew_buf_char(w->out, ',');
    w->first[w->depth] = false;
    if (key == NULL)
        return;
    ew_buf_char(w->out, '"');
    ew_buf_text(w->out, key);
    ew_buf_text(w->out, "\":");
}

/* key NULL: an element of an array. */
static void open_object(struct walk *w, uint32_t field, const char *key)
{
    put_key(w, key);
    w->depth++;
    w->first[w->depth] = true;
    if (w->encoder->json)
        ew_buf_char(w->out, '{');
    else
        w->marks[w->depth] = ew_proto_begin(w->out, field);
}

static void close_object(struct walk *w)
{
    if (w->encoder->json)
        ew_buf_char(w->out, '}');
    else
        ew_proto_end(w->out, w->marks[w->depth]);
    w->depth--;
}

static void open_array(struct walk *w, const char *key)
{
    put_key(w, key);
    w->depth++;
    w->first[w->depth] = true;
    if (w->encoder->json)
        ew_buf_char(w->out, '[');
}

static void close_array(struct walk *w)
{
    if (w->encoder->json)
        ew_buf_char(w->out, ']');
    w->depth--;
}

/* Names of processes are any bytes, a string of protobuf is UTF-8. */
static void put_text(struct walk *w, uint32_t field, const char *key, const char *text)
{
    char valid[TEXT_MAX];
    size_t len = strlen(text), at = 0;
    put_key(w, key);
    if (w->encoder->json) {
        ew_buf_json_string(w->out, text, len);
        return;
    }
    while (len > 0 && at + 4 < sizeof valid) {
        uint32_t code;
        size_t used = ew_utf8_decode(text, len, &code);
        bool good = code != EW_UTF8_INVALID;
        memcpy(valid + at, good ? text : "\xef\xbf\xbd", good ? used : 3);
        at += good ? used : 3;
        text += used;
        len -= used;
    }
    ew_proto_bytes(w->out, field, valid, at);
}

/* 64-bit integers are texts in JSON. */
static void put_fixed(struct walk *w, uint32_t field, const char *key, uint64_t value,
                      bool negative)
{
    put_key(w, key);
    if (!w->encoder->json) {
        ew_proto_fixed64(w->out, field, value);
        return;
    }
    ew_buf_char(w->out, '"');
    if (negative)
        ew_buf_i64(w->out, (int64_t)value);
    else
        ew_buf_u64(w->out, value);
    ew_buf_char(w->out, '"');
}

static void put_small(struct walk *w, uint32_t field, const char *key, uint64_t value)
{
    put_key(w, key);
    if (w->encoder->json)
        ew_buf_u64(w->out, value);
    else
        ew_proto_u64(w->out, field, value);
}

static void put_real(struct walk *w, uint32_t field, const char *key, double value)
{
    put_key(w, key);
    if (w->encoder->json)
        ew_catalog_put_json(w->out, value);
    else
        ew_proto_double(w->out, field, value);
}

/* An element of a list of attributes. text NULL: the number. */
static void put_attribute(struct walk *w, uint32_t field, const char *key, const char *text,
                          uint64_t number)
{
    open_object(w, field, NULL);
    put_text(w, 1, "key", key);
    open_object(w, 2, "value");
    if (text != NULL) {
        put_text(w, 1, "stringValue", text);
    } else if (w->encoder->json) {
        put_fixed(w, 3, "intValue", number, false);
    } else {
        ew_proto_u64(w->out, 3, number);
    }
    close_object(w);
    close_object(w);
}

/* -------------------------------------------------------------------------- resource */

static bool is_given(const struct walk *w, const char *key)
{
    for (uint32_t i = 0; i < w->encoder->attribute_count; i++)
        if (strcmp(w->encoder->attributes[i].key, key) == 0)
            return true;
    return false;
}

static void put_own(struct walk *w, const char *key, const char *text)
{
    if (text[0] != '\0' && !is_given(w, key))
        put_attribute(w, 1, key, text, 0);
}

static void put_process_attributes(struct walk *w)
{
    char time_text[48] = "";
    const struct ew_state_group *group = w->resource;
    time_t seconds = (time_t)(group->start_ns / EW_STATE_SECOND_NS);
    const struct tm *parts = gmtime(&seconds); /* the serving process has one thread of ours */
    if (parts != NULL)
        (void)snprintf(time_text, sizeof time_text, "%04d-%02d-%02dT%02d:%02d:%02d.%09lluZ",
                       parts->tm_year + 1900, parts->tm_mon + 1, parts->tm_mday, parts->tm_hour,
                       parts->tm_min, parts->tm_sec,
                       (unsigned long long)(group->start_ns % EW_STATE_SECOND_NS));
    put_attribute(w, 1, "process.pid", NULL, group->pid);
    put_attribute(w, 1, "process.creation.time", time_text, 0);
    put_attribute(w, 1, "process.executable.name", group->name, 0);
}

static void put_resource(struct walk *w)
{
    const struct ew_serve_meta *meta = &w->state->meta;
    bool windows =
        meta->meta.source == ETWATCH_SOURCE_ETW || meta->meta.source == ETWATCH_SOURCE_ETL;
    open_object(w, 1, "resource");
    open_array(w, "attributes");
    put_own(w, "service.name", "etwatch");
    put_own(w, "service.version", etwatch_version());
    put_own(w, "service.instance.id", meta->host);
    put_own(w, "host.name", meta->host);
    put_own(w, "os.type", windows ? "windows" : "linux");
    put_own(w, "os.description", meta->os);
    for (uint32_t i = 0; i < w->encoder->attribute_count; i++)
        put_attribute(w, 1, w->encoder->attributes[i].key, w->encoder->attributes[i].value, 0);
    if (w->resource != NULL)
        put_process_attributes(w);
    close_array(w);
    close_object(w);
}

/* ---------------------------------------------------------------------------- points */

static void open_scope(struct walk *w)
{
    open_object(w, 2, NULL);
    open_object(w, 1, "scope");
    put_text(w, 1, "name", "etwatch");
    put_text(w, 2, "version", etwatch_version());
    open_array(w, "attributes");
    put_attribute(w, 3, "etwatch.exactness", w->exactness, 0);
    close_array(w);
    close_object(w);
    open_array(w, "metrics");
    w->scope_open = true;
}

static void close_scope(struct walk *w)
{
    if (!w->scope_open)
        return;
    close_array(w);
    close_object(w);
    w->scope_open = false;
}

static void open_metric(struct walk *w, const struct metric *metric)
{
    bool gauge = !metric->counter && !metric->adds_up;
    if (!w->scope_open)
        open_scope(w);
    open_object(w, 2, NULL);
    put_text(w, 1, "name", metric->name);
    put_text(w, 2, "description", metric->help);
    put_text(w, 3, "unit", metric->unit);
    open_object(w, gauge ? 5 : 7, gauge ? "gauge" : "sum");
    if (!gauge) {
        bool delta = metric->counter && w->encoder->delta;
        put_small(w, 2, "aggregationTemporality", delta ? DELTA : CUMULATIVE);
        put_key(w, "isMonotonic");
        if (w->encoder->json)
            ew_buf_text(w->out, metric->counter ? "true" : "false");
        else
            ew_proto_u64(w->out, 3, metric->counter);
    }
    open_array(w, "dataPoints");
    w->metric_open = true;
}

static void close_metric(struct walk *w)
{
    if (!w->metric_open)
        return;
    close_array(w);
    close_object(w);
    close_object(w);
    w->metric_open = false;
}

static void put_point_attributes(struct walk *w, const struct point *point)
{
    const char *at = point->attributes;
    open_array(w, "attributes");
    if (point->group != NULL && w->resource == NULL)
        put_attribute(w, 7, "process.executable.name",
                      point->group == &w->state->other ? EW_GROUPS_OTHER : point->group->name, 0);
    while (*at != '\0') {
        char key[64], value[64];
        size_t key_len = strcspn(at, "="), all = strcspn(at, ",");
        if (key_len >= all || key_len >= sizeof key || all - key_len > sizeof value)
            break;
        (void)snprintf(key, sizeof key, "%.*s", (int)key_len, at);
        (void)snprintf(value, sizeof value, "%.*s", (int)(all - key_len - 1), at + key_len + 1);
        put_attribute(w, 7, key, value, 0);
        at += all + (at[all] == ',');
    }
    close_array(w);
}

static void put_point(struct walk *w, const struct metric *metric, const struct point *point)
{
    bool delta = metric->counter && w->encoder->delta;
    uint64_t since_ns = point->since_ns;
    if (delta && w->encoder->last_ns > since_ns)
        since_ns = w->encoder->last_ns;
    if (!w->metric_open)
        open_metric(w, metric);
    open_object(w, 1, NULL);
    put_point_attributes(w, point);
    if (metric->counter || metric->adds_up)
        put_fixed(w, 2, "startTimeUnixNano", since_ns < w->t_ns ? since_ns : w->t_ns, false);
    put_fixed(w, 3, "timeUnixNano", w->t_ns, false);
    if (point->is_int)
        put_fixed(w, 6, "asInt", (uint64_t)point->number, true);
    else
        put_real(w, 4, "asDouble", point->real);
    close_object(w);
    w->points++;
}

/* A scale of 1e-9 is a division by 1e9, which is exact to the last digit. */
static void set_value(struct point *point, uint8_t type, uint64_t raw, double scale)
{
    point->is_int = type != EW_HISTORY_DOUBLE && scale == 1;
    point->number = (int64_t)raw;
    double number = ew_catalog_number(type, raw);
    point->real = scale < 1 ? number / rint(1 / scale) : number * scale;
}

static uint64_t less(uint8_t type, uint64_t now, uint64_t before)
{
    uint64_t raw;
    if (type != EW_HISTORY_DOUBLE)
        return now - before;
    double rest = ew_catalog_number(type, now) - ew_catalog_number(type, before);
    memcpy(&raw, &rest, sizeof raw);
    return raw;
}

/* ------------------------------------------------------------------------- processes */

static const struct etwatch_metric_info *info_of(const struct walk *w, uint32_t metric)
{
    return &w->state->catalog.process[metric];
}

static bool is_windows(const struct walk *w)
{
    uint32_t source = w->state->meta.meta.source;
    return source == ETWATCH_SOURCE_ETW || source == ETWATCH_SOURCE_ETL;
}

static const char *name_of(const struct walk *w, uint32_t metric)
{
    const struct etwatch_metric_info *info = info_of(w, metric);
    return is_windows(w) ? info->otlp : info->otlp_linux;
}

static const char *exactness_of(const struct ew_state *state, uint32_t metric)
{
    uint32_t exactness = ew_state_exactness(state, metric);
    return exactness != ETWATCH_EXACTNESS_UNAVAILABLE ? etwatch_exactness_name(exactness)
                                                      : "unknown";
}

static bool adds_up(const struct etwatch_metric_info *info, const char *unit)
{
    return info->has_average != 0 && (strcmp(unit, "By") == 0 || unit[0] == '{');
}

/* The entry of a group in the export before; NULL: it is new. */
static const struct ew_otlp_base *base_of(const struct walk *w, uint32_t g)
{
    const struct ew_otlp_encoder *encoder = w->encoder;
    if (!encoder->delta)
        return NULL;
    if (g == w->state->group_count)
        return &encoder->other;
    if (g >= encoder->base_size || encoder->bases[g].serial != w->state->groups[g].serial)
        return NULL;
    return &encoder->bases[g];
}

static const struct ew_state_group *any_group(const struct ew_state *state, uint32_t g)
{
    if (g == state->group_count)
        return &state->other;
    return state->groups[g].key != NULL ? &state->groups[g] : NULL;
}

/* The group in slot g if it belongs to the resource that is being written. A hidden group is
 * written in a delta export if it counted something since the one before. */
static const struct ew_state_group *group_of(const struct walk *w, uint32_t g, uint32_t metric)
{
    const struct ew_state *state = w->state;
    const struct ew_state_group *group = ew_groups_at(state, g);
    if (group == NULL && w->encoder->delta && metric != ETWATCH_METRIC_COUNT) {
        const struct ew_otlp_base *base = base_of(w, g);
        group = any_group(state, g);
        if (group != NULL && group->counters[metric] == (base != NULL ? base->counters[metric] : 0))
            return NULL;
    }
    if (group == NULL || !state->options.pid_label)
        return group;
    return group == w->resource || (w->resource == NULL && group == &state->other) ? group : NULL;
}

static uint64_t since_of(const struct walk *w, const struct ew_state_group *group)
{
    return group == &w->state->other ? w->state->first_ns : group->since_ns;
}

static void put_counter(struct walk *w, const struct metric *metric, uint32_t m)
{
    const struct ew_state *state = w->state;
    uint8_t type = state->catalog.process_types[m];
    for (uint32_t g = 0; g <= state->group_count; g++) {
        const struct ew_state_group *group = group_of(w, g, m);
        if (group == NULL || !etwatch_metric_set_has(&group->has, m))
            continue;
        const struct ew_otlp_base *base = base_of(w, g);
        uint64_t before = base != NULL ? base->counters[m] : 0;
        struct point point = {.group = group,
                              .attributes = info_of(w, m)->otlp_attribute,
                              .since_ns = since_of(w, group)};
        set_value(&point, type, less(type, group->counters[m], before), info_of(w, m)->scale);
        put_point(w, metric, &point);
    }
}

static void put_gauge(struct walk *w, const struct metric *metric, uint32_t m)
{
    const struct ew_state *state = w->state;
    for (uint32_t g = 0; g <= state->group_count; g++) {
        const struct ew_state_group *group = group_of(w, g, ETWATCH_METRIC_COUNT);
        if (group == NULL || !etwatch_metric_set_has(&w->known[g], m))
            continue;
        double sum = w->sums[(size_t)g * ETWATCH_METRIC_COUNT + m];
        double scale = info_of(w, m)->scale;
        struct point point = {.group = group,
                              .attributes = info_of(w, m)->otlp_attribute,
                              .since_ns = since_of(w, group)};
        point.is_int = state->catalog.process_types[m] != EW_HISTORY_DOUBLE && scale == 1;
        point.number = (int64_t)sum;
        point.real = scale < 1 ? sum / rint(1 / scale) : sum * scale;
        put_point(w, metric, &point);
    }
}

static void put_family(struct walk *w, uint32_t first)
{
    const struct etwatch_metric_info *info = info_of(w, first);
    const char *unit = is_windows(w) ? info->otlp_unit : info->otlp_linux_unit;
    bool counter = etwatch_metric_set_has(&w->state->catalog.process_counters, first);
    struct metric metric = {name_of(w, first), info->help, unit, counter,
                            !counter && adds_up(info, unit)};
    for (uint32_t m = first; m < ETWATCH_METRIC_COUNT; m++) {
        if (w->family[m] != first)
            continue;
        if (counter)
            put_counter(w, &metric, m);
        else
            put_gauge(w, &metric, m);
    }
    close_metric(w);
}

static void put_processes(struct walk *w, const char *exactness)
{
    w->exactness = exactness;
    for (uint32_t m = 0; m < ETWATCH_METRIC_COUNT; m++)
        if (w->family[m] == m && strcmp(exactness_of(w->state, m), exactness) == 0)
            put_family(w, m);
}

static void put_lives(struct walk *w, const char *name, const char *help, int which)
{
    const struct ew_state *state = w->state;
    const struct metric metric = {name, help, "{process}", which != 0, which == 0};
    for (uint32_t g = 0; g <= state->group_count; g++) {
        const struct ew_state_group *group = group_of(w, g, ETWATCH_METRIC_COUNT);
        if (group == NULL)
            continue;
        const struct ew_otlp_base *base = base_of(w, g);
        uint64_t value = which == 0   ? ew_groups_live(state, g)
                         : which == 1 ? group->started - (base != NULL ? base->started : 0)
                                      : group->exited - (base != NULL ? base->exited : 0);
        struct point point = {.group = group,
                              .attributes = "",
                              .since_ns = since_of(w, group),
                              .is_int = true,
                              .number = (int64_t)value};
        put_point(w, &metric, &point);
    }
    close_metric(w);
}

/* ------------------------------------------------------------------- machine and self */

static void put_machine(struct walk *w)
{
    const struct ew_state *state = w->state;
    const struct ew_catalog *catalog = &state->catalog;
    w->exactness = "polled";
    for (uint32_t m = 0; m < ETWATCH_SYSTEM_METRIC_COUNT; m++) {
        const struct etwatch_metric_info *info = &catalog->system[m];
        if (info->otlp == NULL || !etwatch_metric_set_has(&state->system_has, m))
            continue;
        bool counter = etwatch_metric_set_has(&catalog->system_counters, m);
        const struct metric metric = {info->otlp, info->help, info->otlp_unit, counter,
                                      !counter && strcmp(info->otlp_unit, "By") == 0};
        struct point point = {.attributes = info->otlp_attribute, .since_ns = state->first_ns};
        uint64_t raw = state->system_counters[m];
        if (counter && w->encoder->delta)
            raw = less(catalog->system_types[m], raw, w->encoder->system[m]);
        set_value(&point, catalog->system_types[m], raw, info->scale);
        put_point(w, &metric, &point);
        /* Rows of one metric follow each other in the table. */
        bool more = m + 1 < ETWATCH_SYSTEM_METRIC_COUNT && catalog->system[m + 1].otlp != NULL &&
                    strcmp(catalog->system[m + 1].otlp, info->otlp) == 0 &&
                    etwatch_metric_set_has(&state->system_has, m + 1);
        if (!more)
            close_metric(w);
    }
}

/* A separator in a name would end its attribute. */
static void device_attributes(const struct ew_state_device *device, char *text, size_t size)
{
    const char *kind = etwatch_device_kind_name(device->latest.kind);
    char id[sizeof device->latest.id];
    (void)snprintf(id, sizeof id, "%s", device->latest.id);
    for (char *at = id; *at != '\0'; at++)
        *at = *at == ',' || *at == '=' ? '_' : *at;
    (void)snprintf(text, size, "device.kind=%s,device.driver=%s,device.id=%s",
                   kind != NULL ? kind : "", device->latest.driver, id);
}

/* Of each metric the devices for which it is an estimate, or those for which it is not. */
static void put_devices(struct walk *w, bool estimated)
{
    const struct ew_state *state = w->state;
    w->exactness = estimated ? "estimated" : "exact";
    for (uint32_t m = 0; m < ETWATCH_DEVICE_METRIC_COUNT; m++) {
        const struct ew_device_series *series = &ew_device_series[m];
        const struct metric metric = {series->otlp, series->help, series->unit, series->counter,
                                      !series->counter && strcmp(series->unit, "By") == 0};
        for (uint32_t i = 0; i < state->device_count; i++) {
            const struct ew_state_device *device = &state->devices[i];
            char attributes[160];
            if (!ew_device_series_has(state, device, m) ||
                (etwatch_metric_set_has(&device->latest.estimated, m) != 0) != estimated)
                continue;
            device_attributes(device, attributes, sizeof attributes);
            struct point point = {.attributes = attributes, .since_ns = device->seen_ns};
            uint64_t raw = ew_device_series_raw(series, device, m);
            if (series->counter && w->encoder->delta)
                raw -= w->encoder->devices[i][m];
            set_value(&point, state->catalog.device_types[m], raw, series->scale);
            put_point(w, &metric, &point);
        }
        close_metric(w);
    }
}

static uint64_t self_counter(const struct ew_state *state, uint32_t i)
{
    const uint64_t values[EW_OTLP_SELF_COUNT] = {
        state->lost,        state->dropped + state->malformed, state->samples,
        state->alert_count, state->push.dropped_points,        state->push.rejected_points,
    };
    return values[i];
}

static void put_self_gauge(struct walk *w, const struct metric *metric, double value)
{
    struct point point = {.attributes = "", .since_ns = w->state->first_ns, .real = value};
    put_point(w, metric, &point);
    close_metric(w);
}

static void put_self(struct walk *w)
{
    static const struct metric counters[EW_OTLP_SELF_COUNT] = {
        {"etwatch.events.lost", "kernel events that were lost before they were read", "{event}",
         true, false},
        {"etwatch.facts.dropped", "facts that found no room in the server", "{fact}", true, false},
        {"etwatch.samples", "samples of processes taken over", "{sample}", true, false},
        {"etwatch.alerts", "alerts that were reported", "{alert}", true, false},
        {"etwatch.otlp.points.dropped", "data points dropped because the queue was full",
         "{data_point}", true, false},
        {"etwatch.otlp.points.rejected", "data points that the collector refused", "{data_point}",
         true, false},
    };
    static const struct metric cpu = {"etwatch.self.cpu.utilization",
                                      "CPU time of the collecting process, of one core", "1", false,
                                      false};
    static const struct metric memory = {"etwatch.self.memory.usage",
                                         "resident memory of the collecting process", "By", false,
                                         true};
    const struct ew_state *state = w->state;
    for (uint32_t i = 0; i < EW_OTLP_SELF_COUNT; i++) {
        uint64_t value = self_counter(state, i) - (w->encoder->delta ? w->encoder->self[i] : 0);
        struct point point = {.attributes = "",
                              .since_ns = state->first_ns,
                              .is_int = true,
                              .number = (int64_t)value};
        put_point(w, &counters[i], &point);
        close_metric(w);
    }
    if (state->stats.size == 0)
        return;
    put_self_gauge(w, &cpu, state->stats.self_cpu_percent / 100);
    put_self_gauge(w, &memory, (double)state->stats.self_rss_bytes);
}

/* -------------------------------------------------------------------------- the export */

static void put_resource_metrics(struct walk *w, const struct ew_state_group *resource)
{
    static const char *const levels[] = {"exact", "polled", "estimated", "unknown"};
    w->resource = resource;
    open_object(w, 1, NULL);
    put_resource(w);
    open_array(w, "scopeMetrics");
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        put_processes(w, levels[i]);
        if (i == 0) {
            put_lives(w, "etwatch.process.count", "processes that are alive", 0);
            put_lives(w, "etwatch.process.starts", "processes that started", 1);
            put_lives(w, "etwatch.process.exits", "processes that exited", 2);
        }
        if (i == 0 && resource == NULL)
            put_self(w);
        if (i == 1 && resource == NULL)
            put_machine(w);
        if ((i == 0 || i == 2) && resource == NULL)
            put_devices(w, i == 2);
        close_scope(w);
    }
    close_array(w);
    put_text(w, 3, "schemaUrl", "https://opentelemetry.io/schemas/1.43.0");
    close_object(w);
}

static void find_families(struct walk *w)
{
    const struct ew_state *state = w->state;
    for (uint32_t m = 0; m < ETWATCH_METRIC_COUNT; m++) {
        w->family[m] = ETWATCH_METRIC_COUNT;
        if (!ew_groups_export(state, &w->columns, m) || name_of(w, m) == NULL)
            continue;
        w->family[m] = m;
        for (uint32_t f = 0; f < m; f++)
            if (w->family[f] == f && strcmp(name_of(w, f), name_of(w, m)) == 0 &&
                strcmp(exactness_of(state, f), exactness_of(state, m)) == 0) {
                w->family[m] = f;
                break;
            }
    }
}

static void sum_gauges(struct walk *w)
{
    const struct ew_state *state = w->state;
    for (uint32_t i = 0; i < state->process_size; i++) {
        const struct ew_state_process *process = &state->processes[i];
        if (process->seen_ns == 0 || process->exit_ns != 0)
            continue;
        uint32_t g = ew_groups_slot(state, process);
        double *row = w->sums + (size_t)g * ETWATCH_METRIC_COUNT;
        etwatch_metric_set_union(&w->known[g], &process->has);
        for (uint32_t m = etwatch_metric_set_next(&process->has, 0); m < ETWATCH_METRIC_COUNT;
             m = etwatch_metric_set_next(&process->has, m + 1))
            row[m] += ew_catalog_number(state->catalog.process_types[m], process->values[m]);
    }
}

/* False: out of memory; the next delta then begins earlier. */
static bool grow_bases(struct ew_otlp_encoder *encoder, const struct ew_state *state)
{
    if (encoder->delta && encoder->devices == NULL) {
        encoder->devices = ew_calloc(EW_STATE_DEVICES_MAX, sizeof *encoder->devices);
        if (encoder->devices == NULL)
            return false;
    }
    if (!encoder->delta || encoder->base_size >= state->group_count)
        return true;
    struct ew_otlp_base *grown = ew_realloc_array(encoder->bases, state->group_size, sizeof *grown);
    if (grown == NULL)
        return false;
    memset(grown + encoder->base_size, 0, (state->group_size - encoder->base_size) * sizeof *grown);
    encoder->bases = grown;
    encoder->base_size = state->group_size;
    return true;
}

static void remember_group(struct ew_otlp_base *base, const struct ew_state_group *group)
{
    base->serial = group->serial;
    memcpy(base->counters, group->counters, sizeof base->counters);
    base->started = group->started;
    base->exited = group->exited;
}

static void remember(struct ew_otlp_encoder *encoder, const struct ew_state *state, uint64_t t_ns)
{
    encoder->last_ns = t_ns;
    if (!encoder->delta)
        return;
    for (uint32_t g = 0; g < state->group_count; g++)
        if (state->groups[g].key != NULL)
            remember_group(&encoder->bases[g], &state->groups[g]);
    remember_group(&encoder->other, &state->other);
    memcpy(encoder->system, state->system_counters, sizeof encoder->system);
    for (uint32_t i = 0; i < state->device_count; i++)
        memcpy(encoder->devices[i], state->devices[i].totals, sizeof encoder->devices[i]);
    for (uint32_t i = 0; i < EW_OTLP_SELF_COUNT; i++)
        encoder->self[i] = self_counter(state, i);
}

static void write_all(struct walk *w)
{
    const struct ew_state *state = w->state;
    if (w->encoder->json)
        ew_buf_char(w->out, '{');
    w->first[0] = true;
    open_array(w, "resourceMetrics");
    put_resource_metrics(w, NULL);
    for (uint32_t g = 0; state->options.pid_label && g < state->group_count; g++)
        if (ew_groups_at(state, g) != NULL)
            put_resource_metrics(w, &state->groups[g]);
    close_array(w);
    if (w->encoder->json)
        ew_buf_char(w->out, '}');
}

int ew_otlp_encode(struct ew_otlp_encoder *encoder, const struct ew_state *state, uint64_t t_ns,
                   struct ew_buf *out, uint64_t *ret_points)
{
    struct walk w = {.encoder = encoder, .state = state, .out = out, .t_ns = t_ns};
    size_t slots = (size_t)state->group_count + 1;
    w.sums = ew_calloc(slots * ETWATCH_METRIC_COUNT, sizeof *w.sums);
    w.known = ew_calloc(slots, sizeof *w.known);
    int rc = w.sums == NULL || w.known == NULL || !grow_bases(encoder, state) ? ETWATCH_ENOMEM : 0;
    if (rc == 0) {
        w.columns = ew_state_columns(state);
        find_families(&w);
        sum_gauges(&w);
        write_all(&w);
        rc = out->error;
    }
    if (rc == 0) {
        remember(encoder, state, t_ns);
        *ret_points = w.points;
    }
    ew_free(w.sums);
    ew_free(w.known);
    return rc;
}

void ew_otlp_encoder_done(struct ew_otlp_encoder *encoder)
{
    ew_free(encoder->bases);
    ew_free(encoder->devices);
    encoder->bases = NULL;
    encoder->devices = NULL;
    encoder->base_size = 0;
}
