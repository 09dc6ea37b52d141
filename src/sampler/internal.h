/* SPDX-License-Identifier: MIT */
/*
 * Internal interface between the files of the sampler. pending.c keeps the cells, readings.c and
 * distribute.c fill them, lifecycle.c creates and ends processes, deliver.c delivers intervals,
 * sample.c writes the objects.
 */
#ifndef EW_SAMPLER_INTERNAL_H
#define EW_SAMPLER_INTERNAL_H

#include <stdint.h>

#include "ledger/ledger.h"
#include "sampler/aggregate.h"
#include "sampler/sampler.h"

/* ------------------------------------------------------------------------------ ticks */

/*
 * Interval bounds. Interval n is the half-open time [start, end): an event exactly at an end
 * belongs to the next interval. Numbering continues when the length changes, so numbers order all
 * intervals of a run; times before the first interval belong to it.
 */

#define EW_INTERVAL_MIN_NS UINT64_C(1000000)     /* 1000 Hz */
#define EW_INTERVAL_MAX_NS UINT64_C(10000000000) /* 0.1 Hz */
#define EW_TICKS_CHANGES 8u

/* From from_ns on, intervals starting with first_index are interval_ns long. */
struct ew_tick_segment {
    uint64_t from_ns;
    uint64_t first_index;
    uint64_t interval_ns;
    uint64_t max_steps; /* number of intervals that fit into 64 bits from here on */
};

struct ew_ticks {
    struct ew_tick_segment segment[EW_TICKS_CHANGES];
    uint32_t count;
    /* Cache of the last lookup: readings come in time order, so it usually hits. */
    uint64_t near_start_ns, near_end_ns, near_index;
};

void ew_ticks_init(struct ew_ticks *ticks, uint64_t epoch_ns, uint64_t interval_ns);
/* The interval that contains t_ns. */
uint64_t ew_ticks_find(struct ew_ticks *ticks, uint64_t t_ns);
uint64_t ew_ticks_start(const struct ew_ticks *ticks, uint64_t index);
uint64_t ew_ticks_end(const struct ew_ticks *ticks, uint64_t index);
/* Changes the length from at_ns on. ETWATCH_EINVAL: at_ns is not an interval end; ETWATCH_ELIMIT:
 * too many pending changes. */
int ew_ticks_change(struct ew_ticks *ticks, uint64_t at_ns, uint64_t interval_ns);
/* Intervals before this one will not be looked up again. */
void ew_ticks_forget(struct ew_ticks *ticks, uint64_t index);

static inline uint64_t ew_ticks_index(struct ew_ticks *ticks, uint64_t t_ns)
{
    if (t_ns >= ticks->near_start_ns && t_ns < ticks->near_end_ns)
        return ticks->near_index;
    return ew_ticks_find(ticks, t_ns);
}

/* Maximum number of pending intervals: 16 s at 1000 Hz. Later ones are merged into the last and
 * counted as late. */
#define EW_RING_MAX 16384u
/* Maximum number of cells, about 6 MB; beyond it counts go to the nearest cell and are counted as
 * late. */
#define EW_CELLS_MAX 32768u
#define EW_BATCH 8u /* 5 KB: stays in the L1 cache while it is refilled */
#define EW_LOSS_RANGES 16u
#define EW_RECENT_EXITS 128u
#define EW_WAIT_CUTS 2u
#define EW_WAIT_NS (2 * 1000 * 1000 * 1000ull)

#define EW_ALL_COUNTERS ((1u << EW_COUNTER_COUNT) - 1)
#define EW_CPU_COUNTERS (EW_HAS_C(cpu_ns) | EW_HAS_C(cpu_user_ns) | EW_HAS_C(cpu_kernel_ns))

enum ew_cell_flag {
    EW_CELL_INCOMPLETE = 1u << 0,
    EW_CELL_FINAL =
        1u << 1, /* of the interval in which the process exited; delivered with the exit */
    EW_CELL_TENTATIVE = 1u << 2, /* filled from exit totals, until a reading replaces it */
    EW_CELL_VOID = 1u << 3,      /* merged into another; freed with its bucket */
    EW_CELL_RSS =
        1u << 4, /* rss_bytes was read at or after its end, before the end of the next cell */
};

/* Counts of one process or thread in one interval that is not yet delivered. */
struct ew_cell {
    uint32_t pool_word;
    uint32_t self;
    uint32_t has;   /* known counters */
    uint32_t flags; /* enum ew_cell_flag */
    uint64_t index;
    struct ew_cell *prev, *next; /* of the same owner, by interval */
    struct ew_cell *follower;    /* in the bucket; of a thread: among the children */
    struct ew_cell *children;    /* cells of its threads */
    struct ew_cell *parent;      /* of a thread's cell */
    struct ew_process *process;
    struct ew_thread *thread; /* NULL: cell of the process */
    uint64_t begin_ns;  /* FINAL only: start of the interval, which may already be delivered */
    uint64_t rss_bytes; /* EW_CELL_RSS */
    uint64_t counter[EW_COUNTER_COUNT];
    uint64_t device[EW_DEVICE_VALUE_COUNT];
    uint32_t device_has; /* EW_HAS_DV_* */
};

