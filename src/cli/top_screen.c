/* SPDX-License-Identifier: MIT */
/*
 * The text of one screen of top: the machine and the cost of etwatch, bars of the CPUs and of the
 * memory, a line for keys and questions, then the processes. No line is wider than the terminal and
 * there are never more lines than it has: both would scroll the screen.
 */
#include "base/units.h"
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

enum { SMALL_ROWS = 16, BAR_WIDTH_MIN = 26, TEXT_ROWS = 3, HEADING_ROWS = 1 };

static const char plain[] = "\033[0m", bold[] = "\033[1m", dim[] = "\033[2m";
static const char green[] = "\033[32m", yellow[] = "\033[33m", red[] = "\033[31m";
static const char cyan[] = "\033[36m";

static const enum ew_cli_process_column shown[] = {
    EW_PROCESS_PID,
    EW_PROCESS_OWNER,
    EW_PROCESS_CPU_PERCENT,
    EW_PROCESS_USER,
    EW_PROCESS_KERNEL,
    EW_PROCESS_WAIT,
    EW_PROCESS_RSS,
    EW_PROCESS_FAULTS_MINOR,
    EW_PROCESS_FAULTS_MAJOR,
    EW_PROCESS_SWITCHES_VOLUNTARY,
    EW_PROCESS_SWITCHES_INVOLUNTARY,
    EW_PROCESS_READ,
    EW_PROCESS_WRITE,
    EW_PROCESS_THREADS,
    EW_PROCESS_NAME,
};
enum { SHOWN_COUNT = sizeof shown / sizeof shown[0], GAP = 2 };
_Static_assert((int)SHOWN_COUNT <= (int)EW_TOP_COLUMNS_MAX, "room for every column");

/* What a narrow terminal goes without, in this order, so that the names fit. */
static const enum ew_cli_process_column dispensable[] = {
    EW_PROCESS_FAULTS_MAJOR,
    EW_PROCESS_SWITCHES_INVOLUNTARY,
    EW_PROCESS_SWITCHES_VOLUNTARY,
    EW_PROCESS_FAULTS_MINOR,
    EW_PROCESS_KERNEL,
    EW_PROCESS_USER,
    EW_PROCESS_THREADS,
    EW_PROCESS_READ,
    EW_PROCESS_WRITE,
    EW_PROCESS_WAIT,
    EW_PROCESS_OWNER,
};

static const struct {
    const char *name;
    uint32_t metric;
    enum ew_cli_process_column column; /* a click on its heading selects this order */
} sorts[EW_SORT_COUNT] = {
    [EW_SORT_CPU] = {"CPU", ETWATCH_M_cpu_ns, EW_PROCESS_CPU_PERCENT},
    [EW_SORT_WAIT] = {"run-queue wait", ETWATCH_M_runq_wait_ns, EW_PROCESS_WAIT},
    [EW_SORT_MEMORY] = {"memory", ETWATCH_M_rss_bytes, EW_PROCESS_RSS},
    [EW_SORT_FAULTS] = {"page faults", ETWATCH_M_faults_minor, EW_PROCESS_FAULTS_MINOR},
    [EW_SORT_SWITCHES] = {"switches", ETWATCH_M_switches_voluntary, EW_PROCESS_SWITCHES_VOLUNTARY},
    [EW_SORT_READ] = {"I/O read", ETWATCH_M_io_read_bytes, EW_PROCESS_READ},
    [EW_SORT_WRITE] = {"I/O written", ETWATCH_M_io_write_bytes, EW_PROCESS_WRITE},
    [EW_SORT_THREADS] = {"threads", ETWATCH_M_threads, EW_PROCESS_THREADS},
};

uint32_t ew_screen_sort_metric(enum ew_screen_sort sort)
{
    return sorts[sort].metric;
}

/* ------------------------------------------------------------------------- lines */

static void style(const struct ew_screen *screen, struct ew_buf *out, const char *sequence)
{
    if (screen->color)
        ew_buf_text(out, sequence);
}

