/* SPDX-License-Identifier: MIT */
/*
 * Computes the sampling rate that keeps the monitor within its budget. Above the budget the rate
 * falls by a fifth at once; below two fifths of it, twice in a row, it rises by a fifth up to the
 * requested rate. Pure: CPU time in, rate out.
 */
#ifndef EW_SAMPLER_BUDGET_H
#define EW_SAMPLER_BUDGET_H

#include <stdint.h>

#define EW_BUDGET_HZ_MIN 0.1

struct ew_budget {
    double requested_hz;
    double percent; /* of one core */
    double hz;      /* effective */
    uint32_t calm;  /* periods in a row well under the budget */
};

void ew_budget_init(struct ew_budget *budget, double requested_hz, double percent);
/* Call about once a second with CPU time and wall time since the last call. Returns the new rate.
 */
double ew_budget_feed(struct ew_budget *budget, uint64_t own_cpu_ns, uint64_t wall_ns);

#endif
