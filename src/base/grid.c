/* SPDX-License-Identifier: MIT */
/*
 * Owns the cells of one table. Control characters are replaced when a cell is printed, and every
 * line is cut to the configured width, so a hostile process name can neither send escape sequences
 * to the terminal nor break the columns.
 */
#include "base/grid.h"

#include <string.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"

enum { TEXT_MAX = 8 * 1024 * 1024, GAP = 2 };

void ew_grid_init(struct ew_grid *grid, const struct ew_grid_column *columns, uint32_t column_count)
{
    *grid = (struct ew_grid){.columns = columns, .column_count = column_count};
    if (column_count == 0 || column_count > EW_GRID_COLUMNS_MAX)
        grid->error = ETWATCH_EINVAL;
    ew_buf_init(&grid->text, TEXT_MAX, NULL, NULL);
}

void ew_grid_done(struct ew_grid *grid)
{
    ew_buf_done(&grid->text);
    ew_free(grid->ends);
    grid->ends = NULL;
    grid->cell_count = grid->cell_size = 0;
}

void ew_grid_clear(struct ew_grid *grid)
{
    grid->text.len = 0;
    grid->cell_count = 0;
}

struct ew_buf *ew_grid_cell(struct ew_grid *grid)
{
    return &grid->text;
}

void ew_grid_end(struct ew_grid *grid)
{
    if (grid->cell_count == grid->cell_size) {
        size_t size = grid->cell_size == 0 ? 256 : grid->cell_size * 2;
        uint32_t *ends = ew_realloc_array(grid->ends, size, sizeof *ends);
        if (ends == NULL) {
            grid->error = ETWATCH_ENOMEM;
            return;
        }
        grid->ends = ends;
        grid->cell_size = size;
    }
    grid->ends[grid->cell_count++] = (uint32_t)grid->text.len;
}

static const char *cell_text(const struct ew_grid *grid, size_t cell, size_t *ret_len)
{
    size_t from = cell == 0 ? 0 : grid->ends[cell - 1];
    *ret_len = grid->ends[cell] - from;
    return *ret_len == 0 ? "" : grid->text.data + from;
}

/* Renders the cell into scratch; returns its width in columns. */
static size_t render(struct ew_buf *scratch, const struct ew_grid_column *column, const char *text,
                     size_t len)
{
    scratch->len = 0;
    return ew_buf_screen(scratch, text, len, column->max_width == 0 ? 400 : column->max_width);
}

static void measure(struct ew_grid *grid, struct ew_buf *scratch, size_t *widths)
{
    for (uint32_t c = 0; c < grid->column_count; c++) {
        const struct ew_grid_column *column = &grid->columns[c];
        widths[c] = render(scratch, column, column->heading, strlen(column->heading));
        if (widths[c] < column->min_width)
            widths[c] = column->min_width;
    }
    for (size_t i = 0; i < grid->cell_count; i++) {
        size_t len, column = i % grid->column_count;
        const char *text = cell_text(grid, i, &len);
        size_t used = render(scratch, &grid->columns[column], text, len);
        if (used > widths[column])
            widths[column] = used;
    }
}

static void put_cell(struct ew_buf *line, struct ew_buf *scratch,
                     const struct ew_grid_column *column, size_t width, const char *text,
                     size_t len, bool last)
{
    size_t used = render(scratch, column, text, len);
    size_t pad = used < width ? width - used : 0;
    if (!column->left)
        ew_buf_repeat(line, ' ', pad);
    ew_buf_bytes(line, scratch->data, scratch->len);
    if (!last)
        ew_buf_repeat(line, ' ', (column->left ? pad : 0) + GAP);
}

static void put_line(const struct ew_grid *grid, struct ew_buf *out, struct ew_buf *line,
                     const char *style)
{
    while (line->len > 0 && line->data[line->len - 1] == ' ')
        line->len--;
    if (style != NULL && grid->color)
        ew_buf_text(out, style);
    if (grid->width > 0)
        (void)ew_buf_screen(out, line->data, line->len, grid->width);
    else
        ew_buf_bytes(out, line->data, line->len);
    if (style != NULL && grid->color)
        ew_buf_text(out, "\033[0m");
    ew_buf_char(out, '\n');
}

int ew_grid_print(struct ew_grid *grid, struct ew_buf *out, size_t max_rows)
{
    size_t widths[EW_GRID_COLUMNS_MAX];
    struct ew_buf line, scratch;
    if (grid->error != 0 || grid->text.error != 0)
        return grid->error != 0 ? grid->error : grid->text.error;
    ew_buf_init(&line, 0, NULL, NULL);
    ew_buf_init(&scratch, 0, NULL, NULL);
    measure(grid, &scratch, widths);
    uint32_t columns = grid->column_count;
    size_t end = 0;
    for (uint32_t c = 0; c < columns; c++) {
        const char *heading = grid->columns[c].heading;
        end += widths[c] + GAP;
        grid->heading_ends[c] = (uint32_t)end;
        put_cell(&line, &scratch, &grid->columns[c], widths[c], heading, strlen(heading),
                 c + 1 == columns);
    }
    put_line(grid, out, &line, "\033[1m");
    size_t rows = grid->cell_count / columns;
    if (max_rows > 0 && rows > max_rows)
        rows = max_rows;
    for (size_t row = 0; row < rows; row++) {
        line.len = 0;
        for (uint32_t c = 0; c < columns; c++) {
            size_t len;
            const char *text = cell_text(grid, row * columns + c, &len);
            put_cell(&line, &scratch, &grid->columns[c], widths[c], text, len, c + 1 == columns);
        }
        put_line(grid, out, &line, row + 1 == grid->marked_row ? "\033[7m" : NULL);
        ew_buf_end_line(out);
    }
    int rc = line.error != 0 ? line.error : scratch.error != 0 ? scratch.error : out->error;
    ew_buf_done(&line);
    ew_buf_done(&scratch);
    return rc;
}
