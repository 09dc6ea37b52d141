/* SPDX-License-Identifier: MIT */
/* Owns the types of events that were seen, in a hash table of their names and numbers. */
#include "cli/cli.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/event_state.h"
#include "base/hash.h"

enum { FIRST_SIZE = 64 };

void ew_histogram_init(struct ew_histogram *histogram)
{
    *histogram = (struct ew_histogram){0};
}

void ew_histogram_done(struct ew_histogram *histogram)
{
    for (uint32_t i = 0; i < histogram->count; i++) {
        ew_free((void *)(uintptr_t)histogram->kinds[i].provider);
        ew_free((void *)(uintptr_t)histogram->kinds[i].event);
    }
    ew_free(histogram->kinds);
    ew_free(histogram->index);
}

static uint32_t hash_text(uint32_t hash, const char *text)
{
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash;
}

static uint32_t hash(const char *provider, const char *event, uint32_t id, uint32_t opcode,
                     uint32_t version)
{
    uint32_t seed = ((uint32_t)ew_hash_seed() ^ id ^ opcode << 16 ^ version << 24) * 16777619u;
    return hash_text(hash_text(seed, provider), event);
}

static bool same(const struct etwatch_trace_class *kind, const struct etwatch_trace_event *event)
{
    return kind->id == event->id && kind->opcode == event->opcode &&
           kind->version == event->version && strcmp(kind->event, event->event) == 0 &&
           strcmp(kind->provider, event->provider) == 0;
}

static bool grow(struct ew_histogram *histogram)
{
    if (histogram->count < histogram->size)
        return true;
    uint32_t size = histogram->size == 0 ? FIRST_SIZE : histogram->size * 2;
    struct etwatch_trace_class *kinds = ew_realloc_array(histogram->kinds, size, sizeof *kinds);
    if (kinds == NULL)
        return false;
    histogram->kinds = kinds;
    uint32_t *index = ew_calloc((size_t)size * 4, sizeof *index);
    if (index == NULL)
        return false;
    ew_free(histogram->index);
    histogram->index = index;
    histogram->size = size;
    histogram->mask = size * 4 - 1;
    for (uint32_t i = 0; i < histogram->count; i++) {
        const struct etwatch_trace_class *kind = &kinds[i];
        uint32_t at = hash(kind->provider, kind->event, kind->id, kind->opcode, kind->version);
        while (index[at & histogram->mask] != 0)
            at++;
        index[at & histogram->mask] = i + 1;
    }
    return true;
}

int ew_histogram_add(struct ew_histogram *histogram, const struct etwatch_trace_event *event)
{
    if (!grow(histogram))
        return ETWATCH_ENOMEM;
    uint32_t at = hash(event->provider, event->event, event->id, event->opcode, event->version);
    for (; histogram->index[at & histogram->mask] != 0; at++) {
        struct etwatch_trace_class *kind =
            &histogram->kinds[histogram->index[at & histogram->mask] - 1];
        if (same(kind, event)) {
            kind->count++;
            return 0;
        }
    }
    struct etwatch_trace_class kind = {
        .size = sizeof kind,
        .id = event->id,
        .opcode = event->opcode,
        .version = event->version,
        .decoded = (event->flags & ETWATCH_TRACE_DECODED) != 0,
        .state = ew_event_state(event->flags),
        .count = 1,
        .provider = ew_strdup(event->provider),
        .event = ew_strdup(event->event),
    };
    histogram->kinds[histogram->count++] = kind;
    histogram->index[at & histogram->mask] = histogram->count;
    return kind.provider == NULL || kind.event == NULL ? ETWATCH_ENOMEM : 0;
}

static int by_count(const void *a, const void *b)
{
    const struct etwatch_trace_class *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    int order = strcmp(x->provider, y->provider);
    if (order == 0)
        order = strcmp(x->event, y->event);
    if (order == 0)
        order = (x->id > y->id) - (x->id < y->id);
    if (order == 0)
        order = (x->opcode > y->opcode) - (x->opcode < y->opcode);
    return order != 0 ? order : (x->version > y->version) - (x->version < y->version);
}

int ew_histogram_put(struct ew_histogram *histogram, struct etwatch_sink *sink)
{
    int rc = 0;
    if (histogram->count > 0)
        qsort(histogram->kinds, histogram->count, sizeof *histogram->kinds, by_count);
    for (uint32_t i = 0; i < histogram->count && rc == 0; i++)
        rc = etwatch_sink_class(sink, &histogram->kinds[i]);
    return rc == 0 ? etwatch_sink_end(sink) : rc;
}
