/* SPDX-License-Identifier: MIT */
/*
 * Exports to the formats of other tools: tables are written from their streams, stacks and
 * timelines read the recording themselves. Every export opens the files once more, with or without
 * the selection of processes, as its format requires.
 */
#include <etwatch/export.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/sized.h"
#include "export/export.h"
#include "recording/trace.h"

enum { OUT_MAX = 16 << 20, FLUSH_AT = 128 * 1024 };

struct export
{
    const struct etwatch_trace *trace;
    uint32_t format, table;
    struct etwatch_table_options options;
    etwatch_write_fn write;
    void *ctx;
    struct etwatch_export_counts counts;
    struct etwatch_trace_stats stats;
    struct ew_error why;
};

const char *etwatch_export_name(uint32_t format)
{
    static const char *const names[] = {NULL,    "perfetto", "arrow",      "csv",
                                        "jsonl", "folded",   "speedscope", "chrome"};
    return format < sizeof names / sizeof names[0] ? names[format] : NULL;
}

/* "event", …: the type of a table's objects in JSON. */
static const char *type_of(uint32_t table)
{
    static const char *const types[] = {NULL,    "process", "thread", "class",
                                        "image", "event",   "sample", "thread"};
    return types[table];
}

static uint32_t text_format(const struct export *export)
{
    if (export->format != ETWATCH_EXPORT_CSV)
        return ETWATCH_FORMAT_JSONL;
    return (export->options.flags & ETWATCH_TABLE_CSV_RAW) != 0 ? ETWATCH_FORMAT_CSV_RAW
                                                                : ETWATCH_FORMAT_CSV;
}

static int export_table(struct export *export)
{
    struct ArrowArrayStream stream;
    struct etwatch_error_info error = {.size = sizeof error};
    struct etwatch_table_options options = export->options;
    if (export->format == ETWATCH_EXPORT_JSONL && (options.flags & ETWATCH_TABLE_TYPED) == 0)
        options.flags |= ETWATCH_TABLE_FIELDS;
    int rc = ew_export_trace_table(export->trace, export->table, &options, &export->stats, &stream,
                                   &export->why);
    if (rc < 0)
        return rc;
    if (export->format == ETWATCH_EXPORT_ARROW)
        rc = etwatch_arrow_write(&stream, export->write, export->ctx, &export->counts.rows, &error);
    else
        rc = etwatch_table_write(&stream, text_format(export), type_of(export->table),
                                 export->write, export->ctx, &export->counts.rows, &error);
    if (rc < 0)
        (void)ew_error_set(&export->why, rc, error.os_code, "%s", error.message);
    return rc;
}

/* Stores the statistics of a pass and frees the trace. */
static void close_trace(struct export *export, struct etwatch_trace *trace)
{
    if (trace != NULL)
        (void)etwatch_trace_stats(trace, &export->stats);
    etwatch_trace_free(trace);
}

/* ------------------------------------------------------------------- stacks */

static int put_stacks(struct export *export, const struct ew_flame *flame)
{
    struct ew_buf out;
    ew_buf_init(&out, OUT_MAX, export->write, export->ctx);
    out.flush_at = FLUSH_AT;
    if (export->format == ETWATCH_EXPORT_FOLDED)
        ew_flame_put_folded(flame, &out);
    else
        ew_flame_put_speedscope(flame, &out, export->trace->paths[0]);
    int rc = ew_buf_flush(&out);
    ew_buf_done(&out);
    return rc;
}

static int export_stacks(struct export *export)
{
    struct etwatch_trace *all = NULL, *selected = NULL;
    struct ew_flame flame;
    struct ew_stacks_counts counts = {0};
    ew_flame_init(&flame);
    int rc = ew_export_trace_open_again(export->trace, &export->options, EW_TRACE_ALL, &all,
                                        &export->why);
    if (rc == 0)
        rc =
            ew_export_trace_open_again(export->trace, &export->options, 0, &selected, &export->why);
    if (rc == 0)
        rc = ew_stacks_read(all, selected, &flame, &counts);
    if (rc == 0 && counts.samples == 0)
        rc = ew_error_set(&export->why, ETWATCH_ENOTSUP, 0,
                          "the selection has no profile samples: nothing has a "
                          "stack");
    if (rc == 0)
        rc = put_stacks(export, &flame);
    export->counts.rows = counts.samples;
    export->counts.without_stack = counts.samples - counts.with_stack;
    export->counts.frames = counts.frames;
    export->counts.frames_unnamed = counts.unnamed;
    export->counts.refused = counts.refused;
    ew_flame_done(&flame);
    etwatch_trace_free(all);
    close_trace(export, selected);
    return rc;
}

