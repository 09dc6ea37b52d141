/* SPDX-License-Identifier: MIT */
/*
 * top: a screen once per second. On a terminal it uses the alternate screen and restores the normal
 * one however it ends (except by SIGKILL); without a terminal it prints plain blocks of what ran.
 */
#include "cli/cli.h"

#include "os/os.h"

enum { MAX_ROWS = 4096, KEY_WAIT_MS = 100, BUFFER_MAX = 4 * 1024 * 1024, KEY_CTRL_L = 12 };
static const uint64_t refresh_ns = 1000000000;

/* Alternate screen and hidden cursor; autowrap off, so that a wide character cannot break lines. */
static const char enter_sequence[] = "\033[?1049h\033[?25l\033[?7l\033[2J";
static const char leave_sequence[] = "\033[?7h\033[?25h\033[?1049l";

struct top {
    struct ew_watch watch;
    struct etwatch_rollup *rollup;
    struct ew_screen screen;
    struct ew_buf out;
    bool live; /* a terminal, not plain blocks */
    bool quit;
    uint64_t shown_raw_ns;
    uint64_t shown_t_ns; /* time of the latest sample on the last screen; 0: none */
    bool draw;           /* without waiting for the next second */
};

static int add_sample(void *ctx, const struct etwatch_sample *sample)
{
    return etwatch_rollup_add(((struct top *)ctx)->rollup, sample);
}

static void put(struct top *top, const char *text)
{
    ew_buf_text(&top->out, text);
    (void)ew_buf_flush(&top->out);
}

static void enter_screen(struct top *top)
{
    if (!top->live)
        return;
    (void)ew_term_raw();
    put(top, enter_sequence);
    top->draw = true;
}

static void leave_screen(struct top *top)
{
    if (!top->live)
        return;
    top->out.error = 0;
    top->out.len = 0;
    put(top, leave_sequence);
    ew_term_restore();
}

/* New lines overwrite the old ones and are cleared to their right, so that nothing flickers. */
static void draw(struct top *top, uint64_t wall_ns)
{
    struct etwatch_stats stats = {.size = sizeof stats};
    struct ew_buf text;
    if (etwatch_monitor_stats(top->watch.monitor, &stats) < 0)
        return;
    if (top->live)
        ew_term_size(&top->screen.columns, &top->screen.rows);
    top->screen.alert = top->watch.last_alert;
    ew_buf_init(&text, BUFFER_MAX, NULL, NULL);
    int rc = ew_screen_write(&top->screen, top->rollup, &stats, wall_ns, &text);
    if (top->live)
        ew_buf_text(&top->out, "\033[H");
    for (size_t i = 0; rc == 0 && i < text.len; i++) {
        if (top->live && text.data[i] == '\n')
            ew_buf_text(&top->out, "\033[K\r");
        ew_buf_char(&top->out, text.data[i]);
    }
    ew_buf_text(&top->out, top->live ? "\033[J" : "\n");
    if (rc == 0)
        rc = ew_buf_flush(&top->out);
    if (rc < 0 && top->watch.error == 0)
        top->watch.error = rc;
    ew_buf_done(&text);
}

static uint64_t last_sample_ns(const struct top *top)
{
    struct etwatch_rollup_info info = {.size = sizeof info};
    (void)etwatch_rollup_info(top->rollup, &info);
    return info.last_ns;
}

/* The time that the sums refer to: that between samples, which arrive a little late. */
static uint64_t wall_of(const struct top *top, uint64_t raw_ns)
{
    uint64_t last_ns = last_sample_ns(top);
    return top->shown_t_ns != 0 && last_ns > top->shown_t_ns ? last_ns - top->shown_t_ns : raw_ns;
}

static void refresh(struct top *top)
{
    uint64_t now_ns = ew_os_raw_ns();
    uint64_t raw_ns = now_ns - top->shown_raw_ns;
    bool due = raw_ns >= refresh_ns;
    if (due || (top->draw && raw_ns > 0))
        draw(top, wall_of(top, raw_ns));
    top->draw = false;
    if (due) {
        top->shown_raw_ns = now_ns;
        top->shown_t_ns = last_sample_ns(top);
        (void)etwatch_rollup_next(top->rollup);
    }
}

static void take_key(struct top *top)
{
    int key = ew_term_key();
    top->draw = top->draw || key != 0;
    switch (key) {
    case 'q':
    case 'Q':
        top->quit = true;
        break;
    case 'c':
        top->screen.sort = EW_SORT_CPU;
        break;
    case 'm':
        top->screen.sort = EW_SORT_MEMORY;
        break;
    case 'i':
        top->screen.sort = EW_SORT_IO;
        break;
    case 'h':
    case '?':
        top->screen.help = !top->screen.help;
        break;
    case KEY_CTRL_L:
        put(top, "\033[2J");
        break;
    default:
        break;
    }
}

static void watch_until_end(struct top *top)
{
    int wait_ms = top->live ? KEY_WAIT_MS : 1000;
    top->shown_raw_ns = ew_os_raw_ns();
    while (!top->quit && ew_signals_ending() == 0 && ew_cli_watch_step(&top->watch, wait_ms)) {
        if (ew_signals_take_suspend()) {
            leave_screen(top);
            ew_signals_suspend();
            enter_screen(top);
        }
        if (ew_signals_take_resize())
            top->draw = true;
        if (top->live)
            take_key(top);
        refresh(top);
    }
}

static struct ew_options with_all(const struct ew_options *options)
{
    struct ew_options copy = *options;
    if (!ew_options_select(options))
        copy.config_flags |= ETWATCH_CONFIG_ALL;
    return copy;
}

int ew_cmd_top(const struct ew_options *given)
{
    struct ew_options options = with_all(given);
    struct top top = {.live = ew_term_is(EW_TERM_OUT)};
    const struct etwatch_rollup_options rows = {.size = sizeof rows, .max_rows = MAX_ROWS};
    int code = ew_cli_watch_prepare(&top.watch, &options, 0);
    if (code == EW_EXIT_OK && etwatch_rollup_new(&rows, &top.rollup) < 0) {
        ew_print_error("out of memory");
        code = EW_EXIT_FAILED;
    }
    ew_buf_init(&top.out, BUFFER_MAX, ew_output_write, &top.watch.output);
    top.watch.on_sample = add_sample;
    top.watch.ctx = &top;
    top.screen.color = ew_term_color(EW_TERM_OUT);
    top.screen.active_only = !top.live;
    top.screen.rows = top.live ? 0 : 24;
    ew_signals_init();
    if (top.live)
        ew_signals_watch_screen();
    if (code == EW_EXIT_OK)
        code = ew_cli_watch_open(&top.watch, 0);
    if (code == EW_EXIT_OK) {
        enter_screen(&top);
        watch_until_end(&top);
        ew_cli_watch_stop(&top.watch);
        leave_screen(&top);
    }
    int end_code = ew_cli_watch_close(&top.watch);
    int signal = ew_signals_ending();
    ew_buf_done(&top.out);
    etwatch_rollup_free(top.rollup);
    if (code != EW_EXIT_OK || end_code != EW_EXIT_OK)
        return code != EW_EXIT_OK ? code : end_code;
    if (top.watch.output.os_error != 0)
        return EW_EXIT_OK;
    return signal != 0 ? EW_EXIT_SIGNAL + signal : EW_EXIT_OK;
}
