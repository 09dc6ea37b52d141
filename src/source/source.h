/* SPDX-License-Identifier: MIT */
/*
 * A source of facts: the one interface that the monitor knows of eBPF, polling, recordings and
 * ETW.
 *
 * A source has no thread and no clock of its own. The monitor calls drain when the time has come;
 * the source delivers every fact it has and says up to which raw time the facts are complete (the
 * horizon): intervals that end there or before may be cut.
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

/* What to watch. A process is watched if any rule matches; no rule and !all: nothing yet. */
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
    bool threads;    /* thread readings wanted */
    bool events;     /* the full scheduler stream wanted */
    bool events_all; /* of every thread, not only of those watched */
    uint32_t max_processes;
    const char *proc_root; /* never NULL */
    uint64_t epoch_ns;     /* interval ends are epoch_ns + n * interval_ns */
    uint64_t interval_ns;
    uint64_t sample_ns; /* how long the intervals of samples are: interval_ns, or some of them */
    const char *const
        *traces; /* a recording's files; its epoch is the beginning of the recording */
    uint32_t trace_count;
    uint32_t max_threads;
    bool cmdlines;                     /* command lines will be asked for */
    bool software_counters;            /* tests: the CPU clock in place of hardware counters */
    struct etwatch_metric_set metrics; /* to measure; nothing else may cost. Empty: all */
    struct etwatch_metric_set polled;  /* those of them to poll although the source has events */
    const struct etwatch_rate *rates;  /* while it is opened; see ew_metrics_period_ns */
    uint32_t rate_count;
    const struct ew_etw_config *etw; /* of an ETW session, while it is opened; NULL: the defaults */
};

/* The time and the machine of a source that has its own. */
struct ew_source_time {
    uint64_t unix_ns, raw_ns; /* the beginning, by both clocks */
    uint32_t cpu_count;
};

struct ew_source_stats {
    uint64_t events;
    uint64_t lost;
    uint64_t undecoded;
    uint64_t late;      /* came when their interval was over */
    uint64_t kernel_ns; /* time our programs ran in the kernel; valid if kernel_ns_known */
    bool kernel_ns_known;
};

enum { EW_SOURCE_AHEAD_NS = 100 * 1000 * 1000 };

struct ew_source_ops {
    uint32_t id;      /* enum etwatch_source */
    uint32_t backend; /* enum etwatch_backend: its column in the table of metrics */
    struct etwatch_metric_set available; /* metrics it can measure */
    struct etwatch_metric_set estimated; /* metrics it can only estimate */
    /* Opens and starts; delivers nothing yet. Error: code, message and the fix. */
    int (*open)(const struct ew_source_config *config, struct ew_source **ret_source,
                struct ew_error *reterr);
    void (*close)(struct ew_source *source);
    /* Delivers what there is. now_ns: raw clock. *ret_horizon_ns <= now_ns. */
    int (*drain)(struct ew_source *source, uint64_t now_ns, const struct ew_facts *facts,
                 uint64_t *ret_horizon_ns, struct ew_error *reterr);
    /* From at_ns on (an interval end) intervals are this long. It is EW_SOURCE_AHEAD_NS and an
     * interval away, so that no CPU is past it when it learns. */
    int (*set_interval)(struct ew_source *source, uint64_t at_ns, uint64_t interval_ns);
    int (*add)(struct ew_source *source, uint32_t pid);
    int (*remove)(struct ew_source *source, uint32_t pid);
    void (*stats)(struct ew_source *source, struct ew_source_stats *ret_stats);
    /* May be NULL. What this process does is not asked for any more, or again: it need not be told,
     * except its exec, rename and exit. */
    void (*exclude)(struct ew_source *source, uint32_t pid, uint64_t start_ns, bool excluded);
    /* A descriptor that becomes readable when a drain is wanted early, or -1. */
    int (*wake_fd)(struct ew_source *source);

    /* May be NULL. When a drain is wanted, even if it is not yet time for samples; UINT64_MAX:
     * never. */
    uint64_t (*due_ns)(const struct ew_source *source);
    /* May be NULL. Nothing more will be asked for: tells what is still open, up to now. */
    int (*finish)(struct ew_source *source, uint64_t now_ns, const struct ew_facts *facts,
                  struct ew_error *reterr);

    /* May be NULL: it cannot. Other kinds of kernel events from now on (enum ew_etw_kernel), and
     * which have stacks (NULL: as they are); what is available changes with them. */
    int (*set_kernel)(struct ew_source *source, uint64_t now_ns, uint32_t kernel,
                      const uint32_t *stacks, struct ew_error *reterr);

    /* May be NULL. Why a metric that was asked for cannot be had here; NULL: no reason of its own.
     */
    const char *(*unavailable_reason)(const struct ew_source *source, uint32_t metric);

    /* Only a recording has these, else NULL. Its facts carry the recording's own time, a drain
     * brings the next part of them without waiting, and at the end it says so. */
    void (*own_time)(const struct ew_source *source, struct ew_source_time *ret_time);
    bool (*ended)(const struct ew_source *source);
    /* What is known of a process beside its facts; until the next call. */
    const char *(*cmdline)(struct ew_source *source, uint32_t pid);
};

/* Every source starts with this. */
struct ew_source {
    const struct ew_source_ops *ops;
};

extern const struct ew_source_ops ew_source_ebpf; /* Linux */
extern const struct ew_source_ops ew_source_etw;  /* Windows */
extern const struct ew_source_ops ew_source_etl;  /* recordings, everywhere */
extern const struct ew_source_ops ew_source_poll;
/* The one that this system has events from. */
const struct ew_source_ops *ew_source_native(void);

#endif