/* Text of known content and width is written with styles, other text through here. */
static void put_line(const struct ew_screen *screen, struct ew_buf *line, struct ew_buf *out)
{
    if (screen->columns > 0 && line->len > 0)
        (void)ew_buf_screen(out, line->data, line->len, screen->columns);
    else
        ew_buf_bytes(out, line->data, line->len);
    ew_buf_char(out, '\n');
    line->len = 0;
}

static void put_machine(const struct ew_screen *screen, const struct etwatch_rollup_info *sums,
                        const struct etwatch_stats *stats, uint64_t wall_ns, struct ew_buf *line)
{
    const char *source = etwatch_source_name(stats->source);
    ew_buf_text(line, screen->paused ? "etwatch top (paused), " : "etwatch top, ");
    ew_units_time(line, sums->last_ns, screen->utc_offset);
    ew_buf_text(line, ", source ");
    ew_buf_text(line, source != NULL ? source : "?");
    ew_buf_text(line, "; ");
    ew_buf_u64(line, stats->processes);
    ew_buf_text(line, " processes, ");
    ew_buf_u64(line, sums->active);
    ew_buf_text(line, " ran, CPU ");
    ew_units_percent(line, wall_ns == 0 ? 0 : 100.0 * (double)sums->cpu_ns / (double)wall_ns);
    ew_buf_text(line, " % of a core");
}

static void put_cost(const struct etwatch_stats *stats, struct ew_buf *line)
{
    ew_buf_text(line, "own cost ");
    (void)ew_buf_fixed(line, stats->self_cpu_percent, 3);
    ew_buf_text(line, " % of a core (in the kernel ");
    if (stats->self_kernel_percent < 0)
        ew_buf_text(line, "unknown), ");
    else
        (void)ew_buf_fixed(line, stats->self_kernel_percent, 3);
    ew_buf_text(line, stats->self_kernel_percent < 0 ? "" : " %), ");
    ew_units_bytes(line, stats->self_rss_bytes);
    ew_buf_text(line, ", ");
    (void)ew_buf_fixed(line, stats->hz_effective, 1);
    ew_buf_text(line, " Hz; lost: ");
    ew_buf_u64(line, stats->lost);
}

static void put_keys(const struct ew_screen *screen, struct ew_buf *line)
{
    if (screen->prompt[0] != '\0') {
        ew_buf_text(line, screen->prompt);
        return;
    }
    ew_buf_text(line, "by ");
    ew_buf_text(line, sorts[screen->sort].name);
    if (screen->filter[0] != '\0') {
        ew_buf_text(line, "; only *");
        ew_buf_text(line, screen->filter);
        ew_buf_text(line, "*");
    }
    ew_buf_text(line, screen->help ? "; keys: q quit, c by CPU, m by memory, i by I/O, < > other "
                                     "order, t tree, H threads, / filter, p pause, k end, K kill, "
                                     "[ ] priority, h hide help"
                                   : "; h help, q quit");
    if (screen->alert != NULL && screen->alert[0] != '\0') {
        ew_buf_text(line, "; alert: ");
        ew_buf_text(line, screen->alert);
    }
}

/* -------------------------------------------------------------------------- bars */

static const char *bar_color(double percent)
{
    return percent >= 90 ? red : percent >= 60 ? yellow : green;
}

/* "label[|||||    text]", exactly `width` columns; the label and the text are ASCII. */
static void put_bar(const struct ew_screen *screen, struct ew_buf *out, const char *label,
                    double percent, const char *text, uint32_t width)
{
    size_t label_len = strlen(label), text_len = strlen(text);
    if (width < label_len + text_len + 3)
        return;
    size_t room = width - label_len - 2;
    double share = percent < 0 ? 0 : percent > 100 ? 1 : percent / 100;
    size_t filled = (size_t)(share * (double)room + 0.5);
    size_t bars = filled > room - text_len ? room - text_len : filled;
    style(screen, out, cyan);
    ew_buf_text(out, label);
    style(screen, out, plain);
    ew_buf_char(out, '[');
    style(screen, out, bar_color(percent));
    ew_buf_repeat(out, '|', bars);
    style(screen, out, plain);
    ew_buf_repeat(out, ' ', room - text_len - bars);
    style(screen, out, dim);
    ew_buf_text(out, text);
    style(screen, out, plain);
    ew_buf_char(out, ']');
}

