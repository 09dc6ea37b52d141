/* SPDX-License-Identifier: MIT */
/*
 * Sinks: samples, events and statistics in, text out.
 *
 * A sink owns no file and no thread. It formats its input and passes whole lines to a write
 * function; etwatch_sink_flush at the end of a batch results in one write. Use it inside
 * on_samples, or with any other source of samples.
 *
 * Order: meta, then samples, events, windows and losses as they occur, then stats. Calls return 0
 * or a negative ETWATCH_E* code; once a write has failed every call returns that code and does
 * nothing. A sink may be used by one thread at a time, also inside callbacks; the write function
 * must not use it. Structs are only read during the call. The rules of etwatch.h hold.
 */
#ifndef ETWATCH_SINK_H
#define ETWATCH_SINK_H

#include <etwatch/device.h>
#include <etwatch/etwatch.h>
#include <etwatch/gpu.h>
#include <etwatch/span.h>
#include <etwatch/system.h>
#include <etwatch/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

enum etwatch_format {
    ETWATCH_FORMAT_TABLE = 1,    /* for people: blocks of aligned columns, with units */
    ETWATCH_FORMAT_JSONL = 2,    /* JSON Lines: one object a line, always with every name */
    ETWATCH_FORMAT_CSV = 3,      /* RFC 4180 with one header line; an unknown value is empty. Texts
                                    are safe to show and to open in a spreadsheet: control
                                    characters are escaped (\x1b), and what looks like a formula
                                    gets a ' in front. */
    ETWATCH_FORMAT_PERFETTO = 4, /* a trace (.pftrace): whole packets instead of whole lines */
    ETWATCH_FORMAT_CSV_RAW = 5,  /* CSV with unchanged texts */
};

enum etwatch_sink_flag {
    ETWATCH_SINK_CMDLINE = 1u << 0, /* with `cmdline` */
    ETWATCH_SINK_COLOR = 1u << 1,   /* TABLE: with ANSI colours */
    ETWATCH_SINK_PAYLOAD = 1u << 2, /* recorded events: the payload in hexadecimal too */
    ETWATCH_SINK_CLASSES = 1u << 3, /* TABLE: every kind of recorded event, not only its provider */
    ETWATCH_SINK_OVERVIEW = 1u << 4, /* PERFETTO: a track above the processes with the lifetime of
                                        each process that has samples */
};

struct etwatch_sink_options {
    uint32_t size;
    uint32_t flags;             /* enum etwatch_sink_flag */
    const char *host;           /* for meta; NULL = unknown */
    const char *os;             /* for meta, such as "Linux 6.1.0"; NULL = unknown */
    const char *const *columns; /* CSV and TABLE: only these, in this order */
    uint32_t column_count;      /* 0 = the default columns */
    uint32_t block_ms;          /* TABLE: time that one block adds up; 0 = 1000 */
    uint32_t width;             /* TABLE: lines are truncated to this many columns; 0 = never */
    uint32_t reserved;
    /* TABLE: seconds by which local time is ahead of UTC at an instant, for the times it shows;
     * NULL: they are in UTC. Data are in UTC always. */
    int32_t (*utc_offset_s)(uint64_t unix_ns);
};

/* The distribution of the values of one process over a window of intervals. */
struct etwatch_window {
    uint32_t size;
    uint32_t source;
    uint32_t flags; /* ETWATCH_SAMPLE_COMPLETE: no sample in it is incomplete */
    uint32_t pid;
    uint64_t start_ns;
    uint64_t t_ns;  /* end of the window */
    uint64_t dt_ns; /* its length */
    const char *name;
    struct etwatch_aggregate cpu_percent; /* count 0: unknown */
    struct etwatch_aggregate rss_bytes;   /* likewise */
    /* Other metrics, and one spread for each member in ascending order; for a counter, of its
     * growth per interval. */
    struct etwatch_metric_set more;
    const struct etwatch_aggregate *more_spreads;
};

/* See struct etwatch_samples. */
struct etwatch_windows {
    uint32_t size;
    uint32_t stride;
    size_t count;
    const struct etwatch_window *items;
};

static inline const struct etwatch_window *etwatch_window_at(const struct etwatch_windows *batch,
                                                             size_t i)
{
    return (const struct etwatch_window *)(const void *)((const char *)batch->items +
                                                         i * batch->stride);
}

static inline struct etwatch_windows etwatch_windows_of(const struct etwatch_window *items,
                                                        size_t count)
{
    struct etwatch_windows batch = {(uint32_t)sizeof batch, (uint32_t)sizeof *items, count, items};
    return batch;
}

/* Writes all of the bytes, which are whole lines, and returns 0; or a negative ETWATCH_E* code. */
typedef int (*etwatch_write_fn)(void *ctx, const void *bytes, size_t len);

struct etwatch_sink;

/* options may be NULL. EINVAL, with the name in the message, if a column does not exist. */
ETWATCH_API int etwatch_sink_new(uint32_t format, etwatch_write_fn write, void *ctx,
                                 const struct etwatch_sink_options *options,
                                 struct etwatch_sink **ret_sink, struct etwatch_error_info *reterr);
/* An alert as one line of text without its end, cut to size bytes with the terminating 0. Returns
 * the length of the whole text, like snprintf, or ETWATCH_ENOMEM. */
ETWATCH_API int etwatch_alert_text(const struct etwatch_alert *alert, char *ret_text, size_t size);
/* Frees without writing what is buffered. NULL is fine. */
ETWATCH_API void etwatch_sink_free(struct etwatch_sink *sink);

