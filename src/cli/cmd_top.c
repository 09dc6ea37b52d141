/* SPDX-License-Identifier: MIT */
/*
 * top: a screen once per second, keys and mouse. On a terminal it uses the alternate screen and
 * restores the normal one however it ends (except by SIGKILL); without a terminal it prints plain
 * blocks of what ran. Whatever changes a process is confirmed first and concerns the process that
 * was selected, never one that reused its pid.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "os/os.h"

enum { MAX_ROWS = 4096, KEY_WAIT_MS = 100, BUFFER_MAX = 4 * 1024 * 1024, WHEEL_ROWS = 3 };
enum { KEY_CTRL_L = 12, KEY_ENTER = 13, KEY_NEWLINE = 10, KEY_BACKSPACE = 8, KEY_DELETE = 127 };
static const uint64_t refresh_ns = 1000000000;

/* Alternate screen and hidden cursor; autowrap off, so that a wide character cannot break lines;
 * clicks and the wheel are reported. */
static const char enter_sequence[] = "\033[?1049h\033[?25l\033[?7l\033[?1000h\033[?1006h\033[2J";
static const char leave_sequence[] = "\033[?1006l\033[?1000l\033[?7h\033[?25h\033[?1049l";

/* What the next keys answer. */
enum question { ASK_NOTHING, ASK_FILTER, ASK_TERMINATE, ASK_KILL, ASK_LESS, ASK_MORE };

struct top {
    struct ew_watch watch;
    struct etwatch_rollup *rollup;
    struct ew_screen screen;
    struct ew_buf out;
    bool live; /* a terminal, not plain blocks */
    bool quit;
    uint64_t shown_raw_ns;
    uint64_t shown_t_ns;     /* time of the latest sample on the last screen; 0: none */
    bool draw;               /* without waiting for the next second */
    uint64_t paused_wall_ns; /* the time that the sums of a paused screen refer to */
    enum question question;
    struct etwatch_system_reader *system; /* may be NULL */
};

/* While paused, processes still come and go, but no figure changes. */
static int add_sample(void *ctx, const struct etwatch_sample *sample)
{
    const struct top *top = ctx;
    bool figures = sample->type == ETWATCH_TYPE_SAMPLE || sample->type == ETWATCH_TYPE_THREAD;
    return top->screen.paused && figures ? 0 : etwatch_rollup_add(top->rollup, sample);
}

