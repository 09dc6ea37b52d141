/* SPDX-License-Identifier: MIT */
/*
 * Processes and threads as a table: most CPU time first, each process followed by its threads in
 * the same order. Columns without any known value are omitted, so a recording with few kinds of
 * events has a narrow table. Estimates are marked with "~".
 */
#include <stdlib.h>
#include <string.h>

#include "base/grid.h"
#include "base/ntstatus.h"
#include "base/units.h"
#include "sink/columns.h"
#include "sink/fields.h"
#include "sink/report.h"

enum { ROWS_SHOWN = 20000 };

enum column {
    PID,
    NAME,
    PPID,
    SESSION,
    START,
    END,
    EXIT,
    CPU,
    CPU_PERCENT,
    SWITCHES,
    WAIT,
    FAULTS_SOFT,
    FAULTS_HARD,
    FILE_READ,
    FILE_WRITE,
    DISK_READ,
    DISK_WRITE,
    NET_IN,
    NET_OUT,
    GPU,
    FRAMES,
    THREADS,
    PEAK,
    COMMAND,
    COLUMN_COUNT,
};

static const struct ew_grid_column all_columns[COLUMN_COUNT] = {
    [PID] = {.heading = "PID"},
    [NAME] = {.heading = "NAME", .left = true, .max_width = 40},
    [PPID] = {.heading = "PPID"},
    [SESSION] = {.heading = "SES"},
    [START] = {.heading = "START"},
    [END] = {.heading = "END"},
    [EXIT] = {.heading = "EXIT"},
    [CPU] = {.heading = "CPU"},
    [CPU_PERCENT] = {.heading = "CPU%"},
    [SWITCHES] = {.heading = "SWITCHES"},
    [WAIT] = {.heading = "READY"},
    [FAULTS_SOFT] = {.heading = "FLT-SOFT"},
    [FAULTS_HARD] = {.heading = "FLT-HARD"},
    [FILE_READ] = {.heading = "FILE-RD"},
    [FILE_WRITE] = {.heading = "FILE-WR"},
    [DISK_READ] = {.heading = "DISK-RD"},
    [DISK_WRITE] = {.heading = "DISK-WR"},
    [NET_IN] = {.heading = "NET-IN"},
    [NET_OUT] = {.heading = "NET-OUT"},
    [GPU] = {.heading = "GPU"},
    [FRAMES] = {.heading = "FRAMES"},
    [THREADS] = {.heading = "THR"},
    [PEAK] = {.heading = "WS-PEAK"},
    [COMMAND] = {.heading = "COMMAND LINE", .left = true, .max_width = 400},
};

/* The metric of a column; ETWATCH_METRIC_COUNT if it shows something else. */
static uint32_t metric_of(enum column column)
{
    switch (column) {
    case CPU:
        return ETWATCH_M_cpu_ns;
    case CPU_PERCENT:
        return ETWATCH_M_cpu_percent;
    case WAIT:
        return ETWATCH_M_runq_wait_ns;
    case FAULTS_SOFT:
        return ETWATCH_M_faults_minor;
    case FAULTS_HARD:
        return ETWATCH_M_faults_major;
    case FILE_READ:
        return ETWATCH_M_io_read_bytes;
    case FILE_WRITE:
        return ETWATCH_M_io_write_bytes;
    case DISK_READ:
        return ETWATCH_M_disk_read_bytes;
    case DISK_WRITE:
        return ETWATCH_M_disk_write_bytes;
    case NET_IN:
        return ETWATCH_M_net_received_bytes;
    case NET_OUT:
        return ETWATCH_M_net_sent_bytes;
    case GPU:
        return ETWATCH_M_gpu_ns;
    case FRAMES:
        return ETWATCH_M_presents;
    case THREADS:
        return ETWATCH_M_threads;
    case PEAK:
        return ETWATCH_M_rss_peak_bytes;
    default:
        return ETWATCH_METRIC_COUNT;
    }
}

static bool knows(const struct ew_report_row *row, enum column column)
{
    const struct etwatch_sample *s = &row->sum;
    uint32_t metric = metric_of(column);
    if (metric < ETWATCH_METRIC_COUNT)
        return etwatch_sample_has(s, metric);
    switch (column) {
    case PID:
        return s->pid != UINT32_MAX || s->type == ETWATCH_TYPE_THREAD;
    case PPID:
        return (s->flags & ETWATCH_SAMPLE_HAS_PPID) != 0;
    case SESSION:
        return (s->flags & ETWATCH_SAMPLE_HAS_SESSION) != 0;
    case START:
        return s->start_ns != 0;
    case END:
        return etwatch_sample_has(s, ETWATCH_M_exit_ns);
    case EXIT:
        return etwatch_sample_has(s, ETWATCH_M_exit_code);
    case SWITCHES:
        return etwatch_sample_has(s, ETWATCH_M_switches_voluntary) ||
               etwatch_sample_has(s, ETWATCH_M_switches_involuntary);
    case COMMAND:
        return s->cmdline != NULL;
    default:
        return true;
    }
}

