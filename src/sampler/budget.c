/* SPDX-License-Identifier: MIT */
/*
 * The gap between the two thresholds keeps the rate from oscillating: a step up from two fifths of
 * the budget costs at most 0.48 of it, a step down from the budget leaves 0.8; neither reaches the
 * range that would undo it. Raising also waits for a second calm period, so that one quiet second
 * between bursts changes nothing.
 */
#include "sampler/budget.h"

#define LOWER 0.8
#define RAISE 1.2
#define CALM_SHARE 0.4
#define CALM_PERIODS 2u

void ew_budget_init(struct ew_budget *budget, double requested_hz, double percent)
{
    *budget =
        (struct ew_budget){.requested_hz = requested_hz, .percent = percent, .hz = requested_hz};
}

double ew_budget_feed(struct ew_budget *budget, uint64_t own_cpu_ns, uint64_t wall_ns)
{
    if (wall_ns == 0)
        return budget->hz;
    double used = 100.0 * (double)own_cpu_ns / (double)wall_ns;
    if (used > budget->percent) {
        budget->calm = 0;
        double floor =
            budget->requested_hz < EW_BUDGET_HZ_MIN ? budget->requested_hz : EW_BUDGET_HZ_MIN;
        double lower = budget->hz * LOWER;
        budget->hz = lower > floor ? lower : floor;
    } else if (used >= budget->percent * CALM_SHARE) {
        budget->calm = 0;
    } else if (++budget->calm >= CALM_PERIODS) {
        budget->calm = 0;
        double raised = budget->hz * RAISE;
        budget->hz = raised < budget->requested_hz ? raised : budget->requested_hz;
    }
    return budget->hz;
}
