/* SPDX-License-Identifier: MIT */
/*
 * etwatch: what every process really did, from kernel events.
 *
 * One handle, a monitor, watches processes through one source (eBPF on Linux, /proc polling where
 * the rights for that are missing) and hands out samples: what one process or thread did in one
 * interval. Two ways to drive it:
 *
 *   etwatch_monitor_start()   the library's own thread calls your callbacks, or fills a queue that
 *                             etwatch_monitor_read() empties;
 *   etwatch_monitor_open() and etwatch_monitor_poll()   no thread: your loop calls, your callbacks
 *                             run inside the call.
 *
 * Rules that hold everywhere:
 *  - Calls return 0 (or a count) or a negative ETWATCH_E* code; `reterr` may be NULL and is written
 *    only on failure. Out parameters are written only on success.
 *  - Every struct that may grow starts with `size`: set it to sizeof the struct; zero fields mean
 *    "the default". Bytes beyond what the library knows must be zero.
 *  - Times are Unix nanoseconds. A value is known if its metric is a member of `has`, else unknown.
 *  - Pointers handed to a callback are valid until it returns.
 *  - A monitor may be used from several threads, except free. The library keeps no global state,
 *    prints nothing, never exits and installs no signal handler.
 */
#ifndef ETWATCH_H
#define ETWATCH_H

#include <stddef.h>
#include <stdint.h>

/* On Windows the library is linked with a list of what it exports, made from these headers. */
#if defined(__GNUC__) && !defined(_WIN32)
#define ETWATCH_API __attribute__((visibility("default")))
#else
#define ETWATCH_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define ETWATCH_VERSION_MAJOR 0
#define ETWATCH_VERSION_MINOR 1
#define ETWATCH_VERSION_PATCH 0

/* The version of the library at run time, as "0.1.0". */
ETWATCH_API const char *etwatch_version(void);

/* ------------------------------------------------------------------ errors */

/* Numbers are never reused. */
#define ETWATCH_ERRORS(X)                                \
    X(EINVAL, -1, "an argument is not valid")            \
    X(ENOMEM, -2, "out of memory")                       \
    X(EPERM, -3, "missing rights")                       \
    X(ENOTSUP, -4, "not supported by this system")       \
    X(ENOENT, -5, "no such process")                     \
    X(ESTATE, -6, "not possible in this state")          \
    X(ELIMIT, -7, "a stated maximum is reached")         \
    X(EOS, -8, "the operating system reported an error") \
    X(EFORMAT, -9, "malformed input")                    \
    X(ETRUNC, -10, "input ends early")

enum etwatch_error {
#define ETWATCH_X(name, code, text) ETWATCH_##name = code,
    ETWATCH_ERRORS(ETWATCH_X)
#undef ETWATCH_X
};

/* Why a call failed. `message` says what and where, `fix` names what would mend it (may be ""). */
struct etwatch_error_info {
    uint32_t size;
    int32_t code;    /* ETWATCH_E* */
    int64_t os_code; /* errno or a Windows error, 0 if none */
    uint64_t offset; /* byte offset in the input, where there is one */
    char message[256];
    char fix[256];
};

/* A fixed English text for a code; never NULL. */
ETWATCH_API const char *etwatch_strerror(int code);

/* ------------------------------------------------------- sources and metrics */

enum etwatch_source {
    ETWATCH_SOURCE_AUTO = 0,
    ETWATCH_SOURCE_ETW = 1,
    ETWATCH_SOURCE_ETL = 2,
    ETWATCH_SOURCE_EBPF = 3,
    ETWATCH_SOURCE_POLL = 4,
};

/* "auto", "etw", "etl", "ebpf", "poll"; NULL for anything else. */
ETWATCH_API const char *etwatch_source_name(uint32_t source);

enum etwatch_type {
    ETWATCH_TYPE_START = 1,  /* a process began, or was there when watching began */
    ETWATCH_TYPE_EXIT = 2,   /* a process ended: the same names as totals over its life */
    ETWATCH_TYPE_SAMPLE = 3, /* what one process did in one interval */
    ETWATCH_TYPE_THREAD = 4, /* the same for one thread */
};

/*
 * Every measured value, once: name, C type, kind. A counter is what happened within the interval
 * (in EXIT: over the life), a gauge is as of t_ns. The order is fixed; new ones are appended.
 */
