/* SPDX-License-Identifier: MIT */
/*
 * The readable table: what ran within the last second (block_ms), most CPU time first, once a
 * second.
 *
 * Blocks are cut by the time in the samples, not by a clock, so that the same samples yield the
 * same text. Samples of 10 or 1000 Hz are summed up; JSON Lines and CSV contain each of them.
 */
#include "sink/sink.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/units.h"
#include "sink/columns.h"
#include "sink/fields.h"
#include "sink/report.h"

enum { ROWS_MAX = 4096, DEVICES_MAX = 64 };

/* The latest reading of a device, and its energy since the block began. */
struct device_line {
    uint32_t kind, index;
    char driver[32], id[64], name[64];
    struct etwatch_metric_set has;
    double util_percent, power_watts, temperature_celsius, clock_mhz;
    uint64_t memory_used_bytes, memory_total_bytes, energy_uj;
    bool new_since_block;
};

struct table {
    struct etwatch_sink base;
    struct ew_grid_column columns[EW_GRID_COLUMNS_MAX];
    struct ew_rollup rollup;
    uint64_t block_ns;
    uint64_t block_from_ns; /* 0: no open block */
    uint32_t width;
    ew_utc_offset utc_offset;
    uint32_t time_width; /* of windows */
    bool windows_begun;
    bool anything_shown;
    bool polled;              /* the samples of this block were */
    struct ew_report *report; /* of a recording; NULL: none */
    bool default_columns;
    struct device_line *devices; /* NULL: none yet */
    uint32_t device_count;
};

static const uint16_t default_columns[] = {
    EW_F_pid,
    EW_F_name,
    EW_F_METRIC(cpu_percent),
    EW_F_METRIC(cpu_user_ns),
    EW_F_METRIC(cpu_kernel_ns),
    EW_F_METRIC(runq_wait_ns),
    EW_F_METRIC(switches_voluntary),
    EW_F_METRIC(switches_involuntary),
    EW_F_METRIC(faults_minor),
    EW_F_METRIC(faults_major),
    EW_F_METRIC(rss_bytes),
    EW_F_METRIC(io_read_bytes),
    EW_F_METRIC(io_write_bytes),
    EW_F_METRIC(threads),
};

/* Of these those that are measured, which the meta object says, and their headings as estimates. */
static const struct {
    uint32_t metric;
    const char *estimate;
} device_columns[] = {
    {ETWATCH_M_gpu_ns, "~GPU"},
    {ETWATCH_M_gpu_memory_bytes, "~GPU-MEM"},
    {ETWATCH_M_npu_ns, "~NPU"},
    {ETWATCH_M_energy_uj, "~ENERGY"},
};

static int init(struct etwatch_sink *sink, const struct etwatch_sink_options *options,
                struct ew_error *err)
{
    struct table *self = (struct table *)sink;
    (void)err;
    if (sink->column_count == 0) {
        memcpy(sink->columns, default_columns, sizeof default_columns);
        sink->column_count = sizeof default_columns / sizeof default_columns[0];
        self->default_columns = true;
    }
    for (uint32_t i = 0; i < sink->column_count; i++)
        self->columns[i] = ew_column_for(sink->columns[i]);
    self->block_ns = (options->block_ms == 0 ? 1000u : options->block_ms) * (uint64_t)1000000;
    self->width = options->width;
    self->utc_offset = options->utc_offset_s;
    ew_rollup_init(&self->rollup, ROWS_MAX, false);
    return 0;
}

static void done(struct etwatch_sink *sink)
{
    ew_rollup_done(&((struct table *)sink)->rollup);
    ew_report_free(((struct table *)sink)->report);
    ew_free(((struct table *)sink)->devices);
}

