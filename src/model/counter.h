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
#define EW_COUNTERS(X)      \
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
    X(disk_write_bytes)     \
    X(net_received_bytes)   \
    X(net_sent_bytes)

enum ew_counter {
#define EW_X(name) EW_C_##name,
    EW_COUNTERS(EW_X)
#undef EW_X
        EW_COUNTER_COUNT
};

/* As of one instant; of a process, except priority and affinity, which a thread has too. */
#define EW_GAUGES(X)  \
    X(rss_bytes)      \
    X(rss_peak_bytes) \
    X(private_bytes)  \
    X(virtual_bytes)  \
    X(threads)        \
    X(handles)        \
    X(priority)       \
    X(affinity)

enum ew_gauge {
#define EW_X(name) EW_G_##name,
    EW_GAUGES(EW_X)
#undef EW_X
        EW_GAUGE_COUNT
};

#define EW_HAS_C(name) (1u << EW_C_##name)
#define EW_HAS_G(name) (1u << EW_G_##name)

#endif
