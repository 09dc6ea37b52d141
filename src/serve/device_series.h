/* SPDX-License-Identifier: MIT */
/* The metrics of devices as Prometheus and OpenTelemetry have them. */
#ifndef EW_SERVE_DEVICE_SERIES_H
#define EW_SERVE_DEVICE_SERIES_H

#include "serve/state.h"

struct ew_device_series {
    const char *prometheus, *otlp;
    const char *unit; /* of OpenTelemetry */
    const char *help;
    double scale; /* from the unit of the device metric */
    bool counter;
};

/* Of each enum etwatch_device_metric. */
extern const struct ew_device_series ew_device_series[ETWATCH_DEVICE_METRIC_COUNT];

/* Whether the device has a value of this metric as of the newest second: a counter forever, a gauge
 * only as long as the device is read. */
bool ew_device_series_has(const struct ew_state *state, const struct ew_state_device *device,
                          uint32_t metric);
/* A number of enum ew_history type: the total of a counter, the latest value of a gauge. */
uint64_t ew_device_series_raw(const struct ew_device_series *series,
                              const struct ew_state_device *device, uint32_t metric);

#endif