static void put_meta(struct etwatch_sink *sink, const struct etwatch_meta *meta)
{
    struct table *self = (struct table *)sink;
    for (size_t i = 0; i < sizeof device_columns / sizeof device_columns[0]; i++) {
        uint32_t metric = device_columns[i].metric, at = sink->column_count;
        if (!self->default_columns || !etwatch_metric_set_has(&meta->available, metric))
            continue;
        sink->columns[at] = (uint16_t)(EW_WHICH_COUNT + metric);
        self->columns[at] = ew_column_for(sink->columns[at]);
        if (etwatch_metric_set_has(&meta->estimated, metric))
            self->columns[at].heading = device_columns[i].estimate;
        sink->column_count++;
    }
    self->default_columns = false; /* once, if there are several */
}

/* -------------------------------------------------------------------------- devices */

static struct device_line *device_line_of(struct table *self, const struct etwatch_device *device)
{
    const char *id = device->id != NULL ? device->id : "";
    for (uint32_t i = 0; i < self->device_count; i++)
        if (self->devices[i].kind == device->kind && self->devices[i].index == device->index &&
            strncmp(self->devices[i].driver, device->driver, sizeof self->devices->driver - 1) ==
                0 &&
            strncmp(self->devices[i].id, id, sizeof self->devices->id - 1) == 0)
            return &self->devices[i];
    if (self->devices == NULL)
        self->devices = ew_calloc(DEVICES_MAX, sizeof *self->devices);
    if (self->devices == NULL || self->device_count == DEVICES_MAX)
        return NULL;
    struct device_line *line = &self->devices[self->device_count++];
    *line = (struct device_line){.kind = device->kind, .index = device->index};
    (void)snprintf(line->driver, sizeof line->driver, "%s", device->driver);
    (void)snprintf(line->id, sizeof line->id, "%s", id);
    return line;
}

static void put_device(struct etwatch_sink *sink, const struct etwatch_device *device)
{
    struct table *self = (struct table *)sink;
    if ((device->flags & ETWATCH_DEVICE_PROBLEM) != 0)
        return; /* the program prints it */
    struct device_line *line = device_line_of(self, device);
    if (line == NULL)
        return;
    (void)snprintf(line->name, sizeof line->name, "%s", device->name != NULL ? device->name : "");
    line->energy_uj += etwatch_device_has(device, ETWATCH_D_energy_uj) ? device->energy_uj : 0;
    bool energy = line->new_since_block && etwatch_metric_set_has(&line->has, ETWATCH_D_energy_uj);
    line->has = device->has;
    if (energy)
        etwatch_metric_set_add(&line->has, ETWATCH_D_energy_uj);
    line->util_percent = device->util_percent;
    line->power_watts = device->power_watts;
    line->temperature_celsius = device->temperature_celsius;
    line->clock_mhz = device->clock_mhz;
    line->memory_used_bytes = device->memory_used_bytes;
    line->memory_total_bytes = device->memory_total_bytes;
    line->new_since_block = true;
}

static void put_part(struct ew_buf *out, const char **separator)
{
    ew_buf_text(out, *separator);
    *separator = ", ";
}

static void put_number(struct ew_buf *out, const struct device_line *line, uint32_t metric,
                       double value, const char *unit, const char **separator)
{
    if (!etwatch_metric_set_has(&line->has, metric))
        return;
    put_part(out, separator);
    (void)ew_buf_fixed(out, value, metric == ETWATCH_D_power_watts ? 1 : 0);
    ew_buf_text(out, unit);
}

