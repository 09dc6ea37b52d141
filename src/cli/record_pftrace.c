/* SPDX-License-Identifier: MIT */
/*
 * Recordings in the format of Perfetto: everything that the monitor delivers goes into the trace,
 * and into an account that gives the same report at the end as `etwatch report` on the file.
 *
 * The scheduling of the whole machine is recorded, whatever processes are selected: it shows which
 * other thread had the CPU while a thread waited. With polling there are counters but no
 * scheduling, and a message says so.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include <etwatch/account.h>
#include <etwatch/process.h>

#include "base/alloc.h"
#include "base/units.h"
#include "os/os.h"

static const uint64_t progress_every_ns = 1000 * 1000 * 1000u;
/* Samples of the time of a trigger are delivered a moment later. */
static const uint64_t dump_after_ns = 500 * 1000 * 1000u;
/* The default memory of a ring. */
static const uint64_t ring_max_bytes = 64u << 20;

struct recording {
    const struct ew_options *given;
    struct ew_options options; /* given, adapted to a recording; shares its strings */
    struct ew_watch watch;
    struct ew_record_file file;
    struct etwatch_sink *sink;
    struct etwatch_account *account;
    struct ew_child child;
    char host[256], os[256];
    uint64_t events;
    uint64_t progress_ns; /* raw clock: the next progress line */
    uint64_t dump_ns;     /* raw clock: when to write the ring; 0: not requested */
    bool full, shown;
    struct ew_gpu_view gpu; /* --gpu-trace */
};

/* -------------------------------------------------------------------- deliveries */

/* The names of all processes, because the scheduling of all of them is recorded. Those that start
 * later have theirs in events. Live ETW reports every name by itself. */
static int put_names(struct recording *recording)
{
    enum { MAX = 65536 };
    if (recording->watch.meta.source != ETWATCH_SOURCE_EBPF)
        return 0;
    struct etwatch_process_id *ids = ew_calloc(MAX, sizeof *ids);
    int count = ids != NULL ? etwatch_process_list(ids, MAX, NULL) : 0, rc = 0;
    for (int i = 0; i < count && i < MAX && rc == 0; i++) {
        struct etwatch_sample sample = {.size = sizeof sample};
        char name[64];
        /* The command is described when it starts, and so is every later process. */
        if (ids[i].pid != recording->child.pid &&
            ids[i].start_ns < recording->watch.meta.anchor_unix_ns &&
            etwatch_process_read(ids[i].pid, 0, &sample, name, sizeof name, NULL, NULL) >= 0 &&
            sample.name != NULL)
            rc = etwatch_sink_name(recording->sink, ids[i].pid, sample.name);
    }
    ew_free(ids);
    return rc;
}

static int on_meta(void *ctx, const struct etwatch_meta *meta)
{
    struct recording *recording = ctx;
    (void)etwatch_account_add_meta(recording->account, meta);
    int rc = etwatch_sink_meta(recording->sink, meta);
    return rc == 0 ? put_names(recording) : rc;
}

static int on_samples(void *ctx, const struct etwatch_samples *batch)
{
    struct recording *recording = ctx;
    for (size_t i = 0; i < batch->count; i++)
        (void)etwatch_account_add_sample(recording->account, etwatch_sample_at(batch, i));
    return etwatch_sink_samples(recording->sink, batch);
}

static int on_events(void *ctx, const struct etwatch_events *batch)
{
    struct recording *recording = ctx;
    recording->events += batch->count;
    for (size_t i = 0; i < batch->count; i++)
        (void)etwatch_account_add_event(recording->account, etwatch_event_at(batch, i));
    return etwatch_sink_events(recording->sink, batch);
}

static int on_loss(void *ctx, const struct etwatch_loss *loss)
{
    struct recording *recording = ctx;
    (void)etwatch_account_add_loss(recording->account, loss);
    return etwatch_sink_loss(recording->sink, loss);
}

