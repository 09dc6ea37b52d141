/* SPDX-License-Identifier: MIT */
/* The processes of a trace, and its public functions that need no operating system. */
#include "gpu/trace.h"

#include <string.h>

#include "base/sized.h"

static const char *name_in(const char *const *names, uint32_t count, uint32_t i)
{
    return i < count ? names[i] : NULL;
}

const char *etwatch_gpu_op_kind_name(uint32_t kind)
{
    static const char *const names[] = {NULL, "kernel", "copy", "set", "wait", "range"};
    return name_in(names, sizeof names / sizeof names[0], kind);
}

const char *etwatch_gpu_copy_name(uint32_t copy)
{
    static const char *const names[] = {
        NULL,    "host_to_device", "device_to_host",   "array",        "array",       "array",
        "array", "array",          "device_to_device", "host_to_host", "peer_to_peer"};
    return name_in(names, sizeof names / sizeof names[0], copy);
}

const char *etwatch_gpu_state_name(uint32_t state)
{
    static const char *const names[] = {"starting", "active", "failed", "taken", "closed", "cut"};
    return name_in(names, sizeof names / sizeof names[0], state);
}

int ew_gpu_list_options(struct ew_gpu_list *list, const struct etwatch_gpu_trace_options *options)
{
    list->options.size = sizeof list->options;
    return options == NULL ? 0
                           : ew_sized_in(&list->options, sizeof list->options, options,
                                         "gpu trace options", NULL);
}

bool ew_gpu_list_add(struct ew_gpu_list *list, struct ew_gpu_process *process, uint32_t pid)
{
    if (list->count == EW_GPU_PROCESSES_MAX)
        return false;
    list->entries[list->count++] = (struct ew_gpu_entry){.process = process, .pid = pid};
    return true;
}

static void report_state(const struct ew_gpu_list *list, struct ew_gpu_entry *entry)
{
    struct etwatch_gpu_process totals;
    ew_gpu_process_totals(entry->process, &totals);
    if (entry->reported && entry->state == totals.state)
        return;
    entry->reported = true;
    entry->state = totals.state;
    if (list->options.on_state != NULL)
        list->options.on_state(list->options.ctx, &totals);
}

int ew_gpu_list_read(struct ew_gpu_list *list, const struct ew_gpu_reading *reading)
{
    const struct ew_gpu_target target = {
        .unix_minus_raw_ns = reading->unix_minus_raw_ns,
        .now_ns = reading->now_ns,
        .ctx = list->options.ctx,
        .on_op = list->options.on_op,
        .busy_ctx = reading->ctx,
        .on_busy = reading->on_busy,
    };
    int count = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        struct ew_gpu_entry *entry = &list->entries[i];
        if (entry->done)
            continue;
        bool ended = reading->last ||
                     (reading->has_ended != NULL && reading->has_ended(reading->ctx, entry->pid));
        count += (int)ew_gpu_process_read(entry->process, ended, &target);
        report_state(list, entry);
        entry->done = ended;
    }
    return count;
}

/* A pid may be used again: the last one counts. */
static struct ew_gpu_entry *find(const struct etwatch_gpu_trace *trace, uint32_t pid)
{
    struct ew_gpu_list *list = ew_gpu_trace_list(trace);
    for (uint32_t i = list == NULL ? 0 : list->count; i > 0; i--) {
        struct ew_gpu_entry *entry = &list->entries[i - 1];
        if (entry->pid == pid)
            return entry->reported && entry->state != ETWATCH_GPU_FAILED &&
                           entry->state != ETWATCH_GPU_TAKEN
                       ? entry
                       : NULL;
    }
    return NULL;
}

bool ew_gpu_trace_has(const struct etwatch_gpu_trace *trace, uint32_t pid)
{
    return find(trace, pid) != NULL;
}

bool ew_gpu_trace_take(struct etwatch_gpu_trace *trace, uint32_t pid, uint64_t *ret_gpu_ns)
{
    struct ew_gpu_entry *entry = find(trace, pid);
    struct etwatch_gpu_process totals;
    if (entry == NULL)
        return false;
    ew_gpu_process_totals(entry->process, &totals);
    *ret_gpu_ns = totals.gpu_ns - entry->taken_ns;
    entry->taken_ns = totals.gpu_ns;
    return true;
}

/* ------------------------------------------------------------------------ results */

int etwatch_gpu_trace_process(const struct etwatch_gpu_trace *trace, uint32_t i,
                              struct etwatch_gpu_process *ret_process)
{
    const struct ew_gpu_list *list = trace == NULL ? NULL : ew_gpu_trace_list(trace);
    struct etwatch_gpu_process totals;
    if (list == NULL || ret_process == NULL || i >= list->count)
        return ETWATCH_EINVAL;
    ew_gpu_process_totals(list->entries[i].process, &totals);
    return ew_sized_out(ret_process, &totals, sizeof totals);
}

typedef uint32_t (*count_fn)(const struct ew_gpu_process *process);
typedef void (*sum_fn)(const struct ew_gpu_process *process, uint32_t i,
                       struct etwatch_gpu_sum *ret_sum);

/* Sum i of all processes. */
static int find_sum(const struct etwatch_gpu_trace *trace, uint32_t i, count_fn count, sum_fn get,
                    struct etwatch_gpu_sum *ret_sum)
{
    const struct ew_gpu_list *list = trace == NULL ? NULL : ew_gpu_trace_list(trace);
    struct etwatch_gpu_sum sum;
    for (uint32_t p = 0; list != NULL && ret_sum != NULL && p < list->count; p++) {
        const struct ew_gpu_process *process = list->entries[p].process;
        if (i < count(process)) {
            get(process, i, &sum);
            return ew_sized_out(ret_sum, &sum, sizeof sum);
        }
        i -= count(process);
    }
    return ETWATCH_EINVAL;
}

int etwatch_gpu_trace_kernel(const struct etwatch_gpu_trace *trace, uint32_t i,
                             struct etwatch_gpu_sum *ret_sum)
{
    return find_sum(trace, i, ew_gpu_process_kernels, ew_gpu_process_kernel, ret_sum);
}

int etwatch_gpu_trace_stream(const struct etwatch_gpu_trace *trace, uint32_t i,
                             struct etwatch_gpu_sum *ret_sum)
{
    return find_sum(trace, i, ew_gpu_process_streams, ew_gpu_process_stream, ret_sum);
}

uint64_t etwatch_gpu_trace_refused(const struct etwatch_gpu_trace *trace)
{
    const struct ew_gpu_list *list = trace == NULL ? NULL : ew_gpu_trace_list(trace);
    return list == NULL ? 0 : list->refused;
}