ETWATCH_API int etwatch_sink_meta(struct etwatch_sink *sink, const struct etwatch_meta *meta);
ETWATCH_API int etwatch_sink_samples(struct etwatch_sink *sink,
                                     const struct etwatch_samples *batch);
ETWATCH_API int etwatch_sink_events(struct etwatch_sink *sink, const struct etwatch_events *batch);
ETWATCH_API int etwatch_sink_windows(struct etwatch_sink *sink,
                                     const struct etwatch_windows *batch);
ETWATCH_API int etwatch_sink_loss(struct etwatch_sink *sink, const struct etwatch_loss *loss);
/* JSONL: an object of type `alert`; nothing in other formats. */
ETWATCH_API int etwatch_sink_alert(struct etwatch_sink *sink, const struct etwatch_alert *alert);
/* JSONL: objects of the types "span" and "span_group"; PERFETTO: each span is a slice on the track
 * of its thread; nothing in other formats. */
ETWATCH_API int etwatch_sink_span(struct etwatch_sink *sink, const struct etwatch_span *span);
/* JSONL: an object of type "operator"; PERFETTO: a slice; nothing in other formats. */
ETWATCH_API int etwatch_sink_operator(struct etwatch_sink *sink, const struct etwatch_operator *op);
ETWATCH_API int etwatch_sink_span_group(struct etwatch_sink *sink,
                                        const struct etwatch_span_group *group);
/* JSONL: the whole machine, as an object of type `system`; nothing in other formats. */
ETWATCH_API int etwatch_sink_system(struct etwatch_sink *sink, const struct etwatch_system *system);
/* JSONL: objects of type `device`; PERFETTO: counter tracks; nothing in other formats. */
ETWATCH_API int etwatch_sink_devices(struct etwatch_sink *sink,
                                     const struct etwatch_devices *batch);
/* JSONL: an object of type "gpu"; PERFETTO: a slice below the process, or on its thread, joined
 * with the call that launched it; nothing in other formats. */
ETWATCH_API int etwatch_sink_gpu_op(struct etwatch_sink *sink, const struct etwatch_gpu_op *op);
/* JSONL: objects of the types "gpu_process" and "gpu_kernel" or "gpu_stream"; nothing in other
 * formats. */
ETWATCH_API int etwatch_sink_gpu_process(struct etwatch_sink *sink,
                                         const struct etwatch_gpu_process *process);
ETWATCH_API int etwatch_sink_gpu_sum(struct etwatch_sink *sink, const struct etwatch_gpu_sum *sum);
/* The last object of the output; TABLE ends its open block first. */
ETWATCH_API int etwatch_sink_stats(struct etwatch_sink *sink, const struct etwatch_stats *stats);
/* Writes out every complete line so far. */
ETWATCH_API int etwatch_sink_flush(struct etwatch_sink *sink);
/* PERFETTO on Linux: the name of a process that exists, and of its first thread; events may have
 * its threads although it has no samples. After etwatch_sink_meta or _restart. Nothing in other
 * formats. */
ETWATCH_API int etwatch_sink_name(struct etwatch_sink *sink, uint32_t pid, const char *name);
/* PERFETTO: writes out what is buffered. The output from then on can be read without the output
 * before: a new file, or a part of a ring. ENOTSUP for other formats. */
ETWATCH_API int etwatch_sink_restart(struct etwatch_sink *sink);

/* -------------------------------------------------------------- recordings */

/* A recording as a whole. */
struct etwatch_trace_summary {
    uint32_t size;
    uint32_t file_count;
    const struct etwatch_trace_file *files; /* the `size` of the first is the stride of all */
    const struct etwatch_trace_stats *stats;
    const struct etwatch_trace_system *system; /* NULL: unknown */
    uint64_t from_ns, until_ns;                /* the selected part; 0: all */
};

/* The results of etwatch_trace_report, in its order: the trace first, then kinds of events,
 * processes each followed by its threads, images. A table is written by etwatch_sink_end. */
ETWATCH_API int etwatch_sink_trace(struct etwatch_sink *sink,
                                   const struct etwatch_trace_summary *trace);
ETWATCH_API int etwatch_sink_class(struct etwatch_sink *sink,
                                   const struct etwatch_trace_class *klass);
/* estimated: the metrics that are estimates; NULL = none. */
ETWATCH_API int etwatch_sink_process(struct etwatch_sink *sink,
                                     const struct etwatch_sample *process,
                                     const struct etwatch_metric_set *estimated);
ETWATCH_API int etwatch_sink_image(struct etwatch_sink *sink,
                                   const struct etwatch_trace_image *image);
ETWATCH_API int etwatch_sink_end(struct etwatch_sink *sink);
/* One recorded event with its fields; JSONL and TABLE. */
ETWATCH_API int etwatch_sink_trace_event(struct etwatch_sink *sink,
                                         const struct etwatch_trace_event *event);

/* Whether the sink uses the fields of this event: else they need not be decoded for it. */
ETWATCH_API int etwatch_sink_wants_fields(const struct etwatch_sink *sink,
                                          const struct etwatch_trace_event *event);

/* The name of column i of all columns, in output order; NULL beyond the last. */
ETWATCH_API const char *etwatch_sink_column(uint32_t i);

#ifdef __cplusplus
}
#endif

#endif /* ETWATCH_SINK_H */
