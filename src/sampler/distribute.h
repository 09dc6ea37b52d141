/* SPDX-License-Identifier: MIT */
/* What happened between two readings, and the intervals it is put into. */
#ifndef EW_SAMPLER_DISTRIBUTE_H
#define EW_SAMPLER_DISTRIBUTE_H

#include "sampler/internal.h"

struct ew_delta {
    uint32_t has;
    bool any;                         /* anything at all */
    bool plain;                       /* none fell back, and of those outside has none changed */
    uint64_t count[EW_COUNTER_COUNT]; /* 0 outside has */
};

/* What the reading counts beyond `last`, for the counters in last_has. */
void ew_distribute_measure(const uint64_t *restrict last, uint32_t last_has,
                           const struct ew_reading *restrict reading,
                           struct ew_delta *restrict ret_delta);
/* Adds the counts that are wanted. */
void ew_distribute_add(uint64_t *restrict sums, const struct ew_delta *restrict delta,
                       uint32_t wanted);

/* Of the process itself. False without memory: nothing was placed. */
bool ew_distribute_process(struct ew_sampler *sampler, struct ew_process *process,
                           const struct ew_reading *reading, const struct ew_delta *delta);
/* Of a thread. *delta becomes what was placed; false: nothing. */
bool ew_distribute_thread(struct ew_sampler *sampler, struct ew_thread *thread,
                          const struct ew_reading *reading, struct ew_delta *delta);

/* round(total * part / whole); part <= whole. */
uint64_t ew_distribute_scale(uint64_t total, uint64_t part, uint64_t whole);
/* Can one thread spend so much CPU time in that time? */
bool ew_distribute_fits(uint64_t cpu_ns, uint64_t wall_ns);

static inline bool ew_distribute_ran(const struct ew_reading *reading)
{
    return reading->kind == EW_READING_SPAN || reading->kind == EW_READING_FINAL;
}

#endif
