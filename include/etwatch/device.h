/* SPDX-License-Identifier: MIT */
/*
 * Devices: GPUs, NPUs and energy meters, each read at its own rate by a thread of the library, so
 * that a driver that hangs delays nothing. A monitor reads the devices of the metrics it is to
 * measure (gpu_ns, gpu_memory_bytes, npu_ns, energy_uj, ...) and reports them through on_devices; a
 * device reader reads them without a monitor. The rules of etwatch.h hold.
 *
 * Stable: the names and their order; new ones are appended.
 */
#ifndef ETWATCH_DEVICE_H
#define ETWATCH_DEVICE_H

#include <etwatch/etwatch.h>

#ifdef __cplusplus
extern "C" {
#endif

enum etwatch_device_kind {
    ETWATCH_DEVICE_GPU = 1,
    ETWATCH_DEVICE_NPU = 2,
    ETWATCH_DEVICE_ENERGY = 3, /* an energy meter: package, core, dram, battery, ... */
};

/* "gpu", "npu", "energy"; NULL for anything else. */
ETWATCH_API const char *etwatch_device_kind_name(uint32_t kind);

/*
 * A counter is what happened since the reading before (unknown in the first), a gauge is the value
 * at t_ns. Of an energy meter that measures what processes cause: energy_uj is the sum of
 * idle_energy_uj (used if nothing ran), watched_energy_uj (attributed to the watched processes) and
 * other_energy_uj (the rest). These three are estimates.
 */
#define ETWATCH_DEVICE_METRICS(X)                    \
    X(util_percent, double, gauge)                   \
    X(memory_util_percent, double, gauge)            \
    X(encoder_percent, double, gauge)                \
    X(decoder_percent, double, gauge)                \
    X(memory_used_bytes, uint64_t, gauge)            \
    X(memory_total_bytes, uint64_t, gauge)           \
    X(temperature_celsius, double, gauge)            \
    X(clock_mhz, double, gauge)                      \
    X(memory_clock_mhz, double, gauge)               \
    X(power_watts, double, gauge)                    \
    X(busy_ns, uint64_t, counter)                    \
    X(energy_uj, uint64_t, counter)                  \
    X(idle_energy_uj, uint64_t, counter)             \
    X(watched_energy_uj, uint64_t, counter)          \
    X(other_energy_uj, uint64_t, counter)            \
    X(throttle_reasons, uint64_t, gauge)             \
    X(pcie_received_bytes_per_second, double, gauge) \
    X(pcie_sent_bytes_per_second, double, gauge)     \
    X(processes, uint64_t, gauge)                    \
    X(nvlink_received_bytes, uint64_t, counter)      \
    X(nvlink_sent_bytes, uint64_t, counter)

enum etwatch_device_metric {
#define ETWATCH_X(name, type, kind) ETWATCH_D_##name,
    ETWATCH_DEVICE_METRICS(ETWATCH_X)
#undef ETWATCH_X
        ETWATCH_DEVICE_METRIC_COUNT
};

/* The bits of throttle_reasons, as NVML numbers them. */
enum etwatch_throttle_reason {
    ETWATCH_THROTTLE_IDLE = 1u << 0,
    ETWATCH_THROTTLE_APPLICATION_CLOCKS = 1u << 1,
    ETWATCH_THROTTLE_POWER_CAP = 1u << 2,
    ETWATCH_THROTTLE_HARDWARE = 1u << 3,
    ETWATCH_THROTTLE_SYNC_BOOST = 1u << 4,
    ETWATCH_THROTTLE_THERMAL = 1u << 5,
    ETWATCH_THROTTLE_HARDWARE_THERMAL = 1u << 6,
    ETWATCH_THROTTLE_POWER_BRAKE = 1u << 7,
    ETWATCH_THROTTLE_DISPLAY_CLOCKS = 1u << 8,
};

enum etwatch_device_flag {
    /* No values: `problem` says what is wrong, with the device or with all devices of this driver.
     * Reported once when it begins. */
    ETWATCH_DEVICE_PROBLEM = 1u << 0,
    /* With ETWATCH_DEVICE_PROBLEM: the problem is over. */
    ETWATCH_DEVICE_RECOVERED = 1u << 1,
    /* With ETWATCH_DEVICE_PROBLEM: this machine has no such device, or it cannot be read. */
    ETWATCH_DEVICE_ABSENT = 1u << 2,
};

enum etwatch_device_process_has {
    ETWATCH_DEVICE_PROCESS_GPU_TIME = 1u << 0,
    ETWATCH_DEVICE_PROCESS_NPU_TIME = 1u << 1,
    ETWATCH_DEVICE_PROCESS_MEMORY = 1u << 2,
    ETWATCH_DEVICE_PROCESS_ENERGY = 1u << 3,
    ETWATCH_DEVICE_PROCESS_CODEC_TIME = 1u << 4, /* encoder_ns and decoder_ns */
};

/* What one process did on one device since the reading before. FIXED. */
struct etwatch_device_process {
    uint32_t pid;
    uint32_t has; /* enum etwatch_device_process_has */
    uint64_t gpu_ns, npu_ns;
    uint64_t energy_uj;
    uint64_t memory_bytes;           /* at the time of the reading */
    uint64_t encoder_ns, decoder_ns; /* of the engines for video */
};

/* One reading of one device. */
struct etwatch_device {
    uint32_t size;
    uint32_t kind;  /* enum etwatch_device_kind */
    uint32_t flags; /* enum etwatch_device_flag */
    uint32_t index; /* of the device among those of its driver */
    uint64_t t_ns;
    uint64_t dt_ns;      /* since the reading before; 0: this is the first */
    const char *driver;  /* "nvml", "powercap", "amdgpu", ... */
    const char *id;      /* "0000:41:00.0", "package-0"; NULL: unknown, likewise the others */
    const char *name;    /* "NVIDIA H200" */
    const char *problem; /* with ETWATCH_DEVICE_PROBLEM, else NULL */
    uint32_t process_count;
    uint32_t reserved;
    const struct etwatch_device_process *process_list; /* every process of the device */
    /* Sets of enum etwatch_device_metric. */
    struct etwatch_metric_set has;       /* the metrics that are known */
    struct etwatch_metric_set estimated; /* those that are only an estimate */
#define ETWATCH_X(name, type, kind) type name;
    ETWATCH_DEVICE_METRICS(ETWATCH_X)
#undef ETWATCH_X
};

/* 1 if the value of this metric is known: etwatch_device_has(device, ETWATCH_D_power_watts). */
static inline int etwatch_device_has(const struct etwatch_device *device, uint32_t metric)
{
    return etwatch_metric_set_has(&device->has, metric);
}

/* See struct etwatch_samples. */
struct etwatch_devices {
    uint32_t size;
    uint32_t stride;
    size_t count;
    const struct etwatch_device *items;
};

static inline const struct etwatch_device *etwatch_device_at(const struct etwatch_devices *batch,
                                                             size_t i)
{
    return (const struct etwatch_device *)(const void *)((const char *)batch->items +
                                                         i * batch->stride);
}

static inline struct etwatch_devices etwatch_devices_of(const struct etwatch_device *items,
                                                        size_t count)
{
    struct etwatch_devices batch = {(uint32_t)sizeof batch, (uint32_t)sizeof *items, count, items};
    return batch;
}

/* ------------------------------------------------------------------- device reader */

struct etwatch_device_options {
    uint32_t size;
    uint32_t kinds;           /* a bit (1 << enum etwatch_device_kind) each; 0 = all */
    double hz;                /* readings a second at most, 0.01 to 100; 0 = 10 */
    const char *proc_root;    /* NULL = "/proc" */
    const char *sys_root;     /* NULL = "/sys" */
    const char *nvml_library; /* NULL = where the driver installs it */
    /* AMD SMI (libamd_smi.so of ROCm), for the energy counters of AMD GPUs, if energy is wanted.
     * It leaves locks in /dev/shm and may print, so NULL = it is not loaded. Linux. */
    const char *amdsmi_library;
};

struct etwatch_device_reader;

/* Starts a thread per driver. options may be NULL. ETWATCH_EINVAL, ETWATCH_ENOMEM, ETWATCH_ELIMIT.
 * Never waits for a driver. */
ETWATCH_API int etwatch_device_reader_open(const struct etwatch_device_options *options,
                                           struct etwatch_device_reader **ret_reader);
/* The latest reading of each device, with counters since the last call, and the current problem of
 * each driver that has one. Waits up to timeout_ms until every driver has answered once. The batch
 * is valid until the next call. Returns the count. One thread at a time. */
ETWATCH_API int etwatch_device_reader_read(struct etwatch_device_reader *reader, int timeout_ms,
                                           struct etwatch_devices *ret_batch);
/* Does not wait for a driver that hangs. NULL is fine. */
ETWATCH_API void etwatch_device_reader_close(struct etwatch_device_reader *reader);

#ifdef __cplusplus
}
#endif

#endif /* ETWATCH_DEVICE_H */
