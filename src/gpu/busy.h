/* SPDX-License-Identifier: MIT */
/* The time in which a GPU was busy with operations that arrive in any order. */
#ifndef EW_GPU_BUSY_H
#define EW_GPU_BUSY_H

#include <stdbool.h>
#include <stdint.h>

struct ew_gpu_interval {
    uint64_t start_ns, end_ns;
    uint64_t given_ns; /* when the CPU had launched its first operation; 0: unknown */
};

struct ew_gpu_busy_list {
    struct ew_gpu_interval *list; /* apart from each other, in order */
    uint32_t count, size;
    uint32_t moves;        /* of intervals since the last forget */
    uint64_t forgotten_ns; /* what was before is no longer known */
    uint64_t busy_ns;
    /* Between two intervals the GPU was idle, and the second was not launched yet. */
    uint64_t wait_ns;
    uint64_t late_ns; /* of operations before forgotten_ns, which count nowhere */
};

void ew_gpu_busy_done(struct ew_gpu_busy_list *busy);
/* Adds an operation; on_piece gets the parts of its time in which the GPU was not known to be busy.
 */
void ew_gpu_busy_add(struct ew_gpu_busy_list *busy, const struct ew_gpu_interval *added,
                     void (*on_piece)(void *ctx, uint64_t from_ns, uint64_t to_ns), void *ctx);
/* Nothing that begins before this time will be added: adds up the waits before it. */
void ew_gpu_busy_forget(struct ew_gpu_busy_list *busy, uint64_t before_ns);

#endif
