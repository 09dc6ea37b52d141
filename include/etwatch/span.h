/* SPDX-License-Identifier: MIT */
/*
 * Spans: why was a stretch of work slow? Three parts.
 *
 *   marks      a program marks where a stretch begins and ends (etwatch_span_begin, _end). Without
 *              a watcher a mark costs a few nanoseconds.
 *   receiver   a watcher gets the marks of all processes that have its address in their
 *              environment (ETWATCH_SPANS).
 *   spans      joins marks with the events of a monitor (ETWATCH_CONFIG_EVENTS, _EVENTS_ALL and
 *              _EVENTS_CAUSES) and divides the latency of each span by cause.
 *
 * Marks are part of Linux builds; elsewhere etwatch_marks_new succeeds and nothing is marked, and
 * etwatch_receiver_new returns ETWATCH_ENOTSUP.
 *
 * The rules of etwatch.h hold. Marks may be used by all threads; a receiver, probes and spans by
 * one thread at a time, which for spans includes the thread of a monitor that feeds them. Callbacks
 * run inside the call that names them, on_span and on_operator of spans inside
 * etwatch_spans_advance and _add_operator. In a callback no function may be called with the object
 * that calls it: a callback of a receiver may add to spans.
 */
#ifndef ETWATCH_SPAN_H
#define ETWATCH_SPAN_H

#include <etwatch/etwatch.h>
#include <etwatch/gpu.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------- marks */

struct etwatch_marks;

/* Connects to the watcher that ETWATCH_SPANS names; without one every call below does nothing.
 * The marks may be used by all threads, also in a child after fork (which gets a ring of its
 * own). */
ETWATCH_API int etwatch_marks_new(struct etwatch_marks **ret_marks);
/* Spans that have ended stay readable for the watcher. NULL is fine. */
ETWATCH_API void etwatch_marks_free(struct etwatch_marks *marks);

/* The start of a span; 0 without a watcher. A span may end on another thread. */
ETWATCH_API uint64_t etwatch_span_begin(struct etwatch_marks *marks);
/* Its end. name: what was done ("tokenize"); session: what it was done with (a model, a route), or
 * NULL. Both are copied once per distinct text; texts beyond 64 KB in all become "". */
ETWATCH_API void etwatch_span_end(struct etwatch_marks *marks, uint64_t begun, const char *name,
                                  const char *session);

/* ---------------------------------------------------------------- a span */

enum etwatch_span_kind {
    ETWATCH_SPAN_WORK = 1,      /* marked by the program */
    ETWATCH_SPAN_INFERENCE = 2, /* one run of a session of ONNX Runtime */
    ETWATCH_SPAN_LOAD = 3,      /* the creation of such a session */
    ETWATCH_SPAN_OPERATOR = 4,  /* a node of a model in one inference; only in an operator */
};

/* "work", "inference", "load", "operator"; NULL. */
ETWATCH_API const char *etwatch_span_kind_name(uint32_t kind);

enum etwatch_span_flag {
    ETWATCH_SPAN_COMPLETE = 1u << 0, /* no event of its time is known to be lost */
    ETWATCH_SPAN_FAILED = 1u << 1,   /* the work ended with an error */
    ETWATCH_SPAN_ASYNC = 1u << 2,    /* it did not occupy the thread that began it */
    /* Page faults were measured; else fault_ns is unknown. Result only. */
    ETWATCH_SPAN_HAS_FAULTS = 1u << 3,
    /* By a probe, which sees every process with the library: etwatch_spans drops it if its process
     * was not added. */
    ETWATCH_SPAN_PROBED = 1u << 4,
    /* The GPU operations of its process are known; else gpu_ns, wait_gpu_ns and gpu_kernels are
     * unknown. Result only. */
    ETWATCH_SPAN_HAS_GPU = 1u << 5,
};

