/* SPDX-License-Identifier: MIT */
/*
 * Converts ticks to ns without rounding errors that grow with the uptime: whole seconds and the
 * rest are converted separately, so that no product exceeds 64 bits. A double would be off by whole
 * events after a few days. Where 128-bit products exist, one multiplication replaces the two
 * divisions, which would cost as much as the rest of reading an event; the result is the same.
 */
#include "source/etl/clock.h"

enum { CLOCK_SYSTEM_TIME = 2, CLOCK_CYCLES = 3 };

#define NS_PER_S UINT64_C(1000000000)
#define HZ_MAX UINT64_C(10000000000)
#define HZ_DEFAULT UINT64_C(10000000)

#if defined(__SIZEOF_INT128__)
__extension__ typedef unsigned __int128 u128;

/* As many bits of 10^9 / hz as fit. The error is below 1/2^shift per tick, so that for fewer
 * ticks than 2^shift the product is at most one too small. */
static void set_ratio(struct ew_etl_clock *clock)
{
    u128 numerator = NS_PER_S;
    while ((numerator << 1) / clock->hz <= UINT64_MAX && clock->shift < 96) {
        numerator <<= 1;
        clock->shift++;
    }
    clock->ratio = (uint64_t)(numerator / clock->hz);
    /* The time must also stay in range. */
    uint64_t longest = EW_ETL_NS_MAX / 4 / NS_PER_S;
    clock->max_ratio = clock->hz < UINT64_MAX / longest ? clock->hz * longest : UINT64_MAX;
    if (clock->shift < 64 && clock->max_ratio >> clock->shift)
        clock->max_ratio = (UINT64_C(1) << clock->shift) - 1;
}

static uint64_t multiply(const struct ew_etl_clock *clock, uint64_t ticks)
{
    uint64_t ns = (uint64_t)((u128)ticks * clock->ratio >> clock->shift);
    uint64_t rest = ticks * NS_PER_S - ns * clock->hz; /* below 2 hz: no higher bits are missing */
    return ns + (rest >= clock->hz);
}
#else
static void set_ratio(struct ew_etl_clock *clock)
{
    (void)clock;
}

static uint64_t multiply(const struct ew_etl_clock *clock, uint64_t ticks)
{
    (void)clock;
    return ticks; /* max_ratio is 0: called only with 0 ticks */
}
#endif

void ew_etl_clock_init(struct ew_etl_clock *clock, uint32_t kind, uint64_t frequency, uint32_t mhz,
                       uint64_t zero_raw)
{
    uint64_t hz = frequency;
    if (kind == CLOCK_SYSTEM_TIME)
        hz = HZ_DEFAULT;
    else if (kind == CLOCK_CYCLES)
        hz = (uint64_t)mhz * 1000000;
    if (hz == 0 || hz > HZ_MAX)
        hz = HZ_DEFAULT;
    *clock = (struct ew_etl_clock){.zero_raw = zero_raw, .hz = hz};
    if (NS_PER_S % hz == 0) {
        clock->ns_per_tick = NS_PER_S / hz;
        clock->max_fast = EW_ETL_NS_MAX / 2 / clock->ns_per_tick;
    } else {
        set_ratio(clock);
    }
}

uint64_t ew_etl_clock_ticks_ns(const struct ew_etl_clock *clock, uint64_t ticks)
{
    uint64_t seconds = ticks / clock->hz, rest = ticks % clock->hz;
    if (seconds >= EW_ETL_NS_MAX / NS_PER_S)
        return EW_ETL_NS_MAX;
    /* rest < 10^10, so the product is below 10^19 < 2^64. */
    return seconds * NS_PER_S + rest * NS_PER_S / clock->hz;
}

uint64_t ew_etl_clock_slow_ns(const struct ew_etl_clock *clock, uint64_t raw)
{
    /* Raw times are signed on disk; a difference of more than half the range means before the
     * anchor. */
    uint64_t ticks = raw - clock->zero_raw;
    if (ticks <= clock->max_ratio)
        return clock->zero_ns + multiply(clock, ticks);
    if (ticks <= INT64_MAX) {
        uint64_t after_ns = ew_etl_clock_ticks_ns(clock, ticks);
        return after_ns > EW_ETL_NS_MAX - clock->zero_ns ? EW_ETL_NS_MAX
                                                         : clock->zero_ns + after_ns;
    }
    uint64_t before_ns = ew_etl_clock_ticks_ns(clock, clock->zero_raw - raw);
    return before_ns > clock->zero_ns ? 0 : clock->zero_ns - before_ns;
}
