/* SPDX-License-Identifier: MIT */
/*
 * Owns a sparse histogram: buckets sorted by their place on the scale of aggregate.h, found by
 * halving. There are no more than EW_AGGREGATE_OCTAVES * EW_AGGREGATE_STEPS places, so it is
 * bounded; a value that repeats costs a search in a few entries and no memory.
 */
#include "sampler/sparse_histogram.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "model/metric.h"
#include "sampler/aggregate.h"

enum kind { KIND_counter, KIND_gauge };

static const uint8_t kinds[ETWATCH_METRIC_COUNT] = {
#define ETWATCH_X(name, type, kind) [ETWATCH_M_##name] = KIND_##kind,
    ETWATCH_METRICS(ETWATCH_X)
#undef ETWATCH_X
};

uint64_t ew_sparse_histogram_metrics(void)
{
    return (((uint64_t)1 << ETWATCH_METRIC_COUNT) - 1) & ~EW_METRICS_WITHOUT_AVERAGE;
}

bool ew_sparse_histogram_idle_is_zero(uint32_t metric)
{
    return kinds[metric] == KIND_counter || metric == ETWATCH_M_cpu_percent;
}

static double real_double(double value)
{
    return value;
}

static double real_int64_t(int64_t value)
{
    return (double)value;
}

/* As a signed number: x86-64 turns that into a double in one step. */
static double real_uint64_t(uint64_t value)
{
    return (double)(value <= INT64_MAX ? (int64_t)value : INT64_MAX);
}

void ew_sparse_histogram_values(const struct etwatch_sample *sample,
                                double values[ETWATCH_METRIC_COUNT])
{
#define ETWATCH_X(name, type, kind) values[ETWATCH_M_##name] = real_##type(sample->name);
    ETWATCH_METRICS(ETWATCH_X)
#undef ETWATCH_X
}

void ew_sparse_histogram_done(struct ew_sparse_histogram *spread)
{
    ew_free(spread->buckets);
    *spread = (struct ew_sparse_histogram){0};
}

/* Where a value above 0 belongs: its exponent and the first bits of its fraction, as IEEE 754 has
 * them, are the place. Values outside of the scale count to its nearest end. */
static uint32_t place_of(double value)
{
    enum { STEP_BITS = 6, FRACTION_BITS = 52, BIAS = 1023 };
    _Static_assert(1 << STEP_BITS == EW_AGGREGATE_STEPS, "a step is so many bits of the fraction");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    const uint64_t lowest = (uint64_t)(BIAS + EW_AGGREGATE_MIN_EXPONENT) << STEP_BITS;
    uint64_t place = bits >> (FRACTION_BITS - STEP_BITS);
    if (place < lowest)
        return 0;
    place -= lowest;
    const uint32_t highest = EW_AGGREGATE_OCTAVES * EW_AGGREGATE_STEPS - 1;
    return place < highest ? (uint32_t)place : highest;
}

/* The first bucket at or behind a place. Values of a counter are in no order, so a branch would be
 * guessed wrong half of the time: there is none but that of the loop. */
static uint32_t find(const struct ew_sparse_histogram *spread, uint32_t at)
{
    uint32_t low = 0, left = spread->bucket_count;
    while (left > 1) {
        uint32_t half = left / 2;
        low += half & (0u - (uint32_t)(spread->buckets[low + half - 1].at < at));
        left -= half;
    }
    return left == 1 && spread->buckets[low].at < at ? low + 1 : low;
}

static int insert(struct ew_sparse_histogram *spread, uint32_t index, uint32_t at)
{
    if (spread->bucket_count == spread->bucket_size) {
        uint32_t size = spread->bucket_size == 0 ? 4 : spread->bucket_size * 2;
        struct ew_sparse_histogram_bucket *bigger =
            ew_realloc_array(spread->buckets, size, sizeof *spread->buckets);
        if (bigger == NULL)
            return ETWATCH_ENOMEM;
        spread->buckets = bigger;
        spread->bucket_size = size;
    }
    memmove(spread->buckets + index + 1, spread->buckets + index,
            (spread->bucket_count - index) * sizeof *spread->buckets);
    spread->buckets[index] = (struct ew_sparse_histogram_bucket){.at = at};
    spread->bucket_count++;
    return 0;
}

int ew_sparse_histogram_add(struct ew_sparse_histogram *spread, double value, uint32_t count)
{
    if (isnan(value))
        return ETWATCH_EINVAL;
    if (value <= 0) {
        spread->count += count;
        spread->zeros += count;
        return 0;
    }
    uint32_t at = place_of(value), index = find(spread, at);
    if (index == spread->bucket_count || spread->buckets[index].at != at) {
        int error = insert(spread, index, at);
        if (error != 0)
            return error;
    }
    uint32_t room = UINT32_MAX - spread->buckets[index].count;
    spread->buckets[index].count += count < room ? count : room;
    spread->count += count;
    spread->sum += value * count;
    if (value > spread->max)
        spread->max = value;
    return 0;
}

/* The value of the given rank, from 1 on: the middle of its bucket. */
static double value_at(const struct ew_sparse_histogram *spread, uint64_t zeros, uint64_t rank)
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

void ew_sparse_histogram_result(const struct ew_sparse_histogram *spread, uint64_t more_zeros,
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
