/* SPDX-License-Identifier: MIT */
/* Spans and operators as rows; the columns have the names of the JSON output. */
#ifndef EW_ARROW_SPAN_ROWS_H
#define EW_ARROW_SPAN_ROWS_H

#include <etwatch/span.h>

#include "arrow/columns.h"
#include "base/buf.h"

/* A table of spans or of operators. */
struct ew_span_rows {
    struct ew_columns columns;
    struct ew_buf scratch; /* the causes of a row */
    uint32_t first;        /* column of the first value that both tables have */
};

/* flags: enum etwatch_table_flag. done may be called after a failure, and on zeroed storage. */
int ew_arrow_span_rows_init(struct ew_span_rows *rows, bool operators, uint32_t flags,
                            uint32_t batch_rows);
void ew_arrow_span_rows_done(struct ew_span_rows *rows);
/* Adds one row; errors are kept in columns. */
void ew_arrow_span_rows_put(struct ew_span_rows *rows, const struct etwatch_span *span);
void ew_arrow_operator_rows_put(struct ew_span_rows *rows, const struct etwatch_operator *op);

#endif
