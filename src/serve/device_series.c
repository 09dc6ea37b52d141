/* SPDX-License-Identifier: MIT */
/*
 * Names and units of the device metrics. Counters are totals since the device was first read, so
 * that a rate over any window is right; the parts of the energy of a meter are counters too.
 *
 * A device that is no longer read (its driver hangs, it is lost) has no gauges: an absent series is
 * the form of "unknown".
 */
#include "serve/device_series.h"

/* A device is not read any more if so much time passed since, and three readings are missing. */
static const uint64_t stale_ns = 5 * UINT64_C(1000000000);

#define SERIES(metric, ...) [ETWATCH_D_##metric] = {__VA_ARGS__}

const struct ew_device_series ew_device_series[ETWATCH_DEVICE_METRIC_COUNT] = {
    SERIES(util_percent, "etwatch_device_use_ratio", "etwatch.device.utilization", "1",
           "share of time in which the device was in use", 0.01, false),
    SERIES(memory_util_percent, "etwatch_device_memory_access_ratio",
           "etwatch.device.memory.utilization", "1",
           "share of time in which the memory of the device was read or written", 0.01, false),
    SERIES(encoder_percent, "etwatch_device_encoder_use_ratio",
           "etwatch.device.encoder.utilization", "1", "use of the video encoder", 0.01, false),
    SERIES(decoder_percent, "etwatch_device_decoder_use_ratio",
           "etwatch.device.decoder.utilization", "1", "use of the video decoder", 0.01, false),
    SERIES(memory_used_bytes, "etwatch_device_memory_used_bytes", "etwatch.device.memory.usage",
           "By", "memory of the device in use", 1, false),
    SERIES(memory_total_bytes, "etwatch_device_memory_size_bytes", "etwatch.device.memory.limit",
           "By", "memory of the device", 1, false),
    SERIES(temperature_celsius, "etwatch_device_temperature_celsius", "etwatch.device.temperature",
           "Cel", "temperature of the device", 1, false),
    SERIES(clock_mhz, "etwatch_device_clock_hertz", "etwatch.device.clock.frequency", "Hz",
           "clock of the processors of the device", 1e6, false),
    SERIES(memory_clock_mhz, "etwatch_device_memory_clock_hertz",
           "etwatch.device.memory.clock.frequency", "Hz", "clock of the memory of the device", 1e6,
           false),
    SERIES(power_watts, "etwatch_device_power_watts", "etwatch.device.power", "W",
           "power of the device", 1, false),
    SERIES(busy_ns, "etwatch_device_busy_seconds_total", "etwatch.device.busy_time", "s",
           "time of all clients of the device", 1e-9, true),
    SERIES(energy_uj, "etwatch_device_energy_joules_total", "etwatch.device.energy", "J",
           "energy that the device used", 1e-6, true),
    SERIES(idle_energy_uj, "etwatch_device_idle_energy_joules_total", "etwatch.device.energy.idle",
           "J", "energy that the device would have used if nothing had run", 1e-6, true),
    SERIES(watched_energy_uj, "etwatch_device_watched_energy_joules_total",
           "etwatch.device.energy.watched", "J", "energy that the watched processes caused", 1e-6,
           true),
    SERIES(other_energy_uj, "etwatch_device_other_energy_joules_total",
           "etwatch.device.energy.other", "J", "energy that other processes caused", 1e-6, true),
    SERIES(throttle_reasons, "etwatch_device_throttle_reasons", "etwatch.device.throttle_reasons",
           "1", "why the clock is lowered: a bit for each reason, as NVML numbers them", 1, false),
    SERIES(pcie_received_bytes_per_second, "etwatch_device_pcie_received_bytes_per_second",
           "etwatch.device.pcie.received", "By/s", "bytes that the device received by PCIe", 1,
           false),
    SERIES(pcie_sent_bytes_per_second, "etwatch_device_pcie_sent_bytes_per_second",
           "etwatch.device.pcie.sent", "By/s", "bytes that the device sent by PCIe", 1, false),
    SERIES(processes, "etwatch_device_processes", "etwatch.device.processes", "{process}",
           "processes that have the device open", 1, false),
    SERIES(nvlink_received_bytes, "etwatch_device_nvlink_received_bytes_total",
           "etwatch.device.nvlink.received", "By", "bytes that the device received by NVLink", 1,
           true),
    SERIES(nvlink_sent_bytes, "etwatch_device_nvlink_sent_bytes_total",
           "etwatch.device.nvlink.sent", "By", "bytes that the device sent by NVLink", 1, true),
};

bool ew_device_series_has(const struct ew_state *state, const struct ew_state_device *device,
                          uint32_t metric)
{
    if (ew_device_series[metric].prometheus == NULL)
        return false;
    if (ew_device_series[metric].counter)
        return etwatch_metric_set_has(&device->has, metric);
    return etwatch_metric_set_has(&device->latest.has, metric) &&
           state->now_ns < device->latest.t_ns + stale_ns + 3 * device->latest.dt_ns;
}

uint64_t ew_device_series_raw(const struct ew_device_series *series,
                              const struct ew_state_device *device, uint32_t metric)
{
    return series->counter ? device->totals[metric] : device->latest.values[metric];
}
