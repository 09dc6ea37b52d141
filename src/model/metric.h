/* SPDX-License-Identifier: MIT */
/* Internal access to the table of metrics. See etwatch/metrics.h for its meaning. */
#ifndef EW_MODEL_METRIC_H
#define EW_MODEL_METRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <etwatch/metrics.h>

struct ew_metric_backend {
    uint8_t exactness; /* enum etwatch_exactness */
    bool on_request;
    const char *how;
};

struct ew_metric_row {
    const char *group, *unit, *help;
    const char *prometheus, *prometheus_labels; /* after etwatch_process_ */
    const char *otlp, *otlp_attribute, *otlp_unit;
    double scale;
    double default_hz;
    struct ew_metric_backend backend[ETWATCH_BACKEND_COUNT];
    const char *otlp_linux, *otlp_linux_unit; /* NULL: same as otlp and otlp_unit */
};

extern const struct ew_metric_row ew_metric_rows[ETWATCH_METRIC_COUNT];

/* The metrics with this exactness, and those measured by default. */
uint64_t ew_metrics_with(uint32_t backend, uint32_t exactness);
uint64_t ew_metrics_default(uint32_t backend);
/* All metrics that a backend can provide: exact, polled or estimated. */
uint64_t ew_metrics_available(uint32_t backend);

/* The metrics a backend measures for a given etwatch_config.metrics. */
uint64_t ew_metrics_chosen(uint32_t backend, uint64_t wanted);
/* The metrics with a rate of their own. */
uint64_t ew_metrics_rated(void);
/* Minimum time between two readings of these metrics; 0: none is selected, 1: no limit. */
uint64_t ew_metrics_period_ns(uint64_t chosen, const struct etwatch_rate *rates,
                              uint32_t rate_count, uint64_t metrics);

/* The metrics that are polled for a request: metrics that are read together are polled together. */
uint64_t ew_metrics_polled(uint64_t wanted);

/* Ids, masks, levels and peaks: an average over intervals is meaningless. */
#define EW_METRICS_WITHOUT_AVERAGE                                                    \
    (ETWATCH_HAS(priority) | ETWATCH_HAS(affinity) | ETWATCH_HAS(io_priority) |       \
     ETWATCH_HAS(rss_peak_bytes) | ETWATCH_HAS(handles_peak) | ETWATCH_HAS(exit_ns) | \
     ETWATCH_HAS(exit_code) | ETWATCH_HAS(exit_signal))

/* Always reported: how a process ended. */
#define EW_METRICS_ALWAYS (ETWATCH_HAS(exit_ns) | ETWATCH_HAS(exit_code) | ETWATCH_HAS(exit_signal))

#endif
