/* SPDX-License-Identifier: MIT */
/*
 * The counters and gauges that sources read, ledgers keep and samplers report, as dense indexes.
 *
 * A source that does not provide one leaves its bit in `has` clear. Each index is named after its
 * public metric, so a new counter is one line here and one in the source that reads it.
 */
#ifndef EW_MODEL_COUNTER_H
#define EW_MODEL_COUNTER_H

#include <stdint.h>

#include <etwatch/etwatch.h>

/* Cumulative; never decreases during the lifetime of a thread or process. */
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

/* Provided by few sources. */
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

/* Sources that count in the kernel provide only the first ones. Loops that run for every reading
 * skip the others unless a reading has any of them. */
enum { EW_COUNTER_BASE_COUNT = EW_C_net_received_bytes };

/* Values at one instant, per process; priority and affinity also per thread. */
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
    X(threads_suspended)   \
    X(rss_private_bytes)

#define EW_GAUGES(X) EW_GAUGES_BASE(X) EW_GAUGES_MORE(X)

enum ew_gauge {
#define EW_X(name) EW_G_##name,
    EW_GAUGES(EW_X)
#undef EW_X
        EW_GAUGE_COUNT
};

_Static_assert(EW_COUNTER_COUNT < 32 && EW_GAUGE_COUNT < 32, "masks of 32 bits");

/* Most configurations use only the first gauges: memory for the others is allocated when one of
 * them is read. */
enum { EW_GAUGE_BASE_COUNT = EW_G_pool_paged_bytes };

/*
 * Gauges of one class are read together and share the time of the reading: a gauge that is missing
 * from a reading of its class becomes unknown.
 */
enum ew_gauge_class {
    EW_GAUGES_MEMORY,
    EW_GAUGES_PEAK, /* reported alone by exits */
    EW_GAUGES_THREADS,
    EW_GAUGES_SCHEDULING, /* of the first thread */
    EW_GAUGES_HANDLES,
    EW_GAUGES_IO_PRIORITY,
    EW_GAUGE_CLASS_COUNT
};

/* What sensors, or events of devices, report per process, next to the readings of the source. Most
 * processes have none of them, so they are kept apart. */
#define EW_DEVICE_VALUES(X) \
    X(gpu_ns)               \
    X(npu_ns)               \
    X(energy_uj)            \
    X(presents)             \
    X(gpu_encoder_ns)       \
    X(gpu_decoder_ns)       \
    X(gpu_memory_bytes)

enum ew_device_value {
#define EW_X(name) EW_DV_##name,
    EW_DEVICE_VALUES(EW_X)
#undef EW_X
        EW_DEVICE_VALUE_COUNT
};

#define EW_HAS_DV(name) (1u << EW_DV_##name)
#define EW_HAS_C(name) (1u << EW_C_##name)
#define EW_HAS_G(name) (1u << EW_G_##name)

#define EW_GAUGE_CLASS_MASKS                                                                       \
    {                                                                                              \
        [EW_GAUGES_MEMORY] = EW_HAS_G(rss_bytes) | EW_HAS_G(private_bytes) |                       \
                             EW_HAS_G(virtual_bytes) | EW_HAS_G(pool_paged_bytes) |                \
                             EW_HAS_G(pool_nonpaged_bytes) | EW_HAS_G(rss_private_bytes),          \
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
