/* SPDX-License-Identifier: MIT */
/*
 * Sensors: devices that are read in parallel with the stream of facts.
 *
 * A sensor reads the devices of one driver. It is a table of functions without a thread or a clock.
 * The runner (runner.c) gives each sensor a thread of its own, because a call into a driver may
 * take seconds: nothing else waits for it, and its values are unknown meanwhile. Batches cross to
 * the monitor through a short queue; the monitor never waits.
 */
#ifndef EW_SENSOR_SENSOR_H
#define EW_SENSOR_SENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/device.h"

enum { EW_SENSOR_DEVICES_MAX = 256, EW_SENSOR_USES_MAX = 16384 };

/* What one read found. The arrays belong to the runner and are reused. */
struct ew_sensor_batch {
    const char *sensor; /* its name; set when the batch is delivered */
    struct ew_device_reading *devices;
    struct ew_device_use *uses;
    uint32_t device_count, device_room;
    uint32_t use_count, use_room;
    bool last; /* no read follows: set before the read */
    /* A problem that does not end the read: one device is lost, rights are missing. "": none. */
    char problem[256];
};

/* An entry to fill, zeroed; NULL: the limit is reached, or out of memory. */
struct ew_device_reading *ew_sensor_add_device(struct ew_sensor_batch *batch);
struct ew_device_use *ew_sensor_add_use(struct ew_sensor_batch *batch);

struct ew_wddm_api;
struct ew_emi_api;

struct ew_sensor_config {
    const char *proc_root, *sys_root;
    const char *nvml_library;   /* NULL: where the driver installs it */
    const char *amdsmi_library; /* NULL: not loaded */
    bool gpu, npu, energy;      /* what is wanted of a sensor that has several */
    /* Opens a counter of perf: a descriptor, or -1 and errno. NULL: the kernel's. */
    int (*perf_open)(uint32_t type, uint64_t event, int cpu);
    /* Functions of Windows; NULL: the real ones. Must live as long as the sensors. */
    const struct ew_wddm_api *wddm;
    const struct ew_emi_api *emi;
};

/* All functions run on the sensor's thread, one at a time. */
struct ew_sensor_ops {
    const char *name;
    uint32_t kinds;         /* bits (1 << enum etwatch_device_kind) that it may deliver */
    uint64_t min_period_ns; /* reading faster has no use or disturbs the device */
    /* Metrics of processes that it can only estimate. */
    struct etwatch_metric_set metrics, estimated;
    /* Whether the machine may have such a device; no call into a driver. False: the sensor is not
     * started and costs nothing. *reterr says what is missing. */
    bool (*probe)(const struct ew_sensor_config *config, struct ew_error *reterr);
    int (*open)(const struct ew_sensor_config *config, void **ret_state, struct ew_error *reterr);
    void (*close)(void *state);
    /* now_ns: raw clock. An error ends the sensor; it is opened again later, after ETWATCH_ESTATE
     * at once. */
    int (*read)(void *state, uint64_t now_ns, struct ew_sensor_batch *batch,
                struct ew_error *reterr);
    /* Those of `kinds` that this machine has; no call into a driver. NULL: all of them. */
    uint32_t (*find_kinds)(const struct ew_sensor_config *config);
};

/* The sensors of this system, ended by NULL. One file per system. */
extern const struct ew_sensor_ops *const ew_sensors_native[];

/* ------------------------------------------------------------------------- runner */

struct ew_sensors;

struct ew_sensors_config {
    struct ew_sensor_config sensor;         /* strings are copied */
    uint32_t kinds;                         /* bits (1 << enum etwatch_device_kind) */
    uint64_t period_ns[4];                  /* by kind */
    uint64_t epoch_ns;                      /* readings are a moment before epoch_ns + n * period */
    const struct ew_sensor_ops *const *ops; /* NULL: those of this system */
};

/* A change of state of a sensor, as one line for people. */
struct ew_sensor_notice {
    const char *sensor;
    uint32_t kind;
    uint32_t flags; /* enum etwatch_device_flag */
    const char *text;
};

struct ew_sensor_receiver {
    void *ctx;
    void (*batch)(void *ctx, const struct ew_sensor_batch *batch);
    void (*notice)(void *ctx, const struct ew_sensor_notice *notice);
};

int ew_sensors_open(const struct ew_sensors_config *config, struct ew_sensors **ret_sensors);
/* Ends the threads. One that hangs in a driver is left behind and frees its memory itself. */
void ew_sensors_close(struct ew_sensors *sensors);
/* Delivers what was read since the last call. Does not wait. */
void ew_sensors_drain(struct ew_sensors *sensors, uint64_t now_ns,
                      const struct ew_sensor_receiver *receiver);
/* Waits until every sensor has delivered a batch or failed, or for timeout_ms. */
void ew_sensors_wait(struct ew_sensors *sensors, int timeout_ms);
/* Makes every sensor read once more and waits for that, at most timeout_ms for all of them. */
void ew_sensors_read_now(struct ew_sensors *sensors, int timeout_ms);
/* CPU time of all their threads. */
uint64_t ew_sensors_cpu_ns(struct ew_sensors *sensors);
/* Metrics of processes that the started sensors measure, and can only estimate. */
void ew_sensors_metrics(const struct ew_sensors *sensors, struct etwatch_metric_set *ret_metrics,
                        struct etwatch_metric_set *ret_estimated);

/* The public form of a reading: its times become Unix times. Its strings are those of the reading;
 * it has no processes. */
void ew_sensor_export(const struct ew_device_reading *reading, int64_t unix_minus_raw_ns,
                      struct etwatch_device *ret_device);

#endif