static void add_device(void *ctx, const struct etwatch_device *device)
{
    ew_screen_device(&((struct top *)ctx)->screen, device);
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
    ew_term_mouse(true);
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

static void read_system(struct top *top)
{
    struct ew_screen *screen = &top->screen;
    screen->system.size = sizeof screen->system;
    screen->system_known =
        top->system != NULL && etwatch_system_read(top->system, &screen->system) == 0;
    if (!screen->system_known || !etwatch_system_has(&screen->system, ETWATCH_S_cpu_percent))
        return;
    if (screen->history_count == EW_TOP_HISTORY)
        memmove(screen->history, screen->history + 1,
                (EW_TOP_HISTORY - 1) * sizeof screen->history[0]);
    screen->history_count -= screen->history_count == EW_TOP_HISTORY;
    screen->history[screen->history_count++] = screen->system.cpu_percent;
}

static void refresh(struct top *top)
{
    uint64_t now_ns = ew_os_raw_ns();
    uint64_t raw_ns = now_ns - top->shown_raw_ns;
    bool due = raw_ns >= refresh_ns && !top->screen.paused;
    if (due)
        read_system(top);
    if (due || (top->draw && raw_ns > 0))
        draw(top, top->screen.paused ? top->paused_wall_ns : wall_of(top, raw_ns));
    top->draw = false;
    if (due) {
        top->shown_raw_ns = now_ns;
        top->shown_t_ns = last_sample_ns(top);
        (void)etwatch_rollup_next(top->rollup);
    }
}

/* -------------------------------------------------------------------------- keys */

static void set_prompt(struct top *top, const char *text)
{
    (void)snprintf(top->screen.prompt, sizeof top->screen.prompt, "%s", text);
}

static void ask(struct top *top, enum question question, const char *what)
{
    const struct ew_screen *screen = &top->screen;
    if (!screen->any_selected || screen->selected.tid != 0) {
        set_prompt(top, "select a process first: arrow keys or a click");
        return;
    }
    top->question = question;
    (void)snprintf(top->screen.prompt, sizeof top->screen.prompt, "%s %u (%s)? y/n", what,
                   screen->selected.pid, screen->selected.name);
}

static const char *failure_text(int rc)
{
    switch (rc) {
    case ETWATCH_ENOENT:
        return "the process has exited";
    case ETWATCH_EPERM:
        return "not permitted: etwatch drops its rights after the start, so only processes of its "
               "own user can be changed";
    default:
        return "the system refused it";
    }
}

static void act(struct top *top)
{
    struct ew_screen *screen = &top->screen;
    uint32_t pid = screen->selected.pid;
    uint64_t start_ns = screen->selected.start_ns;
    bool nice = top->question == ASK_LESS || top->question == ASK_MORE;
    int value = 0, rc;
    if (nice)
        rc = ew_cli_process_renice(pid, start_ns, top->question == ASK_LESS ? 1 : -1, &value);
    else
        rc = ew_cli_process_signal(
            pid, start_ns, top->question == ASK_KILL ? EW_SIGNAL_KILL : EW_SIGNAL_TERMINATE);
    if (rc < 0)
        set_prompt(top, failure_text(rc));
    else if (nice)
        (void)snprintf(screen->prompt, sizeof screen->prompt, "%u (%s) has nice value %d now", pid,
                       screen->selected.name, value);
    else
        (void)snprintf(screen->prompt, sizeof screen->prompt, "%u (%s) was requested to end", pid,
                       screen->selected.name);
}

static void answer(struct top *top, int code)
{
    set_prompt(top, "");
    if (code == 'y' || code == 'Y')
        act(top);
    top->question = ASK_NOTHING;
}

/* The filter applies while it is typed. */
static void type_filter(struct top *top, int code)
{
    char *filter = top->screen.filter;
    size_t len = strlen(filter);
    if (code == EW_KEY_ESCAPE)
        filter[0] = '\0';
    else if ((code == KEY_BACKSPACE || code == KEY_DELETE) && len > 0)
        filter[len - 1] = '\0';
    else if (code >= ' ' && code < 256 && code != KEY_DELETE && len + 1 < EW_TOP_FILTER_SIZE)
        filter[len] = (char)code, filter[len + 1] = '\0';
    if (code == EW_KEY_ESCAPE || code == KEY_ENTER || code == KEY_NEWLINE) {
        top->question = ASK_NOTHING;
        set_prompt(top, "");
        return;
    }
    (void)snprintf(top->screen.prompt, sizeof top->screen.prompt,
                   "show names, users or a pid with: %s_ (Enter keeps it, Esc clears it)", filter);
}

static void move_by(struct top *top, int64_t rows)
{
    struct ew_screen *screen = &top->screen;
    ew_screen_select(screen,
                     screen->any_selected ? (int64_t)screen->at + rows : (int64_t)screen->first);
}

static void click(struct top *top, const struct ew_key *key)
{
    struct ew_screen *screen = &top->screen;
    if (key->row + 1 == screen->table_row)
        (void)ew_screen_sort_at(screen, key->column);
    else if (key->row >= screen->table_row && key->row - screen->table_row < screen->page)
        ew_screen_select(screen, (int64_t)screen->first + key->row - screen->table_row);
}

static bool take_movement(struct top *top, const struct ew_key *key)
{
    const struct ew_screen *screen = &top->screen;
    switch (key->code) {
    case EW_KEY_UP:
        move_by(top, -1);
        return true;
    case EW_KEY_DOWN:
        move_by(top, 1);
        return true;
    case EW_KEY_PAGE_UP:
        move_by(top, -(int64_t)screen->page);
        return true;
    case EW_KEY_PAGE_DOWN:
        move_by(top, screen->page);
        return true;
    case EW_KEY_HOME:
        ew_screen_select(&top->screen, 0);
        return true;
    case EW_KEY_END:
        ew_screen_select(&top->screen, INT64_MAX);
        return true;
    case EW_KEY_WHEEL_UP:
        move_by(top, -WHEEL_ROWS);
        return true;
    case EW_KEY_WHEEL_DOWN:
        move_by(top, WHEEL_ROWS);
        return true;
    case EW_KEY_CLICK:
        click(top, key);
        return true;
    default:
        return false;
    }
}

static void cycle_sort(struct ew_screen *screen, int step)
{
    screen->sort =
        (enum ew_screen_sort)(((int)screen->sort + step + EW_SORT_COUNT) % EW_SORT_COUNT);
}

static void toggle_threads(struct top *top)
{
    if ((top->watch.options->config_flags & ETWATCH_CONFIG_THREADS) == 0)
        set_prompt(top, "threads are not watched: start etwatch top --threads");
    else
        top->screen.hide_threads = !top->screen.hide_threads;
}

static void take_command(struct top *top, int code)
{
    struct ew_screen *screen = &top->screen;
    switch (code) {
    case 'q':
    case 'Q':
        top->quit = true;
        break;
    case 'c':
    case 'P':
        screen->sort = EW_SORT_CPU;
        break;
    case 'm':
    case 'M':
        screen->sort = EW_SORT_MEMORY;
        break;
    case 'i':
        screen->sort = EW_SORT_WRITE;
        break;
    case '<':
        cycle_sort(screen, -1);
        break;
    case '>':
        cycle_sort(screen, 1);
        break;
    case 't':
        screen->tree = !screen->tree;
        break;
    case 'H':
        toggle_threads(top);
        break;
    case 'p':
        screen->paused = !screen->paused;
        top->paused_wall_ns = wall_of(top, ew_os_raw_ns() - top->shown_raw_ns);
        break;
    case '/':
        top->question = ASK_FILTER;
        type_filter(top, 0);
        break;
    case 'k':
        ask(top, ASK_TERMINATE, "request the end of");
        break;
    case 'K':
        ask(top, ASK_KILL, "kill at once");
        break;
    case ']':
        ask(top, ASK_LESS, "lower the priority of");
        break;
    case '[':
        ask(top, ASK_MORE, "raise the priority of");
        break;
    case EW_KEY_ESCAPE:
        screen->any_selected = false;
        screen->filter[0] = '\0';
        break;
    case 'h':
    case '?':
        screen->help = !screen->help;
        break;
    case KEY_CTRL_L:
        put(top, "\033[2J");
        break;
    default:
        break;
    }
}

static void take_keys(struct top *top)
{
    struct ew_key key;
    while (!top->quit && ew_term_key(&key)) {
        top->draw = true;
        if (top->question == ASK_FILTER) {
            type_filter(top, key.code);
        } else if (top->question != ASK_NOTHING) {
            answer(top, key.code);
        } else {
            set_prompt(top, "");
            if (!take_movement(top, &key))
                take_command(top, key.code);
        }
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
            take_keys(top);
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
    top.watch.on_device = add_device;
    top.watch.ctx = &top;
    top.screen.utc_offset = ew_os_utc_offset_s;
    top.screen.color = ew_term_color(EW_TERM_OUT);
    top.screen.utf8 = ew_term_is_utf8();
    top.screen.active_only = !top.live;
    top.screen.rows = top.live ? 0 : 24;
    ew_signals_init();
    if (top.live)
        ew_signals_watch_screen();
    if (code == EW_EXIT_OK)
        code = ew_cli_watch_open(&top.watch, 0);
    if (code == EW_EXIT_OK) {
        if (top.live && etwatch_system_open(options.proc_root, &top.system) == 0)
            read_system(&top);
        enter_screen(&top);
        watch_until_end(&top);
        ew_cli_watch_stop(&top.watch);
        leave_screen(&top);
    }
    int end_code = ew_cli_watch_close(&top.watch);
    int signal = ew_signals_ending();
    ew_buf_done(&top.out);
    ew_screen_list_done(&top.screen.list);
    etwatch_system_close(top.system);
    etwatch_rollup_free(top.rollup);
    if (code != EW_EXIT_OK || end_code != EW_EXIT_OK)
        return code != EW_EXIT_OK ? code : end_code;
    if (top.watch.output.os_error != 0)
        return EW_EXIT_OK;
    return signal != 0 ? EW_EXIT_SIGNAL + signal : EW_EXIT_OK;
}
