/* SPDX-License-Identifier: MIT */
/*
 * Exact GPU times in the stream. They arrive some 100 ms after the work, because CUPTI returns
 * buffers. So samples that are cut by event time are delivered later by lag_ns; polling cannot
 * wait, and gets the times of lag_ns before. A process with exact times gets none from a driver's
 * estimate, and the energy of a GPU is shared by them.
 */
#include <string.h>

#include "base/alloc.h"
#include "gpu/trace.h"
#include "monitor/monitor.h"

enum { WAITING_MAX = 8192 };
static const uint64_t lag_ns = 400000000;

static bool polls(const struct etwatch_monitor *monitor)
{
    return monitor->source->ops->id == ETWATCH_SOURCE_POLL;
}

uint64_t ew_monitor_gpu_horizon(const struct etwatch_monitor *monitor, uint64_t horizon_ns)
{
    if (monitor->config.gpu_trace == NULL || polls(monitor) || horizon_ns < lag_ns)
        return horizon_ns;
    return horizon_ns - lag_ns;
}

static void put(struct etwatch_monitor *monitor, const struct ew_gpu_busy *busy)
{
    const struct ew_device_use use = {
        .from_ns = busy->from_ns,
        .t_ns = busy->to_ns,
        .device = busy->device,
        .process = {.pid = busy->pid,
                    .has = ETWATCH_DEVICE_PROCESS_GPU_TIME,
                    .gpu_ns = busy->gpu_ns},
    };
    (void)ew_sampler_device(monitor->sampler, &use);
}

/* Polling: kept until its time is up. What finds no room comes at once. */
static void on_busy(void *ctx, const struct ew_gpu_busy *busy)
{
    struct etwatch_monitor *monitor = ctx;
    if (polls(monitor) && monitor->gpu_waiting == NULL)
        monitor->gpu_waiting = ew_calloc(WAITING_MAX, sizeof *monitor->gpu_waiting);
    if (!polls(monitor) || monitor->gpu_waiting == NULL ||
        monitor->gpu_waiting_count == WAITING_MAX) {
        put(monitor, busy);
        return;
    }
    struct ew_gpu_busy *waiting = &monitor->gpu_waiting[monitor->gpu_waiting_count++];
    *waiting = *busy;
    waiting->from_ns += lag_ns;
    waiting->to_ns += lag_ns;
}

static bool has_ended(void *ctx, uint32_t pid)
{
    const struct etwatch_monitor *monitor = ctx;
    return ew_os_process_ended(monitor->config.proc_root, pid);
}

/* What is due; of a process that has exited everything, as long as it can be delivered. */
static void put_waiting(struct etwatch_monitor *monitor, uint64_t now_ns)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < monitor->gpu_waiting_count; i++) {
        struct ew_gpu_busy busy = monitor->gpu_waiting[i];
        if (busy.to_ns > now_ns && !has_ended(monitor, busy.pid)) {
            monitor->gpu_waiting[kept++] = busy;
            continue;
        }
        if (busy.to_ns > now_ns) { /* no sample follows: its real time, and the rest in the total */
            busy.from_ns -= lag_ns;
            busy.to_ns -= lag_ns;
        } else if (busy.from_ns < monitor->delivered_ns) {
            busy.from_ns = monitor->delivered_ns; /* the open interval gets all of it */
            busy.to_ns = now_ns;
        }
        put(monitor, &busy);
    }
    monitor->gpu_waiting_count = kept;
}

void ew_monitor_drain_gpu_trace(struct etwatch_monitor *monitor, uint64_t now_ns)
{
    const struct ew_gpu_reading reading = {
        .unix_minus_raw_ns = monitor->unix_minus_raw_ns,
        .now_ns = now_ns,
        .ctx = monitor,
        .on_busy = on_busy,
        .has_ended = has_ended,
    };
    if (monitor->config.gpu_trace == NULL || ew_monitor_replays(monitor))
        return;
    struct ew_alloc_limit *memory = ew_alloc_limit_use(NULL);
    (void)ew_gpu_trace_read(monitor->config.gpu_trace, &reading);
    (void)ew_alloc_limit_use(memory);
    put_waiting(monitor, now_ns);
}

void ew_monitor_close_gpu_trace(struct etwatch_monitor *monitor)
{
    ew_free(monitor->gpu_waiting);
    monitor->gpu_waiting = NULL;
    monitor->gpu_waiting_count = 0;
}

/* The share of each process in the energy of a GPU above idle: by exact time where there is one. */
static void share_energy(const struct ew_sensor_batch *batch, uint32_t device)
{
    const struct ew_device_reading *reading = &batch->devices[device];
    double all = 0, done = 0;
    uint64_t above_uj = reading->energy_uj - reading->idle_energy_uj, done_uj = 0;
    for (uint32_t i = 0; i < batch->use_count; i++)
        if (batch->uses[i].device == device)
            all += (double)batch->uses[i].process.gpu_ns;
    for (uint32_t i = 0; i < batch->use_count && all > 0; i++) {
        struct etwatch_device_process *process = &batch->uses[i].process;
        if (batch->uses[i].device != device)
            continue;
        done += (double)process->gpu_ns;
        uint64_t up_to_uj = (uint64_t)((double)above_uj * (done / all));
        up_to_uj = up_to_uj < above_uj ? up_to_uj : above_uj;
        process->has |= ETWATCH_DEVICE_PROCESS_ENERGY;
        process->energy_uj = up_to_uj - done_uj;
        done_uj = up_to_uj;
    }
}

