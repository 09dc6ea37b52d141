/* SPDX-License-Identifier: MIT */
/* The sensors of Windows. wddm comes before nvml: where both read a GPU, nvml leaves its processes
 * to wddm (overlap.h). */
#include <stddef.h>

#include "sensor/sensor.h"

extern const struct ew_sensor_ops ew_sensor_nvml, ew_sensor_wddm, ew_sensor_emi;

const struct ew_sensor_ops *const ew_sensors_native[] = {&ew_sensor_wddm, &ew_sensor_nvml,
                                                         &ew_sensor_emi, NULL};
