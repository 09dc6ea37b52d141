/* SPDX-License-Identifier: MIT */
/*
 * Hardware counters as Windows names them, and which of our counters each is. An event can carry
 * some of them, in an order that is told once by their names; only with the names is it known what
 * the numbers are.
 */
#ifndef EW_MODEL_PMC_H
#define EW_MODEL_PMC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/counter.h"

/* As many as the header of an event has room to say; a place that is none of ours. */
enum { EW_PMC_MAX = 7, EW_PMC_NONE = 0xFF };

#define EW_HAS_PMC (EW_HAS_C(cycles) | EW_HAS_C(instructions) | EW_HAS_C(cache_misses))

/* What each counter of an event is. */
struct ew_pmc_map {
    uint8_t count;               /* 0: not known */
    uint8_t counter[EW_PMC_MAX]; /* enum ew_counter, or EW_PMC_NONE */
    uint8_t rank[EW_PMC_MAX];
};

/*
 * Which counter of ours Windows means by a name (UTF-16, bytes), or EW_PMC_NONE. Of two names for
 * the same one, that with the lower rank is meant more exactly.
 */
uint8_t ew_pmc_counter(const uint8_t *name, size_t size, uint8_t *ret_rank);
/* The next place of the map. A counter that has two gets the better one. False: it is full. */
bool ew_pmc_add(struct ew_pmc_map *map, const uint8_t *name, size_t size);
/* The counters that it has: EW_HAS_C. */
uint32_t ew_pmc_has(const struct ew_pmc_map *map);
bool ew_pmc_same(const struct ew_pmc_map *a, const struct ew_pmc_map *b);
/* The same as public metrics, and back; other metrics are ignored. */
struct etwatch_metric_set ew_pmc_metrics(uint32_t counter_has);
bool ew_pmc_is_metric(uint32_t metric);
uint32_t ew_pmc_counters_of(const struct etwatch_metric_set *metrics);

#endif
