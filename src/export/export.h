/* SPDX-License-Identifier: MIT */
/* What the makers of exports share. */
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
#include "model/selection.h"
#include "sink/flame.h"

/* ------------------------------------------------------------------ event_name_filter */

/* Which events were asked for, by parts of the names of their provider and their own. */

struct ew_event_name_filter {
    char **providers, **events; /* lower case */
    uint32_t provider_count, event_count;
};

/* Takes copies. 0, ETWATCH_EINVAL (a list or a word is NULL) or ETWATCH_ENOMEM. */
int ew_event_name_filter_init(struct ew_event_name_filter *names,
                              const struct etwatch_table_options *options);
void ew_event_name_filter_done(struct ew_event_name_filter *names);
/* guid: 16 bytes as on disk, or NULL. */
bool ew_event_name_filter_match(const struct ew_event_name_filter *names, const char *provider,
                                const uint8_t *guid, const char *event);

/* ----------------------------------------------------------------------------- tables */

/* What the makers of tables share. */

/* The options as they are, checked; given may be NULL. */
int ew_table_options_take(const struct etwatch_table_options *given,
                          struct etwatch_table_options *ret_options, struct ew_error *reterr);

/* etwatch_trace_table; *stats (may be NULL) gets what the reading found when the stream is
 * released.
 */
int ew_trace_table(const struct etwatch_trace *trace, uint32_t table,
                   const struct etwatch_table_options *options, struct etwatch_trace_stats *stats,
                   struct ArrowArrayStream *ret_stream, struct ew_error *reterr);

enum ew_trace_again {
    EW_TRACE_ALL_PROCESSES = 1 << 0, /* not only those that were asked for */
    EW_TRACE_ALL = 3,                /* nor only the part */
};
/* The same files, and unless flags says otherwise the same part and processes, for a reading of its
 * own. */
int ew_trace_open_again(const struct etwatch_trace *trace,
                        const struct etwatch_table_options *options, uint32_t flags,
                        struct etwatch_trace **ret_trace, struct ew_error *reterr);

/* A monitor of the recording's files, of the processes that were asked for. It is open, and what is
 * there at the beginning was delivered. *ret_monitor is to be freed after an error too. */
int ew_trace_monitor(const struct etwatch_trace *trace, double hz, uint32_t flags,
                     const struct etwatch_callbacks *callbacks,
                     struct etwatch_monitor **ret_monitor, struct etwatch_error_info *reterr);

/* ------------------------------------------------------------------------ event_table */

/* The events of a recording as columns. */

/* A stream over a trace, which is the stream's on success. */
int ew_table_events(struct etwatch_trace *trace, const struct etwatch_table_options *options,
                    struct etwatch_trace_stats *stats, struct ArrowArrayStream *ret_stream,
                    struct ew_error *reterr);

/* ---------------------------------------------------------------------------- modules */

/* Which program file or library an address belongs to: of which process, and when. */

struct ew_module {
    uint64_t base, end;
    uint64_t from_ns, to_ns;
    uint32_t pid;
    uint32_t name; /* place in the text */
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
/* EW_EVENT_IMAGE_*, in order of time. */
void ew_modules_learn(struct ew_modules *modules, const struct ew_event *event);
/* After learning, before asking. */
void ew_modules_sort(struct ew_modules *modules);
/* "ntdll.dll!0x1234", or "0x7ff…" if the address is of no module. Always terminated. */
void ew_modules_name(const struct ew_modules *modules, uint32_t pid, uint64_t address,
                     uint64_t t_ns, char *buffer, size_t size);

/* ----------------------------------------------------------------------------- stacks */

/*
 * The stacks of profile samples in a recording. A sample and its stack are different events: the
 * stack names the time of its sample, and comes after it, its user part maybe much later.
 */

struct ew_stacks_counts {
    uint64_t samples;    /* in the part and of the processes that were asked for */
    uint64_t with_stack; /* of them */
    uint64_t frames;     /* different ones */
    uint64_t unnamed;    /* of them: of no module */
    uint64_t refused;    /* samples that did not fit into memory */
};

/*
 * Reads the recording twice: `all` for modules and stacks that are told by a key, `chosen` for the
 * samples. Both are the same files; `all` is not limited to processes or a part. Fills flame.
 */
int ew_stacks_read(struct etwatch_trace *all, struct etwatch_trace *selection,
                   struct ew_flame *flame, struct ew_stacks_counts *ret_counts);

/* --------------------------------------------------------------------------- timeline */

/* Who ran when, out of a recording. */

/* Writes the JSON of chrome://tracing. trace: of all processes; chosen: whose slices are written.
 * Counts slices. */
int ew_timeline_chrome(struct etwatch_trace *trace, const struct ew_selection *selection,
                       struct ew_buf *out, uint64_t *ret_slices);

struct ew_perfetto_export {
    const struct etwatch_trace *trace; /* an .etl; it is read anew */
    const struct etwatch_table_options *options;
    etwatch_write_fn write;
    void *ctx;
    uint64_t rows; /* events that were written so far */
    struct etwatch_trace_stats *ret_stats;
    struct ew_error *reterr;
};

int ew_export_perfetto(struct ew_perfetto_export *export);

#endif
