/* SPDX-License-Identifier: MIT */
/*
 * Keeps what a monitor delivers as columns until it is queried. One lock guards everything: it is
 * held for a few stores at a time, and only the monitor's thread and a reader contend for it.
 *
 * A table is a list of batches and the one being filled. Rows beyond the maximum are dropped batch
 * by batch, oldest first; a batch holds at most a sixteenth of the maximum, so that few rows are
 * dropped at once.
 */
#include <etwatch/arrow.h>

#include "arrow/device_rows.h"
#include "arrow/export.h"
#include "arrow/rows.h"
#include "arrow/span_rows.h"
#include "base/alloc.h"
#include "base/sized.h"
#include "export/export.h"
#include "os/os.h"
#include "recording/trace.h"

enum { MAX_ROWS = 1000000 };

struct kept {
    struct ew_columns *columns;
    struct ew_batch_list ready;
};

enum { PROCESSES, SAMPLES, THREAD_SAMPLES, EVENTS, SPANS, INFERENCES, OPERATORS, DEVICES, KEPT };

struct etwatch_collector {
    struct ew_mutex *lock;
    struct ew_sample_rows processes, samples, thread_samples;
    struct ew_columns events, devices;
    struct ew_span_rows spans, inferences, operators;
    struct kept kept[KEPT];
    uint64_t max_rows, dropped;
};

static uint64_t rows_of(const struct kept *kept)
{
    return kept->ready.rows + kept->columns->rows;
}

/* Out of memory: drops the rows of the open batch and continues. */
static void discard_open_batch(struct etwatch_collector *collector, struct kept *kept)
{
    collector->dropped += kept->columns->rows;
    kept->columns->error = 0;
    ew_columns_reset(kept->columns);
}

/* Closes the open batch. */
static void cut(struct etwatch_collector *collector, struct kept *kept)
{
    struct ew_batch *batch = ew_columns_cut(kept->columns);
    uint32_t rows = batch == NULL ? 0 : batch->rows;
    if (ew_batch_list_add(&kept->ready, batch) < 0)
        collector->dropped += rows;
    if (kept->columns->error != 0)
        discard_open_batch(collector, kept);
}

static void after_row(struct etwatch_collector *collector, struct kept *kept)
{
    if (kept->columns->error != 0)
        discard_open_batch(collector, kept);
    if (kept->columns->full)
        cut(collector, kept);
    while (rows_of(kept) > collector->max_rows && kept->ready.rows > 0) {
        struct ew_batch *oldest = ew_batch_list_take(&kept->ready);
        collector->dropped += oldest->rows;
        ew_batch_unref(oldest);
    }
}

void etwatch_collector_on_samples(void *ctx, const struct etwatch_samples *batch)
{
    struct etwatch_collector *collector = ctx;
    struct etwatch_sample scratch;
    struct ew_items items;
    if (collector == NULL || ew_items_in(&items, batch) < 0)
        return;
    ew_mutex_lock(collector->lock);
    for (size_t i = 0; i < items.count; i++) {
        const struct etwatch_sample *sample = ew_items_at(&items, i, &scratch, sizeof scratch);
        uint32_t type = sample->type;
        if (type == ETWATCH_TYPE_SAMPLE) {
            ew_arrow_sample_rows_put(&collector->samples, sample, NULL);
            after_row(collector, &collector->kept[SAMPLES]);
        } else if (type == ETWATCH_TYPE_THREAD) {
            ew_arrow_sample_rows_put(&collector->thread_samples, sample, NULL);
            after_row(collector, &collector->kept[THREAD_SAMPLES]);
        } else if (type == ETWATCH_TYPE_EXIT) {
            ew_arrow_sample_rows_put(&collector->processes, sample, NULL);
            after_row(collector, &collector->kept[PROCESSES]);
        }
    }
    ew_mutex_unlock(collector->lock);
}

void etwatch_collector_on_events(void *ctx, const struct etwatch_events *batch)
{
    struct etwatch_collector *collector = ctx;
    struct etwatch_event scratch;
    struct ew_items items;
    if (collector == NULL || ew_items_in(&items, batch) < 0)
        return;
    ew_mutex_lock(collector->lock);
    for (size_t i = 0; i < items.count; i++) {
        ew_arrow_event_rows_put(&collector->events,
                                ew_items_at(&items, i, &scratch, sizeof scratch));
        after_row(collector, &collector->kept[EVENTS]);
    }
    ew_mutex_unlock(collector->lock);
}

