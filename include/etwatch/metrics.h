/* SPDX-License-Identifier: MIT */
/*
 * Every metric: its name, unit and meaning, its names in Prometheus and OpenTelemetry, and, for
 * each source, how it is measured and how exact it is. Output columns, `etwatch metrics`,
 * docs/metrics.md and the exporters are made from this table; bindings should use it too.
 *
 * Stable: names, units, kinds, groups, the order of metrics, and the names under `prometheus` and
 * `otlp`. Not stable: the texts of `help` and `how`. Strings belong to the library and stay valid.
 * All functions may be called from any thread and in any callback. The rules of etwatch.h hold.
 */
#ifndef ETWATCH_METRICS_H
#define ETWATCH_METRICS_H

#include <etwatch/etwatch.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A source as far as metrics are concerned: polling differs by system. */
enum etwatch_backend {
    ETWATCH_BACKEND_ETW = 0,
    ETWATCH_BACKEND_ETL = 1,
    ETWATCH_BACKEND_EBPF = 2,
    ETWATCH_BACKEND_POLL_LINUX = 3,
    ETWATCH_BACKEND_POLL_WINDOWS = 4,
    ETWATCH_BACKEND_COUNT = 5,
};

enum etwatch_exactness {
    ETWATCH_EXACTNESS_UNAVAILABLE = 0, /* always null; `how` has the reason */
    ETWATCH_EXACTNESS_ESTIMATED = 1,   /* an estimate; `how` describes its error */
    ETWATCH_EXACTNESS_POLLED = 2,      /* the system's value when it was read, at some rate */
    ETWATCH_EXACTNESS_EXACT = 3,       /* the system's value, exact for the interval */
};

struct etwatch_metric_info {
    uint32_t size;
    uint32_t metric;        /* enum etwatch_metric */
    const char *name;       /* JSON key, CSV header, C field */
    const char *type;       /* "u64", "i64", "double" */
    const char *kind;       /* "counter", "gauge" */
    const char *unit;       /* "ns", "bytes", "percent", "uj", "count", "level", "mask",
                               "unix_ns", "code" */
    const char *group;      /* "cpu", "memory", "threads", "io", "handles", "devices", "exit" */
    const char *help;       /* one sentence */
    const char *prometheus; /* whole name; NULL: not exported */
    const char *prometheus_labels; /* such as mode="user"; "" if none */
    double scale;                  /* factor for both exporters */
    const char *otlp;              /* name; NULL: not exported */
    const char *otlp_attribute;    /* such as cpu.mode=user; "" if none */
    const char *otlp_unit;         /* UCUM */
    double default_hz;             /* how often it is read at most; 0: with every sample */
    const char *otlp_linux;        /* otlp and otlp_unit on Linux, where they may differ */
    const char *otlp_linux_unit;
    uint32_t has_average; /* 1: an average over intervals is meaningful (etwatch/window.h); 0 for
                             ids, masks, levels and peaks */
    uint32_t reserved;
};

struct etwatch_metric_backend {
    uint32_t size;
    uint32_t exactness;  /* enum etwatch_exactness */
    uint32_t on_request; /* 1: only if requested by name, by its group or by "all" */
    uint32_t reserved;
    const char *how; /* how it is measured, or why it is unavailable */
};

/* "etw", "etl", "ebpf", "poll-linux", "poll-windows"; NULL for anything else. */
ETWATCH_API const char *etwatch_backend_name(uint32_t backend);
/* "unavailable", "estimated", "polled", "exact"; NULL for anything else. */
ETWATCH_API const char *etwatch_exactness_name(uint32_t exactness);

/* The metric with this index (0 to ETWATCH_METRIC_COUNT - 1). ETWATCH_EINVAL: it does not exist, or
 * `size` is not set. */
ETWATCH_API int etwatch_metric_info(uint32_t metric, struct etwatch_metric_info *ret_info);
ETWATCH_API int etwatch_metric_backend(uint32_t metric, uint32_t backend,
                                       struct etwatch_metric_backend *ret_backend);

/* The metric with this name, or the metrics of this group, for etwatch_config.metrics; "all" and
 * "default" are groups too. A group has only metrics that some source can measure. ETWATCH_EINVAL:
 * there is no such name; ETWATCH_ENOTSUP: the metric exists, but no source measures it yet. */
ETWATCH_API int etwatch_metrics_named(const char *name, struct etwatch_metric_set *ret_set);
/* The metrics that etwatch_config.polled_metrics may have: gauges that can be polled next to
 * events. */
ETWATCH_API void etwatch_metrics_pollable(struct etwatch_metric_set *ret_set);

/* Why a running monitor does not measure this metric; valid until it stops. NULL: it does. */
ETWATCH_API const char *etwatch_monitor_unavailable_reason(struct etwatch_monitor *monitor,
                                                           uint32_t metric);

#ifdef __cplusplus
}
#endif

#endif /* ETWATCH_METRICS_H */
