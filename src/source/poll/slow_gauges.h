/* SPDX-License-Identifier: MIT */
/* Gauges that need a call or a file of their own per process, each read at a configured rate. */
#ifndef EW_SOURCE_POLL_SLOW_GAUGES_H
#define EW_SOURCE_POLL_SLOW_GAUGES_H

#include "source/poll/proc_files.h"
#include "source/source.h"

enum ew_slow_gauges_kind {
    EW_SLOW_GAUGE_HANDLES,
    EW_SLOW_GAUGE_IO_PRIORITY,
    EW_SLOW_GAUGE_STATES,
    EW_SLOW_GAUGE_MEMORY, /* only if requested: polling reads it anyway, events carry it */
    EW_SLOW_GAUGE_COUNT
};

/* The states of a process with more threads are unknown: too many files would be read. */
enum { EW_SLOW_GAUGE_THREADS_MAX = 4096 };

/* threads_running and the other states; memory, as /proc/PID/status has it. */
extern const struct etwatch_metric_set ew_slow_gauge_states, ew_slow_gauge_memory;

struct ew_slow_gauges {
    struct ew_proc_files *files;
    struct ew_proc_ids listed;               /* scratch; the owner frees its ids */
    uint64_t period_ns[EW_SLOW_GAUGE_COUNT]; /* 0: not requested */
    /* How many threads of a process are on a CPU. NULL: unknown; threads that wait for a CPU
     * then count as running. */
    uint32_t (*on_cpu)(void *ctx, uint32_t pid);
    void *ctx;
};

/* State of one process. Initially all zero; then call ew_slow_gauges_ran. */
struct ew_slow_gauges_item {
    uint32_t stale; /* bit per kind: the process ran since it was read */
    uint64_t due_ns[EW_SLOW_GAUGE_COUNT];
    uint64_t handles_peak;
};

/* Sets the periods from config; the caller sets files, on_cpu and ctx. */
void ew_slow_gauges_init(struct ew_slow_gauges *slow, const struct ew_source_config *config);
bool ew_slow_gauges_wanted(const struct ew_slow_gauges *slow);

void ew_slow_gauges_ran(struct ew_slow_gauges_item *item);
/* When the next stale gauge may be read; UINT64_MAX: none is stale. */
uint64_t ew_slow_gauges_due_ns(const struct ew_slow_gauges *slow,
                               const struct ew_slow_gauges_item *item);
/* Reads the due gauges into gauge; returns their EW_HAS_G bits. */
uint32_t ew_slow_gauges_read(struct ew_slow_gauges *slow, uint32_t pid,
                             struct ew_slow_gauges_item *item, uint64_t now_ns, uint64_t *gauge);

#endif
