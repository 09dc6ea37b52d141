/* SPDX-License-Identifier: MIT */
/*
 * GPU operations of traced processes, joined with spans: an operation belongs to a span if the
 * thread of the span called in its time what launched it. Whether all operations of a span are
 * known is part of the answer: a process without a trace, with lost records, or with an operation
 * without its call has no GPU figures for the spans concerned.
 */
#ifndef EW_SPAN_GPU_OPS_H
#define EW_SPAN_GPU_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <etwatch/span.h>

enum { EW_SPANS_GPU_OPS_MAX = 1 << 20, EW_SPANS_GPU_PROCESSES_MAX = 256 };

struct ew_spans_gpu_op {
    uint64_t call_ns; /* the call that launched it, or that waits */
    uint64_t start_ns, end_ns;
    uint32_t pid, tid; /* tid 0: unknown, and call_ns is start_ns */
    uint32_t device;   /* WAIT: unused */
    uint32_t kind;     /* enum etwatch_gpu_op_kind */
};

struct ew_spans_gpu_process {
    uint32_t pid, state;
    uint64_t lost, last_ns;
};

struct ew_spans_gpu {
    struct ew_spans_gpu_op *ops; /* by call_ns if sorted */
    size_t count, size;
    bool sorted;
    struct ew_spans_gpu_process processes[EW_SPANS_GPU_PROCESSES_MAX];
    uint32_t process_count;
    uint64_t kept_from_ns; /* operations with an earlier call were dropped */
    uint64_t explained_ns;
    uint64_t late;
};

void ew_spans_gpu_done(struct ew_spans_gpu *gpu);
int ew_spans_gpu_add(struct ew_spans_gpu *gpu, const struct etwatch_gpu_op *op);
int ew_spans_gpu_process(struct ew_spans_gpu *gpu, const struct etwatch_gpu_process *process);
/* Fills the GPU fields of a span, and ETWATCH_SPAN_HAS_GPU if they are known. */
void ew_spans_gpu_join(struct ew_spans_gpu *gpu, struct etwatch_span *span);
/* Spans up to t_ns were explained; calls before drop_ns are forgotten. */
void ew_spans_gpu_trim(struct ew_spans_gpu *gpu, uint64_t t_ns, uint64_t drop_ns);

#endif
