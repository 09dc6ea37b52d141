/* SPDX-License-Identifier: MIT */
/* What the files of the monitor share. */
#ifndef EW_MONITOR_MONITOR_H
#define EW_MONITOR_MONITOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <etwatch/etwatch.h>

#include "base/error.h"
#include "base/sized.h"
#include "ledger/index.h"
#include "ledger/pool.h"
#include "model/facts.h"
#include "os/os.h"
#include "sampler/alert.h"
#include "sampler/budget.h"
#include "sampler/sampler.h"
#include "sampler/wait_tracker.h"
#include "sensor/sensor.h"
#include "source/source.h"

/* --------------------------------------------------------------------------- describe */

/* Users, cgroups and command lines, queried from the system once and kept. */

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
    char cgroup[1024];               /* of the last process queried without an id */
    char cmdline[4096];              /* of the last process queried */
};

void ew_describe_init(struct ew_describe *describe, const char *proc_root, bool want_cmdline);
void ew_describe_done(struct ew_describe *describe);

/* Each may be NULL afterwards: unknown. All stay valid until the next call. A call may read files:
 * call it once per process. */
void ew_describe_process(struct ew_describe *describe, uint32_t pid, uint32_t uid, const char *sid,
                         uint64_t cgroup_id, const char **ret_user, const char **ret_cgroup,
                         const char **ret_cmdline);

/* ------------------------------------------------------------------------------ queue */

/* Samples kept for a reader: bounded; the oldest are dropped and counted. */

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
    struct ew_queue_slot *handed_out; /* the batch of the last take */
    size_t handed_out_size;
};

int ew_queue_init(struct ew_queue *queue, size_t size);
void ew_queue_done(struct ew_queue *queue);
void ew_queue_put(struct ew_queue *queue, const struct etwatch_sample *sample);
/* The batch stays valid until the next take. Returns the count or ENOMEM. */
int ew_queue_take(struct ew_queue *queue, size_t max, struct ew_items *ret_items);
/* Rows from the beginning of the buffer (aligned to 8 bytes), directly followed by their strings,
 * each once. Stops before the first sample that does not fit; strings of the very first that do not
 * fit become unknown. Returns the count, which is 0 if not even one row fits. */
int ew_queue_copy(struct ew_queue *queue, void *buffer, size_t buffer_size, size_t max,
                  struct ew_items *ret_items, size_t *ret_used);

/* ------------------------------------------------------------------------------ top_n */

/*
 * Keeps the N processes with the most of a metric in each interval and adds up the others in one
 * sample. Comes after the sampler; starts and exits pass through.
 */

enum { EW_TOP_N_HELD_MAX = 65536 }; /* objects of one interval; more are ranked separately */

struct ew_top_n {
    uint32_t count;  /* 0: all processes, nothing is held */
    uint32_t metric; /* enum etwatch_metric */
    void *ctx;
    void (*deliver)(void *ctx, const struct etwatch_sample *samples, size_t count);

    struct etwatch_sample *held;
    struct ew_top_n_rank *ranks;
    uint32_t held_count, held_room;
    uint64_t end_ns; /* end of the interval that is held; 0: none */
};

void ew_top_n_done(struct ew_top_n *top_n);
/* Samples as the sampler emits them; their strings must stay until flush. */
void ew_top_n_put(struct ew_top_n *top_n, const struct etwatch_sample *samples, size_t count);
void ew_top_n_flush(struct ew_top_n *top_n);

/* ----------------------------------------------------------------------------- alerts */

/*
 * Alerts are evaluated independently of the sample rate. Conditions on CPU time have windows of
 * their own: the facts of the source also go to a second sampler with shorter intervals. Other
 * conditions, and all of them when polling, are evaluated in the samples.
 */

struct ew_watch_alerts {
    struct ew_alert_rule rules[EW_ALERT_RULES_MAX];
    uint32_t rule_count;
    uint32_t divisor; /* windows in an interval of samples; 1: windows are not shorter */
    void *ctx;
    void (*on_alert)(void *ctx, const struct etwatch_alert *alert);

    uint64_t reported_ns;            /* raw: when alerts were last reported */
    struct ew_alerts *fine, *coarse; /* NULL: no such conditions */
    struct ew_sampler *sampler;      /* of the windows; NULL: none */
    struct ew_facts first, second;   /* of both samplers, if there are two */
};

/* Parses the conditions. The error names the condition and has the offset in it. */
int ew_watch_alerts_init(struct ew_watch_alerts *watch, const char *const *texts, uint32_t count,
                         struct ew_error *reterr);
/* Adds the metrics of the conditions. */
void ew_watch_alerts_add_metrics(const struct ew_watch_alerts *watch,
                                 struct etwatch_metric_set *metrics);
/* Decides into how many windows an interval of samples is divided. */
void ew_watch_alerts_divide(struct ew_watch_alerts *watch, uint64_t interval_ns);

