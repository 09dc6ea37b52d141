/* SPDX-License-Identifier: MIT */
/*
 * doctor --metrics: which metrics are available on this machine, from which source, how exact, and
 * why not. Each source is opened for a moment with all metrics selected; those that it then reports
 * as available are, and the table of metrics explains the rest.
 */
#include "cli/cli.h"

#include <string.h>

#include <etwatch/system.h>

enum { SOURCES_MAX = 2, REASON_SIZE = 200 };

struct column {
    uint32_t source;  /* enum etwatch_source */
    uint32_t backend; /* enum etwatch_backend */
    bool works;
    struct etwatch_metric_set available, estimated;
    char reasons[ETWATCH_METRIC_COUNT][REASON_SIZE];
};

static void copy_text(char *to, const char *text)
{
    size_t len = strlen(text) < REASON_SIZE ? strlen(text) : REASON_SIZE - 1;
    memcpy(to, text, len);
    to[len] = '\0';
}

/* Opens the source and reads its metrics. False: this system does not have this source. */
static bool probe(struct column *column, const char *proc_root)
{
    struct etwatch_monitor *monitor = NULL;
    struct etwatch_error_info err = {.size = sizeof err};
    struct etwatch_meta meta = {.size = sizeof meta};
    struct etwatch_config config = {
        .size = sizeof config,
        .source = column->source,
        .flags = ETWATCH_CONFIG_ALL | ETWATCH_CONFIG_NO_FALLBACK,
        .proc_root = proc_root,
    };
    (void)etwatch_metrics_named("all", &config.metrics);
    int rc = etwatch_monitor_new(&config, NULL, &monitor, &err);
    if (rc == ETWATCH_ENOTSUP)
        return false;
    if (rc == 0)
        rc = etwatch_monitor_open(monitor, &err);
    if (rc == 0)
        rc = etwatch_monitor_meta(monitor, &meta);
    column->works = rc == 0;
    if (rc == 0)
        column->available = meta.available;
    column->estimated = meta.estimated;
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++) {
        const char *reason =
            column->works ? etwatch_monitor_unavailable_reason(monitor, i) : err.message;
        copy_text(column->reasons[i], reason != NULL ? reason : "");
    }
    etwatch_monitor_free(monitor);
    return true;
}

static uint32_t exactness_of(const struct column *column, uint32_t metric)
{
    struct etwatch_metric_backend backend = {.size = sizeof backend};
    (void)etwatch_metric_backend(metric, column->backend, &backend);
    if (!etwatch_metric_set_has(&column->available, metric))
        return ETWATCH_EXACTNESS_UNAVAILABLE;
    return etwatch_metric_set_has(&column->estimated, metric) ? ETWATCH_EXACTNESS_ESTIMATED
                                                              : backend.exactness;
}

static const char *how_of(const struct column *column, uint32_t metric)
{
    struct etwatch_metric_backend backend = {.size = sizeof backend};
    (void)etwatch_metric_backend(metric, column->backend, &backend);
    return column->reasons[metric][0] != '\0' ? column->reasons[metric] : backend.how;
}

/* ------------------------------------------------------------- the whole machine */

/* The same for every source. */
struct machine {
    struct etwatch_system_reader *reader;
    uint32_t os;
    struct etwatch_metric_set has, estimated;
};

/* Counters are known from the second reading on; the sources are probed between the two. */
static void begin_machine(struct machine *machine, const char *proc_root)
{
    struct etwatch_system system = {.size = sizeof system};
    memset(machine, 0, sizeof *machine);
    if (etwatch_system_open(proc_root, &machine->reader) == 0)
        (void)etwatch_system_read(machine->reader, &system);
}

static void end_machine(struct machine *machine, bool windows)
{
    struct etwatch_system system = {.size = sizeof system};
    machine->os = windows ? ETWATCH_SYSTEM_WINDOWS : ETWATCH_SYSTEM_LINUX;
    if (machine->reader != NULL && etwatch_system_read(machine->reader, &system) == 0) {
        machine->has = system.has;
        machine->estimated = system.estimated;
    }
    etwatch_system_close(machine->reader);
}

