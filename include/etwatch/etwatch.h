/* SPDX-License-Identifier: MIT */
/*
 * etwatch: what every process really did, from kernel events.
 *
 * One handle, a monitor, watches processes through one source (eBPF on Linux, ETW on Windows,
 * polling where the rights for those are missing, or a recording) and delivers samples: what one
 * process or thread did in one interval. There are two ways to drive it:
 *
 *   etwatch_monitor_start()   a thread of the library calls the callbacks, or fills a queue that
 *                             etwatch_monitor_read() empties;
 *   etwatch_monitor_open() and etwatch_monitor_poll()   no thread: the callbacks run inside the
 *                             caller's call of poll.
 *
 * Results
 *   Calls return 0 (or a count) or a negative ETWATCH_E* code. `reterr` may be NULL and is written
 *   only on failure. Out parameters are written only on success. Times are Unix nanoseconds. A
 *   value is known if its metric is a member of `has`. The library prints nothing, never exits,
 *   installs no signal handler and keeps no global state.
 *
 * Structs that may grow
 *   Such a struct starts with `uint32_t size`. The caller sets it to sizeof the struct; zero fields
 *   mean "the default". New fields are only ever appended, so programs and libraries of different
 *   versions work together:
 *     in    fields that an older caller does not have are 0. Fields that the library does not know
 *           must be 0, else the call returns ETWATCH_ENOTSUP.
 *     out   an older caller gets the fields that it has room for; fields that the library does not
 *           know become 0. `size` itself is not changed.
 *     callback   the library sets `size`; a field beyond it is not there.
 *   A `size` below 8 was not set: ETWATCH_EINVAL. Arrays of such structs are always passed as a
 *   batch (struct etwatch_samples and its like), which carries the distance between two elements:
 *   use etwatch_sample_at(batch, i), never batch->items[i]. Unknown fields of elements that
 *   a caller passes are ignored. Structs marked FIXED have no `size`, never change and form plain
 *   arrays. Numbers of enums and error codes are never reused.
 *
 * Threads and callbacks
 *   Functions without a handle may be called from any thread. A monitor may be used from several
 *   threads at once, except etwatch_monitor_free. Inside a callback of the same monitor:
 *
 *     etwatch_monitor_stats, _meta, _snapshot, _aggregate,
 *       _last_error, _unavailable_reason     work
 *     etwatch_monitor_read, _read_copy       work, but do not wait
 *     etwatch_monitor_add, _remove           take effect when the callback has returned
 *     etwatch_monitor_stop                   requests the end and returns at once
 *     etwatch_monitor_start, _open, _poll,
 *       _set_kernel                          ETWATCH_ESTATE
 *     etwatch_monitor_free                   does nothing
 *
 *   Callbacks of one monitor never run at the same time. Pointers passed to a callback are valid
 *   until it returns. A callback must return: no exception, longjmp or exit of the thread may leave
 *   it, because the monitor is locked while it runs. It may use any other monitor.
 *
 * Other users of libbpf in the process
 *   libbpf has one print function for the whole process. While a monitor opens eBPF through libbpf
 *   (where loading without it failed), that function is replaced by a silent one and then restored:
 *   messages of other users of libbpf are missing in this time, and a function that another thread
 *   sets meanwhile is lost.
 *
 * fork
 *   A child does not have the library's threads: it must not call any function with a handle that
 *   was made before the fork, not even free. It may make new ones. fork followed by exec is fine.
 */
#ifndef ETWATCH_H
#define ETWATCH_H

#include <stddef.h>
#include <stdint.h>

/* Windows: the library is linked with a list of its exports, which is made from these headers. */
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

