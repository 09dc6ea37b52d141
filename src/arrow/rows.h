/* SPDX-License-Identifier: MIT */
/* The public structs as rows: the columns of their tables, and how a row is filled. */
#ifndef EW_ARROW_ROWS_H
#define EW_ARROW_ROWS_H

#include <etwatch/arrow.h>

#include "arrow/columns.h"

/* A table of samples and the indexes of its columns. */
struct ew_sample_rows {
    struct ew_columns columns;
    int16_t which[32];                    /* by enum ew_field_id: its column, or -1 */
    int16_t metric[ETWATCH_METRIC_COUNT]; /* likewise */
    int16_t estimated;
    struct etwatch_metric_set metrics; /* metrics that have a column */
};

/* table: PROCESSES, THREADS, SAMPLES or THREAD_SAMPLES; flags: enum etwatch_table_flag.
 * with_estimated: totals of recordings have a column that names the estimated metrics. */
int ew_arrow_sample_rows_init(struct ew_sample_rows *rows, uint32_t table, uint32_t flags,
                              bool with_estimated, uint32_t batch_rows);
void ew_arrow_sample_rows_done(struct ew_sample_rows *rows);
/* Adds one row; errors are kept in columns. estimated: NULL = none. */
void ew_arrow_sample_rows_put(struct ew_sample_rows *rows, const struct etwatch_sample *sample,
                              const struct etwatch_metric_set *estimated);

/* Scheduler events. */
int ew_arrow_event_rows_init(struct ew_columns *columns, uint32_t flags, uint32_t batch_rows);
void ew_arrow_event_rows_put(struct ew_columns *columns, const struct etwatch_event *event);

int ew_class_rows_init(struct ew_columns *columns, uint32_t batch_rows);
void ew_class_rows_put(struct ew_columns *columns, const struct etwatch_trace_class *klass);

int ew_image_rows_init(struct ew_columns *columns, uint32_t flags, uint32_t batch_rows);
void ew_image_rows_put(struct ew_columns *columns, const struct etwatch_trace_image *image);

/* The columns of every recorded event, in this order; `fields` and `payload` follow. */
enum ew_record_column {
    EW_RECORD_T_NS,
    EW_RECORD_CPU,
    EW_RECORD_PID,
    EW_RECORD_TID,
    EW_RECORD_NAME,
    EW_RECORD_PROVIDER,
    EW_RECORD_EVENT,
    EW_RECORD_ID,
    EW_RECORD_OPCODE,
    EW_RECORD_VERSION,
    EW_RECORD_HEADER_PID,
    EW_RECORD_HEADER_TID,
    EW_RECORD_STATE,
    EW_RECORD_COLUMNS,
};
int ew_arrow_record_layout(uint32_t flags, uint32_t batch_rows, struct ew_layout **ret_layout);
/* Fills these columns of the row that the caller has begun and will end. */
void ew_arrow_record_rows_put(struct ew_columns *columns, const struct etwatch_trace_event *event);

#endif