/* Why a span took its time. */
enum etwatch_cause_kind {
    ETWATCH_CAUSE_WORK = 0,      /* on a CPU */
    ETWATCH_CAUSE_CPU = 1,       /* ready to run; the CPU ran another thread, which is named */
    ETWATCH_CAUSE_THROTTLED = 2, /* its cgroup had used up its CPU bandwidth */
    ETWATCH_CAUSE_FAULT = 3,     /* in page faults, on a CPU or waiting for the page */
    ETWATCH_CAUSE_DISK = 4,
    ETWATCH_CAUSE_LOCK = 5,    /* asleep until another thread of the process, which is named */
    ETWATCH_CAUSE_PROCESS = 6, /* asleep until another process, which is named */
    ETWATCH_CAUSE_SLEEP = 7,   /* asleep until a timer or a device (a socket) */
    ETWATCH_CAUSE_UNKNOWN = 8, /* events are missing */
    ETWATCH_CAUSE_COUNT = 9,
};

/* "work", "cpu", "throttled", "fault", "disk", "lock", "process", "sleep", "unknown"; NULL. */
ETWATCH_API const char *etwatch_cause_name(uint32_t kind);

/* One other thread or process that a span waited for. FIXED. */
struct etwatch_cause {
    uint32_t kind; /* enum etwatch_cause_kind: CPU, LOCK or PROCESS */
    uint32_t pid;  /* CPU: 0 if the CPU was idle, so that only waking it took time */
    uint32_t tid;  /* LOCK; else 0 */
    uint32_t reserved;
    uint64_t ns;
    char name[16]; /* "": unknown */
};

#define ETWATCH_SPAN_CAUSES 6

/* A mark, and with `ns` and what follows its explanation. The sum of ns[] is end_ns - start_ns. */
struct etwatch_span {
    uint32_t size;
    uint32_t kind;  /* enum etwatch_span_kind */
    uint32_t flags; /* enum etwatch_span_flag */
    uint32_t pid;
    uint32_t tid;     /* began it */
    uint32_t end_tid; /* ended it */
    uint64_t start_ns, end_ns;
    const char *name;                 /* never NULL in a result */
    const char *session;              /* NULL: none */
    const char *thread_name;          /* NULL: unknown. Result only, like all that follows. */
    uint64_t ns[ETWATCH_CAUSE_COUNT]; /* the latency by cause */
    uint64_t cpu_ns;                  /* of the thread itself; includes page faults */
    uint64_t helper_cpu_ns;   /* of threads that the span woke, directly or through others */
    uint64_t helper_ready_ns; /* these threads were ready and on no CPU */
    uint64_t shared_cpu_ns; /* of all other threads of the process: may have worked for the span */
    uint64_t wait_cpu_ns;   /* part of ns[WORK]: asleep while a helper worked */
    uint64_t fault_count;   /* page faults of the thread */
    uint32_t preempted;     /* times that the thread lost the CPU while it could run */
    uint32_t helpers;       /* number of threads that the span woke */
    uint32_t cause_count;   /* the largest first */
    uint32_t reserved;
    struct etwatch_cause causes[ETWATCH_SPAN_CAUSES];
    const char *shape; /* of the first input of an inference, "16x256"; NULL: unknown */
    /* Of the operations that the thread of the span launched in its time: the time in which at
     * least one of them ran on a GPU (added up over GPUs), which may be after its end. */
    uint64_t gpu_ns;
    uint64_t wait_gpu_ns; /* the thread was in a call that waits for a GPU; part of ns[] too */
    uint32_t gpu_kernels;
    uint32_t reserved2;
};

/* One execution of a node of a model, as ONNX Runtime's own profile states it, and what the kernel
 * saw in its time. */
struct etwatch_operator {
    uint32_t size;
    uint32_t pool_threads; /* of the session, with the calling thread; 0: unknown */
    const char *node;      /* its name in the model */
    const char *provider;  /* "CPUExecutionProvider"; NULL: unknown */
    uint64_t inference_ns; /* end_ns of the inference that it belongs to; 0: unknown */
    double pool_percent;   /* share of the time of these threads on a CPU; negative: unknown */
    const struct etwatch_span *span; /* kind OPERATOR; name: its type, such as "MatMul" */
};

/* ------------------------------------------------------------------ receiver */