static uint32_t select_columns(const struct ew_report_row *rows, uint32_t count,
                               uint8_t *ret_columns)
{
    uint32_t selected = 0;
    for (uint32_t c = 0; c < COLUMN_COUNT; c++) {
        bool known = false;
        for (uint32_t i = 0; i < count && !known; i++)
            known = knows(&rows[i], (enum column)c);
        if (known)
            ret_columns[selected++] = (uint8_t)c;
    }
    return selected;
}

/* Seconds since the start of the recording. */
static void put_when(struct ew_buf *out, uint64_t t_ns, uint64_t from_ns)
{
    uint64_t since_ns = t_ns > from_ns ? t_ns - from_ns : 0;
    (void)ew_buf_fixed(out, (double)since_ns / 1e9, 3);
}

static void put_name(struct ew_buf *out, const struct etwatch_sample *s)
{
    bool thread = s->type == ETWATCH_TYPE_THREAD;
    const char *name = thread ? s->thread_name : s->name;
    if (thread)
        ew_buf_text(out, "  ");
    ew_buf_text(out, name != NULL && name[0] != '\0' ? name : "-");
}

static void put_cell(struct ew_buf *out, const struct ew_report_row *row, enum column column,
                     uint64_t from_ns)
{
    const struct etwatch_sample *s = &row->sum;
    uint32_t metric = metric_of(column);
    bool thread = s->type == ETWATCH_TYPE_THREAD;
    if (!knows(row, column)) {
        ew_buf_char(out, '-');
        return;
    }
    if (metric < ETWATCH_METRIC_COUNT) {
        struct ew_value value = ew_sink_metric_value(s, metric);
        if (etwatch_metric_set_has(&row->estimated, metric))
            ew_buf_char(out, '~');
        ew_field_put(out, (uint32_t)EW_WHICH_COUNT + metric, &value,
                     NULL); /* no column is a time */
        return;
    }
    switch (column) {
    case PID:
        ew_buf_u64(out, thread ? s->tid : s->pid);
        break;
    case NAME:
        put_name(out, s);
        break;
    case PPID:
        ew_buf_u64(out, s->ppid);
        break;
    case SESSION:
        ew_buf_u64(out, s->session_id);
        break;
    case START:
        put_when(out, s->start_ns, from_ns);
        break;
    case END:
        put_when(out, s->exit_ns, from_ns);
        break;
    case EXIT:
        ew_ntstatus_put(out, s->exit_code);
        break;
    case SWITCHES:
        ew_units_count(out, s->switches_voluntary + s->switches_involuntary);
        break;
    case COMMAND:
        ew_buf_text(out, s->cmdline);
        break;
    default:
        break;
    }
}

static uint64_t cpu_of(const struct etwatch_sample *s)
{
    return etwatch_sample_has(s, ETWATCH_M_cpu_ns) ? s->cpu_ns : 0;
}

static int compare(const void *a, const void *b)
{
    const struct ew_report_row *x = a, *y = b;
    /* The idle process, which has all unused CPU time, comes last. */
    if ((x->sum.pid == 0) != (y->sum.pid == 0))
        return x->sum.pid == 0 ? 1 : -1;
    if (x->owner_cpu_ns != y->owner_cpu_ns)
        return x->owner_cpu_ns > y->owner_cpu_ns ? -1 : 1;
    if (x->owner != y->owner)
        return x->owner < y->owner ? -1 : 1;
    bool x_thread = x->sum.type == ETWATCH_TYPE_THREAD,
         y_thread = y->sum.type == ETWATCH_TYPE_THREAD;
    if (x_thread != y_thread)
        return x_thread ? 1 : -1;
    uint64_t x_ns = cpu_of(&x->sum), y_ns = cpu_of(&y->sum);
    if (x_ns != y_ns)
        return x_ns > y_ns ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static void sort(struct ew_report_row *rows, uint32_t count)
{
    uint64_t owner_cpu_ns = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (rows[i].owner == rows[i].order)
            owner_cpu_ns = cpu_of(&rows[i].sum);
        rows[i].owner_cpu_ns = owner_cpu_ns;
    }
    qsort(rows, count, sizeof *rows, compare);
}

int ew_report_rows_print(struct ew_report_row *rows, uint32_t count, uint64_t from_ns,
                         uint32_t width, bool color, struct ew_buf *out)
{
    uint8_t selected[COLUMN_COUNT];
    struct ew_grid_column columns[COLUMN_COUNT];
    struct ew_grid grid;
    uint32_t column_count = select_columns(rows, count, selected);
    uint32_t shown = count < ROWS_SHOWN ? count : ROWS_SHOWN;
    for (uint32_t c = 0; c < column_count; c++)
        columns[c] = all_columns[selected[c]];
    sort(rows, count);
    ew_grid_init(&grid, columns, column_count);
    grid.width = width;
    grid.color = color;
    for (uint32_t i = 0; i < shown; i++) {
        for (uint32_t c = 0; c < column_count; c++) {
            put_cell(ew_grid_cell(&grid), &rows[i], (enum column)selected[c], from_ns);
            ew_grid_end(&grid);
        }
    }
    int rc = ew_grid_print(&grid, out, 0);
    ew_grid_done(&grid);
    if (shown < count) {
        ew_buf_text(out, "and ");
        ew_buf_u64(out, count - shown);
        ew_buf_text(out, " more\n");
    }
    return rc;
}
