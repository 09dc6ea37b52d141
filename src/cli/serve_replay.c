/* SPDX-License-Identifier: MIT */
/*
 * serve FILE.pftrace: what a live monitor delivered when the trace was recorded, as frames for the
 * serving process. Nothing is measured again, so the pages show what was seen then.
 */
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "cli/cli.h"
#include "os/os.h"

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);
    return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

bool ew_cli_serve_is_perfetto(const struct ew_options *options)
{
    return options->files.count > 0 && options->source == ETWATCH_SOURCE_AUTO &&
           !ends_with(options->files.words[0], ".etl");
}

static int put_meta(struct etwatch_trace *trace, struct ew_buf *frames)
{
    struct ew_serve_meta meta;
    struct etwatch_trace_file file = {.size = sizeof file};
    memset(&meta, 0, sizeof meta);
    meta.meta.size = sizeof meta.meta;
    meta.recorded = true;
    int rc = etwatch_trace_meta(trace, 0, &meta.meta);
    if (rc == 0)
        rc = etwatch_trace_file(trace, 0, &file);
    if (rc < 0)
        return rc;
    (void)snprintf(meta.host, sizeof meta.host, "%s", file.host != NULL ? file.host : file.path);
    (void)snprintf(meta.os, sizeof meta.os, "%s", file.os != NULL ? file.os : "");
    ew_wire_meta(frames, &meta);
    return 0;
}

static const struct etwatch_field *field_of(const struct etwatch_trace_event *event,
                                            const char *name)
{
    for (uint32_t i = 0; i < event->field_count; i++)
        if (event->fields[i].name != NULL && strcmp(event->fields[i].name, name) == 0)
            return &event->fields[i];
    return NULL;
}

static uint64_t number_of(const struct etwatch_trace_event *event, const char *name)
{
    const struct etwatch_field *field = field_of(event, name);
    return field != NULL ? field->v.u : 0;
}

static double double_of(const struct etwatch_trace_event *event, const char *name)
{
    const struct etwatch_field *field = field_of(event, name);
    return field != NULL && field->type == ETWATCH_FIELD_DOUBLE ? field->v.d : 0;
}

static void put_loss(struct etwatch_trace *trace, struct etwatch_trace_event *event,
                     struct ew_buf *frames)
{
    struct etwatch_loss loss = {.size = sizeof loss};
    if (etwatch_trace_fields(trace, event) < 0)
        return;
    loss.count = number_of(event, "count");
    loss.from_ns = event->t_ns;
    loss.to_ns = event->t_ns;
    ew_wire_loss(frames, &loss);
}

/* The metric is named by the condition. */
static void put_alert(struct etwatch_trace *trace, struct etwatch_trace_event *event,
                      struct ew_buf *frames)
{
    struct etwatch_alert alert = {.size = sizeof alert};
    char text[512];
    if (etwatch_trace_fields(trace, event) < 0)
        return;
    const struct etwatch_field *condition = field_of(event, "condition");
    if (condition == NULL || condition->type != ETWATCH_FIELD_TEXT ||
        etwatch_alert_check(condition->v.text, &alert.metric, NULL) < 0)
        return;
    alert.condition = condition->v.text;
    alert.pid = event->pid;
    alert.name = event->process;
    alert.start_ns = number_of(event, "start_ns");
    alert.flags = (uint32_t)number_of(event, "flags");
    alert.from_ns = number_of(event, "from_ns");
    alert.to_ns = number_of(event, "to_ns");
    alert.threshold = double_of(event, "threshold");
    alert.value = double_of(event, "value");
    alert.peak = double_of(event, "peak");
    if (etwatch_alert_text(&alert, text, sizeof text) >= 0)
        ew_wire_alert(frames, &alert, text);
}

/* Frames up to the end of the trace. Command lines are in it only if they were recorded, and are
 * shown only with --cmdline. */
static int put_all(struct etwatch_trace *trace, const struct ew_options *options,
                   struct ew_buf *frames, struct etwatch_error_info *error)
{
    struct etwatch_trace_event event = {.size = sizeof event};
    int rc = 0;
    while (ew_signals_ending() == 0 && frames->error == 0 &&
           (rc = etwatch_trace_next(trace, &event, error)) > 0) {
        const struct etwatch_sample *recorded = etwatch_trace_sample(trace);
        if (recorded != NULL) {
            struct etwatch_sample sample = *recorded;
            if ((options->config_flags & ETWATCH_CONFIG_CMDLINE) == 0)
                sample.cmdline = NULL;
            ew_wire_sample(frames, &sample);
            ew_buf_end_line(frames);
        } else if (strcmp(event.provider, "etwatch") == 0 && strcmp(event.event, "loss") == 0) {
            put_loss(trace, &event, frames);
        } else if (strcmp(event.provider, "etwatch") == 0 && strcmp(event.event, "alert") == 0) {
            put_alert(trace, &event, frames);
        }
    }
    if (rc == 0)
        rc = ew_buf_flush(frames);
    return rc < 0 ? rc : frames->error;
}

int ew_cli_serve_replay(const struct ew_options *options, struct ew_buf *frames)
{
    struct etwatch_error_info error = {.size = sizeof error};
    struct etwatch_trace_options wanted = ew_cli_recording_selection(options);
    struct etwatch_trace *trace = NULL;
    int rc = etwatch_trace_open((const char *const *)options->files.words, options->files.count,
                                &wanted, &trace, &error);
    if (rc < 0)
        return ew_print_failure(&error, rc);
    rc = put_meta(trace, frames);
    if (rc == ETWATCH_ENOENT) {
        ew_print_error("%s has no samples of etwatch: record one with etwatch record -o "
                       "trace.pftrace",
                       options->files.words[0]);
        etwatch_trace_free(trace);
        return EW_EXIT_FAILED;
    }
    if (rc == 0)
        rc = put_all(trace, options, frames, &error);
    etwatch_trace_free(trace);
    return rc < 0 ? ew_print_failure(&error, rc) : EW_EXIT_OK;
}
