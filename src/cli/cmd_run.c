/* SPDX-License-Identifier: MIT */
/*
 * run: creates the child and holds it, starts watching, releases it, and waits until it has exited.
 * The exit status is that of the child, even if watching fails.
 */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <etwatch/export.h>

#include "os/os.h"

struct run {
    const struct ew_options *options;
    struct ew_watch watch;
    struct ew_summary summary;
    struct ew_child child;
    bool exit_seen;              /* the EXIT of the child was delivered */
    struct ew_waits_view waits;  /* --waits */
    struct ew_spans_view spans;  /* --spans, --onnx */
    struct ew_cli_py_spy py_spy; /* --py-spy */
    bool with_spans;
    struct ew_gpu_view gpu; /* --gpu-trace */
};

static int add_sample(void *ctx, const struct etwatch_sample *sample)
{
    struct run *run = ctx;
    if (sample->type == ETWATCH_TYPE_EXIT && sample->pid == run->child.pid)
        run->exit_seen = true;
    int rc = run->options->waits ? ew_cli_waits_sample(&run->waits, sample) : 0;
    if (rc == 0 && run->with_spans)
        rc = ew_cli_spans_sample(&run->spans, sample);
    return rc == 0 ? ew_summary_add(&run->summary, sample) : rc;
}

static void add_events(void *ctx, const struct etwatch_events *batch)
{
    struct run *run = ctx;
    if (run->options->waits)
        ew_cli_waits_events(&run->waits, batch);
    if (run->with_spans)
        ew_cli_spans_events(&run->spans, batch);
}

static void add_device(void *ctx, const struct etwatch_device *device)
{
    ew_cli_devices_add(&((struct run *)ctx)->summary.devices, device);
}

static void add_loss(void *ctx, const struct etwatch_loss *loss)
{
    struct run *run = ctx;
    if (run->options->waits)
        (void)etwatch_waits_add_loss(run->waits.waits, run->watch.meta.source, loss);
    if (run->with_spans)
        ew_cli_spans_loss(&run->spans, loss);
}

/* JSON: objects of the stream. Tables follow the summary. */
static int end_events(void *ctx)
{
    struct run *run = ctx;
    ew_cli_gpu_step(&run->gpu);
    int rc = run->with_spans ? ew_cli_spans_step(&run->spans, &run->watch.meta, true) : 0;
    if (rc == 0 && run->with_spans)
        rc = ew_cli_spans_end(&run->spans);
    if (rc == 0 && run->gpu.trace != NULL && run->gpu.sink != NULL)
        rc = ew_cli_gpu_end(&run->gpu);
    if (rc < 0 || !run->options->waits)
        return rc;
    ew_cli_waits_end(&run->waits, run->options);
    return run->options->json
               ? ew_cli_waits_print(&run->waits, &run->watch.output, true, false, EW_TERM_OUT)
               : 0;
}

static uint32_t format_of(const struct ew_options *options)
{
    bool spans = options->spans || options->onnx; /* CSV: their rows, instead of samples */
    if (options->spans_format == ETWATCH_EXPORT_PERFETTO)
        return ETWATCH_FORMAT_PERFETTO;
    return options->json || (options->csv && !spans) ? ew_cli_text_format(options) : 0;
}

static void forward_signals(struct run *run)
{
    int number;
    while ((number = ew_signals_take_forward()) != 0)
        ew_child_signal(&run->child, number);
}

/* Some of them may have exited already; that is not an error. */
static void add_started(struct run *run)
{
    uint32_t pid;
    while ((pid = ew_child_take_started(&run->child)) != 0)
        (void)etwatch_monitor_add(run->watch.monitor, pid);
}

