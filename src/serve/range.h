/* SPDX-License-Identifier: MIT */
/*
 * A part of the history of one track on a regular grid of time. Counters become rates (a second),
 * gauges their average. A bucket in which the track did nothing has 0 for counters and the last
 * value of gauges; a bucket of which nothing is known (before the first fact, after the exit, or
 * overwritten) is NAN, which JSON shows as null.
 */
#ifndef EW_SERVE_RANGE_H
#define EW_SERVE_RANGE_H

#include "serve/state.h"

enum { EW_RANGE_BUCKETS_MAX = 4000, EW_RANGE_METRICS_MAX = 32 };

struct ew_range {
    uint64_t from_ns, to_ns, step_ns; /* from_ns is a multiple of step_ns */
    uint32_t buckets;
    bool fine; /* from the fine history */
};

/* Fits a request (0: not given) to what the history has. False: the range is empty. */
bool ew_range_fit(const struct ew_state *state, uint64_t from_ns, uint64_t to_ns, uint64_t step_ns,
                  bool machine, struct ew_range *ret_range);

/* One metric of a track. */
struct ew_range_metric {
    uint32_t metric;
    bool counter;
    double *values; /* buckets */
    double *peaks;  /* counters: the highest rate of a record; NULL: not wanted */
};

/* Fills the values. known_from_ns, known_to_ns: the life of the track. 0 or ETWATCH_ENOMEM. */
int ew_range_read(const struct ew_history *history, uint64_t mark, const struct ew_range *range,
                  uint64_t known_from_ns, uint64_t known_to_ns, struct ew_range_metric *metrics,
                  uint32_t count);

#endif
