/* SPDX-License-Identifier: MIT */
/* Perfetto traces behind the public functions of recordings: each of these is what trace.c calls
 * if the files are of that kind. */
#ifndef EW_RECORDING_PERFETTO_API_H
#define EW_RECORDING_PERFETTO_API_H

#include <etwatch/trace.h>

#include "base/error.h"
#include "model/selection.h"

struct ew_ptrace;

/* 1: the first file is a Perfetto trace; 0: it is not, or cannot be read. */
int ew_ptrace_is(const char *path);
/* options and chosen must outlive it. */
int ew_ptrace_open(const char *const *paths, size_t count,
                   const struct etwatch_trace_options *options, const struct ew_chosen *chosen,
                   struct ew_ptrace **ret_trace, struct ew_error *reterr);
void ew_ptrace_free(struct ew_ptrace *trace);
size_t ew_ptrace_file_count(const struct ew_ptrace *trace);
void ew_ptrace_file(const struct ew_ptrace *trace, size_t i, struct etwatch_trace_file *ret_file);
void ew_ptrace_stats(const struct ew_ptrace *trace, struct etwatch_trace_stats *ret_stats);
int ew_ptrace_next(struct ew_ptrace *trace, struct etwatch_trace_event *ret_event);
int ew_ptrace_fields(struct ew_ptrace *trace, struct etwatch_trace_event *event);
int ew_ptrace_rewind(struct ew_ptrace *trace);
/* What ew_ptrace_next gave last, as it was recorded; NULL: it is something else. */
const struct etwatch_sample *ew_ptrace_sample(const struct ew_ptrace *trace);
const struct etwatch_event *ew_ptrace_event(const struct ew_ptrace *trace);
int ew_ptrace_report(struct ew_ptrace *trace, const struct etwatch_report_callbacks *callbacks,
                     struct etwatch_trace_system *ret_system);

/* Reads everything once, for whom these mean; the trace is rewound. */
int ew_ptrace_learn(struct ew_ptrace *trace, const struct ew_chosen *chosen);
/* Whether what a process did is asked for, after that. name: of a thread of it; may be NULL. */
bool ew_ptrace_chosen(const struct ew_ptrace *trace, const struct ew_chosen *chosen, uint32_t pid,
                      const char *name);

#endif
