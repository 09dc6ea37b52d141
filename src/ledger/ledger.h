/* SPDX-License-Identifier: MIT */
/*
 * The table of processes and threads: who there is, what was counted so far, what was read last.
 *
 * A process is (pid, start time), a thread (tid, start time) in a process; a reused id is another
 * entry, and both may be here until the old one's last sample is delivered. Only threads that ran
 * have an entry, and one that has been idle may be evicted: its counters are absolute, and once its
 * open interval is over its next reading is an OPEN, which is a new baseline.
 */
#ifndef EW_LEDGER_LEDGER_H
#define EW_LEDGER_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "ledger/index.h"
#include "ledger/pool.h"
#include "model/facts.h"

/* ----------------------------------------------------------------------------- intern */

/*
 * Counted strings: many processes share few names, users and cgroups. A string lives as long as
 * somebody holds it, so that a machine that starts containers for months does not grow.
 */

struct ew_intern_entry;

struct ew_intern {
    struct ew_intern_entry **buckets;
    uint32_t capacity; /* 0 or a power of two */
    uint32_t used;
};

void ew_intern_init(struct ew_intern *intern);
void ew_intern_done(struct ew_intern *intern);
/* A shared copy of text, or NULL without memory. Each take is paid back by one release. */
const char *ew_intern_take(struct ew_intern *intern, const char *text);
/* NULL is fine. */
void ew_intern_release(struct ew_intern *intern, const char *text);

struct ew_cell;
struct ew_process_aggregate;

enum ew_process_flag {
    EW_P_STARTED = 1u << 0,     /* began under watch: its counters begin at 0 */
    EW_P_SEEN = 1u << 1,        /* was there before */
    EW_P_UNKNOWN = 1u << 2,     /* known only by what it did: its START was missed */
    EW_P_ANNOUNCED = 1u << 3,   /* START delivered */
    EW_P_LISTED = 1u << 4,      /* in a list of STARTs to deliver */
    EW_P_EXITING = 1u << 5,     /* ended; its EXIT is not yet delivered */
    EW_P_EXIT_STATUS = 1u << 6, /* exit_code and exit_signal are known */
    EW_P_REPLACED = 1u << 7,    /* ended unseen: its pid came back, or it is not there any more */
    EW_P_FORGOTTEN = 1u << 8,   /* no longer watched: goes without an EXIT */
    EW_P_REBASE = 1u << 9,      /* a thread's first reading may not be its first at all */
    EW_P_READ = 1u << 10,       /* had a reading */
    EW_P_SAMPLED = 1u << 11,    /* had a SAMPLE */
    EW_P_MARK = 1u << 12,       /* its next cell is not complete */
    EW_P_LOSSY = 1u << 13,      /* something of it was lost at some time */
    EW_P_DESCRIBED = 1u << 14,
    EW_P_HAS_PPID = 1u << 15,
    EW_P_HAS_SESSION = 1u << 16,
};

struct ew_process {
    uint32_t pool_word; /* the pool's while free */
    uint32_t self;      /* number in the pool; never 0 while live */
    uint32_t pid, ppid, session_id, uid;
    uint32_t flags;
    uint32_t thread_count, threads; /* known, not yet final; the list's head */
    uint32_t next_start, next_exit; /* the sampler's lists */
    uint32_t exit_cut;              /* the cut that was to come when it ended */
    int32_t exit_code, exit_signal;
    uint32_t total_has; /* counters whose value covers the whole life */
    uint32_t own_has;   /* counters read of the process itself: its threads do not add to them */
    uint32_t exit_has;  /* counters fixed by the exit fact */
    uint32_t gauge_has;
    uint32_t round_has;  /* polling: counters that the last reading knew */
    uint32_t emitted;    /* low bits of the last interval it had a sample for (dense) */
    uint32_t gauge_now;  /* gauges that the last reading of their class brought */
    uint64_t start_ns;   /* 0: unknown */
    uint64_t watched_ns; /* since when */
    uint64_t there_ns;   /* it was there then, as a lifecycle fact or its first reading told */
    uint64_t active_ns;  /* it is not known to have run after this */
    uint64_t exit_ns;    /* when it ended; until then, when it last left a CPU */
    uint64_t cgroup_id;
    uint64_t first_index;  /* the interval of watched_ns */
    struct ew_cell *cells; /* any of its pending cells, the one used last */
    struct ew_process_aggregate *aggregate;
    const char *name, *user, *cgroup, *cmdline; /* interned or NULL */
    uint64_t value[EW_COUNTER_COUNT];           /* totals */
    uint64_t gauge[EW_GAUGE_BASE_COUNT];
    uint64_t *more_gauges;                   /* those after them; NULL: none was ever read */
    uint64_t gauge_ns[EW_GAUGE_CLASS_COUNT]; /* when each class was read */
    uint64_t gauges_ns;                      /* the latest of them */
    uint64_t gauges_since_ns;                /* and the first since the last cut */
};

