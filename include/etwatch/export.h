/* SPDX-License-Identifier: MIT */
/*
 * Recordings in the formats of other tools: tables for data frames, stacks for flame graphs,
 * timelines. Written part by part, with bounded memory. The rules of etwatch.h hold.
 */
#ifndef ETWATCH_EXPORT_H
#define ETWATCH_EXPORT_H

#include <etwatch/arrow.h>

#ifdef __cplusplus
extern "C" {
#endif

enum etwatch_export_format {
    ETWATCH_EXPORT_PERFETTO = 1,   /* a timeline for the Perfetto UI, with its own ETW messages */
    ETWATCH_EXPORT_ARROW = 2,      /* a table as an Arrow file */
    ETWATCH_EXPORT_CSV = 3,        /* a table */
    ETWATCH_EXPORT_JSONL = 4,      /* a table, an object a line */
    ETWATCH_EXPORT_FOLDED = 5,     /* stacks of profile samples, for flamegraph.pl and others */
    ETWATCH_EXPORT_SPEEDSCOPE = 6, /* the same in order of time, for speedscope */
    ETWATCH_EXPORT_CHROME = 7,     /* which thread ran when, as JSON for chrome://tracing */
};

/* "perfetto", …; NULL for anything else. */
ETWATCH_API const char *etwatch_export_name(uint32_t format);

struct etwatch_export_counts {
    uint32_t size;
    uint32_t reserved;
    uint64_t rows;           /* of a table; events of a timeline; slices of CHROME; samples */
    uint64_t without_stack;  /* FOLDED, SPEEDSCOPE: samples with an address only */
    uint64_t frames;         /* distinct frames */
    uint64_t frames_unnamed; /* of them: in no module that the recording has */
    uint64_t refused;        /* stacks or frames dropped because of the memory limit */
};

/*
 * Writes a recording, read again with the part and the processes that were selected when the trace
 * was opened. table and options: for ARROW, CSV and JSONL, as in etwatch_trace_table; for PERFETTO
 * providers and events select the events in addition to switches and wake-ups; on_progress of
 * options is used by all formats. ret_counts and ret_stats (what was read: loss, damage) may be
 * NULL; they are also written after an error, as far as the export got. The output is then
 * incomplete.
 */
ETWATCH_API int etwatch_trace_export(const struct etwatch_trace *trace, uint32_t format,
                                     uint32_t table, const struct etwatch_table_options *options,
                                     etwatch_write_fn write, void *ctx,
                                     struct etwatch_export_counts *ret_counts,
                                     struct etwatch_trace_stats *ret_stats,
                                     struct etwatch_error_info *reterr);

#ifdef __cplusplus
}
#endif

#endif /* ETWATCH_EXPORT_H */
