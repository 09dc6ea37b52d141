/* SPDX-License-Identifier: MIT */
/*
 * The tables of recordings. Each stream opens the files again, so it is independent of the trace it
 * was made from: several may be read at once, on different threads, and the trace may be freed.
 *
 * Totals come from a report with its rows kept until they are read; samples come from a monitor
 * with the recording as its source, a few intervals at a time; events are in event_table.c.
 */
#include <stdio.h>

#include <etwatch/arrow.h>

#include "arrow/export.h"
#include "arrow/rows.h"
#include "base/alloc.h"
#include "base/sized.h"
#include "export/export.h"
#include "recording/trace.h"

const char *etwatch_table_name(uint32_t table)
{
    static const char *const names[] = {NULL,     "processes",  "threads",   "classes",
                                        "images", "events",     "samples",   "thread_samples",
                                        "spans",  "inferences", "operators", "devices"};
    return table < sizeof names / sizeof names[0] ? names[table] : NULL;
}

int ew_table_options_take(const struct etwatch_table_options *given,
                          struct etwatch_table_options *ret_options, struct ew_error *reterr)
{
    struct etwatch_table_options options = {.size = sizeof options};
    if (given != NULL) {
        int rc = ew_sized_in(&options, sizeof options, given, "options", reterr);
        if (rc < 0)
            return rc;
    }
    options.size = sizeof options;
    if (options.batch_rows > EW_BATCH_ROWS_MAX)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0, "batch_rows must be 1 to %d",
                            EW_BATCH_ROWS_MAX);
    if (options.hz != 0 && !(options.hz >= 0.1 && options.hz <= 1000))
        return ew_error_set(reterr, ETWATCH_EINVAL, 0, "hz must be 0.1 to 1000");
    if (options.flags >= ETWATCH_TABLE_CSV_RAW << 1)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0, "flags has an unknown bit");
    *ret_options = options;
    return 0;
}

/* ------------------------------------------------------------------- totals */

/* A report that fills a table. */
struct totals {
    struct etwatch_trace *trace;
    uint32_t table;
    struct ew_sample_rows samples;
    struct ew_columns columns; /* for rows other than samples */
    struct ew_batch_list ready;
    uint32_t flags;
    bool reported;
    struct etwatch_trace_stats *stats;
};

static struct ew_columns *columns_of(struct totals *totals)
{
    return totals->columns.layout != NULL ? &totals->columns : &totals->samples.columns;
}

/* After a row: closes a full batch. An error ends the report. */
static int after_row(struct totals *totals)
{
    struct ew_columns *columns = columns_of(totals);
    if (columns->full && columns->error == 0)
        return ew_batch_list_add(&totals->ready, ew_columns_cut(columns));
    return columns->error;
}

static int on_process(void *ctx, const struct etwatch_sample *sample,
                      const struct etwatch_metric_set *estimated)
{
    struct totals *totals = ctx;
    bool thread = sample->type == ETWATCH_TYPE_THREAD;
    bool wanted = thread == (totals->table == ETWATCH_TABLE_THREADS);
    if (!wanted || totals->table == ETWATCH_TABLE_IMAGES)
        return 0;
    ew_arrow_sample_rows_put(&totals->samples, sample, estimated);
    return after_row(totals);
}

static int on_class(void *ctx, const struct etwatch_trace_class *klass)
{
    struct totals *totals = ctx;
    ew_class_rows_put(&totals->columns, klass);
    return after_row(totals);
}

static int on_image(void *ctx, const struct etwatch_trace_image *image)
{
    struct totals *totals = ctx;
    ew_image_rows_put(&totals->columns, image);
    return after_row(totals);
}

static int run_report(struct totals *totals, char *message, size_t size)
{
    struct etwatch_error_info error = {.size = sizeof error};
    struct etwatch_report_callbacks callbacks = {.size = sizeof callbacks, .ctx = totals};
    if (totals->table == ETWATCH_TABLE_CLASSES)
        callbacks.on_class = on_class;
    else
        callbacks.on_process = on_process; /* images are reported only for reported processes */
    if (totals->table == ETWATCH_TABLE_THREADS)
        callbacks.flags |= ETWATCH_REPORT_THREADS;
    if (totals->table == ETWATCH_TABLE_IMAGES) {
        callbacks.on_image = on_image;
        callbacks.flags |= ETWATCH_REPORT_IMAGES;
    }
    if ((totals->flags & ETWATCH_TABLE_CMDLINE) != 0)
        callbacks.flags |= ETWATCH_REPORT_CMDLINE;
    int rc = etwatch_trace_report(totals->trace, &callbacks, NULL, &error);
    if (rc < 0)
        (void)snprintf(message, size, "%s", error.message);
    if (rc == 0)
        rc = ew_batch_list_add(&totals->ready, ew_columns_cut(columns_of(totals)));
    return rc == 0 ? columns_of(totals)->error : rc;
}

