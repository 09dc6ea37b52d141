/* SPDX-License-Identifier: MIT */
/*
 * Owns a sparse histogram: buckets sorted by their place on the scale of aggregate.h, found by
 * halving. There are no more than EW_AGGREGATE_OCTAVES * EW_AGGREGATE_STEPS places, so it is
 * bounded; a value that repeats costs a search in a few entries and no memory.
 */
#include "sampler/spread.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "sampler/aggregate.h"

enum kind { KIND_counter, KIND_gauge };

static const uint8_t kinds[ETWATCH_METRIC_COUNT] = {
#define ETWATCH_X(name, type, kind) [ETWATCH_M_##name] = KIND_##kind,
    ETWATCH_METRICS(ETWATCH_X)
#undef ETWATCH_X
};

uint64_t ew_spread_metrics(void)
{
    const uint64_t without = ETWATCH_HAS(priority) | ETWATCH_HAS(affinity) |
                             ETWATCH_HAS(io_priority) | ETWATCH_HAS(rss_peak_bytes) |
                             ETWATCH_HAS(handles_peak) | ETWATCH_HAS(exit_ns) |
                             ETWATCH_HAS(exit_code) | ETWATCH_HAS(exit_signal);
    return (((uint64_t)1 << ETWATCH_METRIC_COUNT) - 1) & ~without;
}

bool ew_spread_idle_is_zero(uint32_t metric)
{
    return kinds[metric] == KIND_counter || metric == ETWATCH_M_cpu_percent;
}

void ew_spread_values(const struct etwatch_sample *sample, double values[ETWATCH_METRIC_COUNT])
{
#define ETWATCH_X(name, type, kind) values[ETWATCH_M_##name] = (double)sample->name;
    ETWATCH_METRICS(ETWATCH_X)
#undef ETWATCH_X
}

void ew_spread_done(struct ew_spread *spread)
{
    ew_free(spread->buckets);
    *spread = (struct ew_spread){0};
}

/* Values outside of the scale count to its nearest end. */
static uint32_t place_of(double value)
{
    int exponent = 0;
    if (isinf(value))
        return EW_AGGREGATE_OCTAVES * EW_AGGREGATE_STEPS - 1;
    double fraction = frexp(value, &exponent); /* [0.5, 1) */
    int octave = exponent - 1 - EW_AGGREGATE_MIN_EXPONENT;
    if (octave < 0)
        return 0;
    if (octave >= EW_AGGREGATE_OCTAVES)
        return EW_AGGREGATE_OCTAVES * EW_AGGREGATE_STEPS - 1;
    return (uint32_t)octave * EW_AGGREGATE_STEPS +
           (uint32_t)((fraction * 2 - 1) * EW_AGGREGATE_STEPS);
}

/* The first bucket at or behind a place. */
static uint32_t find(const struct ew_spread *spread, uint32_t at)
{
    uint32_t low = 0, high = spread->bucket_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (spread->buckets[middle].at < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int insert(struct ew_spread *spread, uint32_t index, uint32_t at)
{
    if (spread->bucket_count == spread->bucket_size) {
        uint32_t size = spread->bucket_size == 0 ? 4 : spread->bucket_size * 2;
        struct ew_spread_bucket *bigger =
            ew_realloc_array(spread->buckets, size, sizeof *spread->buckets);
        if (bigger == NULL)
            return ETWATCH_ENOMEM;
        spread->buckets = bigger;
        spread->bucket_size = size;
    }
    memmove(spread->buckets + index + 1, spread->buckets + index,
            (spread->bucket_count - index) * sizeof *spread->buckets);
    spread->buckets[index] = (struct ew_spread_bucket){.at = at};
    spread->bucket_count++;
    return 0;
}

int ew_spread_add(struct ew_spread *spread, double value)
{
    if (isnan(value))
        return ETWATCH_EINVAL;
    if (value <= 0) {
        spread->count++;
        spread->zeros++;
        return 0;
    }
    uint32_t at = place_of(value), index = find(spread, at);
    if (index == spread->bucket_count || spread->buckets[index].at != at) {
        int error = insert(spread, index, at);
        if (error != 0)
            return error;
    }
    if (spread->buckets[index].count < UINT32_MAX)
        spread->buckets[index].count++;
    spread->count++;
    spread->sum += value;
    if (value > spread->max)
        spread->max = value;
    return 0;
}

/* The value of the given rank, from 1 on: the middle of its bucket. */
static double value_at(const struct ew_spread *spread, uint64_t zeros, uint64_t rank)
{
    uint64_t below = zeros;
    if (rank <= below)
        return 0;
    for (uint32_t i = 0; i < spread->bucket_count; i++) {
        below += spread->buckets[i].count;
        if (rank > below)
            continue;
        uint32_t octave = spread->buckets[i].at / EW_AGGREGATE_STEPS;
        uint32_t step = spread->buckets[i].at % EW_AGGREGATE_STEPS;
        double middle = 1 + (step + 0.5) / EW_AGGREGATE_STEPS;
        double value = ldexp(middle, (int)octave + EW_AGGREGATE_MIN_EXPONENT);
        return value < spread->max ? value : spread->max;
    }
    return spread->max;
}

/* ceil(count * percent / 100) without leaving the integers. */
static uint64_t rank_of(uint64_t count, uint64_t percent)
{
    return count / 100 * percent + (count % 100 * percent + 99) / 100;
}

void ew_spread_result(const struct ew_spread *spread, uint64_t more_zeros,
                      struct etwatch_aggregate *ret_result)
{
    *ret_result = (struct etwatch_aggregate){.size = sizeof *ret_result};
    if (spread->count == 0)
        return;
    uint64_t zeros = spread->zeros + more_zeros;
    ret_result->count = spread->count + more_zeros;
    ret_result->avg = spread->sum / (double)ret_result->count;
    ret_result->max = spread->max;
    ret_result->p95 = value_at(spread, zeros, rank_of(ret_result->count, 95));
    ret_result->p99 = value_at(spread, zeros, rank_of(ret_result->count, 99));
}
