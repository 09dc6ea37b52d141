/* SPDX-License-Identifier: MIT */
/*
 * The list of hardware counter sources, as any bytes: it is read to its end and not past it, and
 * every requested source is in it.
 */
#include <string.h>

#include "fuzz.h"
#include "source/etw/pmc.h"

struct input {
    const uint8_t *data;
    size_t size;
    uint32_t counters;
};

static uint32_t query(void *ctx, uint64_t session, uint32_t what, void *value, uint32_t size,
                      uint32_t *ret_size)
{
    const struct input *input = ctx;
    require(session == 0 && what == EW_ETW_INFO_PROFILE_SOURCES, "the only query");
    *ret_size = (uint32_t)input->size;
    if (input->size > size)
        return 122;
    memcpy(value, input->data, input->size);
    return 0;
}

static uint32_t set(void *ctx, uint64_t session, uint32_t what, void *value, uint32_t size)
{
    struct input *input = ctx;
    require(session == 7, "of this session");
    if (what == EW_ETW_INFO_PMC_COUNTERS) {
        require(size > 0 && size % 4 == 0 && size <= 12, "one to three");
        for (uint32_t at = 0; at < size; at += 4) {
            bool found = false;
            for (size_t i = 0; i + 4 <= input->size && !found; i++)
                found = memcmp(input->data + i, (const uint8_t *)value + at, 4) == 0;
            require(found, "its number is in the list");
        }
        input->counters = size / 4;
        return input->size % 3 == 0 ? 170 : 0;
    }
    require(what == EW_ETW_INFO_PMC_EVENTS && input->counters > 0, "after the counters");
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {.data = data, .size = size};
    struct ew_etw_api api = {.ctx = &input, .set_information = set, .query_information = query};
    struct ew_etw_pmc pmc;
    ew_etw_pmc_enable(&api, 7, EW_HAS_PMC, &pmc);
    require(pmc.map.count == 0 || pmc.map.count == input.counters, "as many as were taken");
    uint32_t has = ew_pmc_has(&pmc.map);
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++) {
        struct etwatch_metric_set only = {{0}};
        etwatch_metric_set_add(&only, i);
        uint32_t counter = ew_pmc_counters_of(&only);
        if (counter != 0)
            require(((has & counter) == 0) == (ew_etw_pmc_unavailable_reason(&pmc, i) != NULL),
                    "carried, or a reason why not");
    }
    return 0;
}
