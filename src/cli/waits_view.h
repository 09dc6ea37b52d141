/* SPDX-License-Identifier: MIT */
/* What waits and run --waits show: the threads of some processes, who woke them, and chains. */
#ifndef EW_CLI_WAITS_VIEW_H
#define EW_CLI_WAITS_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "sampler/waits.h"

struct ew_waits_view {
    struct ew_waits *waits;
    uint32_t *pids; /* of whom it tells */
    uint32_t pid_count;
    bool all;
    bool faults; /* the time of page faults is known */
    bool disks;  /* and that of requests to disks */
};

/* 0 or ETWATCH_ENOMEM. */
int ew_waits_view_add(struct ew_waits_view *view, uint32_t pid);
void ew_waits_view_done(struct ew_waits_view *view);
/* As tables for people, or as JSON Lines. 0 or a negative code. */
int ew_waits_view_write(const struct ew_waits_view *view, struct ew_buf *out, bool json,
                        uint32_t width, bool color);

#endif
