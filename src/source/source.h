/* SPDX-License-Identifier: MIT */
/*
 * A source of facts: the only interface between the monitor and eBPF, polling, recordings and ETW.
 *
 * A source has no thread and no clock of its own. The monitor calls drain at the end of an
 * interval; the source delivers every fact it has and returns the raw time up to which the facts
 * are complete (the horizon): intervals that end at or before the horizon may be cut.
 */
#ifndef EW_SOURCE_SOURCE_H
#define EW_SOURCE_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "model/facts.h"
#include "model/metric.h"

struct ew_source;
struct ew_etw_config;

/* Which processes to watch: those that any rule matches. No rule and !all: none yet. */
struct ew_filter {
    bool all;
    bool kernel_threads; /* only with all */
    bool excludes;       /* exclude may be called */
    const uint32_t *pids;
    uint32_t pid_count;
    const char *const *names;
    uint32_t name_count;
    const uint32_t *uids;
    uint32_t uid_count;
    const char *const *cgroups;
    uint32_t cgroup_count;
};

struct ew_source_config {
    struct ew_filter filter;
    bool threads;    /* thread readings requested */
    bool events;     /* full scheduler event stream requested */
    bool events_all; /* of every thread, not only of watched processes */
    bool causes;     /* the stream also has page faults, and knows interrupts, where possible */
    uint32_t max_processes;
    const char *proc_root; /* never NULL */
    uint64_t epoch_ns;     /* interval ends are epoch_ns + n * interval_ns */
    uint64_t interval_ns;
    uint64_t sample_ns;        /* length of a sample's interval: interval_ns or a multiple of it */
    const char *const *traces; /* files of a recording; its epoch is the start of the recording */
    uint32_t trace_count;
    uint32_t max_threads;
    bool cmdlines;                     /* command lines will be queried */
    bool software_counters;            /* tests: the CPU clock in place of hardware counters */
    struct etwatch_metric_set metrics; /* to measure; others must cost nothing. Empty: all */
    struct etwatch_metric_set polled;  /* subset to poll even if events could provide it */
    const struct etwatch_rate *rates;  /* valid only during open; see ew_metrics_period_ns */
    uint32_t rate_count;
    const struct ew_etw_config
        *etw; /* options of an ETW session, valid only during open; NULL: defaults */
};

/* Clock and machine of a source that has its own time (a recording). */
struct ew_source_time {
    uint64_t unix_ns, raw_ns; /* start of the recording on both clocks */
    uint32_t cpu_count;
};

struct ew_source_stats {
    uint64_t events;
    uint64_t lost;
    uint64_t undecoded;
    uint64_t late;      /* arrived after their interval had ended */
    uint64_t kernel_ns; /* time our programs spent in the kernel; valid if kernel_ns_known */
    bool kernel_ns_known;
};

enum { EW_SOURCE_AHEAD_NS = 100 * 1000 * 1000 };

struct ew_source_ops {
    uint32_t id;                         /* enum etwatch_source */
    uint32_t backend;                    /* enum etwatch_backend: its column in the metric table */
    struct etwatch_metric_set available; /* metrics it can measure */
    struct etwatch_metric_set estimated; /* metrics it can only estimate */
    /* Opens and starts; delivers nothing yet. On error fills in code, message and fix. */
    int (*open)(const struct ew_source_config *config, struct ew_source **ret_source,
                struct ew_error *reterr);
    void (*close)(struct ew_source *source);
    /* Delivers all pending facts. now_ns: raw clock. *ret_horizon_ns <= now_ns. */
    int (*drain)(struct ew_source *source, uint64_t now_ns, const struct ew_facts *facts,
                 uint64_t *ret_horizon_ns, struct ew_error *reterr);
    /* Intervals have this length from at_ns (an interval end) on. at_ns is at least
     * EW_SOURCE_AHEAD_NS and one interval in the future, so that no CPU has passed it when the
     * change arrives there. */
    int (*set_interval)(struct ew_source *source, uint64_t at_ns, uint64_t interval_ns);
    int (*add)(struct ew_source *source, uint32_t pid);
    int (*remove)(struct ew_source *source, uint32_t pid);
    void (*stats)(struct ew_source *source, struct ew_source_stats *ret_stats);
    /* May be NULL. Facts of this process are no longer needed, or needed again. Exec, rename and
     * exit are always reported. */
    void (*exclude)(struct ew_source *source, uint32_t pid, uint64_t start_ns, bool excluded);
    /* A descriptor that becomes readable when the source needs an early drain, or -1. */
    int (*wake_fd)(struct ew_source *source);

    /* May be NULL. When the source needs a drain, even if no sample is due; UINT64_MAX: never. */
    uint64_t (*due_ns)(const struct ew_source *source);
    /* May be NULL. Called once, at the end: delivers what is still open, up to now. */
    int (*finish)(struct ew_source *source, uint64_t now_ns, const struct ew_facts *facts,
                  struct ew_error *reterr);

    /* May be NULL: not supported. Changes the logged kernel events (enum ew_etw_kernel) and
     * those of them that carry stacks (NULL: unchanged); the available metrics change
     * accordingly. */
    int (*set_kernel)(struct ew_source *source, uint64_t now_ns, uint32_t kernel,
                      const uint32_t *stacks, struct ew_error *reterr);

    /* May be NULL. Why a requested metric is unavailable here; NULL: no specific reason. */
    const char *(*unavailable_reason)(const struct ew_source *source, uint32_t metric);

    /* May be NULL. Counters (EW_HAS_C) that the source should deliver, but their events have never
     * arrived: they are unknown, not 0, until one does. */
    uint32_t (*unproven)(const struct ew_source *source);

    /* May be NULL. What the system refused although the source goes on without it; NULL: nothing.
     */
    const struct ew_error *(*refused)(const struct ew_source *source);

    /* Only set for recordings. Facts carry trace time, a drain delivers the next part without
     * waiting, and `ended` returns true at the end. */
    void (*own_time)(const struct ew_source *source, struct ew_source_time *ret_time);
    bool (*ended)(const struct ew_source *source);
    /* The command line of a process, or NULL; valid until the next call. */
    const char *(*cmdline)(struct ew_source *source, uint32_t pid);
};

/* First member of every source. */
struct ew_source {
    const struct ew_source_ops *ops;
};

extern const struct ew_source_ops ew_source_ebpf; /* Linux */
extern const struct ew_source_ops ew_source_etw;  /* Windows */
extern const struct ew_source_ops ew_source_etl;  /* recordings, everywhere */
extern const struct ew_source_ops ew_source_poll;
/* The event source of this system. */
const struct ew_source_ops *ew_source_native(void);

#endif
