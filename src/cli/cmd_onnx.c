/* SPDX-License-Identifier: MIT */
/*
 * onnx: the inferences of running processes, by probes, or of a recording. On a terminal a screen
 * that is renewed once per second and shows those of the last 10 s. With --duration, and without a
 * terminal, the statistics are those of the whole time.
 */
#include "cli/cli.h"

#include <string.h>

#include <etwatch/export.h>

#include "os/os.h"

static const uint64_t redraw_ns = 1000000000, window_ns = 10000000000;
static const char enter_sequence[] = "\033[?1049h\033[?25l\033[2J";
static const char leave_sequence[] = "\033[?25h\033[?1049l";

struct live {
    struct ew_watch watch;
    struct ew_spans_view view;
    bool screen;
    uint64_t drawn_ns, begun_ns; /* raw clock */
};

static int on_sample(void *ctx, const struct etwatch_sample *sample)
{
    return ew_cli_spans_sample(&((struct live *)ctx)->view, sample);
}

static void on_events(void *ctx, const struct etwatch_events *batch)
{
    ew_cli_spans_events(&((struct live *)ctx)->view, batch);
}

static void on_loss(void *ctx, const struct etwatch_loss *loss)
{
    ew_cli_spans_loss(&((struct live *)ctx)->view, loss);
}

static int on_end(void *ctx)
{
    struct live *live = ctx;
    int rc = ew_cli_spans_step(&live->view, &live->watch.meta, true);
    return rc == 0 ? ew_cli_spans_end(&live->view) : rc;
}

/* ------------------------------------------------------------------------ screen */

/* The report, cut to the size of the terminal. */
static void draw(struct live *live, uint64_t now_ns)
{
    struct ew_output terminal = {.fd = EW_TERM_OUT};
    struct ew_buf report, out;
    uint32_t columns = 80, rows = 24, row = 0;
    ew_term_size(&columns, &rows);
    ew_buf_init(&report, 0, NULL, NULL);
    ew_buf_init(&out, 0, ew_output_write, &terminal);
    ew_buf_text(&report, "etwatch onnx, inferences of the last ");
    uint64_t shown_ns = now_ns - live->begun_ns;
    if (live->watch.options->duration_ns == 0 && shown_ns > window_ns)
        shown_ns = window_ns;
    ew_buf_u64(&report, shown_ns / 1000000000);
    ew_buf_text(&report, " s; Ctrl-C ends\n");
    (void)ew_cli_spans_write(&live->view, &report);
    ew_buf_text(&out, "\033[H");
    for (size_t at = 0; at < report.len && row + 1 < rows; row++) {
        const char *line = report.data + at, *end = memchr(line, '\n', report.len - at);
        size_t len = end == NULL ? report.len - at : (size_t)(end - line);
        (void)ew_buf_screen(&out, line, len, columns);
        ew_buf_text(&out, "\033[K\r\n");
        at += len + 1;
    }
    ew_buf_text(&out, "\033[J");
    (void)ew_buf_flush(&out);
    ew_buf_done(&out);
    ew_buf_done(&report);
}

static void step_screen(struct live *live)
{
    uint64_t now_ns = ew_os_raw_ns();
    if (!live->screen || now_ns - live->drawn_ns < redraw_ns)
        return;
    uint64_t until_ns = live->view.events_ns;
    if (live->watch.options->duration_ns == 0 && until_ns > window_ns)
        (void)etwatch_spans_forget(live->view.spans, until_ns - window_ns);
    draw(live, now_ns);
    live->drawn_ns = now_ns;
}

static void write_terminal(const char *text)
{
    struct ew_output terminal = {.fd = EW_TERM_OUT};
    (void)ew_output_write(&terminal, text, strlen(text));
}

/* --------------------------------------------------------------------------- live */

static int write_report(struct live *live)
{
    const struct ew_options *options = live->watch.options;
    struct ew_output messages = {.fd = EW_TERM_ERR};
    struct ew_buf out;
    bool data = !options->json && !options->csv && options->spans_format == 0;
    if (!data && options->quiet)
        return 0;
    ew_buf_init(&out, 0, ew_output_write, data ? &live->watch.output : &messages);
    int rc = ew_cli_spans_write(&live->view, &out);
    ew_buf_char(&out, '\n');
    ew_cli_watch_put_cost(&out, &live->watch.stats);
    ew_buf_char(&out, '\n');
    if (rc == 0)
        rc = ew_buf_flush(&out);
    ew_buf_done(&out);
    return data ? rc : 0;
}

/* Until the selected processes have exited, if they were selected by their id. */
static void follow(struct live *live)
{
    const struct ew_options *options = live->watch.options;
    bool by_id = options->pids.count > 0 && options->names.count == 0 && options->files.count == 0;
    live->drawn_ns = live->begun_ns = ew_os_raw_ns();
    while (ew_signals_ending() == 0 && ew_cli_watch_step(&live->watch, 250) &&
           ew_cli_spans_step(&live->view, &live->watch.meta, false) == 0) {
        step_screen(live);
        if (by_id && live->watch.any_started && live->watch.live == 0)
            break;
    }
}

int ew_cmd_onnx(const struct ew_options *given)
{
    struct live live = {0};
    struct ew_options options = *given;
    bool trace = options.spans_format == ETWATCH_EXPORT_PERFETTO;
    bool recorded = options.files.count > 0;
    options.config_flags |= ETWATCH_CONFIG_EVENTS | ETWATCH_CONFIG_EVENTS_ALL |
                            ETWATCH_CONFIG_EVENTS_CAUSES | ETWATCH_CONFIG_NO_FALLBACK;
    live.screen = !options.json && !options.csv && options.output_path == NULL && !recorded &&
                  ew_term_is(EW_TERM_OUT);
    int code = recorded ? ew_cli_spans_init_recording(&live.view, &options)
                        : ew_cli_spans_init_running(&live.view, &options);
    if (code == EW_EXIT_OK)
        code = ew_cli_watch_prepare(&live.watch, &options,
                                    options.json ? (uint32_t)ETWATCH_FORMAT_JSONL
                                    : trace      ? (uint32_t)ETWATCH_FORMAT_PERFETTO
                                                 : 0);
    if (code == EW_EXIT_OK)
        ew_cli_spans_output(&live.view, live.watch.sink, &live.watch.output);
    if (code == EW_EXIT_OK && recorded)
        code = ew_cli_spans_read(&live.view);
    /* A trace shows what every CPU ran. */
    live.watch.no_samples = !trace;
    live.watch.on_sample = on_sample;
    live.watch.on_events = on_events;
    live.watch.on_loss = on_loss;
    live.watch.on_end = on_end;
    live.watch.ctx = &live;
    ew_signals_init();
    if (code == EW_EXIT_OK)
        code = ew_cli_watch_open(&live.watch, 0);
    if (code == EW_EXIT_OK) {
        if (live.screen)
            write_terminal(enter_sequence);
        follow(&live);
        if (live.screen)
            write_terminal(leave_sequence);
        ew_cli_watch_stop(&live.watch);
        if (live.watch.error == 0)
            live.watch.error = write_report(&live);
    }
    int end_code = ew_cli_watch_close(&live.watch);
    ew_cli_spans_done(&live.view);
    return code != EW_EXIT_OK ? code : end_code;
}
