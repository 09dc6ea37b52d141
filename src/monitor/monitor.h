/* SPDX-License-Identifier: MIT */
/* The monitor from the inside: what its files share. */
#ifndef EW_MONITOR_MONITOR_H
#define EW_MONITOR_MONITOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <etwatch/etwatch.h>

#include "base/error.h"
#include "ledger/index.h"
#include "ledger/pool.h"
#include "model/facts.h"
#include "os/os.h"
#include "sampler/alert.h"
#include "sampler/budget.h"
#include "sampler/sampler.h"
#include "sampler/wait_tracker.h"
#include "source/source.h"

/* --------------------------------------------------------------------------- describe */

/* Names that only the system can give: users, cgroups, command lines. Asked once, kept. */

struct ew_described {
    uint64_t key;
    char *text;
};

struct ew_described_set {
    struct ew_described *items;
    size_t count, size;
};

struct ew_describe {
    const char *proc_root;
    bool want_cmdline;
    struct ew_described_set users;   /* by uid */
    struct ew_described_set cgroups; /* by cgroup id */
    char cgroup[1024];               /* of the last process asked for without an id */
    char cmdline[4096];              /* of the last process asked for */
};

void ew_describe_init(struct ew_describe *describe, const char *proc_root, bool want_cmdline);
void ew_describe_done(struct ew_describe *describe);

/* Each may be NULL afterwards: unknown. All stay valid until the next call. Wide: every call may
 * read files; ask once per process. */
void ew_describe_process(struct ew_describe *describe, uint32_t pid, uint32_t uid,
                         uint64_t cgroup_id, const char **ret_user, const char **ret_cgroup,
                         const char **ret_cmdline);

/* ------------------------------------------------------------------------------ queue */

/* Samples kept for a reader: bounded, the oldest go first, and every one that goes is counted. */

enum { EW_QUEUE_NAME_SIZE = 64 };

struct ew_queue_slot {
    struct etwatch_sample sample;
    char name[EW_QUEUE_NAME_SIZE];
    char thread_name[EW_QUEUE_NAME_SIZE];
};

struct ew_queue {
    struct ew_queue_slot *slots;
    size_t size, first, count;
    uint64_t dropped;
    char **texts; /* users and cgroups, each once, the latest first */
    size_t text_count, text_size;
    struct ew_queue_slot *handed_out; /* what the last take's strings point into */
    size_t handed_out_size;
};

int ew_queue_init(struct ew_queue *queue, size_t size);
void ew_queue_done(struct ew_queue *queue);
void ew_queue_put(struct ew_queue *queue, const struct etwatch_sample *sample);
/* Strings of the samples stay valid until the next take. Returns the count or ENOMEM. */
int ew_queue_take(struct ew_queue *queue, struct etwatch_sample *ret_samples, size_t max);
/* The strings are copied to ret_texts, each once. Ends before the first sample whose strings find
 * no room there; those of the very first are then unknown. Returns the count. */
int ew_queue_copy(struct ew_queue *queue, struct etwatch_sample *ret_samples, size_t max,
                  char *ret_texts, size_t texts_size, size_t *ret_texts_used);

/* ------------------------------------------------------------------------------ top_n */

/*
 * Only the N processes with the most of something in each interval; what the others did is one
 * sample of the rest. Stands behind the sampler; starts and exits pass.
 */

enum { EW_TOP_N_HELD_MAX = 65536 }; /* objects of one interval; more are cut as one more */

struct ew_top_n {
    uint32_t count;  /* 0: all of them, nothing is held */
    uint32_t metric; /* enum etwatch_metric */
    void *ctx;
    void (*deliver)(void *ctx, const struct etwatch_sample *samples, size_t count);

    struct etwatch_sample *held;
    struct ew_top_n_rank *ranks;
    uint32_t held_count, held_room;
    uint64_t end_ns; /* of the interval that is held; 0: none */
};

void ew_top_n_done(struct ew_top_n *top_n);
/* As the sampler emits them; their strings stay until flush. */
void ew_top_n_put(struct ew_top_n *top_n, const struct etwatch_sample *samples, size_t count);
void ew_top_n_flush(struct ew_top_n *top_n);

/* ----------------------------------------------------------------------------- alerts */

/*
 * Alerts beside the samples. Conditions on CPU time are looked at in windows of their own, whatever
 * the sample rate: the source's facts go to a second sampler that cuts finer. Others are looked at
 * in the samples; when polling, all are.
 */