/* Why a call failed. `message` names what failed and where, `fix` what would help (may be ""). */
struct etwatch_error_info {
    uint32_t size;
    int32_t code;    /* ETWATCH_E* */
    int64_t os_code; /* errno or a Windows error, 0 if none */
    uint64_t offset; /* byte offset in the input, if the error has one */
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
    ETWATCH_TYPE_START = 1,  /* a process started, or existed when watching began */
    ETWATCH_TYPE_EXIT = 2,   /* a process exited: counters are totals over its life */
    ETWATCH_TYPE_SAMPLE = 3, /* what one process did in one interval */
    ETWATCH_TYPE_THREAD = 4, /* the same for one thread */
};

/*
 * Every metric: name, C type, kind. A counter is what happened within the interval (EXIT: over the
 * life of the process), a gauge is the value at t_ns. New metrics are appended.
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
    X(exit_signal, int64_t, gauge)             \
    X(presents, uint64_t, counter)             \
    X(gpu_encoder_ns, uint64_t, counter)       \
    X(gpu_decoder_ns, uint64_t, counter)       \
    X(rss_private_bytes, uint64_t, gauge)

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

/* Metric m is a member if bit m % 64 of words[m / 64] is set; {{0}} is the empty set. FIXED. */
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
    ETWATCH_SAMPLE_COMPLETE = 1u << 0,    /* no event of this interval is known to be lost */
    ETWATCH_SAMPLE_PREEXISTING = 1u << 1, /* START of a process that existed before watching */
    ETWATCH_SAMPLE_HAS_PPID = 1u << 2,
    ETWATCH_SAMPLE_HAS_SESSION = 1u << 3,
    /* SAMPLE of all processes outside of etwatch_config.top_n: pid is UINT32_MAX, tid is their
     * number; counters only. */
    ETWATCH_SAMPLE_OTHER = 1u << 4,
};

