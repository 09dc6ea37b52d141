/* SPDX-License-Identifier: MIT */
/*
 * The table of names. Kinds and offsets come from the declaration of struct etwatch_sample itself
 * (_Generic and offsetof over ETWATCH_METRICS), so a metric added to the public list appears in
 * every format without a line here.
 */
#include "sink/fields.h"

#include <string.h>

#define KIND(type) \
    _Generic((type)0, uint64_t : EW_VALUE_U64, int64_t : EW_VALUE_I64, double : EW_VALUE_DOUBLE)

enum { IS_counter = 1, IS_gauge = 0 };

const struct ew_metric_info ew_sink_metric_info[ETWATCH_METRIC_COUNT] = {
#define ETWATCH_X(name, type, kind) \
    {#name, KIND(type), offsetof(struct etwatch_sample, name), IS_##kind != 0},
    ETWATCH_METRICS(ETWATCH_X)
#undef ETWATCH_X
};

static const char *const which_names[EW_WHICH_COUNT] = {
#define EW_X(name) #name,
    EW_WHICH_FIELDS(EW_X)
#undef EW_X
};

/* The cpu group, and what the kernel counts per thread as well. */
static bool is_of_thread(uint32_t metric)
{
    static const struct etwatch_metric_set others =
        EW_METRIC_SET(ETWATCH_M_faults_minor, ETWATCH_M_faults_major, ETWATCH_M_io_read_bytes,
                      ETWATCH_M_io_write_bytes, ETWATCH_M_io_read_ops, ETWATCH_M_io_write_ops,
                      ETWATCH_M_disk_read_bytes, ETWATCH_M_disk_write_bytes);
    return metric <= ETWATCH_M_affinity || etwatch_metric_set_has(&others, metric);
}

struct etwatch_metric_set ew_sink_metrics_of_type(uint32_t type)
{
    struct etwatch_metric_set set = ew_metrics_measurable();
    bool has_exit = type == ETWATCH_TYPE_EXIT || type == EW_TYPE_PROCESS;
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++) {
        bool is_exit = i >= ETWATCH_M_exit_ns && i <= ETWATCH_M_exit_signal;
        if ((is_exit && !has_exit) || (type == ETWATCH_TYPE_THREAD && !is_of_thread(i)))
            etwatch_metric_set_remove(&set, i);
    }
    return set;
}

const char *ew_type_name(uint32_t type)
{
    static const char *const names[] = {"unknown", "start", "exit", "sample", "thread", "process"};
    return names[type < sizeof names / sizeof names[0] ? type : 0];
}

const char *ew_loss_stage_name(uint32_t stage)
{
    static const char *const names[] = {"unknown", "kernel_log", "lifecycle", "stream",
                                        "table",   "queue",      "buffers"};
    return names[stage < sizeof names / sizeof names[0] ? stage : 0];
}

const char *ew_field_name(uint32_t field)
{
    if (field < EW_WHICH_COUNT)
        return which_names[field];
    return field < EW_FIELD_COUNT ? ew_sink_metric_info[field - EW_WHICH_COUNT].name : NULL;
}

bool ew_field_is_shown(uint32_t field)
{
    return field < EW_WHICH_COUNT || ew_metric_is_measurable(field - (uint32_t)EW_WHICH_COUNT);
}

int ew_field_find(const char *name)
{
    for (uint32_t i = 0; i < EW_FIELD_COUNT; i++)
        if (strcmp(ew_field_name(i), name) == 0)
            return (int)i;
    return -1;
}

static struct ew_value number(uint64_t value)
{
    return (struct ew_value){.kind = EW_VALUE_U64, .u64 = value};
}

static struct ew_value number_if(bool known, uint64_t value)
{
    return known ? number(value) : (struct ew_value){0};
}

static struct ew_value text(const char *value)
{
    return (struct ew_value){.kind = value != NULL ? EW_VALUE_TEXT : EW_VALUE_NONE, .text = value};
}

struct ew_value ew_sink_metric_value(const struct etwatch_sample *sample, uint32_t metric)
{
    const struct ew_metric_info *info = &ew_sink_metric_info[metric];
    struct ew_value value = {0};
    if (!etwatch_sample_has(sample, metric))
        return value;
    value.kind = info->kind;
    memcpy(&value.u64, (const char *)sample + info->offset, sizeof value.u64);
    return value;
}

struct ew_value ew_field_value(const struct etwatch_sample *sample, uint32_t field)
{
    bool thread = sample->type == ETWATCH_TYPE_THREAD;
    switch (field) {
    case EW_F_type:
        return text(ew_type_name(sample->type));
    case EW_F_pid:
        return number_if(sample->pid != UINT32_MAX, sample->pid);
    case EW_F_start_ns:
        return number_if(sample->start_ns != 0, sample->start_ns);
    case EW_F_name:
        return text(sample->name);
    case EW_F_ppid:
        return number_if((sample->flags & ETWATCH_SAMPLE_HAS_PPID) != 0, sample->ppid);
    case EW_F_session_id:
        return number_if((sample->flags & ETWATCH_SAMPLE_HAS_SESSION) != 0, sample->session_id);
    case EW_F_user:
        return text(sample->user);
    case EW_F_cgroup:
        return text(sample->cgroup);
    case EW_F_cmdline:
        return text(sample->cmdline);
    case EW_F_t_ns:
        return number(sample->t_ns);
    case EW_F_dt_ns:
        return number(sample->dt_ns);
    case EW_F_source:
        return text(etwatch_source_name(sample->source));
    case EW_F_complete:
        return text((sample->flags & ETWATCH_SAMPLE_COMPLETE) != 0 ? "true" : "false");
    case EW_F_tid:
        return number_if(thread, sample->tid);
    case EW_F_thread_name:
        return text(thread ? sample->thread_name : NULL);
    default:
        if (field >= EW_FIELD_COUNT)
            return (struct ew_value){0};
        return ew_sink_metric_value(sample, field - EW_WHICH_COUNT);
    }
}
