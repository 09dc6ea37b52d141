/* SPDX-License-Identifier: MIT */
/* Internal interface between the files of the Perfetto sink. */
#ifndef EW_SINK_PERFETTO_H
#define EW_SINK_PERFETTO_H

#include "base/proto.h"
#include "model/perfetto.h"
#include "sink/deflate.h"
#include "sink/sink.h"

enum { EW_PF_ROWS_MAX = 1 << 16, EW_PF_COUNTER_MAX = 17, EW_PF_CPUS_MAX = 1024 };

/* A process or thread that was written. Its tracks are uuid, uuid + 1, ... */
struct ew_pf_row {
    uint32_t pid, tid;
    uint64_t start_ns;
    uint64_t uuid;
    uint64_t end_ns;    /* of its last sample */
    uint64_t begin_ns;  /* start of its lifetime slice; 0: none */
    uint64_t shown_ns;  /* its start time as written to the trace */
    uint32_t described; /* bit per counter with a track */
    double shown[EW_PF_COUNTER_MAX];
    char *name;  /* as last written; NULL: unknown */
    char *start; /* its START as a packet, for a restart; NULL: none */
    size_t start_size;
    struct ew_pf_row *before, *next; /* in the order in which they were added */
};

/* Rows by (pid, start, tid): open addressing; removals leave no holes. The hash is seeded, so rows
 * are written in the order of the list, never in that of the cells. */
struct ew_pf_rows {
    struct ew_pf_row *first, *last;
    struct ew_pf_row **cells;
    uint32_t count, mask;
};

struct ew_pf_row *ew_pf_rows_find(const struct ew_pf_rows *rows, uint32_t pid, uint64_t start_ns,
                                  uint32_t tid);
/* Adds a row. At the limit all rows are dropped, and later written again. */
struct ew_pf_row *ew_pf_rows_add(struct ew_pf_rows *rows, uint32_t pid, uint64_t start_ns,
                                 uint32_t tid);
void ew_pf_rows_remove(struct ew_pf_rows *rows, struct ew_pf_row *row);
void ew_pf_rows_done(struct ew_pf_rows *rows);

struct ew_pf_cpu;
struct ew_pf_device;
struct ew_pf_span_thread;
struct ew_pf_gpu;

/* The process of a thread as written to the trace: by tid, the newest wins. */
struct ew_pf_thread {
    uint32_t tid, pid;
    bool named;
    uint32_t started_tid; /* the last thread of this cell with a known start */
    uint64_t started_ns;  /* Unix */
};

struct ew_pf_sink {
    struct etwatch_sink base;
    struct ew_buf packets;         /* whole packets not yet written */
    struct ew_deflate *compressor; /* NULL: this build does not compress */
    bool begun, named;
    uint64_t unix_minus_boot_ns;
    struct etwatch_meta meta; /* size 0: unknown */
    uint64_t end_ns;          /* of a recording that is converted as a whole; 0: unknown */
    uint64_t next_uuid;
    struct ew_pf_rows rows;
    struct ew_pf_cpu *cpus[EW_PF_CPUS_MAX];
    uint32_t cpu_count; /* highest used + 1 */
    bool stream_lost;
    bool etw;                             /* bundles are in the ETW format */
    uint32_t etw_running[EW_PF_CPUS_MAX]; /* tid + 1 of the running thread; 0: unknown */
    struct ew_pf_thread *threads;         /* by hash of tid */
    uint8_t *processes;                   /* two bits per pid (modulo): enum process_mark */
    struct ew_pf_device *devices;
    uint32_t device_count;
    struct ew_pf_span_thread *span_threads;
    uint32_t span_thread_count, span_last;
    struct ew_pf_gpu *gpu; /* tracks of GPU operations; NULL: none yet */
};

/* perfetto.c */
/* Opens a packet with its time (Unix) and returns the mark for ew_pf_packet_end. */
size_t ew_pf_packet(struct ew_pf_sink *sink, uint64_t t_ns);
void ew_pf_packet_end(struct ew_pf_sink *sink, size_t mark);
/* Writes the start of the trace, once. */
void ew_pf_begin(struct ew_pf_sink *sink);
/* Compresses waiting packets into the output if they fill a block; all: in any case. */
void ew_pf_pack(struct ew_pf_sink *sink, bool all);

/* perfetto_sample.c */
void ew_pf_sample(struct etwatch_sink *sink, const struct etwatch_sample *sample);
/* Writes the numbers of a sample as annotations of the open instant. */
void ew_pf_put_numbers(struct ew_pf_sink *sink, const struct etwatch_sample *sample);
/* Sets the counters of ended intervals to 0. */
void ew_pf_end_counters(struct ew_pf_sink *sink);
/* Writes the descriptors of all existing processes again. */
void ew_pf_describe_again(struct ew_pf_sink *sink);
/* Opens one of etwatch's own instants; then follow its annotations and ew_pf_packet_end. */
size_t ew_pf_instant(struct ew_pf_sink *sink, uint64_t t_ns, uint64_t track, enum ew_pf_event event,
                     size_t *ret_inner);
