/* SPDX-License-Identifier: MIT */
/*
 * Owns one row per process that ran in the open window. Windows follow each other in the time of
 * the samples. An interval without a sample is one in which the process did nothing, so it counts
 * as 0 for cpu_percent and for counters; gauges have no value there and count only where they were
 * measured.
 */
#include <etwatch/window.h>

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/sized.h"
#include "model/metric.h"
#include "sampler/aggregate.h"
#include "sampler/sparse_histogram.h"

enum { ROWS_MAX = 4096, NAME_SIZE = 64 };

struct row {
    uint32_t pid;
    uint32_t source;
    uint64_t start_ns;
    uint64_t covered_ns; /* by samples */
    uint64_t dt_ns;      /* length of the longest interval */
    uint64_t end_ns;     /* when the process exited; 0: it has not */
    uint32_t incomplete;
    bool named;
    char name[NAME_SIZE];
    struct ew_aggregate cpu, rss;
    struct ew_sparse_histogram *more; /* one per entry of etwatch_windows.more; NULL: none */
};

struct etwatch_aggregator {
    struct etwatch_aggregator_options options;
    uint32_t cpu_values, rss_values; /* enum etwatch_window_value; 0: all */
    /* The other metrics, each once and in ascending order, as etwatch_window.more_spreads has them.
     */
    struct etwatch_window_metric more[ETWATCH_METRIC_COUNT];
    uint32_t more_count;
    uint64_t from_ns; /* start of the open window; 0: none is open */
    uint64_t last_ns;
    struct row *rows;
    uint32_t count, size;
    uint64_t dropped;
};

static void select_metrics(struct etwatch_aggregator *windows)
{
    const struct etwatch_aggregator_options *options = &windows->options;
    for (uint32_t metric = 0; metric < ETWATCH_METRIC_COUNT; metric++) {
        const struct etwatch_window_metric *last = NULL;
        for (uint32_t i = 0; i < options->metric_count; i++)
            if (options->metrics[i].metric == metric)
                last = &options->metrics[i];
        if (last == NULL)
            continue;
        if (metric == ETWATCH_M_cpu_percent)
            windows->cpu_values = last->values;
        else if (metric == ETWATCH_M_rss_bytes)
            windows->rss_values = last->values;
        else
            windows->more[windows->more_count++] = *last;
    }
}

static int check_options(const struct etwatch_aggregator_options *options, struct ew_error *err)
{
    if (options->length_ns == 0 || options->on_window == NULL ||
        (options->metric_count > 0 && options->metrics == NULL))
        return ew_error_set(err, ETWATCH_EINVAL, 0,
                            "windows need a length, a callback and a list of metrics");
    for (uint32_t i = 0; i < options->metric_count; i++) {
        struct etwatch_metric_info info = {.size = sizeof info};
        if (etwatch_metric_info(options->metrics[i].metric, &info) < 0)
            return ew_error_set(err, ETWATCH_EINVAL, 0, "there is no metric %u",
                                options->metrics[i].metric);
        if (info.has_average == 0)
            return ew_error_set(err, ETWATCH_EINVAL, 0, "the average of %s is meaningless",
                                info.name);
    }
    return 0;
}

int etwatch_aggregator_new(const struct etwatch_aggregator_options *options,
                           struct etwatch_aggregator **ret_windows,
                           struct etwatch_error_info *reterr)
{
    struct ew_error err = {0};
    struct etwatch_aggregator *windows = NULL;
    int rc = options == NULL || ret_windows == NULL ? ETWATCH_EINVAL : 0;
    if (rc == 0) {
        windows = ew_calloc(1, sizeof *windows);
        rc = windows == NULL ? ETWATCH_ENOMEM : 0;
    }
    if (rc == 0)
        rc = ew_sized_in(&windows->options, sizeof windows->options, options,
                         "etwatch_aggregator_options", &err);
    if (rc == 0)
        rc = check_options(&windows->options, &err);
    if (rc < 0) {
        ew_error_out(reterr, &err, rc);
        ew_free(windows);
        return rc;
    }
    select_metrics(windows);
    windows->options.metrics = NULL; /* the caller's */
    *ret_windows = windows;
    return 0;
}

static void drop_rows(struct etwatch_aggregator *windows)
{
    for (uint32_t i = 0; i < windows->count; i++) {
        ew_aggregate_done(&windows->rows[i].cpu);
        ew_aggregate_done(&windows->rows[i].rss);
        for (uint32_t at = 0; windows->rows[i].more != NULL && at < windows->more_count; at++)
            ew_sparse_histogram_done(&windows->rows[i].more[at]);
        ew_free(windows->rows[i].more);
    }
    windows->count = 0;
}

void etwatch_aggregator_free(struct etwatch_aggregator *windows)
{
    if (windows == NULL)
        return;
    drop_rows(windows);
    ew_free(windows->rows);
    ew_free(windows);
}

uint64_t etwatch_aggregator_dropped(const struct etwatch_aggregator *windows)
{
    return windows == NULL ? 0 : windows->dropped;
}

static struct row *find(struct etwatch_aggregator *windows, const struct etwatch_sample *sample)
{
    /* From the newest row: a process that just started is found first. */
    for (uint32_t i = windows->count; i > 0; i--) {
        struct row *row = &windows->rows[i - 1];
        if (row->pid == sample->pid && row->start_ns == sample->start_ns)
            return row;
    }
    return NULL;
}

