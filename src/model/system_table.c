/* SPDX-License-Identifier: MIT */
/*
 * The table of what is known of the whole machine, beside that of processes (metric_table.c). A new
 * one is a line in ETWATCH_SYSTEM_METRICS, a row here, and the line of src/sensor that reads it on
 * each system that tells it. Invariant: every one has a row, and every cell says how or why not.
 */
#include <etwatch/system.h>

#include "base/sized.h"
#include "model/metric.h"

#define ESTIMATED(how)                          \
    {                                           \
        ETWATCH_EXACTNESS_ESTIMATED, false, how \
    }
#define POLLED(how)                          \
    {                                        \
        ETWATCH_EXACTNESS_POLLED, false, how \
    }

#define P "etwatch_system_"
#define O "etwatch.system."

struct row {
    const char *unit, *help;
    const char *prometheus, *prometheus_labels;
    const char *otlp, *otlp_attribute, *otlp_unit;
    double scale;
    struct ew_metric_backend os[ETWATCH_SYSTEM_OS_COUNT];
};

#define LINUX [ETWATCH_SYSTEM_LINUX]
#define WINDOWS [ETWATCH_SYSTEM_WINDOWS]

#define LISTS                                                                                   \
    "what two lists of processes, a second apart, differ by; exact with -a and events: starts " \
    "and exits are counted"
#define LOAD                                                                                     \
    "Windows has none: the average of how many threads ran or were ready, as seen at each look " \
    "since watching began"

/* clang-format off */
static const struct row rows[ETWATCH_SYSTEM_METRIC_COUNT] = {
    [ETWATCH_S_cpu_percent] = {"percent",
        "time that CPUs were busy, of one core, all together; cpu_percents has it by CPU",
        P "cpu_ratio", "", O "cpu.utilization", "", "1", 0.01,
        {LINUX = POLLED("stat"), WINDOWS = POLLED("NtQuerySystemInformation, by groups of CPUs")}},
    [ETWATCH_S_load_1] = {"count",
        "threads that ran or waited for a CPU (on Linux also for a disk), averaged over a minute",
        P "load_average", "minutes=\"1\"", O "load_average", "minutes=1", "{thread}", 1,
        {LINUX = POLLED("loadavg"), WINDOWS = ESTIMATED(LOAD)}},
    [ETWATCH_S_load_5] = {"count",
        "the same over 5 minutes",
        P "load_average", "minutes=\"5\"", O "load_average", "minutes=5", "{thread}", 1,
        {LINUX = POLLED("loadavg"), WINDOWS = ESTIMATED(LOAD)}},
    [ETWATCH_S_load_15] = {"count",
        "the same over 15 minutes",
        P "load_average", "minutes=\"15\"", O "load_average", "minutes=15", "{thread}", 1,
        {LINUX = POLLED("loadavg"), WINDOWS = ESTIMATED(LOAD)}},
    [ETWATCH_S_memory_total_bytes] = {"bytes",
        "memory of the machine",
        P "memory_limit_bytes", "", "system.memory.limit", "", "By", 1,
        {LINUX = POLLED("meminfo"), WINDOWS = POLLED("GlobalMemoryStatusEx")}},
    [ETWATCH_S_memory_available_bytes] = {"bytes",
        "of it what programs can have without swapping",
        P "memory_available_bytes", "", O "memory.available", "", "By", 1,
        {LINUX = POLLED("meminfo"), WINDOWS = POLLED("GlobalMemoryStatusEx")}},
    [ETWATCH_S_swap_total_bytes] = {"bytes",
        "swap space, page files",
        P "swap_limit_bytes", "", O "paging.limit", "", "By", 1,
        {LINUX = POLLED("meminfo"), WINDOWS = POLLED("EnumPageFiles")}},
    [ETWATCH_S_swap_used_bytes] = {"bytes",
        "of it in use",
        P "swap_used_bytes", "", "system.paging.usage", "system.paging.state=used", "By", 1,
        {LINUX = POLLED("meminfo"), WINDOWS = POLLED("EnumPageFiles")}},
    [ETWATCH_S_paged_in_bytes] = {"bytes",
        "read by the memory manager, of files and swap",
        P "paging_bytes_total", "direction=\"in\"", O "paging.io", "system.paging.direction=in", "By", 1,
        {LINUX = POLLED("vmstat"), WINDOWS = POLLED("NtQuerySystemInformation")}},
    [ETWATCH_S_paged_out_bytes] = {"bytes",
        "written by the memory manager",
        P "paging_bytes_total", "direction=\"out\"", O "paging.io", "system.paging.direction=out", "By", 1,
        {LINUX = POLLED("vmstat"), WINDOWS = POLLED("NtQuerySystemInformation")}},
    [ETWATCH_S_disk_read_bytes] = {"bytes",
        "read from disks, without what is laid over them",
        P "disk_bytes_total", "mode=\"read\"", "system.disk.io", "disk.io.direction=read", "By", 1,
        {LINUX = POLLED("diskstats"), WINDOWS = POLLED("IOCTL_DISK_PERFORMANCE of physical drives")}},
    [ETWATCH_S_disk_write_bytes] = {"bytes",
        "written to disks",
        P "disk_bytes_total", "mode=\"write\"", "system.disk.io", "disk.io.direction=write", "By", 1,
        {LINUX = POLLED("diskstats"), WINDOWS = POLLED("IOCTL_DISK_PERFORMANCE of physical drives")}},
    [ETWATCH_S_net_received_bytes] = {"bytes",
        "received by all interfaces but loopback",
        P "network_bytes_total", "direction=\"receive\"", "system.network.io", "network.io.direction=receive", "By", 1,
        {LINUX = POLLED("net/dev"), WINDOWS = POLLED("GetIfTable2, of hardware interfaces")}},
    [ETWATCH_S_net_sent_bytes] = {"bytes",
        "sent by them",
        P "network_bytes_total", "direction=\"transmit\"", "system.network.io", "network.io.direction=transmit", "By", 1,
        {LINUX = POLLED("net/dev"), WINDOWS = POLLED("GetIfTable2, of hardware interfaces")}},
    [ETWATCH_S_processes] = {"count",
        "processes, with those of the kernel",
        P "processes", "", "system.process.count", "", "{process}", 1,
        {LINUX = POLLED("link count of /proc"), WINDOWS = POLLED("NtQuerySystemInformation")}},
    [ETWATCH_S_threads] = {"count",
        "threads, with those of the kernel",
        P "threads", "", O "thread.count", "", "{thread}", 1,
        {LINUX = POLLED("loadavg"), WINDOWS = POLLED("NtQuerySystemInformation")}},
    [ETWATCH_S_threads_running] = {"count",
        "of them on a CPU (on Linux also those that wait for one)",
        P "threads_running", "", O "thread.running", "", "{thread}", 1,
        {LINUX = POLLED("stat"), WINDOWS = POLLED("NtQuerySystemInformation, without the idle threads")}},
    [ETWATCH_S_threads_started] = {"count",
        "threads that began, with the first ones of processes",
        P "threads_started_total", "", O "thread.started", "", "{thread}", 1,
        {LINUX = POLLED("stat: the kernel counts forks"), WINDOWS = ESTIMATED("those of the list that are younger than the list before; who came and went in between is missing")}},
    [ETWATCH_S_threads_ended] = {"count",
        "threads that ended",
        P "threads_ended_total", "", O "thread.ended", "", "{thread}", 1,
        {LINUX = POLLED("who was there and who came, less who is there"), WINDOWS = ESTIMATED("who was there and who came, less who is there")}},
    [ETWATCH_S_switches] = {"count",
        "context switches",
        P "context_switches_total", "", O "context_switches", "", "{context_switch}", 1,
        {LINUX = POLLED("stat"), WINDOWS = POLLED("NtQuerySystemInformation")}},
    [ETWATCH_S_processes_started] = {"count",
        "processes that began",
        P "processes_started_total", "", "system.process.created", "", "{process}", 1,
        {LINUX = ESTIMATED(LISTS), WINDOWS = ESTIMATED(LISTS)}},
    [ETWATCH_S_processes_ended] = {"count",
        "processes that ended",
        P "processes_ended_total", "", O "process.ended", "", "{process}", 1,
        {LINUX = ESTIMATED(LISTS), WINDOWS = ESTIMATED(LISTS)}},
};
/* clang-format on */

