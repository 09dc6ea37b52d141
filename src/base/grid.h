/* SPDX-License-Identifier: MIT */
/* Aligned columns: cells are collected, then printed with the widths that they need. */
#ifndef EW_BASE_GRID_H
#define EW_BASE_GRID_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/units.h"

enum { EW_GRID_COLUMNS_MAX = 128 };

struct ew_grid_column {
    const char *heading;
    uint16_t min_width; /* keeps consecutive blocks aligned */
    uint16_t max_width; /* longer text is cut; 0 = no limit */
    bool left;          /* text; numbers are aligned to the right */
};

struct ew_grid {
    const struct ew_grid_column *columns;
    uint32_t column_count;
    struct ew_buf text; /* text of all cells, concatenated */
    uint32_t *ends;     /* end of each cell in text */
    size_t cell_count, cell_size;
    bool color;
    ew_utc_offset utc_offset;                   /* of the times in cells; NULL: UTC */
    uint32_t width;                             /* lines are cut to this; 0 = no limit */
    size_t marked_row;                          /* shown inverted, counted from 1; 0: none */
    uint32_t heading_ends[EW_GRID_COLUMNS_MAX]; /* set by print: columns up to the next heading */
    int error;
};

/* columns must outlive the grid. */
void ew_grid_init(struct ew_grid *grid, const struct ew_grid_column *columns,
                  uint32_t column_count);
void ew_grid_done(struct ew_grid *grid);
/* Removes all cells. */
void ew_grid_clear(struct ew_grid *grid);
/* The buffer for the next cell, row by row, left to right. ew_grid_end closes the cell. */
struct ew_buf *ew_grid_cell(struct ew_grid *grid);
void ew_grid_end(struct ew_grid *grid);
/* Prints the heading line and all rows, at most max_rows of them (0: all). */
int ew_grid_print(struct ew_grid *grid, struct ew_buf *out, size_t max_rows);

#endif
