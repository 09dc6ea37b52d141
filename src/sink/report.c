/* SPDX-License-Identifier: MIT */
/*
 * Owns the data of a readable report until it is complete: tables are sorted, and the width of a
 * column is known only when all rows are. Event counts are shown per provider, or per event class
 * if requested.
 */
#include "sink/report.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grid.h"
#include "base/hash.h"
#include "base/units.h"

enum { IMAGES_SHOWN = 20000 };

struct kind {
    struct etwatch_trace_class klass; /* owns its strings */
    uint64_t unknown;                 /* of a provider: events with an unknown layout */
    uint32_t kinds;                   /* of a provider: number of kinds */
};

struct ew_report {
    bool color, by_class;
    uint32_t width;
    uint64_t from_ns; /* start of the recording */
    struct ew_report_row *rows;
    ew_utc_offset utc_offset;
    uint32_t row_count, row_size;
    uint32_t owner; /* order of the last process */
    struct kind *kinds;
    uint32_t kind_count, kind_size;
    uint32_t *provider_index; /* hash of a provider: index of its kind + 1, or 0 */
    uint32_t provider_slots;  /* 0 or a power of two */
    struct etwatch_trace_image *images;
    uint32_t image_count, image_size;
    uint64_t events;
};

struct ew_report *ew_report_new(uint32_t sink_flags, uint32_t width, ew_utc_offset utc_offset)
{
    struct ew_report *report = ew_calloc(1, sizeof *report);
    if (report == NULL)
        return NULL;
    report->color = (sink_flags & ETWATCH_SINK_COLOR) != 0;
    report->by_class = (sink_flags & ETWATCH_SINK_CLASSES) != 0;
    report->width = width;
    report->utc_offset = utc_offset;
    return report;
}

static void free_text(const char *text)
{
    ew_free((void *)(uintptr_t)text);
}

void ew_report_free(struct ew_report *report)
{
    if (report == NULL)
        return;
    for (uint32_t i = 0; i < report->row_count; i++) {
        free_text(report->rows[i].sum.name);
        free_text(report->rows[i].sum.thread_name);
        free_text(report->rows[i].sum.cmdline);
    }
    for (uint32_t i = 0; i < report->kind_count; i++) {
        free_text(report->kinds[i].klass.provider);
        free_text(report->kinds[i].klass.event);
    }
    for (uint32_t i = 0; i < report->image_count; i++)
        free_text(report->images[i].path);
    ew_free(report->rows);
    ew_free(report->kinds);
    ew_free(report->provider_index);
    ew_free(report->images);
    ew_free(report);
}

/* Room for one more item of `size` bytes. */
static void *grow(void *items, uint32_t count, uint32_t *capacity, size_t size)
{
    if (count < *capacity)
        return items;
    uint32_t wanted = *capacity == 0 ? 64 : *capacity * 2;
    void *more = ew_realloc_array(items, wanted, size);
    if (more != NULL)
        *capacity = wanted;
    return more;
}

static bool keep(const char **text)
{
    if (*text == NULL)
        return true;
    *text = ew_strdup(*text);
    return *text != NULL;
}

int ew_report_trace(struct ew_report *report, struct ew_buf *out,
                    const struct etwatch_trace_summary *trace)
{
    report->from_ns = trace->file_count > 0 ? trace->files[0].start_ns : 0;
    for (uint32_t i = 1; i < trace->file_count; i++)
        if (trace->files[i].start_ns < report->from_ns)
            report->from_ns = trace->files[i].start_ns;
    report->events = trace->stats->events;
    ew_report_facts(out, trace, report->color, report->utc_offset);
    return 0;
}

/* The slot of a provider, or the free one for it. */
static uint32_t *slot_of(const struct ew_report *report, const char *provider)
{
    uint64_t hash = ew_hash_seed();
    for (const char *c = provider; *c != '\0'; c++)
        hash = ew_hash_mix(hash, (uint8_t)*c);
    uint32_t mask = report->provider_slots - 1, at = (uint32_t)(hash >> 16) & mask;
    while (report->provider_index[at] != 0 &&
           strcmp(report->kinds[report->provider_index[at] - 1].klass.provider, provider) != 0)
        at = (at + 1) & mask;
    return &report->provider_index[at];
}

/* Room for one more provider. */
static bool grow_index(struct ew_report *report)
{
    if ((report->kind_count + 1) * 2 <= report->provider_slots)
        return true;
    uint32_t slots = report->provider_slots == 0 ? 128 : report->provider_slots * 2;
    uint32_t *index = ew_calloc(slots, sizeof *index);
    if (index == NULL)
        return false;
    ew_free(report->provider_index);
    report->provider_index = index;
    report->provider_slots = slots;
    for (uint32_t i = 0; i < report->kind_count; i++)
        *slot_of(report, report->kinds[i].klass.provider) = i + 1;
    return true;
}