static const char *level_text(const struct ew_screen *screen, double percent)
{
    static const char *const blocks[] = {"\u2581", "\u2582", "\u2583", "\u2584",
                                         "\u2585", "\u2586", "\u2587", "\u2588"};
    static const char *const letters[] = {"_", ".", ":", "-", "=", "+", "*", "#"};
    int level = percent < 0 ? -1 : percent >= 100 ? 7 : (int)(percent * 8 / 100);
    return level < 0 ? " " : screen->utf8 ? blocks[level] : letters[level];
}

static uint32_t bars_per_line(const struct ew_screen *screen, uint32_t cpus)
{
    uint32_t per_line = screen->columns / BAR_WIDTH_MIN;
    return per_line == 0 ? 1 : per_line > cpus ? cpus : per_line;
}

/* 0: too many for bars, one character each. */
static uint32_t bar_lines(const struct ew_screen *screen)
{
    uint32_t cpus = screen->system.cpu_count;
    if (cpus == 0)
        return 0;
    uint32_t per_line = bars_per_line(screen, cpus), lines = (cpus + per_line - 1) / per_line;
    return lines <= screen->rows / 5 ? lines : 0;
}

static void put_cpu_bar(const struct ew_screen *screen, struct ew_buf *out, uint32_t cpu,
                        uint32_t width)
{
    double percent = screen->system.cpu_percents[cpu];
    struct ew_buf label, text;
    ew_buf_init(&label, 0, NULL, NULL);
    ew_buf_init(&text, 0, NULL, NULL);
    ew_buf_repeat(&label, ' ', cpu < 10 ? 2 : cpu < 100 ? 1 : 0);
    ew_buf_u64(&label, cpu);
    if (percent < 0)
        ew_buf_text(&text, "offline");
    else
        (void)ew_buf_fixed(&text, percent, 1);
    ew_buf_text(&text, percent < 0 ? "" : "%");
    ew_buf_char(&label, '\0');
    ew_buf_char(&text, '\0');
    if (label.error == 0 && text.error == 0)
        put_bar(screen, out, label.data, percent, text.data, width);
    ew_buf_done(&label);
    ew_buf_done(&text);
}

static void put_cpus(const struct ew_screen *screen, struct ew_buf *out)
{
    uint32_t cpus = screen->system.cpu_count, lines = bar_lines(screen);
    if (cpus == 0)
        return;
    if (lines == 0) {
        style(screen, out, cyan);
        ew_buf_text(out, "CPUs ");
        style(screen, out, plain);
        for (uint32_t i = 0; i < cpus && i + 5 < screen->columns; i++)
            ew_buf_text(out, level_text(screen, screen->system.cpu_percents[i]));
        ew_buf_char(out, '\n');
        return;
    }
    /* The last column stays free: clearing the rest of the line would erase it. */
    uint32_t per_line = bars_per_line(screen, cpus), width = (screen->columns - 1) / per_line;
    for (uint32_t line = 0; line < lines; line++) {
        /* Neighbours go below each other, as in other monitors. */
        for (uint32_t i = line; i < cpus && i < lines * per_line; i += lines)
            put_cpu_bar(screen, out, i, width);
        ew_buf_char(out, '\n');
    }
}

static void put_amount_bar(const struct ew_screen *screen, struct ew_buf *out, const char *label,
                           uint64_t used, uint64_t total, uint32_t width)
{
    struct ew_buf text;
    ew_buf_init(&text, 0, NULL, NULL);
    ew_units_bytes(&text, used);
    ew_buf_char(&text, '/');
    ew_units_bytes(&text, total);
    ew_buf_char(&text, '\0');
    if (text.error == 0)
        put_bar(screen, out, label, total == 0 ? 0 : 100.0 * (double)used / (double)total,
                text.data, width);
    ew_buf_done(&text);
}

