/* SPDX-License-Identifier: MIT */
/*
 * Windows: the average, the maximum and the 95th and 99th percentile of the values of each process
 * over windows of a fixed length, in the time of the samples.
 *
 * An interval without a sample is one in which the process did nothing: it counts as 0 for
 * cpu_percent and for counters. Gauges count only in the intervals in which they were measured.
 * Percentiles are exact to 0.8 %. Memory grows with the processes of one window, up to 4096.
 *
 * The rules of etwatch.h hold. One thread at a time.
 */
#ifndef ETWATCH_WINDOW_H
#define ETWATCH_WINDOW_H

#include <etwatch/sink.h>

#ifdef __cplusplus
extern "C" {
#endif

struct etwatch_aggregator;

enum etwatch_window_value {
    ETWATCH_WINDOW_AVG = 1u << 0,
    ETWATCH_WINDOW_MAX = 1u << 1,
    ETWATCH_WINDOW_P95 = 1u << 2,
    ETWATCH_WINDOW_P99 = 1u << 3,
};

/* A metric of a window and its values. FIXED. */
struct etwatch_window_metric {
    uint32_t metric; /* enum etwatch_metric; etwatch_metric_info.has_average must be 1 */
    uint32_t values; /* enum etwatch_window_value; 0 = all. The others are NaN. */
};

struct etwatch_aggregator_options {
    uint32_t size;
    uint32_t metric_count;
    uint64_t length_ns; /* of one window */
    /* cpu_percent and rss_bytes are always aggregated, any other metric only if it is listed. */
    const struct etwatch_window_metric *metrics;
    /* Called once for each process of a window that is over; the window is valid until it returns.
     * Nonzero ends the call that delivers it with that code. */
    int (*on_window)(void *ctx, const struct etwatch_window *window);
    void *ctx;
};

/* ETWATCH_EINVAL: no length, no callback, or a metric without an average. */
ETWATCH_API int etwatch_aggregator_new(const struct etwatch_aggregator_options *options,
                                       struct etwatch_aggregator **ret_aggregator,
                                       struct etwatch_error_info *reterr);
/* Frees without delivering the open window. NULL is fine. */
ETWATCH_API void etwatch_aggregator_free(struct etwatch_aggregator *aggregator);
/* Adds a sample, in the order of delivery; delivers the window that it ends. Types other than
 * SAMPLE and EXIT are ignored. */
ETWATCH_API int etwatch_aggregator_add(struct etwatch_aggregator *aggregator,
                                       const struct etwatch_sample *sample);
/* Delivers the window that is still open, up to the last sample. */
ETWATCH_API int etwatch_aggregator_end(struct etwatch_aggregator *aggregator);
/* Samples that were dropped because the window had 4096 processes. */
ETWATCH_API uint64_t etwatch_aggregator_dropped(const struct etwatch_aggregator *aggregator);

#ifdef __cplusplus
}
#endif

#endif /* ETWATCH_WINDOW_H */
