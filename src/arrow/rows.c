/* SPDX-License-Identifier: MIT */
/*
 * The tables, column by column. Names are those of the JSON output; metrics come from the list that
 * every format uses, so that a metric added there has a column here.
 */
#include "arrow/rows.h"

#include <string.h>

#include "base/buf.h"
#include "base/event_state.h"
#include "sink/fields.h"

_Static_assert(EW_WHICH_COUNT <= 32, "one entry for each");

struct spec {
    const char *name;
    uint8_t type;
    bool nullable;
};

static enum ew_column_type time_type(uint32_t flags)
{
    return (flags & ETWATCH_TABLE_TIMESTAMPS) != 0 ? EW_COLUMN_TIME : EW_COLUMN_I64;
}

/* A layout of these columns. EW_COLUMN_TIME becomes a number unless timestamps are requested. */
static int make_layout(const struct spec *specs, size_t count, uint32_t flags, uint32_t batch_rows,
                       struct ew_layout **ret_layout)
{
    struct ew_layout *layout = NULL;
    int rc = ew_layout_new(batch_rows, &layout);
    for (size_t i = 0; i < count && rc == 0; i++) {
        enum ew_column_type type = specs[i].type;
        rc = ew_layout_add(layout, specs[i].name, type == EW_COLUMN_TIME ? time_type(flags) : type,
                           specs[i].nullable);
    }
    if (rc < 0)
        ew_layout_unref(layout);
    else
        *ret_layout = layout;
    return rc;
}

static int make_columns(const struct spec *specs, size_t count, uint32_t flags, uint32_t batch_rows,
                        struct ew_columns *columns)
{
    struct ew_layout *layout = NULL;
    int rc = make_layout(specs, count, flags, batch_rows, &layout);
    if (rc < 0)
        return rc;
    rc = ew_columns_init(columns, layout);
    ew_layout_unref(layout);
    return rc;
}

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

/* ------------------------------------------------------------------ samples */

static const struct {
    uint8_t field; /* enum ew_field_id */
    uint8_t type;
    bool nullable, of_process, of_thread;
} which_columns[] = {
    {EW_F_pid, EW_COLUMN_U32, true, true, true},
    {EW_F_start_ns, EW_COLUMN_TIME, true, true, true},
    {EW_F_name, EW_COLUMN_DICT, true, true, true},
    {EW_F_ppid, EW_COLUMN_U32, true, true, false},
    {EW_F_session_id, EW_COLUMN_U32, true, true, false},
    {EW_F_user, EW_COLUMN_DICT, true, true, false},
    {EW_F_cgroup, EW_COLUMN_DICT, true, true, false},
    {EW_F_cmdline, EW_COLUMN_TEXT, true, true, false},
    {EW_F_tid, EW_COLUMN_U32, false, false, true},
    {EW_F_thread_name, EW_COLUMN_DICT, true, false, true},
    {EW_F_t_ns, EW_COLUMN_TIME, false, true, true},
    {EW_F_dt_ns, EW_COLUMN_I64, false, true, true},
    {EW_F_source, EW_COLUMN_DICT, true, true, true},
    {EW_F_complete, EW_COLUMN_BOOL, false, true, true},
};

static int add_which(struct ew_layout *layout, struct ew_sample_rows *rows, bool thread,
                     uint32_t flags)
{
    int rc = 0;
    for (size_t i = 0; i < COUNT(which_columns) && rc == 0; i++) {
        bool wanted = thread ? which_columns[i].of_thread : which_columns[i].of_process;
        uint32_t field = which_columns[i].field;
        enum ew_column_type type = which_columns[i].type;
        if (!wanted || (field == EW_F_cmdline && (flags & ETWATCH_TABLE_CMDLINE) == 0))
            continue;
        rows->which[field] = (int16_t)ew_layout_count(layout);
        rc = ew_layout_add(layout, ew_field_name(field),
                           type == EW_COLUMN_TIME ? time_type(flags) : type,
                           which_columns[i].nullable);
    }
    return rc;
}

