/* SPDX-License-Identifier: MIT */
/*
 * The table of processes and threads: which exist, their totals, and their last readings.
 *
 * A process is (pid, start time), a thread (tid, start time) in a process; a reused id is a
 * separate entry, and both may exist until the old one's last sample is delivered. Only threads
 * that ran have an entry, and an idle one may be evicted: its counters are absolute, and after its
 * open interval its next reading is an OPEN, which is a new baseline.
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
 * Reference-counted strings: many processes share few names, users and cgroups. A string is freed
 * with its last reference, so a machine that starts containers for months does not use more memory.
 */

struct ew_intern_entry;

struct ew_intern {
    struct ew_intern_entry **buckets;
    uint32_t capacity; /* 0 or a power of two */
    uint32_t used;
};

void ew_intern_init(struct ew_intern *intern);
void ew_intern_done(struct ew_intern *intern);
/* A shared copy of text, or NULL if out of memory. Each take needs one release. */
const char *ew_intern_take(struct ew_intern *intern, const char *text);
/* text may be NULL. */
void ew_intern_release(struct ew_intern *intern, const char *text);

struct ew_cell;
struct ew_process_aggregate;

enum ew_process_flag {
    EW_P_STARTED = 1u << 0,     /* started while monitored: its counters start at 0 */
    EW_P_SEEN = 1u << 1,        /* preexisting */
    EW_P_UNKNOWN = 1u << 2,     /* known only by its readings: its START was missed */
    EW_P_ANNOUNCED = 1u << 3,   /* START delivered */
    EW_P_LISTED = 1u << 4,      /* in a list of STARTs to deliver */
    EW_P_EXITING = 1u << 5,     /* exited; its EXIT is not yet delivered */
    EW_P_EXIT_STATUS = 1u << 6, /* exit_code and exit_signal are known */
    EW_P_REPLACED = 1u << 7,    /* exit was missed: its pid was reused, or it disappeared */
    EW_P_FORGOTTEN = 1u << 8,   /* no longer monitored: removed without an EXIT */
    EW_P_REBASE =
        1u << 9,          /* the first reading of a new thread entry may include earlier activity */
    EW_P_READ = 1u << 10, /* had a reading */
    EW_P_SAMPLED = 1u << 11, /* had a SAMPLE */
    EW_P_MARK = 1u << 12,    /* its next cell is incomplete */
    EW_P_LOSSY = 1u << 13,   /* some of its data was lost at some time */
    EW_P_DESCRIBED = 1u << 14,
    EW_P_HAS_PPID = 1u << 15,
    EW_P_HAS_SESSION = 1u << 16,
};

/* What few processes have. */
struct ew_process_more {
    uint64_t gauge[EW_GAUGE_COUNT - EW_GAUGE_BASE_COUNT]; /* those after the base gauges */
    uint64_t device[EW_DEVICE_VALUE_COUNT];               /* totals since watched; latest gauge */
    uint32_t device_has;                                  /* EW_HAS_DV_* */
};

struct ew_process {
    uint32_t pool_word; /* used by the pool while free */
    uint32_t self;      /* number in the pool; never 0 while live */
    uint32_t pid, ppid, session_id, uid;
    uint32_t flags;
    uint32_t thread_count, threads; /* number of live entries; head of their list */
    uint32_t next_start, next_exit; /* the sampler's lists */
    uint32_t exit_cut;              /* number of the next cut when it exited */
    int32_t exit_code, exit_signal;
    uint32_t total_has; /* counters with a value that covers the whole lifetime */
    uint32_t own_has;   /* counters read per process: its threads do not add to them */
    uint32_t exit_has;  /* counters fixed by the exit fact */
    uint32_t gauge_has;
    uint32_t round_has;  /* polling: counters in the last reading */
    uint32_t emitted;    /* dense mode: low bits of the last interval with a sample */
    uint32_t gauge_now;  /* gauges in the last reading of their class */
    uint64_t start_ns;   /* 0: unknown */
    uint64_t watched_ns; /* monitored since */
    uint64_t seen_ns;    /* latest proof that it existed: a lifecycle fact or its first reading */
    uint64_t active_ns;  /* not known to have run after this */
    uint64_t exit_ns;    /* time of exit; until then, when it last left a CPU */
    uint64_t cgroup_id;
    uint64_t first_index;  /* the interval of watched_ns */
    struct ew_cell *cells; /* its most recently used pending cell */
    struct ew_process_aggregate *aggregate;
    const char *name, *user, *cgroup, *cmdline; /* interned or NULL */
    uint64_t value[EW_COUNTER_COUNT];           /* totals */
    uint64_t gauge[EW_GAUGE_BASE_COUNT];
    struct ew_process_more *more;            /* NULL: it has none of these */
    uint64_t gauge_ns[EW_GAUGE_CLASS_COUNT]; /* last reading of each class */
    uint64_t gauges_ns;                      /* the latest of these */
    uint64_t gauges_since_ns;                /* the first reading since the last cut */
};