/* A trace has the time of a process on all its GPUs; a GPU that is not the only one gets the part
 * that the driver's estimates give it. False: there are none, and the parts are unknown. */
static bool split_exact(const struct ew_sensor_batch *batch, uint32_t first, uint64_t gpu_ns)
{
    const uint32_t pid = batch->uses[first].process.pid;
    uint32_t count = 0;
    double all = 0, done = 0;
    uint64_t done_ns = 0;
    for (uint32_t i = first; i < batch->use_count; i++) {
        count += batch->uses[i].process.pid == pid;
        all += batch->uses[i].process.pid == pid ? (double)batch->uses[i].process.gpu_ns : 0;
    }
    if (count > 1 && !(all > 0) && gpu_ns > 0)
        return false;
    for (uint32_t i = first; i < batch->use_count; i++) {
        struct etwatch_device_process *process = &batch->uses[i].process;
        if (process->pid != pid)
            continue;
        done += (double)process->gpu_ns;
        uint64_t up_to_ns =
            count > 1 ? (uint64_t)((double)gpu_ns * (done / (all > 0 ? all : 1))) : gpu_ns;
        up_to_ns = up_to_ns < gpu_ns ? up_to_ns : gpu_ns;
        process->gpu_ns = up_to_ns - done_ns; /* as a weight */
        process->has |= ETWATCH_DEVICE_PROCESS_GPU_TIME;
        done_ns = up_to_ns;
    }
    return true;
}

static bool is_first(const struct ew_sensor_batch *batch, uint32_t use)
{
    uint32_t i = 0;
    while (i < use && batch->uses[i].process.pid != batch->uses[use].process.pid)
        i++;
    return i == use;
}

/* Takes the exact times into the uses. traced: devices that have one. */
static void take_exact(const struct etwatch_monitor *monitor, const struct ew_sensor_batch *batch,
                       bool *traced)
{
    for (uint32_t i = 0; i < batch->use_count; i++) {
        const uint32_t pid = batch->uses[i].process.pid;
        uint64_t gpu_ns = 0;
        if (!ew_gpu_trace_has(monitor->config.gpu_trace, pid) || !is_first(batch, i) ||
            !ew_gpu_trace_take(monitor->config.gpu_trace, pid, &gpu_ns))
            continue;
        bool known = split_exact(batch, i, gpu_ns);
        for (uint32_t j = i; j < batch->use_count; j++) {
            struct ew_device_use *use = &batch->uses[j];
            if (use->process.pid != pid || use->device >= EW_SENSOR_DEVICES_MAX)
                continue;
            traced[use->device] = true;
            if (!known)
                use->process.has &= ~(uint32_t)ETWATCH_DEVICE_PROCESS_GPU_TIME;
        }
    }
}

void ew_monitor_correct_uses(struct etwatch_monitor *monitor, const struct ew_sensor_batch *batch)
{
    bool traced[EW_SENSOR_DEVICES_MAX] = {false}, unknown[EW_SENSOR_DEVICES_MAX] = {false};
    if (monitor->config.gpu_trace == NULL || strcmp(batch->sensor, "nvml") != 0)
        return;
    take_exact(monitor, batch, traced);
    for (uint32_t i = 0; i < batch->use_count; i++)
        if (batch->uses[i].device < EW_SENSOR_DEVICES_MAX &&
            (batch->uses[i].process.has & ETWATCH_DEVICE_PROCESS_GPU_TIME) == 0)
            unknown[batch->uses[i].device] = true;
    for (uint32_t i = 0; i < batch->device_count && i < EW_SENSOR_DEVICES_MAX; i++) {
        struct ew_device_reading *reading = &batch->devices[i];
        /* All processes of a GPU may be traced where the driver does not know what they use. */
        bool known = traced[i] && !unknown[i];
        if (traced[i])
            reading->by_uses =
                known && etwatch_metric_set_has(&reading->has, ETWATCH_D_idle_energy_uj);
        if (traced[i] && reading->by_uses)
            share_energy(batch, i);
    }
    for (uint32_t i = 0; i < batch->use_count; i++) {
        struct etwatch_device_process *process = &batch->uses[i].process;
        bool of_unknown = batch->uses[i].device < EW_SENSOR_DEVICES_MAX &&
                          traced[batch->uses[i].device] && unknown[batch->uses[i].device];
        if (of_unknown) {
            process->has &= ~(uint32_t)ETWATCH_DEVICE_PROCESS_ENERGY;
            process->energy_uj = 0;
        }
        if (!ew_gpu_trace_has(monitor->config.gpu_trace, process->pid))
            continue;
        process->has &= ~(uint32_t)ETWATCH_DEVICE_PROCESS_GPU_TIME;
        process->gpu_ns = 0;
    }
}
