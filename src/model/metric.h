/* SPDX-License-Identifier: MIT */
/* The table of metrics as the stages use it. See etwatch/metrics.h for what it says. */
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
    const char *otlp_linux, *otlp_linux_unit; /* NULL: as elsewhere */
};

extern const struct ew_metric_row ew_metric_rows[ETWATCH_METRIC_COUNT];

/* Bits of the metrics with this exactness, and of those that come without being asked for. */
uint64_t ew_metrics_with(uint32_t backend, uint32_t exactness);
uint64_t ew_metrics_default(uint32_t backend);
/* What a source measures if nothing else is known: exact, polled or estimated. */
uint64_t ew_metrics_available(uint32_t backend);

/* What is measured if this is wanted (etwatch_config.metrics) of a source of this kind. */
uint64_t ew_metrics_chosen(uint32_t backend, uint64_t wanted);
/* Those that have a rate of their own. */
uint64_t ew_metrics_rated(void);
/* How long lies at least between two readings of these; 0: none of them is chosen, 1: no rate. */
uint64_t ew_metrics_period_ns(uint64_t chosen, const struct etwatch_rate *rates,
                              uint32_t rate_count, uint64_t metrics);

/* What is polled if this is asked for: what is read together is polled together. */
uint64_t ew_metrics_polled(uint64_t wanted);

/* Ids, masks, levels and peaks: an average over intervals is meaningless. */
#define EW_METRICS_WITHOUT_AVERAGE                                                    \
    (ETWATCH_HAS(priority) | ETWATCH_HAS(affinity) | ETWATCH_HAS(io_priority) |       \
     ETWATCH_HAS(rss_peak_bytes) | ETWATCH_HAS(handles_peak) | ETWATCH_HAS(exit_ns) | \
     ETWATCH_HAS(exit_code) | ETWATCH_HAS(exit_signal))

/* Told in every case: what a process is and how it ended. */
#define EW_METRICS_ALWAYS (ETWATCH_HAS(exit_ns) | ETWATCH_HAS(exit_code) | ETWATCH_HAS(exit_signal))

#endif