/* Counts and bytes are signed, so that differences can be negative; a mask is unsigned. */
static enum ew_column_type metric_type(uint32_t metric, uint32_t flags)
{
    if (metric == ETWATCH_M_exit_ns)
        return time_type(flags);
    if (metric == ETWATCH_M_affinity)
        return EW_COLUMN_U64;
    return ew_sink_metric_info[metric].kind == EW_VALUE_DOUBLE ? EW_COLUMN_F64 : EW_COLUMN_I64;
}

static int add_metrics(struct ew_layout *layout, struct ew_sample_rows *rows, uint32_t flags)
{
    int rc = 0;
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT && rc == 0; i++) {
        if (!etwatch_metric_set_has(&rows->metrics, i))
            continue;
        rows->metric[i] = (int16_t)ew_layout_count(layout);
        rc = ew_layout_add(layout, ew_sink_metric_info[i].name, metric_type(i, flags), true);
    }
    return rc;
}

int ew_arrow_sample_rows_init(struct ew_sample_rows *rows, uint32_t table, uint32_t flags,
                              bool with_estimated, uint32_t batch_rows)
{
    struct ew_layout *layout = NULL;
    bool thread = table == ETWATCH_TABLE_THREADS || table == ETWATCH_TABLE_THREAD_SAMPLES;
    uint32_t type = thread                             ? ETWATCH_TYPE_THREAD
                    : table == ETWATCH_TABLE_PROCESSES ? ETWATCH_TYPE_EXIT
                                                       : ETWATCH_TYPE_SAMPLE;
    memset(rows, 0, sizeof *rows);
    memset(rows->which, 0xFF, sizeof rows->which);
    memset(rows->metric, 0xFF, sizeof rows->metric);
    rows->estimated = -1;
    rows->metrics = ew_sink_metrics_of_type(type);
    int rc = ew_layout_new(batch_rows, &layout);
    if (rc < 0)
        return rc;
    rc = add_which(layout, rows, thread, flags);
    if (rc == 0)
        rc = add_metrics(layout, rows, flags);
    if (rc == 0 && with_estimated) {
        rows->estimated = (int16_t)ew_layout_count(layout);
        rc = ew_layout_add(layout, "estimated", EW_COLUMN_DICT, true);
    }
    if (rc == 0)
        rc = ew_columns_init(&rows->columns, layout);
    ew_layout_unref(layout);
    return rc;
}

void ew_arrow_sample_rows_done(struct ew_sample_rows *rows)
{
    ew_columns_done(&rows->columns);
}

static void put_number(struct ew_sample_rows *rows, uint32_t field, uint32_t value)
{
    if (rows->which[field] >= 0)
        ew_columns_u32(&rows->columns, (uint32_t)rows->which[field], value);
}

static void put_dict(struct ew_sample_rows *rows, uint32_t field, const char *text)
{
    if (rows->which[field] >= 0)
        ew_columns_dict(&rows->columns, (uint32_t)rows->which[field], text);
}

/* The identity of the process or thread, and the time. */
static void put_which(struct ew_sample_rows *rows, const struct etwatch_sample *sample)
{
    struct ew_columns *columns = &rows->columns;
    const int16_t *which = rows->which;
    if (sample->pid != UINT32_MAX)
        put_number(rows, EW_F_pid, sample->pid);
    if (sample->start_ns != 0)
        ew_columns_u64(columns, (uint32_t)which[EW_F_start_ns], sample->start_ns);
    put_dict(rows, EW_F_name, sample->name);
    if ((sample->flags & ETWATCH_SAMPLE_HAS_PPID) != 0)
        put_number(rows, EW_F_ppid, sample->ppid);
    if ((sample->flags & ETWATCH_SAMPLE_HAS_SESSION) != 0)
        put_number(rows, EW_F_session_id, sample->session_id);
    put_dict(rows, EW_F_user, sample->user);
    put_dict(rows, EW_F_cgroup, sample->cgroup);
    if (which[EW_F_cmdline] >= 0 && sample->cmdline != NULL)
        ew_columns_text(columns, (uint32_t)which[EW_F_cmdline], sample->cmdline,
                        strlen(sample->cmdline));
    put_number(rows, EW_F_tid, sample->tid);
    put_dict(rows, EW_F_thread_name, sample->thread_name);
    ew_columns_u64(columns, (uint32_t)which[EW_F_t_ns], sample->t_ns);
    ew_columns_u64(columns, (uint32_t)which[EW_F_dt_ns], sample->dt_ns);
    put_dict(rows, EW_F_source, etwatch_source_name(sample->source));
    ew_columns_bool(columns, (uint32_t)which[EW_F_complete],
                    (sample->flags & ETWATCH_SAMPLE_COMPLETE) != 0);
}

