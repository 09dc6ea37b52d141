/* SPDX-License-Identifier: MIT */
/*
 * What a sensor delivers: one reading per device, and what each process did on the devices in the
 * same time. Counters are increments between from_ns and t_ns (raw clock), because no driver counts
 * over the life of a process. from_ns is 0 in the first reading of a device, which has no counters.
 */
#ifndef EW_MODEL_DEVICE_H
#define EW_MODEL_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include <etwatch/device.h>

enum { EW_DEVICE_ID_SIZE = 64, EW_DEVICE_NAME_SIZE = 96, EW_DEVICE_DRIVER_SIZE = 32 };

/* The energy of a device that CPU time causes, for the sampler to attribute. */
struct ew_energy_use {
    uint64_t from_ns, t_ns;
    uint64_t energy_uj; /* above idle */
    uint64_t busy_ns;   /* CPU time of all processes of the machine in this time */
};

struct ew_device_reading {
    uint32_t kind; /* enum etwatch_device_kind */
    uint32_t index;
    uint64_t from_ns, t_ns;
    char driver[EW_DEVICE_DRIVER_SIZE], id[EW_DEVICE_ID_SIZE], name[EW_DEVICE_NAME_SIZE];
    /* Its energy above idle_energy_uj is attributed: by the CPU time of processes, or by uses with
     * energy. Both false: it is contained in another meter, or nothing is known to attribute by. */
    bool by_cpu_time, by_uses;
    uint64_t cpu_busy_ns; /* by_cpu_time: CPU time of the machine in this time */
    struct etwatch_metric_set has, estimated;
#define ETWATCH_X(name, type, kind) type name;
    ETWATCH_DEVICE_METRICS(ETWATCH_X)
#undef ETWATCH_X
};

/* What a process did on one device; or on all, if it was counted from events. */
struct ew_device_use {
    uint64_t from_ns, t_ns;
    uint32_t device; /* index of the device's reading in the batch */
    struct etwatch_device_process process;
    bool has_presents; /* only a source that counts events has them */
    uint64_t presents;
};

/* Sets a value that is known. */
#define EW_DEVICE_PUT(reading, metric, value)                        \
    do {                                                             \
        (reading)->metric = (value);                                 \
        etwatch_metric_set_add(&(reading)->has, ETWATCH_D_##metric); \
    } while (0)

#endif
