/* SPDX-License-Identifier: MIT */
/*
 * run: creates the child and holds it, starts watching, releases it, and waits until it has exited.
 * The exit status is that of the child, even if watching fails.
 */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "os/os.h"

struct run {
    const struct ew_options *options;
    struct ew_watch watch;
    struct ew_summary summary;
    struct ew_child child;
    bool exit_seen;             /* the EXIT of the child was delivered */
    struct ew_waits_view waits; /* --waits */
};

static int add_sample(void *ctx, const struct etwatch_sample *sample)
{
    struct run *run = ctx;
    if (sample->type == ETWATCH_TYPE_EXIT && sample->pid == run->child.pid)
        run->exit_seen = true;
    int rc = run->options->waits ? ew_cli_waits_sample(&run->waits, sample) : 0;
    return rc == 0 ? ew_summary_add(&run->summary, sample) : rc;
}

static void add_events(void *ctx, const struct etwatch_events *batch)
{
    ew_cli_waits_events(&((struct run *)ctx)->waits, batch);
}

static void add_loss(void *ctx, const struct etwatch_loss *loss)
{
    struct run *run = ctx;
    (void)etwatch_waits_add_loss(run->waits.waits, run->watch.meta.source, loss);
}

/* JSON: objects of the stream. Tables follow the summary. */
static int end_waits(void *ctx)
{
    struct run *run = ctx;
    ew_cli_waits_end(&run->waits, run->options);
    return run->options->json
               ? ew_cli_waits_print(&run->waits, &run->watch.output, true, false, EW_TERM_OUT)
               : 0;
}

static uint32_t format_of(const struct ew_options *options)
{
    return options->json ? ETWATCH_FORMAT_JSONL : options->csv ? ETWATCH_FORMAT_CSV : 0;
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
    bool data = !options->json && !options->csv;
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
    ew_buf_init(&out, 0, ew_output_write, data ? &run->watch.output : &messages);
    int rc = ew_summary_write(&run->summary, &out, options->child[0], how, &run->watch.stats,
                              columns, to_screen && ew_term_color(screen));
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
    watch_until_exit(run);
    /* The last values of a zombie can still be read. */
    ew_cli_watch_stop(&run->watch);
    wait_for_child(run);
    if (run->watch.error == 0)
        run->watch.error = write_summary(run);
    (void)ew_cli_watch_close(&run->watch);
    return run->child.status;
}

int ew_cmd_run(const struct ew_options *options)
{
    struct run run = {.options = options};
    struct ew_options own = *options;
    int code = EW_EXIT_OK;
    if (options->waits) {
        own.config_flags |= ETWATCH_CONFIG_EVENTS;
        code = ew_cli_waits_init(&run.waits) < 0 ? EW_EXIT_FAILED : EW_EXIT_OK;
        run.watch.no_events = (options->config_flags & ETWATCH_CONFIG_EVENTS) == 0;
        run.watch.on_events = add_events;
        run.watch.on_loss = add_loss;
        run.watch.on_end = end_waits;
    }
    if (code == EW_EXIT_OK)
        code = ew_cli_watch_prepare(&run.watch, &own, format_of(options));
    if (code != EW_EXIT_OK) {
        (void)ew_cli_watch_close(&run.watch);
        return code;
    }
    if (ew_summary_init(&run.summary) < 0) {
        ew_print_error("out of memory");
        (void)ew_cli_watch_close(&run.watch);
        ew_cli_waits_done(&run.waits);
        return EW_EXIT_FAILED;
    }
    run.watch.on_sample = add_sample;
    run.watch.ctx = &run;
    ew_signals_init();
    ew_signals_watch_child();
    int error = ew_child_hold(&run.child, options->child);
    if (error != 0) {
        ew_print_error("cannot create a process: %s", strerror(error));
        (void)ew_cli_watch_close(&run.watch);
        code = EW_EXIT_FAILED;
    } else {
        code = watch_child(&run);
        ew_child_reap(&run.child);
    }
    ew_summary_done(&run.summary);
    ew_cli_waits_done(&run.waits);
    return code;
}