/* gpu 00000000:41:00.0 NVIDIA H200: 40 %, 2.15 GB of 151 GB, 47 C, 1980 MHz, 200.0 W, 199.8 J */
static void put_device_line(struct ew_buf *out, const struct device_line *line)
{
    const char *kind = etwatch_device_kind_name(line->kind), *separator = ": ";
    ew_buf_text(out, kind != NULL ? kind : "device");
    ew_buf_char(out, ' ');
    (void)ew_buf_screen(out, line->id, strlen(line->id), 60);
    if (line->name[0] != '\0') {
        ew_buf_char(out, ' ');
        (void)ew_buf_screen(out, line->name, strlen(line->name), 60);
    }
    put_number(out, line, ETWATCH_D_util_percent, line->util_percent, " %", &separator);
    if (etwatch_metric_set_has(&line->has, ETWATCH_D_memory_used_bytes)) {
        put_part(out, &separator);
        ew_units_bytes(out, line->memory_used_bytes);
        if (etwatch_metric_set_has(&line->has, ETWATCH_D_memory_total_bytes)) {
            ew_buf_text(out, " of ");
            ew_units_bytes(out, line->memory_total_bytes);
        }
    }
    put_number(out, line, ETWATCH_D_temperature_celsius, line->temperature_celsius, " C",
               &separator);
    put_number(out, line, ETWATCH_D_clock_mhz, line->clock_mhz, " MHz", &separator);
    put_number(out, line, ETWATCH_D_power_watts, line->power_watts, " W", &separator);
    if (etwatch_metric_set_has(&line->has, ETWATCH_D_energy_uj)) {
        put_part(out, &separator);
        ew_column_put_joules(out, line->energy_uj);
    }
    ew_buf_text(out, separator[0] == ':' ? ": unknown\n" : "\n");
}

/* Of devices that were read since the last block. */
static void put_device_lines(struct table *self, struct ew_buf *out)
{
    for (uint32_t i = 0; i < self->device_count; i++) {
        struct device_line *line = &self->devices[i];
        if (line->new_since_block)
            put_device_line(out, line);
        line->new_since_block = false;
        line->energy_uj = 0;
    }
}

/* --------------------------------------------------------------------------- blocks */

static void put_block_title(struct table *self, struct ew_buf *out, uint64_t wall_ns)
{
    if (self->anything_shown)
        ew_buf_char(out, '\n');
    ew_units_time(out, self->block_from_ns + wall_ns, self->utc_offset);
    ew_buf_text(out, ", over ");
    ew_units_ns(out, wall_ns);
    if (self->rollup.incomplete)
        ew_buf_text(out, self->polled ? ", incomplete: some values could not be read"
                                      : ", incomplete: events were lost");
    ew_buf_char(out, '\n');
}

static void put_rest(const struct ew_rollup *rollup, struct ew_buf *out)
{
    if (rollup->rest_count == 0)
        return;
    ew_buf_text(out, "and ");
    ew_buf_u64(out, rollup->rest_count);
    ew_buf_text(out, " more processes with ");
    ew_units_ns(out, rollup->rest.cpu_ns);
    ew_buf_text(out, " of CPU\n");
}

static void end_block(struct table *self, uint64_t wall_ns)
{
    struct etwatch_sink *sink = &self->base;
    struct ew_grid grid;
    size_t rows = ew_rollup_sort(&self->rollup, ETWATCH_M_cpu_ns, true);

    if (rows > 0 && wall_ns > 0) {
        ew_grid_init(&grid, self->columns, sink->column_count);
        grid.color = (sink->flags & ETWATCH_SINK_COLOR) != 0;
        grid.width = self->width;
        grid.utc_offset = self->utc_offset;
        for (size_t i = 0; i < rows; i++)
            for (uint32_t c = 0; c < sink->column_count; c++)
                ew_column_put(&grid, ew_rollup_sorted(&self->rollup, i), sink->columns[c], wall_ns);
        put_block_title(self, &sink->out, wall_ns);
        int rc = ew_grid_print(&grid, &sink->out, 0);
        if (rc < 0)
            sink->out.error = rc;
        ew_grid_done(&grid);
        put_rest(&self->rollup, &sink->out);
        put_device_lines(self, &sink->out);
        self->anything_shown = true;
    }
    if (self->rollup.error != 0)
        sink->out.error = self->rollup.error;
    ew_rollup_next(&self->rollup);
}

/* Ends the open block if this interval lies after it. Nothing ran in between, so the block has its
 * full length; the next one starts at a multiple of the block length after it. */
