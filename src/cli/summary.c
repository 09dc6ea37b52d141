/* SPDX-License-Identifier: MIT */
/*
 * Owns the totals of every process of a run. The totals of an EXIT cover the whole life of a
 * process, so they replace the sums; a process that still runs shows the sum of its samples.
 */
#include <string.h>

#include "base/ntstatus.h"
#include "base/units.h"
#include "cli/cli.h"

enum { MAX_ROWS = 1024, ROWS_SHOWN = 60, EXTRA_COLUMNS = 2 };

static const enum ew_cli_process_column shown[] = {
    EW_PROCESS_PID,
    EW_PROCESS_NAME,
    EW_PROCESS_CPU_PERCENT,
    EW_PROCESS_CPU,
    EW_PROCESS_USER,
    EW_PROCESS_KERNEL,
    EW_PROCESS_WAIT,
    EW_PROCESS_SWITCHES_VOLUNTARY,
    EW_PROCESS_SWITCHES_INVOLUNTARY,
    EW_PROCESS_FAULTS_MINOR,
    EW_PROCESS_FAULTS_MAJOR,
    EW_PROCESS_RSS_PEAK,
    EW_PROCESS_READ,
    EW_PROCESS_WRITE,
};
/* Of these those that a process has. */
static const struct {
    enum ew_cli_process_column column;
    uint32_t metric;
    const char *estimate; /* its heading as an estimate */
} of_devices[] = {
    {EW_PROCESS_GPU, ETWATCH_M_gpu_ns, "~GPU"},
    {EW_PROCESS_NPU, ETWATCH_M_npu_ns, "~NPU"},
    {EW_PROCESS_ENERGY, ETWATCH_M_energy_uj, "~ENERGY"},
};
enum {
    SHOWN_COUNT = sizeof shown / sizeof shown[0],
    DEVICE_COUNT = sizeof of_devices / sizeof of_devices[0],
    WALL_AT = 2
};

int ew_summary_init(struct ew_summary *summary)
{
    const struct etwatch_rollup_options options = {
        .size = sizeof options, .flags = ETWATCH_ROLLUP_TOTALS, .max_rows = MAX_ROWS};
    *summary = (struct ew_summary){0};
    return etwatch_rollup_new(&options, &summary->rollup);
}

void ew_summary_done(struct ew_summary *summary)
{
    etwatch_rollup_free(summary->rollup);
    summary->rollup = NULL;
}

int ew_summary_add(struct ew_summary *summary, const struct etwatch_sample *sample)
{
    summary->started += sample->type == ETWATCH_TYPE_START;
    summary->exited += sample->type == ETWATCH_TYPE_EXIT;
    if (sample->type == ETWATCH_TYPE_EXIT && sample->pid == summary->child_pid &&
        !summary->ended_ns)
        summary->ended_ns = sample->t_ns;
    ew_cli_devices_sample(&summary->devices, sample);
    return etwatch_rollup_add(summary->rollup, sample);
}

static bool is_thread(const struct etwatch_rollup_row *row)
{
    return row->sum->type == ETWATCH_TYPE_THREAD;
}

static bool has_exited(const struct etwatch_rollup_row *row)
{
    return (row->flags & ETWATCH_ROLLUP_EXITED) != 0;
}

/* From the start of a process (or of watching) to its exit (or its last sample). */
static uint64_t wall_ns(const struct ew_summary *summary, const struct etwatch_rollup_row *row)
{
    uint64_t from_ns = row->first_ns, to_ns = row->sum->t_ns;
    if (has_exited(row) && !is_thread(row))
        from_ns = to_ns - row->sum->dt_ns;
    if (row->sum->pid == summary->child_pid && from_ns < summary->released_ns)
        from_ns = summary->released_ns;
    return to_ns > from_ns ? to_ns - from_ns : 0;
}

static void put_exit(struct ew_grid *grid, const struct etwatch_rollup_row *row)
{
    struct ew_buf *out = ew_grid_cell(grid);
    const struct etwatch_sample *sum = row->sum;
    bool by_signal = etwatch_sample_has(sum, ETWATCH_M_exit_signal) && sum->exit_signal > 0;
    if (is_thread(row))
        ew_buf_text(out, "");
    else if (!has_exited(row))
        ew_buf_text(out, "alive");
    else if (by_signal)
        ew_buf_text(out, ew_signals_name((int)sum->exit_signal));
    else if (etwatch_sample_has(sum, ETWATCH_M_exit_code))
        ew_ntstatus_put(out, sum->exit_code);
    else
        ew_buf_char(out, '-');
    ew_grid_end(grid);
}

static void put_row(struct ew_grid *grid, const struct ew_summary *summary,
                    const struct etwatch_rollup_row *row, uint32_t devices)
{
    uint64_t wall = wall_ns(summary, row);
    for (uint32_t c = 0; c < SHOWN_COUNT; c++) {
        if (c == WALL_AT) {
            ew_units_ns(ew_grid_cell(grid), wall);
            ew_grid_end(grid);
        }
        ew_cli_process_column_put(grid, shown[c], row->sum, wall);
    }
    for (uint32_t c = 0; c < DEVICE_COUNT; c++)
        if ((devices >> c & 1) != 0)
            ew_cli_process_column_put(grid, of_devices[c].column, row->sum, wall);
    put_exit(grid, row);
}

