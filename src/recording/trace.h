/* SPDX-License-Identifier: MIT */
/* A trace from the inside: what its files share. */
#ifndef EW_RECORDING_TRACE_H
#define EW_RECORDING_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <etwatch/trace.h>

#include "base/error.h"
#include "decode/decode.h"
#include "model/event.h"
#include "model/field.h"
#include "model/record.h"
#include "model/selection.h"
#include "source/etl/reader.h"

/* -------------------------------------------------------------------- process_history */

/*
 * Who had a process or thread id at which time. A recording is read once to learn, then asked: so a
 * name that comes only at the end (the rundown) is known from the beginning.
 */

struct ew_life {
    uint64_t from_ns; /* 0: was there when the recording began */
    uint64_t to_ns;   /* UINT64_MAX: still there, as far as was told */
    uint32_t id;
    uint32_t older; /* the life of this id before: its place + 1, or 0 */
    uint32_t pid;   /* of a thread: its process; of a process: its parent, or EW_NO_ID */
    uint32_t name;  /* of a process: place in the text + 1, or 0 */
    bool selection; /* of a process: was asked for */
};

struct ew_process_history_table {
    struct ew_life *history;
    uint32_t count, size;
    uint32_t *newest; /* hash of ids: place of the newest life + 1, or 0 */
    uint32_t mask, used;
};

struct ew_process_history {
    struct ew_process_history_table processes, threads;
    char *text;
    uint32_t text_len, text_size;
    uint64_t refused; /* lives beyond the maximum, or without memory: they have no name */
};

void ew_process_history_init(struct ew_process_history *history);
void ew_process_history_done(struct ew_process_history *history);

/* In order of time. */
void ew_process_history_learn(struct ew_process_history *history, const struct ew_event *event);

/* The place of that life in the table of processes, for whoever keeps something beside it, or
 * UINT32_MAX. */
uint32_t ew_process_history_find(const struct ew_process_history *history, uint32_t pid,
                                 uint64_t t_ns);
/* The name of the process that had the id then, or last before then; NULL: unknown. */
const char *ew_process_history_name(const struct ew_process_history *history, uint32_t pid,
                                    uint64_t t_ns);
/* The process of the thread that had the id then, or last before then. */
bool ew_process_history_process_of(const struct ew_process_history *history, uint32_t tid,
                                   uint64_t t_ns, uint32_t *ret_pid);

/* Marks the processes that were asked for, and their descendants. After learning. */
void ew_process_history_select(struct ew_process_history *history,
                               const struct ew_selection *selection);
/* Whether the process that had the id then was asked for. */
bool ew_process_history_selected(const struct ew_process_history *history,
                                 const struct ew_selection *selection, uint32_t pid, uint64_t t_ns);

/* Text of a payload as UTF-8, without the folder in front of a file name. Terminated. */
size_t ew_event_text_copy(const struct ew_event_text *text, char *buffer, size_t size);

/* ---------------------------------------------------------------------- event_classes */

/* Counts the kinds of events of a recording, for nearly nothing per event. */

enum { EW_CLASS_GROUPS = 64, EW_CLASS_VERSIONS = 8 };

struct ew_class;

struct ew_event_classes {
    uint64_t *kernel; /* by group, opcode and version */
    struct ew_class *others;
    uint32_t other_count, other_size;
    uint32_t *index; /* hash: place + 1, or 0 */
    uint32_t index_mask;
    uint64_t refused; /* events of kinds beyond the maximum */
    int error;
};

int ew_event_classes_init(struct ew_event_classes *classes);
void ew_event_classes_done(struct ew_event_classes *classes);
/* As it was after init. */
void ew_event_classes_clear(struct ew_event_classes *classes);

void ew_event_classes_count_other(struct ew_event_classes *classes, const struct ew_record *record);

static inline void ew_event_classes_count(struct ew_event_classes *classes,
                                          const struct ew_record *record)
{
    if (record->kind == EW_RECORD_KERNEL && record->group < EW_CLASS_GROUPS &&
        record->version < EW_CLASS_VERSIONS)
        classes->kernel[((size_t)record->group << 8 | record->opcode) * EW_CLASS_VERSIONS +
                        record->version]++;
    else
        ew_event_classes_count_other(classes, record);
}

/*
 * Every kind once, most frequent first, named by what the decoder has learned by now. Kinds that
 * differ only in their layout (TraceLogging) are one. Returns what on_class returned if that was
 * not 0, or ETWATCH_ENOMEM. *ret_unknown: events of kinds without a known layout.
 */
