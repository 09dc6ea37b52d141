/* SPDX-License-Identifier: MIT */
/*
 * Tables for other tools: every table of a recording or of a live run as an Arrow C stream, which
 * pyarrow, pandas, polars and duckdb import without a copy, and as an Arrow file.
 *
 * Column names are those of the JSON output. Times, durations, counts and bytes are int64 (so that
 * differences may be negative), times in Unix nanoseconds; masks and addresses are uint64; an
 * unknown value is null. Text that repeats (names, providers, events) is dictionary-encoded; the
 * codes do not change within one stream, so the dictionary of a batch extends that of the batch
 * before. A batch has at most `batch_rows` rows, and a stream uses the memory of one batch.
 *
 * A stream is independent of the trace or collector it was made from and may outlive it. Several
 * may be read at the same time, each by one thread at a time. The caller releases a stream with its
 * `release`, as Arrow defines it; arrays and schemas live until their own `release`, on any thread.
 * The rules of etwatch.h hold.
 */
#ifndef ETWATCH_ARROW_H
#define ETWATCH_ARROW_H

#include <etwatch/etwatch.h>
#include <etwatch/sink.h>
#include <etwatch/span.h>
#include <etwatch/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The ABI of Arrow, guarded as in Arrow's own header. */
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
    const char *format;
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

#endif /* ARROW_C_DATA_INTERFACE */

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};

#endif /* ARROW_C_STREAM_INTERFACE */

/* ------------------------------------------------------------------ tables */

enum etwatch_table {
    ETWATCH_TABLE_PROCESSES = 1,      /* totals of each process; live: of those that exited */
    ETWATCH_TABLE_THREADS = 2,        /* recordings: totals of each thread */
    ETWATCH_TABLE_CLASSES = 3,        /* recordings: kinds of events */
    ETWATCH_TABLE_IMAGES = 4,         /* recordings: program files and libraries */
    ETWATCH_TABLE_EVENTS = 5,         /* recordings: every event; live: scheduler events */
    ETWATCH_TABLE_SAMPLES = 6,        /* what each process did in each interval */
    ETWATCH_TABLE_THREAD_SAMPLES = 7, /* the same for each thread */
    ETWATCH_TABLE_SPANS = 8,          /* live: every span, whatever its kind */
    ETWATCH_TABLE_INFERENCES = 9,     /* live: the spans of the kinds inference and load */
    ETWATCH_TABLE_OPERATORS = 10,     /* live: the operators of inferences */
    ETWATCH_TABLE_DEVICES = 11,       /* live: every reading of every device, and their problems */
};

/* "processes", …; NULL for anything else. */
ETWATCH_API const char *etwatch_table_name(uint32_t table);

enum etwatch_table_flag {
    ETWATCH_TABLE_FIELDS = 1u << 0,     /* EVENTS: `fields`, a JSON object as text */
    ETWATCH_TABLE_TYPED = 1u << 1,      /* EVENTS: a column for each field, with its type; for few
                                           kinds of events. Reads the recording once more. */
    ETWATCH_TABLE_PAYLOAD = 1u << 2,    /* EVENTS: `payload`, the bytes */
    ETWATCH_TABLE_CMDLINE = 1u << 3,    /* `cmdline` and the command lines in events, secrets
                                           masked; otherwise they are null */
    ETWATCH_TABLE_TIMESTAMPS = 1u << 4, /* times as timestamp[ns, UTC] instead of int64 */
    ETWATCH_TABLE_DENSE = 1u << 5,      /* SAMPLES: also the intervals without activity */
    ETWATCH_TABLE_TAKE = 1u << 6,       /* collector: remove the rows from it */
    ETWATCH_TABLE_CSV_RAW = 1u << 7,    /* export as CSV: ETWATCH_FORMAT_CSV_RAW */
};

enum etwatch_event_filter_flag {
    ETWATCH_FILTER_EXCLUDE = 1u << 0, /* drop the events that match instead of keeping them */
    /* Linux: of the events about new and exiting threads only those of the first thread of a
     * process, or only those of its other threads; other events do not match. */
    ETWATCH_FILTER_FIRST_THREADS = 1u << 1,
    ETWATCH_FILTER_OTHER_THREADS = 1u << 2,
};

/* Matches an event that has all of what is given; patterns as in etwatch_table_options. So events
 * of one provider are selected without those of the same name of another. */
struct etwatch_event_filter {
    uint32_t size;
    uint32_t flags;            /* enum etwatch_event_filter_flag */
    const char *provider;      /* NULL: any */
    const char *const *events; /* any of them */
    const uint32_t *pids;      /* of the process that the event is about, any of them */
    const uint16_t *ids;       /* any of them */
    uint32_t event_count, pid_count, id_count;
    uint32_t reserved;
};

