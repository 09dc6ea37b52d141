/* SPDX-License-Identifier: MIT */
/*
 * Owns the totals of every process of a run. An exit object carries totals over the whole life, so
 * they replace what was added up; a process that is still alive shows the sum of its samples.
 */
#include "cli/summary.h"

#include <string.h>

#include "cli/signals.h"
#include "cli/watch_run.h"
#include "sink/columns.h"
#include "sink/fields.h"
#include "base/units.h"

enum { ROWS_KEPT = 1024, ROWS_SHOWN = 60, EXTRA_COLUMNS = 2 };

static const uint8_t shown[] = {
    EW_F_pid,
    EW_F_name,
    EW_F_METRIC(cpu_percent),
    EW_F_METRIC(cpu_ns),
    EW_F_METRIC(cpu_user_ns),
    EW_F_METRIC(cpu_kernel_ns),
    EW_F_METRIC(runq_wait_ns),
    EW_F_METRIC(switches_voluntary),
    EW_F_METRIC(switches_involuntary),
    EW_F_METRIC(faults_minor),
    EW_F_METRIC(faults_major),
    EW_F_METRIC(rss_peak_bytes),
    EW_F_METRIC(io_read_bytes),
    EW_F_METRIC(io_write_bytes),
};
enum { SHOWN_COUNT = sizeof shown / sizeof shown[0], WALL_AT = 2 };

void ew_summary_init(struct ew_summary *summary)
{
    *summary = (struct ew_summary){0};
    ew_rollup_init(&summary->rollup, ROWS_KEPT, true);
}

void ew_summary_done(struct ew_summary *summary)
{
    ew_rollup_done(&summary->rollup);
}

int ew_summary_add(struct ew_summary *summary, const struct etwatch_sample *sample)
{
    summary->started += sample->type == ETWATCH_TYPE_START;
    summary->exited += sample->type == ETWATCH_TYPE_EXIT;
    if (sample->type == ETWATCH_TYPE_EXIT && sample->pid == summary->child_pid &&
        !summary->ended_ns)
        summary->ended_ns = sample->t_ns;
    return ew_rollup_add(&summary->rollup, sample);
}

/* A process: from its start (or ours) to its end (or the last that was heard). */
static uint64_t wall_ns(const struct ew_summary *summary, const struct ew_rollup_row *row)
{
    uint64_t from_ns = row->first_ns, to_ns = row->sum.t_ns;
    if (row->exited && row->sum.type != ETWATCH_TYPE_THREAD)
        from_ns = to_ns - row->sum.dt_ns;
    if (row->sum.pid == summary->child_pid && from_ns < summary->released_ns)
        from_ns = summary->released_ns;
    return to_ns > from_ns ? to_ns - from_ns : 0;
}

static void put_exit(struct ew_grid *grid, const struct ew_rollup_row *row)
{
    struct ew_buf *out = ew_grid_cell(grid);
    const struct etwatch_sample *sum = &row->sum;
    bool by_signal = (sum->has & ETWATCH_HAS(exit_signal)) != 0 && sum->exit_signal > 0;
    if (sum->type == ETWATCH_TYPE_THREAD)
        ew_buf_text(out, "");
    else if (!row->exited)
        ew_buf_text(out, "alive");
    else if (by_signal)
        ew_buf_text(out, ew_signals_name((int)sum->exit_signal));
    else if ((sum->has & ETWATCH_HAS(exit_code)) != 0)
        ew_buf_i64(out, sum->exit_code);
    else
        ew_buf_char(out, '-');
    ew_grid_end(grid);
}

static void put_row(struct ew_grid *grid, const struct ew_summary *summary,
                    const struct ew_rollup_row *row)
{
    uint64_t wall = wall_ns(summary, row);
    for (uint32_t c = 0; c < SHOWN_COUNT; c++) {
        if (c == WALL_AT) {
            ew_units_ns(ew_grid_cell(grid), wall);
            ew_grid_end(grid);
        }
        ew_column_put(grid, row, shown[c], wall);
    }
    put_exit(grid, row);
}

static void make_columns(struct ew_grid_column *columns)
{
    size_t at = 0;
    for (uint32_t c = 0; c < SHOWN_COUNT; c++) {
        if (c == WALL_AT)
            columns[at++] = (struct ew_grid_column){.heading = "WALL", .min_width = 7};
        columns[at] = ew_column_for(shown[c]);
        columns[at].min_width = 0;
        at++;
    }
    columns[at] = (struct ew_grid_column){.heading = "EXIT"};
}

