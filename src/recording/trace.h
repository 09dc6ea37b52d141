/* SPDX-License-Identifier: MIT */
/* Internal header of src/recording: the open trace, process history, event counts, and the
 * interface to Perfetto traces (perfetto_trace.h has their internals). */
#ifndef EW_RECORDING_TRACE_H
#define EW_RECORDING_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <etwatch/trace.h>

#include "base/alloc.h"
#include "base/error.h"
#include "decode/decode.h"
#include "model/event.h"
#include "model/field.h"
#include "model/record.h"
#include "model/selection.h"
#include "source/etl/reader.h"

/* -------------------------------------------------------------------- process_history */

/*
 * Maps process and thread ids to processes over time. A recording is read once to learn, then
 * queried: so a name that appears only at the end (in the rundown) is known from the start.
 */

struct ew_lifetime {
    uint64_t from_ns; /* 0: existed when the recording began */
    uint64_t to_ns;   /* UINT64_MAX: no end recorded */
    uint32_t id;
    uint32_t older; /* previous lifetime of this id: index + 1, or 0 */
    uint32_t jump;  /* a still older one, or 0: makes a search logarithmic */
    uint32_t depth; /* number of older lifetimes of this id */
    uint32_t pid;   /* of a thread: its process; of a process: its parent, or EW_NO_ID */
    uint32_t name;  /* of a process: offset in the text + 1, or 0 */
    bool selected;  /* valid for processes */
};

struct ew_process_history_table {
    struct ew_lifetime *lifetimes;
    uint32_t count, size;
    uint32_t *newest; /* hash of ids: index of the newest lifetime + 1, or 0 */
    uint32_t mask, used;
};

struct ew_process_history {
    struct ew_process_history_table processes, threads;
    char *text;
    uint32_t text_len, text_size;
    uint64_t refused; /* lifetimes beyond the maximum, or without memory: they have no name */
};

void ew_recording_history_init(struct ew_process_history *history);
void ew_recording_history_done(struct ew_process_history *history);

/* Must be called in time order. */
void ew_recording_history_learn(struct ew_process_history *history, const struct ew_event *event);

/* The index of the lifetime in the table of processes, for data that is kept per lifetime, or
 * UINT32_MAX. */
uint32_t ew_recording_history_find(const struct ew_process_history *history, uint32_t pid,
                                   uint64_t t_ns);
/* The name of the process that had the id at that time, or last before it; NULL: unknown. */
const char *ew_recording_history_name(const struct ew_process_history *history, uint32_t pid,
                                      uint64_t t_ns);
/* The process of the thread that had the id at that time, or last before it. */
bool ew_recording_history_process_of(const struct ew_process_history *history, uint32_t tid,
                                     uint64_t t_ns, uint32_t *ret_pid);

/* Marks the selected processes and their descendants. Call after learning. 0 or ETWATCH_ENOMEM. */
int ew_recording_history_select(struct ew_process_history *history,
                                const struct ew_selection *selection);
/* Whether the process that had the id at that time is selected. */
bool ew_recording_history_selected(const struct ew_process_history *history,
                                   const struct ew_selection *selection, uint32_t pid,
                                   uint64_t t_ns);

/* Forgets the lifetimes that have ended, if half of the maximum is used: for live sessions, which
 * have no end. */
void ew_recording_history_trim(struct ew_process_history *history);

/* Text of a payload as UTF-8, without the directory of a file name. Terminated. */
size_t ew_recording_event_text_copy(const struct ew_event_text *text, char *buffer, size_t size);

/* ---------------------------------------------------------------------- event_classes */

/* Counts the kinds of events of a recording, at minimal cost per event. */

enum { EW_CLASS_GROUPS = 64, EW_CLASS_VERSIONS = 8 };

struct ew_class;

struct ew_event_classes {
    uint64_t *kernel; /* by group, opcode and version */
    struct ew_class *others;
    uint32_t other_count, other_size;
    uint32_t *index; /* hash: index + 1, or 0 */
    uint32_t index_mask;
    uint64_t refused; /* events of kinds beyond the maximum */
    int error;
};

int ew_recording_classes_init(struct ew_event_classes *classes);
void ew_recording_classes_done(struct ew_event_classes *classes);
/* Resets to the state after init. */
void ew_recording_classes_clear(struct ew_event_classes *classes);

void ew_recording_classes_count_other(struct ew_event_classes *classes,
                                      const struct ew_record *record);

