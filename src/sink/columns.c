/* SPDX-License-Identifier: MIT */
/*
 * How a field is displayed. Only the fields shown by default have a short heading here; every other
 * one is shown under its own name, so a new metric can be selected at once.
 */
#include "sink/columns.h"

#include <string.h>

#include "base/units.h"

static const struct {
    uint16_t field;
    uint8_t min_width;
    uint8_t max_width;
    const char *heading;
} known[] = {
    {EW_F_pid, 7, 0, "PID"},
    {EW_F_name, 20, 32, "NAME"},
    {EW_F_user, 8, 16, "OWNER"},
    {EW_F_METRIC(cpu_percent), 5, 0, "CPU%"},
    {EW_F_METRIC(cpu_ns), 8, 0, "CPU"},
    {EW_F_METRIC(cpu_user_ns), 8, 0, "USER"},
    {EW_F_METRIC(cpu_kernel_ns), 8, 0, "KERNEL"},
    {EW_F_METRIC(runq_wait_ns), 8, 0, "WAIT"},
    {EW_F_METRIC(switches_voluntary), 6, 0, "SW-VOL"},
    {EW_F_METRIC(switches_involuntary), 6, 0, "SW-INV"},
    {EW_F_METRIC(faults_minor), 6, 0, "FLT-MIN"},
    {EW_F_METRIC(faults_major), 6, 0, "FLT-MAJ"},
    {EW_F_METRIC(rss_bytes), 8, 0, "RSS"},
    {EW_F_METRIC(rss_peak_bytes), 8, 0, "RSS-PEAK"},
    {EW_F_METRIC(io_read_bytes), 8, 0, "READ"},
    {EW_F_METRIC(io_write_bytes), 8, 0, "WRITE"},
    {EW_F_METRIC(threads), 4, 0, "THR"},
    {EW_F_METRIC(exit_code), 4, 0, "EXIT"},
    {EW_F_METRIC(gpu_ns), 8, 0, "GPU"},
    {EW_F_METRIC(gpu_memory_bytes), 8, 0, "GPU-MEM"},
    {EW_F_METRIC(npu_ns), 8, 0, "NPU"},
    {EW_F_METRIC(energy_uj), 8, 0, "ENERGY"},
};

static bool is_text(uint32_t field)
{
    switch (field) {
    case EW_F_type:
    case EW_F_name:
    case EW_F_user:
    case EW_F_cgroup:
    case EW_F_cmdline:
    case EW_F_source:
    case EW_F_complete:
    case EW_F_thread_name:
        return true;
    default:
        return false;
    }
}

struct ew_grid_column ew_column_for(uint32_t field)
{
    struct ew_grid_column column = {.heading = ew_field_name(field), .left = is_text(field)};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].field == field) {
            column.heading = known[i].heading;
            column.min_width = known[i].min_width;
            column.max_width = known[i].max_width;
        }
    }
    return column;
}

static bool ends_with(const char *name, const char *end)
{
    size_t len = strlen(name), end_len = strlen(end);
    return len >= end_len && memcmp(name + len - end_len, end, end_len) == 0;
}

void ew_column_put_joules(struct ew_buf *out, uint64_t energy_uj)
{
    (void)ew_buf_fixed(out, (double)energy_uj / 1e6, energy_uj < 10000000 ? 3 : 1);
    ew_buf_text(out, " J");
}

static void put_u64(struct ew_buf *out, uint32_t field, uint64_t value, ew_utc_offset utc_offset)
{
    const char *name = ew_field_name(field);
    bool instant = field == EW_F_start_ns || field == EW_F_t_ns ||
                   field == (uint32_t)EW_WHICH_COUNT + ETWATCH_M_exit_ns;
    if (instant)
        ew_units_time(out, value, utc_offset);
    else if (ends_with(name, "_ns"))
        ew_units_ns(out, value);
    else if (ends_with(name, "_bytes"))
        ew_units_bytes(out, value);
    else if (ends_with(name, "_uj"))
        ew_column_put_joules(out, value);
    else if (field < EW_WHICH_COUNT)
        ew_buf_u64(out, value);
    else
        ew_units_count(out, value);
}

void ew_field_put(struct ew_buf *out, uint32_t field, const struct ew_value *value,
                  ew_utc_offset utc_offset)
{
    switch (value->kind) {
    case EW_VALUE_NONE:
        ew_buf_char(out, '-');
        break;
    case EW_VALUE_U64:
        put_u64(out, field, value->u64, utc_offset);
        break;
    case EW_VALUE_I64:
        ew_buf_i64(out, value->i64);
        break;
    case EW_VALUE_DOUBLE:
        ew_units_percent(out, value->number);
        break;
    case EW_VALUE_TEXT:
        ew_buf_text(out, value->text);
        break;
    }
}

/* A thread stands below its process: its own id, and its name set in. */
static bool put_thread(struct ew_buf *out, const struct ew_rollup_row *row, uint32_t field)
{
    if (row->sum.type != ETWATCH_TYPE_THREAD)
        return false;
    if (field == EW_F_pid) {
        ew_buf_u64(out, row->sum.tid);
        return true;
    }
    if (field == EW_F_name) {
        ew_buf_text(out, "  ");
        ew_buf_text(out, row->sum.thread_name != NULL ? row->sum.thread_name : "-");
        return true;
    }
    return false;
}

void ew_column_put(struct ew_grid *grid, const struct ew_rollup_row *row, uint32_t field,
                   uint64_t wall_ns)
{
    struct ew_buf *out = ew_grid_cell(grid);
    if (field == EW_F_METRIC(cpu_percent)) {
        ew_units_percent(out, ew_rollup_percent(row, wall_ns));
    } else if (!put_thread(out, row, field)) {
        struct ew_value value = ew_field_value(&row->sum, field);
        ew_field_put(out, field, &value, grid->utc_offset);
    }
    ew_grid_end(grid);
}
