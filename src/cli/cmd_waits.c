/* SPDX-License-Identifier: MIT */
/*
 * waits: which thread waited for which, in running processes or in a recording. etwatch/waits.h
 * does the analysis; this file feeds it and writes the result at the end.
 */
#include "cli/cli.h"

static int print_view(const struct ew_waits_view *view, struct ew_output *output,
                      const struct ew_options *options)
{
    return ew_cli_waits_print(view, output, options->json, options->output_path == NULL,
                              EW_TERM_OUT);
}

/* ------------------------------------------------------------------------- live */

struct live {
    struct ew_watch watch;
    struct ew_waits_view view;
};

static int on_sample(void *ctx, const struct etwatch_sample *sample)
{
    return ew_cli_waits_sample(&((struct live *)ctx)->view, sample);
}

static void on_events(void *ctx, const struct etwatch_events *batch)
{
    ew_cli_waits_events(&((struct live *)ctx)->view, batch);
}

static void on_loss(void *ctx, const struct etwatch_loss *loss)
{
    struct live *live = ctx;
    (void)etwatch_waits_add_loss(live->view.waits, live->watch.meta.source, loss);
}

static int on_end(void *ctx)
{
    struct live *live = ctx;
    ew_cli_waits_end(&live->view, live->watch.options);
    return print_view(&live->view, &live->watch.output, live->watch.options);
}

static int watch_live(const struct ew_options *given)
{
    struct live live = {0};
    struct ew_options options = *given;
    options.config_flags |= ETWATCH_CONFIG_EVENTS | ETWATCH_CONFIG_NO_FALLBACK;
    int code = ew_cli_waits_init(&live.view) < 0 ? EW_EXIT_FAILED : EW_EXIT_OK;
    if (code == EW_EXIT_OK)
        code = ew_cli_watch_prepare(&live.watch, &options,
                                    options.json ? (uint32_t)ETWATCH_FORMAT_JSONL : 0);
    live.watch.no_samples = true;
    live.watch.on_sample = on_sample;
    live.watch.on_events = on_events;
    live.watch.on_loss = on_loss;
    live.watch.on_end = on_end;
    live.watch.ctx = &live;
    ew_signals_init();
    if (code == EW_EXIT_OK)
        code = ew_cli_watch_open(&live.watch, 0);
    while (code == EW_EXIT_OK && ew_signals_ending() == 0 && ew_cli_watch_step(&live.watch, 1000))
        if (live.watch.any_started && live.watch.live == 0 && options.names.count == 0)
            break;
    int end_code = ew_cli_watch_close(&live.watch);
    ew_cli_waits_done(&live.view);
    return code != EW_EXIT_OK ? code : end_code;
}

/* -------------------------------------------------------------------- recordings */

static int on_process(void *ctx, const struct etwatch_sample *process,
                      const struct etwatch_metric_set *estimated)
{
    (void)estimated;
    return process->type == ETWATCH_TYPE_THREAD ? 0 : ew_cli_waits_add(ctx, process->pid);
}

/* Finds the selected processes by a report of their own: the analysis itself reads all processes,
 * because any thread may wake a selected one. */
static int find_selected(const struct ew_options *options, struct ew_waits_view *view,
                         struct etwatch_error_info *error)
{
    struct etwatch_trace_options selection = ew_cli_recording_selection(options);
    struct etwatch_report_callbacks callbacks = {
        .size = sizeof callbacks, .on_process = on_process, .ctx = view};
    struct etwatch_trace *trace = NULL;
    if (view->all)
        return 0;
    int rc = etwatch_trace_open((const char *const *)options->files.words, options->files.count,
                                &selection, &trace, error);
    if (rc == 0)
        rc = etwatch_trace_report(trace, &callbacks, NULL, error);
    etwatch_trace_free(trace);
    return rc;
}

static void report_missing_events(const struct ew_waits_view *view,
                                  const struct ew_options *options)
{
    struct etwatch_waits_info info = {.size = sizeof info};
    if (etwatch_waits_info(view->waits, &info) == 0 && info.events == 0)
        ew_print_info(options,
                      "the recording has no context switches: record CSWITCH and DISPATCHER "
                      "on Windows, or with eBPF on Linux");
}

static int read_recording(const struct ew_options *given)
{
    struct ew_options options = *given;
    struct ew_recording recording;
    struct ew_waits_view view;
    struct etwatch_error_info error = {.size = sizeof error};
    options.pids.count = options.exclude_pids.count = 0;
    options.names = options.exclude_names = (struct ew_list){0};
    options.config_flags &= ~(uint32_t)ETWATCH_CONFIG_NO_SYSTEM;
    int rc = ew_cli_waits_init(&view);
    view.all = given->pids.count == 0 && given->names.count == 0 &&
               given->exclude_pids.count == 0 && given->exclude_names.count == 0 &&
               (given->config_flags & ETWATCH_CONFIG_NO_SYSTEM) == 0;
    int code = ew_cli_recording_open(&recording, &options, 0, 0);
    if (code == EW_EXIT_OK && rc == 0)
        rc = find_selected(given, &view, &error);
    if (code == EW_EXIT_OK && rc == 0)
        rc = etwatch_waits_read(view.waits, recording.trace, &error);
    ew_cli_recording_hide_progress(&recording);
    if (code == EW_EXIT_OK && rc == 0) {
        (void)etwatch_waits_end(view.waits);
        report_missing_events(&view, given);
        rc = print_view(&view, &recording.output, given);
    }
    ew_cli_waits_done(&view);
    int end_code = ew_cli_recording_close(&recording, rc, &error);
    return code != EW_EXIT_OK ? code : end_code;
}

int ew_cmd_waits(const struct ew_options *options)
{
    return options->files.count > 0 ? read_recording(options) : watch_live(options);
}
