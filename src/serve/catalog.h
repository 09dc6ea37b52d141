/* SPDX-License-Identifier: MIT */
/*
 * The metrics as the server sees them: their rows of the public tables, and access to a value by
 * the number of its metric. Nothing in the server names a metric where a table can.
 */
#ifndef EW_SERVE_CATALOG_H
#define EW_SERVE_CATALOG_H

#include <stdbool.h>
#include <stdint.h>

#include <etwatch/device.h>
#include <etwatch/metrics.h>
#include <etwatch/system.h>

#include "base/buf.h"
#include "serve/history.h"

/* In the history of the machine, CPU i is value EW_CATALOG_CPU + i. */
enum { EW_CATALOG_CPU = 64 };

struct ew_catalog {
    struct etwatch_metric_info process[ETWATCH_METRIC_COUNT];
    struct etwatch_metric_info system[ETWATCH_SYSTEM_METRIC_COUNT];
    uint8_t process_types[EW_HISTORY_VALUES]; /* enum ew_history_type */
    uint8_t system_types[EW_HISTORY_VALUES];
    uint8_t device_types[EW_HISTORY_VALUES];
    struct etwatch_metric_set process_counters, system_counters, device_counters;
};

void ew_catalog_init(struct ew_catalog *catalog);

/* The 64 bits of a value. */
uint64_t ew_catalog_raw(const struct etwatch_sample *sample, uint32_t metric);
void ew_catalog_set_raw(struct etwatch_sample *sample, uint32_t metric, uint64_t raw);
uint64_t ew_catalog_system_raw(const struct etwatch_system *system, uint32_t metric);
/* As a number. type: enum ew_history_type. */
double ew_catalog_number(uint8_t type, uint64_t raw);
/* a + b in that type. */
uint64_t ew_catalog_sum(uint8_t type, uint64_t a, uint64_t b);
/* A metric of a process by its name; ETWATCH_METRIC_COUNT: there is none. */
uint32_t ew_catalog_find(const struct ew_catalog *catalog, const char *name, size_t len);
uint32_t ew_catalog_find_system(const struct ew_catalog *catalog, const char *name, size_t len);

/* Of a metric of devices: its name, "util_percent". */
const char *ew_catalog_device_name(uint32_t metric);

/* The shortest decimal form; not finite: "null" in JSON. */
void ew_catalog_put_json(struct ew_buf *out, double value);
/* The same, at most three decimals: for rates: more digits mean nothing. */
void ew_catalog_put_short(struct ew_buf *out, double value);

#endif
