/* SPDX-License-Identifier: MIT */
/*
 * Only the N processes with the most of something in each interval; what the others did is one
 * sample of the rest. Stands behind the sampler; starts and exits pass.
 */
#ifndef EW_MONITOR_TOP_N_H
#define EW_MONITOR_TOP_N_H

#include <etwatch/etwatch.h>

enum { EW_TOP_N_HELD_MAX = 65536 }; /* objects of one interval; more are cut as one more */

struct ew_top_n {
    uint32_t count;  /* 0: all of them, nothing is held */
    uint32_t metric; /* enum etwatch_metric */
    void *ctx;
    void (*deliver)(void *ctx, const struct etwatch_sample *samples, size_t count);

    struct etwatch_sample *held;
    struct ew_top_n_rank *ranks;
    uint32_t held_count, held_room;
    uint64_t end_ns; /* of the interval that is held; 0: none */
};

void ew_top_n_done(struct ew_top_n *top_n);
/* As the sampler emits them; their strings stay until flush. */
void ew_top_n_put(struct ew_top_n *top_n, const struct etwatch_sample *samples, size_t count);
void ew_top_n_flush(struct ew_top_n *top_n);

#endif