static inline void ew_event_classes_count(struct ew_event_classes *classes,
                                          const struct ew_record *record)
{
    if (record->kind == EW_RECORD_KERNEL && record->group < EW_CLASS_GROUPS &&
        record->version < EW_CLASS_VERSIONS)
        classes->kernel[((size_t)record->group << 8 | record->opcode) * EW_CLASS_VERSIONS +
                        record->version]++;
    else
        ew_recording_classes_count_other(classes, record);
}

/*
 * Calls on_class once per kind, most frequent first, named by what the decoder has learned so far.
 * Kinds that differ only in their layout (TraceLogging) are merged. Returns the result of on_class
 * if that is not 0, or ETWATCH_ENOMEM. *ret_unknown: events of kinds without a known layout.
 */
int ew_recording_classes_for_each(const struct ew_event_classes *classes,
                                  struct ew_decoder *decoder,
                                  int (*on_class)(void *ctx,
                                                  const struct etwatch_trace_class *klass),
                                  void *ctx, uint64_t *ret_unknown);

/* ----------------------------------------------------------------------- sched_fields */

enum { EW_SCHED_FIELDS_MAX = 8 };

/* Sets provider, name, CPU, process and thread of a scheduler event, and their flags. */
void ew_recording_sched_describe(const struct etwatch_event *event,
                                 struct etwatch_trace_event *ret_event);
/* Returns the number of fields, at most EW_SCHED_FIELDS_MAX. */
uint32_t ew_recording_sched_fields(const struct etwatch_event *event, struct etwatch_field *fields);

/* --------------------------------------------------------------------- perfetto_trace */

/* Perfetto traces behind the public functions: trace.c calls these if the files are Perfetto
 * traces. */

struct ew_perfetto_trace;

/* 1: the file is a Perfetto trace; 0: it is not, or cannot be read. */
int ew_perfetto_trace_is(const char *path);
/* options and selection must outlive it. */
int ew_perfetto_trace_open(const char *const *paths, size_t count,
                           const struct etwatch_trace_options *options,
                           const struct ew_selection *selection,
                           struct ew_perfetto_trace **ret_trace, struct ew_error *reterr);
void ew_perfetto_trace_free(struct ew_perfetto_trace *trace);
size_t ew_perfetto_trace_file_count(const struct ew_perfetto_trace *trace);
void ew_perfetto_trace_file(const struct ew_perfetto_trace *trace, size_t i,
                            struct etwatch_trace_file *ret_file);
void ew_perfetto_trace_stats(const struct ew_perfetto_trace *trace,
                             struct etwatch_trace_stats *ret_stats);
/* False: file i does not have it. */
bool ew_perfetto_trace_meta(const struct ew_perfetto_trace *trace, size_t i,
                            struct etwatch_meta *ret_meta);
int ew_perfetto_trace_next(struct ew_perfetto_trace *trace, struct etwatch_trace_event *ret_event);
int ew_perfetto_trace_fields(struct ew_perfetto_trace *trace, struct etwatch_trace_event *event);
int ew_perfetto_trace_rewind(struct ew_perfetto_trace *trace);
/* What ew_perfetto_trace_next returned last, as it was recorded; NULL: it is of another kind. */
const struct etwatch_sample *ew_perfetto_trace_sample(const struct ew_perfetto_trace *trace);
const struct etwatch_event *ew_perfetto_trace_event(const struct ew_perfetto_trace *trace);
int ew_perfetto_trace_report(struct ew_perfetto_trace *trace,
                             const struct etwatch_report_callbacks *callbacks,
                             struct etwatch_trace_system *ret_system);

/* Reads everything from the beginning, and rewinds. The number of spans, or an error. */
int ew_perfetto_trace_spans(struct ew_perfetto_trace *trace,
                            void (*on_span)(void *ctx, const struct etwatch_span *span), void *ctx);

/* Reads everything once to determine the selected processes; rewinds the trace. */
int ew_perfetto_trace_learn(struct ew_perfetto_trace *trace, const struct ew_selection *selection);
/* Whether a process is selected, after learning. name: of one of its threads; may be NULL. */
bool ew_perfetto_trace_selected(const struct ew_perfetto_trace *trace,
                                const struct ew_selection *selection, uint32_t pid,
                                const char *name);

/* The fields of one event in the form of the public API; reused for every event. */
struct ew_trace_fields {
    struct ew_fields decoded;
    struct etwatch_field *list;
    uint32_t size;
    char *text; /* terminated copies of names and texts */
    size_t text_size;
    bool withheld; /* the last event has a command line, so its bytes must not be shown */
};