/* One object of the stream. */
struct etwatch_sample {
    uint32_t size;
    uint32_t type;   /* enum etwatch_type */
    uint32_t source; /* enum etwatch_source */
    uint32_t flags;  /* enum etwatch_sample_flag */
    uint32_t pid;
    uint32_t tid; /* THREAD only, else 0 (but see ETWATCH_SAMPLE_OTHER) */
    uint32_t ppid;
    uint32_t session_id;
    uint64_t start_ns; /* with pid: the identity of the process */
    uint64_t t_ns;     /* end of the interval */
    uint64_t dt_ns;    /* length of the interval; START: 0; EXIT: the life of the process */
    const char *name;  /* NULL: unknown; likewise the strings below */
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

/* Samples in their order. */
struct etwatch_samples {
    uint32_t size;
    uint32_t stride; /* bytes from one element to the next, at least 8 */
    size_t count;
    const struct etwatch_sample *items; /* the first */
};

/* Element i of a batch. Not items[i]: the library's elements may be longer than this header's. */
static inline const struct etwatch_sample *etwatch_sample_at(const struct etwatch_samples *batch,
                                                             size_t i)
{
    return (const struct etwatch_sample *)(const void *)((const char *)batch->items +
                                                         i * batch->stride);
}

/* A batch of the caller's own array. */
static inline struct etwatch_samples etwatch_samples_of(const struct etwatch_sample *items,
                                                        size_t count)
{
    struct etwatch_samples batch = {(uint32_t)sizeof batch, (uint32_t)sizeof *items, count, items};
    return batch;
}

/* ------------------------------------------------------------- event stream */

enum etwatch_event_kind {
    ETWATCH_EVENT_SWITCH = 1, /* tid leaves the CPU, next_tid takes it */
    ETWATCH_EVENT_WAKEUP = 2, /* next_tid makes tid ready */
    ETWATCH_EVENT_FORK = 3,   /* pid, tid made next_pid, next_tid */
    ETWATCH_EVENT_EXEC = 4,
    ETWATCH_EVENT_EXIT = 5, /* a thread exited */
    /* Page faults of tid, from from_ns to t_ns (ETWATCH_CONFIG_EVENTS_CAUSES). Delivered when
     * the thread leaves the CPU or faults again, so t_ns may lie before that of earlier events. */
    ETWATCH_EVENT_FAULTS = 6,
    /* Threads that lost this CPU because their cgroup had used up its bandwidth may run again
     * (ETWATCH_CONFIG_EVENTS_CAUSES only). pid and tid have no meaning. */
    ETWATCH_EVENT_UNTHROTTLE = 7,
};

/* One raw scheduler event (ETWATCH_CONFIG_EVENTS only). Unused fields are 0. */
struct etwatch_event {
    uint32_t size;
    uint32_t kind;
    uint64_t t_ns;
    uint32_t cpu;
    uint32_t pid, tid;
    uint32_t next_pid, next_tid; /* SWITCH: incoming thread; FORK: child; WAKEUP: waker */
    uint32_t state;              /* SWITCH: task state of the outgoing thread; 0: preempted */
    int32_t priority;
    int32_t exit_code; /* EXIT: as wait() encodes it; -1: unknown */
    const char *name;
    const char *next_name; /* of next_pid; NULL: unknown */
    int32_t next_priority; /* SWITCH */
    uint32_t target_cpu;   /* WAKEUP: the CPU it last ran on; UINT32_MAX: unknown */
    /* SWITCH, of the incoming thread, from the events before; UINT64_MAX, UINT32_MAX: unknown. */
    uint64_t wait_ns;              /* time off the CPU */
    uint64_t ready_ns;             /* part of wait_ns in which it was ready to run */
    uint32_t waker_pid, waker_tid; /* the thread that woke it; unknown if it was preempted */
    const char *wait_reason;       /* SWITCH, Windows: what tid waits for; NULL: it is ready */
    uint32_t io_wait;              /* SWITCH, Linux: 2: tid waits for a disk, 1: not; 0: unknown */
    uint32_t hard_faults;          /* SWITCH, Linux: of tid so far, the low 31 bits */
    uint64_t from_ns;              /* FAULTS */
    uint64_t fault_ns;             /* FAULTS: in the handler, on a CPU */
    uint32_t fault_count; /* FAULTS: the number that ended; 0: the thread left the CPU in one */
    uint32_t in_fault;    /* SWITCH: 2: tid is handling a fault (Windows: it waits for a page), 1:
                           * not; 0: unknown */
    uint32_t throttled;   /* SWITCH, WAKEUP, Linux: 2: the cgroup of tid has used up its CPU
                           * bandwidth, 1: not; 0: unknown */
    uint32_t reserved;
};

/* Events in their order; see struct etwatch_samples. */
struct etwatch_events {
    uint32_t size;
    uint32_t stride;
    size_t count;
    const struct etwatch_event *items;
};

static inline const struct etwatch_event *etwatch_event_at(const struct etwatch_events *batch,
                                                           size_t i)
{
    return (const struct etwatch_event *)(const void *)((const char *)batch->items +
                                                        i * batch->stride);
}

static inline struct etwatch_events etwatch_events_of(const struct etwatch_event *items,
                                                      size_t count)
{
    struct etwatch_events batch = {(uint32_t)sizeof batch, (uint32_t)sizeof *items, count, items};
    return batch;
}

/* Lost events: at which stage, how many, and when. */
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
    ETWATCH_LOSS_QUEUE = 5,      /* the queue was not read in time */
    ETWATCH_LOSS_BUFFERS = 6,    /* whole buffers of an ETW session: count is of buffers, the number
                                    of events in them is unknown */
};

/* ------------------------------------------------------------------- alerts */

enum etwatch_alert_flag {
    ETWATCH_ALERT_COMPLETE = 1u << 0, /* no event of this time is known to be lost */
    ETWATCH_ALERT_ENDED = 1u << 1,    /* to_ns is its end; else it still holds at to_ns */
    ETWATCH_ALERT_EXACT = 1u << 2,    /* from_ns and to_ns lie within a window; else at its ends */
};

