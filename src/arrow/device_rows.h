/* SPDX-License-Identifier: MIT */
/* Readings of devices as rows; the columns have the names of the JSON output. */
#ifndef EW_ARROW_DEVICE_ROWS_H
#define EW_ARROW_DEVICE_ROWS_H

#include <etwatch/device.h>

#include "arrow/columns.h"

/* flags: enum etwatch_table_flag. */
int ew_arrow_device_rows_init(struct ew_columns *columns, uint32_t flags, uint32_t batch_rows);
/* Adds one row; errors are kept in columns. */
void ew_arrow_device_rows_put(struct ew_columns *columns, const struct etwatch_device *device);

#endif
