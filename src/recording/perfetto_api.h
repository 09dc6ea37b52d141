/* SPDX-License-Identifier: MIT */
/* Perfetto traces behind the public functions of recordings: each of these is what trace.c calls
 * if the files are of that kind. */
#ifndef EW_RECORDING_PERFETTO_API_H
#define EW_RECORDING_PERFETTO_API_H

#include <etwatch/trace.h>

#include "base/error.h"
#include "model/selection.h"

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

#endif
