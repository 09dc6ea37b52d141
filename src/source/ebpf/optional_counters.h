/* SPDX-License-Identifier: MIT */
/* What is added up only on request, seen from user space. */
#ifndef EW_SOURCE_EBPF_OPTIONAL_COUNTERS_H
#define EW_SOURCE_EBPF_OPTIONAL_COUNTERS_H

#include "source/ebpf/abi.h"
#include "source/source.h"

#define EW_EBPF_NET (ETWATCH_HAS(net_received_bytes) | ETWATCH_HAS(net_sent_bytes))
#define EW_EBPF_PMU (ETWATCH_HAS(cycles) | ETWATCH_HAS(instructions) | ETWATCH_HAS(cache_misses))

struct ew_ebpf_optional {
    uint32_t cpu_count;
    bool want_net, net;             /* asked for; attached */
    bool net_tracepoints, has_ipv6; /* by which way; see extra.h */
    uint32_t pmu;                   /* enum ew_k_pmu: the counters that count */
    int *fds;                       /* by counter and CPU; NULL: not asked for */
    char why_no_pmu[160];
};

/* Opens the hardware counters that are asked for and there. 0 or ETWATCH_ENOMEM. */
int ew_ebpf_optional_open(struct ew_ebpf_optional *optional, const struct ew_source_config *config,
                          uint32_t cpu_count);
void ew_ebpf_optional_close(struct ew_ebpf_optional *optional);
/* The maps that want the counters, NULL after the last; and puts them there. 0 or -errno. */
const char *ew_ebpf_optional_map(uint32_t i);
int ew_ebpf_optional_fill(const struct ew_ebpf_optional *optional, uint32_t which, int map_fd);

uint64_t ew_ebpf_optional_available(const struct ew_ebpf_optional *optional);
/* Why this metric, which was asked for, cannot be had; NULL: it can, or it is none of these. */
const char *ew_ebpf_optional_lacks(const struct ew_ebpf_optional *optional, uint32_t metric);
/* Writes the counters that there are; returns EW_HAS_C bits. */
uint32_t ew_ebpf_optional_counters(const struct ew_ebpf_optional *optional,
                                   const struct ew_k_extra *sums, uint64_t *counter);

#endif
