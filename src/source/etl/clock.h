/* SPDX-License-Identifier: MIT */
/*
 * The clock of one file: converts its ticks to the reader's ns in integer arithmetic.
 *
 * Three kinds: the performance counter (with its frequency), system time (100 ns) and CPU cycles
 * (with MHz). The header event carries both its ticks and the wall time, so it is the anchor.
 */
#ifndef EW_SOURCE_ETL_CLOCK_H
#define EW_SOURCE_ETL_CLOCK_H

#include <stdint.h>

/* Times are capped here, so that additions cannot overflow: 146 years. */
#define EW_ETL_NS_MAX (UINT64_MAX >> 2)

struct ew_etl_clock {
    uint64_t zero_raw; /* the anchor: these ticks ... */
    uint64_t zero_ns;  /* ... are this time */
    /* Ticks after the anchor, up to max_fast, are this many ns each. max_fast 0: not an integer,
     * or too large. */
    uint64_t ns_per_tick, max_fast;
    uint64_t hz; /* at most 10^10 */
    /* 10^9 / hz as a fixed-point number with `shift` fraction bits, truncated; valid for ticks
     * up to max_ratio. */
    uint64_t ratio, max_ratio;
    uint32_t shift;
};

/* kind as in the header: 1, 2, 3. An impossible frequency is replaced by 10 MHz. */
void ew_etl_clock_init(struct ew_etl_clock *clock, uint32_t kind, uint64_t frequency, uint32_t mhz,
                       uint64_t zero_raw);

/* A number of ticks, rounded down and capped at EW_ETL_NS_MAX. */
uint64_t ew_etl_clock_ticks_ns(const struct ew_etl_clock *clock, uint64_t ticks);
/* For times before the anchor or times that need a division. */
uint64_t ew_etl_clock_slow_ns(const struct ew_etl_clock *clock, uint64_t raw);

/* Times before the reader's zero become 0. */
static inline uint64_t ew_etl_clock_ns(const struct ew_etl_clock *clock, uint64_t raw)
{
    uint64_t ticks = raw - clock->zero_raw;
    if (ticks <= clock->max_fast)
        return clock->zero_ns + ticks * clock->ns_per_tick;
    return ew_etl_clock_slow_ns(clock, raw);
}

#endif