#define ETWATCH_METRICS(X)                     \
    X(cpu_percent, double, gauge)              \
    X(cpu_ns, uint64_t, counter)               \
    X(cpu_user_ns, uint64_t, counter)          \
    X(cpu_kernel_ns, uint64_t, counter)        \
    X(cycles, uint64_t, counter)               \
    X(instructions, uint64_t, counter)         \
    X(cache_misses, uint64_t, counter)         \
    X(switches_voluntary, uint64_t, counter)   \
    X(switches_involuntary, uint64_t, counter) \
    X(runq_wait_ns, uint64_t, counter)         \
    X(priority, int64_t, gauge)                \
    X(affinity, uint64_t, gauge)               \
    X(rss_bytes, uint64_t, gauge)              \
    X(rss_peak_bytes, uint64_t, gauge)         \
    X(private_bytes, uint64_t, gauge)          \
    X(virtual_bytes, uint64_t, gauge)          \
    X(faults_minor, uint64_t, counter)         \
    X(faults_major, uint64_t, counter)         \
    X(pool_paged_bytes, uint64_t, gauge)       \
    X(pool_nonpaged_bytes, uint64_t, gauge)    \
    X(threads, uint64_t, gauge)                \
    X(threads_running, uint64_t, gauge)        \
    X(threads_ready, uint64_t, gauge)          \
    X(threads_waiting, uint64_t, gauge)        \
    X(threads_suspended, uint64_t, gauge)      \
    X(io_read_bytes, uint64_t, counter)        \
    X(io_write_bytes, uint64_t, counter)       \
    X(io_other_bytes, uint64_t, counter)       \
    X(io_read_ops, uint64_t, counter)          \
    X(io_write_ops, uint64_t, counter)         \
    X(io_other_ops, uint64_t, counter)         \
    X(io_priority, int64_t, gauge)             \
    X(disk_read_bytes, uint64_t, counter)      \
    X(disk_write_bytes, uint64_t, counter)     \
    X(net_received_bytes, uint64_t, counter)   \
    X(net_sent_bytes, uint64_t, counter)       \
    X(handles, uint64_t, gauge)                \
    X(handles_peak, uint64_t, gauge)           \
    X(gdi_objects, uint64_t, gauge)            \
    X(user_objects, uint64_t, gauge)           \
    X(gpu_ns, uint64_t, counter)               \
    X(gpu_percent, double, gauge)              \
    X(gpu_memory_bytes, uint64_t, gauge)       \
    X(npu_ns, uint64_t, counter)               \
    X(npu_percent, double, gauge)              \
    X(energy_uj, uint64_t, counter)            \
    X(exit_ns, uint64_t, gauge)                \
    X(exit_code, int64_t, gauge)               \
    X(exit_signal, int64_t, gauge)

/* The index of each metric: the member of a set, such as `has`. */
enum etwatch_metric {
#define ETWATCH_X(name, type, kind) ETWATCH_M_##name,
    ETWATCH_METRICS(ETWATCH_X)
#undef ETWATCH_X
        ETWATCH_METRIC_COUNT,
    /* In a selection of metrics: those that the source measures by default. */
    ETWATCH_METRIC_DEFAULT = 255,
};

/* ---------------------------------------------------------- sets of metrics */

/* The size is part of the ABI and never changes: 256 members are enough for every metric to come.
 */
#define ETWATCH_METRIC_SET_WORDS 4

/* Metric m is a member if bit m % 64 of words[m / 64] is set; {{0}} is the empty set. */
struct etwatch_metric_set {
    uint64_t words[ETWATCH_METRIC_SET_WORDS];
};

/* No such member: the end of an iteration. */
#define ETWATCH_METRIC_SET_END UINT32_MAX

/* 1 or 0. An index beyond the last possible member is no member, and adding it does nothing. */
static inline int etwatch_metric_set_has(const struct etwatch_metric_set *set, uint32_t metric)
{
    return metric < ETWATCH_METRIC_SET_WORDS * 64 && (set->words[metric / 64] >> metric % 64 & 1);
}

static inline void etwatch_metric_set_add(struct etwatch_metric_set *set, uint32_t metric)
{
    if (metric < ETWATCH_METRIC_SET_WORDS * 64)
        set->words[metric / 64] |= (uint64_t)1 << metric % 64;
}

static inline void etwatch_metric_set_remove(struct etwatch_metric_set *set, uint32_t metric)
{
    if (metric < ETWATCH_METRIC_SET_WORDS * 64)
        set->words[metric / 64] &= ~((uint64_t)1 << metric % 64);
}