int ew_event_classes_for_each(const struct ew_event_classes *classes, struct ew_decoder *decoder,
                              int (*on_class)(void *ctx, const struct etwatch_trace_class *klass),
                              void *ctx, uint64_t *ret_unknown);

/* ----------------------------------------------------------------------- perfetto_api */

/* Perfetto traces behind the public functions of recordings: each of these is what trace.c calls
 * if the files are of that kind. */

struct ew_perfetto_trace;

/* 1: the first file is a Perfetto trace; 0: it is not, or cannot be read. */
int ew_perfetto_trace_is(const char *path);
/* options and chosen must outlive it. */
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
int ew_perfetto_trace_next(struct ew_perfetto_trace *trace, struct etwatch_trace_event *ret_event);
int ew_perfetto_trace_fields(struct ew_perfetto_trace *trace, struct etwatch_trace_event *event);
int ew_perfetto_trace_rewind(struct ew_perfetto_trace *trace);
/* What ew_ptrace_next gave last, as it was recorded; NULL: it is something else. */
const struct etwatch_sample *ew_perfetto_trace_sample(const struct ew_perfetto_trace *trace);
const struct etwatch_event *ew_perfetto_trace_event(const struct ew_perfetto_trace *trace);
int ew_perfetto_trace_report(struct ew_perfetto_trace *trace,
                             const struct etwatch_report_callbacks *callbacks,
                             struct etwatch_trace_system *ret_system);

/* Reads everything once, for whom these mean; the trace is rewound. */
int ew_perfetto_trace_learn(struct ew_perfetto_trace *trace, const struct ew_selection *selection);
/* Whether what a process did is asked for, after that. name: of a thread of it; may be NULL. */
bool ew_perfetto_trace_selected(const struct ew_perfetto_trace *trace,
                                const struct ew_selection *selection, uint32_t pid,
                                const char *name);

/* The fields of one event as the public API has them; reused from event to event. */
struct ew_trace_fields {
    struct ew_fields decoded;
    struct etwatch_field *list;
    uint32_t size;
    char *text; /* terminated copies of names and texts */
    size_t text_size;
};

struct etwatch_trace {
    struct ew_perfetto_trace *perfetto; /* NULL: the files are .etl, and the rest is about them */
    struct ew_etl_reader *reader;
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
    const struct ew_record *current; /* what etwatch_trace_next gave last */
    bool learned, ended;
    struct ew_process_history history;
    uint32_t *on_cpu; /* by CPU: the thread that runs, or EW_NO_ID */
    struct ew_trace_fields fields;

    /* What was found; the header's and the reader's counts come on top. */
    uint64_t events, undecoded, lost, lost_buffers;
    uint64_t refused;           /* what full tables or too little memory left out of a report */
    uint64_t first_ns, last_ns; /* raw */
    uint64_t progress_bytes;    /* when progress was last told */
};

/* trace.c */
/* Progress of one of `passes` readings; ETWATCH_ESTATE if the caller wants to end. */
int ew_trace_progress(struct etwatch_trace *trace, uint32_t pass, uint32_t passes, bool always);
/* Takes the counts back to the beginning of a reading, and the reader with them. */
int ew_trace_restart(struct etwatch_trace *trace);
/* Whether a record is of the part that was asked for. */
static inline bool ew_trace_wants(const struct etwatch_trace *trace, uint64_t t_ns)
{
    return t_ns >= trace->options.from_ns &&
           (trace->options.until_ns == 0 || t_ns < trace->options.until_ns);
}
/* Reads everything once, for schemas and names, and restarts. */
int ew_trace_learn(struct etwatch_trace *trace);
/* The next event that was asked for: 1, 0 at the end, or an error. Counted, not named; who it is
 * about is in ret_known (EW_NO_ID: unknown). The first call reads everything once, to learn. */
int ew_trace_next_record(struct etwatch_trace *trace, const struct ew_record **ret_record,
                         struct ew_event *ret_known);
/* What etwatch_trace_next tells of a record. */
void ew_trace_describe(struct etwatch_trace *trace, const struct ew_record *record,
                       const struct ew_event *known, struct etwatch_trace_event *ret_event);

/* trace_fields.c */
void ew_trace_fields_init(struct ew_trace_fields *fields);
void ew_trace_fields_done(struct ew_trace_fields *fields);
/* Turns fields->decoded into the public form. 0 or ETWATCH_ENOMEM. */
int ew_trace_fields_turn(struct ew_trace_fields *fields);

#endif
