/* SPDX-License-Identifier: MIT */
/* The fields of recorded events as JSON. */
#ifndef EW_SINK_JSON_FIELDS_H
#define EW_SINK_JSON_FIELDS_H

#include <stdbool.h>

#include <etwatch/trace.h>

#include "base/buf.h"

/* {"a":1,"b":[2,{"c":3}]} */
void ew_json_put_fields(struct ew_buf *out, const struct etwatch_field *fields, uint32_t count);
/* The value of the first one alone: 1, or [2,{"c":3}]; count: with what is in it. */
void ew_json_put_field(struct ew_buf *out, const struct etwatch_field *fields, uint32_t count);
/* "00ff…" */
void ew_json_hex(struct ew_buf *out, const uint8_t *bytes, size_t len);

#endif
