/* SPDX-License-Identifier: MIT */
/*
 * The part of a device's energy that it would also have used if nothing had run.
 *
 * No device reports it. If the device was seen nearly idle (less than 5 % in use), its power then
 * is its idle power; the lowest such power counts. Before that, the share of the time in which it
 * was idle is taken, which is too much for idle time: an idle device needs less power than a busy
 * one.
 */
#ifndef EW_SENSOR_IDLE_POWER_H
#define EW_SENSOR_IDLE_POWER_H

#include <stdbool.h>
#include <stdint.h>

struct ew_idle_power {
    bool known;
    double watts;
};

/* The idle part of energy_uj, used in dt_ns at this use (0 to 1). Never more than energy_uj. */
uint64_t ew_idle_power_split(struct ew_idle_power *idle, uint64_t energy_uj, uint64_t dt_ns,
                             double use);

#endif
