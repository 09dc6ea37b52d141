/* SPDX-License-Identifier: MIT */
/* Internal header of src/export: event filter, tables, modules, stacks and timelines. */
#ifndef EW_EXPORT_EXPORT_H
#define EW_EXPORT_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <etwatch/arrow.h>
#include <etwatch/export.h>
#include <etwatch/trace.h>

#include "arrow/export.h"
#include "base/buf.h"
#include "base/error.h"
#include "model/event.h"
#include "model/record.h"
#include "model/selection.h"
#include "sink/flame.h"

/* ------------------------------------------------------------------ event_name_filter */

/* Selects events by their provider's name and their own (see base/event_pattern.h), by filters of
 * several properties, and by process. */

struct ew_event_filter {
    uint32_t flags; /* enum etwatch_event_filter_flag */
    char *provider; /* NULL: any */
    char **events;
    uint32_t *pids;
    uint16_t *ids;
    uint32_t event_count, pid_count, id_count;
};

struct ew_event_name_filter {
    char **providers, **events;
    uint32_t provider_count, event_count;
    struct ew_event_filter *filters;
    uint32_t filter_count;
    bool includes; /* a filter does not exclude */
    struct ew_selection processes;
};

/* What filters compare. */
struct ew_event_key {
    const char *provider, *event;
    const uint8_t *guid; /* 16 bytes as on disk, or NULL */
    uint32_t pid;        /* or EW_NO_ID */
    uint32_t id;
    uint32_t flags; /* enum etwatch_trace_event_flag */
};

/* What names alone decide about a kind of event. */
enum ew_event_verdict { EW_EVENTS_NONE, EW_EVENTS_SOME, EW_EVENTS_ALL };

/* Copies everything. 0, ETWATCH_EINVAL (a list or a pattern is NULL, an unknown flag, too many) or
 * ETWATCH_ENOMEM. */
int ew_export_name_filter_init(struct ew_event_name_filter *names,
                               const struct etwatch_table_options *options);
void ew_export_name_filter_done(struct ew_event_name_filter *names);
/* Whether names or filters are given: processes are not considered. */
static inline bool ew_export_name_filter_is_set(const struct ew_event_name_filter *names)
{
    return names->provider_count + names->event_count + names->filter_count > 0;
}
/* By the names of a kind of event; pid, id and flags of the key are not read. */
enum ew_event_verdict ew_export_name_filter_kind(const struct ew_event_name_filter *names,
                                                 const struct ew_event_key *key);
/* Whether an event is selected, by everything but its process. */
bool ew_export_name_filter_match(const struct ew_event_name_filter *names,
                                 const struct ew_event_key *key);
/* The same for a public event. */
bool ew_export_name_filter_event(const struct ew_event_name_filter *names,
                                 const struct etwatch_trace_event *event);
/* Whether its process is selected too; name may be NULL. */
static inline bool ew_export_name_filter_process(const struct ew_event_name_filter *names,
                                                 uint32_t pid, const char *name)
{
    return ew_selection_includes_all(&names->processes) ||
           (pid != EW_NO_ID && ew_selection_includes(&names->processes, pid, name));
}

/* ----------------------------------------------------------------------------- tables */

/* Checks and copies the options; given may be NULL. */
int ew_table_options_take(const struct etwatch_table_options *given,
                          struct etwatch_table_options *ret_options, struct ew_error *reterr);

/* etwatch_trace_table; *stats (may be NULL) is filled in when the stream is released. */
int ew_export_trace_table(const struct etwatch_trace *trace, uint32_t table,
                          const struct etwatch_table_options *options,
                          struct etwatch_trace_stats *stats, struct ArrowArrayStream *ret_stream,
                          struct ew_error *reterr);

enum ew_trace_again {
    EW_TRACE_ALL_PROCESSES = 1 << 0, /* not only the selected ones */
    EW_TRACE_ALL = 3,                /* nor only the selected time range */
};
/* Opens the same files again, with the same time range and processes unless flags says
 * otherwise, for a separate pass. */
int ew_export_trace_open_again(const struct etwatch_trace *trace,
                               const struct etwatch_table_options *options, uint32_t flags,
                               struct etwatch_trace **ret_trace, struct ew_error *reterr);

/* A monitor of the recording's files for the selected processes. It is open, and the initial
 * samples have been delivered. *ret_monitor must be freed after an error too. */
int ew_export_trace_monitor(const struct etwatch_trace *trace, double hz, uint32_t flags,
                            const struct etwatch_callbacks *callbacks,
                            struct etwatch_monitor **ret_monitor,
                            struct etwatch_error_info *reterr);

/* ------------------------------------------------------------------------ event_table */

/* The events of a recording as a stream of columns. On success the stream owns the trace. */
int ew_table_events(struct etwatch_trace *trace, const struct etwatch_table_options *options,
                    struct etwatch_trace_stats *stats, struct ArrowArrayStream *ret_stream,
                    struct ew_error *reterr);

/* ---------------------------------------------------------------------------- modules */

/* Maps an address to a program file or library, by process and time. */

struct ew_module {
    uint64_t base, end;
    uint64_t from_ns, to_ns;
    uint32_t pid;
    uint32_t name; /* offset in the text */
};

struct ew_modules {
    struct ew_module *list;
    uint32_t count, size;
    char *text;
    uint32_t text_len, text_size;
    uint64_t refused; /* beyond the maximum, or without memory */
    bool sorted;
};

void ew_modules_init(struct ew_modules *modules);
void ew_modules_done(struct ew_modules *modules);
/* Processes EW_EVENT_IMAGE_* in time order. */
void ew_modules_learn(struct ew_modules *modules, const struct ew_event *event);
/* Call after learning, before queries. */
void ew_modules_sort(struct ew_modules *modules);
/* "ntdll.dll!0x1234", or "0x7ff…" if no module contains the address. Always terminated. */
void ew_modules_name(const struct ew_modules *modules, uint32_t pid, uint64_t address,
                     uint64_t t_ns, char *buffer, size_t size);

/* ----------------------------------------------------------------------------- stacks */

/*
 * The stacks of profile samples in a recording. A sample and its stack are separate events: the
 * stack contains the time of its sample and comes after it, its user part possibly much later.
 */

struct ew_stacks_counts {
    uint64_t samples;    /* in the selected time range and processes */
    uint64_t with_stack; /* of these */
    uint64_t frames;     /* distinct ones */
    uint64_t unnamed;    /* of these: in no module */
    uint64_t refused;    /* samples that did not fit into memory */
};

/*
 * Makes two passes: `all` for modules and for stacks that are referenced by key, `selected` for the
 * samples. Both are the same files; `all` has no selection and no time range. Fills in flame.
 */
int ew_stacks_read(struct etwatch_trace *all, struct etwatch_trace *selected,
                   struct ew_flame *flame, struct ew_stacks_counts *ret_counts);

/* --------------------------------------------------------------------------- timeline */

/* Writes the JSON of chrome://tracing. trace: with all processes; selection: processes of which
 * slices are written. Counts slices. */
int ew_timeline_chrome(struct etwatch_trace *trace, const struct ew_selection *selection,
                       struct ew_buf *out, uint64_t *ret_slices);

struct ew_perfetto_export {
    const struct etwatch_trace *trace; /* an .etl recording; it is opened again */
    const struct etwatch_table_options *options;
    etwatch_write_fn write;
    void *ctx;
    uint64_t rows; /* events written so far */
    struct etwatch_trace_stats *ret_stats;
    struct ew_error *reterr;
};

int ew_export_perfetto(struct ew_perfetto_export *export);

#endif
