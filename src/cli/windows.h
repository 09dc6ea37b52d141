/* SPDX-License-Identifier: MIT */
/* stat --window: the spread of each process's values over windows of fixed length. */
#ifndef EW_CLI_WINDOWS_H
#define EW_CLI_WINDOWS_H

#include <etwatch/sink.h>

struct ew_window_row;

struct ew_windows {
    uint64_t length_ns;                 /* 0: no windows are wanted */
    uint32_t cpu_wanted, memory_wanted; /* enum ew_aggregation; 0: all */
    uint64_t from_ns;                   /* 0: none is open */
    uint64_t last_ns;
    struct ew_window_row *rows;
    uint32_t count, size;
    uint64_t unlisted; /* samples of processes beyond the maximum */
};

void ew_windows_init(struct ew_windows *windows, double seconds);
void ew_windows_done(struct ew_windows *windows);
/* Adds a sample; hands the rows of every window that it ends to the sink. */
int ew_windows_add(struct ew_windows *windows, const struct etwatch_sample *sample,
                   struct etwatch_sink *sink);
/* Hands over the window that is still open. */
int ew_windows_end(struct ew_windows *windows, struct etwatch_sink *sink);

#endif
