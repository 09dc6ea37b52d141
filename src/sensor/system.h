/* SPDX-License-Identifier: MIT */
/* Raw values of the whole machine, per operating system: absolute values, from which differences
 * are computed. */
#ifndef EW_SENSOR_SYSTEM_H
#define EW_SENSOR_SYSTEM_H

#include <stdbool.h>

#include "model/metric.h"
#include "sensor/system_text.h"

struct ew_system_source;

/* Implemented per operating system. 0 or a negative code. */
int ew_system_source_open(const char *proc_root, struct ew_system_source **ret_source);
void ew_system_source_close(struct ew_system_source *source);
/* Fills the known values; *ret_processes is left unchanged if unknown. lists: process starts and
 * exits are needed, which requires a list of processes. */
int ew_system_source_read(struct ew_system_source *source, bool lists,
                          struct ew_system_text *ret_text, uint64_t *ret_processes);
/* The metrics (enum etwatch_system_metric) that this system can only estimate. */
extern const struct etwatch_metric_set ew_system_source_estimates;

#endif
