/* SPDX-License-Identifier: MIT */
/* Readable numbers: short, with a unit, three or four digits. */
#ifndef EW_SINK_UNITS_H
#define EW_SINK_UNITS_H

#include "base/buf.h"
#include "sink/fields.h"

void ew_units_bytes(struct ew_buf *out, uint64_t bytes);   /* 812 B, 3.4 KB, 12.0 MB; KB = 1024 */
void ew_units_ns(struct ew_buf *out, uint64_t ns);         /* 0.012 ms, 4.20 ms, 1.25 s */
void ew_units_count(struct ew_buf *out, uint64_t count);   /* 12345, 1.23 M */
void ew_units_percent(struct ew_buf *out, double percent); /* 0.03, 12.5, 399 */
/* 2025-11-16 05:11:02 UTC */
void ew_units_time(struct ew_buf *out, uint64_t unix_ns);
/* 2025-11-16 05:11:02.123456, in UTC */
void ew_units_clock(struct ew_buf *out, uint64_t unix_ns);
/* Formats by the unit in the field's name; "-" if unknown. */
void ew_units_field(struct ew_buf *out, uint32_t field, const struct ew_value *value);

#endif
