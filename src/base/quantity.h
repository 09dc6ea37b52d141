/* SPDX-License-Identifier: MIT */
/*
 * Units of time and memory as people write them. Options, configuration files and alert conditions
 * use these tables, so that they all understand the same units.
 */
#ifndef EW_BASE_QUANTITY_H
#define EW_BASE_QUANTITY_H

#include <stdbool.h>
#include <stddef.h>

/* ns, us, ms, s, m or min, h: the factor to nanoseconds. */
bool ew_unit_of_time(const char *unit, size_t len, double *ret_ns);
/* B; K, M, G, T and KiB, MiB, GiB, TiB in powers of 1024; KB, MB, GB, TB in powers of 1000: the
 * factor to bytes. */
bool ew_unit_of_memory(const char *unit, size_t len, double *ret_bytes);

#endif
