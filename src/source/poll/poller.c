/* SPDX-License-Identifier: MIT */
/* The common part of the poll sources. Every fact carries the time of the round. */
#include "source/poll/poller.h"

#include <string.h>

int ew_poller_init(struct ew_poller *poller, const struct ew_source_config *config)
{
    poller->threads = config->threads;
    poller->max_watched = config->max_processes;
    poller->stats.kernel_ns_known = true; /* no program of ours runs in the kernel */
    ew_poll_table_init(&poller->table, config->max_processes + EW_POLL_IGNORED_MAX);
    return ew_poll_filter_copy(&poller->filter, &config->filter);
}

void ew_poller_done(struct ew_poller *poller)
{
    for (uint32_t i = 0; i < poller->table.count; i++)
        poller->free_process(poller, poller->table.entries[i].process);
    ew_poll_table_done(&poller->table);
    ew_poll_filter_done(&poller->filter);
}

bool ew_poll_count(struct ew_poll_figures *figures, enum ew_counter which, uint64_t value)
{
    bool known = (figures->counter_has & 1u << which) != 0;
    if (known && value < figures->counter[which]) {
        figures->fell = true;
        return true;
    }
    bool new = !known || value != figures->counter[which];
    figures->counter[which] = value;
    figures->counter_has |= 1u << which;
    return new;
}

/* --------------------------------------------------------------------- filter */

bool ew_poller_in_tree(struct ew_poller *poller, const struct ew_poll_entry *entry)
{
    if (ew_poll_filter_has_pid(&poller->filter, entry->pid))
        return true;
    const struct ew_poll_entry *parent = ew_poll_table_find(&poller->table, entry->ppid);
    return parent && parent->tree && parent->start_ns <= entry->start_ns;
}

void ew_poller_unwatch(struct ew_poller *poller, struct ew_poll_entry *entry,
                       enum ew_poll_state state)
{
    if (entry->process) {
        poller->free_process(poller, entry->process);
        entry->process = NULL;
        poller->watched_count--;
    }
    entry->state = state;
}

int ew_poller_select_pid(struct ew_poller *poller, uint32_t pid)
{
    int rc = ew_poll_filter_add_pid(&poller->filter, pid);
    if (rc < 0)
        return rc;
    struct ew_poll_entry *entry = ew_poll_table_find(&poller->table, pid);
    if (entry && entry->state == EW_POLL_REMOVED)
        entry->state = EW_POLL_IGNORED;
    if (entry && entry->state == EW_POLL_WATCHED)
        entry->tree = poller->has_trees = true;
    poller->tree_changed = true;
    return 0;
}

/* Removes only this process: existing descendants stay watched, new children are not. */
int ew_poller_remove(struct ew_source *source, uint32_t pid)
{
    struct ew_poller *poller = (struct ew_poller *)source;
    struct ew_poll_entry *entry = ew_poll_table_find(&poller->table, pid);
    if (!entry || entry->state != EW_POLL_WATCHED)
        return ETWATCH_ENOENT;
    entry->tree = false;
    ew_poller_unwatch(poller, entry, EW_POLL_REMOVED);
    return 0;
}

/* -------------------------------------------------------------------- facts */

void ew_poller_emit_reading(struct ew_poller *poller, const struct ew_reading *reading)
{
    poller->stats.events++;
    poller->facts->reading(poller->facts->ctx, reading);
}

void ew_poller_emit_figures(struct ew_poller *poller, uint32_t pid, uint64_t start_ns,
                            const struct ew_poll_figures *figures, bool incomplete)
{
    struct ew_reading reading = {.kind = EW_READING_AT,
                                 .pid = pid,
                                 .start_ns = start_ns,
                                 .t_ns = poller->now_ns,
                                 .incomplete = incomplete,
                                 .counter_has = figures->counter_has,
                                 .gauge_has = figures->gauge_has};
    memcpy(reading.counter, figures->counter, sizeof reading.counter);
    memcpy(reading.gauge, figures->gauge, sizeof reading.gauge);
    ew_poller_emit_reading(poller, &reading);
}

void ew_poller_emit_full(struct ew_poller *poller, uint64_t count)
{
    struct etwatch_loss loss = {.size = sizeof loss,
                                .stage = ETWATCH_LOSS_TABLE,
                                .count = count,
                                .from_ns = poller->now_ns,
                                .to_ns = poller->now_ns};
    poller->stats.lost += count;
    poller->facts->loss(poller->facts->ctx, &loss);
}

void ew_poller_end_round(struct ew_poller *poller, uint64_t overflow)
{
    if (poller->overflow > overflow)
        ew_poller_emit_full(poller, poller->overflow - overflow);
    poller->facts = NULL;
}

/* ---------------------------------------------------------- for ew_source_ops */

/* Nothing to do: a round reads the current state, whatever the interval. */
int ew_poller_set_interval(struct ew_source *source, uint64_t at_ns, uint64_t interval_ns)
{
    (void)source, (void)at_ns, (void)interval_ns;
    return 0;
}

void ew_poller_stats(struct ew_source *source, struct ew_source_stats *ret_stats)
{
    *ret_stats = ((const struct ew_poller *)source)->stats;
}

int ew_poller_wake_fd(struct ew_source *source)
{
    (void)source;
    return -1;
}
