/* SPDX-License-Identifier: MIT */
/*
 * What the poll sources of all systems have in common: who is there, who of them is watched, and
 * how figures are told. Each is a struct that begins with this one.
 */
#ifndef EW_SOURCE_POLL_POLLER_H
#define EW_SOURCE_POLL_POLLER_H

#include "model/facts.h"
#include "source/poll/filter.h"
#include "source/poll/table.h"
#include "source/source.h"

/* Beside the watched ones, so many others are remembered. */
#define EW_POLL_IGNORED_MAX 262144u

struct ew_poller {
    struct ew_source source;
    struct ew_source_ops ops; /* of this one: what it can tell depends on the system */
    struct ew_poll_filter filter;
    bool threads;
    uint32_t max_watched, watched_count, thread_count;
    struct ew_poll_table table;
    uint64_t round;               /* 1 is the first */
    uint64_t now_ns;              /* of this round */
    bool has_trees;               /* descendants of something are watched */
    bool tree_changed;            /* a pid was added: look for its descendants everywhere */
    uint64_t beyond;              /* processes that found no room in the table, at the last look */
    const struct ew_facts *facts; /* during a round */
    struct ew_source_stats stats;
    void (*free_process)(struct ew_poller *poller, struct ew_poll_process *process);
};

/* What was read of a process. */
struct ew_poll_figures {
    bool fell; /* a counter went down in the last reading */
    uint32_t counter_has, gauge_has;
    uint64_t counter[EW_COUNTER_COUNT];
    uint64_t gauge[EW_GAUGE_COUNT];
};

/* Sets up what is common; only the rules need it to be undone. ENOMEM. */
int ew_poller_init(struct ew_poller *poller, const struct ew_source_config *config);
/* Frees whoever is watched, the table and the rules. */
void ew_poller_done(struct ew_poller *poller);

/* A counter that falls is overruled by what was read before. True: it is new, or fell. */
bool ew_poll_count(struct ew_poll_figures *figures, enum ew_counter which, uint64_t value);

/* Whether it descends from a process that was asked for, or is one. */
bool ew_poller_in_tree(struct ew_poller *poller, const struct ew_poll_entry *entry);
/* Watches it no more. */
void ew_poller_let_go(struct ew_poller *poller, struct ew_poll_entry *entry,
                      enum ew_poll_state state);
/* It is asked for, and whoever descends from it. */
int ew_poller_want(struct ew_poller *poller, uint32_t pid);

/* ------------------------------------------------------------------ telling */

void ew_poller_emit_reading(struct ew_poller *poller, const struct ew_reading *reading);
/* The figures of a process. incomplete: something of them is known to be missing. */
void ew_poller_emit_figures(struct ew_poller *poller, uint32_t pid, uint64_t start_ns,
                            const struct ew_poll_figures *figures, bool incomplete);
/* So many processes or threads found no room. */
void ew_poller_emit_full(struct ew_poller *poller, uint64_t count);
/* The end of a round: beyond is how many had found no room before it. Each is told once, and not in
 * every round. */
void ew_poller_end_round(struct ew_poller *poller, uint64_t beyond);

/* ---------------------------------------------------------- for ew_source_ops */

int ew_poller_set_interval(struct ew_source *source, uint64_t at_ns, uint64_t interval_ns);
int ew_poller_remove(struct ew_source *source, uint32_t pid);
void ew_poller_stats(struct ew_source *source, struct ew_source_stats *ret_stats);
int ew_poller_wake_fd(struct ew_source *source);

#endif
