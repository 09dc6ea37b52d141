/* SPDX-License-Identifier: MIT */
/*
 * What the serving process knows: the processes with their latest values, their history, the groups
 * that Prometheus sees, alerts and losses. Facts come in through ew_state_frame in the order of the
 * pipe; everything else only reads. One thread.
 *
 * Time is that of the facts. A second is closed when a fact of a later second (or the reading of
 * the machine, once a second) arrives; what a process did in it becomes one record of the coarse
 * history. Each sample is a record of the fine history.
 */
#ifndef EW_SERVE_STATE_H
#define EW_SERVE_STATE_H

#include "serve/catalog.h"
#include "serve/history.h"
#include "serve/spans.h"
#include "serve/strip.h"
#include "serve/wire.h"

/* Stated maxima. What does not fit is counted in `dropped`. */
enum {
    EW_STATE_PROCESSES_MAX = 32768, /* alive and exited */
    EW_STATE_EXITED_MAX = 4096,     /* exited ones that are kept for their history */
    EW_STATE_THREADS_MAX = 65536,
    EW_STATE_ALERTS_MAX = 256,
    EW_STATE_DEVICES_MAX = 64,
    EW_STATE_GROUPS_MAX = 4096,
    EW_STATE_NAME_MAX = 64,
};

#define EW_STATE_NONE UINT32_MAX /* no index: C11 limits enumerators to int */

struct ew_state_options {
    size_t fine_bytes, coarse_bytes;       /* rings; 0: the default */
    uint64_t fine_keep_ns, coarse_keep_ns; /* 0: as long as there is room */
    uint32_t top;                          /* groups in /metrics, in addition to "other" */
    bool pid_label;                        /* a group is a process instead of a name */
};

#define EW_STATE_FINE_BYTES ((size_t)32 << 20)
#define EW_STATE_COARSE_BYTES ((size_t)64 << 20)
#define EW_STATE_SECOND_NS UINT64_C(1000000000)

struct ew_state_process {
    uint32_t pid, ppid, session_id;
    uint32_t flags;                        /* enum etwatch_sample_flag of its start */
    uint64_t start_ns;                     /* 0 in a free slot */
    uint64_t exit_ns;                      /* 0: alive */
    uint64_t seen_ns;                      /* its first fact */
    char *name, *user, *cgroup, *cmdline;  /* NULL: unknown */
    struct etwatch_metric_set has;         /* known metrics */
    uint64_t values[ETWATCH_METRIC_COUNT]; /* gauges: the latest; counters: since seen_ns */
    struct etwatch_metric_set second_has;  /* known in the open second */
    uint64_t second[ETWATCH_METRIC_COUNT]; /* counters in the open second */
    bool in_second, incomplete, sampled;
    uint64_t second_dt_ns;
    struct etwatch_metric_set last_has;  /* the latest closed second in which it did something */
    uint64_t last[ETWATCH_METRIC_COUNT]; /* counters: in that second */
    uint64_t last_t_ns, last_dt_ns;
    uint64_t fine, coarse; /* marks */
    uint32_t threads;      /* the first, or EW_STATE_NONE */
    uint32_t thread_count;
    uint32_t group;
    uint32_t next; /* in its hash chain, or in the list of free slots */
};

struct ew_state_thread {
    uint32_t process, tid;
    char name[24];
    uint64_t cpu_ns, wait_ns;               /* since it was first seen */
    uint64_t second_cpu_ns, second_wait_ns; /* in the open second */
    bool in_second;
    uint64_t fine, coarse; /* marks */
    uint32_t next_of_process, next;
};

/* One line of Prometheus: all processes of a name, or one process. */
struct ew_state_group {
    char *key; /* NULL: a free slot */
    char *name;
    uint32_t pid; /* with pid_label */
    uint64_t start_ns;
    uint32_t live;
    bool shown;
    uint64_t started, exited; /* since it is shown */
    uint64_t gone_ns;         /* when the last of its processes exited */
    double score;             /* CPU time, halved every minute */
    uint64_t since_ns;        /* its counters began here */
    uint64_t serial;          /* no other group of this run has it; 0: "other" */
    struct etwatch_metric_set has;
    uint64_t counters[ETWATCH_METRIC_COUNT]; /* what it did while it was shown */
    uint32_t next;
};

struct ew_state_device {
    struct ew_serve_device latest; /* with values: the problem is that of problem */
    char problem[160];             /* "": none */
    struct etwatch_metric_set has; /* metrics that it has had */
    uint64_t mark;
    uint64_t totals[ETWATCH_DEVICE_METRIC_COUNT]; /* counters: since it was first read */
    uint64_t seen_ns;
};

/* What the history on disk reports on itself (archive.h writes it). */
struct ew_state_store {
    bool enabled;
    uint64_t records, dropped_records, replaced, read_errors, bytes;
    char error[160]; /* of the latest batch; "": it was written */
};

/* What the push to a collector reports on itself (otlp.h writes it). */
struct ew_state_push {
    bool enabled;
    uint64_t sent_exports, sent_points; /* accepted by the receiver */
    uint64_t rejected_points;           /* refused by the receiver for good */
    uint64_t dropped_points;            /* no room in the queue */
    uint64_t retries;
    uint64_t queued_exports, queued_bytes, queue_size;
    char error[192]; /* of the latest attempt; "": it succeeded */
};

