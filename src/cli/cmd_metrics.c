/* SPDX-License-Identifier: MIT */
/* metrics: the table of metrics of the library, for people, scripts and docs/metrics.md. */
#include "cli/cli.h"

#include <string.h>

#include <etwatch/system.h>

/* The metrics that some source measures; the others are not shown. */
static struct etwatch_metric_set measured_metrics(void)
{
    struct etwatch_metric_set metrics = {{0}};
    (void)etwatch_metrics_named("all", &metrics);
    return metrics;
}

static void put_json_text(struct ew_buf *out, const char *key, const char *text)
{
    ew_buf_text(out, key);
    if (text == NULL)
        ew_buf_text(out, "null");
    else
        ew_buf_json_string(out, text, strlen(text));
}

static void put_json_backend(struct ew_buf *out, const char *key, const char *name,
                             const struct etwatch_metric_backend *backend)
{
    put_json_text(out, key, name);
    put_json_text(out, ":{\"exactness\":", etwatch_exactness_name(backend->exactness));
    ew_buf_text(out, ",\"on_request\":");
    ew_buf_text(out, backend->on_request != 0 ? "true" : "false");
    put_json_text(out, ",\"how\":", backend->how);
    ew_buf_char(out, '}');
}

static void put_json_info(struct ew_buf *out, const char *type,
                          const struct etwatch_metric_info *info)
{
    put_json_text(out, "{\"type\":", type);
    put_json_text(out, ",\"name\":", info->name);
    put_json_text(out, ",\"group\":", info->group);
    put_json_text(out, ",\"kind\":", info->kind);
    put_json_text(out, ",\"unit\":", info->unit);
    put_json_text(out, ",\"help\":", info->help);
    put_json_text(out, ",\"prometheus\":", info->prometheus);
    put_json_text(out, ",\"prometheus_labels\":", info->prometheus_labels);
    put_json_text(out, ",\"otlp\":", info->otlp);
    put_json_text(out, ",\"otlp_attribute\":", info->otlp_attribute);
    put_json_text(out, ",\"otlp_unit\":", info->otlp_unit);
    put_json_text(out, ",\"otlp_linux\":", info->otlp_linux);
    put_json_text(out, ",\"otlp_linux_unit\":", info->otlp_linux_unit);
    ew_buf_text(out, ",\"scale\":");
    (void)ew_buf_fixed(out, info->scale, 9);
    ew_buf_text(out, ",\"default_hz\":");
    if (info->default_hz > 0)
        (void)ew_buf_fixed(out, info->default_hz, 1);
    else
        ew_buf_text(out, "null");
    ew_buf_text(out, ",\"sources\":{");
}

static void put_json(struct ew_buf *out, const struct etwatch_metric_info *info)
{
    put_json_info(out, "metric", info);
    for (uint32_t i = 0; i < ETWATCH_BACKEND_COUNT; i++) {
        struct etwatch_metric_backend backend = {.size = sizeof backend};
        (void)etwatch_metric_backend(info->metric, i, &backend);
        put_json_backend(out, i == 0 ? "" : ",", etwatch_backend_name(i), &backend);
    }
    ew_buf_text(out, "}}\n");
}

/* Metrics of the whole machine are the same for every source and depend on the system. */
static void put_json_system(struct ew_buf *out, const struct etwatch_metric_info *info)
{
    put_json_info(out, "system_metric", info);
    for (uint32_t i = 0; i < ETWATCH_SYSTEM_OS_COUNT; i++) {
        struct etwatch_metric_backend backend = {.size = sizeof backend};
        (void)etwatch_system_backend(info->metric, i, &backend);
        put_json_backend(out, i == 0 ? "" : ",", etwatch_system_os_name(i), &backend);
    }
    ew_buf_text(out, "}}\n");
}

static void put_csv_cell(struct ew_buf *out, const char *text, char end)
{
    if (text != NULL)
        ew_buf_csv_field(out, text, strlen(text));
    ew_buf_char(out, end);
}

static void put_csv_header(struct ew_buf *out)
{
    ew_buf_text(out, "name,group,kind,unit,help,prometheus,prometheus_labels,otlp,otlp_attribute,"
                     "otlp_unit,otlp_linux,otlp_linux_unit");
    for (uint32_t i = 0; i < ETWATCH_BACKEND_COUNT; i++) {
        ew_buf_char(out, ',');
        ew_buf_text(out, etwatch_backend_name(i));
        ew_buf_char(out, ',');
        ew_buf_text(out, etwatch_backend_name(i));
        ew_buf_text(out, "_how");
    }
    ew_buf_char(out, '\n');
}

static void put_csv_info(struct ew_buf *out, const struct etwatch_metric_info *info)
{
    const char *const cells[] = {
        info->name,
        info->group,
        info->kind,
        info->unit,
        info->help,
        info->prometheus,
        info->prometheus_labels,
        info->otlp,
        info->otlp_attribute,
        info->otlp_unit,
        info->otlp_linux,
        info->otlp_linux_unit,
    };
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++)
        put_csv_cell(out, cells[i], ',');
}

static void put_csv(struct ew_buf *out, const struct etwatch_metric_info *info)
{
    put_csv_info(out, info);
    for (uint32_t i = 0; i < ETWATCH_BACKEND_COUNT; i++) {
        struct etwatch_metric_backend backend = {.size = sizeof backend};
        (void)etwatch_metric_backend(info->metric, i, &backend);
        put_csv_cell(out, etwatch_exactness_name(backend.exactness), ',');
        put_csv_cell(out, backend.how, i + 1 < ETWATCH_BACKEND_COUNT ? ',' : '\n');
    }
}