/*
 * Records of a live session instead of files. There is nothing to read twice: schemas and names are
 * learned as they come.
 */
struct ew_trace_feed {
    /* The next records, valid until the next call: their number, 0 if there are none now, or an
     * error. */
    int (*next)(void *ctx, const struct ew_record **ret_records);
    /* TRACE_EVENT_INFO of an event that the decoder does not know, valid until the next call.
     * False: there is none. May be NULL. */
    bool (*schema)(void *ctx, const struct ew_record *record, const void **ret_info,
                   size_t *ret_size);
    void *ctx;
};

/* The issuer of a disk request: before Windows 8 the event of its completion names only the irp. */
struct ew_trace_irp {
    uint64_t irp;
    uint32_t pid, tid;
};

struct etwatch_trace {
    struct ew_alloc_limit *memory;      /* of all its allocations except itself */
    struct ew_perfetto_trace *perfetto; /* NULL: the files are .etl, and the other members apply */
    struct ew_etl_reader *reader;       /* NULL: the records come from feed */
    struct ew_trace_feed feed;
    struct ew_decoder *decoder;
    struct etwatch_trace_options options;
    struct ew_selection selection;
    char **paths;
    uint32_t path_count;
    uint64_t all_bytes;
    int64_t unix_minus_raw_ns;

    /* The walk. */
    const struct ew_record *batch;
    uint32_t batch_count, batch_at;
    const struct ew_record *current; /* last result of etwatch_trace_next */
    bool learned, ended;
    struct ew_process_history history;
    uint32_t *on_cpu;          /* running thread by CPU, or EW_NO_ID */
    struct ew_trace_irp *irps; /* disk requests by hash; NULL: none yet */
    struct ew_trace_fields fields;

    /* Counts of the walk; the counts of the header and the reader are added to them. */
    uint64_t events, undecoded, lost, lost_buffers;
    uint64_t refused;           /* dropped from a report because of full tables or lack of memory */
    uint64_t first_ns, last_ns; /* raw */
    uint64_t progress_bytes;    /* at the last progress report */
};

/* trace.c */
/* A trace of a live session, for ew_trace_next_record, ew_trace_describe and etwatch_trace_fields.
 * Its times are raw times of the feed. */
int ew_trace_open_feed(const struct ew_trace_feed *feed, struct etwatch_trace **ret_trace);
/* Sets the error of a failed call. If the memory limit was the cause, or was reached by a call that
 * otherwise succeeded, returns ETWATCH_ELIMIT, else rc. */
int ew_trace_result(const struct etwatch_trace *trace, int rc, struct etwatch_error_info *reterr);
/* Reports progress of one of `passes` passes; ETWATCH_ESTATE if the caller cancels. */
int ew_trace_progress(struct etwatch_trace *trace, uint32_t pass, uint32_t passes, bool always);
/* Resets the counts and rewinds the reader. */
int ew_trace_restart(struct etwatch_trace *trace);
/* Whether t_ns is in the selected time range. */
static inline bool ew_trace_in_range(const struct etwatch_trace *trace, uint64_t t_ns)
{
    return t_ns >= trace->options.from_ns &&
           (trace->options.until_ns == 0 || t_ns < trace->options.until_ns);
}
/* Reads everything once for schemas and names, and restarts. */
int ew_trace_learn(struct etwatch_trace *trace);
/* The next selected event: 1, 0 at the end, or an error. It is counted but not named; its
 * process and thread are in ret_known (EW_NO_ID: unknown). The first call reads everything once,
 * to learn. */
int ew_trace_next_record(struct etwatch_trace *trace, const struct ew_record **ret_record,
                         struct ew_event *ret_known);
/* Fills in the public description of a record. */
void ew_trace_describe(struct etwatch_trace *trace, const struct ew_record *record,
                       const struct ew_event *known, struct etwatch_trace_event *ret_event);

/* trace_fields.c */
void ew_trace_fields_init(struct ew_trace_fields *fields);
void ew_trace_fields_done(struct ew_trace_fields *fields);
/* Converts fields->decoded to the public form. This is the only place where command lines of events
 * pass: null, or with show_cmdline masked. may_have_cmdline: the bytes that were not decoded may
 * contain one. 0 or ETWATCH_ENOMEM. */
int ew_trace_fields_convert(struct ew_trace_fields *fields, bool show_cmdline,
                            bool may_have_cmdline);

#endif
