/* SPDX-License-Identifier: MIT */
/* The readable report on a recording: facts first, then tables, busiest first. */
#ifndef EW_SINK_REPORT_H
#define EW_SINK_REPORT_H

#include <etwatch/sink.h>

#include "base/buf.h"
#include "base/units.h"

struct ew_report;

/* width: table lines are truncated to it; 0: never. Returns NULL if out of memory. */
struct ew_report *ew_report_new(uint32_t sink_flags, uint32_t width, ew_utc_offset utc_offset);
void ew_report_free(struct ew_report *report);

/* Each returns 0 or ETWATCH_ENOMEM and copies its argument. */
int ew_report_trace(struct ew_report *report, struct ew_buf *out,
                    const struct etwatch_trace_summary *trace);
int ew_report_class(struct ew_report *report, const struct etwatch_trace_class *klass);
int ew_report_process(struct ew_report *report, const struct etwatch_sample *process,
                      const struct etwatch_metric_set *estimated);
int ew_report_image(struct ew_report *report, const struct etwatch_trace_image *image);
/* Prints the tables. */
int ew_report_end(struct ew_report *report, struct ew_buf *out);

/* report_facts.c: one line per label and value. */
void ew_report_facts(struct ew_buf *out, const struct etwatch_trace_summary *trace, bool color,
                     ew_utc_offset utc_offset);

/* report_rows.c: the table of processes and threads. */
struct ew_report_row {
    struct etwatch_sample sum; /* owns its strings */
    struct etwatch_metric_set estimated;
    uint32_t order; /* order of arrival: processes by start, threads after their process */
    uint32_t owner; /* order of its process; of a process its own */
    uint64_t owner_cpu_ns;
};
int ew_report_rows_print(struct ew_report_row *rows, uint32_t count, uint64_t from_ns,
                         uint32_t width, bool color, struct ew_buf *out);

#endif
