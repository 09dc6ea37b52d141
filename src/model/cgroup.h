/* SPDX-License-Identifier: MIT */
/* How cgroups and containers are asked for and shown: one rule for polling, eBPF and exclusion. */
#ifndef EW_MODEL_CGROUP_H
#define EW_MODEL_CGROUP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"

/* What stands before the id of a container where a cgroup is asked for. */
#define EW_CGROUP_CONTAINER "container:"
enum { EW_CONTAINER_ID_LEN = 64, EW_CONTAINER_ID_LEN_MIN = 4 };

/* The id behind "container:", or NULL if a path is asked for. */
const char *ew_cgroup_asked_container(const char *wanted);

/*
 * The id of the container that a cgroup belongs to: 64 hexadecimal digits, as docker, podman,
 * containerd and cri-o name its folder, alone or as in docker-ID.scope; of nested ones the inner.
 * The folder of the process that only looks after a container (libpod-conmon-ID.scope) is not it.
 */
bool ew_cgroup_container(struct ew_span path, struct ew_span *ret_id);

/*
 * Whether whoever is in this cgroup is asked for: by a path, if it is that one or lies below it; by
 * "container:ID", if it or a cgroup above it is that of a container whose id begins like that.
 */
bool ew_cgroup_matches(struct ew_span path, const char *wanted);

/* The same for all lines of /proc/PID/cgroup. Paths are those of version 2; containers are found in
 * version 1 too. */
bool ew_cgroup_text_matches(const char *text, size_t len, const char *wanted);

/*
 * The path to show of /proc/PID/cgroup: of a container if there is one, in version 2 or 1; else
 * that of version 2, else what systemd named. False if there is none. *ret_only: version 2 alone
 * decides it, so everybody in the same cgroup of version 2 has the same.
 */
bool ew_cgroup_shown(const char *text, size_t len, struct ew_span *ret_path, bool *ret_only);

#endif
