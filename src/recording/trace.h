/* SPDX-License-Identifier: MIT */
/* A trace from the inside: what its files share. */
#ifndef EW_RECORDING_TRACE_H
#define EW_RECORDING_TRACE_H

#include <etwatch/trace.h>

#include "base/error.h"
#include "decode/decode.h"
#include "model/field.h"
#include "recording/event_classes.h"
#include "recording/perfetto_api.h"
#include "recording/process_history.h"
#include "source/etl/reader.h"

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
