/* SPDX-License-Identifier: MIT */
/*
 * The common part of the poll sources of all systems: known processes, filter, and emission of
 * figures. The state of each poll source starts with struct ew_poller.
 */
#ifndef EW_SOURCE_POLL_POLLER_H
#define EW_SOURCE_POLL_POLLER_H

#include <stdbool.h>
#include <stdint.h>

#include "model/facts.h"
#include "source/source.h"

/* ----------------------------------------------------------------------------- filter */

/* Copy of the filter rules. */
struct ew_poll_filter {
    bool all, kernel_threads;
    uint32_t *pids; /* only until the next round, which turns them into trees in the table: a pid
                       selects the process that has it now, not a later one */
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
 * All existing processes by pid: the watched ones with their readings, and the others, so that they
 * need not be checked again.
 */

struct ew_poll_process;

enum ew_poll_state {
    EW_POLL_IGNORED = 0, /* no rule matches so far */
    EW_POLL_WATCHED,
    EW_POLL_ENDED,    /* a zombie with its exit already emitted */
    EW_POLL_REMOVED,  /* removed by the user */
    EW_POLL_NO_SPACE, /* selected, but there is no space; reported as a loss */
};

struct ew_poll_entry {
    uint32_t pid, ppid;
    enum ew_poll_state state;
    bool tree; /* its children are watched as well */
    bool kernel_thread;
    uint64_t round;          /* last round in which it was listed */
    uint64_t start_ns;       /* with pid: the identity */
    uint64_t checked_cpu_ns; /* CPU clock at the last check: unchanged means that it did not run */
    uint64_t found_ns;       /* raw time of the round that found it */
    struct ew_poll_process *process; /* WATCHED only; owned */
};

struct ew_poll_table {
    struct ew_poll_entry *entries; /* dense; removal moves the last entry */
    uint32_t count, capacity, max;
    uint32_t *slots; /* index into entries + 1, by hash of the pid; 0 = empty */
    uint32_t slot_mask;
};

void ew_poll_table_init(struct ew_poll_table *table, uint32_t max);
/* Frees the table, not the processes in it. */
void ew_poll_table_done(struct ew_poll_table *table);
/* NULL if unknown. Valid until the next add or remove. */
struct ew_poll_entry *ew_poll_table_find(struct ew_poll_table *table, uint32_t pid);
/* The pid must not be in the table. NULL if the table is full or memory is exhausted. */
struct ew_poll_entry *ew_poll_table_add(struct ew_poll_table *table, uint32_t pid);
/* The last entry replaces this one. */
void ew_poll_table_remove(struct ew_poll_table *table, struct ew_poll_entry *entry);

/* Maximum number of remembered processes in addition to the watched ones. */
#define EW_POLL_IGNORED_MAX 262144u

struct ew_poller {
    struct ew_source source;
    struct ew_source_ops ops; /* available and estimated depend on the system */
    struct ew_poll_filter filter;
    bool threads;
    uint32_t max_watched, watched_count, thread_count;
    struct ew_poll_table table;
    uint64_t round;               /* 1 is the first */
    uint64_t now_ns;              /* of this round */
    bool has_trees;               /* the descendants of some process are watched */
    bool tree_changed;            /* a pid was added: its descendants must be searched */
    uint64_t overflow;            /* processes without space in the table, at the last listing */
    const struct ew_facts *facts; /* during a round */
    struct ew_source_stats stats;
    void (*free_process)(struct ew_poller *poller, struct ew_poll_process *process);
};

/* Readings of a process. */
struct ew_poll_figures {
    bool fell; /* a counter decreased in the last reading */
    uint32_t counter_has, gauge_has;
    uint64_t counter[EW_COUNTER_COUNT];
    uint64_t gauge[EW_GAUGE_COUNT];
};

/* Initializes the common part; on failure only the filter needs cleanup. ENOMEM. */
int ew_poller_init(struct ew_poller *poller, const struct ew_source_config *config);
/* Frees watched processes, the table and the filter. */
void ew_poller_done(struct ew_poller *poller);

/* A decreasing counter keeps its old value. True: the value is new, or decreased. */
bool ew_poll_count(struct ew_poll_figures *figures, enum ew_counter which, uint64_t value);

/* Whether it is a selected pid or descends from one. */
bool ew_poller_in_tree(struct ew_poller *poller, const struct ew_poll_entry *entry);
/* Stops watching it. */
void ew_poller_unwatch(struct ew_poller *poller, struct ew_poll_entry *entry,
                       enum ew_poll_state state);
/* Selects it and its descendants. */
int ew_poller_select_pid(struct ew_poller *poller, uint32_t pid);

/* -------------------------------------------------------------------- facts */

void ew_poller_emit_reading(struct ew_poller *poller, const struct ew_reading *reading);
/* The figures of a process. incomplete: part of them is known to be missing. */
void ew_poller_emit_figures(struct ew_poller *poller, uint32_t pid, uint64_t start_ns,
                            const struct ew_poll_figures *figures, bool incomplete);
/* Reports processes or threads without space as a loss. */
void ew_poller_emit_full(struct ew_poller *poller, uint64_t count);
/* Ends a round; overflow: number of processes without space before it. Each is reported once,
 * not in every round. */
void ew_poller_end_round(struct ew_poller *poller, uint64_t overflow);

/* ---------------------------------------------------------- for ew_source_ops */

int ew_poller_set_interval(struct ew_source *source, uint64_t at_ns, uint64_t interval_ns);
int ew_poller_remove(struct ew_source *source, uint32_t pid);
void ew_poller_stats(struct ew_source *source, struct ew_source_stats *ret_stats);
int ew_poller_wake_fd(struct ew_source *source);

#endif