/* Memory, swap, and the CPU use of the last minute. */
static void put_memory(const struct ew_screen *screen, struct ew_buf *out)
{
    const struct etwatch_system *system = &screen->system;
    uint32_t width = screen->columns / 3, used = 0;
    if (etwatch_system_has(system, ETWATCH_S_memory_total_bytes) &&
        etwatch_system_has(system, ETWATCH_S_memory_available_bytes)) {
        put_amount_bar(screen, out, "Mem",
                       system->memory_total_bytes - system->memory_available_bytes,
                       system->memory_total_bytes, width);
        used += width;
    }
    if (etwatch_system_has(system, ETWATCH_S_swap_total_bytes) &&
        etwatch_system_has(system, ETWATCH_S_swap_used_bytes) && system->swap_total_bytes > 0) {
        put_amount_bar(screen, out, "Swp", system->swap_used_bytes, system->swap_total_bytes,
                       width);
        used += width;
    }
    uint32_t room = screen->columns > used + 6 ? screen->columns - used - 6 : 0;
    uint32_t count = screen->history_count < room ? screen->history_count : room;
    style(screen, out, cyan);
    ew_buf_text(out, room > 0 ? " CPU " : "");
    style(screen, out, plain);
    for (uint32_t i = screen->history_count - count; i < screen->history_count; i++)
        ew_buf_text(out, level_text(screen, screen->history[i]));
    ew_buf_char(out, '\n');
}

/* ----------------------------------------------------------------------- devices */

static struct ew_top_device *find_device(struct ew_screen *screen,
                                         const struct etwatch_device *device)
{
    const char *id = device->id != NULL ? device->id : "";
    for (uint32_t i = 0; i < screen->device_count; i++)
        if (screen->devices[i].kind == device->kind && screen->devices[i].index == device->index &&
            strcmp(screen->devices[i].driver, device->driver) == 0 &&
            strncmp(screen->devices[i].id, id, sizeof screen->devices[i].id - 1) == 0)
            return &screen->devices[i];
    if (screen->device_count == EW_TOP_DEVICES_MAX)
        return NULL;
    struct ew_top_device *added = &screen->devices[screen->device_count++];
    *added = (struct ew_top_device){.kind = device->kind, .index = device->index, .percent = -1};
    (void)snprintf(added->driver, sizeof added->driver, "%s", device->driver);
    (void)snprintf(added->id, sizeof added->id, "%s", id);
    return added;
}

/* "2.00 GB, 47 C, 120 W": what is known. Power of a meter is its energy over the interval. */
static void put_device_text(struct ew_buf *text, const struct etwatch_device *device)
{
    if (etwatch_device_has(device, ETWATCH_D_memory_used_bytes)) {
        ew_buf_text(text, text->len > 0 ? ", " : "");
        ew_units_bytes(text, device->memory_used_bytes);
    }
    if (etwatch_device_has(device, ETWATCH_D_temperature_celsius)) {
        ew_buf_text(text, text->len > 0 ? ", " : "");
        (void)ew_buf_fixed(text, device->temperature_celsius, 0);
        ew_buf_text(text, " C");
    }
    bool watts = etwatch_device_has(device, ETWATCH_D_power_watts);
    bool energy = etwatch_device_has(device, ETWATCH_D_energy_uj) && device->dt_ns > 0;
    if (!watts && !energy)
        return;
    ew_buf_text(text, text->len > 0 ? ", " : "");
    (void)ew_buf_fixed(
        text, watts ? device->power_watts : 1e3 * (double)device->energy_uj / (double)device->dt_ns,
        1);
    ew_buf_text(text, " W");
}