/* A first-in first-out list of processes by pool number. */
struct ew_process_list {
    uint32_t first, last;
};

/* Everything to deliver with one interval. */
struct ew_bucket {
    struct ew_cell *first, *last;
    struct ew_process_list starts, exits;
};

struct ew_range {
    uint64_t from_ns, to_ns;
};

struct ew_recent_exit {
    uint32_t pid;
    uint64_t start_ns, exit_ns;
};

struct ew_process_aggregate {
    struct ew_aggregate cpu_percent, rss_bytes;
    uint64_t unknown; /* samples without CPU time */
};

struct ew_sampler {
    struct ew_sampler_config config;
    struct ew_ledger ledger;
    struct ew_ticks ticks;
    struct ew_pool cells;

    uint64_t first;     /* oldest undelivered interval */
    uint64_t first_ns;  /* its start */
    uint64_t latest_ns; /* latest time of any fact */
    uint64_t end_index; /* all buckets from this one on are empty */
    struct ew_bucket *ring;
    uint32_t ring_capacity;            /* 0 or a power of two; interval n is at n % capacity */
    struct ew_process_list due_starts; /* to be delivered with the next interval */
    struct ew_process_list waiting;    /* exited, interval delivered, readings outstanding */
    uint32_t cuts;

    struct ew_range losses[EW_LOSS_RANGES];
    uint32_t loss_count;
    uint64_t loss_seen_ns;       /* latest end of a loss that affects samples */
    struct etwatch_loss refused; /* table losses since the last cut, raw times */
    struct ew_recent_exit recent[EW_RECENT_EXITS];
    uint32_t recent_next;

    uint32_t known_counters; /* counters that the source delivers */
    uint32_t unproven;       /* of these, those that are not reported */
    bool late;               /* part of the current reading came too late */
    bool finished;
    int failure; /* since the last cut */
    struct ew_sampler_counts counts;

    /* Delivery. Entries referenced by the batch are freed only after it is flushed. */
    uint64_t interval_end_ns;
    bool interval_lossy;
    struct ew_process_list dead_processes;
    uint32_t dead_threads;               /* linked by `next` */
    uint32_t memo_counters, memo_gauges; /* the last translated masks ... */
    struct etwatch_metric_set memo_counters_has, memo_gauges_has; /* ... and their translations */
    bool more_counters, more_gauges; /* the batch has objects with rare counters or gauges */
    size_t batch_count;
    struct etwatch_sample batch[EW_BATCH];
};

/* pending.c */

/* The cell of this interval, created if needed; of the thread if thread is not NULL and thread
 * samples are enabled. NULL if out of memory. Sets sampler->late if another interval had to be
 * used. */
struct ew_cell *ew_pending_cell(struct ew_sampler *sampler, struct ew_process *process,
                                struct ew_thread *thread, uint64_t index);
/* The newest cell of the process, or NULL. */
struct ew_cell *ew_pending_newest(const struct ew_process *process);
/* Removes a cell from its owner's list and frees it. */
void ew_pending_drop(struct ew_sampler *sampler, struct ew_cell *cell);
/* The bucket of an interval, or NULL if out of memory. */
struct ew_bucket *ew_pending_bucket(struct ew_sampler *sampler, uint64_t index);
/* Clamps to first .. first + EW_RING_MAX - 1. */
uint64_t ew_pending_clamp(struct ew_sampler *sampler, uint64_t index);
/* The interval of a time; in rounds mode the current one. */
uint64_t ew_pending_index(struct ew_sampler *sampler, uint64_t t_ns);
uint64_t ew_pending_start_ns(const struct ew_sampler *sampler, uint64_t index);
/* gauges.c: gauges of a process, read at t_ns. */
void ew_gauges_take(struct ew_sampler *sampler, struct ew_process *process, uint32_t has,
                    const uint64_t *gauge, uint64_t t_ns);
/* Room for the values that few processes have; NULL: out of memory, which is noted. */
struct ew_process_more *ew_gauges_more(struct ew_sampler *sampler, struct ew_process *process);
/* The gauges that are valid at end_ns: read in [end_ns, until_ns), or earlier if the process has
 * not run since. */
uint32_t ew_gauges_at(const struct ew_process *process, uint64_t end_ns, uint64_t until_ns);
static inline uint64_t ew_gauge_of(const uint64_t *base, const uint64_t *more, uint32_t gauge)
{
    return gauge < EW_GAUGE_BASE_COUNT ? base[gauge] : more[gauge - EW_GAUGE_BASE_COUNT];
}
/* Some of the process's gauges were read at t_ns. */
void ew_pending_gauges_read(const struct ew_sampler *sampler, struct ew_process *process,
                            uint64_t t_ns);
