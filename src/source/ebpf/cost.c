/* SPDX-License-Identifier: MIT */
/*
 * Measures what the programs cost in the kernel.
 *
 * The kernel can time every program run, but that costs two clock reads per run, more than the run
 * itself. So it is enabled for 25 ms every 20 s; the time per switch measured then is
 * multiplied by the number of switches. A separate wake-up ends the measurement: if it lasted until
 * the next samples are due, threads that do nothing but switch would run several per cent slower.
 * Enabling it needs CAP_SYS_ADMIN; without it the cost is unknown.
 *
 * The kernel also counts how often it skipped a program. That is reported as a loss.
 */
#include <bpf/bpf.h>
#include <string.h>
#include <unistd.h>

#include "source/ebpf/ebpf.h"

static const uint64_t measure_ns = 25 * 1000 * 1000ULL;
static const uint64_t patience_ns =
    400 * 1000 * 1000ULL; /* how long a measurement without a switch is extended */
static const uint64_t pause_ns = 20 * 1000 * 1000 * 1000ULL;

static bool read_info(int fd, struct bpf_prog_info *ret_info)
{
    uint32_t size = sizeof *ret_info;
    memset(ret_info, 0, sizeof *ret_info);
    return bpf_obj_get_info_by_fd(fd, ret_info, &size) == 0;
}

static void read_kernel_counts(struct ew_ebpf_source *source, uint64_t *ret_runs,
                               uint64_t *ret_run_ns)
{
    uint64_t runs = 0, run_ns = 0;
    for (uint32_t i = 0; i < source->object.timed_count; i++) {
        struct bpf_prog_info info;
        if (read_info(source->object.timed_fds[i], &info)) {
            runs += info.run_cnt;
            run_ns += info.run_time_ns;
        }
    }
    *ret_runs = runs;
    *ret_run_ns = run_ns;
}

static uint64_t count_switches(const struct ew_ebpf_source *source)
{
    uint64_t switches = 0;
    for (uint32_t cpu = 0; cpu < source->object.cpu_count; cpu++)
        switches += source->object.running[cpu].switches;
    return switches;
}

static void begin(struct ew_ebpf_source *source, uint64_t now_ns)
{
    source->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
    read_kernel_counts(source, &source->runs_before, &source->run_ns_before);
    source->switches_before = source->switches;
    source->stats_next_ns = now_ns + measure_ns;
}

static void end(struct ew_ebpf_source *source, uint64_t now_ns)
{
    uint64_t runs = 0, run_ns = 0;
    read_kernel_counts(source, &runs, &run_ns);
    uint64_t switches = source->switches - source->switches_before;
    if (switches == 0) {
        source->stats_next_ns = now_ns + patience_ns;
        return;
    }
    source->ns_per_switch = (double)(run_ns - source->run_ns_before) / (double)switches;
    source->cost_known = true;
    (void)close(source->stats_fd);
    source->stats_fd = -1;
    source->stats_next_ns = now_ns + pause_ns;
}

void ew_ebpf_cost_open(struct ew_ebpf_source *source)
{
    source->stats_fd = -1;
}

void ew_ebpf_cost_close(struct ew_ebpf_source *source)
{
    if (source->stats_fd >= 0)
        (void)close(source->stats_fd);
    source->stats_fd = -1;
}

uint64_t ew_ebpf_cost_due_ns(const struct ew_ebpf_source *source)
{
    return source->stats_fd >= 0 ? source->stats_next_ns : UINT64_MAX;
}

void ew_ebpf_cost_missed(struct ew_ebpf_source *source, uint64_t now_ns)
{
    struct bpf_prog_info info;
    if (now_ns < source->missed_read_ns + 1000 * 1000 * 1000ULL)
        return;
    source->missed_read_ns = now_ns;
    if (read_info(source->object.switch_fd, &info))
        source->missed_runs = info.recursion_misses;
}

void ew_ebpf_cost_update(struct ew_ebpf_source *source, uint64_t now_ns)
{
    source->switches = count_switches(source);
    if (source->stats_fd >= 0 && now_ns >= source->stats_next_ns)
        end(source, now_ns);
    else if (source->stats_fd < 0 && now_ns >= source->stats_next_ns)
        begin(source, now_ns);
    if (source->cost_known) {
        source->kernel_ns +=
            source->ns_per_switch * (double)(source->switches - source->switches_accounted);
        source->switches_accounted = source->switches;
    }
}
