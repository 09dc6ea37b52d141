/* SPDX-License-Identifier: MIT */
/*
 * Every field of a sample in one table: first the identity and time, then the metrics of
 * ETWATCH_METRICS. Formats walk this table; none of them lists metrics by hand.
 */
#ifndef EW_SINK_FIELDS_H
#define EW_SINK_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <etwatch/etwatch.h>

#include "model/metric.h"

#define EW_WHICH_FIELDS(X) \
    X(type)                \
    X(pid)                 \
    X(start_ns)            \
    X(name)                \
    X(ppid)                \
    X(session_id)          \
    X(user)                \
    X(cgroup)              \
    X(cmdline)             \
    X(t_ns)                \
    X(dt_ns)               \
    X(source)              \
    X(complete)            \
    X(tid)                 \
    X(thread_name)

enum ew_field_id {
#define EW_X(name) EW_F_##name,
    EW_WHICH_FIELDS(EW_X)
#undef EW_X
        EW_WHICH_COUNT,
    EW_FIELD_COUNT = EW_WHICH_COUNT + ETWATCH_METRIC_COUNT
};

enum ew_value_kind { EW_VALUE_NONE, EW_VALUE_U64, EW_VALUE_I64, EW_VALUE_DOUBLE, EW_VALUE_TEXT };

struct ew_value {
    enum ew_value_kind kind; /* NONE: unknown */
    union {
        uint64_t u64;
        int64_t i64;
        double number;
        const char *text;
    };
};

/* Name, type and location of a metric. */
struct ew_metric_info {
    const char *name;
    enum ew_value_kind kind;
    uint16_t offset; /* in struct etwatch_sample */
    bool counter;
};
extern const struct ew_metric_info ew_sink_metric_info[ETWATCH_METRIC_COUNT];

/* Type of the totals of a process in a report, in addition to enum etwatch_type. */
enum { EW_TYPE_PROCESS = ETWATCH_TYPE_THREAD + 1 };

/* The metrics that objects of this type (enum etwatch_type) have, known or not: only measurable
 * ones. Built at each call: sinks keep it. */
struct etwatch_metric_set ew_sink_metrics_of_type(uint32_t type);
/* "start", "exit", "sample", "thread", "process". */
const char *ew_type_name(uint32_t type);
/* "kernel_log", … for enum etwatch_loss_stage. */
const char *ew_loss_stage_name(uint32_t stage);

const char *ew_field_name(uint32_t field);
/* False: a metric that no source measures yet, which is in no output. */
bool ew_field_is_shown(uint32_t field);
/* The field with this name, or -1. */
int ew_field_find(const char *name);
/* The value of a field; kind NONE if it is unknown. */
struct ew_value ew_field_value(const struct etwatch_sample *sample, uint32_t field);
struct ew_value ew_sink_metric_value(const struct etwatch_sample *sample, uint32_t metric);

#endif
