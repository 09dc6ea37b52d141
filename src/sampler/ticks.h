/* SPDX-License-Identifier: MIT */
/*
 * Where intervals begin and end. Interval n is the half-open time [start, end): what happens
 * exactly at an end belongs to the next. Numbers go on when the length changes, so they order all
 * intervals of a run; times before the first interval belong to it.
 */
#ifndef EW_SAMPLER_TICKS_H
#define EW_SAMPLER_TICKS_H

#include <stdint.h>

#define EW_INTERVAL_MIN_NS UINT64_C(1000000)     /* 1000 Hz */
#define EW_INTERVAL_MAX_NS UINT64_C(10000000000) /* 0.1 Hz */
#define EW_TICKS_CHANGES 8u

/* From from_ns on, interval first_index and its followers are interval_ns long. */
struct ew_tick_segment {
    uint64_t from_ns;
    uint64_t first_index;
    uint64_t interval_ns;
    uint64_t max_steps; /* as many intervals fit into 64 bits from here on */
};

struct ew_ticks {
    struct ew_tick_segment segment[EW_TICKS_CHANGES];
    uint32_t count;
    /* The interval asked for last: readings come in order of time, so mostly it is asked again. */
    uint64_t near_start_ns, near_end_ns, near_index;
};

void ew_ticks_init(struct ew_ticks *ticks, uint64_t epoch_ns, uint64_t interval_ns);
/* The interval that holds t_ns. */
uint64_t ew_ticks_find(struct ew_ticks *ticks, uint64_t t_ns);
uint64_t ew_ticks_start(const struct ew_ticks *ticks, uint64_t index);
uint64_t ew_ticks_end(const struct ew_ticks *ticks, uint64_t index);
/* From at_ns on, an end of an interval. ETWATCH_EINVAL: it is none; ETWATCH_ELIMIT: too many
 * changes wait for their time. */
int ew_ticks_change(struct ew_ticks *ticks, uint64_t at_ns, uint64_t interval_ns);
/* Nobody will ask for intervals before this one again. */
void ew_ticks_forget(struct ew_ticks *ticks, uint64_t index);

static inline uint64_t ew_ticks_index(struct ew_ticks *ticks, uint64_t t_ns)
{
    if (t_ns >= ticks->near_start_ns && t_ns < ticks->near_end_ns)
        return ticks->near_index;
    return ew_ticks_find(ticks, t_ns);
}

#endif