static void put_estimated(struct ew_sample_rows *rows, const struct etwatch_metric_set *estimated)
{
    struct ew_buf names;
    ew_buf_init(&names, 0, NULL, NULL);
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++) {
        if (!etwatch_metric_set_has(estimated, i))
            continue;
        if (names.len > 0)
            ew_buf_char(&names, ' ');
        ew_buf_text(&names, ew_sink_metric_info[i].name);
    }
    ew_buf_char(&names, '\0');
    if (names.error == 0)
        ew_columns_dict(&rows->columns, (uint32_t)rows->estimated, names.data);
    else
        rows->columns.error = names.error;
    ew_buf_done(&names);
}

void ew_arrow_sample_rows_put(struct ew_sample_rows *rows, const struct etwatch_sample *sample,
                              const struct etwatch_metric_set *estimated)
{
    struct ew_columns *columns = &rows->columns;
    if (!ew_columns_begin(columns))
        return;
    put_which(rows, sample);
    struct etwatch_metric_set known = rows->metrics;
    etwatch_metric_set_intersect(&known, &sample->has);
    EW_METRIC_SET_EACH (i, &known) {
        uint64_t value; /* all kinds of values have this size */
        memcpy(&value, (const char *)sample + ew_sink_metric_info[i].offset, sizeof value);
        ew_columns_u64(columns, (uint32_t)rows->metric[i], value);
    }
    if (rows->estimated >= 0 && estimated != NULL && !etwatch_metric_set_is_empty(estimated))
        put_estimated(rows, estimated);
    ew_columns_end(columns);
}

/* ------------------------------------------------------------------- events */

enum {
    EVENT_T_NS,
    EVENT_CPU,
    EVENT_PID,
    EVENT_TID,
    EVENT_NAME,
    EVENT_EVENT,
    EVENT_NEXT,
    EVENT_WAKER = EVENT_NEXT + 2,
    EVENT_CHILD = EVENT_WAKER + 2,
    EVENT_STATE = EVENT_CHILD + 2,
    EVENT_PRIORITY,
    EVENT_EXIT_CODE,
    EVENT_EXIT_SIGNAL,
    EVENT_WAIT_NS,
    EVENT_READY_NS,
    EVENT_WAIT_REASON,
};

int ew_arrow_event_rows_init(struct ew_columns *columns, uint32_t flags, uint32_t batch_rows)
{
    static const struct spec specs[] = {
        {"t_ns", EW_COLUMN_TIME, false},       {"cpu", EW_COLUMN_U16, false},
        {"pid", EW_COLUMN_U32, false},         {"tid", EW_COLUMN_U32, false},
        {"name", EW_COLUMN_DICT, true},        {"event", EW_COLUMN_DICT, true},
        {"next_pid", EW_COLUMN_U32, true},     {"next_tid", EW_COLUMN_U32, true},
        {"waker_pid", EW_COLUMN_U32, true},    {"waker_tid", EW_COLUMN_U32, true},
        {"child_pid", EW_COLUMN_U32, true},    {"child_tid", EW_COLUMN_U32, true},
        {"state", EW_COLUMN_U32, true},        {"priority", EW_COLUMN_I32, false},
        {"exit_code", EW_COLUMN_I32, true},    {"exit_signal", EW_COLUMN_I32, true},
        {"wait_ns", EW_COLUMN_I64, true},      {"ready_ns", EW_COLUMN_I64, true},
        {"wait_reason", EW_COLUMN_DICT, true},
    };
    return make_columns(specs, COUNT(specs), flags, batch_rows, columns);
}