struct etwatch_table_options {
    uint32_t size;
    uint32_t flags;      /* enum etwatch_table_flag */
    uint32_t batch_rows; /* most rows of a batch, 1 to 1048576; 0 = 65536 */
    /* EVENTS: only those that match any of each list; none: all. The whole name or a glob of it,
     * regardless of case; of a provider also its GUID; of an event "Thread/CSwitch" also
     * "Thread" and "CSwitch". */
    uint32_t provider_count;
    const char *const *providers;
    const char *const *events;
    uint32_t event_count;
    uint32_t reserved;
    double hz;         /* SAMPLES: intervals a second, 0.1 to 1000; 0 = 10. A .pftrace has them as
                          recorded, whatever hz is. */
    uint64_t max_rows; /* collector: kept of each table, the oldest are dropped; 0 = 1000000 */
    /* As in etwatch_trace_options. Those of the trace are not used: a stream may outlive it. */
    int (*on_progress)(void *ctx, uint64_t bytes_done, uint64_t bytes_all);
    void *ctx;
    /* EVENTS: only those that match any filter without EXCLUDE (if there is one) and none with it;
     * at most 256. The `size` of the first is the stride of all. */
    const struct etwatch_event_filter *filters;
    /* EVENTS: only those of these processes, without their descendants; none: all. */
    const uint32_t *pids;
    const char *const *names; /* "python" also matches python3.11 and python.exe; globs */
    uint32_t filter_count, pid_count, name_count;
    uint32_t reserved2;
};

/*
 * A table of a recording, read again from its files with the part and the processes that were
 * selected when the trace was opened. Nothing is read before the first batch is requested (TYPED
 * reads once for the names and types of the fields). The trace itself is not changed. options may
 * be NULL.
 */
ETWATCH_API int etwatch_trace_table(const struct etwatch_trace *trace, uint32_t table,
                                    const struct etwatch_table_options *options,
                                    struct ArrowArrayStream *ret_stream,
                                    struct etwatch_error_info *reterr);

/* --------------------------------------------------------------- collecting */

/*
 * Keeps what a monitor delivers as columns, without a call into the program for each sample. Its
 * functions fit etwatch_callbacks, with the collector as ctx:
 *
 *   struct etwatch_callbacks callbacks = {
 *       .size = sizeof callbacks,
 *       .ctx = collector,
 *       .on_samples = etwatch_collector_on_samples,
 *       .on_events = etwatch_collector_on_events,
 *       .on_devices = etwatch_collector_on_devices,
 *   };
 *
 * It may be used from several threads, except free, and in any callback. Memory is bounded by
 * max_rows.
 */
struct etwatch_collector;

struct etwatch_collector_stats {
    uint32_t size;
    uint32_t reserved;
    uint64_t samples, thread_samples, processes, events; /* rows kept now */
    uint64_t dropped; /* rows dropped because of max_rows, or because there was no memory */
    uint64_t spans, inferences, operators; /* rows kept now */
    uint64_t devices;                      /* rows kept now */
};

ETWATCH_API int etwatch_collector_new(const struct etwatch_table_options *options,
                                      struct etwatch_collector **ret_collector,
                                      struct etwatch_error_info *reterr);
/* Streams made from it stay valid. NULL is fine. */
ETWATCH_API void etwatch_collector_free(struct etwatch_collector *collector);

ETWATCH_API void etwatch_collector_on_samples(void *collector, const struct etwatch_samples *batch);
ETWATCH_API void etwatch_collector_on_events(void *collector, const struct etwatch_events *batch);
ETWATCH_API void etwatch_collector_on_devices(void *collector, const struct etwatch_devices *batch);
/* They fit on_span and on_operator of etwatch_spans_options, with the collector as ctx. */
ETWATCH_API void etwatch_collector_on_span(void *collector, const struct etwatch_span *span);
ETWATCH_API void etwatch_collector_on_operator(void *collector, const struct etwatch_operator *op);
ETWATCH_API int etwatch_collector_stats(const struct etwatch_collector *collector,
                                        struct etwatch_collector_stats *ret_stats);

/* The rows kept now of PROCESSES, SAMPLES, THREAD_SAMPLES, EVENTS, SPANS, INFERENCES, OPERATORS or
 * DEVICES, without a copy. flags: 0, or ETWATCH_TABLE_TAKE: each row is delivered once. */
ETWATCH_API int etwatch_collector_table(struct etwatch_collector *collector, uint32_t table,
                                        uint32_t flags, struct ArrowArrayStream *ret_stream);

/* -------------------------------------------------------------------- files */

/*
 * Writes all of a stream of this library as one Arrow file (the IPC file format, also called
 * Feather 2), batch by batch, and releases the stream. Only the dictionaries stay in memory until
 * the end. After an error the file is incomplete. ret_rows may be NULL.
 */
ETWATCH_API int etwatch_arrow_write(struct ArrowArrayStream *stream, etwatch_write_fn write,
                                    void *ctx, uint64_t *ret_rows,
                                    struct etwatch_error_info *reterr);

/*
 * The same as lines: ETWATCH_FORMAT_CSV (a header, then a row a line; an unknown value is empty) or
 * ETWATCH_FORMAT_JSONL (an object a line, with every name). type: the first member of each object,
 * such as "event"; NULL: none. Timestamps are written as integers.
 */
ETWATCH_API int etwatch_table_write(struct ArrowArrayStream *stream, uint32_t format,
                                    const char *type, etwatch_write_fn write, void *ctx,
                                    uint64_t *ret_rows, struct etwatch_error_info *reterr);

#ifdef __cplusplus
}
#endif

#endif /* ETWATCH_ARROW_H */