/* One thread's part of an alert. FIXED. */
struct etwatch_alert_thread {
    uint32_t tid;
    uint32_t reserved;
    uint64_t cpu_ns;
    const char *name; /* NULL: unknown */
};

/*
 * A condition (etwatch_config.alerts) held for one process long enough. A short alert is reported
 * once, when it ends. A long one is reported twice, both times with the same from_ns: without
 * ETWATCH_ALERT_ENDED when it has held for the time in the condition, and when it ends.
 */
struct etwatch_alert {
    uint32_t size;
    uint32_t flags;        /* enum etwatch_alert_flag */
    uint32_t rule;         /* index in etwatch_config.alerts */
    uint32_t metric;       /* enum etwatch_metric */
    const char *condition; /* the text of the configuration */
    uint32_t source;
    uint32_t pid;
    uint64_t start_ns; /* with pid: the identity of the process */
    const char *name;  /* NULL: unknown */
    uint64_t from_ns, to_ns;
    uint64_t window_ns; /* resolution with which the metric was evaluated */
    double threshold;
    double value;            /* average from from_ns to to_ns; counters: a second */
    double peak;             /* highest window */
    uint32_t thread_count;   /* threads that ran meanwhile; 0: unknown */
    uint32_t thread_entries; /* entries in threads: those with the most CPU time */
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
    ETWATCH_CONFIG_NO_BUDGET = 1u << 6,   /* keep the requested rate whatever it costs */
    ETWATCH_CONFIG_KERNEL_THREADS = 1u << 7, /* with ETWATCH_CONFIG_ALL: kernel threads too */
    ETWATCH_CONFIG_AGGREGATE = 1u << 8,      /* keep what etwatch_monitor_aggregate needs */
    ETWATCH_CONFIG_QUEUE = 1u << 9,          /* keep samples for etwatch_monitor_read */
    /* Excludes the system's own processes. Windows: the ids 0 and 4, System, Idle and Registry;
     * Linux: kernel threads, whatever the other flags are. */
    ETWATCH_CONFIG_NO_SYSTEM = 1u << 10,
    /* With ETWATCH_CONFIG_EVENTS: events of every thread of the machine. Falls back to no events
     * where only polling works. */
    ETWATCH_CONFIG_EVENTS_ALL = 1u << 20,
    /* With ETWATCH_CONFIG_EVENTS: a waker of 0 for wake-ups in any interrupt, not only on an idle
     * CPU. eBPF: also FAULTS and UNTHROTTLE events; each page fault then costs more. ETW: in_fault
     * is known. */
    ETWATCH_CONFIG_EVENTS_CAUSES = 1u << 21,
};

/*
 * Each function may be NULL. All get ctx. After etwatch_monitor_start they run in the library's
 * thread (the first ones inside start itself), else inside open, poll and stop; see "Threads and
 * callbacks" above.
 */
struct etwatch_devices;

struct etwatch_callbacks {
    uint32_t size;
    uint32_t reserved;
    void *ctx;
    /* In order: a START before the first SAMPLE of a process, its EXIT after the last. */
    void (*on_samples)(void *ctx, const struct etwatch_samples *batch);
    void (*on_events)(void *ctx, const struct etwatch_events *batch);
    void (*on_loss)(void *ctx, const struct etwatch_loss *loss);
    void (*on_alert)(void *ctx, const struct etwatch_alert *alert);
    /* Once, as the last callback of a run that ends by itself: NULL if the recording is finished,
     * else the error. Not after etwatch_monitor_stop, nor if start or open fails. */
    void (*on_end)(void *ctx, const struct etwatch_error_info *error);
    /* Readings of devices, if a metric of theirs is measured: see device.h. Before the samples of
     * the same time. */
    void (*on_devices)(void *ctx, const struct etwatch_devices *batch);
};

struct etwatch_session_options;

