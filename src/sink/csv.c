/* SPDX-License-Identifier: MIT */
/*
 * CSV (RFC 4180, but lines end in LF, which all readers accept): one header, then a row for each
 * start, exit, sample and thread. Unknown values are empty fields. Other objects (meta, losses,
 * statistics) are not written; the column `complete` still shows losses.
 *
 * Windows have rows of another shape and their own header: a file holds one kind or the other,
 * depending on which came first.
 */
#include "sink/sink.h"

#include <string.h>

#include "sink/fields.h"

struct csv {
    struct etwatch_sink base;
    bool header_done;
    bool report; /* rows of a report: a last column names the estimated metrics */
    struct etwatch_metric_set metrics[EW_TYPE_PROCESS + 1]; /* by type */
};

static int init(struct etwatch_sink *sink, const struct etwatch_sink_options *options,
                struct ew_error *err)
{
    struct csv *self = (struct csv *)sink;
    (void)options;
    (void)err;
    for (uint32_t type = ETWATCH_TYPE_START; type <= EW_TYPE_PROCESS; type++)
        self->metrics[type] = ew_sink_metrics_of_type(type);
    if (sink->column_count > 0)
        return 0;
    for (uint32_t field = 0; field < EW_FIELD_COUNT; field++)
        if (ew_field_is_shown(field) &&
            (field != EW_F_cmdline || (sink->flags & ETWATCH_SINK_CMDLINE) != 0))
            sink->columns[sink->column_count++] = (uint16_t)field;
    return 0;
}

static void put_header(struct etwatch_sink *sink)
{
    struct csv *self = (struct csv *)sink;
    for (uint32_t i = 0; i < sink->column_count; i++) {
        if (i > 0)
            ew_buf_char(&sink->out, ',');
        ew_buf_text(&sink->out, ew_field_name(sink->columns[i]));
    }
    ew_buf_text(&sink->out, self->report ? ",estimated\n" : "\n");
    self->header_done = true;
}

static void put_value(struct ew_buf *out, const struct ew_value *value)
{
    switch (value->kind) {
    case EW_VALUE_NONE:
        break;
    case EW_VALUE_U64:
        ew_buf_u64(out, value->u64);
        break;
    case EW_VALUE_I64:
        ew_buf_i64(out, value->i64);
        break;
    case EW_VALUE_DOUBLE:
        (void)ew_buf_fixed(out, value->number, 3); /* empty if it is not a number */
        break;
    case EW_VALUE_TEXT:
        ew_buf_csv_field(out, value->text, strlen(value->text));
        break;
    }
}

/* Most metrics of most rows are unknown: their commas are written in one step. */
static void put_row(struct etwatch_sink *sink, const struct etwatch_sample *sample)
{
    struct csv *self = (struct csv *)sink;
    struct ew_buf *out = &sink->out;
    uint32_t commas = 0;

    if (!self->header_done)
        put_header(sink);
    uint32_t type = sample->type <= EW_TYPE_PROCESS ? sample->type : ETWATCH_TYPE_SAMPLE;
    struct etwatch_metric_set known = self->metrics[type];
    etwatch_metric_set_intersect(&known, &sample->has);
    for (uint32_t i = 0; i < sink->column_count; i++, commas++) {
        uint32_t field = sink->columns[i];
        if (field >= EW_WHICH_COUNT && !etwatch_metric_set_has(&known, field - EW_WHICH_COUNT))
            continue;
        struct ew_value value = ew_field_value(sample, field);
        if (value.kind == EW_VALUE_NONE)
            continue;
        ew_buf_repeat(out, ',', commas);
        commas = 0;
        put_value(out, &value);
    }
    ew_buf_repeat(out, ',', commas - 1);
}

static void put_sample(struct etwatch_sink *sink, const struct etwatch_sample *sample)
{
    put_row(sink, sample);
    ew_buf_char(&sink->out, '\n');
    ew_buf_end_line(&sink->out);
}

