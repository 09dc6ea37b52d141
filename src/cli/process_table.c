/* SPDX-License-Identifier: MIT */
/*
 * The columns of top and of the summary of run: headings, widths, and how a value is shown. A
 * thread is shown below its process with its own id and an indented name.
 */
#include "base/units.h"
#include "cli/cli.h"

static bool is_thread(const struct etwatch_sample *sum)
{
    return sum->type == ETWATCH_TYPE_THREAD;
}

static void put_pid(struct ew_buf *out, const struct etwatch_sample *sum)
{
    ew_buf_u64(out, is_thread(sum) ? sum->tid : sum->pid);
}

static void put_name(struct ew_buf *out, const struct etwatch_sample *sum)
{
    const char *name = is_thread(sum) ? sum->thread_name : sum->name;
    if (is_thread(sum))
        ew_buf_text(out, "  ");
    ew_buf_text(out, name != NULL ? name : "-");
}

static void put_owner(struct ew_buf *out, const struct etwatch_sample *sum)
{
    ew_buf_text(out, sum->user != NULL ? sum->user : "-");
}

void ew_cli_put_joules(struct ew_buf *out, uint64_t uj)
{
    (void)ew_buf_fixed(out, (double)uj / 1e6, uj < 10000000 ? 3 : 1);
    ew_buf_text(out, " J");
}

enum { TREE_DEPTH_MAX = 8 }; /* deeper rows are indented alike: names stay readable */

#define NO_METRIC ETWATCH_METRIC_COUNT
#define METRIC(name) ETWATCH_M_##name, offsetof(struct etwatch_sample, name)

static const struct {
    struct ew_grid_column grid;
    uint32_t metric;
    size_t offset; /* of its uint64_t in a sample */
    void (*put_value)(struct ew_buf *out, uint64_t value);
    void (*put_text)(struct ew_buf *out, const struct etwatch_sample *sum);
} table[] = {
    [EW_PROCESS_PID] = {{"PID", 7, 0, false}, NO_METRIC, 0, NULL, put_pid},
    [EW_PROCESS_NAME] = {{"NAME", 20, 32, true}, NO_METRIC, 0, NULL, put_name},
    [EW_PROCESS_OWNER] = {{"OWNER", 8, 16, true}, NO_METRIC, 0, NULL, put_owner},
    [EW_PROCESS_CPU_PERCENT] = {{"CPU%", 5, 0, false}, METRIC(cpu_ns), NULL, NULL},
    [EW_PROCESS_CPU] = {{"CPU", 8, 0, false}, METRIC(cpu_ns), ew_units_ns, NULL},
    [EW_PROCESS_USER] = {{"USER", 8, 0, false}, METRIC(cpu_user_ns), ew_units_ns, NULL},
    [EW_PROCESS_KERNEL] = {{"KERNEL", 8, 0, false}, METRIC(cpu_kernel_ns), ew_units_ns, NULL},
    [EW_PROCESS_WAIT] = {{"WAIT", 8, 0, false}, METRIC(runq_wait_ns), ew_units_ns, NULL},
    [EW_PROCESS_SWITCHES_VOLUNTARY] = {{"SW-VOL", 6, 0, false},
                                       METRIC(switches_voluntary),
                                       ew_units_count,
                                       NULL},
    [EW_PROCESS_SWITCHES_INVOLUNTARY] = {{"SW-INV", 6, 0, false},
                                         METRIC(switches_involuntary),
                                         ew_units_count,
                                         NULL},
    [EW_PROCESS_FAULTS_MINOR] = {{"FLT-MIN", 6, 0, false},
                                 METRIC(faults_minor),
                                 ew_units_count,
                                 NULL},
    [EW_PROCESS_FAULTS_MAJOR] = {{"FLT-MAJ", 6, 0, false},
                                 METRIC(faults_major),
                                 ew_units_count,
                                 NULL},
    [EW_PROCESS_RSS] = {{"RSS", 8, 0, false}, METRIC(rss_bytes), ew_units_bytes, NULL},
    [EW_PROCESS_RSS_PEAK] = {{"RSS-PEAK", 8, 0, false},
                             METRIC(rss_peak_bytes),
                             ew_units_bytes,
                             NULL},
    [EW_PROCESS_READ] = {{"READ", 8, 0, false}, METRIC(io_read_bytes), ew_units_bytes, NULL},
    [EW_PROCESS_WRITE] = {{"WRITE", 8, 0, false}, METRIC(io_write_bytes), ew_units_bytes, NULL},
    [EW_PROCESS_THREADS] = {{"THR", 4, 0, false}, METRIC(threads), ew_units_count, NULL},
    [EW_PROCESS_GPU] = {{"GPU", 8, 0, false}, METRIC(gpu_ns), ew_units_ns, NULL},
    [EW_PROCESS_NPU] = {{"NPU", 8, 0, false}, METRIC(npu_ns), ew_units_ns, NULL},
    [EW_PROCESS_ENERGY] = {{"ENERGY", 8, 0, false}, METRIC(energy_uj), ew_cli_put_joules, NULL},
};

struct ew_grid_column ew_cli_process_column(enum ew_cli_process_column id)
{
    return table[id].grid;
}

void ew_cli_process_column_put(struct ew_grid *grid, enum ew_cli_process_column id,
                               const struct etwatch_sample *sum, uint64_t wall_ns)
{
    ew_cli_process_column_put_at(grid, id, sum, wall_ns, 0);
}

void ew_cli_process_column_put_at(struct ew_grid *grid, enum ew_cli_process_column id,
                                  const struct etwatch_sample *sum, uint64_t wall_ns,
                                  uint32_t depth)
{
    struct ew_buf *out = ew_grid_cell(grid);
    uint32_t metric = table[id].metric;
    if (id == EW_PROCESS_NAME)
        ew_buf_repeat(out, ' ', 2 * (size_t)(depth < TREE_DEPTH_MAX ? depth : TREE_DEPTH_MAX));
    if (table[id].put_text != NULL) {
        table[id].put_text(out, sum);
    } else if (!etwatch_sample_has(sum, metric)) {
        ew_buf_char(out, '-');
    } else if (id == EW_PROCESS_CPU_PERCENT) {
        ew_units_percent(out, wall_ns == 0 ? -1 : 100.0 * (double)sum->cpu_ns / (double)wall_ns);
    } else {
        table[id].put_value(
            out, *(const uint64_t *)(const void *)((const char *)sum + table[id].offset));
    }
    ew_grid_end(grid);
}