/* How often some metrics are read at most; etwatch_metric_info has those with a rate. FIXED. */
struct etwatch_rate {
    struct etwatch_metric_set metrics;
    double hz; /* 0.01 to 1000 */
};

struct etwatch_gpu_trace;

struct etwatch_config {
    uint32_t size;
    uint32_t flags; /* enum etwatch_config_flag */

    /* Source. */
    uint32_t source; /* enum etwatch_source; 0 = auto */
    uint32_t trace_count;
    const char *const *traces; /* ETWATCH_SOURCE_ETL: the recordings, merged by time */
    const char *proc_root;     /* NULL = "/proc" */
    const char *session;       /* ETW: read this session and do not change it; NULL: an own one */
    const struct etwatch_session_options *session_options; /* of the own session; may be NULL */

    /* Rate, cost and limits. */
    double hz;              /* samples a second, 0.1 to 1000; 0 = 10 */
    double budget_percent;  /* of one core, user space and kernel; 0 = 2 */
    uint32_t latency_ms;    /* how long samples may be held; 0 = 400 */
    uint32_t queue_samples; /* for etwatch_monitor_read; 0 = 10000 */
    uint32_t max_processes; /* table limit; 0 = 65536 */
    uint32_t max_threads;   /* table limit; 0 = 131072 */

    /* Processes to watch, with their descendants. A name "python" also matches python3.11 and
     * python.exe; "py*" is a glob. A uid on Windows is the number that etwatch derives from the
     * SID; it cannot be combined with pids or names, and a process that exited before its owner was
     * queried matches no uid. Cgroups are paths below the cgroup v2 root and include sub-groups;
     * "container:ID" is the container with an id that starts so (docker, podman, containerd,
     * cri-o). */
    const uint32_t *pids;
    const char *const *names;
    const uint32_t *uids;
    const char *const *cgroups;
    uint32_t pid_count, name_count, uid_count, cgroup_count;

    /* Processes to exclude even if selected above; their descendants are not excluded. */
    const uint32_t *exclude_pids;
    const char *const *exclude_names; /* globs as in names */
    const uint32_t *exclude_uids;
    const char *const *exclude_cgroups;
    uint32_t exclude_pid_count, exclude_name_count, exclude_uid_count, exclude_cgroup_count;

    /* Metrics to measure (see etwatch_metrics_named); empty = ETWATCH_METRIC_DEFAULT, which may be
     * combined with others. Other metrics cost nothing and are unknown. How a process exited is
     * always reported. */
    struct etwatch_metric_set metrics;
    /* Metrics to poll in addition to the events of a source that has events (ebpf, etw):
     * gauges of memory, threads and handles. EINVAL for others: a counter has one source. */
    struct etwatch_metric_set polled_metrics;
    const struct etwatch_rate *rates; /* later ones override earlier ones */

    /* Conditions such as "cpu_percent>80 for 20ms", at most 16. CPU time is evaluated in windows of
     * a quarter of that time (5 ms without one), at least 1 ms, whatever hz is; other metrics, and
     * all of them when polling, are evaluated in the samples. */
    const char *const *alerts;
    uint32_t rate_count, alert_count;

    /* Samples of this many processes with the most of a metric (counters: a second) in each
     * interval; all others become one sample with ETWATCH_SAMPLE_OTHER. 0 = all. */
    uint32_t top_n;
    uint32_t top_n_metric; /* enum etwatch_metric; 0 = cpu_percent */

    /* Devices (device.h). They are read if a metric of theirs is measured. */
    const char *sys_root;     /* NULL = "/sys" */
    const char *nvml_library; /* NULL = where the driver installs it */
    /* The most memory that the library holds for this monitor at a time; not what callbacks
     * allocate, nor the buffers of the kernel. Near it the tables do not grow: idle threads are
     * evicted, further processes and threads are a loss of stage ETWATCH_LOSS_TABLE. A monitor that
     * cannot even list the processes, when it starts or after one was added, fails with
     * ETWATCH_ELIMIT. 0 = 1 GiB. */
    uint64_t max_memory_bytes;
    /* Exact GPU times of CUDA programs (gpu.h), read in each delivery, which then waits 400 ms for
     * them; with polling a sample has the GPU time of 400 ms before. NULL = none. */
    struct etwatch_gpu_trace *gpu_trace;
    const char *amdsmi_library; /* see struct etwatch_device_options */
};