static int next_totals(void *ctx, struct ew_batch **ret_batch, char *message, size_t size)
{
    struct totals *totals = ctx;
    int rc = totals->reported ? 0 : run_report(totals, message, size);
    totals->reported = true;
    if (rc < 0)
        return rc;
    *ret_batch = ew_batch_list_take(&totals->ready);
    return 0;
}

static void done_totals(void *ctx)
{
    struct totals *totals = ctx;
    ew_batch_list_done(&totals->ready);
    ew_columns_done(&totals->columns);
    ew_arrow_sample_rows_done(&totals->samples);
    if (totals->stats != NULL)
        (void)etwatch_trace_stats(totals->trace, totals->stats);
    etwatch_trace_free(totals->trace);
    ew_free(totals);
}

static int init_totals(struct totals *totals, const struct etwatch_table_options *options)
{
    switch (totals->table) {
    case ETWATCH_TABLE_CLASSES:
        return ew_class_rows_init(&totals->columns, options->batch_rows);
    case ETWATCH_TABLE_IMAGES:
        return ew_image_rows_init(&totals->columns, options->flags, options->batch_rows);
    default:
        return ew_arrow_sample_rows_init(&totals->samples, totals->table, options->flags, true,
                                         options->batch_rows);
    }
}

static int make_totals(struct etwatch_trace *trace, uint32_t table,
                       const struct etwatch_table_options *options,
                       struct etwatch_trace_stats *stats, struct ArrowArrayStream *ret_stream)
{
    struct totals *totals = ew_calloc(1, sizeof *totals);
    if (totals == NULL)
        return ETWATCH_ENOMEM;
    struct ew_batches batches = {.next = next_totals, .done = done_totals, .ctx = totals};
    totals->table = table;
    totals->flags = options->flags;
    int rc = init_totals(totals, options);
    if (rc == 0)
        rc = ew_stream_export(columns_of(totals)->layout, &batches, ret_stream);
    if (rc < 0) {
        done_totals(totals);
    } else {
        totals->trace = trace;
        totals->stats = stats;
    }
    return rc;
}

/* ------------------------------------------------------------------ samples */

/* A monitor that fills a table. */
struct replayed {
    struct etwatch_trace *trace; /* for its time range and processes */
    struct etwatch_monitor *monitor;
    struct ew_sample_rows rows;
    struct ew_batch_list ready;
    uint32_t table, flags;
    double hz;
    uint64_t from_ns, until_ns; /* Unix */
    struct etwatch_trace_stats *stats;
    int rc;
    bool opened, ended;
};

static void add_samples(struct replayed *replayed, const struct etwatch_sample *samples,
                        size_t count)
{
    uint32_t type =
        replayed->table == ETWATCH_TABLE_THREAD_SAMPLES ? ETWATCH_TYPE_THREAD : ETWATCH_TYPE_SAMPLE;
    for (size_t i = 0; i < count && replayed->rc == 0; i++) {
        const struct etwatch_sample *sample = &samples[i];
        if (sample->type != type || sample->t_ns <= replayed->from_ns ||
            sample->t_ns - sample->dt_ns >= replayed->until_ns)
            continue;
        ew_arrow_sample_rows_put(&replayed->rows, sample, NULL);
        replayed->rc = replayed->rows.columns.error;
        if (replayed->rows.columns.full && replayed->rc == 0)
            replayed->rc =
                ew_batch_list_add(&replayed->ready, ew_columns_cut(&replayed->rows.columns));
    }
}

static void on_samples(void *ctx, const struct etwatch_samples *batch)
{
    add_samples(ctx, batch->items, batch->count);
}

int ew_export_trace_monitor(const struct etwatch_trace *trace, double hz, uint32_t flags,
                            const struct etwatch_callbacks *callbacks,
                            struct etwatch_monitor **ret_monitor, struct etwatch_error_info *reterr)
{
    struct etwatch_config config = {
        .size = sizeof config,
        .source = ETWATCH_SOURCE_ETL,
        .hz = hz,
        .pids = trace->selection.pids,
        .pid_count = trace->selection.pid_count,
        .names = (const char *const *)trace->selection.names,
        .name_count = trace->selection.name_count,
        .traces = (const char *const *)trace->paths,
        .trace_count = trace->path_count,
        .flags = ETWATCH_CONFIG_NO_BUDGET | flags,
        .exclude_pids = trace->selection.excluded_pids,
        .exclude_pid_count = trace->selection.excluded_pid_count,
        .exclude_names = (const char *const *)trace->selection.excluded_names,
        .exclude_name_count = trace->selection.excluded_name_count,
    };
    if (ew_selection_includes_all(&trace->selection))
        config.flags |= ETWATCH_CONFIG_ALL;
    if (trace->selection.no_system)
        config.flags |= ETWATCH_CONFIG_NO_SYSTEM;
    int rc = etwatch_monitor_new(&config, callbacks, ret_monitor, reterr);
    return rc == 0 ? etwatch_monitor_open(*ret_monitor, reterr) : rc;
}

