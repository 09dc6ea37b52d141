/* SPDX-License-Identifier: MIT */
/*
 * Counters are enabled in three steps: list the available sources by name; select those to read
 * with events; select the events. The list buffer grows to the size that Windows reports, and the
 * list is parsed as foreign bytes. A processor has few counters, and other programs may use some:
 * if Windows rejects the selection, the least important counter is dropped and the rest is tried
 * again.
 */
#include "source/etw/pmc.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "source/etw/classes.h"

enum {
    LIST_BYTES = 16 * 1024,
    LIST_BYTES_MAX = 1024 * 1024,
    ENTRY_BYTES = 24, /* before the name */
    OPCODE_SWITCH = 36,
};

/* In order of importance. */
static const uint8_t ours[] = {EW_C_cycles, EW_C_instructions, EW_C_cache_misses};
enum { OURS = sizeof ours };

/* The best source found for one of our counters. */
struct source {
    uint8_t name[64]; /* UTF-16 */
    uint8_t size, rank;
    uint32_t id;
    bool found;
};

static bool wants(uint32_t wanted, uint32_t i)
{
    return (wanted >> ours[i] & 1) != 0;
}

static void set_reason(struct ew_etw_pmc *pmc, uint32_t wanted, const char *reason, uint32_t code)
{
    for (uint32_t i = 0; i < OURS; i++) {
        char *to = pmc->reason[ours[i]];
        if (!wants(wanted, i) || to[0] != '\0')
            continue;
        if (code != 0)
            (void)snprintf(to, EW_ETW_PMC_REASON, "%s (error %u)", reason, (unsigned)code);
        else
            (void)snprintf(to, EW_ETW_PMC_REASON, "%s", reason);
    }
}

/* ---------------------------------------------------------------------- the list */

static size_t name_size(const uint8_t *name, size_t room)
{
    size_t size = 0;
    while (size + 2 <= room && (name[size] != 0 || name[size + 1] != 0))
        size += 2;
    return size;
}

static void use_if_better(struct source sources[OURS], uint32_t id, const uint8_t *name,
                          size_t size)
{
    uint8_t rank = 0, counter = ew_pmc_counter(name, size, &rank);
    for (uint32_t i = 0; i < OURS; i++) {
        struct source *source = &sources[i];
        if (ours[i] != counter || size > sizeof source->name ||
            (source->found && source->rank <= rank))
            continue;
        *source = (struct source){.size = (uint8_t)size, .rank = rank, .id = id, .found = true};
        memcpy(source->name, name, size);
    }
}

/* Entries: offset to the next one (0: last), id, limits, and a name. */
static void read_list(const uint8_t *list, size_t size, struct source sources[OURS])
{
    size_t at = 0;
    while (size - at > ENTRY_BYTES) {
        uint32_t distance = ew_load_u32(list + at);
        size_t end = distance != 0 && distance < size - at ? at + distance : size;
        if (end - at < ENTRY_BYTES)
            return;
        const uint8_t *name = list + at + ENTRY_BYTES;
        use_if_better(sources, ew_load_u32(list + at + 4), name,
                      name_size(name, end - at - ENTRY_BYTES));
        if (end == size)
            return;
        at = end;
    }
}

/* 0, or the Windows error code. */
static uint32_t find_sources(const struct ew_etw_api *api, struct source sources[OURS])
{
    uint32_t size = LIST_BYTES, used = 0, rc;
    uint8_t *list = ew_calloc(1, size);
    if (list == NULL)
        return EW_WIN_NO_SYSTEM_RESOURCES;
    rc = api->query_information(api->ctx, 0, EW_ETW_INFO_PROFILE_SOURCES, list, size, &used);
    if (rc != 0 && used > size && used <= LIST_BYTES_MAX) {
        ew_free(list);
        size = used;
        list = ew_calloc(1, size);
        if (list == NULL)
            return EW_WIN_NO_SYSTEM_RESOURCES;
        rc = api->query_information(api->ctx, 0, EW_ETW_INFO_PROFILE_SOURCES, list, size, &used);
    }
    if (rc == 0)
        read_list(list, used < size ? used : size, sources);
    ew_free(list);
    return rc;
}

/* ---------------------------------------------------------------------- enabling */

static uint32_t set_counters(const struct ew_etw_api *api, uint64_t session,
                             const struct source sources[OURS], uint32_t wanted)
{
    uint32_t ids[OURS], count = 0;
    for (uint32_t i = 0; i < OURS; i++)
        if (wants(wanted, i))
            ids[count++] = sources[i].id;
    return api->set_information(api->ctx, session, EW_ETW_INFO_PMC_COUNTERS, ids,
                                count * (uint32_t)sizeof ids[0]);
}

static uint32_t set_events(const struct ew_etw_api *api, uint64_t session)
{
    struct ew_etw_classic_id id = {.type = OPCODE_SWITCH};
    memcpy(id.guid, ew_etw_class_guid(EW_ETW_CLASS_THREAD), sizeof id.guid);
    return api->set_information(api->ctx, session, EW_ETW_INFO_PMC_EVENTS, &id, sizeof id);
}

/* The least important one. */
static uint32_t last_of(uint32_t wanted)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < OURS; i++)
        last = wants(wanted, i) ? 1u << ours[i] : last;
    return last;
}

void ew_etw_pmc_enable(const struct ew_etw_api *api, uint64_t session, uint32_t wanted,
                       struct ew_etw_pmc *ret_pmc)
{
    struct source sources[OURS];
    memset(ret_pmc, 0, sizeof *ret_pmc);
    memset(sources, 0, sizeof sources);
    if ((wanted & EW_HAS_PMC) == 0)
        return;
    uint32_t rc = find_sources(api, sources), have = 0;
    if (rc != 0)
        set_reason(ret_pmc, wanted, "Windows lists no hardware counters", rc);
    for (uint32_t i = 0; i < OURS; i++)
        have |= wants(wanted, i) && sources[i].found ? 1u << ours[i] : 0;
    set_reason(ret_pmc, wanted & ~have,
               "Windows lists no such counter (wpr -pmcsources), as in most virtual machines", 0);
    while (have != 0 && (rc = set_counters(api, session, sources, have)) != 0) {
        set_reason(ret_pmc, last_of(have),
                   "Windows does not count it: other programs may use the counters", rc);
        have &= ~last_of(have);
    }
    rc = have == 0 ? 0 : set_events(api, session);
    if (rc != 0) {
        set_reason(ret_pmc, have, "Windows does not log counters with context switches", rc);
        return;
    }
    for (uint32_t i = 0; i < OURS; i++)
        if (wants(have, i))
            (void)ew_pmc_add(&ret_pmc->map, sources[i].name, sources[i].size);
}

const char *ew_etw_pmc_unavailable_reason(const struct ew_etw_pmc *pmc, uint32_t metric)
{
    struct etwatch_metric_set only = {{0}};
    etwatch_metric_set_add(&only, metric);
    uint32_t has = ew_pmc_counters_of(&only);
    for (uint32_t i = 0; i < OURS; i++)
        if (has == 1u << ours[i] && pmc->reason[ours[i]][0] != '\0')
            return pmc->reason[ours[i]];
    return NULL;
}
