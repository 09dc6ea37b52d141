/* SPDX-License-Identifier: MIT */
/*
 * Owns the histogram. The bucket of a value follows from its exponent and the first six bits after
 * the leading one, by frexp: no logarithm, no table, and identical on every machine. Values outside
 * the range count to its nearest end. Percentiles use the nearest rank: the smallest value that is
 * not exceeded by at least that share of all values.
 */
#include "sampler/aggregate.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

void ew_aggregate_init(struct ew_aggregate *aggregate)
{
    *aggregate = (struct ew_aggregate){0};
}

void ew_aggregate_done(struct ew_aggregate *aggregate)
{
    for (int i = 0; i < EW_AGGREGATE_OCTAVES; i++)
        ew_free(aggregate->octave[i]);
    ew_aggregate_init(aggregate);
}

void ew_aggregate_reset(struct ew_aggregate *aggregate)
{
    for (int i = 0; i < EW_AGGREGATE_OCTAVES; i++) {
        if (aggregate->octave[i] != NULL)
            memset(aggregate->octave[i], 0, EW_AGGREGATE_STEPS * sizeof(uint32_t));
    }
    aggregate->count = aggregate->zeros = 0;
    aggregate->sum = aggregate->max = 0;
}

int ew_aggregate_add(struct ew_aggregate *aggregate, double value)
{
    if (isnan(value))
        return ETWATCH_EINVAL;
    if (value <= 0) {
        ew_aggregate_add_zeros(aggregate, 1);
        return 0;
    }
    int exponent;
    double fraction = isinf(value) ? 0.5 : frexp(value, &exponent); /* [0.5, 1) */
    int octave = isinf(value) ? EW_AGGREGATE_OCTAVES : exponent - 1 - EW_AGGREGATE_MIN_EXPONENT;
    int step = (int)((fraction * 2 - 1) * EW_AGGREGATE_STEPS);
    if (octave < 0) {
        octave = 0;
        step = 0;
    } else if (octave >= EW_AGGREGATE_OCTAVES) {
        octave = EW_AGGREGATE_OCTAVES - 1;
        step = EW_AGGREGATE_STEPS - 1;
    }
    if (aggregate->octave[octave] == NULL) {
        aggregate->octave[octave] = ew_calloc(EW_AGGREGATE_STEPS, sizeof(uint32_t));
        if (aggregate->octave[octave] == NULL)
            return ETWATCH_ENOMEM;
    }
    if (aggregate->octave[octave][step] < UINT32_MAX)
        aggregate->octave[octave][step]++;
    aggregate->count++;
    aggregate->sum += value;
    if (value > aggregate->max)
        aggregate->max = value;
    return 0;
}

void ew_aggregate_add_zeros(struct ew_aggregate *aggregate, uint64_t count)
{
    aggregate->count += count;
    aggregate->zeros += count;
}

/* The value of the given rank, from 1 on. */
static double value_at(const struct ew_aggregate *aggregate, uint64_t rank)
{
    uint64_t below = aggregate->zeros;
    if (rank <= below)
        return 0;
    for (int i = 0; i < EW_AGGREGATE_OCTAVES; i++) {
        if (aggregate->octave[i] == NULL)
            continue;
        for (int step = 0; step < EW_AGGREGATE_STEPS; step++) {
            below += aggregate->octave[i][step];
            if (rank <= below) {
                double middle = 1 + (step + 0.5) / EW_AGGREGATE_STEPS;
                double value = ldexp(middle, i + EW_AGGREGATE_MIN_EXPONENT);
                return value < aggregate->max ? value : aggregate->max;
            }
        }
    }
    return aggregate->max;
}

/* ceil(count * percent / 100) in integer arithmetic. */
static uint64_t rank_of(uint64_t count, uint64_t percent)
{
    return count / 100 * percent + (count % 100 * percent + 99) / 100;
}

void ew_aggregate_result(const struct ew_aggregate *aggregate, struct etwatch_aggregate *ret_result)
{
    *ret_result = (struct etwatch_aggregate){.size = sizeof *ret_result, .count = aggregate->count};
    if (aggregate->count == 0)
        return;
    ret_result->avg = aggregate->sum / (double)aggregate->count;
    ret_result->max = aggregate->max;
    ret_result->p95 = value_at(aggregate, rank_of(aggregate->count, 95));
    ret_result->p99 = value_at(aggregate, rank_of(aggregate->count, 99));
}
