/* SPDX-License-Identifier: MIT */
/* JSON helpers shared by the objects of samples and of recordings. */
#ifndef EW_SINK_JSON_H
#define EW_SINK_JSON_H

#include <stdbool.h>
#include <string.h>

#include <etwatch/span.h>
#include <etwatch/trace.h>

#include "base/buf.h"
#include "sink/fields.h"

/* ------------------------------------------------------------------------ json_fields */

/* The fields of recorded events as JSON. */

/* {"a":1,"b":[2,{"c":3}]} */
void ew_json_put_fields(struct ew_buf *out, const struct etwatch_field *fields, uint32_t count);
/* Only the value of the first field: 1, or [2,{"c":3}]; count includes its nested entries. */
void ew_json_put_field(struct ew_buf *out, const struct etwatch_field *fields, uint32_t count);
/* "00ff…" */
void ew_json_hex(struct ew_buf *out, const uint8_t *bytes, size_t len);

/* ------------------------------------------------------------------------------- span */

/* [{"cause":"cpu","pid":1,"tid":null,"name":"ffmpeg","ns":2}] */
void ew_json_causes(struct ew_buf *out, const struct etwatch_cause *causes, uint32_t count);

/* A literal, its quotes already escaped. */
#define EW_JSON(out, literal) ew_buf_bytes((out), (literal), sizeof(literal) - 1)

static inline void ew_json_text(struct ew_buf *out, const char *text)
{
    if (text == NULL)
        EW_JSON(out, "null");
    else
        ew_buf_json_string(out, text, strlen(text));
}

static inline void ew_json_number_if(struct ew_buf *out, bool known, uint64_t value)
{
    if (known)
        ew_buf_u64(out, value);
    else
        EW_JSON(out, "null");
}

static inline void ew_json_double(struct ew_buf *out, double value)
{
    if (!ew_buf_fixed(out, value, 3))
        EW_JSON(out, "null");
}

static inline void ew_json_bool(struct ew_buf *out, bool value)
{
    ew_buf_text(out, value ? "true" : "false");
}

/* The names of these metrics as an array. */
static inline void ew_json_names(struct ew_buf *out, const struct etwatch_metric_set *metrics)
{
    bool first = true;
    ew_buf_char(out, '[');
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++) {
        if (!etwatch_metric_set_has(metrics, i))
            continue;
        if (!first)
            ew_buf_char(out, ',');
        ew_json_text(out, ew_sink_metric_info[i].name);
        first = false;
    }
    ew_buf_char(out, ']');
}

#endif
