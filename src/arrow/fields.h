/* SPDX-License-Identifier: MIT */
/* The fields of recorded events as columns: all as JSON in one column, or one column per field. */
#ifndef EW_ARROW_FIELDS_H
#define EW_ARROW_FIELDS_H

#include <etwatch/trace.h>

#include "arrow/columns.h"
#include "base/buf.h"

/* {"NewThreadId":12,…}, as in the JSON output. Errors stay in columns. */
void ew_arrow_fields_put_json(struct ew_columns *columns, uint32_t column, struct ew_buf *scratch,
                              const struct etwatch_field *fields, uint32_t count);

/* Names and kinds of the fields of all examined events. */
struct ew_field_kind {
    char *name;
    uint32_t seen; /* kinds of values it had */
};
enum { EW_FIELD_KINDS_MAX = 1024 };

struct ew_field_kinds {
    struct ew_field_kind *list;
    uint32_t count, size;
    uint16_t index[2 * EW_FIELD_KINDS_MAX]; /* hash of a name: index in the list + 1, or 0 */
    uint32_t first;                         /* column of the first field */
};
void ew_arrow_field_kinds_done(struct ew_field_kinds *kinds);
/* Examines one event. 0, ETWATCH_ENOMEM, or ETWATCH_ELIMIT: too many different names. */
int ew_arrow_field_kinds_learn(struct ew_field_kinds *kinds, const struct etwatch_field *fields,
                               uint32_t count);
/* Adds a column per field to a layout. A name that is already used is prefixed with "fields.". */
int ew_arrow_field_kinds_add(struct ew_field_kinds *kinds, struct ew_layout *layout);
/* Sets the values of this row. */
void ew_arrow_field_kinds_put(const struct ew_field_kinds *kinds, struct ew_columns *columns,
                              struct ew_buf *scratch, const struct etwatch_field *fields,
                              uint32_t count);

#endif