static void advance(struct table *self, const struct etwatch_sample *sample)
{
    uint64_t from_ns = sample->t_ns - sample->dt_ns;
    if (self->block_from_ns == 0) {
        self->block_from_ns = from_ns;
    } else if (sample->t_ns > self->block_from_ns + self->block_ns) {
        end_block(self, self->block_ns);
        self->block_from_ns += self->block_ns;
        if (from_ns > self->block_from_ns)
            self->block_from_ns +=
                (from_ns - self->block_from_ns) / self->block_ns * self->block_ns;
    }
}

static void put_sample(struct etwatch_sink *sink, const struct etwatch_sample *sample)
{
    struct table *self = (struct table *)sink;
    if (sample->type == ETWATCH_TYPE_SAMPLE || sample->type == ETWATCH_TYPE_THREAD)
        advance(self, sample);
    self->polled = sample->source == ETWATCH_SOURCE_POLL;
    int rc = ew_rollup_add(&self->rollup, sample);
    if (rc < 0)
        sink->out.error = rc;
}

static void put_cell(struct ew_buf *out, const char *text, size_t width, bool left)
{
    size_t len = strlen(text);
    size_t pad = len < width ? width - len : 0;
    if (!left)
        ew_buf_repeat(out, ' ', pad);
    ew_buf_text(out, text);
    if (left)
        ew_buf_repeat(out, ' ', pad);
    ew_buf_text(out, "  ");
}

static void put_window_value(struct ew_buf *out, uint32_t metric, double value)
{
    const char *name = ew_sink_metric_info[metric].name;
    size_t len = strlen(name);
    if (len > 6 && strcmp(name + len - 6, "_bytes") == 0)
        ew_units_bytes(out, (uint64_t)value);
    else if (len > 3 && strcmp(name + len - 3, "_ns") == 0)
        ew_units_ns(out, (uint64_t)value);
    else
        (void)ew_buf_fixed(out, value, 1);
}

static void put_window_header(struct ew_buf *out, uint32_t time_width,
                              const struct etwatch_metric_set *more)
{
    static const char *const names[] = {"AVG%", "MAX%", "P95%", "P99%", "RSS-AVG", "RSS-MAX"};
    put_cell(out, "TIME", time_width, true);
    put_cell(out, "PID", 7, false);
    put_cell(out, "NAME", 20, true);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        put_cell(out, names[i], i < 4 ? 6 : 8, false);
    ew_buf_text(out, "INTERVALS");
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++) {
        if (!etwatch_metric_set_has(more, i))
            continue;
        ew_buf_text(out, "  ");
        ew_buf_text(out, ew_sink_metric_info[i].name);
        ew_buf_text(out, " avg  max");
    }
    ew_buf_char(out, '\n');
}

/* Average and maximum of the metrics requested in addition to CPU and memory. */
static void put_window_more(struct ew_buf *out, const struct etwatch_window *window)
{
    const struct etwatch_aggregate *spread = window->more_spreads;
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++) {
        if (!etwatch_metric_set_has(&window->more, i))
            continue;
        const double values[] = {spread->avg, spread->max};
        for (size_t part = 0; part < 2; part++) {
            ew_buf_text(out, "  ");
            if (spread->count == 0 || !(values[part] >= 0))
                ew_buf_char(out, '-');
            else
                put_window_value(out, i, values[part]);
        }
        spread++;
    }
}