/* like: the configuration of the main sampler. *facts: the facts of the main sampler; with a second
 * sampler it is replaced by facts that go to both. */
int ew_watch_alerts_open(struct ew_watch_alerts *watch, const struct ew_sampler_config *like,
                         struct ew_facts *facts);
void ew_watch_alerts_close(struct ew_watch_alerts *watch);

/* Samples of the main sampler. */
void ew_watch_alerts_samples(struct ew_watch_alerts *watch, const struct etwatch_sample *samples,
                             size_t count);
/* After the samples up to horizon_ns (raw time) were delivered. Alerts that ended or hold are
 * reported once per latency_ns. */
void ew_watch_alerts_advance(struct ew_watch_alerts *watch, uint64_t horizon_ns,
                             int64_t unix_minus_raw_ns, uint64_t latency_ns);
void ew_watch_alerts_finish(struct ew_watch_alerts *watch, uint64_t now_ns);
/* As ew_sampler_set_interval; interval_ns is that of the samples. */
int ew_watch_alerts_set_interval(struct ew_watch_alerts *watch, uint64_t at_ns,
                                 uint64_t interval_ns);
uint64_t ew_watch_alerts_lost(const struct ew_watch_alerts *watch);

/* --------------------------------------------------------------------- process_filter */

/*
 * Excludes processes: sits between a source and the samplers and drops the facts of excluded
 * processes, whatever the source. A process is evaluated when it is first reported and again when
 * it executes a program or changes its name. Descendants are evaluated by themselves.
 */

enum { EW_FILTER_PROCESSES_MAX = 1 << 18 }; /* 6 MB */

struct ew_process_filter_rules {
    const uint32_t *pids;
    const char *const *names;
    const uint32_t *uids;
    const char *const *cgroups;
    uint32_t pid_count, name_count, uid_count, cgroup_count;
    /* Windows: sources cannot select by user, so all other users are excluded here. */
    const uint32_t *only_uids;
    uint32_t only_uid_count;
    bool system;  /* exclude the system's own processes */
    bool windows; /* which are known by name and pid, not as kernel threads */
};

struct ew_process_filter {
    struct ew_process_filter_rules rules; /* lists belong to the caller */
    struct ew_describe *describe;
    void *ctx;
    /* A process that was included is excluded from now on. */
    void (*forget)(void *ctx, uint32_t pid);
    /* May be NULL: the source need not measure this process, or has to again. */
    void (*set_excluded)(void *ctx, uint32_t pid, uint64_t start_ns, bool excluded);

    struct ew_facts next;
    struct ew_pool processes; /* of struct ew_process_filter_process */
    struct ew_index by_pid;
    uint64_t lost; /* processes beyond the limit: they are excluded */
};

/* Whether any process can be excluded at all. */
bool ew_process_filter_needed(const struct ew_process_filter_rules *rules);
/* *facts: where the facts go; replaced by facts that pass the filter first. The fields above `next`
 * are set before. */
void ew_process_filter_open(struct ew_process_filter *filter, struct ew_facts *facts);
void ew_process_filter_close(struct ew_process_filter *filter);

/* ---------------------------------------------------------------------------- monitor */

enum ew_monitor_state { EW_MONITOR_STOPPED, EW_MONITOR_OPEN, EW_MONITOR_RUNNING };

/* An add or remove that was called in a callback; applied after the step. */
struct ew_monitor_change {
    uint32_t pid;
    bool add;
};

struct etwatch_monitor {
    struct ew_alloc_limit *memory; /* of all its allocations from begin to end */
    struct etwatch_config config;  /* with own copies behind its pointers */
    struct etwatch_callbacks callbacks;
    const struct ew_etw_config *etw;            /* of an ETW session; NULL: the defaults */
    struct ew_session_options *session_options; /* of the caller; NULL: the defaults */

    struct ew_mutex *lock; /* guards everything below */
    struct ew_waiter *waiter;
    struct ew_cond *arrived; /* samples arrived, or none will */
    struct ew_thread_handle *thread;
    enum ew_monitor_state state;
    bool stepping;    /* seen with the lock held: this thread is in a callback */
    bool stopping;    /* a stop was requested */
    bool joining;     /* a caller waits for the thread to end */
    uint32_t waiting; /* callers in etwatch_monitor_poll that wait without the lock */
    struct ew_monitor_change *changes;
    uint32_t change_count, change_size;

    bool began;            /* there was a source at least once */
    bool ended;            /* the recording is finished */
    bool over;             /* the run ended by itself and on_end was called */
    bool flushed;          /* everything that the source reported has been delivered */
    int failed;            /* the error that ended the run; 0: none */
    struct ew_error error; /* likewise, with its text */

