/* SPDX-License-Identifier: MIT */
/* stat --window: the spread of each process's values over windows of fixed length. */
#ifndef EW_CLI_WINDOW_AGGREGATE_H
#define EW_CLI_WINDOW_AGGREGATE_H

#include <etwatch/sink.h>

struct ew_window_row;

struct ew_window_aggregate {
    uint64_t length_ns; /* 0: no windows are wanted */
    uint8_t
        wanted[ETWATCH_METRIC_COUNT]; /* enum ew_aggregation; 0: all of cpu_percent, rss_bytes */
    struct etwatch_metric_set more;   /* the other metrics that are selected */
    uint64_t from_ns;                 /* 0: none is open */
    uint64_t last_ns;
    struct ew_window_row *rows;
    uint32_t count, size;
    uint64_t unlisted; /* samples of processes beyond the maximum */
};

void ew_window_aggregate_init(struct ew_window_aggregate *windows, double seconds);
/* By metric: which of its values, 0: none; cpu_percent and rss_bytes are there in any case. */
void ew_window_aggregate_want(struct ew_window_aggregate *windows,
                              const uint8_t wanted[ETWATCH_METRIC_COUNT]);
void ew_window_aggregate_done(struct ew_window_aggregate *windows);
/* Adds a sample; hands the rows of every window that it ends to the sink. */
int ew_window_aggregate_add(struct ew_window_aggregate *windows,
                            const struct etwatch_sample *sample, struct etwatch_sink *sink);
/* Hands over the window that is still open. */
int ew_window_aggregate_end(struct ew_window_aggregate *windows, struct etwatch_sink *sink);

#endif
