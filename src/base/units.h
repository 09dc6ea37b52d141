/* SPDX-License-Identifier: MIT */
/* Numbers for people: short, with a unit, three or four digits. Programs get the plain ones. */
#ifndef EW_BASE_UNITS_H
#define EW_BASE_UNITS_H

#include "base/buf.h"

void ew_units_bytes(struct ew_buf *out, uint64_t bytes);   /* 812 B, 3.4 KB, 12.0 MB; KB = 1024 */
void ew_units_ns(struct ew_buf *out, uint64_t ns);         /* 0.012 ms, 4.20 ms, 1.25 s */
void ew_units_count(struct ew_buf *out, uint64_t count);   /* 12345, 1.23 M */
void ew_units_percent(struct ew_buf *out, double percent); /* 0.03, 12.5, 399; negative: "-" */
/* Seconds by which local time is ahead of UTC at this instant. */
typedef int32_t (*ew_utc_offset)(uint64_t unix_ns);
/* 2025-11-16 06:11:02 +01:00; 2025-11-16 05:11:02 UTC if the offset is 0, or NULL. */
void ew_units_time(struct ew_buf *out, uint64_t unix_ns, ew_utc_offset offset);
/* 2025-11-16 05:11:02.123456, in UTC */
void ew_units_clock(struct ew_buf *out, uint64_t unix_ns);

#endif