static inline int etwatch_metric_set_is_empty(const struct etwatch_metric_set *set)
{
    uint64_t any = 0;
    for (uint32_t i = 0; i < ETWATCH_METRIC_SET_WORDS; i++)
        any |= set->words[i];
    return any == 0;
}

static inline int etwatch_metric_set_equal(const struct etwatch_metric_set *a,
                                           const struct etwatch_metric_set *b)
{
    uint64_t different = 0;
    for (uint32_t i = 0; i < ETWATCH_METRIC_SET_WORDS; i++)
        different |= a->words[i] ^ b->words[i];
    return different == 0;
}

/* These three change the first set. Subtracting removes the members of `other`. */
static inline void etwatch_metric_set_union(struct etwatch_metric_set *set,
                                            const struct etwatch_metric_set *other)
{
    for (uint32_t i = 0; i < ETWATCH_METRIC_SET_WORDS; i++)
        set->words[i] |= other->words[i];
}

static inline void etwatch_metric_set_intersect(struct etwatch_metric_set *set,
                                                const struct etwatch_metric_set *other)
{
    for (uint32_t i = 0; i < ETWATCH_METRIC_SET_WORDS; i++)
        set->words[i] &= other->words[i];
}

static inline void etwatch_metric_set_subtract(struct etwatch_metric_set *set,
                                               const struct etwatch_metric_set *other)
{
    for (uint32_t i = 0; i < ETWATCH_METRIC_SET_WORDS; i++)
        set->words[i] &= ~other->words[i];
}

/* The first member that is not below `from`, or ETWATCH_METRIC_SET_END. To iterate:
 *
 *   for (uint32_t m = etwatch_metric_set_next(set, 0); m != ETWATCH_METRIC_SET_END;
 *        m = etwatch_metric_set_next(set, m + 1))
 */
static inline uint32_t etwatch_metric_set_next(const struct etwatch_metric_set *set, uint32_t from)
{
    while (from < ETWATCH_METRIC_SET_WORDS * 64) {
        uint64_t rest = set->words[from / 64] >> from % 64;
        if (rest != 0) {
#if defined(__GNUC__)
            return from + (uint32_t)__builtin_ctzll(rest);
#else
            for (; (rest & 1) == 0; rest >>= 1)
                from++;
            return from;
#endif
        }
        from = (from / 64 + 1) * 64;
    }
    return ETWATCH_METRIC_SET_END;
}

/* The number of members. */
static inline uint32_t etwatch_metric_set_count(const struct etwatch_metric_set *set)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < ETWATCH_METRIC_SET_WORDS; i++)
        for (uint64_t rest = set->words[i]; rest != 0; rest &= rest - 1)
            count++;
    return count;
}

/* ----------------------------------------------------------------- samples */

enum etwatch_sample_flag {
    ETWATCH_SAMPLE_COMPLETE = 1u << 0,    /* no event that belongs here is known to be lost */
    ETWATCH_SAMPLE_PREEXISTING = 1u << 1, /* START of a process that was there before */
    ETWATCH_SAMPLE_HAS_PPID = 1u << 2,
    ETWATCH_SAMPLE_HAS_SESSION = 1u << 3,
    /* SAMPLE of all processes that are not among the busiest: pid is UINT32_MAX, tid says how many
     * they are; counters only. */
    ETWATCH_SAMPLE_OTHER = 1u << 4,
};

/* One object of the stream; `type` says which. */
struct etwatch_sample {
    uint32_t size;
    uint32_t type;   /* enum etwatch_type */
    uint32_t source; /* where it comes from: enum etwatch_source */
    uint32_t flags;  /* enum etwatch_sample_flag */
    uint32_t pid;
    uint32_t tid; /* THREAD only, else 0 (but see ETWATCH_SAMPLE_OTHER) */
    uint32_t ppid;
    uint32_t session_id;
    uint64_t start_ns; /* with pid: the identity */
    uint64_t t_ns;     /* end of the interval */
    uint64_t dt_ns;    /* length of the interval; START: 0; EXIT: the life time */
    const char *name;  /* NULL: unknown; likewise below */
    const char *thread_name;
    const char *user;
    const char *cgroup;
    const char *cmdline;
    struct etwatch_metric_set has; /* the metrics that are known; their values follow */
#define ETWATCH_X(name, type, kind) type name;
    ETWATCH_METRICS(ETWATCH_X)
#undef ETWATCH_X
};