/* Until the child (with --wait-all: its last descendant) has exited, or the watch is over. */
static void watch_until_exit(struct run *run)
{
    bool go_on = true;
    while (go_on) {
        forward_signals(run);
        add_started(run);
        bool ended = ew_child_ended(&run->child);
        if (ended && !run->options->wait_all)
            break;
        /* Deliveries are in order of time: all its children are known once its exit is. */
        bool last = run->exit_seen && run->watch.live == 0 && ew_child_tree_ended(&run->child);
        if (ended && (last || ew_signals_ending() != 0))
            break;
        go_on = ew_cli_watch_step(&run->watch, 1000);
        ew_cli_gpu_step(&run->gpu);
        if (go_on && run->with_spans)
            go_on = ew_cli_spans_step(&run->spans, &run->watch.meta, false) == 0;
    }
}

static void wait_for_child(struct run *run)
{
    while (!ew_child_ended(&run->child)) {
        ew_child_wait(&run->child);
        forward_signals(run);
    }
}

static void describe_end(const struct run *run, char *text, size_t size)
{
    if (run->child.signal != 0)
        (void)snprintf(text, size, "ended by %s", ew_signals_name(run->child.signal));
    else
        (void)snprintf(text, size, "exit status %d", run->child.status);
}

static int write_summary(struct run *run)
{
    const struct ew_options *options = run->options;
    bool data = !options->json && !options->csv && options->spans_format == 0;
    int screen = data ? EW_TERM_OUT : EW_TERM_ERR;
    bool to_screen = (!data || options->output_path == NULL) && ew_term_is(screen);
    struct ew_output messages = {.fd = EW_TERM_ERR};
    struct ew_buf out;
    uint32_t columns = 0, rows = 0;
    char how[64];

    if (!data && options->quiet)
        return 0;
    if (to_screen)
        ew_term_size(&columns, &rows);
    describe_end(run, how, sizeof how);
    run->summary.estimated = run->watch.meta.estimated;
    if (run->gpu.trace != NULL && ew_cli_gpu_is_exact(&run->gpu))
        etwatch_metric_set_remove(&run->summary.estimated, ETWATCH_M_gpu_ns);
    ew_buf_init(&out, 0, ew_output_write, data ? &run->watch.output : &messages);
    int rc = ew_summary_write(&run->summary, &out, options->child[0], how, &run->watch.stats,
                              columns, to_screen && ew_term_color(screen));
    if (rc == 0 && run->with_spans)
        rc = ew_cli_spans_write(&run->spans, &out);
    if (rc == 0 && run->gpu.trace != NULL)
        rc = ew_cli_gpu_write(&run->gpu, &out);
    if (rc == 0)
        rc = ew_buf_flush(&out);
    ew_buf_done(&out);
    if (rc == 0 && options->waits && !options->json)
        rc = ew_cli_waits_print(&run->waits, data ? &run->watch.output : &messages, false,
                                to_screen, screen);
    return data ? rc : 0;
}

static int fail_exec(struct run *run, int error)
{
    int code = ew_child_print_error(run->options->child, error);
    ew_cli_watch_stop(&run->watch);
    (void)ew_cli_watch_close(&run->watch);
    return code;
}

static int watch_child(struct run *run)
{
    if (run->with_spans)
        (void)etwatch_spans_add_process(run->spans.spans, run->child.pid, NULL);
    int code = ew_cli_watch_open(&run->watch, run->child.pid);
    if (code != EW_EXIT_OK) {
        (void)ew_cli_watch_close(&run->watch);
        return code;
    }
    uint64_t raw_ns;
    run->summary.child_pid = run->child.pid;
    ew_os_anchor(&run->summary.released_ns, &raw_ns);
    int error = ew_child_release(&run->child);
    if (error != 0)
        return fail_exec(run, error);
    ew_cli_py_spy_release(&run->py_spy);
    watch_until_exit(run);
    /* The last values of a zombie can still be read. */
    ew_cli_watch_stop(&run->watch);
    wait_for_child(run);
    if (run->py_spy.held) {
        ew_cli_py_spy_wait(&run->py_spy);
        ew_cli_spans_py_spy(&run->spans, &run->watch.meta, &run->py_spy);
    }
    if (run->watch.error == 0)
        run->watch.error = write_summary(run);
    (void)ew_cli_watch_close(&run->watch);
    return run->child.status;
}

