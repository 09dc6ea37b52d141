/* SPDX-License-Identifier: MIT */
/*
 * The groups of /metrics: all processes of one name, or single processes (--prom-pid-label). A
 * fixed number of groups is shown, the rest is one group "other", so the number of series is
 * bounded whatever the machine does.
 *
 * A counter of Prometheus must never go back. So a group counts only what happens while it is
 * shown, and "other" counts what happens in all groups that are not shown at that time: every
 * nanosecond is counted exactly once. A group that comes back continues from where it was. A shown
 * group stays until another has twice its CPU time of the last minutes, or five minutes after its
 * last process exited.
 */
#include "serve/state.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

enum { INDEX_SIZE = 65536, FIRST_SLOTS = 64 };

#define GONE_KEEP_NS (UINT64_C(300) * EW_STATE_SECOND_NS)
static const double half_minute_decay = 0.98851402; /* per second: a half in a minute */
static const double least_score_ns = 1e6;

static uint64_t hash_text(const char *text)
{
    uint64_t hash = ew_hash_seed();
    for (; *text != '\0'; text++)
        hash = ew_hash_mix(hash, (uint8_t)*text);
    return hash >> 16;
}

static uint32_t take_slot(struct ew_state *state)
{
    uint32_t i = state->free_group;
    if (i != EW_STATE_NONE) {
        state->free_group = state->groups[i].next;
        return i;
    }
    if (state->group_count == state->group_size) {
        uint32_t wanted = state->group_size == 0 ? FIRST_SLOTS : state->group_size * 2;
        struct ew_state_group *grown = wanted > EW_STATE_GROUPS_MAX
                                           ? NULL
                                           : ew_realloc_array(state->groups, wanted, sizeof *grown);
        if (grown == NULL)
            return EW_STATE_NONE;
        memset(grown + state->group_size, 0, (wanted - state->group_size) * sizeof *grown);
        state->groups = grown;
        state->group_size = wanted;
    }
    return state->group_count++;
}

static void free_group(struct ew_state *state, uint32_t i)
{
    struct ew_state_group *group = &state->groups[i];
    uint32_t *link = &state->group_index[hash_text(group->key) % INDEX_SIZE];
    while (*link != i)
        link = &state->groups[*link].next;
    *link = group->next;
    state->shown -= group->shown;
    ew_free(group->key);
    ew_free(group->name);
    memset(group, 0, sizeof *group);
    group->next = state->free_group;
    state->free_group = i;
}

uint32_t ew_groups_join(struct ew_state *state, const struct ew_state_process *process)
{
    char key[EW_STATE_NAME_MAX + 48], name[EW_STATE_NAME_MAX];
    (void)snprintf(name, sizeof name, "%s", process->name != NULL ? process->name : "(unknown)");
    if (state->options.pid_label)
        (void)snprintf(key, sizeof key, "%u-%llu", process->pid,
                       (unsigned long long)process->start_ns);
    else
        (void)snprintf(key, sizeof key, "%s", name);
    if (strcmp(key, EW_GROUPS_OTHER) == 0)
        return EW_STATE_NONE;
    uint32_t *chain = &state->group_index[hash_text(key) % INDEX_SIZE];
    uint32_t i = *chain;
    while (i != EW_STATE_NONE && strcmp(state->groups[i].key, key) != 0)
        i = state->groups[i].next;
    if (i == EW_STATE_NONE) {
        i = take_slot(state);
        if (i == EW_STATE_NONE)
            return i;
        struct ew_state_group *group = &state->groups[i];
        *group = (struct ew_state_group){.key = ew_strdup(key), .name = ew_strdup(name)};
        if (group->key == NULL || group->name == NULL) {
            ew_free(group->key);
            ew_free(group->name);
            *group = (struct ew_state_group){.next = state->free_group};
            state->free_group = i;
            return EW_STATE_NONE;
        }
        group->pid = process->pid;
        group->start_ns = process->start_ns;
        group->since_ns = state->now_ns != 0 ? state->now_ns : state->first_ns;
        group->serial = ++state->group_serial;
        group->next = *chain;
        *chain = i;
    }
    state->groups[i].live++;
    return i;
}

void ew_groups_leave(struct ew_state *state, uint32_t group, uint64_t t_ns)
{
    struct ew_state_group *target = group == EW_STATE_NONE ? &state->other : &state->groups[group];
    struct ew_state_group *counted = target->shown ? target : &state->other;
    counted->exited++;
    if (group == EW_STATE_NONE)
        return;
    target->live--;
    target->gone_ns = t_ns;
}