void etwatch_collector_on_devices(void *ctx, const struct etwatch_devices *batch)
{
    struct etwatch_collector *collector = ctx;
    struct etwatch_device scratch;
    struct ew_items items;
    if (collector == NULL || ew_items_in(&items, batch) < 0)
        return;
    ew_mutex_lock(collector->lock);
    for (size_t i = 0; i < items.count; i++) {
        ew_arrow_device_rows_put(&collector->devices,
                                 ew_items_at(&items, i, &scratch, sizeof scratch));
        after_row(collector, &collector->kept[DEVICES]);
    }
    ew_mutex_unlock(collector->lock);
}

void etwatch_collector_on_span(void *ctx, const struct etwatch_span *given)
{
    struct etwatch_collector *collector = ctx;
    struct etwatch_span scratch;
    const struct etwatch_span *span = ew_sized_or_null(given, &scratch, sizeof scratch);
    if (collector == NULL || span == NULL || span->cause_count > ETWATCH_SPAN_CAUSES)
        return;
    ew_mutex_lock(collector->lock);
    ew_arrow_span_rows_put(&collector->spans, span);
    after_row(collector, &collector->kept[SPANS]);
    if (span->kind == ETWATCH_SPAN_INFERENCE || span->kind == ETWATCH_SPAN_LOAD) {
        ew_arrow_span_rows_put(&collector->inferences, span);
        after_row(collector, &collector->kept[INFERENCES]);
    }
    ew_mutex_unlock(collector->lock);
}

void etwatch_collector_on_operator(void *ctx, const struct etwatch_operator *given)
{
    struct etwatch_collector *collector = ctx;
    struct etwatch_operator op = {.size = sizeof op};
    struct etwatch_span scratch;
    if (collector == NULL || given == NULL ||
        ew_sized_in(&op, sizeof op, given, "operator", NULL) < 0)
        return;
    op.span = ew_sized_or_null(op.span, &scratch, sizeof scratch);
    if (op.span == NULL || op.span->cause_count > ETWATCH_SPAN_CAUSES)
        return;
    ew_mutex_lock(collector->lock);
    ew_arrow_operator_rows_put(&collector->operators, &op);
    after_row(collector, &collector->kept[OPERATORS]);
    ew_mutex_unlock(collector->lock);
}

/* ---------------------------------------------------------------- new and free */

void etwatch_collector_free(struct etwatch_collector *collector)
{
    if (collector == NULL)
        return;
    for (size_t i = 0; i < KEPT; i++)
        ew_batch_list_done(&collector->kept[i].ready);
    ew_arrow_sample_rows_done(&collector->processes);
    ew_arrow_sample_rows_done(&collector->samples);
    ew_arrow_sample_rows_done(&collector->thread_samples);
    ew_columns_done(&collector->events);
    ew_columns_done(&collector->devices);
    ew_arrow_span_rows_done(&collector->spans);
    ew_arrow_span_rows_done(&collector->inferences);
    ew_arrow_span_rows_done(&collector->operators);
    if (collector->lock != NULL)
        ew_mutex_free(collector->lock);
    ew_free(collector);
}

static int init(struct etwatch_collector *collector, const struct etwatch_table_options *options)
{
    uint64_t part = options->max_rows / 16 + 1;
    uint32_t rows = options->batch_rows == 0 ? EW_BATCH_ROWS : options->batch_rows;
    rows = part < rows ? (uint32_t)part : rows;
    uint32_t flags = options->flags;
    int rc = ew_mutex_new(&collector->lock);
    if (rc == 0)
        rc = ew_arrow_sample_rows_init(&collector->processes, ETWATCH_TABLE_PROCESSES, flags, false,
                                       rows);
    if (rc == 0)
        rc = ew_arrow_sample_rows_init(&collector->samples, ETWATCH_TABLE_SAMPLES, flags, false,
                                       rows);
    if (rc == 0)
        rc = ew_arrow_sample_rows_init(&collector->thread_samples, ETWATCH_TABLE_THREAD_SAMPLES,
                                       flags, false, rows);
    if (rc == 0)
        rc = ew_arrow_event_rows_init(&collector->events, flags, rows);
    if (rc == 0)
        rc = ew_arrow_span_rows_init(&collector->spans, false, flags, rows);
    if (rc == 0)
        rc = ew_arrow_span_rows_init(&collector->inferences, false, flags, rows);
    if (rc == 0)
        rc = ew_arrow_span_rows_init(&collector->operators, true, flags, rows);
    if (rc == 0)
        rc = ew_arrow_device_rows_init(&collector->devices, flags, rows);
    collector->max_rows = options->max_rows;
    collector->kept[PROCESSES].columns = &collector->processes.columns;
    collector->kept[SAMPLES].columns = &collector->samples.columns;
    collector->kept[THREAD_SAMPLES].columns = &collector->thread_samples.columns;
    collector->kept[EVENTS].columns = &collector->events;
    collector->kept[SPANS].columns = &collector->spans.columns;
    collector->kept[INFERENCES].columns = &collector->inferences.columns;
    collector->kept[OPERATORS].columns = &collector->operators.columns;
    collector->kept[DEVICES].columns = &collector->devices;
    return rc;
}