enum ew_thread_flag {
    EW_T_WHOLE = 1u << 0,   /* watched since it began: a counter not yet read was 0 */
    EW_T_OPEN = 1u << 1,    /* open_index is valid */
    EW_T_RETIRED = 1u << 2, /* over, kept only until its cells are delivered */
    EW_T_BASED = 1u << 3,   /* nothing but a baseline was read of it, which may be old news */
};

struct ew_thread {
    uint32_t pool_word;
    uint32_t self;
    uint32_t tid;
    uint32_t flags;
    struct ew_process *process;
    uint32_t next, prev; /* threads of the process */
    uint32_t last_has, gauge_has;
    uint32_t active_cut; /* the cut that was to come at its last reading */
    int32_t priority;
    uint64_t affinity;
    uint64_t gauge_ns;
    uint64_t start_ns;    /* 0: unknown */
    uint64_t open_index;  /* interval that counts until the next reading belong to */
    uint64_t credited_ns; /* what it did is accounted for up to here */
    struct ew_cell *cells;
    const char *name;
    uint64_t last[EW_COUNTER_COUNT]; /* accounted for up to here; falls never */
};

struct ew_ledger {
    struct ew_pool processes, threads;
    struct ew_index pids, tids;
    struct ew_intern strings;
    uint32_t max_processes, max_threads;
    uint32_t hand;       /* where the search for an idle thread goes on */
    uint32_t barren_cut; /* the cut in which that search found nothing, plus 1 */
};

void ew_ledger_init(struct ew_ledger *ledger, uint32_t max_processes, uint32_t max_threads);
void ew_ledger_done(struct ew_ledger *ledger);

/* Of this pid and start time (0: any), the one that runs or else started last, or NULL. */
struct ew_process *ew_ledger_find_process(const struct ew_ledger *ledger, uint32_t pid,
                                          uint64_t start_ns);
/* Of this pid, the one that started last at or before t_ns. */
struct ew_process *ew_ledger_find_process_at(const struct ew_ledger *ledger, uint32_t pid,
                                             uint64_t t_ns);
/* ETWATCH_ELIMIT or ETWATCH_ENOMEM on failure. */
int ew_ledger_add_process(struct ew_ledger *ledger, uint32_t pid, uint64_t start_ns,
                          struct ew_process **ret_process);
/* Removes the process and what threads it has left. Its cells must be gone. */
void ew_ledger_drop_process(struct ew_ledger *ledger, struct ew_process *process);

struct ew_thread *ew_ledger_find_thread(const struct ew_ledger *ledger, uint32_t pid, uint32_t tid,
                                        uint64_t start_ns);
/* At the limit an idle thread makes room: no reading in the drain before cut number `cut`, and its
 * open interval is before `first_index`. */
int ew_ledger_add_thread(struct ew_ledger *ledger, struct ew_process *process, uint32_t tid,
                         uint64_t start_ns, uint32_t cut, uint64_t first_index,
                         struct ew_thread **ret_thread);
/* Takes the thread out of its process and the index; it stays readable until freed. */
void ew_ledger_retire_thread(struct ew_ledger *ledger, struct ew_thread *thread);
void ew_ledger_free_thread(struct ew_ledger *ledger, struct ew_thread *thread);
/* The same thread under another id (exec). 0 or ETWATCH_ENOMEM, then it keeps the old one. */
int ew_ledger_move_thread(struct ew_ledger *ledger, struct ew_thread *thread, uint32_t tid,
                          uint64_t start_ns);
/* Asks for the memory of these threads and their processes, all at once: after a sleep none of it
 * is in a cache, and one after the other they would be waited for. */
enum { EW_LEDGER_FETCH_MAX = 64 };
void ew_ledger_fetch(const struct ew_ledger *ledger, const uint32_t *tids, uint32_t count);
/* Looks at `steps` entries and evicts the threads whose last reading was before `older_than_cut`
 * and whose open interval is before first_index. */
void ew_ledger_sweep_threads(struct ew_ledger *ledger, uint32_t steps, uint32_t older_than_cut,
                             uint64_t first_index);

/* Replaces *slot by an interned copy of text (NULL: by NULL). 0 or ETWATCH_ENOMEM. */
int ew_ledger_set_text(struct ew_ledger *ledger, const char **slot, const char *text);

#endif
