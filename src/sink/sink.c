/* SPDX-License-Identifier: MIT */
/*
 * The public functions of all sinks: check arguments, keep what every format needs (the buffer, the
 * selected columns), and pass one object at a time to the format. The buffer is written in whole
 * lines: automatically when it reaches FLUSH_AT, and by etwatch_sink_flush.
 */
#include "sink/sink.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "sink/fields.h"

/* A sample is far below this; a recorded event that exceeds it is written without its fields. The
 * buffer grows only as far as a line needs. */
enum { BUFFER_MAX = 4 * 1024 * 1024, FLUSH_AT = 128 * 1024 };

static const struct ew_sink_ops *find_ops(uint32_t format)
{
    switch (format) {
    case ETWATCH_FORMAT_TABLE:
        return &ew_sink_table;
    case ETWATCH_FORMAT_JSONL:
        return &ew_sink_jsonl;
    case ETWATCH_FORMAT_CSV:
        return &ew_sink_csv;
    case ETWATCH_FORMAT_PERFETTO:
        return &ew_sink_perfetto;
    default:
        return NULL;
    }
}

static int select_columns(struct etwatch_sink *sink, const struct etwatch_sink_options *options,
                          struct ew_error *err)
{
    if (options->column_count > EW_SINK_COLUMNS_MAX)
        return ew_error_set(err, ETWATCH_ELIMIT, 0, "more than %d columns", EW_SINK_COLUMNS_MAX);
    for (uint32_t i = 0; i < options->column_count; i++) {
        int field = ew_field_find(options->columns[i]);
        if (field < 0) {
            (void)ew_error_set(err, ETWATCH_EINVAL, 0, "no column is named \"%s\"",
                               options->columns[i]);
            ew_error_fix(err, "use the names of the JSON output, such as pid,name,cpu_percent");
            return ETWATCH_EINVAL;
        }
        if (!ew_field_is_shown((uint32_t)field))
            return ew_error_set(err, ETWATCH_EINVAL, 0,
                                "no column \"%s\": no source measures it yet", options->columns[i]);
        sink->columns[i] = (uint16_t)field;
    }
    sink->column_count = options->column_count;
    return 0;
}

static int copy_options(struct etwatch_sink *sink, const struct etwatch_sink_options *options,
                        struct ew_error *err)
{
    sink->flags = options->flags;
    if (options->host != NULL)
        sink->host = ew_strdup(options->host);
    if (options->os != NULL)
        sink->os = ew_strdup(options->os);
    if ((options->host != NULL && sink->host == NULL) || (options->os != NULL && sink->os == NULL))
        return ew_error_set(err, ETWATCH_ENOMEM, 0, "out of memory");
    return select_columns(sink, options, err);
}

/* Copies the fields that the caller has of a struct that may grow; others are 0. */
static int read_options(const struct etwatch_sink_options *given,
                        struct etwatch_sink_options *ret_options)
{
    struct etwatch_sink_options options = {.size = sizeof options};
    if (given != NULL) {
        if (given->size < offsetof(struct etwatch_sink_options, host) ||
            given->size > sizeof options)
            return ETWATCH_EINVAL;
        memcpy(&options, given, given->size);
    }
    if (options.column_count > 0 && options.columns == NULL)
        return ETWATCH_EINVAL;
    *ret_options = options;
    return 0;
}

static void report(struct etwatch_error_info *reterr, const struct ew_error *err)
{
    if (reterr == NULL)
        return;
    reterr->code = err->code;
    reterr->os_code = err->os_code;
    reterr->offset = err->offset;
    (void)snprintf(reterr->message, sizeof reterr->message, "%s", err->message);
    (void)snprintf(reterr->fix, sizeof reterr->fix, "%s", err->fix);
}

int etwatch_sink_new(uint32_t format, etwatch_write_fn write, void *ctx,
                     const struct etwatch_sink_options *given, struct etwatch_sink **ret_sink,
                     struct etwatch_error_info *reterr)
{
    const struct ew_sink_ops *ops = find_ops(format);
    struct etwatch_sink_options options;
    struct ew_error err = {0};
    int rc = 0;

