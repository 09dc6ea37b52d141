/* SPDX-License-Identifier: MIT */
/* The text of one screen of top: a line about the machine, one about the cost of etwatch, one about
 * the keys, then the processes. */
#include "base/units.h"
#include "cli/cli.h"

enum { HEAD_ROWS = 4 }; /* three lines and the heading of the table */

static const enum ew_cli_process_column shown[] = {
    EW_PROCESS_PID,
    EW_PROCESS_OWNER,
    EW_PROCESS_CPU_PERCENT,
    EW_PROCESS_USER,
    EW_PROCESS_KERNEL,
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

/* Every line is cut to the width: a wrapped line would scroll the screen. */
static void put_line(const struct ew_screen *screen, struct ew_buf *line, struct ew_buf *out)
{
    if (screen->columns > 0 && line->len > 0)
        (void)ew_buf_screen(out, line->data, line->len, screen->columns);
    else
        ew_buf_bytes(out, line->data, line->len);
    ew_buf_char(out, '\n');
    line->len = 0;
}

static void put_head(const struct ew_screen *screen, const struct etwatch_rollup_info *sums,
                     const struct etwatch_stats *stats, uint64_t wall_ns, struct ew_buf *out)
{
    struct ew_buf line;
    ew_buf_init(&line, 0, NULL, NULL);
    const char *source = etwatch_source_name(stats->source);
    ew_buf_text(&line, "etwatch top, ");
    ew_units_time(&line, sums->last_ns);
    ew_buf_text(&line, ", source ");
    ew_buf_text(&line, source != NULL ? source : "?");
    ew_buf_text(&line, "; ");
    ew_buf_u64(&line, stats->processes);
    ew_buf_text(&line, " processes, ");
    ew_buf_u64(&line, sums->active);
    ew_buf_text(&line, " ran, CPU ");
    ew_units_percent(&line, wall_ns == 0 ? 0 : 100.0 * (double)sums->cpu_ns / (double)wall_ns);
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
    ew_buf_text(&line, screen->help ? "; keys: q quit, c by CPU, m by memory, i by I/O, h hide help"
                                    : "; h help, q quit");
    if (screen->alert != NULL && screen->alert[0] != '\0') {
        ew_buf_text(&line, "; alert: ");
        ew_buf_text(&line, screen->alert);
    }
    put_line(screen, &line, out);
    ew_buf_done(&line);
}

int ew_screen_write(const struct ew_screen *screen, struct etwatch_rollup *rollup,
                    const struct etwatch_stats *stats, uint64_t wall_ns, struct ew_buf *out)
{
    struct ew_grid_column columns[SHOWN_COUNT];
    struct etwatch_rollup_info sums = {.size = sizeof sums};
    struct etwatch_rollup_row row = {.size = sizeof row};
    struct ew_grid grid;
    uint32_t room = screen->rows > HEAD_ROWS + 1 ? screen->rows - HEAD_ROWS - 1 : 1;
    int rc = etwatch_rollup_sort(rollup, metric_of(screen->sort),
                                 screen->active_only ? (uint32_t)ETWATCH_ROLLUP_ACTIVE : 0);
    if (rc < 0)
        return rc;
    uint32_t rows = (uint32_t)rc;
    if (screen->rows > 0 && rows > room)
        rows = room;
    (void)etwatch_rollup_info(rollup, &sums);
    put_head(screen, &sums, stats, wall_ns, out);
    for (uint32_t c = 0; c < SHOWN_COUNT; c++)
        columns[c] = ew_cli_process_column(shown[c]);
    ew_grid_init(&grid, columns, SHOWN_COUNT);
    grid.color = screen->color;
    grid.width = screen->columns;
    for (uint32_t i = 0; i < rows && etwatch_rollup_row(rollup, i, &row) == 0; i++)
        for (uint32_t c = 0; c < SHOWN_COUNT; c++)
            ew_cli_process_column_put(&grid, shown[c], row.sum, wall_ns);
    rc = ew_grid_print(&grid, out, 0);
    ew_grid_done(&grid);
    return rc < 0 ? rc : out->error;
}
