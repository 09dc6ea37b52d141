/* SPDX-License-Identifier: MIT */
/*
 * Operations are kept in one list by the time of their call and searched from the start of a span.
 * They arrive about in the order of their ends, so the list is sorted when a span asks and not
 * before. Times on a GPU overlap (streams), so what is added up is their union.
 */
#include "span/gpu_ops.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* A process that was ended loses what was not flushed. */
static const uint64_t cut_ns = 100000000;

void ew_spans_gpu_done(struct ew_spans_gpu *gpu)
{
    ew_free(gpu->ops);
    gpu->ops = NULL;
    gpu->count = gpu->size = 0;
}

static void forget(struct ew_spans_gpu *gpu, size_t count)
{
    if (count == 0)
        return;
    gpu->kept_from_ns = gpu->ops[count - 1].call_ns + 1;
    gpu->count -= count;
    memmove(gpu->ops, gpu->ops + count, gpu->count * sizeof *gpu->ops);
}

static int by_call(const void *a, const void *b)
{
    const struct ew_spans_gpu_op *x = a, *y = b;
    return x->call_ns < y->call_ns ? -1 : x->call_ns > y->call_ns;
}

static void sort(struct ew_spans_gpu *gpu)
{
    if (!gpu->sorted && gpu->count > 1)
        qsort(gpu->ops, gpu->count, sizeof *gpu->ops, by_call);
    gpu->sorted = true;
}

static bool make_room(struct ew_spans_gpu *gpu)
{
    if (gpu->count < gpu->size)
        return true;
    size_t size = gpu->size == 0 ? 256 : gpu->size * 2;
    struct ew_spans_gpu_op *ops =
        size > EW_SPANS_GPU_OPS_MAX ? NULL : ew_realloc_array(gpu->ops, size, sizeof *ops);
    if (ops != NULL) {
        gpu->ops = ops;
        gpu->size = size;
        return true;
    }
    sort(gpu);
    forget(gpu, gpu->count / 2);
    return gpu->count < gpu->size;
}

/* A copy is a wait too if its call returned only when it was done. */
static bool waited_for(const struct etwatch_gpu_op *op)
{
    return op->kind == ETWATCH_GPU_COPY && op->call != NULL && strstr(op->call, "Async") == NULL &&
           op->end_ns >= op->call_start_ns && op->end_ns <= op->call_end_ns;
}

static int add(struct ew_spans_gpu *gpu, const struct ew_spans_gpu_op *op)
{
    if (!make_room(gpu))
        return ETWATCH_ENOMEM;
    gpu->late += op->call_ns < gpu->explained_ns;
    gpu->sorted = false;
    gpu->ops[gpu->count++] = *op;
    return 0;
}

int ew_spans_gpu_add(struct ew_spans_gpu *gpu, const struct etwatch_gpu_op *op)
{
    bool known = (op->flags & ETWATCH_GPU_OP_HAS_CALL) != 0 && op->tid != 0;
    struct ew_spans_gpu_op added = {
        .call_ns = known ? op->call_start_ns : op->start_ns,
        .start_ns = op->start_ns,
        .end_ns = op->end_ns,
        .pid = op->pid,
        .tid = known ? op->tid : 0,
        .device = op->device,
        .kind = op->kind,
    };
    if (op->end_ns < op->start_ns || op->kind < ETWATCH_GPU_KERNEL || op->kind > ETWATCH_GPU_WAIT)
        return op->kind == ETWATCH_GPU_RANGE ? 0 : ETWATCH_EINVAL;
    int rc = add(gpu, &added);
    if (rc < 0 || !known || !waited_for(op))
        return rc;
    added.kind = ETWATCH_GPU_WAIT;
    added.start_ns = op->call_start_ns;
    return add(gpu, &added);
}

/* ----------------------------------------------------------------------- processes */

/* A pid may be used again: the last one counts. */
int ew_spans_gpu_process(struct ew_spans_gpu *gpu, const struct etwatch_gpu_process *process)
{
    uint32_t i = 0;
    while (i < gpu->process_count && gpu->processes[i].pid != process->pid)
        i++;
    if (i == EW_SPANS_GPU_PROCESSES_MAX)
        return ETWATCH_ELIMIT;
    if (i == gpu->process_count)
        gpu->process_count++;
    gpu->processes[i] = (struct ew_spans_gpu_process){
        .pid = process->pid,
        .state = process->state,
        .lost = process->lost + (process->late_ns > 0),
        .last_ns = process->last_ns,
    };
    return 0;
}