    if (ops == NULL || write == NULL || ret_sink == NULL || read_options(given, &options) < 0) {
        rc = ew_error_set(&err, ETWATCH_EINVAL, 0,
                          "a format, a write function or an option is "
                          "not valid");
        report(reterr, &err);
        return rc;
    }
    struct etwatch_sink *sink = ew_calloc(1, ops->size);
    if (sink == NULL) {
        rc = ew_error_set(&err, ETWATCH_ENOMEM, 0, "out of memory");
        report(reterr, &err);
        return rc;
    }
    sink->ops = ops;
    ew_buf_init(&sink->out, BUFFER_MAX, write, ctx);
    sink->out.flush_at = FLUSH_AT;
    rc = copy_options(sink, &options, &err);
    if (rc == 0 && ops->init != NULL)
        rc = ops->init(sink, &options, &err);
    if (rc < 0) {
        report(reterr, &err);
        etwatch_sink_free(sink);
        return rc;
    }
    *ret_sink = sink;
    return 0;
}

void etwatch_sink_free(struct etwatch_sink *sink)
{
    if (sink == NULL)
        return;
    if (sink->ops->done != NULL)
        sink->ops->done(sink);
    ew_buf_done(&sink->out);
    ew_free(sink->host);
    ew_free(sink->os);
    ew_free(sink);
}

int etwatch_sink_meta(struct etwatch_sink *sink, const struct etwatch_meta *meta)
{
    if (sink == NULL || meta == NULL)
        return ETWATCH_EINVAL;
    if (sink->ops->meta != NULL)
        sink->ops->meta(sink, meta);
    return sink->out.error;
}

int etwatch_sink_samples(struct etwatch_sink *sink, const struct etwatch_sample *samples,
                         size_t count)
{
    if (sink == NULL || (samples == NULL && count > 0))
        return ETWATCH_EINVAL;
    for (size_t i = 0; i < count && sink->out.error == 0; i++)
        sink->ops->sample(sink, &samples[i]);
    return sink->out.error;
}

int etwatch_sink_events(struct etwatch_sink *sink, const struct etwatch_event *events, size_t count)
{
    if (sink == NULL || (events == NULL && count > 0))
        return ETWATCH_EINVAL;
    for (size_t i = 0; i < count && sink->ops->event != NULL && sink->out.error == 0; i++)
        sink->ops->event(sink, &events[i]);
    return sink->out.error;
}

int etwatch_sink_windows(struct etwatch_sink *sink, const struct etwatch_window *windows,
                         size_t count)
{
    if (sink == NULL || (windows == NULL && count > 0))
        return ETWATCH_EINVAL;
    const char *at = (const char *)windows;
    for (size_t i = 0; i < count && sink->ops->window != NULL && sink->out.error == 0; i++) {
        struct etwatch_window window = {0};
        size_t size = ((const struct etwatch_window *)(const void *)at)->size;
        if (size == 0)
            size = sizeof window;
        memcpy(&window, at, size < sizeof window ? size : sizeof window);
        if (!etwatch_metric_set_is_empty(&window.more) && window.more_spreads == NULL)
            return ETWATCH_EINVAL;
        sink->ops->window(sink, &window);
        at += size;
    }
    return sink->out.error;
}

int etwatch_sink_loss(struct etwatch_sink *sink, const struct etwatch_loss *loss)
{
    if (sink == NULL || loss == NULL)
        return ETWATCH_EINVAL;
    if (sink->ops->loss != NULL)
        sink->ops->loss(sink, loss);
    return sink->out.error;
}

int etwatch_sink_system(struct etwatch_sink *sink, const struct etwatch_system *system)
{
    if (sink == NULL || system == NULL || (system->cpu_percents == NULL && system->cpu_count > 0))
        return ETWATCH_EINVAL;
    if (sink->ops->system != NULL)
        sink->ops->system(sink, system);
    return sink->out.error;
}

