/* SPDX-License-Identifier: MIT */
/* Formats a reading of a device as JSON. Tables have a line for it (table.c), CSV has none. */
#include "sink/device.h"

#include "sink/json.h"
#include "sink/sink.h"

const struct ew_sink_device_column ew_sink_device_columns[ETWATCH_DEVICE_METRIC_COUNT] = {
#define ETWATCH_X(name, type, kind)                       \
    {#name, #kind, offsetof(struct etwatch_device, name), \
     _Generic((type)0, double                             \
              : true, uint64_t                            \
              : false)},
    ETWATCH_DEVICE_METRICS(ETWATCH_X)
#undef ETWATCH_X
};

const char *ew_sink_device_kind(const struct etwatch_device *device)
{
    return etwatch_device_kind_name(device->kind);
}

double ew_sink_device_number(const struct etwatch_device *device, uint32_t metric)
{
    const char *at = (const char *)device + ew_sink_device_columns[metric].offset;
    double number = 0;
    uint64_t count = 0;
    if (ew_sink_device_columns[metric].is_double)
        memcpy(&number, at, sizeof number);
    else
        memcpy(&count, at, sizeof count);
    return ew_sink_device_columns[metric].is_double ? number : (double)count;
}

static void put_value(struct ew_buf *out, const struct etwatch_device *device, uint32_t metric)
{
    uint64_t count = 0;
    if (!etwatch_device_has(device, metric)) {
        EW_JSON(out, "null");
    } else if (ew_sink_device_columns[metric].is_double) {
        ew_json_double(out, ew_sink_device_number(device, metric));
    } else {
        memcpy(&count, (const char *)device + ew_sink_device_columns[metric].offset, sizeof count);
        ew_buf_u64(out, count);
    }
}

void ew_jsonl_device(struct etwatch_sink *sink, const struct etwatch_device *device)
{
    struct ew_buf *out = &sink->out;
    bool first = true;
    EW_JSON(out, "{\"type\":\"device\",\"kind\":");
    ew_json_text(out, etwatch_device_kind_name(device->kind));
    EW_JSON(out, ",\"driver\":");
    ew_json_text(out, device->driver);
    EW_JSON(out, ",\"index\":");
    ew_json_number_if(out, (device->flags & ETWATCH_DEVICE_PROBLEM) == 0, device->index);
    EW_JSON(out, ",\"id\":");
    ew_json_text(out, device->id);
    EW_JSON(out, ",\"name\":");
    ew_json_text(out, device->name);
    EW_JSON(out, ",\"t_ns\":");
    ew_buf_u64(out, device->t_ns);
    EW_JSON(out, ",\"dt_ns\":");
    ew_buf_u64(out, device->dt_ns);
    for (uint32_t i = 0; i < ETWATCH_DEVICE_METRIC_COUNT; i++) {
        EW_JSON(out, ",\"");
        ew_buf_text(out, ew_sink_device_columns[i].name);
        EW_JSON(out, "\":");
        put_value(out, device, i);
    }
    EW_JSON(out, ",\"estimated\":[");
    for (uint32_t i = 0; i < ETWATCH_DEVICE_METRIC_COUNT; i++) {
        if (!etwatch_metric_set_has(&device->estimated, i))
            continue;
        if (!first)
            ew_buf_char(out, ',');
        ew_json_text(out, ew_sink_device_columns[i].name);
        first = false;
    }
    EW_JSON(out, "],\"problem\":");
    ew_json_text(out, (device->flags & ETWATCH_DEVICE_RECOVERED) != 0 ? NULL : device->problem);
    EW_JSON(out, "}\n");
    ew_buf_end_line(out);
}