struct ew_state {
    struct ew_state_options options;
    struct ew_catalog catalog;
    struct ew_serve_meta meta;
    bool meta_known, ended;
    uint64_t second; /* the open one, in seconds of Unix time */
    uint64_t now_ns; /* end of the latest closed second */
    uint64_t first_ns;

    struct ew_state_process *processes;
    uint32_t process_count, process_size; /* used slots, allocated slots */
    uint32_t live, exited_count;
    uint32_t free_process;
    uint32_t *process_index, *thread_index, *group_index; /* heads of chains */
    uint32_t *exited; /* ring of the slots of exited processes, oldest first */
    uint32_t exited_first;
    uint32_t *active; /* slots with facts in the open second */
    uint32_t active_count, active_size;
    struct ew_state_thread *threads;
    uint32_t thread_count, thread_size, free_thread;
    uint32_t *active_threads;
    uint32_t active_thread_count, active_thread_size;

    struct ew_state_group *groups;
    uint32_t group_count, group_size, free_group, shown;
    uint64_t group_serial;
    struct ew_state_group other; /* everything outside of the shown groups */

    struct ew_history fine, coarse, machine, device;
    struct ew_state_device devices[EW_STATE_DEVICES_MAX];
    uint32_t device_count;
    struct ew_strip sched;
    uint64_t machine_mark;
    struct ew_serve_system system; /* the latest; cpu_count 0 and no metrics before the first */
    uint64_t system_counters[ETWATCH_SYSTEM_METRIC_COUNT];
    struct etwatch_metric_set system_has;

    struct etwatch_stats stats;
    uint64_t lost, loss_count, started, exited_total, samples, dropped, malformed;
    struct ew_state_push push;
    struct ew_state_store store;
    struct ew_serve_alert alerts[EW_STATE_ALERTS_MAX];
    struct ew_latest_spans spans;
    uint64_t alert_count; /* ever; the newest is at (alert_count - 1) % EW_STATE_ALERTS_MAX */

    /* For the stream: called with every closed second, before the next one begins. May be NULL. */
    void (*on_second)(void *ctx, uint64_t t_ns);
    void *ctx;
    /* Starts, exits and alerts since the last closed second, for the stream. */
    uint32_t *news; /* slots */
    uint32_t news_count, news_size;
    uint64_t alerts_told;
};

/* 0 or ETWATCH_ENOMEM. */
int ew_state_init(struct ew_state *state, const struct ew_state_options *options);
void ew_state_done(struct ew_state *state);
/* Takes one frame of the pipe. Malformed ones are counted. */
void ew_state_frame(struct ew_state *state, uint32_t type, struct ew_bytes *body);

/* The process, or EW_STATE_NONE. */
uint32_t ew_state_find(const struct ew_state *state, uint32_t pid, uint64_t start_ns);
/* Process in slot i, or NULL if the slot is free. i < state->process_size. */
const struct ew_state_process *ew_state_at(const struct ew_state *state, uint32_t i);
/* The latest value of a metric as it is shown: a gauge as it is, a counter a second over the latest
 * closed second (0 if the process did nothing in it), of a recording over its whole life in it.
 * NAN: unknown. */
double ew_state_shown(const struct ew_state *state, const struct ew_state_process *process,
                      uint32_t metric);
/* Metrics that the API shows: all that some process has had. */
struct etwatch_metric_set ew_state_columns(const struct ew_state *state);
/* enum etwatch_exactness with the present source; ETWATCH_EXACTNESS_UNAVAILABLE: not known. */
uint32_t ew_state_exactness(const struct ew_state *state, uint32_t metric);

/* ------------------------------------------------------------------------ groups.c */

/* The name of what is not shown. A process of that name belongs to it. */
#define EW_GROUPS_OTHER "other"

/* The group of a new process; EW_STATE_NONE: the table is full, it counts as other. */
uint32_t ew_groups_join(struct ew_state *state, const struct ew_state_process *process);
/* The group of a process after a change of its name. */
uint32_t ew_groups_rename(struct ew_state *state, const struct ew_state_process *process);
void ew_groups_leave(struct ew_state *state, uint32_t group, uint64_t t_ns);
void ew_groups_add(struct ew_state *state, uint32_t group, const struct etwatch_sample *sample);
/* Once a second: decides which groups are shown. */
void ew_groups_rank(struct ew_state *state);
/* Whether groups have this metric outside: a sum of levels, masks and peaks means nothing, those
 * need one group per process. columns: ew_state_columns. */
bool ew_groups_export(const struct ew_state *state, const struct etwatch_metric_set *columns,
                      uint32_t metric);
/* The group in slot g if it is shown, "other" for g == group_count; else NULL. */
const struct ew_state_group *ew_groups_at(const struct ew_state *state, uint32_t g);
/* The slot under which a process is shown: that of its group, or group_count for "other". */
uint32_t ew_groups_slot(const struct ew_state *state, const struct ew_state_process *process);
/* Live processes of ew_groups_at(g). */
uint64_t ew_groups_live(const struct ew_state *state, uint32_t g);

/* ----------------------------------------------------------------------- threads.c */

void ew_state_threads_add(struct ew_state *state, const struct etwatch_sample *sample);
void ew_state_threads_close_second(struct ew_state *state, uint64_t t_ns);
void ew_state_threads_free_of(struct ew_state *state, struct ew_state_process *process);

#endif
