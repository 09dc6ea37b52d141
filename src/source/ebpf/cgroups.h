/* SPDX-License-Identifier: MIT */
/* The ids by which the kernel knows the cgroups that were asked for. */
#ifndef EW_SOURCE_EBPF_CGROUPS_H
#define EW_SOURCE_EBPF_CGROUPS_H

#include <stdint.h>

#include "base/error.h"

/*
 * The id of a cgroup of version 2, by its path or as "container:ID". ENOENT: there is none, or more
 * than one container begins like that; ENOTSUP: it is not in the hierarchy of version 2.
 */
int ew_ebpf_cgroup_id(const char *wanted, uint64_t *ret_id, struct ew_error *reterr);

#endif