static void system_cell(const struct machine *machine, uint32_t metric,
                        struct etwatch_metric_backend *ret_backend)
{
    ret_backend->size = sizeof *ret_backend;
    (void)etwatch_system_backend(metric, machine->os, ret_backend);
    if (etwatch_metric_set_has(&machine->estimated, metric))
        ret_backend->exactness = ETWATCH_EXACTNESS_ESTIMATED;
    if (etwatch_metric_set_has(&machine->has, metric))
        return;
    ret_backend->exactness = ETWATCH_EXACTNESS_UNAVAILABLE;
    ret_backend->how = "this system does not report it";
}

static void put_json_machine(struct ew_buf *out, const struct machine *machine)
{
    const char *os = etwatch_system_os_name(machine->os);
    for (uint32_t i = 0; i < ETWATCH_SYSTEM_METRIC_COUNT; i++) {
        struct etwatch_metric_info info = {.size = sizeof info};
        struct etwatch_metric_backend backend;
        (void)etwatch_system_info(i, &info);
        system_cell(machine, i, &backend);
        const char *exactness = etwatch_exactness_name(backend.exactness);
        ew_buf_text(out, "{\"type\":\"system_metric\",\"name\":");
        ew_buf_json_string(out, info.name, strlen(info.name));
        ew_buf_text(out, ",\"group\":\"system\",\"sources\":{");
        ew_buf_json_string(out, os, strlen(os));
        ew_buf_text(out, ":{\"exactness\":");
        ew_buf_json_string(out, exactness, strlen(exactness));
        ew_buf_text(out, ",\"how\":");
        ew_buf_json_string(out, backend.how, strlen(backend.how));
        ew_buf_text(out, "}}}\n");
    }
}

/* -------------------------------------------------------------------------- output */

/* The metrics that some source measures; the others are not shown. */
static struct etwatch_metric_set measured_metrics(void)
{
    struct etwatch_metric_set metrics = {{0}};
    (void)etwatch_metrics_named("all", &metrics);
    return metrics;
}

static void put_json(struct ew_buf *out, const struct column *columns, uint32_t count)
{
    struct etwatch_metric_set measured = measured_metrics();
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++) {
        struct etwatch_metric_info info = {.size = sizeof info};
        if (!etwatch_metric_set_has(&measured, i) || etwatch_metric_info(i, &info) != 0)
            continue;
        ew_buf_text(out, "{\"type\":\"metric\",\"name\":");
        ew_buf_json_string(out, info.name, strlen(info.name));
        ew_buf_text(out, ",\"group\":");
        ew_buf_json_string(out, info.group, strlen(info.group));
        ew_buf_text(out, ",\"sources\":{");
        for (uint32_t c = 0; c < count; c++) {
            const char *name = etwatch_source_name(columns[c].source);
            const char *exactness = etwatch_exactness_name(exactness_of(&columns[c], i));
            const char *how = how_of(&columns[c], i);
            ew_buf_text(out, c == 0 ? "" : ",");
            ew_buf_json_string(out, name, strlen(name));
            ew_buf_text(out, ":{\"exactness\":");
            ew_buf_json_string(out, exactness, strlen(exactness));
            ew_buf_text(out, ",\"how\":");
            ew_buf_json_string(out, how, strlen(how));
            ew_buf_char(out, '}');
        }
        ew_buf_text(out, "}}\n");
    }
}

static void put_cell(struct ew_grid *grid, const char *text)
{
    ew_buf_text(ew_grid_cell(grid), text);
    ew_grid_end(grid);
}

/* Why the first source does not have this metric, else why the second does not. A source that does
 * not work has the same reason for every metric, which is printed once below the table: it counts
 * only if no source works. */
static const char *reason(const struct column *columns, uint32_t count, uint32_t metric)
{
    bool any = false;
    for (uint32_t c = 0; c < count; c++)
        any = any || columns[c].works;
    for (uint32_t c = 0; c < count; c++)
        if ((columns[c].works || !any) &&
            exactness_of(&columns[c], metric) == ETWATCH_EXACTNESS_UNAVAILABLE)
            return how_of(&columns[c], metric);
    return "";
}

