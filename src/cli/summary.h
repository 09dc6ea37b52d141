/* SPDX-License-Identifier: MIT */
/* The end of `run`: what each process and thread did, in one table. */
#ifndef EW_CLI_SUMMARY_H
#define EW_CLI_SUMMARY_H

#include "base/buf.h"
#include "sink/rollup.h"

struct ew_summary {
    struct ew_rollup rollup;
    uint64_t started;
    uint64_t exited;
    /* The child, when it was let go and when it ended: before that it was held, which is none of
     * its own time. 0: unknown. */
    uint32_t child_pid;
    uint64_t released_ns, ended_ns;
};

void ew_summary_init(struct ew_summary *summary);
void ew_summary_done(struct ew_summary *summary);
int ew_summary_add(struct ew_summary *summary, const struct etwatch_sample *sample);
/* how_it_ended: "exit status 0", …; width 0: lines are not cut. 0 or a negative code. */
int ew_summary_write(struct ew_summary *summary, struct ew_buf *out, const char *command,
                     const char *how_it_ended, const struct etwatch_stats *stats, uint32_t width,
                     bool color);

#endif
