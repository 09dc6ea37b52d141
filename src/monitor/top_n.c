/* SPDX-License-Identifier: MIT */
/*
 * Holds the objects of one interval until the next begins, then ranks its samples. Objects keep
 * their order. The sample of the rest has no identity (pid UINT32_MAX, which formats show as
 * unknown), counters as sums where every one of them is known, and no gauges: processes that did
 * nothing are not in it, so a sum of their memory would not be that of the rest.
 */
#include "monitor/monitor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "sampler/alert.h"

struct ew_top_n_rank {
    double value;
    uint32_t index;
    bool kept;
};

void ew_top_n_done(struct ew_top_n *top_n)
{
    ew_free(top_n->held);
    ew_free(top_n->ranks);
    top_n->held = NULL;
    top_n->ranks = NULL;
    top_n->held_count = top_n->held_room = 0;
}

static int by_value(const void *a, const void *b)
{
    const struct ew_top_n_rank *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? 1 : -1;
    return x->index < y->index ? -1 : 1;
}

static int by_index(const void *a, const void *b)
{
    const struct ew_top_n_rank *x = a, *y = b;
    return x->index < y->index ? -1 : 1;
}

/* In the order in which they came, with `kept` set; returns how many there are. */
static uint32_t rank(struct ew_top_n *top_n)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < top_n->held_count; i++) {
        const struct etwatch_sample *sample = &top_n->held[i];
        if (sample->type != ETWATCH_TYPE_SAMPLE)
            continue;
        bool known = etwatch_sample_has(sample, top_n->metric);
        top_n->ranks[count++] = (struct ew_top_n_rank){
            .value = known ? ew_alert_value(sample, top_n->metric) : -1, .index = i};
    }
    if (count == 0)
        return 0; /* there may be no memory for ranks yet, and qsort wants some */
    qsort(top_n->ranks, count, sizeof *top_n->ranks, by_value);
    for (uint32_t i = 0; i < count; i++)
        top_n->ranks[i].kept = i < top_n->count;
    qsort(top_n->ranks, count, sizeof *top_n->ranks, by_index);
    return count;
}

#define IS_gauge 0
#define IS_counter 1
/* The first one gives the rest its time; has ends as what all of them know. */
static void add_rest(struct etwatch_sample *rest, const struct etwatch_sample *sample)
{
    if (rest->tid == 0) {
        *rest = (struct etwatch_sample){
            .size = sizeof *rest,
            .type = ETWATCH_TYPE_SAMPLE,
            .source = sample->source,
            .flags = ETWATCH_SAMPLE_COMPLETE | ETWATCH_SAMPLE_OTHER,
            .pid = UINT32_MAX,
            .name = "other",
        };
#define ETWATCH_X(name, type, kind) \
    if (IS_##kind)                  \
        etwatch_metric_set_add(&rest->has, ETWATCH_M_##name);
        ETWATCH_METRICS(ETWATCH_X)
#undef ETWATCH_X
    }
    rest->tid++;
    rest->t_ns = sample->t_ns > rest->t_ns ? sample->t_ns : rest->t_ns;
    rest->dt_ns = sample->dt_ns > rest->dt_ns ? sample->dt_ns : rest->dt_ns;
    rest->flags &= sample->flags | ~(uint32_t)ETWATCH_SAMPLE_COMPLETE;
    etwatch_metric_set_intersect(&rest->has, &sample->has);
#define ETWATCH_X(name, type, kind) \
    if (IS_##kind)                  \
        rest->name += sample->name;
    ETWATCH_METRICS(ETWATCH_X)
#undef ETWATCH_X
}

static void end_rest(struct etwatch_sample *rest)
{
    rest->cpu_percent = 0;
    if (etwatch_sample_has(rest, ETWATCH_M_cpu_ns) && rest->dt_ns > 0) {
        etwatch_metric_set_add(&rest->has, ETWATCH_M_cpu_percent);
        rest->cpu_percent = 100.0 * (double)rest->cpu_ns / (double)rest->dt_ns;
    }
}

void ew_top_n_flush(struct ew_top_n *top_n)
{
    struct etwatch_sample rest = {0};
    uint32_t ranked = rank(top_n), next = 0, kept = 0;
    bool keep = true; /* the sample that THREADs belong to */
    for (uint32_t i = 0; i < top_n->held_count; i++) {
        const struct etwatch_sample *sample = &top_n->held[i];
        if (sample->type == ETWATCH_TYPE_SAMPLE && next < ranked) {
            keep = top_n->ranks[next++].kept;
            if (!keep)
                add_rest(&rest, sample);
        }
        bool follows = sample->type == ETWATCH_TYPE_SAMPLE || sample->type == ETWATCH_TYPE_THREAD;
        if (keep || !follows)
            top_n->held[kept++] = *sample;
    }
    top_n->held_count = 0;
    top_n->end_ns = 0;
    if (kept > 0)
        top_n->deliver(top_n->ctx, top_n->held, kept);
    if (rest.tid == 0)
        return;
    end_rest(&rest);
    top_n->deliver(top_n->ctx, &rest, 1);
}

static bool make_room(struct ew_top_n *top_n)
{
    if (top_n->held_count < top_n->held_room)
        return true;
    uint32_t room = top_n->held_room == 0 ? 64 : 2 * top_n->held_room;
    if (room > EW_TOP_N_HELD_MAX)
        return false;
    struct etwatch_sample *held = ew_realloc_array(top_n->held, room, sizeof *held);
    if (held == NULL)
        return false;
    top_n->held = held;
    struct ew_top_n_rank *ranks = ew_realloc_array(top_n->ranks, room, sizeof *ranks);
    if (ranks == NULL)
        return false;
    top_n->ranks = ranks;
    top_n->held_room = room;
    return true;
}

void ew_top_n_put(struct ew_top_n *top_n, const struct etwatch_sample *samples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct etwatch_sample *sample = &samples[i];
        bool counts = sample->type == ETWATCH_TYPE_SAMPLE;
        bool next = counts && top_n->end_ns != 0 && sample->t_ns > top_n->end_ns;
        if (next || !make_room(top_n))
            ew_top_n_flush(top_n);
        if (counts && top_n->end_ns == 0)
            top_n->end_ns = sample->t_ns;
        if (top_n->held_room > 0)
            top_n->held[top_n->held_count++] = *sample;
        else
            top_n->deliver(top_n->ctx, sample, 1); /* no memory: as it is */
    }
}
