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

const struct etwatch_metric_set ew_metrics_without_average = EW_METRIC_SET(
    ETWATCH_M_priority, ETWATCH_M_affinity, ETWATCH_M_io_priority, ETWATCH_M_rss_peak_bytes,
    ETWATCH_M_handles_peak, ETWATCH_M_exit_ns, ETWATCH_M_exit_code, ETWATCH_M_exit_signal);

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
        .has_average = !etwatch_metric_set_has(&ew_metrics_without_average, metric),
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

const struct etwatch_metric_set ew_metrics_of_devices = EW_METRIC_SET(
    ETWATCH_M_gpu_ns, ETWATCH_M_gpu_percent, ETWATCH_M_gpu_memory_bytes, ETWATCH_M_npu_ns,
    ETWATCH_M_npu_percent, ETWATCH_M_energy_uj, ETWATCH_M_gpu_encoder_ns, ETWATCH_M_gpu_decoder_ns);

const struct etwatch_metric_set ew_metrics_always =
    EW_METRIC_SET(ETWATCH_M_exit_ns, ETWATCH_M_exit_code, ETWATCH_M_exit_signal);

struct etwatch_metric_set ew_metrics_with(uint32_t backend, uint32_t exactness)
{
    struct etwatch_metric_set set = {{0}};
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++)
        if (ew_metric_rows[i].backend[backend].exactness == exactness)
            etwatch_metric_set_add(&set, i);
    return set;
}

struct etwatch_metric_set ew_metrics_available(uint32_t backend)
{
    struct etwatch_metric_set set = {{0}};
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++)
        if (ew_metric_rows[i].backend[backend].exactness != ETWATCH_EXACTNESS_UNAVAILABLE)
            etwatch_metric_set_add(&set, i);
    etwatch_metric_set_subtract(&set, &ew_metrics_of_devices);
    return set;
}

struct etwatch_metric_set ew_metrics_default(uint32_t backend)
{
    struct etwatch_metric_set set = {{0}};
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++)
        if (!ew_metric_rows[i].backend[backend].on_request)
            etwatch_metric_set_add(&set, i);
    /* Also where no sensor exists: without a request no sensor reports that it has no device. */
    etwatch_metric_set_subtract(&set, &ew_metrics_of_devices);
    return set;
}

bool ew_metric_is_measurable(uint32_t metric)
{
    for (uint32_t i = 0; i < ETWATCH_BACKEND_COUNT && metric < ETWATCH_METRIC_COUNT; i++)
        if (ew_metric_rows[metric].backend[i].exactness != ETWATCH_EXACTNESS_UNAVAILABLE)
            return true;
    return false;
}

struct etwatch_metric_set ew_metrics_measurable(void)
{
    struct etwatch_metric_set set = {{0}};
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++)
        if (ew_metric_is_measurable(i))
            etwatch_metric_set_add(&set, i);
    return set;
}

struct etwatch_metric_set ew_metrics_selected(uint32_t backend,
                                              const struct etwatch_metric_set *selection)
{
    struct etwatch_metric_set selected = *selection;
    if (etwatch_metric_set_is_empty(&selected) ||
        etwatch_metric_set_has(&selected, ETWATCH_METRIC_DEFAULT)) {
        struct etwatch_metric_set by_default = ew_metrics_default(backend);
        etwatch_metric_set_union(&selected, &by_default);
    }
    etwatch_metric_set_remove(&selected, ETWATCH_METRIC_DEFAULT);
    etwatch_metric_set_union(&selected, &ew_metrics_always);
    return selected;
}

struct etwatch_metric_set ew_metrics_rated(void)
{
    struct etwatch_metric_set set = {{0}};
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++)
        if (ew_metric_rows[i].default_hz > 0)
            etwatch_metric_set_add(&set, i);
    return set;
}

static double rate_of(uint32_t metric, const struct etwatch_rate *rates, uint32_t rate_count)
{
    double hz = metric < ETWATCH_METRIC_COUNT ? ew_metric_rows[metric].default_hz : 0;
    for (uint32_t i = 0; i < rate_count; i++)
        if (etwatch_metric_set_has(&rates[i].metrics, metric))
            hz = rates[i].hz;
    return hz;
}

uint64_t ew_metrics_period_ns(const struct etwatch_metric_set *selected,
                              const struct etwatch_rate *rates, uint32_t rate_count,
                              const struct etwatch_metric_set *metrics)
{
    struct etwatch_metric_set read = *selected;
    double fastest = 0;
    etwatch_metric_set_intersect(&read, metrics);
    if (etwatch_metric_set_is_empty(&read))
        return 0;
    for (uint32_t i = etwatch_metric_set_next(&read, 0); i != ETWATCH_METRIC_SET_END;
         i = etwatch_metric_set_next(&read, i + 1)) {
        double hz = rate_of(i, rates, rate_count);
        if (hz <= 0)
            return 1;
        fastest = hz > fastest ? hz : fastest;
    }
    return (uint64_t)(1e9 / fastest);
}

static const struct etwatch_metric_set polled_memory =
    EW_METRIC_SET(ETWATCH_M_rss_bytes, ETWATCH_M_rss_peak_bytes, ETWATCH_M_private_bytes,
                  ETWATCH_M_virtual_bytes);

void etwatch_metrics_pollable(struct etwatch_metric_set *ret_set)
{
    static const struct etwatch_metric_set others = EW_METRIC_SET(
        ETWATCH_M_pool_paged_bytes, ETWATCH_M_pool_nonpaged_bytes, ETWATCH_M_rss_private_bytes,
        ETWATCH_M_threads_running, ETWATCH_M_threads_ready, ETWATCH_M_threads_waiting,
        ETWATCH_M_threads_suspended, ETWATCH_M_handles, ETWATCH_M_handles_peak,
        ETWATCH_M_gdi_objects, ETWATCH_M_user_objects, ETWATCH_M_io_priority);
    *ret_set = polled_memory;
    etwatch_metric_set_union(ret_set, &others);
}

struct etwatch_metric_set ew_metrics_polled(const struct etwatch_metric_set *requested)
{
    struct etwatch_metric_set polled = *requested;
    if (ew_metric_set_intersects(requested, &polled_memory))
        etwatch_metric_set_union(&polled, &polled_memory);
    return polled;
}

int etwatch_metrics_named(const char *name, struct etwatch_metric_set *ret_set)
{
    struct etwatch_metric_set set = {{0}};
    bool known = false;
    if (name == NULL || ret_set == NULL)
        return ETWATCH_EINVAL;
    bool all = strcmp(name, "all") == 0;
    if (strcmp(name, "default") == 0)
        etwatch_metric_set_add(&set, ETWATCH_METRIC_DEFAULT);
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++) {
        if (!all && strcmp(names[i].name, name) != 0 && strcmp(ew_metric_rows[i].group, name) != 0)
            continue;
        known = true;
        if (ew_metric_is_measurable(i))
            etwatch_metric_set_add(&set, i);
    }
    if (etwatch_metric_set_is_empty(&set))
        return known ? ETWATCH_ENOTSUP : ETWATCH_EINVAL;
    *ret_set = set;
    return 0;
}
