/* SPDX-License-Identifier: MIT */
/*
 * Maps the hardware counters of Windows to our counters by name. An event carries only their
 * values; the order is given once, by an event with the names, and only these give the values a
 * meaning.
 */
#ifndef EW_MODEL_PMC_H
#define EW_MODEL_PMC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/counter.h"

/* Maximum number in an event's header; a position that maps to no counter. */
enum { EW_PMC_MAX = 7, EW_PMC_NONE = 0xFF };

#define EW_HAS_PMC (EW_HAS_C(cycles) | EW_HAS_C(instructions) | EW_HAS_C(cache_misses))

/* The meaning of each counter position of an event. */
struct ew_pmc_map {
    uint8_t count;               /* 0: unknown */
    uint8_t counter[EW_PMC_MAX]; /* enum ew_counter, or EW_PMC_NONE */
    uint8_t rank[EW_PMC_MAX];
};

/*
 * The counter that a Windows name (UTF-16, size in bytes) stands for, or EW_PMC_NONE. Of two names
 * for the same counter, the one with the lower rank is the better match.
 */
uint8_t ew_pmc_counter(const uint8_t *name, size_t size, uint8_t *ret_rank);
/* Appends a position. Of two positions for one counter the better match is used. False: full. */
bool ew_pmc_add(struct ew_pmc_map *map, const uint8_t *name, size_t size);
/* The counters in the map: EW_HAS_C. */
uint32_t ew_pmc_has(const struct ew_pmc_map *map);
bool ew_pmc_same(const struct ew_pmc_map *a, const struct ew_pmc_map *b);
/* Conversion to public metrics and back; other metrics are ignored. */
struct etwatch_metric_set ew_pmc_metrics(uint32_t counter_has);
bool ew_pmc_is_metric(uint32_t metric);
uint32_t ew_pmc_counters_of(const struct etwatch_metric_set *metrics);

#endif
