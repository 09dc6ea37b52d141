/* SPDX-License-Identifier: MIT */
/* The metrics of devices by number, for sinks. */
#ifndef EW_SINK_DEVICE_H
#define EW_SINK_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#include <etwatch/device.h>

struct ew_sink_device_column {
    const char *name, *kind;
    size_t offset; /* in struct etwatch_device */
    bool is_double;
};

extern const struct ew_sink_device_column ew_sink_device_columns[ETWATCH_DEVICE_METRIC_COUNT];

const char *ew_sink_device_kind(const struct etwatch_device *device);
double ew_sink_device_number(const struct etwatch_device *device, uint32_t metric);

#endif
