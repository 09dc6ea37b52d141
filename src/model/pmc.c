/* SPDX-License-Identifier: MIT */
/*
 * The table of names. They are the names of the sources that the kernel lists for a processor
 * (wpr -pmcsources), which differ between processors: those of AMD have TotalIssues, which counts
 * retired instructions, and no counter for the last-level cache. Names that count something similar
 * (UnhaltedReferenceCycles, DcacheMisses) are not used.
 */
#include "model/pmc.h"

#include <string.h>

static const struct {
    const char *name;
    uint8_t counter, rank;
} names[] = {
    {"UnhaltedCoreCycles", EW_C_cycles, 0},
    {"TotalCycles", EW_C_cycles, 1},
    {"UnhaltedCoreCyclesFixed", EW_C_cycles, 2},
    {"InstructionRetired", EW_C_instructions, 0},
    {"InstructionsRetired", EW_C_instructions, 1},
    {"InstructionsRetiredFixed", EW_C_instructions, 2},
    {"TotalIssues", EW_C_instructions, 3},
    {"LLCMisses", EW_C_cache_misses, 0},
    {"CacheMisses", EW_C_cache_misses, 1},
};

static bool is_name(const char *name, const uint8_t *wide, size_t size)
{
    if (size != 2 * strlen(name))
        return false;
    for (size_t i = 0; name[i] != '\0'; i++)
        if (wide[2 * i] != (uint8_t)name[i] || wide[2 * i + 1] != 0)
            return false;
    return true;
}

uint8_t ew_pmc_counter(const uint8_t *name, size_t size, uint8_t *ret_rank)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (is_name(names[i].name, name, size)) {
            *ret_rank = names[i].rank;
            return names[i].counter;
        }
    return EW_PMC_NONE;
}

bool ew_pmc_add(struct ew_pmc_map *map, const uint8_t *name, size_t size)
{
    uint8_t rank = 0, counter = ew_pmc_counter(name, size, &rank);
    if (map->count == EW_PMC_MAX)
        return false;
    for (uint8_t i = 0; i < map->count && counter != EW_PMC_NONE; i++) {
        if (map->counter[i] != counter)
            continue;
        if (map->rank[i] <= rank)
            counter = EW_PMC_NONE;
        else
            map->counter[i] = EW_PMC_NONE;
    }
    map->rank[map->count] = rank;
    map->counter[map->count++] = counter;
    return true;
}

uint32_t ew_pmc_has(const struct ew_pmc_map *map)
{
    uint32_t has = 0;
    for (uint8_t i = 0; i < map->count; i++)
        if (map->counter[i] != EW_PMC_NONE)
            has |= 1u << map->counter[i];
    return has;
}

bool ew_pmc_same(const struct ew_pmc_map *a, const struct ew_pmc_map *b)
{
    return a->count == b->count && memcmp(a->counter, b->counter, a->count) == 0;
}

static const struct {
    uint32_t metric, has;
} pairs[] = {
    {ETWATCH_M_cycles, EW_HAS_C(cycles)},
    {ETWATCH_M_instructions, EW_HAS_C(instructions)},
    {ETWATCH_M_cache_misses, EW_HAS_C(cache_misses)},
};

struct etwatch_metric_set ew_pmc_metrics(uint32_t counter_has)
{
    struct etwatch_metric_set metrics = {{0}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if ((counter_has & pairs[i].has) != 0)
            etwatch_metric_set_add(&metrics, pairs[i].metric);
    return metrics;
}

uint32_t ew_pmc_counters_of(const struct etwatch_metric_set *metrics)
{
    uint32_t has = 0;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        has |= etwatch_metric_set_has(metrics, pairs[i].metric) ? pairs[i].has : 0;
    return has;
}

bool ew_pmc_is_metric(uint32_t metric)
{
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (pairs[i].metric == metric)
            return true;
    return false;
}