/* devices: bits of of_devices. Returns the number of columns. */
static uint32_t make_columns(const struct ew_summary *summary, uint32_t devices,
                             struct ew_grid_column *columns)
{
    size_t at = 0;
    for (uint32_t c = 0; c < SHOWN_COUNT; c++) {
        if (c == WALL_AT)
            columns[at++] = (struct ew_grid_column){.heading = "WALL", .min_width = 7};
        columns[at] = ew_cli_process_column(shown[c]);
        columns[at].min_width = 0;
        at++;
    }
    for (uint32_t c = 0; c < DEVICE_COUNT; c++) {
        if ((devices >> c & 1) == 0)
            continue;
        columns[at] = ew_cli_process_column(of_devices[c].column);
        columns[at].min_width = 0;
        if (etwatch_metric_set_has(&summary->estimated, of_devices[c].metric))
            columns[at].heading = of_devices[c].estimate;
        at++;
    }
    columns[at] = (struct ew_grid_column){.heading = "EXIT"};
    return (uint32_t)at + 1;
}

static void put_total(struct ew_buf *out, const struct ew_summary *summary, const char *command,
                      const char *how_it_ended, const struct etwatch_stats *stats)
{
    struct etwatch_rollup_info sums = {.size = sizeof sums};
    (void)etwatch_rollup_info(summary->rollup, &sums);
    (void)ew_buf_screen(out, command, strlen(command), 100);
    ew_buf_text(out, ": ");
    ew_buf_text(out, how_it_ended);
    ew_buf_text(out, ", wall ");
    bool own = summary->released_ns != 0 && summary->ended_ns > summary->released_ns;
    ew_units_ns(out, own ? summary->ended_ns - summary->released_ns : stats->duration_ns);
    ew_buf_text(out, ", CPU ");
    ew_units_ns(out, sums.cpu_ns);
    ew_buf_text(out, ", ");
    ew_buf_u64(out, summary->started);
    ew_buf_text(out, summary->started == 1 ? " process\n\n" : " processes\n\n");
}

static struct etwatch_rollup_row row_at(const struct ew_summary *summary, uint32_t i)
{
    struct etwatch_rollup_row row = {.size = sizeof row};
    (void)etwatch_rollup_row(summary->rollup, i, &row);
    return row;
}

/* Bits of of_devices. */
static uint32_t find_devices(const struct ew_summary *summary, uint32_t count)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct etwatch_rollup_row row = row_at(summary, i);
        for (uint32_t c = 0; c < DEVICE_COUNT; c++)
            if (etwatch_sample_has(row.sum, of_devices[c].metric))
                found |= 1u << c;
    }
    return found;
}

/* The row of the only thread of a process would repeat that of the process. */
static bool is_only_thread(const struct ew_summary *summary, uint32_t i, uint32_t count)
{
    struct etwatch_rollup_row row = row_at(summary, i);
    if (!is_thread(&row) || i == 0)
        return false;
    struct etwatch_rollup_row before = row_at(summary, i - 1);
    if (is_thread(&before))
        return false;
    if (i + 1 == count)
        return true;
    struct etwatch_rollup_row next = row_at(summary, i + 1);
    return !is_thread(&next) || next.sum->pid != row.sum->pid;
}

/* What is not listed: rows from `from` on, and processes without a row. */
static void put_rest(struct ew_buf *out, const struct ew_summary *summary, uint32_t from,
                     uint32_t count)
{
    struct etwatch_rollup_info sums = {.size = sizeof sums};
    (void)etwatch_rollup_info(summary->rollup, &sums);
    uint64_t processes = sums.unlisted, threads = 0, cpu_ns = sums.unlisted_cpu_ns;
    for (uint32_t i = from; i < count; i++) {
        struct etwatch_rollup_row row = row_at(summary, i);
        threads += is_thread(&row) && !is_only_thread(summary, i, count);
        processes += !is_thread(&row);
        cpu_ns += is_thread(&row) ? 0 : row.sum->cpu_ns;
    }
    if (processes > 0) {
        ew_buf_text(out, "and ");
        ew_buf_u64(out, processes);
        ew_buf_text(out, processes == 1 ? " more process with " : " more processes with ");
        ew_units_ns(out, cpu_ns);
        ew_buf_text(out, " of CPU\n");
    }
    if ((sums.flags & ETWATCH_ROLLUP_THREADS_UNLISTED) != 0)
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
    struct ew_grid_column columns[SHOWN_COUNT + EXTRA_COLUMNS + DEVICE_COUNT];
    struct ew_grid grid;
    uint32_t at = 0;
    int rc = etwatch_rollup_sort(summary->rollup, ETWATCH_M_cpu_ns, 0);
    if (rc < 0)
        return rc;
    uint32_t count = (uint32_t)rc;
    put_total(out, summary, command, how_it_ended, stats);
    uint32_t devices = find_devices(summary, count);
    ew_grid_init(&grid, columns, make_columns(summary, devices, columns));
    grid.width = width;
    grid.color = color;
    for (uint32_t rows = 0; at < count && rows < ROWS_SHOWN; at++) {
        struct etwatch_rollup_row row = row_at(summary, at);
        if (is_only_thread(summary, at, count))
            continue;
        put_row(&grid, summary, &row, devices);
        rows++;
    }
    rc = ew_grid_print(&grid, out, 0);
    ew_grid_done(&grid);
    put_rest(out, summary, at, count);
    ew_buf_char(out, '\n');
    ew_cli_devices_write(&summary->devices, command, &summary->estimated, out);
    ew_buf_text(out, "monitor: ");
    ew_cli_watch_put_cost(out, stats);
    ew_buf_char(out, '\n');
    return rc < 0 ? rc : out->error;
}