static void put_process(struct etwatch_sink *sink, const struct etwatch_sample *process,
                        const struct etwatch_metric_set *estimated)
{
    struct ew_buf *out = &sink->out;
    struct etwatch_sample named = *process;
    char separator = ',';
    if (named.type != ETWATCH_TYPE_THREAD)
        named.type = EW_TYPE_PROCESS;
    ((struct csv *)sink)->report = true;
    put_row(sink, &named);
    if (etwatch_metric_set_is_empty(estimated))
        ew_buf_char(out, ',');
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++) {
        if (!etwatch_metric_set_has(estimated, i))
            continue;
        ew_buf_char(out, separator);
        ew_buf_text(out, ew_sink_metric_info[i].name);
        separator = ' ';
    }
    ew_buf_char(out, '\n');
    ew_buf_end_line(out);
}

/* A report without a process still has a header. */
static void put_end(struct etwatch_sink *sink)
{
    struct csv *self = (struct csv *)sink;
    self->report = true;
    if (!self->header_done)
        put_header(sink);
}

static void put_spread(struct ew_buf *out, const struct etwatch_aggregate *a)
{
    const double parts[] = {a->avg, a->max, a->p95, a->p99};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        ew_buf_char(out, ',');
        if (a->count > 0)
            (void)ew_buf_fixed(out, parts[i], 3);
    }
}

static void put_window_header(struct ew_buf *out, const struct etwatch_metric_set *more)
{
    static const char *const parts[] = {"_avg", "_max", "_p95", "_p99"};
    ew_buf_text(out, "type,pid,start_ns,name,t_ns,dt_ns,source,complete,intervals,"
                     "cpu_percent_avg,cpu_percent_max,cpu_percent_p95,cpu_percent_p99,"
                     "rss_bytes_avg,rss_bytes_max,rss_bytes_p95,rss_bytes_p99");
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++) {
        for (size_t part = 0; etwatch_metric_set_has(more, i) && part < 4; part++) {
            ew_buf_char(out, ',');
            ew_buf_text(out, ew_sink_metric_info[i].name);
            ew_buf_text(out, parts[part]);
        }
    }
    ew_buf_char(out, '\n');
}

static void put_window(struct etwatch_sink *sink, const struct etwatch_window *window)
{
    struct csv *self = (struct csv *)sink;
    struct ew_buf *out = &sink->out;

    if (!self->header_done)
        put_window_header(out, &window->more);
    self->header_done = true;
    ew_buf_text(out, "window,");
    ew_buf_u64(out, window->pid);
    ew_buf_char(out, ',');
    if (window->start_ns != 0)
        ew_buf_u64(out, window->start_ns);
    ew_buf_char(out, ',');
    if (window->name != NULL)
        ew_buf_csv_field(out, window->name, strlen(window->name));
    ew_buf_char(out, ',');
    ew_buf_u64(out, window->t_ns);
    ew_buf_char(out, ',');
    ew_buf_u64(out, window->dt_ns);
    ew_buf_char(out, ',');
    const char *source = etwatch_source_name(window->source);
    if (source != NULL)
        ew_buf_text(out, source);
    ew_buf_text(out, (window->flags & ETWATCH_SAMPLE_COMPLETE) != 0 ? ",true," : ",false,");
    ew_buf_u64(out, window->cpu_percent.count);
    put_spread(out, &window->cpu_percent);
    put_spread(out, &window->rss_bytes);
    const struct etwatch_aggregate *spread = window->more_spreads;
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++)
        if (etwatch_metric_set_has(&window->more, i))
            put_spread(out, spread++);
    ew_buf_char(out, '\n');
    ew_buf_end_line(out);
}

/* A file without a sample still has a header. */
static void put_stats(struct etwatch_sink *sink, const struct etwatch_stats *stats)
{
    struct csv *self = (struct csv *)sink;
    (void)stats;
    if (!self->header_done)
        put_header(sink);
}

const struct ew_sink_ops ew_sink_csv = {
    .size = sizeof(struct csv),
    .init = init,
    .sample = put_sample,
    .window = put_window,
    .stats = put_stats,
    .process = put_process,
    .end = put_end,
};
