/* SPDX-License-Identifier: MIT */
/*
 * The counters and gauges that sources read, ledgers keep and samplers cut, as dense indexes.
 *
 * Sources that know fewer leave the bit in `has` clear. Each index names the public metric it ends
 * up in, so a new counter is one line here, one in the source that reads it, and nothing between.
 */
#ifndef EW_MODEL_COUNTER_H
#define EW_MODEL_COUNTER_H

#include <stdint.h>

#include <etwatch/etwatch.h>

/* Cumulative, never falling over the life of a thread or process. */
#define EW_COUNTERS_BASE(X) \
    X(cpu_ns)               \
    X(cpu_user_ns)          \
    X(cpu_kernel_ns)        \
    X(switches_voluntary)   \
    X(switches_involuntary) \
    X(runq_wait_ns)         \
    X(faults_minor)         \
    X(faults_major)         \
    X(io_read_bytes)        \
    X(io_write_bytes)       \
    X(io_read_ops)          \
    X(io_write_ops)         \
    X(disk_read_bytes)      \
    X(disk_write_bytes)

/* Few sources have these. */
#define EW_COUNTERS_MORE(X) \
    X(net_received_bytes)   \
    X(net_sent_bytes)       \
    X(io_other_bytes)       \
    X(io_other_ops)         \
    X(cycles)               \
    X(instructions)         \
    X(cache_misses)

#define EW_COUNTERS(X) EW_COUNTERS_BASE(X) EW_COUNTERS_MORE(X)

enum ew_counter {
#define EW_X(name) EW_C_##name,
    EW_COUNTERS(EW_X)
#undef EW_X
        EW_COUNTER_COUNT
};

/* Sources that add up in the kernel have the first ones; whoever loops over counters on the way of
 * every reading looks at the others only if there are any. */
enum { EW_COUNTER_BASE_COUNT = EW_C_net_received_bytes };

/* As of one instant; of a process, except priority and affinity, which a thread has too. */
#define EW_GAUGES_BASE(X) \
    X(rss_bytes)          \
    X(rss_peak_bytes)     \
    X(private_bytes)      \
    X(virtual_bytes)      \
    X(threads)            \
    X(handles)            \
    X(priority)           \
    X(affinity)

#define EW_GAUGES_MORE(X)  \
    X(pool_paged_bytes)    \
    X(pool_nonpaged_bytes) \
    X(handles_peak)        \
    X(gdi_objects)         \
    X(user_objects)        \
    X(io_priority)         \
    X(threads_running)     \
    X(threads_ready)       \
    X(threads_waiting)     \
    X(threads_suspended)

#define EW_GAUGES(X) EW_GAUGES_BASE(X) EW_GAUGES_MORE(X)

enum ew_gauge {
#define EW_X(name) EW_G_##name,
    EW_GAUGES(EW_X)
#undef EW_X
        EW_GAUGE_COUNT
};

_Static_assert(EW_COUNTER_COUNT < 32 && EW_GAUGE_COUNT < 32, "masks of 32 bits");

/*
 * Most machines and most questions need the first gauges only: room for the others is made when one
 * of them is read.
 */
enum { EW_GAUGE_BASE_COUNT = EW_G_pool_paged_bytes };

/*
 * Gauges that are read together share the time of their reading: one that a reading of its class
 * does not bring is not known any more.
 */
enum ew_gauge_class {
    EW_GAUGES_MEMORY,
    EW_GAUGES_PEAK, /* exits tell it alone */
    EW_GAUGES_THREADS,
    EW_GAUGES_SCHEDULING, /* the first thread's */
    EW_GAUGES_HANDLES,
    EW_GAUGES_IO_PRIORITY,
    EW_GAUGE_CLASS_COUNT
};

#define EW_HAS_C(name) (1u << EW_C_##name)
#define EW_HAS_G(name) (1u << EW_G_##name)

#define EW_GAUGE_CLASS_MASKS                                                                       \
    {                                                                                              \
        [EW_GAUGES_MEMORY] = EW_HAS_G(rss_bytes) | EW_HAS_G(private_bytes) |                       \
                             EW_HAS_G(virtual_bytes) | EW_HAS_G(pool_paged_bytes) |                \
                             EW_HAS_G(pool_nonpaged_bytes),                                        \
        [EW_GAUGES_PEAK] = EW_HAS_G(rss_peak_bytes),                                               \
        [EW_GAUGES_THREADS] = EW_HAS_G(threads) | EW_HAS_G(threads_running) |                      \
                              EW_HAS_G(threads_ready) | EW_HAS_G(threads_waiting) |                \
                              EW_HAS_G(threads_suspended),                                         \
        [EW_GAUGES_IO_PRIORITY] = EW_HAS_G(io_priority),                                           \
        [EW_GAUGES_SCHEDULING] = EW_HAS_G(priority) | EW_HAS_G(affinity),                          \
        [EW_GAUGES_HANDLES] = EW_HAS_G(handles) | EW_HAS_G(handles_peak) | EW_HAS_G(gdi_objects) | \
                              EW_HAS_G(user_objects),                                              \
    }

#endif
