/* SPDX-License-Identifier: MIT */
/*
 * The inside of etwatch/rollup.h: samples added up per process and thread, for a block of the
 * table, a screen of top, the summary of a run.
 */
#ifndef EW_SINK_ROLLUP_H
#define EW_SINK_ROLLUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <etwatch/rollup.h>

enum { EW_ROLLUP_NAME_SIZE = 64, EW_ROLLUP_USER_SIZE = 33 };

struct ew_rollup_row {
    /* type SAMPLE or THREAD; counters are sums, gauges the latest values, cpu_percent is not kept:
     * see ew_rollup_percent. Its strings point into the row or are NULL. */
    struct etwatch_sample sum;
    uint64_t first_ns;           /* start of the first interval in the sum */
    uint64_t peak_percent_milli; /* highest cpu_percent of an interval, in 1/1000 */
    bool active;                 /* something was added since the last ew_rollup_next */
    bool preexisting;
    bool exited;
    char name[EW_ROLLUP_NAME_SIZE];
    char thread_name[EW_ROLLUP_NAME_SIZE];
    char user[EW_ROLLUP_USER_SIZE];
};

struct ew_rollup {
    struct ew_rollup_row *rows;
    uint32_t count, size, max;
    uint32_t *index; /* hash of (pid, start, tid) to row + 1; index_mask + 1 slots */
    uint32_t index_mask;
    uint32_t thread_count;
    bool threads_unlisted; /* there were more threads than the limit */
    bool totals; /* an EXIT replaces the sums: its totals cover the whole lifetime exactly */
    /* Samples beyond max rows, and rows that were evicted. */
    struct etwatch_sample rest;
    uint64_t rest_count;
    uint64_t last_ns;
    bool incomplete;
    struct ew_rollup_order *order;
    int error;
};

/* max_rows is rounded up to a power of two. Memory grows with the number of rows. */
void ew_rollup_init(struct ew_rollup *rollup, uint32_t max_rows, bool totals);
void ew_rollup_done(struct ew_rollup *rollup);
/* 0 or ETWATCH_ENOMEM. */
int ew_rollup_add(struct ew_rollup *rollup, const struct etwatch_sample *sample);
/* Starts the next block: counters are reset, gauges kept, rows of exited processes removed. */
void ew_rollup_next(struct ew_rollup *rollup);
/* CPU time of the row over wall_ns, in percent of one core; negative if unknown. */
double ew_rollup_percent(const struct ew_rollup_row *row, uint64_t wall_ns);

/* Sorts for display: processes by `metric` (an unsigned one, largest first), each followed by its
 * threads in the same order. With active_only, rows without changes since ew_rollup_next are
 * skipped. Returns the number of rows that ew_rollup_sorted has until the next change; 0, and
 * rollup->error, if out of memory.
 */
size_t ew_rollup_sort(struct ew_rollup *rollup, uint32_t metric, bool active_only);
const struct ew_rollup_row *ew_rollup_sorted(const struct ew_rollup *rollup, size_t i);

#endif
