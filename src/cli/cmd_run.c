/* SPDX-License-Identifier: MIT */
/*
 * run: makes the child, holds it, begins to watch, lets it go, and stays until it has ended. The
 * child's exit status is ours whatever becomes of the watching.
 */
#include "cli/commands.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/child.h"
#include "cli/signals.h"
#include "cli/summary.h"
#include "cli/term.h"
#include "cli/waits_live.h"
#include "cli/watch_run.h"
#include "os/os.h"

struct run {
    const struct ew_options *options;
    struct ew_watch session;
    struct ew_summary summary;
    struct ew_child child;
    bool exit_seen;             /* of the child itself, in the samples */
    struct ew_waits_live waits; /* --waits */
};

static int add_sample(void *ctx, const struct etwatch_sample *sample)
{
    struct run *run = ctx;
    if (sample->type == ETWATCH_TYPE_EXIT && sample->pid == run->child.pid)
        run->exit_seen = true;
    int rc = run->options->waits ? ew_waits_live_sample(&run->waits, sample) : 0;
    return rc == 0 ? ew_summary_add(&run->summary, sample) : rc;
}

static void add_events(void *ctx, const struct etwatch_events *batch)
{
    ew_waits_live_events(&((struct run *)ctx)->waits, batch);
}

static void add_loss(void *ctx, const struct etwatch_loss *loss)
{
    struct run *run = ctx;
    ew_waits_live_loss(&run->waits, loss, run->session.meta.source);
}

/* Objects of the stream; tables follow the summary. */
static int end_waits(void *ctx)
{
    struct run *run = ctx;
    ew_waits_live_end(&run->waits, run->options);
    return run->options->json
               ? ew_waits_write(&run->waits.view, &run->session.output, true, false, EW_TERM_OUT)
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

/* Some of them may be over already: that is no error. */
static void add_started(struct run *run)
{
    uint32_t pid;
    while ((pid = ew_child_take_started(&run->child)) != 0)
        (void)etwatch_monitor_add(run->session.monitor, pid);
}

/* Until the child has ended (with --wait-all: the last descendant) or the watching has. */
static void watch(struct run *run)
{
    bool go_on = true;
    while (go_on) {
        forward_signals(run);
        add_started(run);
        bool ended = ew_child_ended(&run->child);
        if (ended && !run->options->wait_all)
            break;
        /* What it forked is known once its own exit is: facts come in the order of time. */
        bool last = run->exit_seen && run->session.live == 0 && ew_child_tree_ended(&run->child);
        if (ended && (last || ew_signals_ending() != 0))
            break;
        go_on = ew_watch_step(&run->session, 1000);
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
    struct ew_output words = {.fd = EW_TERM_ERR};
    struct ew_buf out;
    uint32_t columns = 0, rows = 0;
    char how[64];

    if (!data && options->quiet)
        return 0;
    if (to_screen)
        ew_term_size(&columns, &rows);
    describe_end(run, how, sizeof how);
    ew_buf_init(&out, 0, ew_output_write, data ? &run->session.output : &words);
    int rc = ew_summary_write(&run->summary, &out, options->child[0], how, &run->session.stats,
                              columns, to_screen && ew_term_color(screen));
    if (rc == 0)
        rc = ew_buf_flush(&out);
    ew_buf_done(&out);
    if (rc == 0 && options->waits && !options->json)
        rc = ew_waits_write(&run->waits.view, data ? &run->session.output : &words, false,
                            to_screen, screen);
    return data ? rc : 0;
}

static int report_exec(struct run *run, int error)
{
    ew_complain("cannot run %s: %s", run->options->child[0], strerror(error));
    ew_watch_stop(&run->session);
    (void)ew_watch_close(&run->session);
    return error == ENOENT ? EW_EXIT_NOT_FOUND : EW_EXIT_CANNOT_EXEC;
}

static int watch_child(struct run *run)
{
    int code = ew_watch_open(&run->session, run->child.pid);
    if (code != EW_EXIT_OK) {
        (void)ew_watch_close(&run->session);
        return code;
    }
    uint64_t raw_ns;
    run->summary.child_pid = run->child.pid;
    ew_os_anchor(&run->summary.released_ns, &raw_ns);
    int error = ew_child_release(&run->child);
    if (error != 0)
        return report_exec(run, error);
    watch(run);
    /* While it is a zombie its last figures can still be read. */
    ew_watch_stop(&run->session);
    wait_for_child(run);
    if (run->session.error == 0)
        run->session.error = write_summary(run);
    (void)ew_watch_close(&run->session);
    return run->child.status;
}

int ew_cmd_run(const struct ew_options *options)
{
    struct run run = {.options = options};
    struct ew_options own = *options;
    int code = EW_EXIT_OK;
    if (options->waits) {
        own.config_flags |= ETWATCH_CONFIG_EVENTS;
        code = ew_waits_live_init(&run.waits) < 0 ? EW_EXIT_FAILED : EW_EXIT_OK;
        run.session.no_events = (options->config_flags & ETWATCH_CONFIG_EVENTS) == 0;
        run.session.on_events = add_events;
        run.session.on_loss = add_loss;
        run.session.on_end = end_waits;
    }
    if (code == EW_EXIT_OK)
        code = ew_watch_prepare(&run.session, &own, format_of(options));
    if (code != EW_EXIT_OK) {
        (void)ew_watch_close(&run.session);
        return code;
    }
    ew_summary_init(&run.summary);
    run.session.on_sample = add_sample;
    run.session.ctx = &run;
    ew_signals_init();
    ew_signals_watch_child();
    int error = ew_child_hold(&run.child, options->child);
    if (error != 0) {
        ew_complain("cannot make a process: %s", strerror(error));
        (void)ew_watch_close(&run.session);
        code = EW_EXIT_FAILED;
    } else {
        code = watch_child(&run);
        ew_child_reap(&run.child);
    }
    ew_summary_done(&run.summary);
    ew_waits_live_done(&run.waits);
    return code;
}
