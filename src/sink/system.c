/* SPDX-License-Identifier: MIT */
/* Pure functions that format a system reading as JSON. Tables and CSV have no rows for it. */
#include <etwatch/system.h>

#include "sink/json.h"
#include "sink/sink.h"

static void put_double(struct ew_buf *out, double value)
{
    ew_json_double(out, value);
}

static void put_u64(struct ew_buf *out, uint64_t value)
{
    ew_buf_u64(out, value);
}

#define PUT(type) _Generic((type)0, double : put_double, uint64_t : put_u64)

static void put_estimated(struct ew_buf *out, const struct etwatch_metric_set *estimated)
{
    bool any = false;
    EW_JSON(out, ",\"estimated\":[");
    for (uint32_t i = 0; i < ETWATCH_SYSTEM_METRIC_COUNT; i++) {
        struct etwatch_metric_info info = {.size = sizeof info};
        if (!etwatch_metric_set_has(estimated, i) || etwatch_system_info(i, &info) != 0)
            continue;
        ew_buf_text(out, any ? ",\"" : "\"");
        ew_buf_text(out, info.name);
        ew_buf_char(out, '"');
        any = true;
    }
    ew_buf_char(out, ']');
}

void ew_jsonl_system(struct etwatch_sink *sink, const struct etwatch_system *system)
{
    struct ew_buf *out = &sink->out;
    EW_JSON(out, "{\"type\":\"system\",\"t_ns\":");
    ew_buf_u64(out, system->t_ns);
    EW_JSON(out, ",\"dt_ns\":");
    ew_buf_u64(out, system->dt_ns);
#define ETWATCH_X(name, type, kind)                   \
    EW_JSON(out, ",\"" #name "\":");                  \
    if (etwatch_system_has(system, ETWATCH_S_##name)) \
        PUT(type)(out, system->name);                 \
    else                                              \
        EW_JSON(out, "null");
    ETWATCH_SYSTEM_METRICS(ETWATCH_X)
#undef ETWATCH_X
    put_estimated(out, &system->estimated);
    EW_JSON(out, ",\"cpu_percents\":[");
    for (uint32_t i = 0; i < system->cpu_count; i++) {
        if (i > 0)
            ew_buf_char(out, ',');
        if (system->cpu_percents[i] < 0)
            EW_JSON(out, "null");
        else
            ew_json_double(out, system->cpu_percents[i]);
    }
    EW_JSON(out, "]}\n");
    ew_buf_end_line(out);
}