void ew_pf_put_u64(struct ew_pf_sink *sink, uint32_t iid, uint64_t value);
void ew_pf_put_text(struct ew_pf_sink *sink, uint32_t iid, const char *text);
/* Annotations with a name that is not interned. */
void ew_pf_put_named(struct ew_pf_sink *sink, const char *name, uint64_t value);
/* The words of a set after the first, as far as they are not 0: see EW_PF_SET_NAMES. */
void ew_pf_put_set_rest(struct ew_pf_sink *sink, const char *const names[ETWATCH_METRIC_SET_WORDS],
                        const struct etwatch_metric_set *set);
void ew_pf_put_named_text(struct ew_pf_sink *sink, const char *name, const char *text);
void ew_pf_put_named_double(struct ew_pf_sink *sink, const char *name, double value);

/* perfetto_span.c */
void ew_pf_span(struct etwatch_sink *sink, const struct etwatch_span *span);
void ew_pf_operator(struct etwatch_sink *sink, const struct etwatch_operator *op);
/* Tracks are described again. */
void ew_pf_spans_again(struct ew_pf_sink *sink);
void ew_pf_spans_done(struct ew_pf_sink *sink);

/* perfetto_sched.c */
void ew_pf_event(struct etwatch_sink *sink, const struct etwatch_event *event);
/* Writes the collected events of all CPUs to packets. */
void ew_pf_sched_flush(struct ew_pf_sink *sink);
void ew_pf_sched_done(struct ew_pf_sink *sink);
/* The buffer for Windows events of this CPU; NULL: invalid CPU, or out of memory. */
struct ew_buf *ew_pf_etw_events(struct ew_pf_sink *sink, uint32_t cpu);
/* Writes the process of a thread to the trace. */
void ew_pf_thread(struct ew_pf_sink *sink, uint32_t pid, uint32_t tid, const char *name,
                  uint64_t t_ns);
/* The time of the event with which the thread started, if it was seen and is not before start_ns;
 * else start_ns. Perfetto treats a thread with another start time, or one mentioned before that
 * event, as a different thread with the same id. */
uint64_t ew_pf_start_of(const struct ew_pf_sink *sink, uint32_t tid, uint64_t start_ns);
/* The first track id of a process or thread. preexisting: it existed before the recording. */
uint64_t ew_pf_take_uuid(struct ew_pf_sink *sink, uint32_t pid, uint32_t tid, bool preexisting);
/* The name of a process that has no samples. */
void ew_pf_name(struct etwatch_sink *sink, uint32_t pid, const char *name);
/* The process is already described in the trace. */
void ew_pf_process_described(struct ew_pf_sink *sink, uint32_t pid);
/* The thread is already described in the trace. */
void ew_pf_thread_described(struct ew_pf_sink *sink, uint32_t pid, uint32_t tid);

/* perfetto_etw.c */
bool ew_pf_wants_fields(const struct etwatch_trace_event *event);
void ew_pf_trace_event(struct etwatch_sink *sink, const struct etwatch_trace_event *event);
void ew_pf_trace(struct etwatch_sink *sink, const struct etwatch_trace_summary *trace);

/* perfetto_device.c */
void ew_pf_device(struct etwatch_sink *sink, const struct etwatch_device *device);
void ew_pf_devices_done(struct ew_pf_sink *sink);
/* Their tracks are described again before their next values. */
void ew_pf_devices_again(struct ew_pf_sink *sink);

/* perfetto_gpu.c */
void ew_pf_gpu_op(struct etwatch_sink *sink, const struct etwatch_gpu_op *op);
/* Writes what waits for its process; all: also if that was never seen. */
void ew_pf_gpu_flush(struct ew_pf_sink *sink, bool all);
void ew_pf_gpu_again(struct ew_pf_sink *sink);
void ew_pf_gpu_done(struct ew_pf_sink *sink);

/* perfetto_report.c */
void ew_pf_put_system(struct ew_pf_sink *sink, const struct etwatch_trace_summary *trace);
void ew_pf_total(struct etwatch_sink *sink, const struct etwatch_sample *total,
                 const struct etwatch_metric_set *estimated);

/* Interning ids of annotations: the index of the value or metric in its list, plus an offset. */
#define EW_PF_IID(name) ((uint32_t)EW_PF_V_##name + 1)
enum { EW_PF_METRIC_IID = 64 };

#endif