static void put_total(struct ew_buf *out, const struct ew_summary *summary, const char *command,
                      const char *how_it_ended, const struct etwatch_stats *stats)
{
    uint64_t cpu_ns = summary->rollup.rest.cpu_ns;
    for (uint32_t i = 0; i < summary->rollup.count; i++)
        if (summary->rollup.rows[i].sum.type != ETWATCH_TYPE_THREAD)
            cpu_ns += summary->rollup.rows[i].sum.cpu_ns;
    (void)ew_buf_screen(out, command, strlen(command), 100);
    ew_buf_text(out, ": ");
    ew_buf_text(out, how_it_ended);
    ew_buf_text(out, ", wall ");
    bool own = summary->released_ns != 0 && summary->ended_ns > summary->released_ns;
    ew_units_ns(out, own ? summary->ended_ns - summary->released_ns : stats->duration_ns);
    ew_buf_text(out, ", CPU ");
    ew_units_ns(out, cpu_ns);
    ew_buf_text(out, ", ");
    ew_buf_u64(out, summary->started);
    ew_buf_text(out, summary->started == 1 ? " process\n\n" : " processes\n\n");
}

/* The only thread of a process says nothing that its process does not say. */
static bool only_thread(const struct ew_summary *summary, size_t i, size_t count)
{
    const struct ew_rollup_row *row = ew_rollup_sorted(&summary->rollup, i);
    if (row->sum.type != ETWATCH_TYPE_THREAD || i == 0)
        return false;
    bool first = ew_rollup_sorted(&summary->rollup, i - 1)->sum.type != ETWATCH_TYPE_THREAD;
    bool last = i + 1 == count ||
                ew_rollup_sorted(&summary->rollup, i + 1)->sum.type != ETWATCH_TYPE_THREAD ||
                ew_rollup_sorted(&summary->rollup, i + 1)->sum.pid != row->sum.pid;
    return first && last;
}

/* What is not listed: rows beyond those shown, and processes that had to make room. */
static void put_rest(struct ew_buf *out, const struct ew_summary *summary, size_t from,
                     size_t count)
{
    uint64_t processes = summary->rollup.rest_count, threads = 0;
    uint64_t cpu_ns = summary->rollup.rest.cpu_ns;
    for (size_t i = from; i < count; i++) {
        const struct ew_rollup_row *row = ew_rollup_sorted(&summary->rollup, i);
        bool thread = row->sum.type == ETWATCH_TYPE_THREAD;
        threads += thread && !only_thread(summary, i, count);
        processes += !thread;
        cpu_ns += thread ? 0 : row->sum.cpu_ns;
    }
    if (processes > 0) {
        ew_buf_text(out, "and ");
        ew_buf_u64(out, processes);
        ew_buf_text(out, processes == 1 ? " more process with " : " more processes with ");
        ew_units_ns(out, cpu_ns);
        ew_buf_text(out, " of CPU\n");
    }
    if (summary->rollup.threads_unlisted)
        ew_buf_text(out, "and more threads than can be listed\n");
    else if (threads > 0) {
        ew_buf_text(out, "and ");
        ew_buf_u64(out, threads);
        ew_buf_text(out, threads == 1 ? " more thread\n" : " more threads\n");
    }
}

int ew_summary_write(struct ew_summary *summary, struct ew_buf *out, const char *command,
                     const char *how_it_ended, const struct etwatch_stats *stats, uint32_t width,
                     bool color)
{
    struct ew_grid_column columns[SHOWN_COUNT + EXTRA_COLUMNS];
    struct ew_grid grid;
    size_t count = ew_rollup_sort(&summary->rollup, ETWATCH_M_cpu_ns, false);
    size_t at = 0;

    put_total(out, summary, command, how_it_ended, stats);
    make_columns(columns);
    ew_grid_init(&grid, columns, SHOWN_COUNT + EXTRA_COLUMNS);
    grid.width = width;
    grid.color = color;
    for (size_t rows = 0; at < count && rows < ROWS_SHOWN; at++) {
        if (only_thread(summary, at, count))
            continue;
        put_row(&grid, summary, ew_rollup_sorted(&summary->rollup, at));
        rows++;
    }
    int rc = ew_grid_print(&grid, out, 0);
    ew_grid_done(&grid);
    put_rest(out, summary, at, count);
    ew_buf_text(out, "\nmonitor: ");
    ew_watch_put_cost(out, stats);
    ew_buf_char(out, '\n');
    return rc < 0 ? rc : out->error;
}
