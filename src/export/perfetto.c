/* SPDX-License-Identifier: MIT */
/*
 * Exports a Windows recording as a Perfetto trace: scheduling in Perfetto's own messages, the
 * samples of a monitor as counters, starts and exits, losses, and at the end the report on the
 * whole recording.
 *
 * Events and samples come from two passes in parallel, in time order: an interval's samples follow
 * its last event. So the trace can be walked in order with a small window, however long it is.
 * Memory is that of the two passes.
 */
#include "export/export.h"

#include <stdio.h>
#include <string.h>

#include <etwatch/sink.h>

#include "monitor/monitor.h"
#include "recording/trace.h"

struct making {
    struct ew_perfetto_export *export;
    struct etwatch_trace *trace;
    struct etwatch_monitor *monitor;
    struct etwatch_sink *sink;
    struct ew_event_name_filter names;
    struct etwatch_meta meta;
    bool meta_written, ended;
    uint64_t from_ns, until_ns; /* Unix time: the selected range */
    uint64_t boot_ns;           /* Unix time; 0: unknown */
    uint32_t stage;             /* pass that progress is reported for */
    int rc;                     /* error in a callback */
};

/* The first of the two stages takes most of the time. */
static int on_progress(void *ctx, uint64_t done, uint64_t all)
{
    const struct making *making = ctx;
    const struct etwatch_table_options *options = making->export->options;
    uint64_t progress = making->stage == 0 ? done / 4 * 3 : all / 4 * 3 + done / 4;
    return options->on_progress == NULL ? 0 : options->on_progress(options->ctx, progress, all);
}

/* --------------------------------------------------------------------- samples */

/* Times of the trace count from the boot of Windows, if the recording has it. */
static void write_meta(struct making *making)
{
    struct etwatch_meta *meta = &making->meta;
    if (making->meta_written)
        return;
    making->meta_written = true;
    meta->size = sizeof *meta;
    making->rc = etwatch_monitor_meta(making->monitor, meta);
    if (making->rc < 0)
        return;
    bool booted = making->boot_ns != 0 && making->boot_ns < meta->anchor_unix_ns;
    meta->anchor_raw_ns = meta->anchor_unix_ns - (booted ? making->boot_ns : 0);
    making->rc = etwatch_sink_meta(making->sink, meta);
}

static bool in_part(const struct making *making, const struct etwatch_sample *sample)
{
    uint64_t begin_ns = sample->t_ns - sample->dt_ns;
    if (sample->type == ETWATCH_TYPE_SAMPLE)
        return sample->t_ns > making->from_ns && begin_ns < making->until_ns;
    return sample->t_ns >= making->from_ns && sample->t_ns < making->until_ns;
}

static void on_samples(void *ctx, const struct etwatch_samples *batch)
{
    struct making *making = ctx;
    write_meta(making);
    for (size_t i = 0; i < batch->count && making->rc == 0; i++) {
        struct etwatch_samples one = etwatch_samples_of(etwatch_sample_at(batch, i), 1);
        if (in_part(making, one.items))
            making->rc = etwatch_sink_samples(making->sink, &one);
    }
}

static void on_loss(void *ctx, const struct etwatch_loss *loss)
{
    struct making *making = ctx;
    write_meta(making);
    if (making->rc == 0 && loss->to_ns >= making->from_ns && loss->from_ns < making->until_ns)
        making->rc = etwatch_sink_loss(making->sink, loss);
}

/* Writes the samples of one more interval, after everything that precedes them. */
static int poll_samples(struct making *making)
{
    int rc = etwatch_sink_flush(making->sink);
    if (rc == 0)
        rc = etwatch_monitor_poll(making->monitor, -1, NULL);
    making->ended = rc == ETWATCH_ESTATE;
    return rc < 0 && !making->ended ? rc : making->rc;
}

/* Writes the samples of the intervals that ended before t_ns. */
static int catch_up(struct making *making, uint64_t t_ns)
{
    int rc = 0;
    while (rc == 0 && !making->ended && t_ns > ew_monitor_replay_horizon_ns(making->monitor))
        rc = poll_samples(making);
    return rc;
}

/* ---------------------------------------------------------------------- events */

/* Writes switches and wakeups always; of other events those that match the name filter, with
 * their fields. Others are not even named. */
static int put_event(struct making *making, const struct ew_record *record,
                     const struct ew_event *known)
{
    struct etwatch_trace_event event = {.size = sizeof event};
    const struct ew_event_name_filter *names = &making->names;
    bool others = ew_export_name_filter_is_set(names), named = false;
    bool sched = known->kind == EW_EVENT_SWITCH || known->kind == EW_EVENT_READY;
    int rc = 0;
    if (!sched && !others)
        return 0;
    ew_trace_describe(making->trace, record, known, &event);
    event.size = sizeof event;
    if (others)
        named = ew_export_name_filter_event(names, &event);
    if (named)
        rc = etwatch_trace_fields(making->trace, &event);
    if (rc != 0 || (!sched && !named))
        return rc;
    making->export->rows++;
    return etwatch_sink_trace_event(making->sink, &event);
}

