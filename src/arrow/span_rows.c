/* SPDX-License-Identifier: MIT */
/*
 * Both tables end with the same columns: when, on which thread, and the latency by cause. In front
 * of them a span has its kind and name, an operator its node. The named causes of a row are one
 * column with a JSON array, as in the JSON output: their number differs from row to row.
 */
#include "arrow/span_rows.h"

#include <string.h>

#include <etwatch/arrow.h>

#include "sink/json.h"

struct spec {
    const char *name;
    uint8_t type;
    bool nullable;
};

static const struct spec span_specs[] = {
    {"kind", EW_COLUMN_DICT, true},
    {"name", EW_COLUMN_DICT, true},
    {"shape", EW_COLUMN_DICT, true},
};

static const struct spec operator_specs[] = {
    {"node", EW_COLUMN_DICT, true},        {"operator", EW_COLUMN_DICT, true},
    {"provider", EW_COLUMN_DICT, true},    {"inference_t_ns", EW_COLUMN_TIME, true},
    {"pool_threads", EW_COLUMN_U32, true}, {"pool_percent", EW_COLUMN_F64, true},
};

enum {
    SESSION,
    PID,
    TID,
    THREAD_NAME,
    T_NS,
    DT_NS,
    CPU_NS,
    CAUSE_NS,
    HELPERS = CAUSE_NS + ETWATCH_CAUSE_COUNT,
    HELPER_CPU_NS,
    HELPER_READY_NS,
    SHARED_CPU_NS,
    FAULTS,
    PREEMPTED,
    GPU_NS,
    WAIT_GPU_NS,
    GPU_KERNELS,
    FAILED,
    ASYNC,
    COMPLETE,
    CAUSES,
};

static const struct spec common_specs[] = {
    [SESSION] = {"session", EW_COLUMN_DICT, true},
    [PID] = {"pid", EW_COLUMN_U32, false},
    [TID] = {"tid", EW_COLUMN_U32, false},
    [THREAD_NAME] = {"thread_name", EW_COLUMN_DICT, true},
    [T_NS] = {"t_ns", EW_COLUMN_TIME, false},
    [DT_NS] = {"dt_ns", EW_COLUMN_I64, false},
    [CPU_NS] = {"cpu_ns", EW_COLUMN_I64, false},
    [CAUSE_NS + ETWATCH_CAUSE_WORK] = {"work_ns", EW_COLUMN_I64, false},
    [CAUSE_NS + ETWATCH_CAUSE_CPU] = {"runq_wait_ns", EW_COLUMN_I64, false},
    [CAUSE_NS + ETWATCH_CAUSE_THROTTLED] = {"throttled_ns", EW_COLUMN_I64, false},
    [CAUSE_NS + ETWATCH_CAUSE_FAULT] = {"fault_ns", EW_COLUMN_I64, true},
    [CAUSE_NS + ETWATCH_CAUSE_DISK] = {"disk_wait_ns", EW_COLUMN_I64, false},
    [CAUSE_NS + ETWATCH_CAUSE_LOCK] = {"lock_wait_ns", EW_COLUMN_I64, false},
    [CAUSE_NS + ETWATCH_CAUSE_PROCESS] = {"process_wait_ns", EW_COLUMN_I64, false},
    [CAUSE_NS + ETWATCH_CAUSE_SLEEP] = {"sleep_ns", EW_COLUMN_I64, false},
    [CAUSE_NS + ETWATCH_CAUSE_UNKNOWN] = {"unknown_ns", EW_COLUMN_I64, false},
    [HELPERS] = {"helpers", EW_COLUMN_U32, false},
    [HELPER_CPU_NS] = {"helper_cpu_ns", EW_COLUMN_I64, false},
    [HELPER_READY_NS] = {"helper_runq_wait_ns", EW_COLUMN_I64, false},
    [SHARED_CPU_NS] = {"shared_cpu_ns", EW_COLUMN_I64, false},
    [FAULTS] = {"faults", EW_COLUMN_I64, true},
    [PREEMPTED] = {"preempted", EW_COLUMN_U32, false},
    [GPU_NS] = {"gpu_ns", EW_COLUMN_I64, true},
    [WAIT_GPU_NS] = {"wait_gpu_ns", EW_COLUMN_I64, true},
    [GPU_KERNELS] = {"gpu_kernels", EW_COLUMN_U32, true},
    [FAILED] = {"failed", EW_COLUMN_BOOL, false},
    [ASYNC] = {"async", EW_COLUMN_BOOL, false},
    [COMPLETE] = {"complete", EW_COLUMN_BOOL, false},
    [CAUSES] = {"causes", EW_COLUMN_TEXT, false},
};

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static int add_specs(struct ew_layout *layout, const struct spec *specs, size_t count,
                     uint32_t flags)
{
    bool timestamps = (flags & ETWATCH_TABLE_TIMESTAMPS) != 0;
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        bool number = specs[i].type == EW_COLUMN_TIME && !timestamps;
        rc = ew_layout_add(layout, specs[i].name, number ? EW_COLUMN_I64 : specs[i].type,
                           specs[i].nullable);
    }
    return rc;
}