/* 1 if the value of this metric is known: etwatch_sample_has(sample, ETWATCH_M_cpu_ns). */
static inline int etwatch_sample_has(const struct etwatch_sample *sample, uint32_t metric)
{
    return etwatch_metric_set_has(&sample->has, metric);
}

/* ------------------------------------------------------------- event stream */

enum etwatch_event_kind {
    ETWATCH_EVENT_SWITCH = 1, /* tid leaves the cpu, next_tid takes it */
    ETWATCH_EVENT_WAKEUP = 2, /* tid becomes ready; by waker_tid */
    ETWATCH_EVENT_FORK = 3,   /* pid/tid made child_pid/child_tid */
    ETWATCH_EVENT_EXEC = 4,
    ETWATCH_EVENT_EXIT = 5, /* a thread ended */
};

/* One raw scheduler event (ETWATCH_CONFIG_EVENTS only). Unused fields are 0. */
struct etwatch_event {
    uint32_t size;
    uint32_t kind;
    uint64_t t_ns;
    uint32_t cpu;
    uint32_t pid, tid;
    uint32_t next_pid, next_tid; /* SWITCH: who comes; FORK: the child; WAKEUP: the waker */
    uint32_t state;              /* SWITCH: why it left, the kernel's task state; 0 = preempted */
    int32_t priority;
    int32_t exit_code; /* EXIT: as wait() encodes it; -1: unknown */
    const char *name;
    const char *next_name; /* SWITCH: of who comes; FORK: of the child; NULL: unknown */
    int32_t next_priority; /* SWITCH */
    uint32_t target_cpu;   /* WAKEUP: where it last ran; UINT32_MAX: unknown */
    /* SWITCH, of who comes, as far as the events before told; UINT64_MAX, UINT32_MAX: unknown. */
    uint64_t wait_ns;              /* how long it was off the CPU */
    uint64_t ready_ns;             /* of that, ready to run: since it was woken or preempted */
    uint32_t waker_pid, waker_tid; /* who woke it; nobody, if it was preempted */
    const char *wait_reason;       /* SWITCH, Windows: what tid waits for; NULL: it does not */
    uint32_t io_wait;     /* SWITCH, Linux: 2: tid waits for a disk, 1: it does not; 0: not told */
    uint32_t hard_faults; /* likewise: of tid so far, the low 31 bits */
};

/* Events that were lost: which stage, how many, and when. */
struct etwatch_loss {
    uint32_t size;
    uint32_t stage; /* enum etwatch_loss_stage */
    uint64_t count;
    uint64_t from_ns, to_ns;
};

enum etwatch_loss_stage {
    ETWATCH_LOSS_KERNEL_LOG = 1, /* interval records: the log of a CPU was full */
    ETWATCH_LOSS_LIFECYCLE = 2,  /* start/exec/exit records */
    ETWATCH_LOSS_STREAM = 3,     /* the full event stream */
    ETWATCH_LOSS_TABLE = 4,      /* process table full */
    ETWATCH_LOSS_QUEUE = 5,      /* nobody read the queue in time */
};

/* ------------------------------------------------------------------- alerts */

enum etwatch_alert_flag {
    ETWATCH_ALERT_COMPLETE = 1u << 0, /* no event that belongs here is known to be lost */
    ETWATCH_ALERT_ENDED = 1u << 1,    /* to_ns is its end; else it still holds at to_ns */
    ETWATCH_ALERT_EXACT = 1u << 2,    /* from_ns and to_ns are cut out of a window; else its ends */
};

/* One thread's part of an alert. */
struct etwatch_alert_thread {
    uint32_t tid;
    uint32_t reserved;
    uint64_t cpu_ns;
    const char *name; /* NULL: unknown */
};

/*
 * A condition (etwatch_config.alerts) held for one process long enough. One that is over by the
 * time it is told is told once; a longer one is told twice: when it has held for the time asked
 * for, without ETWATCH_ALERT_ENDED, and at its end, both with the same from_ns.
 */