int etwatch_sink_alert(struct etwatch_sink *sink, const struct etwatch_alert *alert)
{
    if (sink == NULL || alert == NULL || alert->metric >= ETWATCH_METRIC_COUNT ||
        (alert->threads == NULL && alert->thread_entries > 0))
        return ETWATCH_EINVAL;
    if (sink->ops->alert != NULL)
        sink->ops->alert(sink, alert);
    return sink->out.error;
}

int etwatch_sink_stats(struct etwatch_sink *sink, const struct etwatch_stats *stats)
{
    if (sink == NULL || stats == NULL)
        return ETWATCH_EINVAL;
    if (sink->ops->stats != NULL)
        sink->ops->stats(sink, stats);
    return sink->out.error;
}

int etwatch_sink_trace(struct etwatch_sink *sink, const struct etwatch_trace_summary *trace)
{
    if (sink == NULL || trace == NULL || trace->stats == NULL ||
        (trace->files == NULL && trace->file_count > 0))
        return ETWATCH_EINVAL;
    if (sink->ops->trace != NULL)
        sink->ops->trace(sink, trace);
    return sink->out.error;
}

int etwatch_sink_class(struct etwatch_sink *sink, const struct etwatch_trace_class *klass)
{
    if (sink == NULL || klass == NULL)
        return ETWATCH_EINVAL;
    if (sink->ops->klass != NULL)
        sink->ops->klass(sink, klass);
    return sink->out.error;
}

int etwatch_sink_process(struct etwatch_sink *sink, const struct etwatch_sample *process,
                         const struct etwatch_metric_set *estimated)
{
    if (sink == NULL || process == NULL)
        return ETWATCH_EINVAL;
    if (sink->ops->process != NULL)
        sink->ops->process(sink, process, estimated);
    return sink->out.error;
}

int etwatch_sink_image(struct etwatch_sink *sink, const struct etwatch_trace_image *image)
{
    if (sink == NULL || image == NULL)
        return ETWATCH_EINVAL;
    if (sink->ops->image != NULL)
        sink->ops->image(sink, image);
    return sink->out.error;
}

int etwatch_sink_end(struct etwatch_sink *sink)
{
    if (sink == NULL)
        return ETWATCH_EINVAL;
    if (sink->ops->end != NULL)
        sink->ops->end(sink);
    return sink->out.error;
}

int etwatch_sink_trace_event(struct etwatch_sink *sink, const struct etwatch_trace_event *event)
{
    if (sink == NULL || event == NULL || (event->fields == NULL && event->field_count > 0))
        return ETWATCH_EINVAL;
    if (sink->ops->trace_event != NULL)
        sink->ops->trace_event(sink, event);
    return sink->out.error;
}

int etwatch_sink_wants_fields(const struct etwatch_sink *sink,
                              const struct etwatch_trace_event *event)
{
    if (sink == NULL || event == NULL)
        return ETWATCH_EINVAL;
    return sink->ops->wants_fields == NULL || sink->ops->wants_fields(event);
}

int etwatch_sink_flush(struct etwatch_sink *sink)
{
    if (sink == NULL)
        return ETWATCH_EINVAL;
    if (sink->ops->flush != NULL)
        sink->ops->flush(sink);
    return ew_buf_flush(&sink->out);
}

int etwatch_sink_restart(struct etwatch_sink *sink)
{
    if (sink == NULL)
        return ETWATCH_EINVAL;
    if (sink->ops->restart == NULL)
        return ETWATCH_ENOTSUP;
    int rc = etwatch_sink_flush(sink);
    if (rc == 0)
        sink->ops->restart(sink);
    return rc == 0 ? sink->out.error : rc;
}

const char *etwatch_sink_column(uint32_t i)
{
    for (uint32_t field = 0; field < EW_FIELD_COUNT; field++)
        if (ew_field_is_shown(field) && i-- == 0)
            return ew_field_name(field);
    return NULL;
}