int ew_arrow_span_rows_init(struct ew_span_rows *rows, bool operators, uint32_t flags,
                            uint32_t batch_rows)
{
    struct ew_layout *layout = NULL;
    memset(rows, 0, sizeof *rows);
    ew_buf_init(&rows->scratch, 0, NULL, NULL);
    rows->first = operators ? COUNT(operator_specs) : COUNT(span_specs);
    int rc = ew_layout_new(batch_rows, &layout);
    if (rc < 0)
        return rc;
    rc = add_specs(layout, operators ? operator_specs : span_specs, rows->first, flags);
    if (rc == 0)
        rc = add_specs(layout, common_specs, COUNT(common_specs), flags);
    if (rc == 0)
        rc = ew_columns_init(&rows->columns, layout);
    ew_layout_unref(layout);
    return rc;
}

void ew_arrow_span_rows_done(struct ew_span_rows *rows)
{
    ew_columns_done(&rows->columns);
    ew_buf_done(&rows->scratch);
}

static void put_common(struct ew_span_rows *rows, const struct etwatch_span *span)
{
    struct ew_columns *columns = &rows->columns;
    uint32_t first = rows->first;
    bool faults = (span->flags & ETWATCH_SPAN_HAS_FAULTS) != 0;
    ew_columns_dict(columns, first + SESSION, span->session);
    ew_columns_u32(columns, first + PID, span->pid);
    ew_columns_u32(columns, first + TID, span->tid);
    ew_columns_dict(columns, first + THREAD_NAME, span->thread_name);
    ew_columns_u64(columns, first + T_NS, span->end_ns);
    ew_columns_u64(columns, first + DT_NS, span->end_ns - span->start_ns);
    ew_columns_u64(columns, first + CPU_NS, span->cpu_ns);
    for (uint32_t i = 0; i < ETWATCH_CAUSE_COUNT; i++)
        if (i != ETWATCH_CAUSE_FAULT || faults)
            ew_columns_u64(columns, first + CAUSE_NS + i, span->ns[i]);
    ew_columns_u32(columns, first + HELPERS, span->helpers);
    ew_columns_u64(columns, first + HELPER_CPU_NS, span->helper_cpu_ns);
    ew_columns_u64(columns, first + HELPER_READY_NS, span->helper_ready_ns);
    ew_columns_u64(columns, first + SHARED_CPU_NS, span->shared_cpu_ns);
    if (faults)
        ew_columns_u64(columns, first + FAULTS, span->fault_count);
    ew_columns_u32(columns, first + PREEMPTED, span->preempted);
    if ((span->flags & ETWATCH_SPAN_HAS_GPU) != 0) {
        ew_columns_u64(columns, first + GPU_NS, span->gpu_ns);
        ew_columns_u64(columns, first + WAIT_GPU_NS, span->wait_gpu_ns);
        ew_columns_u32(columns, first + GPU_KERNELS, span->gpu_kernels);
    }
    ew_columns_bool(columns, first + FAILED, (span->flags & ETWATCH_SPAN_FAILED) != 0);
    ew_columns_bool(columns, first + ASYNC, (span->flags & ETWATCH_SPAN_ASYNC) != 0);
    ew_columns_bool(columns, first + COMPLETE, (span->flags & ETWATCH_SPAN_COMPLETE) != 0);
    rows->scratch.len = 0;
    ew_json_causes(&rows->scratch, span->causes, span->cause_count);
    if (rows->scratch.error == 0)
        ew_columns_text(columns, first + CAUSES, rows->scratch.data, rows->scratch.len);
    else
        columns->error = rows->scratch.error;
}

void ew_arrow_span_rows_put(struct ew_span_rows *rows, const struct etwatch_span *span)
{
    struct ew_columns *columns = &rows->columns;
    if (!ew_columns_begin(columns))
        return;
    ew_columns_dict(columns, 0, etwatch_span_kind_name(span->kind));
    ew_columns_dict(columns, 1, span->name);
    ew_columns_dict(columns, 2, span->shape);
    put_common(rows, span);
    ew_columns_end(columns);
}

void ew_arrow_operator_rows_put(struct ew_span_rows *rows, const struct etwatch_operator *op)
{
    struct ew_columns *columns = &rows->columns;
    if (!ew_columns_begin(columns))
        return;
    ew_columns_dict(columns, 0, op->node);
    ew_columns_dict(columns, 1, op->span->name);
    ew_columns_dict(columns, 2, op->provider);
    if (op->inference_ns != 0)
        ew_columns_u64(columns, 3, op->inference_ns);
    if (op->pool_threads != 0) {
        ew_columns_u32(columns, 4, op->pool_threads);
        if (op->pool_percent >= 0)
            ew_columns_f64(columns, 5, op->pool_percent);
    }
    put_common(rows, op->span);
    ew_columns_end(columns);
}