struct etwatch_alert {
    uint32_t size;
    uint32_t flags;        /* enum etwatch_alert_flag */
    uint32_t rule;         /* index in etwatch_config.alerts */
    uint32_t metric;       /* enum etwatch_metric */
    const char *condition; /* as it was given */
    uint32_t source;
    uint32_t pid;
    uint64_t start_ns; /* with pid: the identity */
    const char *name;  /* NULL: unknown */
    uint64_t from_ns, to_ns;
    uint64_t window_ns; /* how finely the metric was looked at */
    double threshold;
    double value;            /* average over from_ns to to_ns; counters: a second */
    double peak;             /* of the windows */
    uint32_t thread_count;   /* threads that ran meanwhile; 0: they are not told apart */
    uint32_t thread_entries; /* the busiest of them, in threads */
    const struct etwatch_alert_thread *threads;
};

/* The most conditions that one monitor takes. */
#define ETWATCH_ALERTS_MAX 16

/* Checks a condition (METRIC OP VALUE[UNIT][/s] [for TIME]) without a monitor. ETWATCH_EINVAL: the
 * message says what is wrong, `fix` the right form, `offset` the byte. ret_metric (may be NULL):
 * enum etwatch_metric. */
ETWATCH_API int etwatch_alert_check(const char *condition, uint32_t *ret_metric,
                                    struct etwatch_error_info *reterr);

/* ------------------------------------------------------------ configuration */

enum etwatch_config_flag {
    ETWATCH_CONFIG_ALL = 1u << 0,         /* watch every process */
    ETWATCH_CONFIG_THREADS = 1u << 1,     /* THREAD samples too */
    ETWATCH_CONFIG_DENSE = 1u << 2,       /* a sample for every interval, also of idle processes */
    ETWATCH_CONFIG_EVENTS = 1u << 3,      /* the full scheduler event stream */
    ETWATCH_CONFIG_CMDLINE = 1u << 4,     /* command lines, secrets masked */
    ETWATCH_CONFIG_NO_FALLBACK = 1u << 5, /* fail instead of polling when rights are missing */
    ETWATCH_CONFIG_NO_BUDGET = 1u << 6,   /* keep the rate whatever it costs */
    ETWATCH_CONFIG_KERNEL_THREADS = 1u << 7, /* with ETWATCH_CONFIG_ALL: kernel threads too */
    ETWATCH_CONFIG_AGGREGATE = 1u << 8,      /* keep what etwatch_monitor_aggregate needs */
    ETWATCH_CONFIG_QUEUE = 1u << 9,          /* keep samples for etwatch_monitor_read */
    /* Without the system's own processes. Windows: the ids 0 and 4, System, Idle and Registry;
     * Linux: kernel threads, whatever the other flags say. */
    ETWATCH_CONFIG_NO_SYSTEM = 1u << 10,
    /* With ETWATCH_CONFIG_EVENTS: of every thread of the machine; none where only polling works. */
    ETWATCH_CONFIG_EVENTS_ALL = 1u << 20,
};

struct etwatch_callbacks {
    uint32_t size;
    /* In order; a START before the first SAMPLE of a process, its EXIT after the last. */
    void (*on_samples)(void *ctx, const struct etwatch_sample *samples, size_t count);
    void (*on_events)(void *ctx, const struct etwatch_event *events, size_t count);
    void (*on_loss)(void *ctx, const struct etwatch_loss *loss);
    void *ctx;
};

struct etwatch_session_options;

/* How often some metrics are read at most; see etwatch_metric_info for those that have a rate. */
struct etwatch_rate {
    struct etwatch_metric_set metrics;
    double hz; /* 0.01 to 1000 */
};

