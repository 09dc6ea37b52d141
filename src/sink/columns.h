/* SPDX-License-Identifier: MIT */
/* Rows of a rollup as cells of a grid: headings, widths and value formats. */
#ifndef EW_SINK_COLUMNS_H
#define EW_SINK_COLUMNS_H

#include "base/grid.h"
#include "sink/fields.h"
#include "sink/rollup.h"

/* The field of a metric, for lists of columns. */
#define EW_F_METRIC(name) ((uint8_t)(EW_WHICH_COUNT + ETWATCH_M_##name))

/* The grid column for a field (enum ew_field_id). */
struct ew_grid_column ew_column_for(uint32_t field);
/* The value with the unit that the name of its field ends in (_ns, _bytes); "-" if unknown. */
void ew_field_put(struct ew_buf *out, uint32_t field, const struct ew_value *value,
                  ew_utc_offset utc_offset);
void ew_column_put_joules(struct ew_buf *out, uint64_t energy_uj);
/* Adds the cell of one row. wall_ns: the time its CPU per cent refers to. */
void ew_column_put(struct ew_grid *grid, const struct ew_rollup_row *row, uint32_t field,
                   uint64_t wall_ns);

#endif