struct ew_watch_alerts {
    struct ew_alert_rule rules[EW_ALERT_RULES_MAX];
    uint32_t rule_count;
    uint32_t divisor; /* windows in a sample's interval; 1: the samples are fine enough */
    void *ctx;
    void (*on_alert)(void *ctx, const struct etwatch_alert *alert);

    uint64_t told_ns;                /* raw: when what holds was last told */
    struct ew_alerts *fine, *coarse; /* NULL: nothing to look at */
    struct ew_sampler *sampler;      /* of the finer windows; NULL: none */
    struct ew_facts first, second;   /* where the facts go, if there are two samplers */
};

/* Reads the conditions; ETWATCH_EINVAL says which and where. */
int ew_watch_alerts_init(struct ew_watch_alerts *watch, const char *const *texts, uint32_t count,
                         struct ew_error *reterr);
/* Adds the metrics of the conditions. */
void ew_watch_alerts_add_metrics(const struct ew_watch_alerts *watch,
                                 struct etwatch_metric_set *metrics);
/* For a source that has events: into how many windows an interval of samples is divided. */
void ew_watch_alerts_divide(struct ew_watch_alerts *watch, uint64_t interval_ns);

/* Begins. like: the sampler of the samples. *facts goes to the source: with finer windows it is
 * changed to serve both. */
int ew_watch_alerts_open(struct ew_watch_alerts *watch, const struct ew_sampler_config *like,
                         struct ew_facts *facts);
void ew_watch_alerts_close(struct ew_watch_alerts *watch);

/* Samples as they are delivered. */
void ew_watch_alerts_samples(struct ew_watch_alerts *watch, const struct etwatch_sample *samples,
                             size_t count);
/* After the samples up to here were delivered; raw time. Once in latency_ns, what is over is told,
 * and what holds. */
void ew_watch_alerts_cut(struct ew_watch_alerts *watch, uint64_t horizon_ns,
                         int64_t unix_minus_raw_ns, uint64_t latency_ns);
void ew_watch_alerts_finish(struct ew_watch_alerts *watch, uint64_t now_ns);
/* 0, or as ew_sampler_set_interval; interval_ns is that of the samples. */
int ew_watch_alerts_set_interval(struct ew_watch_alerts *watch, uint64_t at_ns,
                                 uint64_t interval_ns);
uint64_t ew_watch_alerts_lost(const struct ew_watch_alerts *watch);

/* --------------------------------------------------------------------- process_filter */

/*
 * Who is left out: stands between a source and the samplers and lets through what is not of a
 * process that was excluded, whatever the source. A process is judged when it is told of and again
 * when it executes a program or changes its name; its descendants are judged for themselves.
 */

enum { EW_GATE_PROCESSES_MAX = 1 << 18 }; /* 6 MB */

struct ew_process_filter_rules {
    const uint32_t *pids;
    const char *const *names;
    const uint32_t *uids;
    const char *const *cgroups;
    uint32_t pid_count, name_count, uid_count, cgroup_count;
    /* Where users have no numbers (Windows) sources cannot choose by them: everybody else is out.
     */
    const uint32_t *only_uids;
    uint32_t only_uid_count;
    bool system;  /* the system's own processes too */
    bool windows; /* those are by name and number */
};

struct ew_process_filter {
    struct ew_process_filter_rules rules; /* lists are the caller's */
    struct ew_describe *describe;
    void *ctx;
    /* A process that was let through is left out from now on. */
    void (*forget)(void *ctx, uint32_t pid);
    /* May be NULL: the source may save itself the trouble with this process, or must not. */
    void (*shut)(void *ctx, uint32_t pid, uint64_t start_ns, bool shut);

    struct ew_facts next;
    struct ew_pool processes; /* of struct ew_gate_process */
    struct ew_index by_pid;
    uint64_t lost; /* processes that found no room: they are left out */
};

/* Whether anything is to be left out at all. */
bool ew_process_filter_needed(const struct ew_process_filter_rules *rules);
/* *facts: where facts go; changed to lead through the gate. Pointers of the gate are set before. */
void ew_process_filter_open(struct ew_process_filter *filter, struct ew_facts *facts);
void ew_process_filter_close(struct ew_process_filter *filter);

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

    uint32_t source_id; /* stays after a stop, likewise the two below */
    struct etwatch_metric_set source_available, source_estimated;
    struct etwatch_metric_set metrics; /* those that this source is to measure */
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