void ew_screen_device(struct ew_screen *screen, const struct etwatch_device *device)
{
    struct ew_buf text;
    if ((device->flags & ETWATCH_DEVICE_PROBLEM) != 0 || device->dt_ns == 0)
        return;
    struct ew_top_device *at = find_device(screen, device);
    if (at == NULL)
        return;
    bool busy = etwatch_device_has(device, ETWATCH_D_busy_ns);
    at->percent = etwatch_device_has(device, ETWATCH_D_util_percent) ? device->util_percent
                  : busy ? 100.0 * (double)device->busy_ns / (double)device->dt_ns
                         : -1;
    ew_buf_init(&text, 0, NULL, NULL);
    if (at->percent >= 0) {
        (void)ew_buf_fixed(&text, at->percent, 0);
        ew_buf_text(&text, "%");
    }
    put_device_text(&text, device);
    (void)snprintf(at->text, sizeof at->text, "%.*s", (int)text.len,
                   text.data != NULL ? text.data : "");
    ew_buf_done(&text);
}

/* A bar for each GPU and NPU, then the power of the meters. Returns the lines. */
static uint32_t put_devices(const struct ew_screen *screen, struct ew_buf *out)
{
    uint32_t bars = 0, lines = 0;
    for (uint32_t i = 0; i < screen->device_count; i++)
        bars += screen->devices[i].percent >= 0;
    for (uint32_t i = 0; i < screen->device_count && bars > 0 && bars <= screen->rows / 5; i++) {
        const struct ew_top_device *device = &screen->devices[i];
        char label[16];
        if (device->percent < 0)
            continue;
        (void)snprintf(label, sizeof label, "%s%u",
                       device->kind == ETWATCH_DEVICE_NPU ? "NPU" : "GPU", device->index);
        put_bar(screen, out, label, device->percent, device->text, screen->columns - 1);
        ew_buf_char(out, '\n');
        lines++;
    }
    size_t used = 0;
    for (uint32_t i = 0; i < screen->device_count; i++) {
        const struct ew_top_device *device = &screen->devices[i];
        size_t len = strlen(device->id) + strlen(device->text) + 3;
        if (device->percent >= 0 || device->text[0] == '\0' || used + len >= screen->columns)
            continue;
        style(screen, out, cyan);
        (void)ew_buf_screen(out, device->id, strlen(device->id), screen->columns - used);
        style(screen, out, plain);
        ew_buf_char(out, ' ');
        ew_buf_text(out, device->text);
        ew_buf_text(out, "  ");
        used += len;
    }
    if (used > 0)
        ew_buf_char(out, '\n');
    return lines + (used > 0);
}

/* ------------------------------------------------------------------------- table */

/* The entry of the selected row; the one at the same place if it has gone. */
static uint32_t find_selected(const struct ew_screen *screen)
{
    const struct ew_top_identity *wanted = &screen->selected;
    for (uint32_t i = 0; i < screen->list.count && screen->any_selected; i++) {
        const struct ew_top_identity *at = &screen->list.entries[i].identity;
        if (at->pid == wanted->pid && at->start_ns == wanted->start_ns && at->tid == wanted->tid)
            return i;
    }
    uint32_t last = screen->list.count > 0 ? screen->list.count - 1 : 0;
    return screen->at < last ? screen->at : last;
}

void ew_screen_select(struct ew_screen *screen, int64_t at)
{
    int64_t last = (int64_t)screen->list.count - 1;
    if (last < 0)
        return;
    at = at > last ? last : at < 0 ? 0 : at;
    screen->at = (uint32_t)at;
    screen->any_selected = true;
    screen->selected = screen->list.entries[at].identity;
}

bool ew_screen_sort_at(struct ew_screen *screen, uint32_t column)
{
    for (uint32_t c = 0; c < screen->visible_count; c++) {
        if (column >= screen->heading_ends[c])
            continue;
        for (uint32_t s = 0; s < EW_SORT_COUNT; s++) {
            if (sorts[s].column != screen->visible[c])
                continue;
            screen->sort = (enum ew_screen_sort)s;
            return true;
        }
        return false;
    }
    return false;
}

static uint32_t width_of(const struct ew_screen *screen)
{
    uint32_t width = 0;
    for (uint32_t c = 0; c < screen->visible_count; c++)
        width += ew_cli_process_column(screen->visible[c]).min_width + GAP;
    return width;
}