/* Whether all operations that the process launched in the time of the span are known. */
static bool is_traced(const struct ew_spans_gpu *gpu, const struct etwatch_span *span)
{
    for (uint32_t i = 0; i < gpu->process_count; i++) {
        const struct ew_spans_gpu_process *process = &gpu->processes[i];
        if (process->pid != span->pid)
            continue;
        bool cut = process->state == ETWATCH_GPU_CUT && span->end_ns + cut_ns > process->last_ns;
        bool active = process->state == ETWATCH_GPU_ACTIVE ||
                      process->state == ETWATCH_GPU_CLOSED || process->state == ETWATCH_GPU_CUT;
        return active && !cut && process->lost == 0 && span->start_ns >= gpu->kept_from_ns;
    }
    return false;
}

/* ----------------------------------------------------------------------------- join */

static int by_device(const void *a, const void *b)
{
    const struct ew_spans_gpu_op *x = a, *y = b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

/* The time in which at least one of them ran, device by device. Sorts them. */
static uint64_t unite(struct ew_spans_gpu_op *ops, size_t count)
{
    uint64_t ns = 0, end_ns = 0;
    if (count > 1)
        qsort(ops, count, sizeof *ops, by_device);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && ops[i].device != ops[i - 1].device)
            end_ns = 0;
        uint64_t from_ns = ops[i].start_ns > end_ns ? ops[i].start_ns : end_ns;
        ns += ops[i].end_ns > from_ns ? ops[i].end_ns - from_ns : 0;
        end_ns = ops[i].end_ns > end_ns ? ops[i].end_ns : end_ns;
    }
    return ns;
}

static size_t first_call(const struct ew_spans_gpu *gpu, uint64_t t_ns)
{
    size_t low = 0, high = gpu->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (gpu->ops[middle].call_ns < t_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool launched(const struct ew_spans_gpu_op *op, const struct etwatch_span *span)
{
    bool async = (span->flags & ETWATCH_SPAN_ASYNC) != 0;
    return op->pid == span->pid && (op->tid == span->tid || (async && op->tid == span->end_tid));
}

/* Of the waits of one thread none overlap. */
static void add_wait(const struct ew_spans_gpu_op *op, struct etwatch_span *span)
{
    uint64_t end_ns = op->end_ns < span->end_ns ? op->end_ns : span->end_ns;
    span->wait_gpu_ns += end_ns > op->start_ns ? end_ns - op->start_ns : 0;
}

void ew_spans_gpu_join(struct ew_spans_gpu *gpu, struct etwatch_span *span)
{
    span->gpu_ns = span->wait_gpu_ns = span->gpu_kernels = 0;
    if (!is_traced(gpu, span))
        return;
    sort(gpu);
    size_t first = first_call(gpu, span->start_ns), count = 0, past = first;
    while (past < gpu->count && gpu->ops[past].call_ns <= span->end_ns)
        past++;
    struct ew_spans_gpu_op *own = past == first ? NULL : ew_calloc(past - first, sizeof *own);
    bool known = past == first || own != NULL;
    for (size_t i = first; own != NULL && i < past; i++) {
        const struct ew_spans_gpu_op *op = &gpu->ops[i];
        known = known && (op->tid != 0 || op->pid != span->pid);
        if (!launched(op, span))
            continue;
        if (op->kind == ETWATCH_GPU_WAIT)
            add_wait(op, span);
        else
            own[count++] = *op;
        span->gpu_kernels += op->kind == ETWATCH_GPU_KERNEL;
    }
    span->gpu_ns = own == NULL ? 0 : unite(own, count);
    ew_free(own);
    if (known)
        span->flags |= ETWATCH_SPAN_HAS_GPU;
    else
        span->gpu_ns = span->wait_gpu_ns = span->gpu_kernels = 0;
}

void ew_spans_gpu_trim(struct ew_spans_gpu *gpu, uint64_t t_ns, uint64_t drop_ns)
{
    gpu->explained_ns = t_ns > gpu->explained_ns ? t_ns : gpu->explained_ns;
    if (gpu->count == 0)
        return;
    sort(gpu);
    forget(gpu, first_call(gpu, drop_ns));
}