struct etwatch_config {
    uint32_t size;
    uint32_t source;       /* enum etwatch_source; 0 = auto */
    uint32_t flags;        /* enum etwatch_config_flag */
    uint32_t latency_ms;   /* how long samples may be held; 0 = 400 */
    double hz;             /* samples a second, 0.1 to 1000; 0 = 10 */
    double budget_percent; /* of one core, user space and in-kernel; 0 = 2 */
    const uint32_t *pids;  /* with their descendants */
    uint32_t pid_count;
    uint32_t name_count;
    const char *const *names; /* "python" also matches python3.11 and python.exe; "py*" is a glob */
    /* Windows has no such numbers: one made of the SID, as etwatch makes it of a name for -u;
     * alone, and who was gone before he was asked is nobody's. */
    const uint32_t *uids;
    uint32_t uid_count;
    uint32_t cgroup_count;
    /* Paths below the cgroup v2 root, with sub-groups; "container:ID" is the container whose id
     * begins like that (docker, podman, containerd, cri-o). */
    const char *const *cgroups;
    uint32_t max_processes; /* table limit; 0 = 65536 */
    uint32_t max_threads;   /* table limit; 0 = 131072 */
    uint32_t queue_samples; /* for etwatch_monitor_read; 0 = 10000 */
    uint32_t reserved;
    const char *proc_root; /* NULL = "/proc" */
    struct etwatch_callbacks callbacks;
    const char *const *traces; /* ETWATCH_SOURCE_ETL: the recordings, merged by time */
    uint32_t trace_count;
    uint32_t reserved2;
    const char *session; /* ETW: this one is read, whosever it is, and not changed; NULL: our own */
    const struct etwatch_session_options *session_options; /* of our own: session.h; may be NULL */
    /* Conditions such as "cpu_percent>80 for 20ms". CPU time is looked at in windows of a quarter
     * of that time (5 ms without one), 1 ms at the least, whatever hz is; other metrics, and all of
     * them when polling, in the samples. At most 16. */
    const char *const *alerts;
    uint32_t alert_count;
    uint32_t reserved3;
    void (*on_alert)(void *ctx, const struct etwatch_alert *alert); /* with callbacks.ctx */
    /* The metrics to measure (see etwatch_metrics_named); empty = ETWATCH_METRIC_DEFAULT, which may
     * be combined with others. A metric that is not selected costs nothing and is unknown. How a
     * process ended is always reported. */
    struct etwatch_metric_set metrics;
    const struct etwatch_rate *rates; /* later ones win */
    uint32_t rate_count;
    uint32_t reserved4;
    /* Left out, whatever else asks for them; not so their descendants. Names may be globs, as in
     * names above. */
    const uint32_t *exclude_pids;
    const char *const *exclude_names;
    const uint32_t *exclude_uids;
    const char *const *exclude_cgroups;
    uint32_t exclude_pid_count;
    uint32_t exclude_name_count;
    uint32_t exclude_uid_count;
    uint32_t exclude_cgroup_count;
    /* Samples of this many processes with the most of a metric (a counter: a second) in each
     * interval; what the others did is one sample with ETWATCH_SAMPLE_OTHER. 0 = all. */
    uint32_t top_n;
    uint32_t top_n_metric; /* enum etwatch_metric; 0 = cpu_percent */
    /* Gauges of memory, threads and handles that are also polled if the source has events (ebpf,
     * etw). EINVAL for any other metric: a counter has one source. */
    struct etwatch_metric_set polled_metrics;
};

struct etwatch_stats {
    uint32_t size;
    uint32_t source;
    double hz_requested;
    double hz_reached;   /* intervals delivered a second, over the whole run */
    double hz_effective; /* the rate in force, after the budget */
    uint64_t samples;
    uint64_t events; /* facts taken from the source */
    uint64_t lost;
    uint64_t undecoded;
    uint64_t late;
    uint64_t wakeups;
    uint64_t processes; /* in the table now */
    uint64_t threads;
    uint64_t self_rss_bytes;
    uint64_t self_rss_peak_bytes;
    double self_cpu_percent;    /* of one core: user space and in-kernel together */
    double self_kernel_percent; /* the in-kernel part; < 0: cannot be measured here */
    uint64_t duration_ns;
    uint64_t queue_dropped;
    uint64_t step_ns;     /* time of all wake-ups: facts taken, samples cut and delivered */
    uint64_t step_max_ns; /* of the longest one */
};

/* What the source is and what it can only estimate: the first line of every output. */
struct etwatch_meta {
    uint32_t size;
    uint32_t source;
    uint32_t cpu_count;
    uint32_t reserved;
    double hz_requested;
    uint64_t anchor_unix_ns;             /* this Unix time ... */
    uint64_t anchor_raw_ns;              /* ... was this time of the raw clock (CLOCK_BOOTTIME) */
    struct etwatch_metric_set estimated; /* metrics that this source can only estimate */
    struct etwatch_metric_set available; /* metrics that this source can measure at all */
    char fallback[512];                  /* "" or one line: what failed, why, and the fix */
};

/* Over all intervals since the process was first seen; idle intervals count as 0. */
struct etwatch_aggregate {
    uint32_t size;
    uint32_t reserved;
    uint64_t count;
    double avg, max, p95, p99;
};

/* ----------------------------------------------------------------- monitor */

struct etwatch_monitor;