/* ---------------------------------------------------------------- timelines */

static int export_chrome(struct export *export)
{
    struct etwatch_trace *all = NULL;
    struct ew_buf out;
    int rc = ew_export_trace_open_again(export->trace, &export->options, EW_TRACE_ALL_PROCESSES,
                                        &all, &export->why);
    if (rc < 0)
        return rc;
    ew_buf_init(&out, OUT_MAX, export->write, export->ctx);
    out.flush_at = FLUSH_AT;
    rc = ew_timeline_chrome(all, &export->trace->selection, &out, &export->counts.rows);
    if (rc == 0)
        rc = ew_buf_flush(&out);
    ew_buf_done(&out);
    close_trace(export, all);
    return rc;
}

static int export_perfetto(struct export *export)
{
    struct ew_perfetto_export own = {
        .trace = export->trace,
        .options = &export->options,
        .write = export->write,
        .ctx = export->ctx,
        .ret_stats = &export->stats,
        .reterr = &export->why,
    };
    int rc = ew_export_perfetto(&own);
    export->counts.rows = own.rows;
    return rc;
}

/* --------------------------------------------------------------- entry point */

static int run(struct export *export)
{
    bool etl = export->trace->perfetto == NULL;
    if (!etl && export->format == ETWATCH_EXPORT_PERFETTO)
        return ew_error_set(&export->why, ETWATCH_ENOTSUP, 0, "%s is a Perfetto trace already",
                            export->trace->paths[0]);
    if (!etl &&
        (export->format == ETWATCH_EXPORT_FOLDED || export->format == ETWATCH_EXPORT_SPEEDSCOPE))
        return ew_error_set(&export->why, ETWATCH_ENOTSUP, 0,
                            "%s has no profile samples: stacks are only in .etl recordings",
                            export->trace->paths[0]);
    switch (export->format) {
    case ETWATCH_EXPORT_PERFETTO:
        return export_perfetto(export);
    case ETWATCH_EXPORT_FOLDED:
    case ETWATCH_EXPORT_SPEEDSCOPE:
        return export_stacks(export);
    case ETWATCH_EXPORT_CHROME:
        return export_chrome(export);
    default:
        return export_table(export);
    }
}

int etwatch_trace_export(const struct etwatch_trace *trace, uint32_t format, uint32_t table,
                         const struct etwatch_table_options *options, etwatch_write_fn write,
                         void *ctx, struct etwatch_export_counts *ret_counts,
                         struct etwatch_trace_stats *ret_stats, struct etwatch_error_info *reterr)
{
    struct export export = {
        .trace = trace, .format = format, .table = table, .write = write, .ctx = ctx};
    export.stats.size = sizeof export.stats;
    bool of_table = format == ETWATCH_EXPORT_ARROW || format == ETWATCH_EXPORT_CSV ||
                    format == ETWATCH_EXPORT_JSONL;
    if (trace == NULL || write == NULL || etwatch_export_name(format) == NULL ||
        (ret_counts != NULL && ew_sized_check(ret_counts) < 0) ||
        (ret_stats != NULL && ew_sized_check(ret_stats) < 0))
        return ETWATCH_EINVAL;
    int rc = ew_table_options_take(options, &export.options, &export.why);
    if (rc == 0 && of_table && etwatch_table_name(table) == NULL)
        rc = ew_error_set(&export.why, ETWATCH_EINVAL, 0, "there is no table %u", table);
    if (rc == 0)
        rc = run(&export);
    if (rc < 0)
        ew_error_out(reterr, &export.why, rc);
    if (ret_counts != NULL)
        (void)ew_sized_out(ret_counts, &export.counts, sizeof export.counts);
    if (ret_stats != NULL)
        (void)ew_sized_out(ret_stats, &export.stats, sizeof export.stats);
    return rc;
}