int ew_report_class(struct ew_report *report, const struct etwatch_trace_class *klass)
{
    uint32_t *slot = NULL;
    if (!report->by_class) {
        if (!grow_index(report))
            return ETWATCH_ENOMEM;
        slot = slot_of(report, klass->provider);
        if (*slot != 0) {
            struct kind *kind = &report->kinds[*slot - 1];
            kind->klass.count += klass->count;
            kind->unknown += klass->decoded == 0 ? klass->count : 0;
            kind->kinds++;
            return 0;
        }
    }
    struct kind *kinds =
        grow(report->kinds, report->kind_count, &report->kind_size, sizeof *report->kinds);
    if (kinds == NULL)
        return ETWATCH_ENOMEM;
    report->kinds = kinds;
    struct kind kind = {
        .klass = *klass, .unknown = klass->decoded == 0 ? klass->count : 0, .kinds = 1};
    kind.klass.event = report->by_class ? klass->event : NULL;
    if (!keep(&kind.klass.provider))
        return ETWATCH_ENOMEM;
    if (!keep(&kind.klass.event)) {
        free_text(kind.klass.provider);
        return ETWATCH_ENOMEM;
    }
    kinds[report->kind_count++] = kind;
    if (slot != NULL)
        *slot = report->kind_count;
    return 0;
}

int ew_report_process(struct ew_report *report, const struct etwatch_sample *process,
                      const struct etwatch_metric_set *estimated)
{
    struct ew_report_row *rows =
        grow(report->rows, report->row_count, &report->row_size, sizeof *report->rows);
    if (rows == NULL)
        return ETWATCH_ENOMEM;
    report->rows = rows;
    struct ew_report_row *row = &rows[report->row_count];
    bool thread = process->type == ETWATCH_TYPE_THREAD;
    *row = (struct ew_report_row){
        .sum = *process, .estimated = *estimated, .order = report->row_count};
    row->sum.name = NULL;
    row->sum.thread_name = row->sum.user = row->sum.cgroup = row->sum.cmdline = NULL;
    row->owner = thread ? report->owner : row->order;
    report->owner = row->owner;
    report->row_count++;
    row->sum.name = process->name;
    bool kept = keep(&row->sum.name);
    row->sum.thread_name = process->thread_name;
    kept = keep(&row->sum.thread_name) && kept;
    row->sum.cmdline = process->cmdline;
    kept = keep(&row->sum.cmdline) && kept;
    return kept ? 0 : ETWATCH_ENOMEM;
}

int ew_report_image(struct ew_report *report, const struct etwatch_trace_image *image)
{
    struct etwatch_trace_image *images =
        grow(report->images, report->image_count, &report->image_size, sizeof *report->images);
    if (images == NULL)
        return ETWATCH_ENOMEM;
    report->images = images;
    images[report->image_count] = *image;
    if (!keep(&images[report->image_count].path))
        return ETWATCH_ENOMEM;
    report->image_count++;
    return 0;
}

/* ------------------------------------------------------------------ tables */

static int by_count(const void *a, const void *b)
{
    const struct kind *x = a, *y = b;
    if (x->klass.count != y->klass.count)
        return x->klass.count > y->klass.count ? -1 : 1;
    int names = strcmp(x->klass.provider, y->klass.provider);
    if (names != 0 || x->klass.event == NULL || y->klass.event == NULL)
        return names;
    names = strcmp(x->klass.event, y->klass.event);
    return names != 0
               ? names
               : (x->klass.version > y->klass.version) - (x->klass.version < y->klass.version);
}

static void number_cell(struct ew_grid *grid, uint64_t value)
{
    ew_buf_u64(ew_grid_cell(grid), value);
    ew_grid_end(grid);
}

static void text_cell(struct ew_grid *grid, const char *text)
{
    ew_buf_text(ew_grid_cell(grid), text);
    ew_grid_end(grid);
}

static void percent_cell(struct ew_grid *grid, uint64_t part, uint64_t all)
{
    (void)ew_buf_fixed(ew_grid_cell(grid), all == 0 ? 0 : 100.0 * (double)part / (double)all, 1);
    ew_grid_end(grid);
}

static int print(struct ew_report *report, struct ew_grid *grid, struct ew_buf *out)
{
    grid->width = report->width;
    grid->color = report->color;
    if (out->len > 0 || report->events > 0)
        ew_buf_char(out, '\n');
    int rc = ew_grid_print(grid, out, 0);
    ew_grid_done(grid);
    return rc;
}

