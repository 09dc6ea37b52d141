/* SPDX-License-Identifier: MIT */
/* RAPL through the PMU `power` of perf: needs CAP_PERFMON, where powercap needs root. */
#ifndef EW_SENSOR_RAPL_PERF_LINUX_H
#define EW_SENSOR_RAPL_PERF_LINUX_H

#include <stdbool.h>
#include <stdint.h>

#include "sensor/sensor.h"

struct ew_rapl_counter {
    char id[EW_DEVICE_ID_SIZE]; /* "package-0", "package-0/dram", "psys" */
    int fd;
    double uj_per_count;
};

/* Whether this machine has the PMU. */
bool ew_rapl_perf_has(const char *sys_root);
/* Opens the counters of every package, packages before their parts; returns their number, and the
 * errno of the first that could not be opened (0: none). The caller closes the descriptors. */
uint32_t ew_rapl_perf_open(const struct ew_sensor_config *config, struct ew_rapl_counter *counters,
                           uint32_t max, int *ret_os_code);
/* The counter in microjoules since it was opened. It does not wrap in the life of a machine. */
bool ew_rapl_perf_read(int fd, double uj_per_count, uint64_t *ret_uj);

#endif