struct etwatch_stats {
    uint32_t size;
    uint32_t source;
    double hz_requested;
    double hz_reached;   /* intervals delivered a second, over the whole run */
    double hz_effective; /* the rate after the budget was applied */
    uint64_t samples;
    uint64_t events; /* taken from the source */
    uint64_t lost;
    uint64_t undecoded;
    uint64_t late;
    uint64_t wakeups;
    uint64_t processes; /* in the table now */
    uint64_t threads;
    uint64_t self_rss_bytes;
    uint64_t self_rss_peak_bytes;
    double self_cpu_percent;    /* of one core: user space and kernel together */
    double self_kernel_percent; /* the kernel part; < 0: unknown */
    uint64_t duration_ns;
    uint64_t queue_dropped;
    uint64_t step_ns;           /* time in all wake-ups: reading the source, delivering samples */
    uint64_t step_max_ns;       /* the longest one */
    double self_sensor_percent; /* the part of self_cpu_percent of the threads that read devices */
};

/* The source and what it can measure: the first line of every output. */
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

/* Over all intervals since the process was first seen; idle intervals count as 0. FIXED. */
struct etwatch_aggregate {
    uint64_t count;
    double avg, max, p95, p99;
};

/* ----------------------------------------------------------------- monitor */

struct etwatch_monitor;

/* Checks the configuration and makes a monitor; nothing is watched yet. Both structs and everything
 * that config points to are copied; callbacks may be NULL. Works in any callback. */
ETWATCH_API int etwatch_monitor_new(const struct etwatch_config *config,
                                    const struct etwatch_callbacks *callbacks,
                                    struct etwatch_monitor **ret_monitor,
                                    struct etwatch_error_info *reterr);
/* Stops if it runs, and frees. NULL is fine. No other thread may be inside a call with this
 * monitor. Inside one of its callbacks it does nothing. */
ETWATCH_API void etwatch_monitor_free(struct etwatch_monitor *monitor);

/* Starts watching with a thread of the library. May follow a stop. In a callback: ETWATCH_ESTATE.
 */
ETWATCH_API int etwatch_monitor_start(struct etwatch_monitor *monitor,
                                      struct etwatch_error_info *reterr);
/* Starts watching without a thread: call etwatch_monitor_poll. In a callback: ETWATCH_ESTATE. */
ETWATCH_API int etwatch_monitor_open(struct etwatch_monitor *monitor,
                                     struct etwatch_error_info *reterr);
/* Waits up to timeout_ms (-1: until the next delivery) and delivers what is due through the
 * callbacks. Returns the number of samples delivered. ETWATCH_ESTATE: not after
 * etwatch_monitor_open, or in a callback. A recording does not wait. A run that ends by itself
 * (recording finished, or an error) is stopped by the call that delivers its last samples, after
 * on_end; the next call returns ETWATCH_ESTATE. */
ETWATCH_API int etwatch_monitor_poll(struct etwatch_monitor *monitor, int timeout_ms,
                                     struct etwatch_error_info *reterr);
/* Delivers what is left and stops; the error that ended the run before, if there was one. Safe to
 * call twice. In a callback it only requests the end: the monitor stops after the callback. */
ETWATCH_API int etwatch_monitor_stop(struct etwatch_monitor *monitor);
/* The error that ended the latest run by itself: its code, with the details in ret_error (may be
 * NULL). 0: there was none. Kept until the next start or open. Works in a callback. */
