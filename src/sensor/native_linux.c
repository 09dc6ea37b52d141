/* SPDX-License-Identifier: MIT */
/* The sensors of Linux. If a kind of device has none, the first of its sensors says why. */
#include <stddef.h>

#include "sensor/sensor.h"

extern const struct ew_sensor_ops ew_sensor_battery;
extern const struct ew_sensor_ops ew_sensor_drm;
extern const struct ew_sensor_ops ew_sensor_intel_npu;
extern const struct ew_sensor_ops ew_sensor_nvml;
extern const struct ew_sensor_ops ew_sensor_powercap;

const struct ew_sensor_ops *const ew_sensors_native[] = {&ew_sensor_powercap, &ew_sensor_intel_npu,
                                                         &ew_sensor_nvml,     &ew_sensor_drm,
                                                         &ew_sensor_battery,  NULL};
