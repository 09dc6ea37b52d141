/* SPDX-License-Identifier: MIT */
/*
 * Owns one row per process that ran in the open window. Windows follow each other in the time of
 * the samples. An interval without a sample is one in which the process did nothing, so it counts
 * as a zero for cpu_percent and for what adds up; memory and other gauges have no value there and
 * count only where they were measured.
 */
#include "cli/window_aggregate.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "sampler/aggregate.h"
#include "sampler/sparse_histogram.h"

enum { ROWS_MAX = 4096, NAME_SIZE = 64 };

struct ew_window_row {
    uint32_t pid;
    uint32_t source;
    uint64_t start_ns;
    uint64_t covered_ns; /* by samples */
    uint64_t dt_ns;      /* length of the latest interval */
    uint64_t end_ns;     /* when the process ended; 0: it has not */
    uint32_t incomplete;
    bool named;
    char name[NAME_SIZE];
    struct ew_aggregate cpu, rss;
    struct ew_sparse_histogram *more; /* of other metrics, in ascending order; NULL: none */
};

void ew_window_aggregate_init(struct ew_window_aggregate *windows, double seconds)
{
    *windows = (struct ew_window_aggregate){.length_ns = (uint64_t)(seconds * 1e9)};
}

void ew_window_aggregate_want(struct ew_window_aggregate *windows,
                              const uint8_t wanted[ETWATCH_METRIC_COUNT])
{
    memcpy(windows->wanted, wanted, sizeof windows->wanted);
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++)
        if (wanted[i] != 0 && i != ETWATCH_M_cpu_percent && i != ETWATCH_M_rss_bytes)
            etwatch_metric_set_add(&windows->more, i);
}

static uint32_t count_more(const struct ew_window_aggregate *windows)
{
    return etwatch_metric_set_count(&windows->more);
}

static void drop_rows(struct ew_window_aggregate *windows)
{
    for (uint32_t i = 0; i < windows->count; i++) {
        ew_aggregate_done(&windows->rows[i].cpu);
        ew_aggregate_done(&windows->rows[i].rss);
        for (uint32_t at = 0; windows->rows[i].more != NULL && at < count_more(windows); at++)
            ew_sparse_histogram_done(&windows->rows[i].more[at]);
        ew_free(windows->rows[i].more);
    }
    windows->count = 0;
}

void ew_window_aggregate_done(struct ew_window_aggregate *windows)
{
    drop_rows(windows);
    ew_free(windows->rows);
    *windows = (struct ew_window_aggregate){0};
}

static struct ew_window_row *find(struct ew_window_aggregate *windows,
                                  const struct etwatch_sample *sample)
{
    /* Newest last, and samples of one delivery come in the same order each time. */
    for (uint32_t i = windows->count; i > 0; i--) {
        struct ew_window_row *row = &windows->rows[i - 1];
        if (row->pid == sample->pid && row->start_ns == sample->start_ns)
            return row;
    }
    return NULL;
}

static int make(struct ew_window_aggregate *windows, const struct etwatch_sample *sample,
                struct ew_window_row **ret_row)
{
    *ret_row = NULL;
    if (windows->count == ROWS_MAX) {
        windows->unlisted++;
        return 0;
    }
    if (windows->count == windows->size) {
        uint32_t size = windows->size == 0 ? 16 : windows->size * 2;
        struct ew_window_row *rows = ew_realloc_array(windows->rows, size, sizeof *rows);
        if (rows == NULL)
            return ETWATCH_ENOMEM;
        windows->rows = rows;
        windows->size = size;
    }
    struct ew_window_row *row = &windows->rows[windows->count++];
    memset(row, 0, sizeof *row);
    row->pid = sample->pid;
    row->start_ns = sample->start_ns;
    row->source = sample->source;
    ew_aggregate_init(&row->cpu);
    ew_aggregate_init(&row->rss);
    if (!etwatch_metric_set_is_empty(&windows->more)) {
        row->more = ew_calloc(count_more(windows), sizeof *row->more);
        if (row->more == NULL) {
            windows->count--;
            return ETWATCH_ENOMEM;
        }
    }
    *ret_row = row;
    return 0;
}

static void take_name(struct ew_window_row *row, const char *name)
{
    if (name == NULL)
        return;
    size_t len = strlen(name);
    if (len >= sizeof row->name)
        len = sizeof row->name - 1;
    memcpy(row->name, name, len);
    row->name[len] = '\0';
    row->named = true;
}

/* The intervals of the window in which the process lived and gave no sample. */
static uint64_t count_idle(const struct ew_window_row *row, uint64_t from_ns, uint64_t to_ns)
{
    if (row->start_ns > from_ns)
        from_ns = row->start_ns;
    if (row->end_ns != 0 && row->end_ns < to_ns)
        to_ns = row->end_ns;
    uint64_t lived_ns = to_ns > from_ns ? to_ns - from_ns : 0;
    if (row->dt_ns == 0 || lived_ns <= row->covered_ns)
        return 0;
    return (lived_ns - row->covered_ns) / row->dt_ns;
}

/* Values that nobody asked for are unknown, not 0. */
static void leave_wanted(struct etwatch_aggregate *values, uint32_t wanted)
{
    double *const all[] = {&values->avg, &values->max, &values->p95, &values->p99};
    for (uint32_t i = 0; wanted != 0 && i < 4; i++)
        if ((wanted >> i & 1) == 0)
            *all[i] = NAN;
}

