/* SPDX-License-Identifier: MIT */
/*
 * The table of system metrics, the counterpart of metric_table.c for the whole machine. A new
 * metric is a line in ETWATCH_SYSTEM_METRICS, a row here, and the line of src/sensor that reads it
 * on each operating system that provides it. Invariant: every metric has a row, and every cell says
 * how the value is obtained.
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

#define LISTS                                                                                \
    "difference between two process lists taken a second apart; exact with -a and an event " \
    "source, which counts starts and exits"
#define LOAD                                                                                      \
    "Windows has no load average: computed from the number of running and ready threads at each " \
    "poll since the start of monitoring"

/* clang-format off */
static const struct row rows[ETWATCH_SYSTEM_METRIC_COUNT] = {
    [ETWATCH_S_cpu_percent] = {"percent",
        "busy time of all CPUs, in percent of one core; cpu_percents has the values per CPU",
        P "cpu_ratio", "", O "cpu.utilization", "", "1", 0.01,
        {LINUX = POLLED("/proc/stat"), WINDOWS = POLLED("NtQuerySystemInformation, per processor group")}},
    [ETWATCH_S_load_1] = {"count",
        "average number of threads that ran or waited for a CPU (on Linux also for a disk) over 1 minute",
        P "load_average", "minutes=\"1\"", O "load_average", "minutes=1", "{thread}", 1,
        {LINUX = POLLED("/proc/loadavg"), WINDOWS = ESTIMATED(LOAD)}},
    [ETWATCH_S_load_5] = {"count",
        "same as load_1, over 5 minutes",
        P "load_average", "minutes=\"5\"", O "load_average", "minutes=5", "{thread}", 1,
        {LINUX = POLLED("/proc/loadavg"), WINDOWS = ESTIMATED(LOAD)}},
    [ETWATCH_S_load_15] = {"count",
        "same as load_1, over 15 minutes",
        P "load_average", "minutes=\"15\"", O "load_average", "minutes=15", "{thread}", 1,
        {LINUX = POLLED("/proc/loadavg"), WINDOWS = ESTIMATED(LOAD)}},
    [ETWATCH_S_memory_total_bytes] = {"bytes",
        "physical memory",
        P "memory_limit_bytes", "", "system.memory.limit", "", "By", 1,
        {LINUX = POLLED("/proc/meminfo"), WINDOWS = POLLED("GlobalMemoryStatusEx")}},
    [ETWATCH_S_memory_available_bytes] = {"bytes",
        "memory available to programs without swapping",
        P "memory_available_bytes", "", O "memory.available", "", "By", 1,
        {LINUX = POLLED("/proc/meminfo"), WINDOWS = POLLED("GlobalMemoryStatusEx")}},
    [ETWATCH_S_swap_total_bytes] = {"bytes",
        "size of swap space or page files",
        P "swap_limit_bytes", "", O "paging.limit", "", "By", 1,
        {LINUX = POLLED("/proc/meminfo"), WINDOWS = POLLED("EnumPageFiles")}},
    [ETWATCH_S_swap_used_bytes] = {"bytes",
        "swap space or page files in use",
        P "swap_used_bytes", "", "system.paging.usage", "system.paging.state=used", "By", 1,
        {LINUX = POLLED("/proc/meminfo"), WINDOWS = POLLED("EnumPageFiles")}},
    [ETWATCH_S_paged_in_bytes] = {"bytes",
        "bytes the memory manager read from files and swap",
        P "paging_bytes_total", "direction=\"in\"", O "paging.io", "system.paging.direction=in", "By", 1,
        {LINUX = POLLED("/proc/vmstat"), WINDOWS = POLLED("NtQuerySystemInformation")}},
    [ETWATCH_S_paged_out_bytes] = {"bytes",
        "bytes the memory manager wrote",
        P "paging_bytes_total", "direction=\"out\"", O "paging.io", "system.paging.direction=out", "By", 1,
        {LINUX = POLLED("/proc/vmstat"), WINDOWS = POLLED("NtQuerySystemInformation")}},
    [ETWATCH_S_disk_read_bytes] = {"bytes",
        "bytes read from physical disks (stacked devices are not counted again)",
        P "disk_bytes_total", "mode=\"read\"", "system.disk.io", "disk.io.direction=read", "By", 1,
        {LINUX = POLLED("/proc/diskstats"), WINDOWS = POLLED("IOCTL_DISK_PERFORMANCE of physical drives")}},
    [ETWATCH_S_disk_write_bytes] = {"bytes",
        "bytes written to physical disks",
        P "disk_bytes_total", "mode=\"write\"", "system.disk.io", "disk.io.direction=write", "By", 1,
        {LINUX = POLLED("/proc/diskstats"), WINDOWS = POLLED("IOCTL_DISK_PERFORMANCE of physical drives")}},
    [ETWATCH_S_net_received_bytes] = {"bytes",
        "bytes received on all interfaces except loopback",
        P "network_bytes_total", "direction=\"receive\"", "system.network.io", "network.io.direction=receive", "By", 1,
        {LINUX = POLLED("/proc/net/dev"), WINDOWS = POLLED("GetIfTable2, hardware interfaces only")}},
    [ETWATCH_S_net_sent_bytes] = {"bytes",
        "bytes sent on all interfaces except loopback",
        P "network_bytes_total", "direction=\"transmit\"", "system.network.io", "network.io.direction=transmit", "By", 1,
        {LINUX = POLLED("/proc/net/dev"), WINDOWS = POLLED("GetIfTable2, hardware interfaces only")}},
    [ETWATCH_S_processes] = {"count",
        "number of processes, kernel processes included",
        P "processes", "", "system.process.count", "", "{process}", 1,
        {LINUX = POLLED("link count of /proc"), WINDOWS = POLLED("NtQuerySystemInformation")}},
    [ETWATCH_S_threads] = {"count",
        "number of threads, kernel threads included",
        P "threads", "", O "thread.count", "", "{thread}", 1,
        {LINUX = POLLED("/proc/loadavg"), WINDOWS = POLLED("NtQuerySystemInformation")}},
    [ETWATCH_S_threads_running] = {"count",
        "threads on a CPU (on Linux also those waiting for one)",
        P "threads_running", "", O "thread.running", "", "{thread}", 1,
        {LINUX = POLLED("/proc/stat"), WINDOWS = POLLED("NtQuerySystemInformation, without idle threads")}},
    [ETWATCH_S_threads_started] = {"count",
        "threads started, first threads of processes included",
        P "threads_started_total", "", O "thread.started", "", "{thread}", 1,
        {LINUX = POLLED("/proc/stat: number of forks"), WINDOWS = ESTIMATED("threads created since the previous process list; threads that started and ended in between are missing")}},
    [ETWATCH_S_threads_ended] = {"count",
        "threads ended",
        P "threads_ended_total", "", O "thread.ended", "", "{thread}", 1,
        {LINUX = POLLED("previous number of threads plus started ones minus current number"), WINDOWS = ESTIMATED("previous number of threads plus started ones minus current number")}},
    [ETWATCH_S_switches] = {"count",
        "context switches",
        P "context_switches_total", "", O "context_switches", "", "{context_switch}", 1,
        {LINUX = POLLED("/proc/stat"), WINDOWS = POLLED("NtQuerySystemInformation")}},
    [ETWATCH_S_processes_started] = {"count",
        "processes started",
        P "processes_started_total", "", "system.process.created", "", "{process}", 1,
        {LINUX = ESTIMATED(LISTS), WINDOWS = ESTIMATED(LISTS)}},
    [ETWATCH_S_processes_ended] = {"count",
        "processes ended",
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