/* Checks the configuration and makes a monitor; nothing is watched yet. */
ETWATCH_API int etwatch_monitor_new(const struct etwatch_config *config,
                                    struct etwatch_monitor **ret_monitor,
                                    struct etwatch_error_info *reterr);
/* Stops if need be and frees. NULL is fine. Not from a callback. */
ETWATCH_API void etwatch_monitor_free(struct etwatch_monitor *monitor);

/* Starts watching with a thread of the library's own. May follow a stop. */
ETWATCH_API int etwatch_monitor_start(struct etwatch_monitor *monitor,
                                      struct etwatch_error_info *reterr);
/* Starts watching without a thread: call etwatch_monitor_poll. */
ETWATCH_API int etwatch_monitor_open(struct etwatch_monitor *monitor,
                                     struct etwatch_error_info *reterr);
/* Waits up to timeout_ms (-1: until the next delivery) and delivers what is due through the
 * callbacks. Returns the number of samples delivered. Only after etwatch_monitor_open. A recording
 * does not wait; with its last samples the monitor stops: the next call says ETWATCH_ESTATE. */
ETWATCH_API int etwatch_monitor_poll(struct etwatch_monitor *monitor, int timeout_ms);
/* Delivers what is left and stops. Safe to call twice. */
ETWATCH_API int etwatch_monitor_stop(struct etwatch_monitor *monitor);

/* Copies up to max queued samples (ETWATCH_CONFIG_QUEUE), waiting up to timeout_ms for the first.
 * Strings stay valid until the next read. Returns the count; ETWATCH_ESTATE if a recording has
 * ended and everything of it was read. */
ETWATCH_API int etwatch_monitor_read(struct etwatch_monitor *monitor,
                                     struct etwatch_sample *ret_samples, size_t max,
                                     int timeout_ms);
/* The same for those who keep what they read: the strings are copied to ret_texts, each once, and
 * are valid as long as it is. Where they find no room the rest is left for the next read; 8 KB are
 * always enough for one sample. ret_texts_used: bytes, from the beginning. */
ETWATCH_API int etwatch_monitor_read_copy(struct etwatch_monitor *monitor,
                                          struct etwatch_sample *ret_samples, size_t max,
                                          char *ret_texts, size_t texts_size,
                                          size_t *ret_texts_used, int timeout_ms);

/* Watch one more process and its descendants, or one less; also while running. */
ETWATCH_API int etwatch_monitor_add(struct etwatch_monitor *monitor, uint32_t pid);
ETWATCH_API int etwatch_monitor_remove(struct etwatch_monitor *monitor, uint32_t pid);

/* Totals since the process began, and its latest gauges, as type SAMPLE. `name` and the other
 * strings are NULL unless buffer (buffer_size bytes) is given to hold the name. */
ETWATCH_API int etwatch_monitor_snapshot(struct etwatch_monitor *monitor, uint32_t pid,
                                         struct etwatch_sample *ret_sample, char *buffer,
                                         size_t buffer_size);
/* Average, maximum and percentiles of cpu_percent or rss_bytes of one process. */
ETWATCH_API int etwatch_monitor_aggregate(struct etwatch_monitor *monitor, uint32_t pid,
                                          uint32_t metric, struct etwatch_aggregate *ret_aggregate);
ETWATCH_API int etwatch_monitor_stats(struct etwatch_monitor *monitor,
                                      struct etwatch_stats *ret_stats);
ETWATCH_API int etwatch_monitor_meta(struct etwatch_monitor *monitor,
                                     struct etwatch_meta *ret_meta);

/* ------------------------------------------------------------------ doctor */

enum etwatch_check_state {
    ETWATCH_CHECK_OK = 0,
    ETWATCH_CHECK_WARN = 1, /* works, but something is lost: see cost */
    ETWATCH_CHECK_FAIL = 2,
};

/* One thing that was probed: what it is, what was found, what its lack costs, the exact fix. */
struct etwatch_check {
    uint32_t size;
    uint32_t state;
    const char *id; /* "btf", "cap_bpf", … stable */
    const char *what;
    const char *found;
    const char *cost; /* "" when ok */
    const char *fix;  /* "" when ok */
};

/* Probes what works here; calls on_check for each, without side effects that stay. */
ETWATCH_API int etwatch_doctor(const char *proc_root,
                               void (*on_check)(void *ctx, const struct etwatch_check *check),
                               void *ctx);

#ifdef __cplusplus
}
#endif

#endif /* ETWATCH_H */