/* The wait of the incoming thread, as far as known. */
static void put_wait(struct ew_columns *columns, const struct etwatch_event *event)
{
    ew_columns_u32(columns, EVENT_STATE, event->state);
    if (event->waker_tid != UINT32_MAX) {
        ew_columns_u32(columns, EVENT_WAKER, event->waker_pid);
        ew_columns_u32(columns, EVENT_WAKER + 1, event->waker_tid);
    }
    if (event->wait_ns != UINT64_MAX)
        ew_columns_u64(columns, EVENT_WAIT_NS, event->wait_ns);
    if (event->ready_ns != UINT64_MAX)
        ew_columns_u64(columns, EVENT_READY_NS, event->ready_ns);
    ew_columns_dict(columns, EVENT_WAIT_REASON, event->wait_reason);
}

void ew_arrow_event_rows_put(struct ew_columns *columns, const struct etwatch_event *event)
{
    static const char *const names[] = {NULL, "switch", "wakeup", "fork", "exec", "exit"};
    if (!ew_columns_begin(columns))
        return;
    ew_columns_u64(columns, EVENT_T_NS, event->t_ns);
    ew_columns_u16(columns, EVENT_CPU, (uint16_t)event->cpu);
    ew_columns_u32(columns, EVENT_PID, event->pid);
    ew_columns_u32(columns, EVENT_TID, event->tid);
    ew_columns_dict(columns, EVENT_NAME, event->name);
    ew_columns_dict(columns, EVENT_EVENT, event->kind < COUNT(names) ? names[event->kind] : NULL);
    uint32_t other = event->kind == ETWATCH_EVENT_SWITCH   ? EVENT_NEXT
                     : event->kind == ETWATCH_EVENT_WAKEUP ? EVENT_WAKER
                     : event->kind == ETWATCH_EVENT_FORK   ? EVENT_CHILD
                                                           : 0;
    if (other != 0) {
        ew_columns_u32(columns, other, event->next_pid);
        ew_columns_u32(columns, other + 1, event->next_tid);
    }
    if (event->kind == ETWATCH_EVENT_SWITCH)
        put_wait(columns, event);
    ew_columns_i32(columns, EVENT_PRIORITY, event->priority);
    if (event->kind == ETWATCH_EVENT_EXIT && event->exit_code >= 0) {
        uint32_t status = (uint32_t)event->exit_code;
        ew_columns_i32(columns, EVENT_EXIT_CODE, (int32_t)(status >> 8 & 0xFF));
        ew_columns_i32(columns, EVENT_EXIT_SIGNAL, (int32_t)(status & 0x7F));
    }
    ew_columns_end(columns);
}

int ew_arrow_record_layout(uint32_t flags, uint32_t batch_rows, struct ew_layout **ret_layout)
{
    static const struct spec specs[EW_RECORD_COLUMNS] = {
        [EW_RECORD_T_NS] = {"t_ns", EW_COLUMN_TIME, false},
        [EW_RECORD_CPU] = {"cpu", EW_COLUMN_U16, false},
        [EW_RECORD_PID] = {"pid", EW_COLUMN_U32, true},
        [EW_RECORD_TID] = {"tid", EW_COLUMN_U32, true},
        [EW_RECORD_NAME] = {"name", EW_COLUMN_DICT, true},
        [EW_RECORD_PROVIDER] = {"provider", EW_COLUMN_DICT, true},
        [EW_RECORD_EVENT] = {"event", EW_COLUMN_DICT, true},
        [EW_RECORD_ID] = {"id", EW_COLUMN_U16, false},
        [EW_RECORD_OPCODE] = {"opcode", EW_COLUMN_U8, false},
        [EW_RECORD_VERSION] = {"version", EW_COLUMN_U8, false},
        [EW_RECORD_HEADER_PID] = {"header_pid", EW_COLUMN_U32, true},
        [EW_RECORD_HEADER_TID] = {"header_tid", EW_COLUMN_U32, true},
        [EW_RECORD_STATE] = {"state", EW_COLUMN_DICT, false},
    };
    return make_layout(specs, COUNT(specs), flags, batch_rows, ret_layout);
}

