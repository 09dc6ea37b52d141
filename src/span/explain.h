/* SPDX-License-Identifier: MIT */
/* Statistics over explained spans: percentiles, totals by cause, and what the slow ones have more.
 */
#ifndef EW_SPANS_EXPLAIN_H
#define EW_SPANS_EXPLAIN_H

#include <etwatch/span.h>

/* The spans that are kept for statistics; later ones are only counted. */
enum { EW_SPANS_KEPT_MAX = 200000, EW_SPANS_KEPT_CAUSES = 3 };

/* What is kept of one span. */
struct ew_spans_kept {
    uint64_t latency_ns;
    uint64_t ns[ETWATCH_CAUSE_COUNT];
    struct etwatch_cause causes[EW_SPANS_KEPT_CAUSES];
    uint32_t cause_count;
    uint32_t group;
    /* For a sliding window. */
    uint64_t end_ns;
    uint64_t helper_cpu_ns, helper_ready_ns, shared_cpu_ns, wait_cpu_ns, fault_count;
    uint64_t gpu_ns, wait_gpu_ns;
    uint32_t gpu_kernels, flags, preempted, helpers;
};

/* Fills percentiles and the comparison of slow and typical spans. kept: `count` spans of the group;
 * their order is changed. */
void ew_spans_explain(struct ew_spans_kept *kept, size_t count, struct etwatch_span_group *group);

#endif
