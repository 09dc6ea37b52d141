/* SPDX-License-Identifier: MIT */
/*
 * The optional counters in user space: which are available, the hardware counters of each CPU, and
 * the conversion of the sums. Owns the descriptors of the hardware counters. They are opened before
 * the programs are loaded, so that a missing counter and its reason are known by then.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "source/ebpf/ebpf.h"

const struct etwatch_metric_set ew_ebpf_net_metrics =
    EW_METRIC_SET(ETWATCH_M_net_received_bytes, ETWATCH_M_net_sent_bytes);
const struct etwatch_metric_set ew_ebpf_pmu_metrics =
    EW_METRIC_SET(ETWATCH_M_cycles, ETWATCH_M_instructions, ETWATCH_M_cache_misses);

static const struct {
    uint32_t metric;
    uint32_t bit; /* enum ew_k_pmu */
    uint64_t event;
    const char *map;
} counters[] = {
    {ETWATCH_M_cycles, EW_K_PMU_CYCLES, PERF_COUNT_HW_CPU_CYCLES, "pmu_cycles"},
    {ETWATCH_M_instructions, EW_K_PMU_INSTRUCTIONS, PERF_COUNT_HW_INSTRUCTIONS, "pmu_instructions"},
    {ETWATCH_M_cache_misses, EW_K_PMU_CACHE_MISSES, PERF_COUNT_HW_CACHE_MISSES, "pmu_cache_misses"},
};
enum { COUNTER_COUNT = sizeof counters / sizeof counters[0] };

static int open_counter(uint64_t event, uint32_t cpu, bool software)
{
    struct perf_event_attr attr = {
        .type = software ? PERF_TYPE_SOFTWARE : PERF_TYPE_HARDWARE,
        .size = sizeof attr,
        .config = software ? PERF_COUNT_SW_CPU_CLOCK : event,
    };
    return (int)syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static void explain(struct ew_ebpf_optional *optional, int os_code)
{
    bool missing = os_code == ENOENT || os_code == EOPNOTSUPP || os_code == ENODEV;
    (void)snprintf(
        optional->no_pmu_reason, sizeof optional->no_pmu_reason, "%s (perf_event_open: %s)",
        missing ? "this machine has no such hardware counter (most virtual machines do not)"
                : "hardware counters cannot be opened",
        strerror(os_code));
}

/* On every CPU that is present; 0, or the error of the first that failed. */
static int open_everywhere(struct ew_ebpf_optional *optional, uint32_t which, bool software)
{
    uint32_t opened = 0;
    for (uint32_t cpu = 0; cpu < optional->cpu_count; cpu++) {
        int fd = open_counter(counters[which].event, cpu, software);
        int os_code = errno;
        if (fd < 0 && os_code == ENODEV && cpu > 0)
            continue; /* possible, but not present */
        if (fd < 0)
            return os_code;
        optional->fds[which * optional->cpu_count + cpu] = fd;
        opened++;
    }
    return opened > 0 ? 0 : ENODEV;
}

int ew_ebpf_optional_open(struct ew_ebpf_optional *optional, const struct ew_source_config *config,
                          uint32_t cpu_count)
{
    memset(optional, 0, sizeof *optional);
    optional->cpu_count = cpu_count;
    optional->want_net = ew_metric_set_intersects(&config->metrics, &ew_ebpf_net_metrics);
    if (!ew_metric_set_intersects(&config->metrics, &ew_ebpf_pmu_metrics))
        return 0;
    optional->fds = ew_calloc((size_t)COUNTER_COUNT * cpu_count, sizeof *optional->fds);
    if (optional->fds == NULL)
        return ETWATCH_ENOMEM;
    for (uint32_t i = 0; i < COUNTER_COUNT * cpu_count; i++)
        optional->fds[i] = -1;
    for (uint32_t i = 0; i < COUNTER_COUNT; i++) {
        if (!etwatch_metric_set_has(&config->metrics, counters[i].metric))
            continue;
        int os_code = open_everywhere(optional, i, config->software_counters);
        if (os_code == 0)
            optional->pmu |= counters[i].bit;
        else
            explain(optional, os_code);
    }
    return 0;
}

void ew_ebpf_optional_close(struct ew_ebpf_optional *optional)
{
    for (uint32_t i = 0; optional->fds != NULL && i < COUNTER_COUNT * optional->cpu_count; i++)
        if (optional->fds[i] >= 0)
            (void)close(optional->fds[i]);
    ew_free(optional->fds);
    memset(optional, 0, sizeof *optional);
}

const char *ew_ebpf_optional_map(uint32_t i)
{
    return i < COUNTER_COUNT ? counters[i].map : NULL;
}

int ew_ebpf_optional_fill(const struct ew_ebpf_optional *optional, uint32_t which, int map_fd)
{
    if ((optional->pmu & counters[which].bit) == 0)
        return 0;
    for (uint32_t cpu = 0; cpu < optional->cpu_count; cpu++) {
        int fd = optional->fds[which * optional->cpu_count + cpu];
        if (fd >= 0 && bpf_map_update_elem(map_fd, &cpu, &fd, BPF_ANY) != 0)
            return -errno;
    }
    return 0;
}

struct etwatch_metric_set ew_ebpf_optional_available(const struct ew_ebpf_optional *optional)
{
    struct etwatch_metric_set available = {{0}};
    if (optional->net)
        available = ew_ebpf_net_metrics;
    for (uint32_t i = 0; i < COUNTER_COUNT; i++)
        if ((optional->pmu & counters[i].bit) != 0)
            etwatch_metric_set_add(&available, counters[i].metric);
    return available;
}

const char *ew_ebpf_optional_unavailable_reason(const struct ew_ebpf_optional *optional,
                                                uint32_t metric)
{
    struct etwatch_metric_set available = ew_ebpf_optional_available(optional);
    if (etwatch_metric_set_has(&ew_ebpf_net_metrics, metric) && optional->want_net &&
        !optional->net)
        return "the kernel does not let programs follow its socket calls "
               "(CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS)";
    if (etwatch_metric_set_has(&ew_ebpf_pmu_metrics, metric) && optional->fds != NULL &&
        !etwatch_metric_set_has(&available, metric))
        return optional->no_pmu_reason;
    return NULL;
}

uint32_t ew_ebpf_optional_counters(const struct ew_ebpf_optional *optional,
                                   const struct ew_k_optional *sums, uint64_t *counter)
{
    uint32_t has = 0;
    if (optional->net) {
        counter[EW_C_net_received_bytes] = sums->net_received_bytes;
        counter[EW_C_net_sent_bytes] = sums->net_sent_bytes;
        has |= EW_HAS_C(net_received_bytes) | EW_HAS_C(net_sent_bytes);
    }
    if ((optional->pmu & EW_K_PMU_CYCLES) != 0) {
        counter[EW_C_cycles] = sums->cycles;
        has |= EW_HAS_C(cycles);
    }
    if ((optional->pmu & EW_K_PMU_INSTRUCTIONS) != 0) {
        counter[EW_C_instructions] = sums->instructions;
        has |= EW_HAS_C(instructions);
    }
    if ((optional->pmu & EW_K_PMU_CACHE_MISSES) != 0) {
        counter[EW_C_cache_misses] = sums->cache_misses;
        has |= EW_HAS_C(cache_misses);
    }
    return has;
}