static int open_monitor(struct replayed *replayed, char *message, size_t size)
{
    struct etwatch_error_info error = {.size = sizeof error};
    struct etwatch_callbacks callbacks = {
        .size = sizeof callbacks, .on_samples = on_samples, .ctx = replayed};
    uint32_t flags = 0;
    if (replayed->table == ETWATCH_TABLE_THREAD_SAMPLES)
        flags |= ETWATCH_CONFIG_THREADS;
    if ((replayed->flags & ETWATCH_TABLE_DENSE) != 0)
        flags |= ETWATCH_CONFIG_DENSE;
    if ((replayed->flags & ETWATCH_TABLE_CMDLINE) != 0)
        flags |= ETWATCH_CONFIG_CMDLINE;
    int rc = ew_export_trace_monitor(replayed->trace, replayed->hz, flags, &callbacks,
                                     &replayed->monitor, &error);
    if (rc < 0)
        (void)snprintf(message, size, "%s", error.message);
    replayed->opened = rc == 0;
    return rc;
}

/* A Perfetto trace contains the samples as they were recorded. */
static int next_recorded(struct replayed *replayed, struct ew_batch **ret_batch)
{
    struct etwatch_trace *trace = replayed->trace;
    struct etwatch_trace_event event = {.size = sizeof event};
    int rc = 0;
    while (replayed->rc == 0 && replayed->ready.rows == 0 &&
           (rc = etwatch_trace_next(trace, &event, NULL)) > 0) {
        const struct etwatch_sample *sample = ew_perfetto_trace_sample(trace->perfetto);
        if (sample != NULL)
            add_samples(replayed, sample, 1);
    }
    if (rc == 0 && replayed->rc == 0)
        replayed->rc = ew_batch_list_add(&replayed->ready, ew_columns_cut(&replayed->rows.columns));
    if (rc < 0 || replayed->rc < 0)
        return rc < 0 ? rc : replayed->rc;
    *ret_batch = ew_batch_list_take(&replayed->ready);
    return replayed->rows.columns.error;
}

static int next_samples(void *ctx, struct ew_batch **ret_batch, char *message, size_t size)
{
    struct replayed *replayed = ctx;
    if (replayed->trace->perfetto != NULL)
        return next_recorded(replayed, ret_batch);
    int rc = replayed->opened || replayed->ended ? 0 : open_monitor(replayed, message, size);
    while (rc >= 0 && replayed->rc == 0 && replayed->ready.rows == 0 && !replayed->ended) {
        rc = etwatch_monitor_poll(replayed->monitor, -1, NULL);
        if (rc == ETWATCH_ESTATE) {
            replayed->ended = true;
            rc = replayed->rc != 0
                     ? replayed->rc
                     : ew_batch_list_add(&replayed->ready, ew_columns_cut(&replayed->rows.columns));
        }
    }
    if (rc < 0 || replayed->rc < 0)
        return rc < 0 ? rc : replayed->rc;
    *ret_batch = ew_batch_list_take(&replayed->ready);
    return replayed->rows.columns.error;
}

/* A monitor knows the losses, not the damage of files. */
static void copy_stats(const struct replayed *replayed)
{
    struct etwatch_stats stats = {.size = sizeof stats};
    if (etwatch_monitor_stats(replayed->monitor, &stats) < 0)
        return;
    replayed->stats->events = stats.events;
    replayed->stats->lost = stats.lost;
    replayed->stats->undecoded = stats.undecoded;
    replayed->stats->late = stats.late;
}

static void done_samples(void *ctx)
{
    struct replayed *replayed = ctx;
    if (replayed->stats != NULL && replayed->monitor != NULL)
        copy_stats(replayed);
    else if (replayed->stats != NULL && replayed->trace->perfetto != NULL)
        (void)etwatch_trace_stats(replayed->trace, replayed->stats);
    etwatch_monitor_free(replayed->monitor);
    ew_batch_list_done(&replayed->ready);
    ew_arrow_sample_rows_done(&replayed->rows);
    etwatch_trace_free(replayed->trace);
    ew_free(replayed);
}

