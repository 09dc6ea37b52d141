/* SPDX-License-Identifier: MIT */
/* The monitor from the inside: what its files share. */
#ifndef EW_MONITOR_MONITOR_H
#define EW_MONITOR_MONITOR_H

#include "base/error.h"
#include "monitor/alerts.h"
#include "monitor/describe.h"
#include "monitor/process_filter.h"
#include "monitor/queue.h"
#include "monitor/top_n.h"
#include "os/os.h"
#include "sampler/budget.h"
#include "sampler/sampler.h"
#include "sampler/wait_tracker.h"
#include "source/source.h"

enum ew_monitor_state { EW_MONITOR_STOPPED, EW_MONITOR_OPEN, EW_MONITOR_RUNNING };

struct etwatch_monitor {
    struct etwatch_config config;      /* own copies behind its pointers */
    const struct ew_etw_config *etw;   /* of an ETW session; NULL: the defaults */
    struct ew_session_options *wanted; /* likewise, as the user described it; NULL: he did not */

    struct ew_mutex *lock; /* guards everything below */
    struct ew_waiter *waiter;
    struct ew_cond *arrived; /* samples came, or none will */
    struct ew_thread_handle *thread;
    enum ew_monitor_state state;
    bool stepping;    /* with the lock held it is this thread that steps: we are in a callback */
    bool stopping;    /* somebody asked for the end */
    bool joining;     /* somebody waits for the thread to end */
    uint32_t waiting; /* callers in etwatch_monitor_poll that wait without the lock */
    int failed;       /* why the thread ended by itself; 0 = it did not */

    bool began; /* there is something to tell about a source */
    bool ended; /* the recording is over */

    uint32_t source_id;                          /* stays after a stop, likewise the two below */
    uint64_t source_available, source_estimated; /* ETWATCH_HAS bits */
    uint64_t metrics;                            /* those wanted of this source */
    struct ew_source *source;
    struct ew_sampler *sampler;
    struct ew_facts facts;
    struct ew_describe describe;
    struct ew_queue queue;
    struct ew_budget budget;
    struct ew_watch_alerts alerts;
    struct ew_process_filter process_filter;
    struct ew_top_n top_n;
    struct ew_wait_tracker *wait_tracker; /* of the event stream; NULL: nobody wants it */

    char fallback[512];
    int64_t unix_minus_raw_ns;
    uint64_t anchor_unix_ns, anchor_raw_ns;
    uint64_t epoch_ns;
    uint64_t interval_ns; /* of the samples; the source may cut finer, see alerts */
    uint64_t next_wake_ns;
    uint64_t change_at_ns; /* interval end at which a new rate comes into force; 0 = none */
    uint64_t changed_interval_ns;

    uint32_t cpu_count;
    uint64_t replayed_ns; /* a recording is told up to here */
    uint64_t opened_ns, closed_ns;
    uint64_t cut_ns;      /* samples were cut up to here */
    uint64_t self_cpu_ns; /* of waiting and stepping, in user space and in system calls */
    uint64_t metered_ns;  /* the thread's CPU time when that was last counted */
    uint64_t budget_wall_ns, budget_cpu_ns; /* when the budget was last asked */
    uint64_t wakeups;
    uint64_t step_ns, step_max_ns;
    uint64_t delivered;                  /* samples, to callbacks */
    struct ew_source_stats source_stats; /* of the last step */
    struct ew_sampler_counts counts;
};

/* config.c */
int ew_config_copy(struct etwatch_config *to, const struct etwatch_config *from,
                   struct ew_error *reterr);
void ew_config_done(struct etwatch_config *config);
int ew_config_add_pid(struct etwatch_config *config, uint32_t pid);
int ew_config_remove_pid(struct etwatch_config *config, uint32_t pid);

/* loop.c: all with the lock held. */
int ew_monitor_begin(struct etwatch_monitor *monitor, struct ew_error *reterr);
void ew_monitor_meter(struct etwatch_monitor *monitor, bool count);
int ew_monitor_step(struct etwatch_monitor *monitor, struct ew_error *reterr);
void ew_monitor_end(struct etwatch_monitor *monitor);
void ew_monitor_refresh_counts(struct etwatch_monitor *monitor);
/* Now, by the source's clock. */
uint64_t ew_monitor_now(const struct etwatch_monitor *monitor);
/* Whether the source is a recording. */
bool ew_monitor_replays(const struct etwatch_monitor *monitor);
/* A recording: the next poll delivers samples up to this raw time. */
uint64_t ew_monitor_replay_horizon_ns(const struct etwatch_monitor *monitor);

/* process_filter.c */
struct ew_process_filter_rules ew_monitor_filter_rules(const struct etwatch_monitor *monitor);
void ew_monitor_open_filter(struct etwatch_monitor *monitor);

#endif
