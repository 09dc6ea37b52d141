/* SPDX-License-Identifier: MIT */
/*
 * How fast to sample so that the monitor stays within its budget. Over the budget the rate falls by
 * a fifth at once; under two fifths of it, twice in a row, it rises by a fifth up to what was
 * asked. Pure: it is told what was used and answers with a rate.
 */
#ifndef EW_SAMPLER_BUDGET_H
#define EW_SAMPLER_BUDGET_H

#include <stdint.h>

#define EW_BUDGET_HZ_MIN 0.1

struct ew_budget {
    double asked_hz;
    double percent; /* of one core */
    double hz;      /* in force */
    uint32_t calm;  /* periods in a row well under the budget */
};

void ew_budget_init(struct ew_budget *budget, double asked_hz, double percent);
/* About once a second: CPU time used and time passed since the last call. The rate from now on. */
double ew_budget_feed(struct ew_budget *budget, uint64_t own_cpu_ns, uint64_t wall_ns);

#endif