/* Resident memory noted at a switch at t_ns: valid for the last interval of the process that had
 * ended by then, unless it is already known there. */
void ew_pending_rss_read(struct ew_sampler *sampler, struct ew_process *process, uint64_t t_ns,
                         uint64_t rss_bytes);
void ew_list_push_start(struct ew_sampler *sampler, struct ew_process_list *list,
                        struct ew_process *process);
struct ew_process *ew_list_pop_start(struct ew_sampler *sampler, struct ew_process_list *list);
void ew_list_push_exit(struct ew_sampler *sampler, struct ew_process_list *list,
                       struct ew_process *process);
struct ew_process *ew_list_pop_exit(struct ew_sampler *sampler, struct ew_process_list *list);

/* lifecycle.c */
void ew_lifecycle_fact(struct ew_sampler *sampler, const struct ew_process_fact *fact);
/* The process of a reading, created if needed; NULL: refused, stale or out of memory (counted). */
struct ew_process *ew_lifecycle_of_reading(struct ew_sampler *sampler,
                                           const struct ew_reading *reading);
/* Ends a process at t_ns; flags: EW_P_REPLACED, EW_P_FORGOTTEN or 0. */
void ew_lifecycle_end(struct ew_sampler *sampler, struct ew_process *process, uint64_t t_ns,
                      uint32_t flags);
/* Data that still arrives for this process is late. */
void ew_lifecycle_note_left(struct ew_sampler *sampler, uint32_t pid, uint64_t start_ns,
                            uint64_t exit_ns);
/* Ends all processes that are not known to have existed since since_ns. */
void ew_lifecycle_all_seen(struct ew_sampler *sampler, uint64_t since_ns);
/* Counts one item for which the tables had no room; code: ETWATCH_ELIMIT or ETWATCH_ENOMEM. */
void ew_lifecycle_refuse(struct ew_sampler *sampler, int code, uint64_t t_ns);

/* readings.c */
void ew_reading_take(struct ew_sampler *sampler, const struct ew_reading *reading);

/* deliver.c */

/* Whether a loss affects [from_ns, to_ns]. */
bool ew_deliver_lossy(const struct ew_sampler *sampler, uint64_t from_ns, uint64_t to_ns);

/* sample.c */
void ew_sample_start(struct ew_sampler *sampler, struct ew_process *process);
/* cell: of the process, with its threads' cells as children; NULL: idle. */
void ew_sample_interval(struct ew_sampler *sampler, struct ew_process *process,
                        struct ew_cell *cell);
void ew_sample_exit(struct ew_sampler *sampler, struct ew_process *process);
/* Counters that are known to be 0 for a process without a reading. */
uint32_t ew_sample_idle_counters(const struct ew_sampler *sampler,
                                 const struct ew_process *process);
/* Delivers the batch. */
void ew_sample_flush(struct ew_sampler *sampler);
void ew_sample_forget_aggregate(struct ew_process *process);
/* Totals and latest gauges, without strings; not delivered. */
void ew_sample_totals(const struct ew_sampler *sampler, const struct ew_process *process,
                      struct etwatch_sample *ret_sample);

/* ------------------------------------------------------------------------- distribute */

/* Differences between two readings, and their distribution over intervals. */

struct ew_delta {
    uint32_t has;
    bool any;                         /* at least one count is not 0 */
    bool plain;                       /* no counter decreased, and none outside has changed */
    uint64_t count[EW_COUNTER_COUNT]; /* 0 outside has */
};

/* Computes the increments of a reading over `last`, for the counters in last_has. */
void ew_distribute_measure(const uint64_t *restrict last, uint32_t last_has,
                           const struct ew_reading *restrict reading,
                           struct ew_delta *restrict ret_delta);
/* Adds the counts selected by `wanted`. */
void ew_distribute_add(uint64_t *restrict sums, const struct ew_delta *restrict delta,
                       uint32_t wanted);

/* For readings per process. False if out of memory: nothing was attributed. */
bool ew_distribute_process(struct ew_sampler *sampler, struct ew_process *process,
                           const struct ew_reading *reading, const struct ew_delta *delta);
/* For readings per thread. *delta becomes what was attributed; false: nothing. */
bool ew_distribute_thread(struct ew_sampler *sampler, struct ew_thread *thread,
                          const struct ew_reading *reading, struct ew_delta *delta);

/* round(total * part / whole); part <= whole. */
uint64_t ew_distribute_scale(uint64_t total, uint64_t part, uint64_t whole);
/* Whether one thread can spend that much CPU time in wall_ns. */
bool ew_distribute_fits(uint64_t cpu_ns, uint64_t wall_ns);

static inline bool ew_distribute_ran(const struct ew_reading *reading)
{
    return reading->kind == EW_READING_SPAN || reading->kind == EW_READING_FINAL;
}

#endif
