/* SPDX-License-Identifier: MIT */
/*
 * The same figures as aggregate.h, with the same buckets, for many metrics of many processes: only
 * buckets in which there is something take room. Most metrics of most processes need a handful.
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
    uint64_t count; /* with the zeros */
    uint64_t zeros;
    double sum, max;
    struct ew_sparse_histogram_bucket *buckets; /* by place */
    uint32_t bucket_count, bucket_size;
};

/* The metrics of which an average says nothing: ids, masks, levels and peaks. */
extern const struct etwatch_metric_set ew_sparse_histogram_excluded;
/* Whether an interval without a sample counts as a 0: it was not measured, and nothing was done. */
bool ew_sparse_histogram_idle_is_zero(uint32_t metric);
/* All values of a sample, by metric. As doubles: 53 bits are enough for a bucket. */
void ew_sparse_histogram_values(const struct etwatch_sample *sample,
                                double values[ETWATCH_METRIC_COUNT]);

void ew_sparse_histogram_done(struct ew_sparse_histogram *spread);
/* The same value so many times. 0, ETWATCH_ENOMEM (it is not counted) or ETWATCH_EINVAL (not a
 * number). */
int ew_sparse_histogram_add(struct ew_sparse_histogram *spread, double value, uint32_t count);
/* With so many more zeros than were added. Nothing added: all 0. */
void ew_sparse_histogram_result(const struct ew_sparse_histogram *spread, uint64_t more_zeros,
                                struct etwatch_aggregate *ret_result);

#endif
