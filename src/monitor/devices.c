/* SPDX-License-Identifier: MIT */
/*
 * Sensors of a monitor: which are started, and how their readings join the stream. The metrics to
 * measure decide: gpu_* starts the GPU sensors, npu_* those of NPUs, energy_uj the energy meters.
 * Readings are taken in every step after the facts of the source, so that the CPU time by which
 * energy is attributed is known, and before the samples are cut.
 */
#include <string.h>

#include "base/alloc.h"
#include "monitor/monitor.h"

static const struct etwatch_metric_set kind_metrics[] = {
    [ETWATCH_DEVICE_GPU] =
        EW_METRIC_SET(ETWATCH_M_gpu_ns, ETWATCH_M_gpu_percent, ETWATCH_M_gpu_memory_bytes,
                      ETWATCH_M_gpu_encoder_ns, ETWATCH_M_gpu_decoder_ns),
    [ETWATCH_DEVICE_NPU] = EW_METRIC_SET(ETWATCH_M_npu_ns, ETWATCH_M_npu_percent),
    [ETWATCH_DEVICE_ENERGY] = EW_METRIC_SET(ETWATCH_M_energy_uj),
};

static bool wants(const struct etwatch_monitor *monitor, uint32_t kind)
{
    return ew_metric_set_intersects(&monitor->metrics, &kind_metrics[kind]);
}

int ew_monitor_open_devices(struct etwatch_monitor *monitor)
{
    const struct etwatch_config *config = &monitor->config;
    struct ew_sensors_config wanted = {
        .sensor = {.proc_root = config->proc_root,
                   .sys_root = config->sys_root,
                   .nvml_library = config->nvml_library,
                   .amdsmi_library = config->amdsmi_library,
                   .gpu = wants(monitor, ETWATCH_DEVICE_GPU),
                   .npu = wants(monitor, ETWATCH_DEVICE_NPU),
                   .energy = wants(monitor, ETWATCH_DEVICE_ENERGY)},
        .epoch_ns = monitor->epoch_ns,
        .ops = monitor->sensor_ops,
    };
    for (uint32_t kind = ETWATCH_DEVICE_GPU; kind <= ETWATCH_DEVICE_ENERGY; kind++) {
        wanted.kinds |= wants(monitor, kind) ? 1u << kind : 0;
        wanted.period_ns[kind] = ew_metrics_period_ns(&monitor->metrics, config->rates,
                                                      config->rate_count, &kind_metrics[kind]);
    }
    if (wanted.kinds == 0 || ew_monitor_replays(monitor))
        return 0;
    return ew_sensors_open(&wanted, &monitor->sensors);
}

void ew_monitor_adopt_devices(struct etwatch_monitor *monitor)
{
    struct etwatch_metric_set metrics, estimated, counted = monitor->source_available;
    /* A source that counts GPU time from events is the only one: see on_batch. */
    etwatch_metric_set_intersect(&counted, &ew_metrics_of_devices);
    struct etwatch_metric_set counted_estimated = monitor->source_estimated;
    etwatch_metric_set_intersect(&counted_estimated, &counted);
    monitor->source_counts_gpu = etwatch_metric_set_has(&counted, ETWATCH_M_gpu_ns);
    /* Whether a value of a device is an estimate depends on its sensor, not on the source. */
    etwatch_metric_set_subtract(&monitor->source_available, &ew_metrics_of_devices);
    etwatch_metric_set_subtract(&monitor->source_estimated, &ew_metrics_of_devices);
    memset(&metrics, 0, sizeof metrics);
    memset(&estimated, 0, sizeof estimated);
    if (monitor->sensors != NULL)
        ew_sensors_metrics(monitor->sensors, &metrics, &estimated);
    if (monitor->config.gpu_trace != NULL) {
        etwatch_metric_set_add(&metrics, ETWATCH_M_gpu_ns);
        etwatch_metric_set_add(&metrics, ETWATCH_M_gpu_percent);
    }
    etwatch_metric_set_subtract(&estimated, &counted);
    etwatch_metric_set_union(&metrics, &counted);
    etwatch_metric_set_union(&estimated, &counted_estimated);
    etwatch_metric_set_intersect(&metrics, &monitor->metrics);
    etwatch_metric_set_intersect(&estimated, &monitor->metrics);
    etwatch_metric_set_union(&monitor->source_available, &metrics);
    etwatch_metric_set_union(&monitor->source_estimated, &estimated);
}