static void put_window(struct etwatch_sink *sink, const struct etwatch_window *window)
{
    struct table *self = (struct table *)sink;
    struct ew_buf *out = &sink->out, cell;
    const struct etwatch_aggregate *cpu = &window->cpu_percent, *rss = &window->rss_bytes;
    const double values[] = {cpu->avg, cpu->max, cpu->p95, cpu->p99, rss->avg, rss->max};

    ew_buf_init(&cell, 0, NULL, NULL);
    ew_units_time(&cell, window->t_ns, self->utc_offset);
    if (!self->windows_begun)
        put_window_header(out, self->time_width = (uint32_t)cell.len, &window->more);
    self->windows_begun = true;
    ew_buf_char(&cell, '\0');
    put_cell(out, cell.error == 0 ? cell.data : "", self->time_width, true);
    cell.len = 0;
    ew_buf_u64(&cell, window->pid);
    ew_buf_repeat(out, ' ', cell.len < 7 ? 7 - cell.len : 0);
    ew_buf_bytes(out, cell.data, cell.len);
    ew_buf_text(out, "  ");
    const char *name = window->name != NULL ? window->name : "-";
    size_t used = ew_buf_screen(out, name, strlen(name), 20);
    ew_buf_repeat(out, ' ', 20 - used + 2);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        cell.len = 0;
        if ((i < 4 ? cpu : rss)->count == 0)
            ew_buf_char(&cell, '-');
        else if (i < 4)
            ew_units_percent(&cell, values[i]);
        else
            ew_units_bytes(&cell, (uint64_t)values[i]);
        ew_buf_char(&cell, '\0');
        put_cell(out, cell.error == 0 ? cell.data : "", i < 4 ? 6 : 8, false);
    }
    ew_buf_done(&cell);
    ew_buf_u64(out, cpu->count);
    put_window_more(out, window);
    ew_buf_char(out, '\n');
    ew_buf_end_line(out);
}

static void put_loss(struct etwatch_sink *sink, const struct etwatch_loss *loss)
{
    struct ew_buf *out = &sink->out;
    ew_buf_text(out, "lost: ");
    ew_buf_u64(out, loss->count);
    ew_buf_text(out, " events (");
    ew_buf_text(out, ew_loss_stage_name(loss->stage));
    ew_buf_text(out, ")\n");
    ew_buf_end_line(out);
}

static void put_stats(struct etwatch_sink *sink, const struct etwatch_stats *stats)
{
    struct table *self = (struct table *)sink;
    (void)stats; /* the program prints them */
    if (self->block_from_ns != 0 && self->rollup.last_ns > self->block_from_ns)
        end_block(self, self->rollup.last_ns - self->block_from_ns);
}

/* -------------------------------------------------------------- recordings */

static struct ew_report *report_of(struct etwatch_sink *sink)
{
    struct table *self = (struct table *)sink;
    if (self->report == NULL)
        self->report = ew_report_new(sink->flags, self->width, self->utc_offset);
    if (self->report == NULL)
        sink->out.error = ETWATCH_ENOMEM;
    return self->report;
}

static void keep_error(struct etwatch_sink *sink, int rc)
{
    if (rc < 0 && sink->out.error == 0)
        sink->out.error = rc;
}

static void put_trace(struct etwatch_sink *sink, const struct etwatch_trace_summary *trace)
{
    struct ew_report *report = report_of(sink);
    if (report != NULL)
        keep_error(sink, ew_report_trace(report, &sink->out, trace));
}

static void put_class(struct etwatch_sink *sink, const struct etwatch_trace_class *klass)
{
    struct ew_report *report = report_of(sink);
    if (report != NULL)
        keep_error(sink, ew_report_class(report, klass));
}

static void put_process(struct etwatch_sink *sink, const struct etwatch_sample *process,
                        const struct etwatch_metric_set *estimated)
{
    struct ew_report *report = report_of(sink);
    if (report != NULL)
        keep_error(sink, ew_report_process(report, process, estimated));
}

static void put_image(struct etwatch_sink *sink, const struct etwatch_trace_image *image)
{
    struct ew_report *report = report_of(sink);
    if (report != NULL)
        keep_error(sink, ew_report_image(report, image));
}

static void put_end(struct etwatch_sink *sink)
{
    struct table *self = (struct table *)sink;
    if (self->report != NULL)
        keep_error(sink, ew_report_end(self->report, &sink->out));
}

const struct ew_sink_ops ew_sink_table = {
    .size = sizeof(struct table),
    .init = init,
    .done = done,
    .meta = put_meta,
    .sample = put_sample,
    .device = put_device,
    .window = put_window,
    .loss = put_loss,
    .stats = put_stats,
    .trace = put_trace,
    .klass = put_class,
    .process = put_process,
    .image = put_image,
    .trace_event = ew_text_trace_event,
    .end = put_end,
};