static int on_alert(void *ctx, const struct etwatch_alert *alert)
{
    struct recording *recording = ctx;
    if ((recording->given->triggers >> alert->rule & 1) != 0 && recording->dump_ns == 0)
        recording->dump_ns = ew_os_raw_ns() + dump_after_ns;
    (void)etwatch_account_add_alert(recording->account, alert);
    return etwatch_sink_alert(recording->sink, alert);
}

static int on_devices(void *ctx, const struct etwatch_devices *batch)
{
    return etwatch_sink_devices(((struct recording *)ctx)->sink, batch);
}

static int on_stats(void *ctx, const struct etwatch_stats *stats)
{
    struct recording *recording = ctx;
    (void)etwatch_account_add_stats(recording->account, stats);
    int rc = etwatch_sink_stats(recording->sink, stats);
    return rc == 0 ? etwatch_sink_flush(recording->sink) : rc;
}

static int on_flush(void *ctx)
{
    struct recording *recording = ctx;
    return etwatch_sink_flush(recording->sink);
}

static const struct ew_watch_tap tap = {
    .meta = on_meta,
    .samples = on_samples,
    .events = on_events,
    .loss = on_loss,
    .alert = on_alert,
    .devices = on_devices,
    .flush = on_flush,
    .stats = on_stats,
};

/* ---------------------------------------------------------------------- progress */

static void put_state(struct recording *recording, const struct etwatch_stats *stats,
                      struct ew_buf *out)
{
    const struct ew_record_file *file = &recording->file;
    (void)ew_buf_fixed(out, (double)stats->duration_ns / 1e9, 1);
    ew_buf_text(out, " s, ");
    ew_buf_u64(out, recording->events);
    ew_buf_text(out, " events, ");
    ew_units_bytes(out, file->ring_ns != 0 ? file->ring_bytes : file->total_bytes);
    if (file->ring_ns != 0) {
        ew_buf_text(out, " in the ring, written: ");
        ew_buf_u64(out, file->dumps);
    }
    ew_buf_text(out, ", lost: ");
    ew_buf_u64(out, stats->lost);
    ew_buf_text(out, "; own cost ");
    (void)ew_buf_fixed(out, stats->self_cpu_percent, 2);
    ew_buf_text(out, " % of a core");
}

/* One line that is overwritten; only on a terminal. */
static void show_progress(struct recording *recording, uint64_t now_ns)
{
    struct etwatch_stats stats = {.size = sizeof stats};
    struct ew_buf line;
    if (now_ns < recording->progress_ns || recording->given->quiet || !ew_term_is(EW_TERM_ERR))
        return;
    recording->progress_ns = now_ns + progress_every_ns;
    if (etwatch_monitor_stats(recording->watch.monitor, &stats) < 0)
        return;
    ew_buf_init(&line, 0, NULL, NULL);
    ew_buf_text(&line, "\rrecording: ");
    put_state(recording, &stats, &line);
    ew_buf_text(&line, "  ");
    if (line.error == 0)
        (void)fwrite(line.data, 1, line.len, stderr);
    (void)fflush(stderr);
    ew_buf_done(&line);
    recording->shown = true;
}

static void report_end(struct recording *recording)
{
    struct ew_record_file *file = &recording->file;
    struct ew_buf line;
    if (recording->shown)
        (void)fputs("\n", stderr);
    ew_buf_init(&line, 0, NULL, NULL);
    put_state(recording, &recording->watch.stats, &line);
    ew_buf_char(&line, '\0');
    if (line.error == 0 && file->ring_ns != 0 && file->dumps == 0)
        ew_print_info(recording->given,
                      "%s was not written: no trigger fired and no SIGUSR1 arrived (%s)",
                      file->path, line.data);
    else if (line.error == 0)
        ew_print_info(recording->given, "recorded %s: %s%s", file->path, line.data,
                      recording->full ? "; ended by --max-size" : "");
    ew_buf_done(&line);
}

/* ------------------------------------------------------------------------ running */

static void fail_file(struct recording *recording, int error)
{
    recording->file.os_error = error;
    if (recording->watch.error == 0)
        recording->watch.error = ETWATCH_EOS;
}

