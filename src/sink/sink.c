/* SPDX-License-Identifier: MIT */
/*
 * The public functions of all sinks: check arguments, keep what every format needs (the buffer, the
 * selected columns), and pass one object at a time to the format. The buffer is written in whole
 * lines: automatically when it reaches FLUSH_AT, and by etwatch_sink_flush.
 */
#include "sink/sink.h"

#include "base/alloc.h"
#include "base/sized.h"
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
    case ETWATCH_FORMAT_CSV_RAW:
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

static int read_options(const struct etwatch_sink_options *given,
                        struct etwatch_sink_options *ret_options, struct ew_error *err)
{
    struct etwatch_sink_options options = {.size = sizeof options};
    if (given != NULL) {
        int rc = ew_sized_in(&options, sizeof options, given, "options", err);
        if (rc < 0)
            return rc;
    }
    if (options.column_count > 0 && options.columns == NULL)
        return ew_error_set(err, ETWATCH_EINVAL, 0, "column_count is set, but columns is NULL");
    *ret_options = options;
    return 0;
}

int etwatch_sink_new(uint32_t format, etwatch_write_fn write, void *ctx,
                     const struct etwatch_sink_options *given, struct etwatch_sink **ret_sink,
                     struct etwatch_error_info *reterr)
{
    const struct ew_sink_ops *ops = find_ops(format);
    struct etwatch_sink_options options;
    struct ew_error err = {0};
    int rc = 0;