/* What --waits and --spans need from the watch. An exit code. */
static int prepare_events(struct run *run, struct ew_options *own)
{
    const struct ew_options *options = run->options;
    int code = EW_EXIT_OK;
    run->with_spans = options->spans || options->onnx;
    if (options->gpu_trace) {
        code = ew_cli_gpu_init(&run->gpu, options);
        run->watch.gpu_trace = run->gpu.trace;
        run->watch.on_end = end_events;
    }
    if (code != EW_EXIT_OK || (!options->waits && !run->with_spans))
        return code;
    own->config_flags |= ETWATCH_CONFIG_EVENTS;
    /* A trace shows what ran instead, too. */
    run->watch.no_events = (options->config_flags & ETWATCH_CONFIG_EVENTS) == 0 &&
                           options->spans_format != ETWATCH_EXPORT_PERFETTO;
    run->watch.on_events = add_events;
    run->watch.on_loss = add_loss;
    run->watch.on_end = end_events;
    if (options->waits && ew_cli_waits_init(&run->waits) < 0)
        code = EW_EXIT_FAILED;
    if (code == EW_EXIT_OK && run->with_spans) {
        own->config_flags |= ETWATCH_CONFIG_EVENTS_ALL | ETWATCH_CONFIG_EVENTS_CAUSES;
        code = ew_cli_spans_init(&run->spans, options);
    }
    return code;
}

static void drop_events(struct run *run)
{
    ew_cli_waits_done(&run->waits);
    ew_cli_gpu_done(&run->gpu);
    if (run->with_spans)
        ew_cli_spans_done(&run->spans);
}

int ew_cmd_run(const struct ew_options *options)
{
    struct run run = {.options = options};
    struct ew_options own = *options;
    if (options->py_spy_path != NULL && !ew_cli_py_spy_prepare()) {
        ew_print_error("--py-spy needs the program py-spy in PATH: pip install py-spy");
        return EW_EXIT_FAILED;
    }
    int code = prepare_events(&run, &own);
    if (code == EW_EXIT_OK)
        code = ew_cli_watch_prepare(&run.watch, &own, format_of(options));
    if (code != EW_EXIT_OK) {
        (void)ew_cli_watch_close(&run.watch);
        drop_events(&run);
        return code;
    }
    if (run.with_spans)
        ew_cli_spans_output(&run.spans, run.watch.sink, &run.watch.output);
    if (run.gpu.trace != NULL && run.with_spans) {
        run.gpu.spans = run.spans.spans;
        run.spans.with_gpu = true;
    }
    bool trace = options->spans_format == ETWATCH_EXPORT_PERFETTO;
    run.gpu.sink = options->json || trace ? run.watch.sink : NULL;
    if (ew_summary_init(&run.summary) < 0) {
        ew_print_error("out of memory");
        (void)ew_cli_watch_close(&run.watch);
        drop_events(&run);
        return EW_EXIT_FAILED;
    }
    run.watch.on_sample = add_sample;
    run.watch.on_device = add_device;
    run.watch.ctx = &run;
    ew_signals_init();
    ew_signals_watch_child();
    int error = ew_child_hold(&run.child, options->child);
    if (error == 0 && options->py_spy_path != NULL) {
        error = ew_cli_py_spy_hold(&run.py_spy, run.child.pid);
        if (error != 0)
            ew_child_reap(&run.child);
    }
    if (error != 0) {
        ew_print_error("cannot create a process: %s", strerror(error));
        (void)ew_cli_watch_close(&run.watch);
        code = EW_EXIT_FAILED;
    } else {
        code = watch_child(&run);
        ew_child_reap(&run.child);
    }
    ew_cli_py_spy_close(&run.py_spy);
    ew_summary_done(&run.summary);
    drop_events(&run);
    return code;
}
