/* SPDX-License-Identifier: MIT */
/*
 * What the poll sources of all systems have in common: who is there, who of them is watched, and
 * how figures are told. Each is a struct that begins with this one.
 */
#ifndef EW_SOURCE_POLL_POLLER_H
#define EW_SOURCE_POLL_POLLER_H

#include <stdbool.h>
#include <stdint.h>

#include "model/facts.h"
#include "source/source.h"

/* ----------------------------------------------------------------------------- filter */

/* What the user asks a poll source to watch. */

/* The rules, copied, so that the caller's may go. */
struct ew_poll_filter {
    bool all, kernel_threads;
    uint32_t *pids; /* only until the next round: there they become trees in the table, because a
                     * number means the process that has it now and not one that gets it later */
    uint32_t pid_count, pid_capacity;
    char **names;
    uint32_t name_count;
    uint32_t *uids;
    uint32_t uid_count;
    char **cgroups;
    uint32_t cgroup_count;
};

int ew_poll_filter_copy(struct ew_poll_filter *to, const struct ew_filter *from);
void ew_poll_filter_done(struct ew_poll_filter *filter);
int ew_poll_filter_add_pid(struct ew_poll_filter *filter, uint32_t pid);
bool ew_poll_filter_has_pid(const struct ew_poll_filter *filter, uint32_t pid);
bool ew_poll_filter_has_name(const struct ew_poll_filter *filter, const char *name);

/* ------------------------------------------------------------------------------ table */

/*
 * Every process that is there, by pid: those that are watched, with what was read of them, and
 * those that are not, so that they need not be looked at again.
 */

struct ew_poll_process;

enum ew_poll_state {
    EW_POLL_IGNORED = 0, /* no rule matches, so far */
    EW_POLL_WATCHED,
    EW_POLL_ENDED,   /* a zombie whose end was told */
    EW_POLL_REMOVED, /* the user does not want it any more */
    EW_POLL_BEYOND,  /* to be watched, but there is no room; told as lost */
};

struct ew_poll_entry {
    uint32_t pid, ppid;
    enum ew_poll_state state;
    bool tree; /* its children are watched as well */
    bool kernel_thread;
    uint64_t round;    /* the last one in which it was seen in the directory */
    uint64_t start_ns; /* with pid: the identity */
    uint64_t gate_ns;  /* its CPU clock when it was last read: unchanged means it did not run */
    uint64_t found_ns; /* raw time of the round that found it */
    struct ew_poll_process *process; /* WATCHED only; owned */
};

struct ew_poll_table {
    struct ew_poll_entry *entries; /* dense; removal moves the last one */
    uint32_t count, capacity, max;
    uint32_t *slots; /* index into entries + 1, by hash of the pid; 0 = empty */
    uint32_t slot_mask;
};

void ew_poll_table_init(struct ew_poll_table *table, uint32_t max);
/* Frees the table, not the processes in it. */
void ew_poll_table_done(struct ew_poll_table *table);
/* NULL if it is not there. Valid until the next add or remove. */
struct ew_poll_entry *ew_poll_table_find(struct ew_poll_table *table, uint32_t pid);
/* The pid must not be there. NULL if the table is full or memory is out. */
struct ew_poll_entry *ew_poll_table_add(struct ew_poll_table *table, uint32_t pid);
/* The last entry takes the place of this one. */
void ew_poll_table_remove(struct ew_poll_table *table, struct ew_poll_entry *entry);

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