enum ew_thread_flag {
    EW_T_WHOLE = 1u << 0,   /* monitored since its start: a counter not yet read was 0 */
    EW_T_OPEN = 1u << 1,    /* open_index is valid */
    EW_T_RETIRED = 1u << 2, /* ended, kept only until its cells are delivered */
    EW_T_BASED = 1u << 3,   /* only a baseline was read, which may be outdated */
};

struct ew_thread {
    uint32_t pool_word;
    uint32_t self;
    uint32_t tid;
    uint32_t flags;
    struct ew_process *process;
    uint32_t next, prev; /* threads of the process */
    uint32_t last_has, gauge_has;
    uint32_t active_cut; /* number of the next cut at its last reading */
    int32_t priority;
    uint64_t affinity;
    uint64_t gauge_ns;
    uint64_t start_ns;    /* 0: unknown */
    uint64_t open_index;  /* interval to which counts until the next reading belong */
    uint64_t credited_ns; /* its activity is accounted up to here */
    struct ew_cell *cells;
    const char *name;
    uint64_t last[EW_COUNTER_COUNT]; /* accounted up to here; never decreases */
};

struct ew_ledger {
    struct ew_pool processes, threads;
    struct ew_index pids, tids;
    struct ew_intern strings;
    uint32_t max_processes, max_threads;
    uint32_t hand;       /* where the search for an idle thread continues */
    uint32_t barren_cut; /* number + 1 of the cut in which that search found nothing */
};

void ew_ledger_init(struct ew_ledger *ledger, uint32_t max_processes, uint32_t max_threads);
void ew_ledger_done(struct ew_ledger *ledger);

/* The process with this pid and start time (0: any) that runs or else started last, or NULL. */
struct ew_process *ew_ledger_find_process(const struct ew_ledger *ledger, uint32_t pid,
                                          uint64_t start_ns);
/* The process with this pid that started last at or before t_ns. */
struct ew_process *ew_ledger_find_process_at(const struct ew_ledger *ledger, uint32_t pid,
                                             uint64_t t_ns);
/* ETWATCH_ELIMIT or ETWATCH_ENOMEM on failure. */
int ew_ledger_add_process(struct ew_ledger *ledger, uint32_t pid, uint64_t start_ns,
                          struct ew_process **ret_process);
/* Removes the process and its remaining threads. It must not have cells. */
void ew_ledger_drop_process(struct ew_ledger *ledger, struct ew_process *process);

struct ew_thread *ew_ledger_find_thread(const struct ew_ledger *ledger, uint32_t pid, uint32_t tid,
                                        uint64_t start_ns);
/* At the limit, evicts an idle thread: one without a reading in the drain before cut number `cut`
 * and with an open interval before `first_index`. */
int ew_ledger_add_thread(struct ew_ledger *ledger, struct ew_process *process, uint32_t tid,
                         uint64_t start_ns, uint32_t cut, uint64_t first_index,
                         struct ew_thread **ret_thread);
/* Removes the thread from its process and the index; it stays readable until freed. */
void ew_ledger_retire_thread(struct ew_ledger *ledger, struct ew_thread *thread);
void ew_ledger_free_thread(struct ew_ledger *ledger, struct ew_thread *thread);
/* Gives the thread another id (exec). 0 or ETWATCH_ENOMEM, which keeps the old id. */
int ew_ledger_move_thread(struct ew_ledger *ledger, struct ew_thread *thread, uint32_t tid,
                          uint64_t start_ns);
/* Prefetches the memory of these threads and their processes, all at once: after a sleep none of it
 * is cached, and the cache misses would otherwise be served one after the other. */
enum { EW_LEDGER_FETCH_MAX = 64 };
void ew_ledger_fetch(const struct ew_ledger *ledger, const uint32_t *tids, uint32_t count);
/* Examines `steps` entries and evicts the threads with a last reading before `older_than_cut` and
 * an open interval before first_index. */
void ew_ledger_sweep_threads(struct ew_ledger *ledger, uint32_t steps, uint32_t older_than_cut,
                             uint64_t first_index);

/* Replaces *slot with an interned copy of text (NULL: with NULL). 0 or ETWATCH_ENOMEM. */
int ew_ledger_set_text(struct ew_ledger *ledger, const char **slot, const char *text);

#endif