int etwatch_collector_new(const struct etwatch_table_options *requested,
                          struct etwatch_collector **ret_collector,
                          struct etwatch_error_info *reterr)
{
    struct etwatch_table_options options;
    struct ew_error why = {0};
    if (ret_collector == NULL)
        return ETWATCH_EINVAL;
    int rc = ew_table_options_take(requested, &options, &why);
    if (rc == 0) {
        struct etwatch_collector *collector = ew_calloc(1, sizeof *collector);
        options.max_rows = options.max_rows == 0 ? MAX_ROWS : options.max_rows;
        rc = collector == NULL ? ETWATCH_ENOMEM : init(collector, &options);
        if (rc == 0)
            *ret_collector = collector;
        else
            etwatch_collector_free(collector);
        if (rc < 0)
            (void)ew_error_set(&why, rc, 0, "%s", etwatch_strerror(rc));
    }
    if (rc < 0)
        ew_error_out(reterr, &why, why.code);
    return rc;
}

/* --------------------------------------------------------------------- queries */

int etwatch_collector_stats(const struct etwatch_collector *collector,
                            struct etwatch_collector_stats *ret_stats)
{
    if (collector == NULL || ret_stats == NULL)
        return ETWATCH_EINVAL;
    ew_mutex_lock(collector->lock);
    struct etwatch_collector_stats stats = {
        .samples = rows_of(&collector->kept[SAMPLES]),
        .thread_samples = rows_of(&collector->kept[THREAD_SAMPLES]),
        .processes = rows_of(&collector->kept[PROCESSES]),
        .events = rows_of(&collector->kept[EVENTS]),
        .spans = rows_of(&collector->kept[SPANS]),
        .inferences = rows_of(&collector->kept[INFERENCES]),
        .operators = rows_of(&collector->kept[OPERATORS]),
        .devices = rows_of(&collector->kept[DEVICES]),
        .dropped = collector->dropped,
    };
    ew_mutex_unlock(collector->lock);
    return ew_sized_out(ret_stats, &stats, sizeof stats);
}

static struct kept *find_table(struct etwatch_collector *collector, uint32_t table)
{
    switch (table) {
    case ETWATCH_TABLE_PROCESSES:
        return &collector->kept[PROCESSES];
    case ETWATCH_TABLE_SAMPLES:
        return &collector->kept[SAMPLES];
    case ETWATCH_TABLE_THREAD_SAMPLES:
        return &collector->kept[THREAD_SAMPLES];
    case ETWATCH_TABLE_EVENTS:
        return &collector->kept[EVENTS];
    case ETWATCH_TABLE_SPANS:
        return &collector->kept[SPANS];
    case ETWATCH_TABLE_INFERENCES:
        return &collector->kept[INFERENCES];
    case ETWATCH_TABLE_OPERATORS:
        return &collector->kept[OPERATORS];
    case ETWATCH_TABLE_DEVICES:
        return &collector->kept[DEVICES];
    default:
        return NULL;
    }
}

int etwatch_collector_table(struct etwatch_collector *collector, uint32_t table, uint32_t flags,
                            struct ArrowArrayStream *ret_stream)
{
    struct ew_batch_list list = {0};
    if (collector == NULL || ret_stream == NULL || (flags & ~(uint32_t)ETWATCH_TABLE_TAKE) != 0)
        return ETWATCH_EINVAL;
    struct kept *kept = find_table(collector, table);
    if (kept == NULL)
        return ETWATCH_EINVAL;
    ew_mutex_lock(collector->lock);
    cut(collector, kept);
    int rc = ew_batch_list_copy(&kept->ready, &list);
    if (rc == 0)
        rc = ew_batch_list_export(&list, kept->columns->layout, ret_stream);
    if (rc == 0 && (flags & ETWATCH_TABLE_TAKE) != 0)
        ew_batch_list_done(&kept->ready);
    ew_mutex_unlock(collector->lock);
    ew_batch_list_done(&list);
    return rc;
}