/* The system of each backend, for metrics of the whole machine. */
static uint32_t os_of(uint32_t backend)
{
    return backend == ETWATCH_BACKEND_ETW || backend == ETWATCH_BACKEND_POLL_WINDOWS
               ? ETWATCH_SYSTEM_WINDOWS
           : backend == ETWATCH_BACKEND_EBPF || backend == ETWATCH_BACKEND_POLL_LINUX
               ? ETWATCH_SYSTEM_LINUX
               : ETWATCH_SYSTEM_OS_COUNT;
}

static void system_backend(uint32_t metric, uint32_t backend,
                           struct etwatch_metric_backend *ret_backend)
{
    *ret_backend = (struct etwatch_metric_backend){
        .size = sizeof *ret_backend,
        .exactness = ETWATCH_EXACTNESS_UNAVAILABLE,
        .how = "a recording has processes only; its report adds them up",
    };
    (void)etwatch_system_backend(metric, os_of(backend), ret_backend);
}

static void put_csv_system(struct ew_buf *out, const struct etwatch_metric_info *info)
{
    put_csv_info(out, info);
    for (uint32_t i = 0; i < ETWATCH_BACKEND_COUNT; i++) {
        struct etwatch_metric_backend backend;
        system_backend(info->metric, i, &backend);
        put_csv_cell(out, etwatch_exactness_name(backend.exactness), ',');
        put_csv_cell(out, backend.how, i + 1 < ETWATCH_BACKEND_COUNT ? ',' : '\n');
    }
}

/* ------------------------------------------------------------------------ for people */

enum { FIRST_BACKEND = 3, COLUMN_COUNT = FIRST_BACKEND + ETWATCH_BACKEND_COUNT };

static void put_cell(struct ew_grid *grid, const char *text, const char *mark)
{
    struct ew_buf *cell = ew_grid_cell(grid);
    ew_buf_text(cell, text);
    ew_buf_text(cell, mark);
    ew_grid_end(grid);
}

static void put_row(struct ew_grid *grid, const struct etwatch_metric_info *info, bool system)
{
    put_cell(grid, info->group, "");
    put_cell(grid, info->name, "");
    put_cell(grid, info->unit, "");
    for (uint32_t i = 0; i < ETWATCH_BACKEND_COUNT; i++) {
        struct etwatch_metric_backend backend = {.size = sizeof backend};
        if (system)
            system_backend(info->metric, i, &backend);
        else
            (void)etwatch_metric_backend(info->metric, i, &backend);
        put_cell(grid,
                 backend.exactness == ETWATCH_EXACTNESS_UNAVAILABLE
                     ? "-"
                     : etwatch_exactness_name(backend.exactness),
                 backend.on_request != 0 ? " *" : "");
    }
}

static void put_table(struct ew_buf *out)
{
    struct ew_grid_column columns[COLUMN_COUNT] = {{.heading = "GROUP", .left = true},
                                                   {.heading = "NAME", .left = true},
                                                   {.heading = "UNIT", .left = true}};
    struct ew_grid grid;
    struct etwatch_metric_set measured = measured_metrics();
    for (uint32_t i = 0; i < ETWATCH_BACKEND_COUNT; i++)
        columns[FIRST_BACKEND + i] =
            (struct ew_grid_column){.heading = etwatch_backend_name(i), .left = true};
    ew_grid_init(&grid, columns, COLUMN_COUNT);
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++) {
        struct etwatch_metric_info info = {.size = sizeof info};
        if (etwatch_metric_set_has(&measured, i) && etwatch_metric_info(i, &info) == 0)
            put_row(&grid, &info, false);
    }
    for (uint32_t i = 0; i < ETWATCH_SYSTEM_METRIC_COUNT; i++) {
        struct etwatch_metric_info info = {.size = sizeof info};
        if (etwatch_system_info(i, &info) == 0)
            put_row(&grid, &info, true);
    }
    (void)ew_grid_print(&grid, out, 0);
    ew_grid_done(&grid);
    ew_buf_text(out,
                "\n* only on request: --metrics NAME, its group, or all\n"
                "The group system is the whole machine (stat --system-stats), with any source.\n"
                "--json shows how each metric is obtained.\n");
}

int ew_cmd_metrics(const struct ew_options *options)
{
    struct ew_output output;
    struct ew_buf out;
    struct etwatch_metric_set measured = measured_metrics();
    ew_output_init(&output, -1, NULL);
    ew_buf_init(&out, 0, ew_output_write, &output);
    if (options->csv)
        put_csv_header(&out);
    for (uint32_t i = 0; (options->json || options->csv) && i < ETWATCH_METRIC_COUNT; i++) {
        struct etwatch_metric_info info = {.size = sizeof info};
        if (!etwatch_metric_set_has(&measured, i) || etwatch_metric_info(i, &info) != 0)
            continue;
        if (options->json)
            put_json(&out, &info);
        else
            put_csv(&out, &info);
    }
    for (uint32_t i = 0; (options->json || options->csv) && i < ETWATCH_SYSTEM_METRIC_COUNT; i++) {
        struct etwatch_metric_info info = {.size = sizeof info};
        (void)etwatch_system_info(i, &info);
        if (options->json)
            put_json_system(&out, &info);
        else
            put_csv_system(&out, &info);
    }
    if (!options->json && !options->csv)
        put_table(&out);
    int rc = ew_buf_flush(&out);
    ew_buf_done(&out);
    if (rc < 0 && !ew_output_reader_gone(&output)) {
        ew_print_error("%s", etwatch_strerror(rc));
        return EW_EXIT_FAILED;
    }
    return EW_EXIT_OK;
}
