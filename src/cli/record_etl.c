/* SPDX-License-Identifier: MIT */
/*
 * Recordings that ETW writes itself. etwatch starts the session, polls it, and stops it. The
 * session is always stopped before the program ends: only then is the file complete.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include <etwatch/metrics.h>

#include "base/units.h"
#include "os/os.h"

enum { POLL_MS = 100, PROGRESS_MS = 1000 };

struct recording {
    const struct ew_options *options;
    struct etwatch_recorder *recorder;
    struct etwatch_recorder_stats stats;
    struct ew_child child;
    struct ew_waiter *waiter;
    uint64_t begun_ns, begun_cpu_ns;
    bool shown; /* the progress line is on the screen */
};

static void put_state(struct recording *recording, struct ew_buf *out)
{
    const struct etwatch_recorder_stats *stats = &recording->stats;
    double wall_ns = (double)(ew_os_raw_ns() - recording->begun_ns);
    double cpu_ns = (double)(ew_os_thread_cpu_ns() - recording->begun_cpu_ns);
    (void)ew_buf_fixed(out, (double)stats->duration_ns / 1e9, 1);
    ew_buf_text(out, " s, ");
    ew_units_bytes(out, stats->file_bytes);
    ew_buf_text(out, ", lost: ");
    ew_buf_u64(out, stats->events_lost);
    if (stats->buffers_lost > 0) {
        ew_buf_text(out, " events, ");
        ew_buf_u64(out, stats->buffers_lost);
        ew_buf_text(out, " buffers");
    }
    ew_buf_text(out, "; own cost ");
    (void)ew_buf_fixed(out, wall_ns > 0 ? 100 * cpu_ns / wall_ns : 0, 3);
    ew_buf_text(out, " % of a core");
}

/* One line that is overwritten; only on a terminal. */
static void show_progress(struct recording *recording)
{
    struct ew_buf line;
    if (recording->options->quiet || !ew_term_is(EW_TERM_ERR))
        return;
    ew_buf_init(&line, 0, NULL, NULL);
    ew_buf_text(&line, "\rrecording: ");
    put_state(recording, &line);
    ew_buf_text(&line, "  ");
    if (line.error == 0)
        (void)fwrite(line.data, 1, line.len, stderr);
    (void)fflush(stderr);
    ew_buf_done(&line);
    recording->shown = true;
}

static void show_end(struct recording *recording)
{
    struct ew_buf line;
    if (recording->shown)
        (void)fputs("\n", stderr);
    ew_buf_init(&line, 0, NULL, NULL);
    put_state(recording, &line);
    ew_buf_char(&line, '\0');
    if (line.error == 0)
        ew_print_info(recording->options, "recorded %s: %s", recording->options->output_path,
                      line.data);
    ew_buf_done(&line);
}

static void forward_signals(struct recording *recording)
{
    int number;
    while ((number = ew_signals_take_forward()) != 0)
        ew_child_signal(&recording->child, number);
}

/* Whether the command has exited, a signal arrived, or the duration is over. */
static bool is_over(struct recording *recording)
{
    const struct ew_options *options = recording->options;
    uint64_t passed_ns = ew_os_raw_ns() - recording->begun_ns;
    if (options->child != NULL) {
        forward_signals(recording);
        if (ew_child_ended(&recording->child))
            return true;
    } else if (ew_signals_ending() != 0) {
        return true;
    }
    return options->duration_ns > 0 && passed_ns >= options->duration_ns;
}

/* False: another program stopped the session. */
static bool wait_for_end(struct recording *recording)
{
    uint64_t progress_ns = recording->begun_ns + PROGRESS_MS * UINT64_C(1000000);
    while (!is_over(recording)) {
        uint64_t now_ns = ew_os_raw_ns();
        if (now_ns >= progress_ns) {
            progress_ns = now_ns + PROGRESS_MS * UINT64_C(1000000);
            (void)etwatch_recorder_stats(recording->recorder, &recording->stats);
            if (recording->stats.running == 0)
                return false;
            show_progress(recording);
        }
        (void)ew_waiter_wait(recording->waiter, now_ns + POLL_MS * UINT64_C(1000000), -1);
    }
    return true;
}