static void begin_piece(struct recording *recording, uint64_t now_ns)
{
    int rc = etwatch_sink_flush(recording->sink);
    int error = rc == 0 ? ew_cli_record_file_next(&recording->file, now_ns) : 0;
    if (error != 0)
        fail_file(recording, error);
    else if (rc == 0)
        rc = etwatch_sink_restart(recording->sink);
    if (error == 0 && rc == 0)
        rc = put_names(recording);
    if (rc < 0 && recording->watch.error == 0)
        recording->watch.error = rc;
}

static void dump_ring(struct recording *recording, uint64_t now_ns)
{
    struct ew_record_file *file = &recording->file;
    recording->dump_ns = 0;
    if (etwatch_sink_flush(recording->sink) < 0)
        return;
    uint64_t bytes = file->ring_bytes;
    int error = ew_cli_record_file_dump(file);
    if (error != 0) {
        fail_file(recording, error);
        return;
    }
    if (recording->shown)
        (void)fputs("\n", stderr);
    ew_print_info(recording->given, "wrote %s: %.1f MB", file->name, (double)bytes / 1e6);
    begin_piece(recording, now_ns);
}

/* Handles one delivery. False: the recording is over. */
static bool step(struct recording *recording)
{
    bool go_on = ew_cli_watch_step(&recording->watch, 1000);
    uint64_t now_ns = ew_os_raw_ns();
    bool ring = recording->file.ring_ns != 0;
    if (ew_signals_take_user() && ring)
        recording->dump_ns = now_ns;
    if (recording->dump_ns != 0 && now_ns >= recording->dump_ns && recording->watch.error == 0)
        dump_ring(recording, now_ns);
    else if (ew_cli_record_file_due(&recording->file, now_ns))
        begin_piece(recording, now_ns);
    if (ew_cli_record_file_full(&recording->file))
        recording->full = true;
    show_progress(recording, now_ns);
    return go_on && !recording->full && recording->watch.error == 0;
}

static void forward_signals(struct recording *recording)
{
    int number;
    while ((number = ew_signals_take_forward()) != 0)
        ew_child_signal(&recording->child, number);
}

static void watch_child(struct recording *recording)
{
    uint32_t pid;
    bool go_on = true;
    while (go_on) {
        forward_signals(recording);
        while ((pid = ew_child_take_started(&recording->child)) != 0)
            (void)etwatch_monitor_add(recording->watch.monitor, pid);
        if (ew_child_ended(&recording->child))
            break;
        go_on = step(recording);
    }
}

static void watch_machine(struct recording *recording)
{
    const struct ew_watch *watch = &recording->watch;
    bool until_exit = ew_options_only_pids(&recording->options);
    while (ew_signals_ending() == 0 && step(recording))
        if (until_exit && watch->live == 0 && watch->any_started)
            break;
}

/* ------------------------------------------------------------------------- report */

struct report {
    struct recording *recording;
    struct etwatch_sink *sink;
};

static int on_report_system(void *ctx, const struct etwatch_trace_system *system)
{
    const struct report *report = ctx;
    const struct recording *recording = report->recording;
    const struct etwatch_meta *meta = &recording->watch.meta;
    struct etwatch_trace_stats stats = {.size = sizeof stats};
    struct etwatch_trace_file file = {
        .size = sizeof file,
        .cpu_count = meta->cpu_count,
        .pointer_size = 8,
        .clock = 4,
        .start_ns = meta->anchor_unix_ns,
        .end_ns = meta->anchor_unix_ns + recording->watch.stats.duration_ns,
        .file_bytes = recording->file.bytes,
        .path = recording->file.path,
        .format = ETWATCH_TRACE_PERFETTO,
        .source = meta->source,
        .os = recording->os[0] != '\0' ? recording->os : NULL,
        .host = recording->host[0] != '\0' ? recording->host : NULL,
    };
    struct etwatch_trace_summary summary = {
        .size = sizeof summary,
        .file_count = 1,
        .files = &file,
        .stats = &stats,
        .system = system,
    };
    int rc = etwatch_account_stats(recording->account, &stats);
    return rc == 0 ? etwatch_sink_trace(report->sink, &summary) : rc;
}