static int make_samples(struct etwatch_trace *trace, uint32_t table,
                        const struct etwatch_table_options *options,
                        struct etwatch_trace_stats *stats, struct ArrowArrayStream *ret_stream)
{
    struct replayed *replayed = ew_calloc(1, sizeof *replayed);
    if (replayed == NULL)
        return ETWATCH_ENOMEM;
    struct ew_batches batches = {.next = next_samples, .done = done_samples, .ctx = replayed};
    uint64_t shift_ns = (uint64_t)trace->unix_minus_raw_ns;
    replayed->table = table;
    replayed->flags = options->flags;
    replayed->hz = options->hz;
    bool whole = trace->perfetto != NULL; /* the walk applies the time range */
    replayed->from_ns =
        whole || trace->options.from_ns == 0 ? 0 : trace->options.from_ns + shift_ns;
    replayed->until_ns =
        whole || trace->options.until_ns == 0 ? UINT64_MAX : trace->options.until_ns + shift_ns;
    int rc = ew_arrow_sample_rows_init(&replayed->rows, table, options->flags, false,
                                       options->batch_rows);
    if (rc == 0)
        rc = ew_stream_export(replayed->rows.columns.layout, &batches, ret_stream);
    if (rc < 0) {
        done_samples(replayed);
    } else {
        replayed->trace = trace;
        replayed->stats = stats;
    }
    return rc;
}

/* -------------------------------------------------------------- entry points */

int ew_export_trace_open_again(const struct etwatch_trace *trace,
                               const struct etwatch_table_options *options, uint32_t flags,
                               struct etwatch_trace **ret_trace, struct ew_error *reterr)
{
    struct etwatch_trace_options same = trace->options;
    struct etwatch_error_info error = {.size = sizeof error};
    same.on_progress = options->on_progress;
    same.ctx = options->ctx;
    if ((flags & EW_TRACE_ALL_PROCESSES) == 0) {
        same.pids = trace->selection.pids;
        same.pid_count = trace->selection.pid_count;
        same.names = (const char *const *)trace->selection.names;
        same.name_count = trace->selection.name_count;
        same.exclude_pids = trace->selection.excluded_pids;
        same.exclude_pid_count = trace->selection.excluded_pid_count;
        same.exclude_names = (const char *const *)trace->selection.excluded_names;
        same.exclude_name_count = trace->selection.excluded_name_count;
    } else {
        same.pid_count = same.name_count = 0;
        same.exclude_pid_count = same.exclude_name_count = same.flags = 0;
    }
    same.flags &= ~(uint32_t)ETWATCH_CONFIG_CMDLINE;
    if ((options->flags & ETWATCH_TABLE_CMDLINE) != 0)
        same.flags |= ETWATCH_CONFIG_CMDLINE;
    if ((flags & EW_TRACE_ALL) == EW_TRACE_ALL)
        same.from_ns = same.until_ns = 0;
    int rc = etwatch_trace_open((const char *const *)trace->paths, trace->path_count, &same,
                                ret_trace, &error);
    if (rc < 0) {
        (void)ew_error_set(reterr, rc, error.os_code, "%s", error.message);
        ew_error_fix(reterr, "%s", error.fix);
    }
    return rc;
}

int ew_export_trace_table(const struct etwatch_trace *trace, uint32_t table,
                          const struct etwatch_table_options *options,
                          struct etwatch_trace_stats *stats, struct ArrowArrayStream *ret_stream,
                          struct ew_error *reterr)
{
    struct etwatch_trace *own = NULL;
    if (etwatch_table_name(table) == NULL)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0, "there is no table %u", table);
    if (table >= ETWATCH_TABLE_SPANS)
        return ew_error_set(reterr, ETWATCH_ENOTSUP, 0, "recordings have no table %s",
                            etwatch_table_name(table));
    int rc = ew_export_trace_open_again(trace, options, 0, &own, reterr);
    if (rc < 0)
        return rc;
    if (table == ETWATCH_TABLE_EVENTS)
        rc = ew_table_events(own, options, stats, ret_stream, reterr);
    else if (table == ETWATCH_TABLE_SAMPLES || table == ETWATCH_TABLE_THREAD_SAMPLES)
        rc = make_samples(own, table, options, stats, ret_stream);
    else
        rc = make_totals(own, table, options, stats, ret_stream);
    if (rc < 0)
        etwatch_trace_free(own);
    return rc;
}

int etwatch_trace_table(const struct etwatch_trace *trace, uint32_t table,
                        const struct etwatch_table_options *given,
                        struct ArrowArrayStream *ret_stream, struct etwatch_error_info *reterr)
{
    struct etwatch_table_options options;
    struct ew_error why = {0};
    if (trace == NULL || ret_stream == NULL)
        return ETWATCH_EINVAL;
    int rc = ew_table_options_take(given, &options, &why);
    if (rc == 0)
        rc = ew_export_trace_table(trace, table, &options, NULL, ret_stream, &why);
    if (rc < 0)
        ew_error_out(reterr, &why, rc);
    return rc;
}