uint32_t ew_groups_rename(struct ew_state *state, const struct ew_state_process *process)
{
    uint32_t old = process->group;
    if (state->options.pid_label && old != EW_STATE_NONE) {
        char *name = ew_strdup(process->name);
        if (name != NULL) {
            ew_free(state->groups[old].name);
            state->groups[old].name = name;
        }
        return old;
    }
    if (old != EW_STATE_NONE) {
        state->groups[old].live--;
        state->groups[old].gone_ns = state->now_ns;
    }
    return ew_groups_join(state, process);
}

void ew_groups_add(struct ew_state *state, uint32_t i, const struct etwatch_sample *sample)
{
    struct ew_state_group *group = i == EW_STATE_NONE ? &state->other : &state->groups[i];
    struct ew_state_group *counted = group->shown ? group : &state->other;
    for (uint32_t m = etwatch_metric_set_next(&sample->has, 0); m < ETWATCH_METRIC_COUNT;
         m = etwatch_metric_set_next(&sample->has, m + 1)) {
        if (!etwatch_metric_set_has(&state->catalog.process_counters, m))
            continue;
        counted->counters[m] = ew_catalog_sum(state->catalog.process_types[m], counted->counters[m],
                                              ew_catalog_raw(sample, m));
    }
    etwatch_metric_set_union(&counted->has, &sample->has);
    if (etwatch_sample_has(sample, ETWATCH_M_cpu_ns))
        group->score += (double)sample->cpu_ns;
}

static uint32_t best_hidden(const struct ew_state *state)
{
    uint32_t best = EW_STATE_NONE;
    for (uint32_t i = 0; i < state->group_count; i++) {
        const struct ew_state_group *group = &state->groups[i];
        if (group->key == NULL || group->shown || group->live == 0 || group->score < least_score_ns)
            continue;
        if (best == EW_STATE_NONE || group->score > state->groups[best].score)
            best = i;
    }
    return best;
}

static uint32_t worst_shown(const struct ew_state *state)
{
    uint32_t worst = EW_STATE_NONE;
    for (uint32_t i = 0; i < state->group_count; i++) {
        const struct ew_state_group *group = &state->groups[i];
        if (group->key == NULL || !group->shown)
            continue;
        if (worst == EW_STATE_NONE || group->score < state->groups[worst].score)
            worst = i;
    }
    return worst;
}

static void decay(struct ew_state *state)
{
    for (uint32_t i = 0; i < state->group_count; i++) {
        struct ew_state_group *group = &state->groups[i];
        if (group->key == NULL)
            continue;
        group->score *= half_minute_decay;
        /* A single process that exited is never seen again: it ends with the next scrape. */
        uint64_t keep_ns = state->options.pid_label ? GONE_KEEP_NS / 5 : GONE_KEEP_NS;
        if (group->live == 0 && group->gone_ns + keep_ns < state->now_ns)
            free_group(state, i);
    }
}

void ew_groups_rank(struct ew_state *state)
{
    decay(state);
    for (uint32_t changes = 0; changes < 64; changes++) {
        uint32_t best = best_hidden(state);
        if (best == EW_STATE_NONE)
            return;
        if (state->shown >= state->options.top) {
            uint32_t worst = worst_shown(state);
            if (worst == EW_STATE_NONE ||
                state->groups[best].score < 2 * state->groups[worst].score + least_score_ns)
                return;
            state->groups[worst].shown = false;
            state->shown--;
        }
        state->groups[best].shown = true;
        state->shown++;
    }
}

/* -------------------------------------------------------------------------- readers */

bool ew_groups_export(const struct ew_state *state, const struct etwatch_metric_set *columns,
                      uint32_t metric)
{
    const struct etwatch_metric_info *info = &state->catalog.process[metric];
    return info->prometheus != NULL && etwatch_metric_set_has(columns, metric) &&
           strcmp(info->group, "exit") != 0 && (info->has_average != 0 || state->options.pid_label);
}

const struct ew_state_group *ew_groups_at(const struct ew_state *state, uint32_t g)
{
    if (g == state->group_count)
        return &state->other;
    return state->groups[g].key != NULL && state->groups[g].shown ? &state->groups[g] : NULL;
}

uint32_t ew_groups_slot(const struct ew_state *state, const struct ew_state_process *process)
{
    bool shown = process->group != EW_STATE_NONE && state->groups[process->group].shown;
    return shown ? process->group : state->group_count;
}

uint64_t ew_groups_live(const struct ew_state *state, uint32_t g)
{
    if (g != state->group_count)
        return state->groups[g].live;
    uint64_t hidden = state->live;
    for (uint32_t i = 0; i < state->group_count; i++)
        if (state->groups[i].key != NULL && state->groups[i].shown)
            hidden -= state->groups[i].live;
    return hidden;
}
