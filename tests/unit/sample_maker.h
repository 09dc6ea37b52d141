/* SPDX-License-Identifier: MIT */
/* Samples for the sink tests: a fixed set with known text, and sinks that write to memory. */
#ifndef SAMPLE_MAKER_H
#define SAMPLE_MAKER_H

#include <string.h>

#include <etwatch/sink.h>

#include "base/buf.h"
#include "model/metric.h"

#define SECOND_NS ((uint64_t)1000000000)
#define T0_NS ((uint64_t)1763269862 * SECOND_NS) /* 2025-11-16 05:11:02 UTC */

static inline struct etwatch_sample make_sample(uint32_t type, uint32_t pid, const char *name,
                                                uint64_t at_ms)
{
    return (struct etwatch_sample){
        .size = sizeof(struct etwatch_sample),
        .type = type,
        .source = ETWATCH_SOURCE_EBPF,
        .flags = ETWATCH_SAMPLE_COMPLETE | ETWATCH_SAMPLE_HAS_PPID | ETWATCH_SAMPLE_HAS_SESSION,
        .pid = pid,
        .ppid = 1,
        .session_id = 7,
        .start_ns = T0_NS - SECOND_NS + pid,
        .t_ns = T0_NS + at_ms * 1000000,
        .dt_ns = type == ETWATCH_TYPE_START ? 0 : 100000000,
        .name = name,
        .user = "root",
        .cgroup = "/init.scope",
    };
}

static inline void set_cpu(struct etwatch_sample *s, uint64_t cpu_ns)
{
    s->cpu_ns = cpu_ns;
    s->cpu_user_ns = cpu_ns / 4 * 3;
    s->cpu_kernel_ns = cpu_ns - s->cpu_user_ns;
    s->cpu_percent = s->dt_ns == 0 ? 0 : 100.0 * (double)cpu_ns / (double)s->dt_ns;
    s->switches_voluntary = 12;
    s->switches_involuntary = 3;
    s->runq_wait_ns = 250000;
    etwatch_metric_set_union(
        &s->has, &EW_METRICS(ETWATCH_M_cpu_ns, ETWATCH_M_cpu_user_ns, ETWATCH_M_cpu_kernel_ns,
                             ETWATCH_M_cpu_percent, ETWATCH_M_switches_voluntary,
                             ETWATCH_M_switches_involuntary, ETWATCH_M_runq_wait_ns));
}

static inline void set_memory(struct etwatch_sample *s, uint64_t rss_bytes)
{
    s->rss_bytes = rss_bytes;
    s->faults_minor = 41;
    s->threads = 2;
    s->priority = -20;
    etwatch_metric_set_union(&s->has, &EW_METRICS(ETWATCH_M_rss_bytes, ETWATCH_M_faults_minor,
                                                  ETWATCH_M_threads, ETWATCH_M_priority));
}

/* A write function that appends everything to a struct ew_buf. */
static inline int keep(void *ctx, const void *bytes, size_t len)
{
    ew_buf_bytes(ctx, bytes, len);
    return ((struct ew_buf *)ctx)->error;
}

#endif
