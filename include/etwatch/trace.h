/* SPDX-License-Identifier: MIT */
/*
 * Recordings: .etl and .pftrace files, read on any system and without special rights.
 *
 * A trace is one or several files, merged by time. Read its events with etwatch_trace_next, or add
 * everything up per process with etwatch_trace_report. For the samples of a live monitor, set
 * `traces` in etwatch_config and start a monitor with ETWATCH_SOURCE_ETL.
 *
 * The rules of etwatch.h hold. A trace may be used by one thread at a time; of it, its callbacks
 * may only call etwatch_trace_stats, etwatch_trace_file and etwatch_trace_file_count. Damage in a
 * file does not end the reading: it is counted, with the offset of the first.
 */
#ifndef ETWATCH_TRACE_H
#define ETWATCH_TRACE_H

#include <etwatch/etwatch.h>

#ifdef __cplusplus
extern "C" {
#endif

struct etwatch_trace;

struct etwatch_trace_options {
    uint32_t size;
    uint32_t workers;  /* threads to read with; 0 = one per CPU, at most 8; 1 = only the caller's */
    uint64_t from_ns;  /* only events from here on: ns since the start of the recording */
    uint64_t until_ns; /* and before this; 0 = to the end */
    /* May be NULL. Called now and then inside the calls below; nonzero ends them with
     * ETWATCH_ESTATE (a report first delivers what was read so far). */
    int (*on_progress)(void *ctx, uint64_t bytes_done, uint64_t bytes_all);
    void *ctx;
    /* Only these processes and their descendants; none: all. */
    const uint32_t *pids;
    uint32_t pid_count;
    uint32_t name_count;
    const char *const *names; /* "python" also matches python3.11 and python.exe */
    /* Excluded even if selected above; their descendants are not excluded. */
    const uint32_t *exclude_pids;
    const char *const *exclude_names;
    uint32_t exclude_pid_count;
    uint32_t exclude_name_count;
    /* ETWATCH_CONFIG_NO_SYSTEM: ENOTSUP for a .pftrace of Linux, which does not have that
     * information. ETWATCH_CONFIG_CMDLINE: fields with a command line have their value, secrets
     * masked; otherwise they are null. */
    uint32_t flags;
    uint32_t reserved;
    /* The most memory that the library holds for this trace at a time, including that of its
     * reports, tables and exports; a call that needs more fails with ETWATCH_ELIMIT. 0 = 1 GiB. */
    uint64_t max_memory_bytes;
};

enum etwatch_trace_format {
    ETWATCH_TRACE_ETL = 1,
    ETWATCH_TRACE_PERFETTO = 2,
};

/* The header of one file. Strings are valid as long as the trace. */
struct etwatch_trace_file {
    uint32_t size;
    uint32_t os_major, os_minor, os_build;
    uint32_t cpu_count;
    uint32_t pointer_size;
    uint32_t clock; /* 1 performance counter, 2 system time, 3 CPU cycles, 4 time since boot */
    uint32_t cpu_mhz;
    uint64_t clock_frequency;
    uint32_t log_file_mode;
    uint32_t compressed;
    uint32_t buffer_bytes;
    uint32_t buffers_written; /* according to the header */
    uint64_t events_lost, buffers_lost;
    uint64_t start_ns, end_ns, boot_ns; /* Unix; end 0: the recording was never closed */
    uint64_t file_bytes;
    const char *path;
    const char *session_name;
    uint32_t format;  /* enum etwatch_trace_format */
    uint32_t source;  /* of the recorded data: enum etwatch_source */
    const char *os;   /* such as "Linux 6.1.0"; NULL: see os_major, os_minor, os_build */
    const char *host; /* NULL: unknown */
};

/* What was read so far; complete after the last event or a report. */
struct etwatch_trace_stats {
    uint32_t size;
    uint32_t reserved;
    uint64_t events;    /* in the selected part */
    uint64_t undecoded; /* the fields are unknown, or the payload did not match them */
    uint64_t lost;      /* events, according to the headers and the stream */
    uint64_t lost_buffers;
    uint64_t bad_buffers, bad_events, bad_bytes; /* damage */
    uint64_t late;                               /* too far out of order to be sorted */
    uint64_t first_ns, last_ns;                  /* Unix times of the first and last event */
    uint64_t bytes;
    uint64_t first_bad_offset; /* valid if there was damage */
    uint32_t first_bad_file;
    uint32_t reserved2;
    char first_bad[128];
    /* The clock was set back while this was recorded: the earliest event is this much before the
     * header, and relative times count from it. 0: it was not. */
    uint64_t clock_set_back_ns;
};

ETWATCH_API int etwatch_trace_open(const char *const *paths, size_t count,
                                   const struct etwatch_trace_options *options,
                                   struct etwatch_trace **ret_trace,
                                   struct etwatch_error_info *reterr);
ETWATCH_API void etwatch_trace_free(struct etwatch_trace *trace);
ETWATCH_API size_t etwatch_trace_file_count(const struct etwatch_trace *trace);
ETWATCH_API int etwatch_trace_file(const struct etwatch_trace *trace, size_t i,
                                   struct etwatch_trace_file *ret_file);
ETWATCH_API int etwatch_trace_stats(const struct etwatch_trace *trace,
                                    struct etwatch_trace_stats *ret_stats);

/* ------------------------------------------------------------------ events */

enum etwatch_field_type {
    ETWATCH_FIELD_U64 = 1, /* u */
    ETWATCH_FIELD_I64,     /* i */
    ETWATCH_FIELD_HEX,     /* u: addresses, flags */
    ETWATCH_FIELD_BOOL,    /* u */
    ETWATCH_FIELD_DOUBLE,  /* d */
    ETWATCH_FIELD_TEXT,    /* text: also GUIDs, SIDs, addresses, times, and names of enum values */
    ETWATCH_FIELD_BINARY,  /* bytes */
    ETWATCH_FIELD_NULL,    /* no value */
    ETWATCH_FIELD_ARRAY,   /* its members follow, without names, up to its CLOSE */
    ETWATCH_FIELD_STRUCT,  /* its members follow up to its CLOSE */
    ETWATCH_FIELD_CLOSE,
    ETWATCH_FIELD_FLOAT, /* d, with single precision */
};

/* FIXED. */
struct etwatch_field {
    const char *name; /* terminated; NULL inside arrays */
    uint32_t type;    /* enum etwatch_field_type */
    uint32_t len;     /* of text or bytes */
    union {
        uint64_t u;
        int64_t i;
        double d;
        const char *text; /* UTF-8, terminated */
        const uint8_t *bytes;
    } v;
};

enum etwatch_trace_event_flag {
    ETWATCH_TRACE_HAS_PID = 1u << 0,
    ETWATCH_TRACE_HAS_TID = 1u << 1,
    ETWATCH_TRACE_DECODED = 1u << 2, /* the schema is known and matched */
    ETWATCH_TRACE_HAS_HEADER_IDS = 1u << 3,
    ETWATCH_TRACE_NAMED = 1u << 4, /* its name is known, even if its fields are not */
    /* Linux, a new or exiting thread: it is the first one of its process */
    ETWATCH_TRACE_FIRST_THREAD = 1u << 5,
};

/* One event; everything is valid until the next call with this trace. */
struct etwatch_trace_event {
    uint32_t size;
    uint32_t flags;    /* enum etwatch_trace_event_flag */
    uint64_t t_ns;     /* Unix */
    uint64_t t_rel_ns; /* since the start of the recording, or its earliest event */
    uint64_t t_raw;    /* trace time: the clock of the recording */
    uint32_t cpu;
    uint32_t pid, tid; /* by the payload if it names them, else by the header or the CPU */
    uint32_t id;       /* manifest events, else 0 */
    uint32_t opcode, version, level;
    uint64_t keyword;
    uint8_t provider_guid[16];
    const char *process;  /* name of the process at that time; NULL: unknown */
    const char *provider; /* never NULL */
    const char *event;
    const uint8_t *payload; /* as recorded, nothing is masked; NULL after etwatch_trace_fields if
                               the event has a command line */
    uint32_t payload_size;
    uint32_t field_count;
    const struct etwatch_field *fields; /* only after etwatch_trace_fields */
    uint32_t header_pid, header_tid;    /* of the header: the thread that logged the event */
};

/* The next event in time order: 1, or 0 at the end, or an error. With names, but without fields. */
ETWATCH_API int etwatch_trace_next(struct etwatch_trace *trace,
                                   struct etwatch_trace_event *ret_event,
                                   struct etwatch_error_info *reterr);
/* Decodes the fields of the latest event of etwatch_trace_next. */
ETWATCH_API int etwatch_trace_fields(struct etwatch_trace *trace,
                                     struct etwatch_trace_event *event);
/* Restarts at the beginning. */
ETWATCH_API int etwatch_trace_rewind(struct etwatch_trace *trace);

/* The event that etwatch_trace_next returned last, as a live monitor delivered it when a .pftrace
 * was recorded: a sample (also a start or an exit), or a scheduler event. NULL: it is of another
 * kind, or the recording is an .etl. Valid until the next call with this trace. */
ETWATCH_API const struct etwatch_sample *etwatch_trace_sample(const struct etwatch_trace *trace);
ETWATCH_API const struct etwatch_event *
etwatch_trace_sched_event(const struct etwatch_trace *trace);
/* The source of a .pftrace and its metrics. ENOENT: the file does not have them, as an .etl. */
ETWATCH_API int etwatch_trace_meta(const struct etwatch_trace *trace, size_t i,
                                   struct etwatch_meta *ret_meta);

/* ------------------------------------------------------------------ report */

enum etwatch_class_state {
    ETWATCH_CLASS_RAW,     /* neither the name nor the fields are known */
    ETWATCH_CLASS_PARTLY,  /* only the name */
    ETWATCH_CLASS_DECODED, /* both */
};

/* One kind of event and how often it occurred. */
struct etwatch_trace_class {
    uint32_t size;
    uint32_t id, opcode, version;
    uint32_t decoded; /* its fields are known */
    uint32_t state;   /* enum etwatch_class_state */
    uint64_t count;
    const char *provider, *event;
};

/* One loaded program file or library. */
struct etwatch_trace_image {
    uint32_t size;
    uint32_t pid;
    uint64_t base, bytes;
    uint64_t load_ns, unload_ns; /* Unix; 0: before or after the recording */
    const char *path;
};

enum etwatch_report_flag {
    ETWATCH_REPORT_THREADS = 1u << 0,
    ETWATCH_REPORT_IMAGES = 1u << 1,
    ETWATCH_REPORT_CMDLINE = 1u << 2, /* command lines, secrets masked */
};

/* The machine as a whole, over the recording. */
struct etwatch_trace_system {
    uint32_t size;
    uint32_t cpu_from_switches; /* 0: estimated from profile samples, or unknown */
    uint64_t busy_ns, idle_ns, dpc_ns, isr_ns, unknown_ns;
    uint64_t switches, samples;
};

struct etwatch_report_callbacks {
    uint32_t size;
    uint32_t flags; /* enum etwatch_report_flag */
    /* Called in this order after everything was read, when etwatch_trace_stats is complete.
     * Nonzero ends the report with that code. Each may be NULL. */
    int (*on_system)(void *ctx, const struct etwatch_trace_system *system);
    int (*on_class)(void *ctx, const struct etwatch_trace_class *klass);
    /* Processes in order of start, each followed by its threads: type EXIT, totals over the
     * recording; `estimated`: the metrics that are estimates. */
    int (*on_process)(void *ctx, const struct etwatch_sample *process,
                      const struct etwatch_metric_set *estimated);
    int (*on_image)(void *ctx, const struct etwatch_trace_image *image);
    void *ctx;
};

/* Reads everything from the beginning and adds it up. */
ETWATCH_API int etwatch_trace_report(struct etwatch_trace *trace,
                                     const struct etwatch_report_callbacks *callbacks,
                                     struct etwatch_trace_system *ret_system,
                                     struct etwatch_error_info *reterr);

struct etwatch_span;

/* The spans (etwatch/span.h) of a recording, in the order of their ends. A Perfetto trace of
 * etwatch has those that run --onnx or --spans -o FILE.pftrace wrote, of every process: known are
 * name, session, shape, kind, the times, ns[], cpu_ns and what the flags say; the process is not.
 * An .etl has the inferences of ONNX Runtime and the creations of its sessions, of the selected
 * processes, if the provider Microsoft.ML.ONNXRuntime was enabled with level 5: known are process,
 * thread, name, session, kind and the times, for etwatch_spans_add. Other recordings have none.
 * Reads everything from the beginning, and rewinds. Returns their number or an error. */
ETWATCH_API int etwatch_trace_spans(struct etwatch_trace *trace,
                                    void (*on_span)(void *ctx, const struct etwatch_span *span),
                                    void *ctx, struct etwatch_error_info *reterr);

#ifdef __cplusplus
}
#endif

#endif /* ETWATCH_TRACE_H */
