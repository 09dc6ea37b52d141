/* SPDX-License-Identifier: MIT */
/* The tables of metrics, read once. Every value of a sample has 64 bits, which a table of offsets
 * reaches by number. */
#include "serve/catalog.h"

#include <math.h>
#include <string.h>

#include "base/real.h"

static const uint16_t sample_offsets[] = {
#define ETWATCH_X(name, type, kind) offsetof(struct etwatch_sample, name),
    ETWATCH_METRICS(ETWATCH_X)
#undef ETWATCH_X
};

static const uint16_t system_offsets[] = {
#define ETWATCH_X(name, type, kind) offsetof(struct etwatch_system, name),
    ETWATCH_SYSTEM_METRICS(ETWATCH_X)
#undef ETWATCH_X
};

#define ETWATCH_X(name, type, kind) _Static_assert(sizeof(type) == 8, "a value has 64 bits");
ETWATCH_METRICS(ETWATCH_X)
ETWATCH_SYSTEM_METRICS(ETWATCH_X)
#undef ETWATCH_X
_Static_assert((int)ETWATCH_SYSTEM_METRIC_COUNT <= (int)EW_CATALOG_CPU, "CPUs follow the metrics");

static const struct {
    const char *name, *kind;
    bool real;
} device_metrics[] = {
#define ETWATCH_X(name, type, kind) {#name, #kind, (type)0.5 > 0},
    ETWATCH_DEVICE_METRICS(ETWATCH_X)
#undef ETWATCH_X
};

static uint8_t type_of(const struct etwatch_metric_info *info)
{
    if (strcmp(info->type, "double") == 0)
        return EW_HISTORY_DOUBLE;
    return strcmp(info->type, "i64") == 0 ? EW_HISTORY_I64 : EW_HISTORY_U64;
}

void ew_catalog_init(struct ew_catalog *catalog)
{
    memset(catalog, 0, sizeof *catalog);
    for (uint32_t m = 0; m < ETWATCH_METRIC_COUNT; m++) {
        struct etwatch_metric_info *info = &catalog->process[m];
        info->size = sizeof *info;
        (void)etwatch_metric_info(m, info);
        catalog->process_types[m] = type_of(info);
        if (strcmp(info->kind, "counter") == 0)
            etwatch_metric_set_add(&catalog->process_counters, m);
    }
    for (uint32_t m = 0; m < ETWATCH_SYSTEM_METRIC_COUNT; m++) {
        struct etwatch_metric_info *info = &catalog->system[m];
        info->size = sizeof *info;
        (void)etwatch_system_info(m, info);
        catalog->system_types[m] = type_of(info);
        if (strcmp(info->kind, "counter") == 0)
            etwatch_metric_set_add(&catalog->system_counters, m);
    }
    for (uint32_t m = 0; m < ETWATCH_DEVICE_METRIC_COUNT; m++) {
        catalog->device_types[m] = device_metrics[m].real ? EW_HISTORY_DOUBLE : EW_HISTORY_U64;
        if (strcmp(device_metrics[m].kind, "counter") == 0)
            etwatch_metric_set_add(&catalog->device_counters, m);
    }
    for (uint32_t m = EW_CATALOG_CPU; m < EW_HISTORY_VALUES; m++)
        catalog->system_types[m] = EW_HISTORY_DOUBLE;
}

const char *ew_catalog_device_name(uint32_t metric)
{
    return device_metrics[metric].name;
}

uint64_t ew_catalog_raw(const struct etwatch_sample *sample, uint32_t metric)
{
    uint64_t raw;
    memcpy(&raw, (const char *)sample + sample_offsets[metric], sizeof raw);
    return raw;
}

void ew_catalog_set_raw(struct etwatch_sample *sample, uint32_t metric, uint64_t raw)
{
    memcpy((char *)sample + sample_offsets[metric], &raw, sizeof raw);
}

uint64_t ew_catalog_system_raw(const struct etwatch_system *system, uint32_t metric)
{
    uint64_t raw;
    memcpy(&raw, (const char *)system + system_offsets[metric], sizeof raw);
    return raw;
}

double ew_catalog_number(uint8_t type, uint64_t raw)
{
    double number;
    if (type == EW_HISTORY_U64)
        return (double)raw;
    if (type == EW_HISTORY_I64)
        return (double)(int64_t)raw;
    memcpy(&number, &raw, sizeof number);
    return number;
}

uint64_t ew_catalog_sum(uint8_t type, uint64_t a, uint64_t b)
{
    uint64_t raw;
    if (type != EW_HISTORY_DOUBLE)
        return a + b;
    double sum = ew_catalog_number(type, a) + ew_catalog_number(type, b);
    memcpy(&raw, &sum, sizeof raw);
    return raw;
}

static bool is_name(const struct etwatch_metric_info *info, const char *name, size_t len)
{
    return strlen(info->name) == len && memcmp(info->name, name, len) == 0;
}

uint32_t ew_catalog_find(const struct ew_catalog *catalog, const char *name, size_t len)
{
    uint32_t m = 0;
    while (m < ETWATCH_METRIC_COUNT && !is_name(&catalog->process[m], name, len))
        m++;
    return m;
}

uint32_t ew_catalog_find_system(const struct ew_catalog *catalog, const char *name, size_t len)
{
    uint32_t m = 0;
    while (m < ETWATCH_SYSTEM_METRIC_COUNT && !is_name(&catalog->system[m], name, len))
        m++;
    return m;
}

void ew_catalog_put_json(struct ew_buf *out, double value)
{
    char text[EW_REAL_LEN];
    if (ew_raw_real(text, value, false) != NULL)
        ew_buf_text(out, text);
    else
        ew_buf_text(out, "null");
}

void ew_catalog_put_short(struct ew_buf *out, double value)
{
    if (isfinite(value) && fabs(value) < 9e15 && floor(value) == value)
        ew_buf_i64(out, (int64_t)value);
    else if (!ew_buf_fixed(out, value, 3))
        ew_catalog_put_json(out, value);
}
