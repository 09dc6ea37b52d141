/* SPDX-License-Identifier: MIT */
/*
 * The table of devices: a row for each reading of each device, and one for each problem. Metrics
 * come from the list of device metrics, so that a metric added there has a column here. The names
 * of the metrics that are estimates are one text with commas, because they differ from row to row.
 */
#include "arrow/device_rows.h"

#include <stdio.h>
#include <string.h>

#include <etwatch/arrow.h>

#include "sink/device.h"

enum { KIND, DRIVER, INDEX, ID, NAME, T_NS, DT_NS, METRICS };
enum { ESTIMATED = METRICS + ETWATCH_DEVICE_METRIC_COUNT, PROBLEM };

static const struct {
    const char *name;
    uint8_t type;
    bool nullable;
} specs[METRICS] = {
    [KIND] = {"kind", EW_COLUMN_DICT, true},   [DRIVER] = {"driver", EW_COLUMN_DICT, true},
    [INDEX] = {"index", EW_COLUMN_U32, true},  [ID] = {"id", EW_COLUMN_DICT, true},
    [NAME] = {"name", EW_COLUMN_DICT, true},   [T_NS] = {"t_ns", EW_COLUMN_TIME, false},
    [DT_NS] = {"dt_ns", EW_COLUMN_I64, false},
};

int ew_arrow_device_rows_init(struct ew_columns *columns, uint32_t flags, uint32_t batch_rows)
{
    struct ew_layout *layout = NULL;
    bool timestamps = (flags & ETWATCH_TABLE_TIMESTAMPS) != 0;
    int rc = ew_layout_new(batch_rows, &layout);
    for (uint32_t i = 0; i < METRICS && rc == 0; i++) {
        bool number = specs[i].type == EW_COLUMN_TIME && !timestamps;
        rc = ew_layout_add(layout, specs[i].name, number ? EW_COLUMN_I64 : specs[i].type,
                           specs[i].nullable);
    }
    for (uint32_t i = 0; i < ETWATCH_DEVICE_METRIC_COUNT && rc == 0; i++)
        rc = ew_layout_add(layout, ew_sink_device_columns[i].name,
                           ew_sink_device_columns[i].is_double ? EW_COLUMN_F64 : EW_COLUMN_I64,
                           true);
    if (rc == 0)
        rc = ew_layout_add(layout, "estimated", EW_COLUMN_DICT, false);
    if (rc == 0)
        rc = ew_layout_add(layout, "problem", EW_COLUMN_DICT, true);
    if (rc == 0)
        rc = ew_columns_init(columns, layout);
    ew_layout_unref(layout);
    return rc;
}

static void put_metrics(struct ew_columns *columns, const struct etwatch_device *device)
{
    char estimated[32 * ETWATCH_DEVICE_METRIC_COUNT] = "";
    size_t len = 0;
    for (uint32_t i = 0; i < ETWATCH_DEVICE_METRIC_COUNT; i++) {
        const struct ew_sink_device_column *column = &ew_sink_device_columns[i];
        uint64_t count = 0;
        if (!column->is_double)
            memcpy(&count, (const char *)device + column->offset, sizeof count);
        if (etwatch_device_has(device, i) && column->is_double)
            ew_columns_f64(columns, METRICS + i, ew_sink_device_number(device, i));
        else if (etwatch_device_has(device, i))
            ew_columns_u64(columns, METRICS + i, count);
        if (etwatch_metric_set_has(&device->estimated, i) && len < sizeof estimated)
            len += (size_t)snprintf(estimated + len, sizeof estimated - len, "%s%s",
                                    len > 0 ? "," : "", column->name);
    }
    ew_columns_dict(columns, ESTIMATED, estimated);
}

void ew_arrow_device_rows_put(struct ew_columns *columns, const struct etwatch_device *device)
{
    bool problem = (device->flags & ETWATCH_DEVICE_PROBLEM) != 0;
    if (!ew_columns_begin(columns))
        return;
    ew_columns_dict(columns, KIND, ew_sink_device_kind(device));
    ew_columns_dict(columns, DRIVER, device->driver);
    if (!problem)
        ew_columns_u32(columns, INDEX, device->index);
    ew_columns_dict(columns, ID, device->id);
    ew_columns_dict(columns, NAME, device->name);
    ew_columns_u64(columns, T_NS, device->t_ns);
    ew_columns_u64(columns, DT_NS, device->dt_ns);
    put_metrics(columns, device);
    if (problem && (device->flags & ETWATCH_DEVICE_RECOVERED) == 0)
        ew_columns_dict(columns, PROBLEM, device->problem);
    ew_columns_end(columns);
}
