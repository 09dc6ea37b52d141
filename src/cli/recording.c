/* SPDX-License-Identifier: MIT */
/*
 * Owns the trace, the sink and the progress bar while recordings are read. Data goes to the output;
 * the bar and one line about damage go to standard error.
 */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <etwatch/export.h>

#include "base/alloc.h"
#include "base/units.h"
#include "os/os.h"

enum { BAR_WIDTH = 30 };

/* The bar appears only if reading takes noticeably long. */
static const uint64_t bar_after_ns = 400 * 1000000u, bar_every_ns = 100 * 1000000u;

static void draw(struct ew_recording *recording, uint64_t done, uint64_t all)
{
    struct ew_buf line;
    uint64_t part = all == 0 ? 0 : done > all ? 1000 : done * 1000 / all;
    size_t filled = (size_t)(part * BAR_WIDTH / 1000);
    ew_buf_init(&line, 0, NULL, NULL);
    ew_buf_text(&line, "\r[");
    ew_buf_repeat(&line, '#', filled);
    ew_buf_repeat(&line, ' ', BAR_WIDTH - filled);
    ew_buf_text(&line, "] ");
    ew_buf_u64(&line, part / 10);
    ew_buf_text(&line, " % of ");
    ew_units_bytes(&line, all);
    ew_buf_text(&line, "  ");
    if (line.error == 0) {
        (void)fwrite(line.data, 1, line.len, stderr);
        (void)fflush(stderr);
        recording->progress_shown = true;
    }
    ew_buf_done(&line);
}

int ew_cli_recording_on_progress(void *ctx, uint64_t done, uint64_t all)
{
    struct ew_recording *recording = ctx;
    if (recording->show_progress) {
        uint64_t now_ns = ew_os_raw_ns();
        if (now_ns - recording->begun_ns > bar_after_ns &&
            now_ns - recording->shown_ns > bar_every_ns) {
            recording->shown_ns = now_ns;
            draw(recording, done, all);
        }
    }
    return ew_signals_ending();
}

void ew_cli_recording_hide_progress(struct ew_recording *recording)
{
    if (recording->progress_shown)
        (void)fputs("\r\033[K", stderr);
    recording->progress_shown = false;
}

static int make_sink(struct ew_recording *recording, uint32_t format, uint32_t sink_flags)
{
    const struct ew_options *options = recording->options;
    struct etwatch_error_info error = {.size = sizeof error};
    uint32_t rows;
    struct etwatch_sink_options wanted = {
        .size = sizeof wanted, .flags = sink_flags, .utc_offset_s = ew_os_utc_offset_s};
    if ((options->config_flags & ETWATCH_CONFIG_CMDLINE) != 0)
        wanted.flags |= ETWATCH_SINK_CMDLINE;
    if (options->payload)
        wanted.flags |= ETWATCH_SINK_PAYLOAD;
    if (options->output_path == NULL && ew_term_is(EW_TERM_OUT))
        ew_term_size(&wanted.width, &rows);
    if (options->output_path == NULL && ew_term_color(EW_TERM_OUT))
        wanted.flags |= ETWATCH_SINK_COLOR;
    int rc = etwatch_sink_new(format, ew_output_write, &recording->output, &wanted,
                              &recording->sink, &error);
    if (rc < 0)
        (void)ew_print_failure(&error, rc);
    return rc < 0 ? EW_EXIT_FAILED : EW_EXIT_OK;
}

struct etwatch_trace_options ew_cli_recording_selection(const struct ew_options *options)
{
    return (struct etwatch_trace_options){
        .size = sizeof(struct etwatch_trace_options),
        .pids = options->pids.ids,
        .pid_count = options->pids.count,
        .names = (const char *const *)options->names.words,
        .name_count = options->names.count,
        .exclude_pids = options->exclude_pids.ids,
        .exclude_pid_count = options->exclude_pids.count,
        .exclude_names = (const char *const *)options->exclude_names.words,
        .exclude_name_count = options->exclude_names.count,
        .max_memory_bytes = options->max_memory,
        .flags = options->config_flags & (ETWATCH_CONFIG_NO_SYSTEM | ETWATCH_CONFIG_CMDLINE),
    };
}

void ew_cli_recording_confine(const struct ew_options *options)
{
    if (ew_os_file_keep((const char *const *)options->files.words, options->files.count) == 0)
        (void)ew_os_confine_reader();
}

static int open_trace(struct ew_recording *recording)
{
    const struct ew_options *options = recording->options;
    struct etwatch_error_info error = {.size = sizeof error};
    struct etwatch_trace_options wanted = ew_cli_recording_selection(options);
    wanted.workers = options->workers;
    wanted.from_ns = options->from_ns;
    wanted.until_ns = options->until_ns;
    wanted.on_progress = ew_cli_recording_on_progress;
    wanted.ctx = recording;
    int rc = etwatch_trace_open((const char *const *)options->files.words, options->files.count,
                                &wanted, &recording->trace, &error);
    if (rc == 0)
        return EW_EXIT_OK;
    (void)ew_print_failure(&error, rc);
    return EW_EXIT_FAILED;
}

