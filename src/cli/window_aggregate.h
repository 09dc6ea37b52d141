/* SPDX-License-Identifier: MIT */
/* stat --window: the spread of each process's values over windows of fixed length. */
#ifndef EW_CLI_WINDOW_AGGREGATE_H
#define EW_CLI_WINDOW_AGGREGATE_H

#include <etwatch/sink.h>

struct ew_window_row;

struct ew_windows {
    uint64_t length_ns; /* 0: no windows are wanted */
    uint8_t
        wanted[ETWATCH_METRIC_COUNT]; /* enum ew_aggregation; 0: all of cpu_percent, rss_bytes */
    uint64_t more;                    /* bits of the others that are wanted */
    uint64_t from_ns;                 /* 0: none is open */
    uint64_t last_ns;
    struct ew_window_row *rows;
    uint32_t count, size;
    uint64_t unlisted; /* samples of processes beyond the maximum */
};

void ew_windows_init(struct ew_windows *windows, double seconds);
/* By metric: which of its values, 0: none; cpu_percent and rss_bytes are there in any case. */
void ew_windows_want(struct ew_windows *windows, const uint8_t wanted[ETWATCH_METRIC_COUNT]);
void ew_windows_done(struct ew_windows *windows);
/* Adds a sample; hands the rows of every window that it ends to the sink. */
int ew_windows_add(struct ew_windows *windows, const struct etwatch_sample *sample,
                   struct etwatch_sink *sink);
/* Hands over the window that is still open. */
int ew_windows_end(struct ew_windows *windows, struct etwatch_sink *sink);

#endif