static void choose_columns(struct ew_screen *screen)
{
    screen->visible_count = SHOWN_COUNT;
    memcpy(screen->visible, shown, sizeof shown);
    for (size_t i = 0; i < sizeof dispensable / sizeof dispensable[0]; i++) {
        if (screen->columns == 0 || width_of(screen) <= screen->columns + GAP)
            return;
        uint32_t kept = 0;
        for (uint32_t c = 0; c < screen->visible_count; c++)
            if (screen->visible[c] != dispensable[i])
                screen->visible[kept++] = screen->visible[c];
        screen->visible_count = kept;
    }
}

static int put_table(struct ew_screen *screen, const struct etwatch_rollup *rollup,
                     uint64_t wall_ns, uint32_t room, struct ew_buf *out)
{
    struct ew_grid_column columns[SHOWN_COUNT];
    struct etwatch_rollup_row row = {.size = sizeof row};
    struct ew_grid grid;
    choose_columns(screen);
    for (uint32_t c = 0; c < screen->visible_count; c++)
        columns[c] = ew_cli_process_column(screen->visible[c]);
    ew_grid_init(&grid, columns, screen->visible_count);
    grid.color = screen->color;
    grid.width = screen->columns;
    uint32_t at = find_selected(screen);
    screen->at = at;
    if (screen->any_selected && room > 0) {
        screen->first = at < screen->first ? at : screen->first;
        screen->first = at >= screen->first + room ? at - room + 1 : screen->first;
    }
    if (screen->list.count <= room || screen->first >= screen->list.count)
        screen->first = 0;
    for (uint32_t i = screen->first; i < screen->list.count && i - screen->first < room; i++) {
        const struct ew_top_entry *entry = &screen->list.entries[i];
        if (etwatch_rollup_row(rollup, entry->row, &row) < 0)
            break;
        if (screen->any_selected && i == at)
            grid.marked_row = i - screen->first + 1;
        for (uint32_t c = 0; c < screen->visible_count; c++)
            ew_cli_process_column_put_at(&grid, screen->visible[c], row.sum, wall_ns, entry->depth);
    }
    int rc = ew_grid_print(&grid, out, 0);
    memcpy(screen->heading_ends, grid.heading_ends,
           screen->visible_count * sizeof screen->heading_ends[0]);
    ew_grid_done(&grid);
    return rc;
}

int ew_screen_write(struct ew_screen *screen, struct etwatch_rollup *rollup,
                    const struct etwatch_stats *stats, uint64_t wall_ns, struct ew_buf *out)
{
    struct etwatch_rollup_info sums = {.size = sizeof sums};
    bool bars = screen->columns >= BAR_WIDTH_MIN && screen->rows >= SMALL_ROWS;
    uint32_t head = TEXT_ROWS + HEADING_ROWS;
    struct ew_buf line;
    int rc = ew_screen_list_fill(&screen->list, screen, rollup);
    if (rc < 0)
        return rc;
    (void)etwatch_rollup_info(rollup, &sums);
    ew_buf_init(&line, 0, NULL, NULL);
    put_machine(screen, &sums, stats, wall_ns, &line);
    style(screen, out, bold);
    put_line(screen, &line, out);
    style(screen, out, plain);
    put_cost(stats, &line);
    put_line(screen, &line, out);
    if (bars && screen->system_known) {
        uint32_t lines = bar_lines(screen);
        put_cpus(screen, out);
        put_memory(screen, out);
        head += 1 + (screen->system.cpu_count == 0 ? 0 : lines == 0 ? 1 : lines);
        head += put_devices(screen, out);
    }
    put_keys(screen, &line);
    put_line(screen, &line, out);
    ew_buf_done(&line);
    /* The last row stays empty: a newline there would scroll. */
    uint32_t room = screen->rows == 0         ? UINT32_MAX
                    : screen->rows > head + 1 ? screen->rows - head - 1
                                              : 1;
    screen->page = room;
    screen->table_row = head;
    rc = put_table(screen, rollup, wall_ns, room, out);
    return rc < 0 ? rc : out->error;
}