struct etwatch_receiver;

/* Listens at an address of its own; nothing exists in the file system. Takes the marks of processes
 * of the same user and of root; a receiver of root also those of its descendants, whatever their
 * user. */
ETWATCH_API int etwatch_receiver_new(struct etwatch_receiver **ret_receiver,
                                     struct etwatch_error_info *reterr);
ETWATCH_API void etwatch_receiver_free(struct etwatch_receiver *receiver);
/* The value of ETWATCH_SPANS for processes to be watched. Valid as long as the receiver. */
ETWATCH_API const char *etwatch_receiver_address(const struct etwatch_receiver *receiver);
/* Calls on_span for each span that has ended since the last call; `last`: the processes have
 * exited, so that an unfinished record counts as lost. unix_minus_raw_ns: anchor_unix_ns -
 * anchor_raw_ns of etwatch_meta. Returns the number of spans or an error. */
ETWATCH_API int etwatch_receiver_read(struct etwatch_receiver *receiver, int64_t unix_minus_raw_ns,
                                      int last,
                                      void (*on_span)(void *ctx, const struct etwatch_span *span),
                                      void *ctx);
/* Calls on_operator for each operator in the profiles of ONNX Runtime that processes have sent; a
 * profile is complete when its session or process has ended, and is read once. Of an operator's
 * span only the fields up to session are set. Returns the number of operators or an error. */
ETWATCH_API int
etwatch_receiver_operators(struct etwatch_receiver *receiver, int64_t unix_minus_raw_ns,
                           void (*on_operator)(void *ctx, const struct etwatch_operator *op),
                           void *ctx);
/* Events of these profiles that could not be read, and profiles without an end. */
ETWATCH_API uint64_t etwatch_receiver_lost_operators(const struct etwatch_receiver *receiver);
/* Spans that were overwritten before they were read, and refused rings. */
ETWATCH_API uint64_t etwatch_receiver_lost(const struct etwatch_receiver *receiver);

/* -------------------------------------------------------------------- probes */

/*
 * Inferences of programs that mark nothing. One inference is one span, however it was started: its
 * latency is that of the run itself, on the thread that executes it.
 *
 *   Linux    uprobes at functions of ONNX Runtime, in every library "*onnxruntime*" that a process
 *            maps (programs in C, C++, C#, Rust or Node, and running Python programs). Any version;
 *            several at once. With the rights of the source ebpf; nothing stays in the kernel.
 *   Windows  the runtime's own ETW provider, in a session "etwatch-onnx": programs in any language,
 *            unless they disable the runtime's telemetry. With the rights of the source etw.
 */
struct etwatch_probes;

enum etwatch_probes_flag {
    /* Not in the Python package: its inferences are marked (run --onnx). Windows: no effect. */
    ETWATCH_PROBES_NO_PYTHON = 1u << 0,
    /* Only in the Python package; Windows: ETWATCH_ENOTSUP. Both: ETWATCH_EINVAL. */
    ETWATCH_PROBES_ONLY_PYTHON = 1u << 1,
};

struct etwatch_probes_options {
    uint32_t size;
    uint32_t flags; /* enum etwatch_probes_flag */
};

struct etwatch_probes_stats {
    uint32_t size;
    uint32_t libraries; /* with probes; Windows: 0 */
    uint32_t unusable;  /* libraries in which no inference can be seen */
    uint32_t reserved;
    uint64_t spans;
    uint64_t lost;     /* calls that were seen and not delivered */
    char problem[160]; /* of the last library that is unusable; "" */
};

/* From now on libraries get their probes when they are mapped, by a thread of the library. Between
 * the mapping and the probe lie some 30 ms: a session is usually created later than that. */
ETWATCH_API int etwatch_probes_new(const struct etwatch_probes_options *options,
                                   struct etwatch_probes **ret_probes,
                                   struct etwatch_error_info *reterr);
ETWATCH_API void etwatch_probes_free(struct etwatch_probes *probes);
/* Probes the libraries that a process has mapped already; pid 0: those of every process. Does not
 * wait for it. */
