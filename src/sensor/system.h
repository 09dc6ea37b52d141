/* SPDX-License-Identifier: MIT */
/* What a system tells of the whole machine: absolute values, from which the rest is made. */
#ifndef EW_SENSOR_SYSTEM_H
#define EW_SENSOR_SYSTEM_H

#include <stdbool.h>

#include "model/metric.h"
#include "sensor/system_text.h"

struct ew_system_source;

/* By system. 0 or a negative code. */
int ew_system_source_open(const char *proc_root, struct ew_system_source **ret_source);
void ew_system_source_close(struct ew_system_source *source);
/* Fills what it knows; processes is UINT64_MAX where it is not known. lists: who came and went is
 * wanted, for which processes must be listed. */
int ew_system_source_read(struct ew_system_source *source, bool lists,
                          struct ew_system_text *ret_text, uint64_t *ret_processes);
/* The metrics (enum etwatch_system_metric) that this system can only estimate. */
extern const struct etwatch_metric_set ew_system_source_estimates;

#endif