/* Formats that are unusable until their end is written get their name only when they are complete.
 */
static bool needs_end(const struct ew_options *options)
{
    uint32_t format = options->command == EW_CMD_EXPORT ? options->export.format : 0;
    return (format == ETWATCH_EXPORT_ARROW || format == ETWATCH_EXPORT_SPEEDSCOPE ||
            format == ETWATCH_EXPORT_CHROME) &&
           options->output_path != NULL;
}

static int open_output(struct ew_recording *recording)
{
    const struct ew_options *options = recording->options;
    const char *path = options->output_path;
    if (!needs_end(options))
        return ew_output_open(&recording->output, path, options->mode);
    return ew_output_open_whole(&recording->output, path, options->mode, &recording->place);
}

/* 0 or the errno. */
static int close_output(struct ew_recording *recording, bool complete)
{
    struct ew_output *output = recording->output_open ? &recording->output : NULL;
    int error = ew_output_close_whole(output, recording->place, complete);
    recording->place = NULL;
    return error;
}

int ew_cli_recording_open(struct ew_recording *recording, const struct ew_options *options,
                          uint32_t format, uint32_t sink_flags)
{
    *recording = (struct ew_recording){.options = options, .begun_ns = ew_os_raw_ns()};
    recording->show_progress = !options->quiet && ew_term_is(EW_TERM_ERR);
    int error = open_output(recording);
    if (error != 0)
        return ew_print_write_error(options->output_path, error);
    recording->output_open = true;
    ew_signals_init();
    ew_cli_recording_confine(options);
    int code = open_trace(recording);
    return code == EW_EXIT_OK && format != 0 ? make_sink(recording, format, sink_flags) : code;
}

int ew_cli_recording_put_trace(struct ew_recording *recording,
                               const struct etwatch_trace_system *system)
{
    size_t count = etwatch_trace_file_count(recording->trace);
    struct etwatch_trace_stats stats = {.size = sizeof stats};
    struct etwatch_trace_file *files = ew_calloc(count, sizeof *files);
    int rc = files == NULL ? ETWATCH_ENOMEM : etwatch_trace_stats(recording->trace, &stats);
    for (size_t i = 0; i < count && rc == 0; i++) {
        files[i].size = sizeof files[i];
        rc = etwatch_trace_file(recording->trace, i, &files[i]);
    }
    struct etwatch_trace_summary summary = {
        .size = sizeof summary,
        .file_count = (uint32_t)count,
        .files = files,
        .stats = &stats,
        .system = system,
        .from_ns = recording->options->from_ns,
        .until_ns = recording->options->until_ns,
    };
    if (rc == 0)
        rc = etwatch_sink_trace(recording->sink, &summary);
    ew_free(files);
    return rc;
}

/* ------------------------------------------------------------------- ending */

void ew_cli_recording_report_damage(const struct ew_recording *recording,
                                    const struct etwatch_trace_stats *stats)
{
    struct etwatch_trace_file file = {.size = sizeof file};
    if (stats->bad_buffers == 0 && stats->bad_events == 0)
        return;
    if (etwatch_trace_file(recording->trace, stats->first_bad_file, &file) < 0)
        file.path = "?";
    ew_print_error(
        "%s is damaged: %llu buffers and %llu events (%llu bytes) could not be read, the "
        "first at byte %llu: %s",
        file.path, (unsigned long long)stats->bad_buffers, (unsigned long long)stats->bad_events,
        (unsigned long long)stats->bad_bytes, (unsigned long long)stats->first_bad_offset,
        stats->first_bad);
}

static int report_error(const struct ew_recording *recording, int rc,
                        const struct etwatch_error_info *error)
{
    const struct ew_output *output = &recording->output;
    if (rc == 0 || ew_output_reader_gone(output))
        return EW_EXIT_OK;
    if (output->os_error != 0)
        return ew_print_write_error(output->path, output->os_error);
    if (rc == ETWATCH_ESTATE && ew_signals_ending() != 0)
        return EW_EXIT_SIGNAL + ew_signals_ending();
    const struct etwatch_error_info none = {.size = sizeof none};
    (void)ew_print_failure(error != NULL ? error : &none, rc);
    return EW_EXIT_FAILED;
}

int ew_cli_recording_close(struct ew_recording *recording, int rc,
                           const struct etwatch_error_info *error)
{
    ew_cli_recording_hide_progress(recording);
    if (recording->sink != NULL) {
        int flushed = etwatch_sink_flush(recording->sink);
        rc = rc == 0 ? flushed : rc;
    }
    int code = report_error(recording, rc, error);
    struct etwatch_trace_stats stats = {.size = sizeof stats};
    if (recording->trace != NULL && recording->sink != NULL &&
        etwatch_trace_stats(recording->trace, &stats) == 0)
        ew_cli_recording_report_damage(recording, &stats);
    etwatch_sink_free(recording->sink);
    etwatch_trace_free(recording->trace);
    int os_error = close_output(recording, code == EW_EXIT_OK && recording->complete);
    return os_error != 0 && code == EW_EXIT_OK
               ? ew_print_write_error(recording->options->output_path, os_error)
               : code;
}