#define TYPE(type) _Generic((type)0, uint64_t : "u64", double : "double")

static const struct {
    const char *name, *type, *kind;
} names[ETWATCH_SYSTEM_METRIC_COUNT] = {
#define ETWATCH_X(name, type, kind) {#name, TYPE(type), #kind},
    ETWATCH_SYSTEM_METRICS(ETWATCH_X)
#undef ETWATCH_X
};

const char *etwatch_system_os_name(uint32_t os)
{
    static const char *const words[ETWATCH_SYSTEM_OS_COUNT] = {"linux", "windows"};
    return os < ETWATCH_SYSTEM_OS_COUNT ? words[os] : NULL;
}

int etwatch_system_info(uint32_t metric, struct etwatch_metric_info *ret_info)
{
    if (metric >= ETWATCH_SYSTEM_METRIC_COUNT || ret_info == NULL)
        return ETWATCH_EINVAL;
    const struct row *row = &rows[metric];
    struct etwatch_metric_info info = {
        .metric = metric,
        .name = names[metric].name,
        .type = names[metric].type,
        .kind = names[metric].kind,
        .unit = row->unit,
        .group = "system",
        .help = row->help,
        .prometheus = row->prometheus,
        .prometheus_labels = row->prometheus_labels,
        .scale = row->scale,
        .otlp = row->otlp,
        .otlp_attribute = row->otlp_attribute,
        .otlp_unit = row->otlp_unit,
        .default_hz = 1,
        .otlp_linux = row->otlp,
        .otlp_linux_unit = row->otlp_unit,
    };
    return ew_sized_out(ret_info, &info, sizeof info);
}

int etwatch_system_backend(uint32_t metric, uint32_t os, struct etwatch_metric_backend *ret_backend)
{
    if (metric >= ETWATCH_SYSTEM_METRIC_COUNT || os >= ETWATCH_SYSTEM_OS_COUNT ||
        ret_backend == NULL)
        return ETWATCH_EINVAL;
    const struct ew_metric_backend *cell = &rows[metric].os[os];
    struct etwatch_metric_backend out = {.exactness = cell->exactness, .how = cell->how};
    return ew_sized_out(ret_backend, &out, sizeof out);
}
