/* SPDX-License-Identifier: MIT */
/* Checks of sets of metrics. */
#ifndef METRIC_KIT_H
#define METRIC_KIT_H

#include "model/metric.h"
#include "test.h"

/* Every member of `part` is a member of `set`. */
static inline bool includes(const struct etwatch_metric_set *set,
                            const struct etwatch_metric_set *part)
{
    struct etwatch_metric_set rest = *part;
    etwatch_metric_set_subtract(&rest, set);
    return etwatch_metric_set_is_empty(&rest);
}

/* The set has these members and no others. */
#define CHECK_METRICS(set, ...) CHECK(etwatch_metric_set_equal(&(set), &EW_METRICS(__VA_ARGS__)))

#endif