static int on_report_class(void *ctx, const struct etwatch_trace_class *klass)
{
    return etwatch_sink_class(((struct report *)ctx)->sink, klass);
}

static int on_report_process(void *ctx, const struct etwatch_sample *process,
                             const struct etwatch_metric_set *estimated)
{
    return etwatch_sink_process(((struct report *)ctx)->sink, process, estimated);
}

/* --json: the output of `etwatch report FILE --json`, from what was delivered and not from the
 * file. */
static int write_report(struct recording *recording)
{
    struct ew_output output;
    struct report report = {.recording = recording};
    bool cmdline = (recording->given->config_flags & ETWATCH_CONFIG_CMDLINE) != 0;
    struct etwatch_sink_options sink_options = {
        .size = sizeof sink_options,
        .flags = cmdline ? (uint32_t)ETWATCH_SINK_CMDLINE : 0,
    };
    struct etwatch_report_callbacks callbacks = {
        .size = sizeof callbacks,
        .flags = cmdline ? (uint32_t)ETWATCH_REPORT_CMDLINE : 0,
        .on_system = on_report_system,
        .on_class = on_report_class,
        .on_process = on_report_process,
        .ctx = &report,
    };
    ew_output_init(&output, -1, NULL);
    int rc = etwatch_sink_new(ETWATCH_FORMAT_JSONL, ew_output_write, &output, &sink_options,
                              &report.sink, NULL);
    if (rc == 0)
        rc = etwatch_account_report(recording->account, &callbacks);
    if (rc == 0)
        rc = etwatch_sink_end(report.sink);
    if (rc == 0)
        rc = etwatch_sink_flush(report.sink);
    etwatch_sink_free(report.sink);
    if (rc == 0 || ew_output_reader_gone(&output))
        return EW_EXIT_OK;
    ew_print_error("cannot write to standard output: %s",
                   output.os_error != 0 ? strerror(output.os_error) : etwatch_strerror(rc));
    return EW_EXIT_FAILED;
}

/* ----------------------------------------------------------------- start and end */

static int prepare(struct recording *recording)
{
    const struct ew_options *given = recording->given;
    struct etwatch_error_info err = {.size = sizeof err};
    bool threads = (given->config_flags & ETWATCH_CONFIG_THREADS) != 0;
    struct etwatch_account_options account = {
        .size = sizeof account,
        .flags = threads ? (uint32_t)ETWATCH_REPORT_THREADS : 0,
    };
    uint64_t max_bytes = given->max_bytes;
    if (given->ring_ns != 0 && max_bytes == 0)
        max_bytes = ring_max_bytes;
    int error = ew_cli_record_file_open(&recording->file, given->output_path, given->mode,
                                        max_bytes, given->rotate, given->ring_ns);
    if (error != 0)
        return ew_print_write_error(given->output_path, error);
    ew_os_host_name(recording->host, sizeof recording->host);
    ew_os_system_name(recording->os, sizeof recording->os);
    struct etwatch_sink_options sink_options = {
        .size = sizeof sink_options, .host = recording->host, .os = recording->os};
    if ((recording->options.config_flags & ETWATCH_CONFIG_ALL) == 0)
        sink_options.flags = ETWATCH_SINK_OVERVIEW;
    int rc = etwatch_sink_new(ETWATCH_FORMAT_PERFETTO, ew_cli_record_file_write, &recording->file,
                              &sink_options, &recording->sink, &err);
    if (rc < 0)
        return ew_print_failure(&err, rc);
    rc = etwatch_account_new(&account, &recording->account);
    if (rc < 0)
        return ew_print_failure(&err, rc);
    if (given->gpu_trace) {
        int code = ew_cli_gpu_init(&recording->gpu, given);
        if (code != EW_EXIT_OK)
            return code;
        recording->gpu.sink = recording->sink;
        recording->watch.gpu_trace = recording->gpu.trace;
    }
    recording->watch.tap = &tap;
    recording->watch.tap_ctx = recording;
    return ew_cli_watch_prepare(&recording->watch, &recording->options, 0);
}