/* Reports requested hardware counters that are unavailable. */
static void report_unavailable(const struct recording *recording)
{
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++) {
        struct etwatch_metric_info info = {.size = sizeof info};
        const char *reason = etwatch_recorder_unavailable_reason(recording->recorder, i);
        if (reason != NULL && etwatch_metric_info(i, &info) == 0)
            ew_print_info(recording->options, "%s is not recorded: %s", info.name, reason);
    }
}

static int begin_recording(struct recording *recording)
{
    const struct ew_options *options = recording->options;
    struct etwatch_error_info err = {.size = sizeof err};
    struct ew_session_options etw;
    (void)ew_args_session_options(options, &etw);
    etw.options.counters = options->metrics;
    int rc = etwatch_recorder_start(options->output_path, &etw.options, &recording->recorder, &err);
    if (rc == ETWATCH_ENOTSUP) {
        ew_print_error("%s; record a Perfetto trace instead: etwatch record -o FILE.pftrace",
                       err.message);
        return ew_exit_code(rc);
    }
    if (rc < 0)
        return ew_print_failure(&err, rc);
    recording->begun_ns = ew_os_raw_ns();
    recording->begun_cpu_ns = ew_os_thread_cpu_ns();
    recording->stats.size = sizeof recording->stats;
    report_unavailable(recording);
    return EW_EXIT_OK;
}

static int record(struct recording *recording)
{
    bool ours = wait_for_end(recording);
    (void)etwatch_recorder_stop(recording->recorder);
    (void)etwatch_recorder_stats(recording->recorder, &recording->stats);
    show_end(recording);
    if (ours)
        return EW_EXIT_OK;
    ew_print_error("the session that wrote %s was stopped by another program, or the disk is full",
                   recording->options->output_path);
    return EW_EXIT_FAILED;
}

static int record_command(struct recording *recording)
{
    const struct ew_options *options = recording->options;
    ew_signals_watch_child();
    int error = ew_child_hold(&recording->child, options->child);
    if (error != 0) {
        ew_print_error("cannot create a process: %s", strerror(error));
        return EW_EXIT_FAILED;
    }
    int code = begin_recording(recording);
    error = code == EW_EXIT_OK ? ew_child_release(&recording->child) : 0;
    if (error != 0) {
        code = ew_child_print_error(options->child, error);
    } else if (code == EW_EXIT_OK) {
        (void)record(recording);
        while (!ew_child_ended(&recording->child)) {
            ew_child_wait(&recording->child);
            forward_signals(recording);
        }
        code = recording->child.status;
    }
    ew_child_reap(&recording->child);
    return code;
}

static int record_machine(struct recording *recording)
{
    int code = begin_recording(recording);
    if (code == EW_EXIT_OK)
        code = record(recording);
    if (code == EW_EXIT_OK && ew_signals_ending() != 0)
        code = EW_EXIT_SIGNAL + ew_signals_ending();
    return code;
}

int ew_cli_record_etl(const struct ew_options *options)
{
    struct recording recording = {.options = options};
    if (options->pids.count > 0 || options->names.count > 0) {
        ew_print_error("ETW records the whole machine: remove -p and -n, and select processes when "
                       "reading (etwatch report -p PID %s)",
                       options->output_path);
        return EW_EXIT_USAGE;
    }
    if (ew_waiter_new(&recording.waiter) < 0) {
        ew_print_error("out of memory");
        return EW_EXIT_FAILED;
    }
    ew_signals_init();
    int code = options->child != NULL ? record_command(&recording) : record_machine(&recording);
    etwatch_recorder_free(recording.recorder);
    ew_waiter_free(recording.waiter);
    return code;
}