/* Whether the name and the fields of these events are known. */
static const char *fields_known(const struct kind *kind)
{
    return kind->klass.state == ETWATCH_CLASS_DECODED  ? "yes"
           : kind->klass.state == ETWATCH_CLASS_PARTLY ? "name only"
                                                       : "raw";
}

static int print_kinds(struct ew_report *report, struct ew_buf *out)
{
    static const struct ew_grid_column provider_columns[] = {
        {.heading = "EVENTS", .min_width = 9},
        {.heading = "%"},
        {.heading = "KINDS"},
        {.heading = "UNKNOWN"},
        {.heading = "PROVIDER", .left = true},
    };
    static const struct ew_grid_column class_columns[] = {
        {.heading = "EVENTS", .min_width = 9},
        {.heading = "%"},
        {.heading = "ID"},
        {.heading = "OP"},
        {.heading = "VER"},
        {.heading = "FIELDS", .left = true},
        {.heading = "PROVIDER", .left = true},
        {.heading = "EVENT", .left = true},
    };
    struct ew_grid grid;
    uint64_t all = 0;
    for (uint32_t i = 0; i < report->kind_count; i++)
        all += report->kinds[i].klass.count;
    qsort(report->kinds, report->kind_count, sizeof *report->kinds, by_count);
    if (report->by_class)
        ew_grid_init(&grid, class_columns, sizeof class_columns / sizeof class_columns[0]);
    else
        ew_grid_init(&grid, provider_columns, sizeof provider_columns / sizeof provider_columns[0]);
    for (uint32_t i = 0; i < report->kind_count; i++) {
        const struct kind *kind = &report->kinds[i];
        number_cell(&grid, kind->klass.count);
        percent_cell(&grid, kind->klass.count, all);
        if (report->by_class) {
            number_cell(&grid, kind->klass.id);
            number_cell(&grid, kind->klass.opcode);
            number_cell(&grid, kind->klass.version);
            text_cell(&grid, fields_known(kind));
        } else {
            number_cell(&grid, kind->kinds);
            number_cell(&grid, kind->unknown);
        }
        text_cell(&grid, kind->klass.provider);
        if (report->by_class)
            text_cell(&grid, kind->klass.event);
    }
    return print(report, &grid, out);
}

static void when_cell(struct ew_grid *grid, uint64_t t_ns, uint64_t from_ns)
{
    if (t_ns == 0)
        ew_buf_char(ew_grid_cell(grid), '-');
    else
        (void)ew_buf_fixed(ew_grid_cell(grid), (double)(t_ns > from_ns ? t_ns - from_ns : 0) / 1e9,
                           3);
    ew_grid_end(grid);
}

static void address_cell(struct ew_grid *grid, uint64_t address)
{
    static const char digits[] = "0123456789abcdef";
    struct ew_buf *out = ew_grid_cell(grid);
    for (int shift = 60; shift >= 0; shift -= 4)
        if (address >> shift != 0 || shift == 0)
            ew_buf_char(out, digits[address >> shift & 15]);
    ew_grid_end(grid);
}

static int print_images(struct ew_report *report, struct ew_buf *out)
{
    static const struct ew_grid_column columns[] = {
        {.heading = "PID"},    {.heading = "BASE"},     {.heading = "SIZE"},
        {.heading = "LOADED"}, {.heading = "UNLOADED"}, {.heading = "IMAGE", .left = true},
    };
    struct ew_grid grid;
    uint32_t shown = report->image_count < IMAGES_SHOWN ? report->image_count : IMAGES_SHOWN;
    ew_grid_init(&grid, columns, sizeof columns / sizeof columns[0]);
    for (uint32_t i = 0; i < shown; i++) {
        const struct etwatch_trace_image *image = &report->images[i];
        number_cell(&grid, image->pid);
        address_cell(&grid, image->base);
        ew_units_bytes(ew_grid_cell(&grid), image->bytes);
        ew_grid_end(&grid);
        when_cell(&grid, image->load_ns, report->from_ns);
        when_cell(&grid, image->unload_ns, report->from_ns);
        text_cell(&grid, image->path != NULL ? image->path : "-");
    }
    int rc = print(report, &grid, out);
    if (shown < report->image_count) {
        ew_buf_text(out, "and ");
        ew_buf_u64(out, report->image_count - shown);
        ew_buf_text(out, " more\n");
    }
    return rc;
}

int ew_report_end(struct ew_report *report, struct ew_buf *out)
{
    int rc = 0;
    if (report->kind_count > 0)
        rc = print_kinds(report, out);
    if (rc == 0 && report->row_count > 0) {
        ew_buf_char(out, '\n');
        rc = ew_report_rows_print(report->rows, report->row_count, report->from_ns, report->width,
                                  report->color, out);
    }
    if (rc == 0 && report->image_count > 0)
        rc = print_images(report, out);
    return rc;
}
