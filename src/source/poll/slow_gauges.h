/* SPDX-License-Identifier: MIT */
/* Gauges that take a call or a file of their own per process, each read at a rate. */
#ifndef EW_SOURCE_POLL_SLOW_GAUGES_H
#define EW_SOURCE_POLL_SLOW_GAUGES_H

#include "source/poll/proc_files.h"
#include "source/source.h"

enum ew_slow_gauges_kind {
    EW_SLOW_GAUGE_HANDLES,
    EW_SLOW_GAUGE_IO_PRIORITY,
    EW_SLOW_GAUGE_STATES,
    EW_SLOW_GAUGE_MEMORY, /* only if asked for: polling has it anyway, events bring it */
    EW_SLOW_GAUGE_COUNT
};

/* Of a process with more threads the states are not known: that many files would be read. */
enum { EW_SLOW_GAUGE_THREADS_MAX = 4096 };

/* threads_running and the other states; memory, as /proc/PID/status has it. */
extern const struct etwatch_metric_set ew_slow_gauge_states, ew_slow_gauge_memory;

struct ew_slow_gauges {
    struct ew_proc_files *files;
    struct ew_proc_ids listed;               /* scratch; the owner frees its ids */
    uint64_t period_ns[EW_SLOW_GAUGE_COUNT]; /* 0: not wanted */
    /* How many threads of a process are on a CPU. NULL: that is not known, and threads that wait
     * for one count as running. */
    uint32_t (*on_cpu)(void *ctx, uint32_t pid);
    void *ctx;
};

/* What is kept of one process. All zero at first; then ew_more_ran. */
struct ew_slow_gauges_item {
    uint32_t stale; /* bit per kind: it ran since that was read */
    uint64_t due_ns[EW_SLOW_GAUGE_COUNT];
    uint64_t handles_peak;
};

/* Takes what is wanted, and how often; files, on_cpu and ctx are the caller's to set. */
void ew_slow_gauges_init(struct ew_slow_gauges *slow, const struct ew_source_config *config);
bool ew_slow_gauges_wanted(const struct ew_slow_gauges *slow);

void ew_slow_gauges_ran(struct ew_slow_gauges_item *item);
/* When the next of what is stale may be read; UINT64_MAX: nothing is. */
uint64_t ew_slow_gauges_due_ns(const struct ew_slow_gauges *slow,
                               const struct ew_slow_gauges_item *item);
/* Reads what is due into gauge; returns EW_HAS_G bits of what was read. */
uint32_t ew_slow_gauges_read(struct ew_slow_gauges *slow, uint32_t pid,
                             struct ew_slow_gauges_item *item, uint64_t now_ns, uint64_t *gauge);

#endif
