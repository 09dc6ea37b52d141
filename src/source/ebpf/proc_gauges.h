/* SPDX-License-Identifier: MIT */
/* What no event carries, read beside the events: only on request, only of processes that ran. */
#ifndef EW_SOURCE_EBPF_PROC_GAUGES_H
#define EW_SOURCE_EBPF_PROC_GAUGES_H

#include "source/source.h"

struct ew_ebpf_source;
struct ew_aside;

/* *ret_aside is NULL if nothing of it is wanted. 0 or ETWATCH_ENOMEM. What cannot be read here is
 * not offered. */
int ew_aside_new(struct ew_ebpf_source *source, const struct ew_source_config *config,
                 struct ew_aside **ret_aside);
void ew_aside_free(struct ew_aside *aside);

/* It ran, or came. NULL is fine. */
void ew_aside_ran(struct ew_aside *aside, uint32_t pid);
void ew_aside_gone(struct ew_aside *aside, uint32_t pid);
/* Reads and tells what is due. */
void ew_aside_read(struct ew_aside *aside, uint64_t now_ns, const struct ew_facts *facts);

/* ETWATCH_HAS bits that it can tell here. */
uint64_t ew_aside_available(const struct ew_aside *aside);

#endif
