/* SPDX-License-Identifier: MIT */
/*
 * Interval arithmetic on integers: an end is from + n * length, never a sum of lengths, so there is
 * no drift. The product stays below 2^64 for any time of a 64-bit nanosecond clock, because n was
 * derived from such a time; later ends saturate.
 */
#include "sampler/internal.h"

#include <string.h>

#include <etwatch/etwatch.h>

static void set_length(struct ew_tick_segment *segment, uint64_t interval_ns)
{
    segment->interval_ns = interval_ns;
    segment->max_steps = (UINT64_MAX - segment->from_ns) / interval_ns;
}

void ew_ticks_init(struct ew_ticks *ticks, uint64_t epoch_ns, uint64_t interval_ns)
{
    *ticks = (struct ew_ticks){.count = 1};
    ticks->segment[0].from_ns = epoch_ns;
    set_length(&ticks->segment[0], interval_ns);
}

/* The last segment that starts at or before t_ns; earlier times belong to the first. */
static const struct ew_tick_segment *segment_of_time(const struct ew_ticks *ticks, uint64_t t_ns)
{
    uint32_t i = ticks->count - 1;
    while (i > 0 && ticks->segment[i].from_ns > t_ns)
        i--;
    return &ticks->segment[i];
}

static const struct ew_tick_segment *segment_of_index(const struct ew_ticks *ticks, uint64_t index)
{
    uint32_t i = ticks->count - 1;
    while (i > 0 && ticks->segment[i].first_index > index)
        i--;
    return &ticks->segment[i];
}

static uint64_t boundary(const struct ew_tick_segment *segment, uint64_t steps)
{
    if (steps > segment->max_steps)
        return UINT64_MAX;
    return segment->from_ns + steps * segment->interval_ns;
}

uint64_t ew_ticks_find(struct ew_ticks *ticks, uint64_t t_ns)
{
    const struct ew_tick_segment *segment = segment_of_time(ticks, t_ns);
    if (t_ns < segment->from_ns)
        return segment->first_index;
    uint64_t steps = (t_ns - segment->from_ns) / segment->interval_ns;
    ticks->near_index = segment->first_index + steps;
    ticks->near_start_ns = boundary(segment, steps);
    ticks->near_end_ns = boundary(segment, steps + 1);
    return ticks->near_index;
}

uint64_t ew_ticks_start(const struct ew_ticks *ticks, uint64_t index)
{
    const struct ew_tick_segment *segment = segment_of_index(ticks, index);
    if (index < segment->first_index)
        return segment->from_ns;
    return boundary(segment, index - segment->first_index);
}

uint64_t ew_ticks_end(const struct ew_ticks *ticks, uint64_t index)
{
    return ew_ticks_start(ticks, index + 1);
}

int ew_ticks_change(struct ew_ticks *ticks, uint64_t at_ns, uint64_t interval_ns)
{
    struct ew_tick_segment *last = &ticks->segment[ticks->count - 1];
    if (at_ns < last->from_ns || (at_ns - last->from_ns) % last->interval_ns != 0)
        return ETWATCH_EINVAL;
    uint64_t steps = (at_ns - last->from_ns) / last->interval_ns;
    if (steps > 0) {
        if (ticks->count == EW_TICKS_CHANGES)
            return ETWATCH_ELIMIT;
        ticks->segment[ticks->count] =
            (struct ew_tick_segment){.from_ns = at_ns, .first_index = last->first_index + steps};
        last = &ticks->segment[ticks->count++];
    }
    set_length(last, interval_ns);
    ticks->near_start_ns = ticks->near_end_ns = 0;
    return 0;
}

void ew_ticks_forget(struct ew_ticks *ticks, uint64_t index)
{
    uint32_t drop = 0;
    while (drop + 1 < ticks->count && ticks->segment[drop + 1].first_index <= index)
        drop++;
    if (drop == 0)
        return;
    ticks->count -= drop;
    memmove(ticks->segment, ticks->segment + drop, ticks->count * sizeof ticks->segment[0]);
}
