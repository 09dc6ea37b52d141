/* SPDX-License-Identifier: MIT */
/*
 * Recordings in the formats of other tools: tables for data frames, stacks for flame graphs,
 * timelines. Written piece by piece, with bounded memory. The rules of etwatch.h hold.
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
    ETWATCH_EXPORT_FOLDED = 5,     /* stacks of profile samples, for flamegraph.pl and its kin */
    ETWATCH_EXPORT_SPEEDSCOPE = 6, /* the same in order of time, for speedscope */
    ETWATCH_EXPORT_CHROME = 7,     /* who ran when, as JSON for chrome://tracing */
};

/* "perfetto", …; NULL for anything else. */
ETWATCH_API const char *etwatch_export_name(uint32_t format);

struct etwatch_export_counts {
    uint32_t size;
    uint32_t reserved;
    uint64_t rows;           /* of a table; events of a timeline; slices of CHROME; samples */
    uint64_t without_stack;  /* FOLDED, SPEEDSCOPE: samples that show only where they were */
    uint64_t frames;         /* different ones */
    uint64_t frames_unnamed; /* of them: of no module that the recording knows */
    uint64_t refused;        /* what did not fit into the memory that is used at most */
    struct etwatch_trace_stats stats; /* what the reading found: loss, damage */
};

/*
 * Writes a recording, read anew with the part and the processes that were asked for when the trace
 * was opened. table and options: for ARROW, CSV and JSONL, as in etwatch_trace_table; in PERFETTO
 * providers and events say which events it has beside switches and wake-ups; of options
 * on_progress is used by all. ret_counts may be NULL, and is filled as far as it got after an error
 * too. Then the output is not complete.
 */
ETWATCH_API int etwatch_trace_export(const struct etwatch_trace *trace, uint32_t format,
                                     uint32_t table, const struct etwatch_table_options *options,
                                     etwatch_write_fn write, void *ctx,
                                     struct etwatch_export_counts *ret_counts,
                                     struct etwatch_error_info *reterr);

#ifdef __cplusplus
}
#endif

#endif /* ETWATCH_EXPORT_H */
