/* SPDX-License-Identifier: MIT */
/*
 * Only the N processes with the most of something in each interval; what the others did is one
 * sample of the rest. Stands behind the sampler; starts and exits pass.
 */
#ifndef EW_MONITOR_TOP_N_H
#define EW_MONITOR_TOP_N_H

#include <etwatch/etwatch.h>

enum { EW_BUSIEST_HELD_MAX = 65536 }; /* objects of one interval; more are cut as one more */

struct ew_busiest {
    uint32_t count;  /* 0: all of them, nothing is held */
    uint32_t metric; /* enum etwatch_metric */
    void *ctx;
    void (*deliver)(void *ctx, const struct etwatch_sample *samples, size_t count);

    struct etwatch_sample *held;
    struct ew_busiest_rank *ranks;
    uint32_t held_count, held_room;
    uint64_t end_ns; /* of the interval that is held; 0: none */
};

void ew_busiest_done(struct ew_busiest *busiest);
/* As the sampler emits them; their strings stay until flush. */
void ew_busiest_put(struct ew_busiest *busiest, const struct etwatch_sample *samples, size_t count);
void ew_busiest_flush(struct ew_busiest *busiest);

#endif
