/* SPDX-License-Identifier: MIT */
/* What one CUDA process did, from the records of its ring. */
#ifndef EW_GPU_PROCESS_H
#define EW_GPU_PROCESS_H

#include <etwatch/gpu.h>

#include "gpu/ring_reader.h"

/* The GPU time of a process on one GPU in a part of time (raw clock). */
struct ew_gpu_busy {
    uint32_t pid, device;
    uint64_t from_ns, to_ns;
    uint64_t gpu_ns;
};

/* Where results go; each may be NULL. */
struct ew_gpu_target {
    int64_t unix_minus_raw_ns;
    uint64_t now_ns; /* raw clock */
    void *ctx;
    void (*on_op)(void *ctx, const struct etwatch_gpu_op *op);
    void *busy_ctx;
    void (*on_busy)(void *ctx, const struct ew_gpu_busy *busy);
};

struct ew_gpu_process;

/* bytes: a valid ring, which must outlive the process. NULL: out of memory. */
struct ew_gpu_process *ew_gpu_process_new(const unsigned char *bytes, uint32_t pid);
void ew_gpu_process_free(struct ew_gpu_process *process);
const unsigned char *ew_gpu_process_ring(const struct ew_gpu_process *process);
/* Takes what is new. `ended`: the process has exited. Returns the number of operations. */
uint32_t ew_gpu_process_read(struct ew_gpu_process *process, bool ended,
                             const struct ew_gpu_target *target);
void ew_gpu_process_totals(const struct ew_gpu_process *process,
                           struct etwatch_gpu_process *ret_totals);
uint32_t ew_gpu_process_kernels(const struct ew_gpu_process *process);
uint32_t ew_gpu_process_streams(const struct ew_gpu_process *process);
void ew_gpu_process_kernel(const struct ew_gpu_process *process, uint32_t i,
                           struct etwatch_gpu_sum *ret_sum);
void ew_gpu_process_stream(const struct ew_gpu_process *process, uint32_t i,
                           struct etwatch_gpu_sum *ret_sum);

#endif