    uint32_t source_id; /* kept after a stop, likewise the two below */
    struct etwatch_metric_set source_available, source_estimated;
    bool source_counts_gpu; /* GPU time comes from events: sensors have it only for devices */
    struct etwatch_metric_set metrics; /* those that this source is to measure */
    struct ew_source *source;
    struct ew_source *retired; /* failed, but a poll may still wait on its descriptor; or NULL */
    struct ew_sampler *sampler;
    struct ew_facts facts;
    struct ew_describe describe;
    struct ew_queue queue;
    struct ew_budget budget;
    struct ew_watch_alerts alerts;
    struct ew_process_filter process_filter;
    struct ew_top_n top_n;
    struct ew_wait_tracker *wait_tracker;          /* of the event stream; NULL: no on_events */
    struct ew_sensors *sensors;                    /* NULL: no metric needs one */
    const struct ew_sensor_ops *const *sensor_ops; /* tests; NULL: those of this system */
    uint64_t sensor_cpu_ns;                        /* CPU time of their threads */
    struct ew_gpu_busy *gpu_waiting;               /* exact GPU times that are not due yet */
    uint32_t gpu_waiting_count;

    char fallback[512];
    int64_t unix_minus_raw_ns;
    uint64_t anchor_unix_ns, anchor_raw_ns;
    uint64_t epoch_ns;
    uint64_t interval_ns; /* of the samples; that of the source may be shorter, see alerts */
    uint64_t next_wake_ns;
    uint64_t change_at_ns; /* interval end at which a new rate becomes effective; 0: none */
    uint64_t changed_interval_ns;

    uint32_t cpu_count;
    uint64_t replayed_ns; /* trace time up to which a recording was read */
    uint64_t opened_ns, closed_ns;
    uint64_t delivered_ns; /* samples were delivered up to here */
    uint64_t self_cpu_ns;  /* of waiting and stepping, in user space and in system calls */
    uint64_t metered_ns;   /* the thread's CPU time when that was last counted */
    uint64_t budget_wall_ns, budget_cpu_ns; /* when the budget was last evaluated */
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
/* Names the memory limit if it is the cause of an error. Returns the code. */
int ew_monitor_explain_limit(const struct etwatch_monitor *monitor, int error,
                             struct ew_error *reterr);
/* Delivers everything up to now, once in a run. Of a source that failed only what it reported. */
void ew_monitor_flush(struct etwatch_monitor *monitor);
/* Flushes and closes. */
void ew_monitor_end(struct etwatch_monitor *monitor);
void ew_monitor_refresh_counts(struct etwatch_monitor *monitor);
/* Now, by the source's clock. */
uint64_t ew_monitor_now(const struct etwatch_monitor *monitor);
/* Whether the source is a recording. */
bool ew_monitor_replays(const struct etwatch_monitor *monitor);
/* A recording: the next poll delivers samples up to this raw time. */
uint64_t ew_monitor_replay_horizon_ns(const struct etwatch_monitor *monitor);

/* source_choice.c: with the lock held. Both set the metrics that fit the source. */

/* Opens the source that the configuration selects, or polling where that is allowed. */
int ew_monitor_open_source(struct etwatch_monitor *monitor, struct ew_source **ret_source,
                           struct ew_error *reterr);
/* Whether polling may replace this source after this error. */
bool ew_monitor_may_poll(const struct etwatch_monitor *monitor, uint32_t source, int error,
                         const struct ew_error *why);
/* Opens polling because of `why`. After an error the metrics are as before, and *reterr has both
 * reasons. */
int ew_monitor_open_polling(struct etwatch_monitor *monitor, const struct ew_error *why,
                            struct ew_source **ret_source, struct ew_error *reterr);

/* devices.c: with the lock held. */
/* Starts the sensors that the metrics need. They are closed with the stages. */
int ew_monitor_open_devices(struct etwatch_monitor *monitor);
/* Adds their metrics to those of the source. */
void ew_monitor_adopt_devices(struct etwatch_monitor *monitor);

/* gpu_trace.c: with the lock held. */
/* Reads the trace, if there is one. */
void ew_monitor_drain_gpu_trace(struct etwatch_monitor *monitor, uint64_t now_ns);
void ew_monitor_close_gpu_trace(struct etwatch_monitor *monitor);
/* The time up to which GPU times are known if facts are up to horizon_ns. */
uint64_t ew_monitor_gpu_horizon(const struct etwatch_monitor *monitor, uint64_t horizon_ns);
/* Replaces what a driver estimates of traced processes by what is exact. */
void ew_monitor_correct_uses(struct etwatch_monitor *monitor, const struct ew_sensor_batch *batch);
/* Takes what they have read. Does not wait. */
void ew_monitor_drain_devices(struct etwatch_monitor *monitor, uint64_t now_ns);

/* process_filter.c */
struct ew_process_filter_rules ew_monitor_filter_rules(const struct etwatch_monitor *monitor);
void ew_monitor_open_filter(struct etwatch_monitor *monitor);

#endif
