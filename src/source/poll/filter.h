/* SPDX-License-Identifier: MIT */
/* What the user asks a poll source to watch. */
#ifndef EW_SOURCE_POLL_FILTER_H
#define EW_SOURCE_POLL_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "source/source.h"

/* The rules, copied, so that the caller's may go. */
struct ew_poll_filter {
    bool all, kernel_threads;
    uint32_t *pids; /* only until the next round: there they become trees in the table, because a
                     * number means the process that has it now and not one that gets it later */
    uint32_t pid_count, pid_capacity;
    char **names;
    uint32_t name_count;
    uint32_t *uids;
    uint32_t uid_count;
    char **cgroups;
    uint32_t cgroup_count;
};

int ew_poll_filter_copy(struct ew_poll_filter *to, const struct ew_filter *from);
void ew_poll_filter_done(struct ew_poll_filter *filter);
int ew_poll_filter_add_pid(struct ew_poll_filter *filter, uint32_t pid);
bool ew_poll_filter_has_pid(const struct ew_poll_filter *filter, uint32_t pid);
bool ew_poll_filter_has_name(const struct ew_poll_filter *filter, const char *name);

#endif
