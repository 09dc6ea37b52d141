/* SPDX-License-Identifier: MIT */
/*
 * The same statistics as aggregate.h, with the same buckets, for many metrics of many processes:
 * only nonempty buckets take memory. Most metrics of most processes need a handful.
 */
#ifndef EW_SAMPLER_SPARSE_HISTOGRAM_H
#define EW_SAMPLER_SPARSE_HISTOGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include <etwatch/etwatch.h>

struct ew_sparse_histogram_bucket {
    uint32_t at;
    uint32_t count;
};

struct ew_sparse_histogram {
    uint64_t count; /* zeros included */
    uint64_t zeros;
    double sum, max;
    struct ew_sparse_histogram_bucket *buckets; /* sorted by `at` */
    uint32_t bucket_count, bucket_size;
};

/* Whether an interval without a sample counts as 0, because the process was idle. */
bool ew_sparse_histogram_idle_is_zero(uint32_t metric);
/* All values of a sample, by metric. Doubles suffice: a bucket needs fewer than 53 bits. */
void ew_sparse_histogram_values(const struct etwatch_sample *sample,
                                double values[ETWATCH_METRIC_COUNT]);

void ew_sparse_histogram_done(struct ew_sparse_histogram *histogram);
/* Adds the same value count times. 0, ETWATCH_ENOMEM (not counted) or ETWATCH_EINVAL (not a
 * number).
 */
int ew_sparse_histogram_add(struct ew_sparse_histogram *histogram, double value, uint32_t count);
/* more_zeros: zeros in addition to the values added. All 0 if nothing was added. */
void ew_sparse_histogram_result(const struct ew_sparse_histogram *histogram, uint64_t more_zeros,
                                struct etwatch_aggregate *ret_result);

#endif
