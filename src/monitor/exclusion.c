/* SPDX-License-Identifier: MIT */
/* What of a configuration the gate goes by, and what it may do to the other stages. */
#include "monitor/monitor.h"

static void on_forget(void *ctx, uint32_t pid)
{
    struct etwatch_monitor *monitor = ctx;
    (void)ew_sampler_forget(monitor->sampler, pid);
    if (monitor->alerts.sampler != NULL)
        (void)ew_sampler_forget(monitor->alerts.sampler, pid);
}

static void on_shut(void *ctx, uint32_t pid, uint64_t start_ns, bool shut)
{
    struct etwatch_monitor *monitor = ctx;
    if (monitor->source->ops->exclude != NULL)
        monitor->source->ops->exclude(monitor->source, pid, start_ns, shut);
}

struct ew_gate_rules ew_monitor_gate_rules(const struct etwatch_monitor *monitor)
{
    const struct etwatch_config *config = &monitor->config;
    bool numbers = ew_os_has_uids();
    return (struct ew_gate_rules){
        .only_uids = numbers ? NULL : config->uids,
        .only_uid_count = numbers ? 0 : config->uid_count,
        .pids = config->exclude_pids,
        .names = config->exclude_names,
        .uids = config->exclude_uids,
        .cgroups = config->exclude_cgroups,
        .pid_count = config->exclude_pid_count,
        .name_count = config->exclude_name_count,
        .uid_count = config->exclude_uid_count,
        .cgroup_count = config->exclude_cgroup_count,
        .system = (config->flags & ETWATCH_NO_SYSTEM) != 0,
        .windows = monitor->source != NULL &&
                   (ew_monitor_replays(monitor) || ew_source_native()->id == ETWATCH_SOURCE_ETW),
    };
}

void ew_monitor_open_gate(struct etwatch_monitor *monitor)
{
    struct ew_gate_rules rules = ew_monitor_gate_rules(monitor);
    if (!ew_gate_wanted(&rules))
        return;
    monitor->gate.rules = rules;
    monitor->gate.describe = ew_monitor_replays(monitor) ? NULL : &monitor->describe;
    monitor->gate.ctx = monitor;
    monitor->gate.forget = on_forget;
    monitor->gate.shut = on_shut;
    ew_gate_open(&monitor->gate, &monitor->facts);
}
