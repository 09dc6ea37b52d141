/* SPDX-License-Identifier: MIT */
/* From the layouts of abi.h to the facts of the model. */
#ifndef EW_SOURCE_EBPF_CONVERT_H
#define EW_SOURCE_EBPF_CONVERT_H

#include "model/facts.h"
#include "source/ebpf/abi.h"

/* What of an entry is known on this machine. */
struct ew_ebpf_units {
    uint64_t page_bytes;
    uint64_t features;  /* enum ew_k_feature */
    uint32_t want;      /* enum ew_k_want: what the kernel copies */
    bool affinity_fits; /* no more CPUs than bits in a word */
};

/* The first process may have started at 0, which means unknown everywhere else. */
uint64_t ew_ebpf_start(uint64_t start_ns);
/* What is wanted (enum ew_k_want), less what a kernel with these features does not keep. */
uint32_t ew_ebpf_had(uint32_t want, uint64_t features);
/* The counters of an entry; cpu_ns may differ from the entry's when a run is credited up to now. */
void ew_ebpf_counters(const struct ew_ebpf_units *units, const struct ew_k_entry *entry,
                      uint64_t cpu_ns, uint32_t *ret_has, uint64_t counter[EW_COUNTER_COUNT]);
void ew_ebpf_gauges(const struct ew_ebpf_units *units, const struct ew_k_settled *settled,
                    uint32_t *ret_has, uint64_t gauge[EW_GAUGE_COUNT]);
/* The kind is the caller's. */
void ew_ebpf_process(const struct ew_ebpf_units *units, const struct ew_k_life *life,
                     struct ew_process_fact *ret_fact);

#endif
