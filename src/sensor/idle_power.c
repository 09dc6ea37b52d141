/* SPDX-License-Identifier: MIT */
#include "sensor/idle_power.h"

static const double nearly_idle = 0.05;

uint64_t ew_idle_power_split(struct ew_idle_power *idle, uint64_t energy_uj, uint64_t dt_ns,
                             double use)
{
    if (dt_ns == 0)
        return 0;
    use = use < 0 ? 0 : use > 1 ? 1 : use;
    double watts = (double)energy_uj * 1e3 / (double)dt_ns;
    if (use < nearly_idle && (!idle->known || watts < idle->watts)) {
        idle->known = true;
        idle->watts = watts;
    }
    double part = idle->known ? idle->watts * (double)dt_ns / 1e3 : (double)energy_uj * (1 - use);
    return part < (double)energy_uj ? (uint64_t)part : energy_uj;
}