    if (ops == NULL || write == NULL || ret_sink == NULL)
        rc = ew_error_set(&err, ETWATCH_EINVAL, 0, "the format or the write function is not valid");
    else
        rc = read_options(given, &options, &err);
    if (rc < 0) {
        ew_error_out(reterr, &err, rc);
        return rc;
    }
    struct etwatch_sink *sink = ew_calloc(1, ops->size);
    if (sink == NULL) {
        rc = ew_error_set(&err, ETWATCH_ENOMEM, 0, "out of memory");
        ew_error_out(reterr, &err, rc);
        return rc;
    }
    sink->ops = ops;
    ew_buf_init(&sink->out, BUFFER_MAX, write, ctx);
    sink->out.flush_at = FLUSH_AT;
    sink->out.csv_raw = format == ETWATCH_FORMAT_CSV_RAW;
    rc = copy_options(sink, &options, &err);
    if (rc == 0 && ops->init != NULL)
        rc = ops->init(sink, &options, &err);
    if (rc < 0) {
        ew_error_out(reterr, &err, rc);
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

/* Each struct of the caller's is viewed as one of ours: `given` is what the caller passed. */

int etwatch_sink_meta(struct etwatch_sink *sink, const struct etwatch_meta *given)
{
    struct etwatch_meta scratch;
    const void *meta = NULL;
    if (sink == NULL || given == NULL)
        return ETWATCH_EINVAL;
    int rc = ew_sized_view(&meta, &scratch, sizeof scratch, given);
    if (rc < 0)
        return rc;
    if (sink->ops->meta != NULL)
        sink->ops->meta(sink, meta);
    return sink->out.error;
}

int etwatch_sink_samples(struct etwatch_sink *sink, const struct etwatch_samples *batch)
{
    struct etwatch_sample scratch;
    struct ew_items items;
    if (sink == NULL || ew_items_in(&items, batch) < 0)
        return ETWATCH_EINVAL;
    for (size_t i = 0; i < items.count && sink->out.error == 0; i++)
        sink->ops->sample(sink, ew_items_at(&items, i, &scratch, sizeof scratch));
    return sink->out.error;
}

int etwatch_sink_events(struct etwatch_sink *sink, const struct etwatch_events *batch)
{
    struct etwatch_event scratch;
    struct ew_items items;
    if (sink == NULL || ew_items_in(&items, batch) < 0)
        return ETWATCH_EINVAL;
    for (size_t i = 0; i < items.count && sink->ops->event != NULL && sink->out.error == 0; i++) {
        const struct etwatch_event *event = ew_items_at(&items, i, &scratch, sizeof scratch);
        if (event->kind < ETWATCH_EVENT_FAULTS) /* spans report the others */
            sink->ops->event(sink, event);
    }
    return sink->out.error;
}

int etwatch_sink_windows(struct etwatch_sink *sink, const struct etwatch_windows *batch)
{
    struct etwatch_window scratch;
    struct ew_items items;
    if (sink == NULL || ew_items_in(&items, batch) < 0)
        return ETWATCH_EINVAL;
    for (size_t i = 0; i < items.count && sink->ops->window != NULL && sink->out.error == 0; i++) {
        const struct etwatch_window *window = ew_items_at(&items, i, &scratch, sizeof scratch);
        if (!etwatch_metric_set_is_empty(&window->more) && window->more_spreads == NULL)
            return ETWATCH_EINVAL;
        sink->ops->window(sink, window);
    }
    return sink->out.error;
}

int etwatch_sink_loss(struct etwatch_sink *sink, const struct etwatch_loss *given)
{
    struct etwatch_loss scratch;
    const void *loss = NULL;
    if (sink == NULL || given == NULL)
        return ETWATCH_EINVAL;
    int rc = ew_sized_view(&loss, &scratch, sizeof scratch, given);
    if (rc < 0)
        return rc;
    if (sink->ops->loss != NULL)
        sink->ops->loss(sink, loss);
    return sink->out.error;
}

int etwatch_sink_system(struct etwatch_sink *sink, const struct etwatch_system *given)
{
    struct etwatch_system scratch;
    const void *view = NULL;
    if (sink == NULL || given == NULL)
        return ETWATCH_EINVAL;
    int rc = ew_sized_view(&view, &scratch, sizeof scratch, given);
    const struct etwatch_system *system = view;
    if (rc == 0 && system->cpu_percents == NULL && system->cpu_count > 0)
        rc = ETWATCH_EINVAL;
    if (rc < 0)
        return rc;
    if (sink->ops->system != NULL)
        sink->ops->system(sink, system);
    return sink->out.error;
}

int etwatch_sink_devices(struct etwatch_sink *sink, const struct etwatch_devices *batch)
{
    struct etwatch_device scratch;
    struct ew_items items;
    if (sink == NULL || ew_items_in(&items, batch) < 0)
        return ETWATCH_EINVAL;
    for (size_t i = 0; i < items.count && sink->ops->device != NULL && sink->out.error == 0; i++)
        sink->ops->device(sink, ew_items_at(&items, i, &scratch, sizeof scratch));
    return sink->out.error;
}

int etwatch_sink_alert(struct etwatch_sink *sink, const struct etwatch_alert *given)
{
    struct etwatch_alert scratch;
    const void *view = NULL;
    if (sink == NULL || given == NULL)
        return ETWATCH_EINVAL;
    int rc = ew_sized_view(&view, &scratch, sizeof scratch, given);
    const struct etwatch_alert *alert = view;
    if (rc == 0 && (alert->metric >= ETWATCH_METRIC_COUNT ||
                    (alert->threads == NULL && alert->thread_entries > 0)))
        rc = ETWATCH_EINVAL;
    if (rc < 0)
        return rc;
    if (sink->ops->alert != NULL)
        sink->ops->alert(sink, alert);
    return sink->out.error;
}

int etwatch_sink_span(struct etwatch_sink *sink, const struct etwatch_span *given)
{
    struct etwatch_span scratch;
    const struct etwatch_span *span =
        sink == NULL || given == NULL ? NULL : ew_sized_or_null(given, &scratch, sizeof scratch);
    if (span == NULL || span->cause_count > ETWATCH_SPAN_CAUSES)
        return ew_sized_error(given, sizeof scratch);
    if (sink->ops->span != NULL)
        sink->ops->span(sink, span);
    return sink->out.error;
}

int etwatch_sink_operator(struct etwatch_sink *sink, const struct etwatch_operator *given)
{
    struct etwatch_operator copy = {.size = sizeof copy};
    struct etwatch_span scratch;
    if (sink == NULL || given == NULL)
        return ETWATCH_EINVAL;
    int rc = ew_sized_in(&copy, sizeof copy, given, "operator", NULL);
    if (rc < 0)
        return rc;
    copy.span = ew_sized_or_null(copy.span, &scratch, sizeof scratch);
    if (copy.span == NULL || copy.span->cause_count > ETWATCH_SPAN_CAUSES)
        return ETWATCH_EINVAL;
    if (sink->ops->oper != NULL)
        sink->ops->oper(sink, &copy);
    return sink->out.error;
}

int etwatch_sink_span_group(struct etwatch_sink *sink, const struct etwatch_span_group *given)
{
    struct etwatch_span_group scratch;
    const struct etwatch_span_group *group =
        sink == NULL || given == NULL ? NULL : ew_sized_or_null(given, &scratch, sizeof scratch);
    if (group == NULL || group->cause_count > ETWATCH_SPAN_CAUSES ||
        group->slow_cause_count > ETWATCH_SPAN_CAUSES)
        return ew_sized_error(given, sizeof scratch);
    if (sink->ops->span_group != NULL)
        sink->ops->span_group(sink, group);
    return sink->out.error;
}

int etwatch_sink_gpu_op(struct etwatch_sink *sink, const struct etwatch_gpu_op *given)
{
    struct etwatch_gpu_op scratch;
    const struct etwatch_gpu_op *op =
        sink == NULL || given == NULL ? NULL : ew_sized_or_null(given, &scratch, sizeof scratch);
    if (op == NULL)
        return ew_sized_error(given, sizeof scratch);
    if (sink->ops->gpu_op != NULL)
        sink->ops->gpu_op(sink, op);
    return sink->out.error;
}

int etwatch_sink_gpu_process(struct etwatch_sink *sink, const struct etwatch_gpu_process *given)
{
    struct etwatch_gpu_process scratch;
    const struct etwatch_gpu_process *process =
        sink == NULL || given == NULL ? NULL : ew_sized_or_null(given, &scratch, sizeof scratch);
    if (process == NULL)
        return ew_sized_error(given, sizeof scratch);
    if (sink->ops->gpu_process != NULL)
        sink->ops->gpu_process(sink, process);
    return sink->out.error;
}

int etwatch_sink_gpu_sum(struct etwatch_sink *sink, const struct etwatch_gpu_sum *given)
{
    struct etwatch_gpu_sum scratch;
    const struct etwatch_gpu_sum *sum =
        sink == NULL || given == NULL ? NULL : ew_sized_or_null(given, &scratch, sizeof scratch);
    if (sum == NULL)
        return ew_sized_error(given, sizeof scratch);
    if (sink->ops->gpu_sum != NULL)
        sink->ops->gpu_sum(sink, sum);
    return sink->out.error;
}

int etwatch_sink_stats(struct etwatch_sink *sink, const struct etwatch_stats *given)
{
    struct etwatch_stats scratch;
    const void *stats = NULL;
    if (sink == NULL || given == NULL)
        return ETWATCH_EINVAL;
    int rc = ew_sized_view(&stats, &scratch, sizeof scratch, given);
    if (rc < 0)
        return rc;
    if (sink->ops->stats != NULL)
        sink->ops->stats(sink, stats);
    return sink->out.error;
}

/* ------------------------------------------------------------------- recordings */

/* The summary with its files in an array of ours, and its other parts as ours. */
struct trace_copy {
    struct etwatch_trace_summary summary;
    struct etwatch_trace_stats stats;
    struct etwatch_trace_system system;
    struct etwatch_trace_file *files;
};

static int copy_trace(struct trace_copy *copy, const struct etwatch_trace_summary *given)
{
    int rc = ew_sized_in(&copy->summary, sizeof copy->summary, given, "trace", NULL);
    const struct etwatch_trace_summary *summary = &copy->summary;
    if (rc == 0 && (summary->stats == NULL || (summary->files == NULL && summary->file_count > 0)))
        rc = ETWATCH_EINVAL;
    if (rc == 0)
        rc = ew_sized_in(&copy->stats, sizeof copy->stats, summary->stats, "stats", NULL);
    if (rc == 0 && summary->system != NULL)
        rc = ew_sized_in(&copy->system, sizeof copy->system, summary->system, "system", NULL);
    if (rc < 0)
        return rc;
    copy->files = ew_calloc(summary->file_count + 1u, sizeof *copy->files);
    if (copy->files == NULL)
        return ETWATCH_ENOMEM;
    const char *at = (const char *)summary->files;
    for (uint32_t i = 0; i < summary->file_count && rc == 0; i++, at += summary->files->size)
        rc = ew_sized_in(&copy->files[i], sizeof *copy->files, at, "file", NULL);
    copy->summary.stats = &copy->stats;
    copy->summary.system = summary->system == NULL ? NULL : &copy->system;
    copy->summary.files = copy->files;
    return rc;
}

int etwatch_sink_trace(struct etwatch_sink *sink, const struct etwatch_trace_summary *given)
{
    struct trace_copy copy = {.files = NULL};
    if (sink == NULL || given == NULL)
        return ETWATCH_EINVAL;
    int rc = copy_trace(&copy, given);
    if (rc == 0 && sink->ops->trace != NULL)
        sink->ops->trace(sink, &copy.summary);
    ew_free(copy.files);
    return rc < 0 ? rc : sink->out.error;
}

int etwatch_sink_class(struct etwatch_sink *sink, const struct etwatch_trace_class *given)
{
    struct etwatch_trace_class scratch;
    const void *klass = NULL;
    if (sink == NULL || given == NULL)
        return ETWATCH_EINVAL;
    int rc = ew_sized_view(&klass, &scratch, sizeof scratch, given);
    if (rc < 0)
        return rc;
    if (sink->ops->klass != NULL)
        sink->ops->klass(sink, klass);
    return sink->out.error;
}

int etwatch_sink_process(struct etwatch_sink *sink, const struct etwatch_sample *given,
                         const struct etwatch_metric_set *estimated)
{
    static const struct etwatch_metric_set none = {{0}};
    struct etwatch_sample scratch;
    const void *process = NULL;
    if (sink == NULL || given == NULL)
        return ETWATCH_EINVAL;
    int rc = ew_sized_view(&process, &scratch, sizeof scratch, given);
    if (rc < 0)
        return rc;
    if (sink->ops->process != NULL)
        sink->ops->process(sink, process, estimated != NULL ? estimated : &none);
    return sink->out.error;
}

int etwatch_sink_image(struct etwatch_sink *sink, const struct etwatch_trace_image *given)
{
    struct etwatch_trace_image scratch;
    const void *image = NULL;
    if (sink == NULL || given == NULL)
        return ETWATCH_EINVAL;
    int rc = ew_sized_view(&image, &scratch, sizeof scratch, given);
    if (rc < 0)
        return rc;
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

int etwatch_sink_trace_event(struct etwatch_sink *sink, const struct etwatch_trace_event *given)
{
    struct etwatch_trace_event scratch;
    const void *view = NULL;
    if (sink == NULL || given == NULL)
        return ETWATCH_EINVAL;
    int rc = ew_sized_view(&view, &scratch, sizeof scratch, given);
    const struct etwatch_trace_event *event = view;
    if (rc == 0 && event->fields == NULL && event->field_count > 0)
        rc = ETWATCH_EINVAL;
    if (rc < 0)
        return rc;
    if (sink->ops->trace_event != NULL)
        sink->ops->trace_event(sink, event);
    return sink->out.error;
}

int etwatch_sink_wants_fields(const struct etwatch_sink *sink,
                              const struct etwatch_trace_event *given)
{
    struct etwatch_trace_event scratch;
    const void *event = NULL;
    if (sink == NULL || given == NULL)
        return ETWATCH_EINVAL;
    int rc = ew_sized_view(&event, &scratch, sizeof scratch, given);
    if (rc < 0)
        return rc;
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

int etwatch_sink_name(struct etwatch_sink *sink, uint32_t pid, const char *name)
{
    if (sink == NULL || name == NULL)
        return ETWATCH_EINVAL;
    if (sink->ops->name != NULL)
        sink->ops->name(sink, pid, name);
    return sink->out.error;
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