ETWATCH_API int etwatch_monitor_last_error(struct etwatch_monitor *monitor,
                                           struct etwatch_error_info *ret_error);

/* Takes up to max samples out of the queue (ETWATCH_CONFIG_QUEUE), waiting up to timeout_ms (-1:
 * as long as it takes) for the first. Returns their number. *ret_batch, with its `size` set by the
 * caller, then shows memory of the library, which is valid until the next read of this monitor:
 * threads that read at the same time use etwatch_monitor_read_copy. Samples in the queue have no
 * cmdline. When the queue is empty: the error that ended the run, or ETWATCH_ESTATE after the end
 * of a recording. In a callback it does not wait. */
ETWATCH_API int etwatch_monitor_read(struct etwatch_monitor *monitor, size_t max, int timeout_ms,
                                     struct etwatch_samples *ret_batch);

/* Always enough for one sample and its strings, in this and later versions. */
#define ETWATCH_READ_COPY_MIN 16384

/* The same into memory of the caller: the samples from the beginning of the buffer, which must be
 * aligned to 8 bytes and have at least ETWATCH_READ_COPY_MIN, directly followed by their strings,
 * each distinct string once. Samples that do not fit are left for the next read. ret_used may be
 * NULL: the number of bytes used. */
ETWATCH_API int etwatch_monitor_read_copy(struct etwatch_monitor *monitor, void *buffer,
                                          size_t buffer_size, size_t max, int timeout_ms,
                                          struct etwatch_samples *ret_batch, size_t *ret_used);

/* Watches one more process and its descendants, or one less; also while running. In a callback the
 * change is applied when the callback has returned, and its errors are not reported (except
 * ETWATCH_ENOENT of add). */
ETWATCH_API int etwatch_monitor_add(struct etwatch_monitor *monitor, uint32_t pid);
ETWATCH_API int etwatch_monitor_remove(struct etwatch_monitor *monitor, uint32_t pid);

/* Totals since the process started, and its latest gauges, as type SAMPLE. Strings are NULL, except
 * the name if buffer (buffer_size bytes) is given to hold it. Works in a callback. */
ETWATCH_API int etwatch_monitor_snapshot(struct etwatch_monitor *monitor, uint32_t pid,
                                         struct etwatch_sample *ret_sample, char *buffer,
                                         size_t buffer_size);
/* Average, maximum and percentiles of cpu_percent or rss_bytes of one process. Works in a callback.
 */
ETWATCH_API int etwatch_monitor_aggregate(struct etwatch_monitor *monitor, uint32_t pid,
                                          uint32_t metric, struct etwatch_aggregate *ret_aggregate);
/* Work in a callback, and after a stop: then of the latest run. */
ETWATCH_API int etwatch_monitor_stats(struct etwatch_monitor *monitor,
                                      struct etwatch_stats *ret_stats);
ETWATCH_API int etwatch_monitor_meta(struct etwatch_monitor *monitor,
                                     struct etwatch_meta *ret_meta);

/* ------------------------------------------------------------------ doctor */

enum etwatch_check_state {
    ETWATCH_CHECK_OK = 0,
    ETWATCH_CHECK_WARN = 1, /* works with a restriction: see cost */
    ETWATCH_CHECK_FAIL = 2,
};

/* One probe: what it is, what was found, what is not possible without it, the exact fix. */
struct etwatch_check {
    uint32_t size;
    uint32_t state;
    const char *id; /* "btf", "cap_bpf", …; stable */
    const char *what;
    const char *found;
    const char *cost; /* "" when ok */
    const char *fix;  /* "" when ok */
};

/* Probes what works on this system and calls on_check for each probe; leaves nothing behind. */
ETWATCH_API int etwatch_doctor(const char *proc_root,
                               void (*on_check)(void *ctx, const struct etwatch_check *check),
                               void *ctx);

#ifdef __cplusplus
}
#endif

#endif /* ETWATCH_H */