static int open_watch(struct recording *recording, uint32_t pid)
{
    int code = ew_cli_watch_open(&recording->watch, pid);
    if (code == EW_EXIT_OK && recording->watch.meta.source == ETWATCH_SOURCE_POLL)
        ew_print_info(recording->given,
                      "polling sees no context switches: the recording has counters, "
                      "starts and exits, but no scheduling");
    recording->progress_ns = ew_os_raw_ns() + progress_every_ns;
    return code;
}

/* Stops the watch and reports how it went. An exit code. */
static int finish(struct recording *recording)
{
    ew_cli_watch_stop(&recording->watch);
    if (recording->dump_ns != 0 && recording->watch.error == 0)
        dump_ring(recording, ew_os_raw_ns());
    int error = recording->file.os_error;
    int closed = ew_cli_record_file_close(&recording->file, false);
    error = error != 0 ? error : closed;
    if (error != 0) {
        if (recording->shown)
            (void)fputs("\n", stderr);
        ew_print_error("cannot write to %s: %s; the part that was written before can be read",
                       recording->file.path, strerror(error));
        recording->watch.error = 0;
        (void)ew_cli_watch_close(&recording->watch);
        return EW_EXIT_FAILED;
    }
    int code = EW_EXIT_OK;
    if (recording->watch.meta_known && recording->watch.error == 0) {
        report_end(recording);
        if (recording->given->json)
            code = write_report(recording);
    }
    int end_code = ew_cli_watch_close(&recording->watch);
    return code != EW_EXIT_OK ? code : end_code;
}

static int record_command(struct recording *recording)
{
    const struct ew_options *options = recording->given;
    ew_signals_watch_child();
    int error = ew_child_hold(&recording->child, options->child);
    if (error != 0) {
        ew_print_error("cannot create a process: %s", strerror(error));
        return EW_EXIT_FAILED;
    }
    int code = open_watch(recording, recording->child.pid);
    if (code == EW_EXIT_OK) {
        error = ew_child_release(&recording->child);
        if (error != 0)
            code = ew_child_print_error(options->child, error);
    }
    if (code == EW_EXIT_OK) {
        watch_child(recording);
        code = finish(recording);
        while (!ew_child_ended(&recording->child)) {
            ew_child_wait(&recording->child);
            forward_signals(recording);
        }
        code = code != EW_EXIT_OK ? code : recording->child.status;
    }
    ew_child_reap(&recording->child);
    return code;
}

static int record_machine(struct recording *recording)
{
    int code = open_watch(recording, 0);
    if (code != EW_EXIT_OK)
        return code;
    watch_machine(recording);
    code = finish(recording);
    return code == EW_EXIT_OK && ew_signals_ending() != 0 ? EW_EXIT_SIGNAL + ew_signals_ending()
                                                          : code;
}

int ew_cli_record_pftrace(const struct ew_options *given)
{
    struct recording recording = {.given = given, .options = *given};
    struct ew_options *options = &recording.options;
    options->output_path = NULL;
    options->json = false;
    if (!ew_options_select(given) && given->child == NULL)
        options->config_flags |= ETWATCH_CONFIG_ALL;
    if (given->source != ETWATCH_SOURCE_POLL)
        options->config_flags |= ETWATCH_CONFIG_EVENTS | ETWATCH_CONFIG_EVENTS_ALL;
    /* A recording should be complete: without an explicit budget there is none. Its cost is shown.
     */
    options->budget_off = given->budget_percent <= 0 && given->profile_percent <= 0;
    int code = prepare(&recording);
    if (code == EW_EXIT_OK) {
        ew_signals_init();
        ew_signals_watch_user();
        code = given->child != NULL ? record_command(&recording) : record_machine(&recording);
    }
    (void)ew_cli_record_file_close(&recording.file, code != EW_EXIT_OK);
    (void)ew_cli_watch_close(&recording.watch);
    ew_cli_gpu_done(&recording.gpu);
    etwatch_sink_free(recording.sink);
    etwatch_account_free(recording.account);
    return code;
}
