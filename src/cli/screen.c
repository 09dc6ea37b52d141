/* SPDX-License-Identifier: MIT */
/* The text of one screen of top: a line about the machine, one about our own cost, the processes.
 */
#include "cli/screen.h"

#include <string.h>

#include "sink/columns.h"
#include "sink/fields.h"
#include "base/units.h"

enum { HEAD_ROWS = 4 }; /* three lines and the heading of the table */

static const uint8_t shown[] = {
    EW_F_pid,
    EW_F_user,
    EW_F_METRIC(cpu_percent),
    EW_F_METRIC(cpu_user_ns),
    EW_F_METRIC(cpu_kernel_ns),
    EW_F_METRIC(rss_bytes),
    EW_F_METRIC(faults_minor),
    EW_F_METRIC(faults_major),
    EW_F_METRIC(switches_voluntary),
    EW_F_METRIC(switches_involuntary),
    EW_F_METRIC(io_read_bytes),
    EW_F_METRIC(io_write_bytes),
    EW_F_METRIC(threads),
    EW_F_name,
};
enum { SHOWN_COUNT = sizeof shown / sizeof shown[0] };

static uint32_t metric_of(enum ew_screen_sort sort)
{
    switch (sort) {
    case EW_SORT_MEMORY:
        return ETWATCH_M_rss_bytes;
    case EW_SORT_IO:
        return ETWATCH_M_io_write_bytes;
    default:
        return ETWATCH_M_cpu_ns;
    }
}

static const char *sort_name(enum ew_screen_sort sort)
{
    return sort == EW_SORT_MEMORY ? "memory" : sort == EW_SORT_IO ? "I/O written" : "CPU";
}

/* Every line is cut to the screen, or the terminal would wrap it and the rest would scroll away. */
static void put_line(const struct ew_screen *screen, struct ew_buf *line, struct ew_buf *out)
{
    if (screen->columns > 0 && line->len > 0)
        (void)ew_buf_screen(out, line->data, line->len, screen->columns);
    else
        ew_buf_bytes(out, line->data, line->len);
    ew_buf_char(out, '\n');
    line->len = 0;
}

static void put_head(const struct ew_screen *screen, const struct ew_rollup *rollup,
                     const struct etwatch_stats *stats, uint64_t t_ns, uint64_t wall_ns,
                     struct ew_buf *out)
{
    struct ew_buf line;
    uint64_t cpu_ns = rollup->rest.cpu_ns, running = 0;
    for (uint32_t i = 0; i < rollup->count; i++) {
        const struct ew_rollup_row *row = &rollup->rows[i];
        if (row->sum.type == ETWATCH_TYPE_THREAD)
            continue;
        cpu_ns += row->sum.cpu_ns;
        running += row->active;
    }
    ew_buf_init(&line, 0, NULL, NULL);
    const char *source = etwatch_source_name(stats->source);
    ew_buf_text(&line, "etwatch top, ");
    ew_units_time(&line, t_ns);
    ew_buf_text(&line, ", source ");
    ew_buf_text(&line, source != NULL ? source : "?");
    ew_buf_text(&line, "; ");
    ew_buf_u64(&line, stats->processes);
    ew_buf_text(&line, " processes, ");
    ew_buf_u64(&line, running);
    ew_buf_text(&line, " ran, CPU ");
    ew_units_percent(&line, wall_ns == 0 ? 0 : 100.0 * (double)cpu_ns / (double)wall_ns);
    ew_buf_text(&line, " % of a core");
    put_line(screen, &line, out);
    ew_buf_text(&line, "own cost ");
    (void)ew_buf_fixed(&line, stats->self_cpu_percent, 3);
    ew_buf_text(&line, " % of a core (in the kernel ");
    if (stats->self_kernel_percent < 0)
        ew_buf_text(&line, "unknown), ");
    else
        (void)ew_buf_fixed(&line, stats->self_kernel_percent, 3);
    ew_buf_text(&line, stats->self_kernel_percent < 0 ? "" : " %), ");
    ew_units_bytes(&line, stats->self_rss_bytes);
    ew_buf_text(&line, ", ");
    (void)ew_buf_fixed(&line, stats->hz_effective, 1);
    ew_buf_text(&line, " Hz; lost: ");
    ew_buf_u64(&line, stats->lost);
    put_line(screen, &line, out);
    ew_buf_text(&line, "by ");
    ew_buf_text(&line, sort_name(screen->sort));
    ew_buf_text(&line, screen->help ? "; keys: q quit, c by CPU, m by memory, i by I/O, h no help"
                                    : "; h help, q quit");
    if (screen->alert != NULL && screen->alert[0] != '\0') {
        ew_buf_text(&line, "; alert: ");
        ew_buf_text(&line, screen->alert);
    }
    put_line(screen, &line, out);
    ew_buf_done(&line);
}

int ew_screen_write(const struct ew_screen *screen, struct ew_rollup *rollup,
                    const struct etwatch_stats *stats, uint64_t t_ns, uint64_t wall_ns,
                    struct ew_buf *out)
{
    struct ew_grid_column columns[SHOWN_COUNT];
    struct ew_grid grid;
    size_t rows = ew_rollup_sort(rollup, metric_of(screen->sort), screen->active_only);
    size_t room = screen->rows > HEAD_ROWS + 1 ? screen->rows - HEAD_ROWS - 1 : 1;

    put_head(screen, rollup, stats, t_ns, wall_ns, out);
    for (uint32_t c = 0; c < SHOWN_COUNT; c++)
        columns[c] = ew_column_for(shown[c]);
    ew_grid_init(&grid, columns, SHOWN_COUNT);
    grid.color = screen->color;
    grid.width = screen->columns;
    if (screen->rows > 0 && rows > room)
        rows = room;
    for (size_t i = 0; i < rows; i++)
        for (uint32_t c = 0; c < SHOWN_COUNT; c++)
            ew_column_put(&grid, ew_rollup_sorted(rollup, i), shown[c], wall_ns);
    int rc = ew_grid_print(&grid, out, 0);
    ew_grid_done(&grid);
    return rc < 0 ? rc : rollup->error != 0 ? rollup->error : out->error;
}
