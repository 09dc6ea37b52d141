/* SPDX-License-Identifier: MIT */
/*
 * Batteries: /sys/class/power_supply/BAT0 (Documentation/ABI/testing/sysfs-class-power). While one
 * is discharged its power is that of the whole machine with its screen, which is all that some
 * machines report. Energy is power times time, so it is an estimate; it is not attributed, because
 * it contains every other meter. A battery that is charged or full says nothing about the machine:
 * then both are unknown.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "model/metric.h"
#include "sensor/sensor.h"
#include "sensor/sysfs_linux.h"

enum { BATTERIES_MAX = 8, FOLDER_SIZE = 1024 };

struct battery {
    char name[32];
    char folder[FOLDER_SIZE];
    uint64_t last_ns;
    bool discharged; /* also at the last reading */
};

struct batteries {
    char folder[FOLDER_SIZE / 2];
    struct battery list[BATTERIES_MAX];
    uint32_t count;
};

/* Batteries of mice and keyboards have the scope Device. */
static void add_battery(void *ctx, const char *name)
{
    struct batteries *batteries = ctx;
    char text[32], folder[FOLDER_SIZE];
    if (batteries->count == BATTERIES_MAX)
        return;
    struct battery *battery = &batteries->list[batteries->count];
    memset(battery, 0, sizeof *battery);
    (void)snprintf(battery->name, sizeof battery->name, "%.31s", name);
    (void)snprintf(folder, sizeof folder, "%s/%.256s", batteries->folder, name);
    memcpy(battery->folder, folder, sizeof folder);
    if (!ew_sysfs_read_text(battery->folder, "type", text, sizeof text) ||
        strcmp(text, "Battery") != 0)
        return;
    bool other = ew_sysfs_read_text(battery->folder, "scope", text, sizeof text) &&
                 strcmp(text, "Device") == 0;
    batteries->count += !other;
}

static void find(const struct ew_sensor_config *config, struct batteries *batteries)
{
    memset(batteries, 0, sizeof *batteries);
    (void)snprintf(batteries->folder, sizeof batteries->folder, "%.400s/class/power_supply",
                   config->sys_root);
    (void)ew_sysfs_list(batteries->folder, add_battery, batteries);
}

static bool probe(const struct ew_sensor_config *config, struct ew_error *reterr)
{
    struct batteries batteries;
    find(config, &batteries);
    if (batteries.count == 0)
        (void)ew_error_set(reterr, ETWATCH_ENOTSUP, 0, "no battery");
    return batteries.count > 0;
}

static int open_batteries(const struct ew_sensor_config *config, void **ret_state,
                          struct ew_error *reterr)
{
    struct batteries *batteries = ew_calloc(1, sizeof *batteries);
    (void)reterr;
    if (batteries == NULL)
        return ETWATCH_ENOMEM;
    find(config, batteries);
    *ret_state = batteries;
    return 0;
}

static void close_batteries(void *state)
{
    ew_free(state);
}

/* power_now in uW, or current_now in uA times voltage_now in uV. */
static bool read_watts(const struct battery *battery, double *ret_watts)
{
    uint64_t power = 0, current = 0, voltage = 0;
    if (ew_sysfs_read_number(battery->folder, "power_now", &power))
        *ret_watts = (double)power / 1e6;
    else if (ew_sysfs_read_number(battery->folder, "current_now", &current) &&
             ew_sysfs_read_number(battery->folder, "voltage_now", &voltage))
        *ret_watts = (double)current * (double)voltage / 1e12;
    else
        return false;
    return *ret_watts > 0 && *ret_watts < 1000;
}

static void read_battery(struct battery *battery, uint64_t now_ns, struct ew_device_reading *out)
{
    char status[32];
    double watts = 0;
    bool discharged = ew_sysfs_read_text(battery->folder, "status", status, sizeof status) &&
                      strcmp(status, "Discharging") == 0 && read_watts(battery, &watts);
    if (discharged) {
        EW_DEVICE_PUT(out, power_watts, watts);
        out->from_ns = battery->last_ns;
    }
    if (discharged && battery->discharged && battery->last_ns != 0) {
        EW_DEVICE_PUT(out, energy_uj,
                      (uint64_t)(watts * (double)(now_ns - battery->last_ns) / 1e3));
        etwatch_metric_set_add(&out->estimated, ETWATCH_D_energy_uj);
    }
    battery->discharged = discharged;
    battery->last_ns = now_ns;
}

static int read_batteries(void *state, uint64_t now_ns, struct ew_sensor_batch *batch,
                          struct ew_error *reterr)
{
    struct batteries *batteries = state;
    (void)reterr;
    for (uint32_t i = 0; i < batteries->count; i++) {
        struct ew_device_reading *out = ew_sensor_add_device(batch);
        if (out == NULL)
            break;
        out->kind = ETWATCH_DEVICE_ENERGY;
        out->index = i;
        out->t_ns = now_ns;
        (void)snprintf(out->driver, sizeof out->driver, "power_supply");
        (void)snprintf(out->id, sizeof out->id, "battery/%s", batteries->list[i].name);
        read_battery(&batteries->list[i], now_ns, out);
    }
    return 0;
}

const struct ew_sensor_ops ew_sensor_battery = {
    .name = "power_supply",
    .kinds = 1u << ETWATCH_DEVICE_ENERGY,
    .min_period_ns = 1000000000, /* reading asks the controller of the battery */
    .probe = probe,
    .open = open_batteries,
    .close = close_batteries,
    .read = read_batteries,
};
