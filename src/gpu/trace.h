/* SPDX-License-Identifier: MIT */
/* A trace inside the library: its processes, and reading for a monitor. */
#ifndef EW_GPU_TRACE_H
#define EW_GPU_TRACE_H

#include <etwatch/gpu.h>

#include "gpu/process.h"

enum { EW_GPU_PROCESSES_MAX = 256 };

struct ew_gpu_entry {
    struct ew_gpu_process *process;
    uint32_t pid;
    uint32_t state;    /* as last reported */
    uint64_t taken_ns; /* GPU time that ew_gpu_trace_take has returned */
    bool reported, done;
};

struct ew_gpu_list {
    struct etwatch_gpu_trace_options options;
    struct ew_gpu_entry entries[EW_GPU_PROCESSES_MAX];
    uint32_t count;
    uint64_t refused;
};

struct ew_gpu_reading {
    int64_t unix_minus_raw_ns;
    uint64_t now_ns; /* raw clock */
    bool last;
    void *ctx;
    void (*on_busy)(void *ctx, const struct ew_gpu_busy *busy);
    /* Whether the process has exited; NULL: only `last` says so. */
    bool (*has_ended)(void *ctx, uint32_t pid);
};

/* Per system: accepts new processes and reads all of them. */
int ew_gpu_trace_read(struct etwatch_gpu_trace *trace, const struct ew_gpu_reading *reading);
/* Whether GPU time of this process comes from its records. */
bool ew_gpu_trace_has(const struct etwatch_gpu_trace *trace, uint32_t pid);
/* Its GPU time since the last call. False: there are no records of it. */
bool ew_gpu_trace_take(struct etwatch_gpu_trace *trace, uint32_t pid, uint64_t *ret_gpu_ns);

/* What a trace consists of, portable. NULL where there are no traces. */
struct ew_gpu_list *ew_gpu_trace_list(const struct etwatch_gpu_trace *trace);
int ew_gpu_list_options(struct ew_gpu_list *list, const struct etwatch_gpu_trace_options *options);
/* Takes ownership of the process, not of its ring. False: no room. */
bool ew_gpu_list_add(struct ew_gpu_list *list, struct ew_gpu_process *process, uint32_t pid);
int ew_gpu_list_read(struct ew_gpu_list *list, const struct ew_gpu_reading *reading);

#endif
