/* SPDX-License-Identifier: MIT */
/* How cgroups and containers are selected and shown: one rule for polling, eBPF and exclusion. */
#ifndef EW_MODEL_CGROUP_H
#define EW_MODEL_CGROUP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"

/* Prefix of a container id in a cgroup filter. */
#define EW_CGROUP_CONTAINER "container:"
enum { EW_CONTAINER_ID_LEN = 64, EW_CONTAINER_ID_LEN_MIN = 4 };

/* The id behind "container:", or NULL if the filter is a path. */
const char *ew_cgroup_requested_container(const char *wanted);

/*
 * The id of the container that a cgroup belongs to: 64 hexadecimal digits, the name that docker,
 * podman, containerd and cri-o give its folder, alone or as in docker-ID.scope. Of nested
 * containers the innermost. The folder of a container's monitor process (libpod-conmon-ID.scope)
 * does not count.
 */
bool ew_cgroup_container(struct ew_span path, struct ew_span *ret_id);

/*
 * Whether processes in this cgroup match the filter. A path matches itself and everything below it;
 * "container:ID" matches if this cgroup or one above it belongs to a container with an id that
 * starts like that.
 */
bool ew_cgroup_matches(struct ew_span path, const char *wanted);

/* The same for all lines of /proc/PID/cgroup. Paths are those of version 2; containers are also
 * found in version 1. */
bool ew_cgroup_text_matches(const char *text, size_t len, const char *wanted);

/*
 * The path to show from /proc/PID/cgroup: that of a container if there is one, in version 2 or 1;
 * else that of version 2, else the one named by systemd. False if there is none. *ret_only: the
 * result depends on version 2 alone, so all processes in the same cgroup of version 2 share it.
 */
bool ew_cgroup_shown(const char *text, size_t len, struct ew_span *ret_path, bool *ret_only);

#endif