void ew_arrow_record_rows_put(struct ew_columns *columns, const struct etwatch_trace_event *event)
{
    ew_columns_u64(columns, EW_RECORD_T_NS, event->t_ns);
    ew_columns_u16(columns, EW_RECORD_CPU, (uint16_t)event->cpu);
    if ((event->flags & ETWATCH_TRACE_HAS_PID) != 0)
        ew_columns_u32(columns, EW_RECORD_PID, event->pid);
    if ((event->flags & ETWATCH_TRACE_HAS_TID) != 0)
        ew_columns_u32(columns, EW_RECORD_TID, event->tid);
    ew_columns_dict(columns, EW_RECORD_NAME, event->process);
    ew_columns_dict(columns, EW_RECORD_PROVIDER, event->provider);
    ew_columns_dict(columns, EW_RECORD_EVENT, event->event);
    ew_columns_u16(columns, EW_RECORD_ID, (uint16_t)event->id);
    ew_columns_u8(columns, EW_RECORD_OPCODE, (uint8_t)event->opcode);
    ew_columns_u8(columns, EW_RECORD_VERSION, (uint8_t)event->version);
    if ((event->flags & ETWATCH_TRACE_HAS_HEADER_IDS) != 0) {
        ew_columns_u32(columns, EW_RECORD_HEADER_PID, event->header_pid);
        ew_columns_u32(columns, EW_RECORD_HEADER_TID, event->header_tid);
    }
    ew_columns_dict(columns, EW_RECORD_STATE, ew_event_state_name(ew_event_state(event->flags)));
}

/* ------------------------------------------------------- classes and images */

int ew_class_rows_init(struct ew_columns *columns, uint32_t batch_rows)
{
    static const struct spec specs[] = {
        {"provider", EW_COLUMN_DICT, true}, {"event", EW_COLUMN_DICT, true},
        {"id", EW_COLUMN_U32, false},       {"opcode", EW_COLUMN_U32, false},
        {"version", EW_COLUMN_U32, false},  {"count", EW_COLUMN_I64, false},
        {"decoded", EW_COLUMN_BOOL, false}, {"state", EW_COLUMN_DICT, true},
    };
    return make_columns(specs, COUNT(specs), 0, batch_rows, columns);
}

void ew_class_rows_put(struct ew_columns *columns, const struct etwatch_trace_class *klass)
{
    if (!ew_columns_begin(columns))
        return;
    ew_columns_dict(columns, 0, klass->provider);
    ew_columns_dict(columns, 1, klass->event);
    ew_columns_u32(columns, 2, klass->id);
    ew_columns_u32(columns, 3, klass->opcode);
    ew_columns_u32(columns, 4, klass->version);
    ew_columns_u64(columns, 5, klass->count);
    ew_columns_bool(columns, 6, klass->decoded != 0);
    ew_columns_dict(columns, 7, ew_event_state_name(klass->state));
    ew_columns_end(columns);
}

int ew_image_rows_init(struct ew_columns *columns, uint32_t flags, uint32_t batch_rows)
{
    static const struct spec specs[] = {
        {"pid", EW_COLUMN_U32, false},         {"base", EW_COLUMN_U64, false},
        {"image_bytes", EW_COLUMN_I64, false}, {"load_ns", EW_COLUMN_TIME, true},
        {"unload_ns", EW_COLUMN_TIME, true},   {"path", EW_COLUMN_DICT, true},
    };
    return make_columns(specs, COUNT(specs), flags, batch_rows, columns);
}

void ew_image_rows_put(struct ew_columns *columns, const struct etwatch_trace_image *image)
{
    if (!ew_columns_begin(columns))
        return;
    ew_columns_u32(columns, 0, image->pid);
    ew_columns_u64(columns, 1, image->base);
    ew_columns_u64(columns, 2, image->bytes);
    if (image->load_ns != 0)
        ew_columns_u64(columns, 3, image->load_ns);
    if (image->unload_ns != 0)
        ew_columns_u64(columns, 4, image->unload_ns);
    ew_columns_dict(columns, 5, image->path);
    ew_columns_end(columns);
}
