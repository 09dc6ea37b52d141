/* SPDX-License-Identifier: MIT */
/*
 * Count, average, maximum and percentiles of a stream of values, in bounded memory.
 *
 * A log-linear histogram: 64 equal buckets in every power of two from 2^-16 to 2^48. A percentile
 * is the middle of its bucket, so its error is at most 1/128 of the value (0.8 %), and it never
 * exceeds the maximum; count, average and maximum are exact. Powers of two without values take no
 * memory: at most 16 KB, typically below 2.
 */
#ifndef EW_SAMPLER_AGGREGATE_H
#define EW_SAMPLER_AGGREGATE_H

#include <stdint.h>

#include <etwatch/etwatch.h>

#define EW_AGGREGATE_MIN_EXPONENT (-16)
#define EW_AGGREGATE_OCTAVES 64
#define EW_AGGREGATE_STEPS 64

struct ew_aggregate {
    uint64_t count; /* zeros included */
    uint64_t zeros; /* values of 0 and below */
    double sum, max;
    uint32_t *octave[EW_AGGREGATE_OCTAVES]; /* NULL: no values */
};

void ew_aggregate_init(struct ew_aggregate *aggregate);
void ew_aggregate_done(struct ew_aggregate *aggregate);
/* 0, ETWATCH_ENOMEM (the value is not counted) or ETWATCH_EINVAL (not a number). */
int ew_aggregate_add(struct ew_aggregate *aggregate, double value);
void ew_aggregate_add_zeros(struct ew_aggregate *aggregate, uint64_t count);
/* All 0 if nothing was added. */
void ew_aggregate_result(const struct ew_aggregate *aggregate,
                         struct etwatch_aggregate *ret_result);
/* Empties it for the next window; keeps the memory. */
void ew_aggregate_reset(struct ew_aggregate *aggregate);

#endif
