/* SPDX-License-Identifier: MIT */
/* The sensors of Windows. */
#include <stddef.h>

#include "sensor/sensor.h"

extern const struct ew_sensor_ops ew_sensor_nvml;

const struct ew_sensor_ops *const ew_sensors_native[] = {&ew_sensor_nvml, NULL};
