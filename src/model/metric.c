/* SPDX-License-Identifier: MIT */
/* Queries on the table of metrics, and its public functions. */
#include "model/metric.h"
#include "base/sized.h"

#include <string.h>

#define TYPE(type) _Generic((type)0, uint64_t : "u64", int64_t : "i64", double : "double")

static const struct {
    const char *name, *type, *kind;
} names[ETWATCH_METRIC_COUNT] = {
#define ETWATCH_X(name, type, kind) {#name, TYPE(type), #kind},
    ETWATCH_METRICS(ETWATCH_X)
#undef ETWATCH_X
};

const char *etwatch_backend_name(uint32_t backend)
{
    static const char *const words[ETWATCH_BACKEND_COUNT] = {"etw", "etl", "ebpf", "poll-linux",
                                                             "poll-windows"};
    return backend < ETWATCH_BACKEND_COUNT ? words[backend] : NULL;
}

const char *etwatch_exactness_name(uint32_t exactness)
{
    static const char *const words[] = {"unavailable", "estimated", "polled", "exact"};
    return exactness <= ETWATCH_EXACTNESS_EXACT ? words[exactness] : NULL;
}

int etwatch_metric_info(uint32_t metric, struct etwatch_metric_info *ret_info)
{
    if (metric >= ETWATCH_METRIC_COUNT || ret_info == NULL)
        return ETWATCH_EINVAL;
    const struct ew_metric_row *row = &ew_metric_rows[metric];
    struct etwatch_metric_info info = {
        .metric = metric,
        .name = names[metric].name,
        .type = names[metric].type,
        .kind = names[metric].kind,
        .unit = row->unit,
        .group = row->group,
        .help = row->help,
        .prometheus = row->prometheus,
        .prometheus_labels = row->prometheus_labels != NULL ? row->prometheus_labels : "",
        .scale = row->scale != 0 ? row->scale : 1,
        .otlp = row->otlp,
        .otlp_attribute = row->otlp_attribute != NULL ? row->otlp_attribute : "",
        .otlp_unit = row->otlp_unit != NULL ? row->otlp_unit : "",
        .default_hz = row->default_hz,
        .otlp_linux = row->otlp_linux != NULL ? row->otlp_linux : row->otlp,
        .otlp_linux_unit = row->otlp_linux_unit != NULL ? row->otlp_linux_unit
                           : row->otlp_unit != NULL     ? row->otlp_unit
                                                        : "",
        .has_average = (EW_METRICS_WITHOUT_AVERAGE >> metric & 1) == 0,
    };
    return ew_sized_out(ret_info, &info, sizeof info);
}

int etwatch_metric_backend(uint32_t metric, uint32_t backend,
                           struct etwatch_metric_backend *ret_backend)
{
    if (metric >= ETWATCH_METRIC_COUNT || backend >= ETWATCH_BACKEND_COUNT || ret_backend == NULL)
        return ETWATCH_EINVAL;
    const struct ew_metric_backend *cell = &ew_metric_rows[metric].backend[backend];
    struct etwatch_metric_backend out = {
        .exactness = cell->exactness, .on_request = cell->on_request, .how = cell->how};
    return ew_sized_out(ret_backend, &out, sizeof out);
}

uint64_t ew_metrics_with(uint32_t backend, uint32_t exactness)
{
    uint64_t mask = 0;
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++)
        if (ew_metric_rows[i].backend[backend].exactness == exactness)
            mask |= (uint64_t)1 << i;
    return mask;
}

uint64_t ew_metrics_available(uint32_t backend)
{
    return ew_metrics_with(backend, ETWATCH_EXACTNESS_EXACT) |
           ew_metrics_with(backend, ETWATCH_EXACTNESS_POLLED) |
           ew_metrics_with(backend, ETWATCH_EXACTNESS_ESTIMATED);
}

uint64_t ew_metrics_default(uint32_t backend)
{
    uint64_t mask = 0;
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++)
        if (!ew_metric_rows[i].backend[backend].on_request)
            mask |= (uint64_t)1 << i;
    return mask;
}

uint64_t ew_metrics_chosen(uint32_t backend, uint64_t wanted)
{
    if (wanted == 0 || (wanted & ETWATCH_METRICS_DEFAULT) != 0)
        wanted |= ew_metrics_default(backend);
    return (wanted & ~ETWATCH_METRICS_DEFAULT) | EW_METRICS_ALWAYS;
}

uint64_t ew_metrics_rated(void)
{
    uint64_t mask = 0;
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++)
        if (ew_metric_rows[i].default_hz > 0)
            mask |= (uint64_t)1 << i;
    return mask;
}

static double rate_of(uint32_t metric, const struct etwatch_rate *rates, uint32_t rate_count)
{
    double hz = ew_metric_rows[metric].default_hz;
    for (uint32_t i = 0; i < rate_count; i++)
        if ((rates[i].metrics >> metric & 1) != 0)
            hz = rates[i].hz;
    return hz;
}

uint64_t ew_metrics_period_ns(uint64_t chosen, const struct etwatch_rate *rates,
                              uint32_t rate_count, uint64_t metrics)
{
    double fastest = 0;
    if ((chosen & metrics) == 0)
        return 0;
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++) {
        if ((chosen & metrics & (uint64_t)1 << i) == 0)
            continue;
        double hz = rate_of(i, rates, rate_count);
        if (hz <= 0)
            return 1;
        fastest = hz > fastest ? hz : fastest;
    }
    return (uint64_t)(1e9 / fastest);
}

static const uint64_t polled_memory = ETWATCH_HAS(rss_bytes) | ETWATCH_HAS(rss_peak_bytes) |
                                      ETWATCH_HAS(private_bytes) | ETWATCH_HAS(virtual_bytes);

uint64_t etwatch_metrics_pollable(void)
{
    return polled_memory | ETWATCH_HAS(pool_paged_bytes) | ETWATCH_HAS(pool_nonpaged_bytes) |
           ETWATCH_HAS(threads_running) | ETWATCH_HAS(threads_ready) |
           ETWATCH_HAS(threads_waiting) | ETWATCH_HAS(threads_suspended) | ETWATCH_HAS(handles) |
           ETWATCH_HAS(handles_peak) | ETWATCH_HAS(gdi_objects) | ETWATCH_HAS(user_objects) |
           ETWATCH_HAS(io_priority);
}

uint64_t ew_metrics_polled(uint64_t wanted)
{
    return wanted | ((wanted & polled_memory) != 0 ? polled_memory : 0);
}

uint64_t etwatch_metrics_named(const char *name)
{
    uint64_t mask = 0;
    if (name == NULL)
        return 0;
    if (strcmp(name, "all") == 0)
        return ((uint64_t)1 << ETWATCH_METRIC_COUNT) - 1;
    if (strcmp(name, "default") == 0)
        return ETWATCH_METRICS_DEFAULT;
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++)
        if (strcmp(names[i].name, name) == 0 || strcmp(ew_metric_rows[i].group, name) == 0)
            mask |= (uint64_t)1 << i;
    return mask;
}