static void put_more(const struct ew_window_aggregate *windows, const struct ew_window_row *row,
                     uint64_t idle, struct etwatch_aggregate *spreads)
{
    const struct ew_sparse_histogram *spread = row->more;
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++) {
        if (!etwatch_metric_set_has(&windows->more, i))
            continue;
        ew_sparse_histogram_result(spread++, ew_sparse_histogram_idle_is_zero(i) ? idle : 0,
                                   spreads);
        leave_wanted(spreads++, windows->wanted[i]);
    }
}

static int close_window(struct ew_window_aggregate *windows, uint64_t to_ns,
                        struct etwatch_sink *sink)
{
    struct etwatch_aggregate spreads[ETWATCH_METRIC_COUNT];
    int rc = 0;
    for (uint32_t i = 0; i < windows->count && rc == 0; i++) {
        struct ew_window_row *row = &windows->rows[i];
        struct etwatch_window window = {
            .size = sizeof window,
            .source = row->source,
            .flags = row->incomplete == 0 ? (uint32_t)ETWATCH_SAMPLE_COMPLETE : 0,
            .pid = row->pid,
            .start_ns = row->start_ns,
            .t_ns = to_ns,
            .dt_ns = to_ns - windows->from_ns,
            .name = row->named ? row->name : NULL,
            .more = windows->more,
            .more_spreads = spreads,
        };
        uint64_t idle = count_idle(row, windows->from_ns, to_ns);
        ew_aggregate_add_zeros(&row->cpu, idle);
        put_more(windows, row, idle, spreads);
        ew_aggregate_result(&row->cpu, &window.cpu_percent);
        ew_aggregate_result(&row->rss, &window.rss_bytes);
        leave_wanted(&window.cpu_percent, windows->wanted[ETWATCH_M_cpu_percent]);
        leave_wanted(&window.rss_bytes, windows->wanted[ETWATCH_M_rss_bytes]);
        rc = etwatch_sink_windows(sink, &window, 1);
    }
    drop_rows(windows);
    return rc;
}

static int advance(struct ew_window_aggregate *windows, const struct etwatch_sample *sample,
                   struct etwatch_sink *sink)
{
    uint64_t begin_ns = sample->t_ns - sample->dt_ns;
    if (windows->from_ns == 0) {
        windows->from_ns = begin_ns;
        return 0;
    }
    uint64_t end_ns = windows->from_ns + windows->length_ns;
    if (sample->t_ns <= end_ns)
        return 0;
    int rc = close_window(windows, end_ns, sink);
    windows->from_ns = end_ns;
    if (begin_ns > end_ns)
        windows->from_ns += (begin_ns - end_ns) / windows->length_ns * windows->length_ns;
    return rc;
}

static int add_more(const struct ew_window_aggregate *windows, struct ew_window_row *row,
                    const struct etwatch_sample *sample)
{
    double values[ETWATCH_METRIC_COUNT];
    struct ew_sparse_histogram *spread = row->more;
    int rc = 0;
    if (etwatch_metric_set_is_empty(&windows->more))
        return 0;
    ew_sparse_histogram_values(sample, values);
    for (uint32_t i = 0; rc == 0 && i < ETWATCH_METRIC_COUNT; i++) {
        if (!etwatch_metric_set_has(&windows->more, i))
            continue;
        if (etwatch_sample_has(sample, i))
            rc = ew_sparse_histogram_add(spread, values[i], 1);
        spread++;
    }
    return rc;
}

static int add_values(const struct ew_window_aggregate *windows, struct ew_window_row *row,
                      const struct etwatch_sample *sample)
{
    int rc = 0;
    row->covered_ns += sample->dt_ns;
    row->dt_ns = sample->dt_ns > row->dt_ns ? sample->dt_ns : row->dt_ns;
    row->incomplete += (sample->flags & ETWATCH_SAMPLE_COMPLETE) == 0;
    if (etwatch_sample_has(sample, ETWATCH_M_cpu_percent))
        rc = ew_aggregate_add(&row->cpu, sample->cpu_percent);
    if (rc == 0 && etwatch_sample_has(sample, ETWATCH_M_rss_bytes))
        rc = ew_aggregate_add(&row->rss, (double)sample->rss_bytes);
    if (rc == 0)
        rc = add_more(windows, row, sample);
    return rc == ETWATCH_ENOMEM ? rc : 0;
}

int ew_window_aggregate_add(struct ew_window_aggregate *windows,
                            const struct etwatch_sample *sample, struct etwatch_sink *sink)
{
    int rc = 0;
    struct ew_window_row *row = NULL;
    if (sample->type == ETWATCH_TYPE_SAMPLE)
        rc = advance(windows, sample, sink);
    else if (sample->type != ETWATCH_TYPE_EXIT)
        return 0;
    if (rc < 0)
        return rc;
    if (sample->t_ns > windows->last_ns)
        windows->last_ns = sample->t_ns;
    row = find(windows, sample);
    if (sample->type == ETWATCH_TYPE_EXIT) {
        if (row != NULL)
            row->end_ns = sample->t_ns;
        return 0;
    }
    if (row == NULL)
        rc = make(windows, sample, &row);
    if (row == NULL)
        return rc;
    take_name(row, sample->name);
    return add_values(windows, row, sample);
}

int ew_window_aggregate_end(struct ew_window_aggregate *windows, struct etwatch_sink *sink)
{
    if (windows->from_ns == 0 || windows->last_ns <= windows->from_ns)
        return 0;
    return close_window(windows, windows->last_ns, sink);
}