ETWATCH_API int etwatch_probes_add_process(struct etwatch_probes *probes, uint32_t pid);
/* Calls on_span for each span of every process that has ended since the last call; see
 * etwatch_receiver_read. Those of a process that is not watched are for the caller to drop. The
 * session is the file name of the model, if it is known, else "session 1". */
ETWATCH_API int etwatch_probes_read(struct etwatch_probes *probes, int64_t unix_minus_raw_ns,
                                    void (*on_span)(void *ctx, const struct etwatch_span *span),
                                    void *ctx);
ETWATCH_API int etwatch_probes_stats(struct etwatch_probes *probes,
                                     struct etwatch_probes_stats *ret_stats);

/* ---------------------------------------------------------------------- spans */

struct etwatch_spans;

struct etwatch_spans_options {
    uint32_t size;
    uint32_t reserved;
    uint64_t history_ns;  /* how much of the past is kept for spans to come; 0 = 20 s */
    uint64_t history_max; /* entries in all; 0 = 2 million (48 MB) */
    void *ctx;
    /* Each explained span, by its end. May be NULL. */
    void (*on_span)(void *ctx, const struct etwatch_span *span);
    /* Each operator that was added, explained. May be NULL. */
    void (*on_operator)(void *ctx, const struct etwatch_operator *op);
};

ETWATCH_API int etwatch_spans_new(const struct etwatch_spans_options *options,
                                  struct etwatch_spans **ret_spans);
ETWATCH_API void etwatch_spans_free(struct etwatch_spans *spans);
/* The threads of this process may run spans, or work for them. Call it when the process starts. */
ETWATCH_API int etwatch_spans_add_process(struct etwatch_spans *spans, uint32_t pid,
                                          const char *name);
/* The events of a monitor in their order, and its losses. */
ETWATCH_API int etwatch_spans_add_event(struct etwatch_spans *spans,
                                        const struct etwatch_event *event);
ETWATCH_API int etwatch_spans_add_loss(struct etwatch_spans *spans,
                                       const struct etwatch_loss *loss);
/* A GPU operation of a trace (etwatch/gpu.h), and the state of a traced process: call it for each
 * process after each reading of the trace. Operations arrive some 100 ms after their end, so
 * etwatch_spans_advance may only be called for what ended a second ago; see
 * etwatch_spans_late_gpu_ops. */
ETWATCH_API int etwatch_spans_add_gpu_op(struct etwatch_spans *spans,
                                         const struct etwatch_gpu_op *op);
ETWATCH_API int etwatch_spans_add_gpu_process(struct etwatch_spans *spans,
                                              const struct etwatch_gpu_process *process);
/* Operations that arrived after their span was explained. */
ETWATCH_API uint64_t etwatch_spans_late_gpu_ops(const struct etwatch_spans *spans);
/* The same for whole batches: they fit etwatch_callbacks, with the spans as ctx, so that a monitor
 * feeds them without a call into the program. Processes that start are added. */
ETWATCH_API void etwatch_spans_on_samples(void *spans, const struct etwatch_samples *batch);
ETWATCH_API void etwatch_spans_on_events(void *spans, const struct etwatch_events *batch);
ETWATCH_API void etwatch_spans_on_loss(void *spans, const struct etwatch_loss *loss);
/* A span that has ended, with Unix times: its first fields up to session. */
ETWATCH_API int etwatch_spans_add(struct etwatch_spans *spans, const struct etwatch_span *span);
/* An operator, as etwatch_receiver_operators delivers it: explained and delivered to on_operator at
 * once. Add it after the inference that it belongs to was explained, and before the history of its
 * time is dropped (history_ns). */
ETWATCH_API int etwatch_spans_add_operator(struct etwatch_spans *spans,
                                           const struct etwatch_operator *op);
/* Explains the spans that ended before t_ns: up to then all events have been added. UINT64_MAX: all
 * of them; the history is then kept. 0: those before the latest event, as events of all CPUs are
 * delivered together. */
ETWATCH_API int etwatch_spans_advance(struct etwatch_spans *spans, uint64_t t_ns);