static void put_broken(struct ew_buf *out, const struct column *columns, uint32_t count)
{
    for (uint32_t c = 0; c < count; c++) {
        if (columns[c].works)
            continue;
        ew_buf_text(out, etwatch_source_name(columns[c].source));
        ew_buf_text(out, " does not work here: ");
        ew_buf_text(out, columns[c].reasons[0]);
        ew_buf_char(out, '\n');
    }
}

static void put_machine_rows(struct ew_grid *grid, const struct machine *machine, uint32_t count)
{
    for (uint32_t i = 0; i < ETWATCH_SYSTEM_METRIC_COUNT; i++) {
        struct etwatch_metric_info info = {.size = sizeof info};
        struct etwatch_metric_backend backend;
        (void)etwatch_system_info(i, &info);
        system_cell(machine, i, &backend);
        put_cell(grid, info.group);
        put_cell(grid, info.name);
        for (uint32_t c = 0; c < count; c++)
            put_cell(grid, etwatch_exactness_name(backend.exactness));
        put_cell(grid, backend.exactness == ETWATCH_EXACTNESS_UNAVAILABLE ? backend.how : "");
    }
}

static void put_table(struct ew_buf *out, const struct column *columns, uint32_t count,
                      const struct machine *machine)
{
    struct ew_grid_column headings[SOURCES_MAX + 3] = {{.heading = "GROUP", .left = true},
                                                       {.heading = "NAME", .left = true}};
    struct ew_grid grid;
    struct etwatch_metric_set measured = measured_metrics();
    for (uint32_t c = 0; c < count; c++)
        headings[2 + c] = (struct ew_grid_column){.heading = etwatch_source_name(columns[c].source),
                                                  .left = true};
    headings[2 + count] = (struct ew_grid_column){.heading = "REASON", .left = true};
    ew_grid_init(&grid, headings, 3 + count);
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++) {
        struct etwatch_metric_info info = {.size = sizeof info};
        if (!etwatch_metric_set_has(&measured, i) || etwatch_metric_info(i, &info) != 0)
            continue;
        put_cell(&grid, info.group);
        put_cell(&grid, info.name);
        for (uint32_t c = 0; c < count; c++)
            put_cell(&grid, etwatch_exactness_name(exactness_of(&columns[c], i)));
        put_cell(&grid, reason(columns, count, i));
    }
    put_machine_rows(&grid, machine, count);
    (void)ew_grid_print(&grid, out, 0);
    ew_grid_done(&grid);
    put_broken(out, columns, count);
}

bool ew_cli_doctor_metrics(const struct ew_options *options, struct ew_buf *out)
{
    static const struct {
        uint32_t source, backend;
    } kinds[] = {
        {ETWATCH_SOURCE_EBPF, ETWATCH_BACKEND_EBPF},
        {ETWATCH_SOURCE_ETW, ETWATCH_BACKEND_ETW},
        {ETWATCH_SOURCE_POLL, ETWATCH_BACKEND_POLL_LINUX},
    };
    struct column columns[SOURCES_MAX];
    uint32_t count = 0;
    bool windows = false, any = false;
    struct machine machine;
    begin_machine(&machine, options->proc_root);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && count < SOURCES_MAX; i++) {
        bool poll = kinds[i].source == ETWATCH_SOURCE_POLL;
        if (!poll && options->proc_root != NULL)
            continue;
        memset(&columns[count], 0, sizeof columns[count]);
        columns[count].source = kinds[i].source;
        columns[count].backend = poll && windows ? ETWATCH_BACKEND_POLL_WINDOWS : kinds[i].backend;
        if (!probe(&columns[count], options->proc_root))
            continue;
        windows = windows || kinds[i].source == ETWATCH_SOURCE_ETW;
        any = any || columns[count].works;
        count++;
    }
    end_machine(&machine, windows);
    if (options->json) {
        put_json(out, columns, count);
        put_json_machine(out, &machine);
    } else {
        put_table(out, columns, count, &machine);
    }
    return any;
}
