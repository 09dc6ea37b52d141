/* SPDX-License-Identifier: MIT */
/*
 * Owns a sparse histogram: buckets sorted by their index on the scale of aggregate.h, found by
 * binary search. There are at most EW_AGGREGATE_OCTAVES * EW_AGGREGATE_STEPS buckets, so it is
 * bounded; a repeated value costs a search in a few entries and no memory.
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

/* Converts as a signed number: x86-64 does that in one instruction. */
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

void ew_sparse_histogram_done(struct ew_sparse_histogram *histogram)
{
    ew_free(histogram->buckets);
    *histogram = (struct ew_sparse_histogram){0};
}

/* The bucket of a value above 0: its IEEE 754 exponent and the first bits of its fraction are the
 * index. Values outside of the scale count to its nearest end. */
static uint32_t bucket_of(double value)
{
    enum { STEP_BITS = 6, FRACTION_BITS = 52, BIAS = 1023 };
    _Static_assert(1 << STEP_BITS == EW_AGGREGATE_STEPS, "a step is so many bits of the fraction");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    const uint64_t lowest = (uint64_t)(BIAS + EW_AGGREGATE_MIN_EXPONENT) << STEP_BITS;
    uint64_t bucket = bits >> (FRACTION_BITS - STEP_BITS);
    if (bucket < lowest)
        return 0;
    bucket -= lowest;
    const uint32_t highest = EW_AGGREGATE_OCTAVES * EW_AGGREGATE_STEPS - 1;
    return bucket < highest ? (uint32_t)bucket : highest;
}

/* The first bucket at or after an index. Values of a counter are unordered, so a branch would be
 * mispredicted half of the time: there is none except the loop's. */
static uint32_t find(const struct ew_sparse_histogram *histogram, uint32_t at)
{
    uint32_t low = 0, left = histogram->bucket_count;
    while (left > 1) {
        uint32_t half = left / 2;
        low += half & (0u - (uint32_t)(histogram->buckets[low + half - 1].at < at));
        left -= half;
    }
    return left == 1 && histogram->buckets[low].at < at ? low + 1 : low;
}

static int insert(struct ew_sparse_histogram *histogram, uint32_t index, uint32_t at)
{
    if (histogram->bucket_count == histogram->bucket_size) {
        uint32_t size = histogram->bucket_size == 0 ? 4 : histogram->bucket_size * 2;
        struct ew_sparse_histogram_bucket *bigger =
            ew_realloc_array(histogram->buckets, size, sizeof *histogram->buckets);
        if (bigger == NULL)
            return ETWATCH_ENOMEM;
        histogram->buckets = bigger;
        histogram->bucket_size = size;
    }
    memmove(histogram->buckets + index + 1, histogram->buckets + index,
            (histogram->bucket_count - index) * sizeof *histogram->buckets);
    histogram->buckets[index] = (struct ew_sparse_histogram_bucket){.at = at};
    histogram->bucket_count++;
    return 0;
}

int ew_sparse_histogram_add(struct ew_sparse_histogram *histogram, double value, uint32_t count)
{
    if (isnan(value))
        return ETWATCH_EINVAL;
    if (value <= 0) {
        histogram->count += count;
        histogram->zeros += count;
        return 0;
    }
    uint32_t at = bucket_of(value), index = find(histogram, at);
    if (index == histogram->bucket_count || histogram->buckets[index].at != at) {
        int error = insert(histogram, index, at);
        if (error != 0)
            return error;
    }
    uint32_t room = UINT32_MAX - histogram->buckets[index].count;
    histogram->buckets[index].count += count < room ? count : room;
    histogram->count += count;
    histogram->sum += value * count;
    if (value > histogram->max)
        histogram->max = value;
    return 0;
}

/* The value of the given rank, from 1 on: the middle of its bucket. */
static double value_at(const struct ew_sparse_histogram *histogram, uint64_t zeros, uint64_t rank)
{
    uint64_t below = zeros;
    if (rank <= below)
        return 0;
    for (uint32_t i = 0; i < histogram->bucket_count; i++) {
        below += histogram->buckets[i].count;
        if (rank > below)
            continue;
        uint32_t octave = histogram->buckets[i].at / EW_AGGREGATE_STEPS;
        uint32_t step = histogram->buckets[i].at % EW_AGGREGATE_STEPS;
        double middle = 1 + (step + 0.5) / EW_AGGREGATE_STEPS;
        double value = ldexp(middle, (int)octave + EW_AGGREGATE_MIN_EXPONENT);
        return value < histogram->max ? value : histogram->max;
    }
    return histogram->max;
}

/* ceil(count * percent / 100) in integer arithmetic. */
static uint64_t rank_of(uint64_t count, uint64_t percent)
{
    return count / 100 * percent + (count % 100 * percent + 99) / 100;
}

void ew_sparse_histogram_result(const struct ew_sparse_histogram *histogram, uint64_t more_zeros,
                                struct etwatch_aggregate *ret_result)
{
    *ret_result = (struct etwatch_aggregate){0};
    if (histogram->count == 0)
        return;
    uint64_t zeros = histogram->zeros + more_zeros;
    ret_result->count = histogram->count + more_zeros;
    ret_result->avg = histogram->sum / (double)ret_result->count;
    ret_result->max = histogram->max;
    ret_result->p95 = value_at(histogram, zeros, rank_of(ret_result->count, 95));
    ret_result->p99 = value_at(histogram, zeros, rank_of(ret_result->count, 99));
}
