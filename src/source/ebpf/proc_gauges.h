/* SPDX-License-Identifier: MIT */
/* What no event carries, read beside the events: only on request, only of processes that ran. */
#ifndef EW_SOURCE_EBPF_PROC_GAUGES_H
#define EW_SOURCE_EBPF_PROC_GAUGES_H

#include "source/source.h"

struct ew_ebpf_source;
struct ew_proc_gauges;

/* *ret_aside is NULL if nothing of it is wanted. 0 or ETWATCH_ENOMEM. What cannot be read here is
 * not offered. */
int ew_proc_gauges_new(struct ew_ebpf_source *source, const struct ew_source_config *config,
                       struct ew_proc_gauges **ret_aside);
void ew_proc_gauges_free(struct ew_proc_gauges *proc_gauges);

/* It ran, or came. NULL is fine. */
void ew_proc_gauges_ran(struct ew_proc_gauges *proc_gauges, uint32_t pid);
void ew_proc_gauges_gone(struct ew_proc_gauges *proc_gauges, uint32_t pid);
/* Reads and tells what is due. */
void ew_proc_gauges_read(struct ew_proc_gauges *proc_gauges, uint64_t now_ns,
                         const struct ew_facts *facts);

/* ETWATCH_HAS bits that it can tell here. */
uint64_t ew_proc_gauges_available(const struct ew_proc_gauges *proc_gauges);

#endif