static int put_events(struct making *making)
{
    const struct ew_record *record;
    struct ew_event known;
    int rc;
    while ((rc = ew_trace_next_record(making->trace, &record, &known)) > 0) {
        rc = catch_up(making, record->t_ns);
        if (rc == 0)
            rc = put_event(making, record, &known);
        if (rc < 0)
            return rc;
    }
    while (rc == 0 && !making->ended)
        rc = poll_samples(making);
    return rc;
}

/* ---------------------------------------------------------------------- totals */

static int put_system(void *ctx, const struct etwatch_trace_system *system)
{
    struct making *making = ctx;
    struct etwatch_trace_stats stats = {.size = sizeof stats};
    struct etwatch_trace_summary summary = {
        .size = sizeof summary, .stats = &stats, .system = system};
    int rc = etwatch_trace_stats(making->trace, &stats);
    return rc == 0 ? etwatch_sink_trace(making->sink, &summary) : rc;
}

static int put_process(void *ctx, const struct etwatch_sample *process,
                       const struct etwatch_metric_set *estimated)
{
    return etwatch_sink_process(((struct making *)ctx)->sink, process, estimated);
}

static int put_report(struct making *making)
{
    struct etwatch_report_callbacks callbacks = {
        .size = sizeof callbacks,
        .flags = ETWATCH_REPORT_THREADS,
        .on_system = put_system,
        .on_process = put_process,
        .ctx = making,
    };
    if ((making->export->options->flags & ETWATCH_TABLE_CMDLINE) != 0)
        callbacks.flags |= ETWATCH_REPORT_CMDLINE;
    making->stage = 1;
    return etwatch_trace_report(making->trace, &callbacks, NULL, NULL);
}

static int put_end(struct making *making)
{
    struct etwatch_stats stats = {.size = sizeof stats};
    int rc = etwatch_monitor_stats(making->monitor, &stats);
    if (rc == 0)
        rc = etwatch_sink_stats(making->sink, &stats);
    if (rc == 0)
        rc = etwatch_sink_end(making->sink);
    return rc == 0 ? etwatch_sink_flush(making->sink) : rc;
}

/* ------------------------------------------------------------------------ open */

static int open_sink(struct making *making, struct etwatch_error_info *reterr)
{
    struct etwatch_trace_file file = {.size = sizeof file};
    char os[64];
    int rc = etwatch_trace_file(making->trace, 0, &file);
    if (rc < 0)
        return rc;
    making->boot_ns = file.boot_ns;
    (void)snprintf(os, sizeof os, "Windows %u.%u.%u", file.os_major, file.os_minor, file.os_build);
    struct etwatch_sink_options options = {.size = sizeof options, .os = os};
    return etwatch_sink_new(ETWATCH_FORMAT_PERFETTO, making->export->write, making->export->ctx,
                            &options, &making->sink, reterr);
}

static int open_monitor(struct making *making, struct etwatch_error_info *reterr)
{
    const struct etwatch_table_options *options = making->export->options;
    const struct etwatch_trace *trace = making->trace;
    uint64_t shift_ns = (uint64_t)trace->unix_minus_raw_ns;
    struct etwatch_callbacks callbacks = {
        .size = sizeof callbacks, .on_samples = on_samples, .on_loss = on_loss, .ctx = making};
    uint32_t flags =
        (options->flags & ETWATCH_TABLE_CMDLINE) != 0 ? (uint32_t)ETWATCH_CONFIG_CMDLINE : 0;
    making->from_ns = trace->options.from_ns == 0 ? 0 : trace->options.from_ns + shift_ns;
    making->until_ns =
        trace->options.until_ns == 0 ? UINT64_MAX : trace->options.until_ns + shift_ns;
    int rc =
        ew_export_trace_monitor(trace, options->hz, flags, &callbacks, &making->monitor, reterr);
    if (rc < 0)
        return rc;
    write_meta(making);
    return making->rc;
}

static int make(struct making *making, struct etwatch_error_info *reterr)
{
    struct ew_perfetto_export *export = making->export;
    struct etwatch_table_options own = *export->options;
    own.on_progress = on_progress;
    own.ctx = making;
    int rc = ew_export_name_filter_init(&making->names, export->options);
    if (rc == 0)
        rc = ew_export_trace_open_again(export->trace, &own, 0, &making->trace, export->reterr);
    if (rc == 0)
        rc = open_sink(making, reterr);
    if (rc == 0)
        rc = open_monitor(making, reterr);
    if (rc == 0)
        rc = put_events(making);
    if (rc == 0)
        rc = put_report(making);
    return rc == 0 ? put_end(making) : rc;
}

int ew_export_perfetto(struct ew_perfetto_export *export)
{
    struct making making = {.export = export};
    struct etwatch_error_info error = {.size = sizeof error};
    int rc = make(&making, &error);
    if (rc < 0 && export->reterr->message[0] == '\0' && error.message[0] != '\0')
        (void)ew_error_set(export->reterr, rc, error.os_code, "%s", error.message);
    if (making.trace != NULL)
        (void)etwatch_trace_stats(making.trace, export->ret_stats);
    etwatch_monitor_free(making.monitor);
    etwatch_sink_free(making.sink);
    ew_export_name_filter_done(&making.names);
    etwatch_trace_free(making.trace);
    return rc;
}