static int make(struct etwatch_aggregator *windows, const struct etwatch_sample *sample,
                struct row **ret_row)
{
    *ret_row = NULL;
    if (windows->count == ROWS_MAX) {
        windows->dropped++;
        return 0;
    }
    if (windows->count == windows->size) {
        uint32_t size = windows->size == 0 ? 16 : windows->size * 2;
        struct row *rows = ew_realloc_array(windows->rows, size, sizeof *rows);
        if (rows == NULL)
            return ETWATCH_ENOMEM;
        windows->rows = rows;
        windows->size = size;
    }
    struct row *row = &windows->rows[windows->count++];
    memset(row, 0, sizeof *row);
    row->pid = sample->pid;
    row->start_ns = sample->start_ns;
    row->source = sample->source;
    ew_aggregate_init(&row->cpu);
    ew_aggregate_init(&row->rss);
    if (windows->more_count > 0) {
        row->more = ew_calloc(windows->more_count, sizeof *row->more);
        if (row->more == NULL) {
            windows->count--;
            return ETWATCH_ENOMEM;
        }
    }
    *ret_row = row;
    return 0;
}

static void take_name(struct row *row, const char *name)
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

/* The intervals of the window in which the process existed and delivered no sample. */
static uint64_t count_idle(const struct row *row, uint64_t from_ns, uint64_t to_ns)
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

/* Values that are not selected are unknown, not 0. */
static void keep_selected(struct etwatch_aggregate *aggregate, uint32_t values)
{
    double *const all[] = {&aggregate->avg, &aggregate->max, &aggregate->p95, &aggregate->p99};
    for (uint32_t i = 0; values != 0 && i < 4; i++)
        if ((values >> i & 1) == 0)
            *all[i] = NAN;
}

static void finish_more(const struct etwatch_aggregator *windows, const struct row *row,
                        uint64_t idle, struct etwatch_aggregate *ret_spreads)
{
    for (uint32_t i = 0; i < windows->more_count; i++) {
        const struct etwatch_window_metric *wanted = &windows->more[i];
        ew_sparse_histogram_result(&row->more[i],
                                   ew_sparse_histogram_idle_is_zero(wanted->metric) ? idle : 0,
                                   &ret_spreads[i]);
        keep_selected(&ret_spreads[i], wanted->values);
    }
}

static int close_window(struct etwatch_aggregator *windows, uint64_t to_ns)
{
    struct etwatch_aggregate spreads[ETWATCH_METRIC_COUNT];
    struct etwatch_metric_set more = {{0}};
    int rc = 0;
    for (uint32_t i = 0; i < windows->more_count; i++)
        etwatch_metric_set_add(&more, windows->more[i].metric);
    for (uint32_t i = 0; i < windows->count && rc == 0; i++) {
        struct row *row = &windows->rows[i];
        struct etwatch_window window = {
            .size = sizeof window,
            .source = row->source,
            .flags = row->incomplete == 0 ? (uint32_t)ETWATCH_SAMPLE_COMPLETE : 0,
            .pid = row->pid,
            .start_ns = row->start_ns,
            .t_ns = to_ns,
            .dt_ns = to_ns - windows->from_ns,
            .name = row->named ? row->name : NULL,
            .more = more,
            .more_spreads = spreads,
        };
        uint64_t idle = count_idle(row, windows->from_ns, to_ns);
        ew_aggregate_add_zeros(&row->cpu, idle);
        finish_more(windows, row, idle, spreads);
        ew_aggregate_result(&row->cpu, &window.cpu_percent);
        ew_aggregate_result(&row->rss, &window.rss_bytes);
        keep_selected(&window.cpu_percent, windows->cpu_values);
        keep_selected(&window.rss_bytes, windows->rss_values);
        rc = windows->options.on_window(windows->options.ctx, &window);
    }
    drop_rows(windows);
    return rc;
}

static int advance(struct etwatch_aggregator *windows, const struct etwatch_sample *sample)
{
    uint64_t begin_ns = sample->t_ns - sample->dt_ns, length_ns = windows->options.length_ns;
    if (windows->from_ns == 0) {
        windows->from_ns = begin_ns;
        return 0;
    }
    uint64_t end_ns = windows->from_ns + length_ns;
    if (sample->t_ns <= end_ns)
        return 0;
    int rc = close_window(windows, end_ns);
    windows->from_ns = end_ns;
    if (begin_ns > end_ns)
        windows->from_ns += (begin_ns - end_ns) / length_ns * length_ns;
    return rc;
}

static int add_more(const struct etwatch_aggregator *windows, struct row *row,
                    const struct etwatch_sample *sample)
{
    double values[ETWATCH_METRIC_COUNT];
    int rc = 0;
    if (windows->more_count == 0)
        return 0;
    ew_sparse_histogram_values(sample, values);
    for (uint32_t i = 0; rc == 0 && i < windows->more_count; i++) {
        uint32_t metric = windows->more[i].metric;
        if (etwatch_sample_has(sample, metric))
            rc = ew_sparse_histogram_add(&row->more[i], values[metric], 1);
    }
    return rc;
}

static int add_values(const struct etwatch_aggregator *windows, struct row *row,
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

int etwatch_aggregator_add(struct etwatch_aggregator *windows, const struct etwatch_sample *given)
{
    struct etwatch_sample copy;
    struct row *row = NULL;
    int rc = 0;
    const struct etwatch_sample *sample =
        windows == NULL || given == NULL ? NULL : ew_sized_or_null(given, &copy, sizeof copy);
    if (sample == NULL)
        return ew_sized_error(given, sizeof copy);
    if (sample->type == ETWATCH_TYPE_SAMPLE)
        rc = advance(windows, sample);
    else if (sample->type != ETWATCH_TYPE_EXIT)
        return 0;
    if (rc != 0)
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

int etwatch_aggregator_end(struct etwatch_aggregator *windows)
{
    if (windows == NULL)
        return ETWATCH_EINVAL;
    if (windows->from_ns == 0 || windows->last_ns <= windows->from_ns)
        return 0;
    return close_window(windows, windows->last_ns);
}
