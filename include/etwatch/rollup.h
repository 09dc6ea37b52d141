/* SPDX-License-Identifier: MIT */
/*
 * Rollups: samples added up per process and thread, sorted for a screen or a final table. Counters
 * are sums, gauges the latest values. For the spread of each metric see etwatch/summary.h.
 *
 * The number of rows is bounded. When it is reached, processes that exited and used the least CPU
 * are folded into one sum, so that a storm of short processes takes no memory and no time is lost.
 *
 * The rules of etwatch.h hold. One thread at a time.
 */
#ifndef ETWATCH_ROLLUP_H
#define ETWATCH_ROLLUP_H

#include <etwatch/etwatch.h>

#ifdef __cplusplus
extern "C" {
#endif

struct etwatch_rollup;

enum etwatch_rollup_flag {
    /* The totals of an EXIT replace the sums of its process; else they are ignored. */
    ETWATCH_ROLLUP_TOTALS = 1u << 0,
};

struct etwatch_rollup_options {
    uint32_t size;
    uint32_t flags;    /* enum etwatch_rollup_flag */
    uint32_t max_rows; /* rounded up to a power of two; 0 = 4096 */
    uint32_t reserved;
};

enum etwatch_rollup_row_flag {
    ETWATCH_ROLLUP_ACTIVE = 1u << 0, /* has samples since etwatch_rollup_next */
    ETWATCH_ROLLUP_PREEXISTING = 1u << 1,
    ETWATCH_ROLLUP_EXITED = 1u << 2,
};

/* One process, or one thread. */
struct etwatch_rollup_row {
    uint32_t size;
    uint32_t flags;    /* enum etwatch_rollup_row_flag */
    uint64_t first_ns; /* the beginning of the first interval in the sum */
    /* Type SAMPLE or THREAD, without cpu_percent; valid until the rollup is changed. */
    const struct etwatch_sample *sum;
};

enum etwatch_rollup_info_flag {
    ETWATCH_ROLLUP_THREADS_UNLISTED = 1u << 0, /* more threads than rows */
    ETWATCH_ROLLUP_INCOMPLETE = 1u << 1,       /* a sample was not complete */
};

struct etwatch_rollup_info {
    uint32_t size;
    uint32_t flags;                     /* enum etwatch_rollup_info_flag */
    uint64_t last_ns;                   /* time of the latest sample */
    uint64_t cpu_ns;                    /* of all processes */
    uint64_t active;                    /* processes with ETWATCH_ROLLUP_ACTIVE */
    uint64_t unlisted, unlisted_cpu_ns; /* processes without a row of their own */
};

/* options may be NULL. */
ETWATCH_API int etwatch_rollup_new(const struct etwatch_rollup_options *options,
                                   struct etwatch_rollup **ret_rollup);
/* NULL is fine. */
ETWATCH_API void etwatch_rollup_free(struct etwatch_rollup *rollup);
/* Adds one sample of any type, in the order of delivery. */
ETWATCH_API int etwatch_rollup_add(struct etwatch_rollup *rollup,
                                   const struct etwatch_sample *sample);
/* Begins the next period: counters become 0, gauges stay, rows that exited go. */
ETWATCH_API int etwatch_rollup_next(struct etwatch_rollup *rollup);
/* Sorts processes by a metric of type uint64_t, the largest value first, each followed by its
 * threads in the same order. flags: 0, or ETWATCH_ROLLUP_ACTIVE for rows with that flag only.
 * Returns the number of rows that etwatch_rollup_row has until the rollup is changed. */
ETWATCH_API int etwatch_rollup_sort(struct etwatch_rollup *rollup, uint32_t metric, uint32_t flags);
/* Row i of the last sort, from 0. */
ETWATCH_API int etwatch_rollup_row(const struct etwatch_rollup *rollup, uint32_t i,
                                   struct etwatch_rollup_row *ret_row);
ETWATCH_API int etwatch_rollup_info(const struct etwatch_rollup *rollup,
                                    struct etwatch_rollup_info *ret_info);

#ifdef __cplusplus
}
#endif

#endif /* ETWATCH_ROLLUP_H */