/* Events and spans that found no room: statistics keep the first 200,000 spans. */
ETWATCH_API uint64_t etwatch_spans_dropped(const struct etwatch_spans *spans);

enum etwatch_strip_state {
    ETWATCH_STRIP_RUN = 1,
    ETWATCH_STRIP_READY = 2, /* could run, and was on no CPU */
    ETWATCH_STRIP_SLEEP = 3,
    ETWATCH_STRIP_DISK = 4,
    ETWATCH_STRIP_FAULT = 5,
};

/* One state of a thread. */
struct etwatch_strip {
    uint32_t size;
    uint32_t state; /* enum etwatch_strip_state */
    uint32_t tid;
    uint32_t cpu; /* RUN; else 0 */
    uint64_t from_ns, to_ns;
    const char *name; /* of the thread; "": unknown */
};

/* What the threads of a process did between two times, thread by thread; only what the history
 * still has, and no unknown states. Returns the number of parts or an error. */
ETWATCH_API int etwatch_spans_strips(const struct etwatch_spans *spans, uint32_t pid,
                                     uint64_t from_ns, uint64_t to_ns,
                                     void (*on_strip)(void *ctx, const struct etwatch_strip *strip),
                                     void *ctx);

/* All spans of one name and session. Times in ns. */
struct etwatch_span_group {
    uint32_t size;
    uint32_t kind;
    const char *name;
    const char *session; /* NULL: none */
    uint64_t count;
    uint64_t failed;
    uint64_t incomplete;
    uint64_t first_ns, last_ns; /* start of the first, end of the last */
    uint64_t p50_ns, p95_ns, p99_ns, max_ns, mean_ns;
    uint64_t cold_ns;                    /* latency of the first span */
    uint64_t total[ETWATCH_CAUSE_COUNT]; /* of all spans */
    uint64_t helper_cpu_ns, helper_ready_ns, shared_cpu_ns, wait_cpu_ns, preempted, fault_count;
    uint32_t helpers; /* the most that one span woke */
    uint32_t cause_count;
    struct etwatch_cause causes[ETWATCH_SPAN_CAUSES]; /* of all spans */
    /* The slowest: those with a latency of at least p99_ns. Average per span, minus that of a
     * typical span (between the 25th and the 75th percentile): the difference by cause. */
    uint64_t slow_count;
    uint64_t slow_mean_ns, typical_mean_ns;
    int64_t excess_ns[ETWATCH_CAUSE_COUNT];
    uint32_t slow_cause_count;
    uint32_t flags; /* ETWATCH_SPAN_HAS_FAULTS and _HAS_GPU, if all spans have it */
    struct etwatch_cause slow_causes[ETWATCH_SPAN_CAUSES]; /* average per slow span */
    /* Of all spans; known if `flags` has ETWATCH_SPAN_HAS_GPU: all of them have it. */
    uint64_t gpu_ns, wait_gpu_ns, gpu_kernels;
};

/* Group i, from 0, in the order of their first span. ETWATCH_EINVAL: none. Strings are valid until
 * the next call of add. */
ETWATCH_API int etwatch_spans_group(struct etwatch_spans *spans, uint32_t i,
                                    struct etwatch_span_group *ret_group);
/* Statistics begin anew: every group has no spans, until it has some again. */
ETWATCH_API int etwatch_spans_clear(struct etwatch_spans *spans);
/* The same for spans that ended before t_ns: what is left is a sliding window. Of each span at most
 * three named causes remain. */
ETWATCH_API int etwatch_spans_forget(struct etwatch_spans *spans, uint64_t t_ns);
/* The sentence: "p99 41.0 ms (median 9.8 ms): 27.0 ms waiting for a CPU (ffmpeg 19.0 ms), ...".
 * Returns its length, or an error; a short buffer gets the beginning. */
ETWATCH_API int etwatch_span_group_text(const struct etwatch_span_group *group, char *text,
                                        size_t text_size);

#ifdef __cplusplus
}
#endif

#endif /* ETWATCH_SPAN_H */