/* ------------------------------------------------------------------------ readings */

static void deliver(struct etwatch_monitor *monitor, const struct etwatch_device *device)
{
    struct etwatch_devices batch = etwatch_devices_of(device, 1);
    struct ew_alloc_limit *memory = ew_alloc_limit_use(NULL);
    if (monitor->callbacks.on_devices != NULL)
        monitor->callbacks.on_devices(monitor->callbacks.ctx, &batch);
    (void)ew_alloc_limit_use(memory);
}

/* What the watched processes caused, and the rest: the three parts add up to the meter's energy. */
static void put_parts(struct ew_device_reading *reading, uint64_t watched_uj)
{
    uint64_t above_uj = reading->energy_uj - reading->idle_energy_uj;
    watched_uj = watched_uj < above_uj ? watched_uj : above_uj;
    EW_DEVICE_PUT(reading, watched_energy_uj, watched_uj);
    EW_DEVICE_PUT(reading, other_energy_uj, above_uj - watched_uj);
    etwatch_metric_set_add(&reading->estimated, ETWATCH_D_watched_energy_uj);
    etwatch_metric_set_add(&reading->estimated, ETWATCH_D_other_energy_uj);
}

/* A process may hold memory of several devices. Batches are small; in a huge one it is unknown. */
static void sum_memory(const struct ew_sensor_batch *batch, uint32_t i, struct ew_device_use *use)
{
    enum { SUMMED_MAX = 1024 };
    if (batch->device_count < 2 || (use->process.has & ETWATCH_DEVICE_PROCESS_MEMORY) == 0)
        return;
    if (batch->use_count > SUMMED_MAX)
        use->process.has &= ~(uint32_t)ETWATCH_DEVICE_PROCESS_MEMORY;
    for (uint32_t j = 0; j < i && batch->use_count <= SUMMED_MAX; j++)
        if (batch->uses[j].process.pid == use->process.pid)
            use->process.memory_bytes += batch->uses[j].process.memory_bytes;
}

static void on_batch(void *ctx, const struct ew_sensor_batch *batch)
{
    struct etwatch_monitor *monitor = ctx;
    uint64_t watched_uj[EW_SENSOR_DEVICES_MAX] = {0};
    ew_monitor_correct_uses(monitor, batch);
    for (uint32_t i = 0; i < batch->use_count; i++) {
        struct ew_device_use use = batch->uses[i];
        sum_memory(batch, i, &use);
        if (monitor->source_counts_gpu)
            use.process.has &= ~(uint32_t)ETWATCH_DEVICE_PROCESS_GPU_TIME;
        if (ew_sampler_device(monitor->sampler, &use) && use.device < EW_SENSOR_DEVICES_MAX)
            watched_uj[use.device] += use.process.energy_uj;
    }
    for (uint32_t i = 0; i < batch->device_count; i++) {
        struct ew_device_reading *reading = &batch->devices[i];
        struct etwatch_device device;
        if (reading->by_cpu_time) {
            const struct ew_energy_use use = {
                .from_ns = reading->from_ns,
                .t_ns = reading->t_ns,
                .energy_uj = reading->energy_uj - reading->idle_energy_uj,
                .busy_ns = reading->cpu_busy_ns,
            };
            put_parts(reading, ew_sampler_energy(monitor->sampler, &use));
        } else if (reading->by_uses) {
            put_parts(reading, watched_uj[i]);
        }
        ew_sensor_export(reading, monitor->unix_minus_raw_ns, &device);
        deliver(monitor, &device);
    }
}

static void on_notice(void *ctx, const struct ew_sensor_notice *notice)
{
    struct etwatch_monitor *monitor = ctx;
    const struct etwatch_device device = {
        .size = sizeof device,
        .kind = notice->kind,
        .flags = notice->flags,
        .t_ns = ew_os_raw_ns() + (uint64_t)monitor->unix_minus_raw_ns,
        .driver = notice->sensor,
        .problem = notice->text,
    };
    deliver(monitor, &device);
}

void ew_monitor_drain_devices(struct etwatch_monitor *monitor, uint64_t now_ns)
{
    const struct ew_sensor_receiver receiver = {monitor, on_batch, on_notice};
    ew_monitor_drain_gpu_trace(monitor, now_ns);
    if (monitor->sensors == NULL)
        return;
    ew_sensors_drain(monitor->sensors, now_ns, &receiver);
    monitor->sensor_cpu_ns = ew_sensors_cpu_ns(monitor->sensors);
}
