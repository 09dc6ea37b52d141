/* SPDX-License-Identifier: MIT */
/*
 * Energy on Windows: meters of the Energy Meter Interface (EMI, Windows 10 and newer), which count
 * in picowatt-hours; where there is none, the battery.
 *
 * A meter has channels. Those of Intel's RAPL get the ids that Linux has for them: package-0,
 * package-0/core, package-0/uncore, package-0/dram. Packages and their memory are attributed to
 * processes by CPU time, as on Linux. Other channels (sockets and rails of AMD, of boards) are
 * reported only: one may contain another, which no driver says.
 *
 * A meter may be updated more slowly than it is read: energy and time are those between two of its
 * own measurements. The battery has only a power, while it discharges, and it is that of the whole
 * machine with its screen: its energy is an estimate and is not attributed.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "model/metric.h"
#include "sensor/emi_api.h"
#include "sensor/emi_metadata.h"
#include "sensor/idle_power.h"
#include "sensor/sensor.h"

enum { METERS_MAX = 16, CHANNELS_MAX = 128 };
/* A picowatt-hour is 0.0036 microjoules. */
enum { UJ_PER_PWH_TOP = 9, UJ_PER_PWH_BOTTOM = 2500 };
static const double watts_max = 1e6;

struct channel {
    char id[EW_DEVICE_ID_SIZE];
    bool attributed;
    struct ew_emi_measurement last;
    uint64_t last_ns;  /* 0: nothing was measured yet */
    uint64_t left_pwh; /* of the last conversion, times UJ_PER_PWH_TOP */
    uint64_t busy_100ns, all_100ns;
    struct ew_idle_power idle;
};

struct emi {
    const struct ew_emi_api *api;
    void *meters[METERS_MAX];
    uint32_t channel_counts[METERS_MAX], meter_count;
    struct channel channels[CHANNELS_MAX];
    uint32_t channel_count;
    uint64_t battery_ns; /* of its last reading; 0: none */
};

static const struct ew_emi_api *api_of(const struct ew_sensor_config *config)
{
    return config->emi != NULL ? config->emi : ew_emi_real_api();
}

static bool probe(const struct ew_sensor_config *config, struct ew_error *reterr)
{
    const struct ew_emi_api *api = api_of(config);
    struct ew_emi_battery battery;
    void *meter = NULL;
    uint32_t code = 0;
    bool found = api != NULL && api->open(api->ctx, 0, &meter, &code);
    if (meter != NULL)
        api->close(api->ctx, meter);
    if (found || (api != NULL && api->battery(api->ctx, &battery)))
        return true;
    (void)ew_error_set(reterr, ETWATCH_ENOTSUP, 0,
                       "no energy meter: Windows has no meter device (EMI) and no battery");
    return false;
}

/* ----------------------------------------------------------------------------- open */

/* "RAPL_Package0_PKG", as Intel's driver and Microsoft's name them. */
static void name_channel(const char *name, struct channel *channel)
{
    static const struct {
        const char *suffix, *part;
        bool attributed;
    } parts[] = {{"PKG", "", true},
                 {"PP0", "/core", false},
                 {"PP1", "/uncore", false},
                 {"DRAM", "/dram", true}};
    unsigned package = 0;
    int at = 0;
    (void)snprintf(channel->id, sizeof channel->id, "%.60s", name);
    if (sscanf(name, "RAPL_Package%3u_%n", &package, &at) != 1 || at == 0)
        return;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strcmp(name + at, parts[i].suffix) == 0) {
            (void)snprintf(channel->id, sizeof channel->id, "package-%u%s", package, parts[i].part);
            channel->attributed = parts[i].attributed;
        }
}

/* False: it is not understood. */
static bool describe(struct emi *emi, void *meter, struct ew_emi_metadata *metadata)
{
    const struct ew_emi_api *api = emi->api;
    uint16_t version = 0;
    uint32_t size = 0, got = 0;
    if (api->control(api->ctx, meter, EW_EMI_VERSION, &version, sizeof version, &got) != 0 ||
        api->control(api->ctx, meter, EW_EMI_METADATA_SIZE, &size, sizeof size, &got) != 0 ||
        size == 0 || size > EW_EMI_METADATA_MAX)
        return false;
    uint8_t *bytes = ew_calloc(size, 1);
    bool known = bytes != NULL &&
                 api->control(api->ctx, meter, EW_EMI_METADATA, bytes, size, &got) == 0 &&
                 got <= size && ew_emi_metadata_parse(version, bytes, got, metadata);
    ew_free(bytes);
    return known;
}

/* Returns the error of Windows, 0 if the meter was added or is not understood. */
static uint32_t add_meter(struct emi *emi, void *meter, uint32_t code)
{
    struct ew_emi_metadata metadata;
    if (meter == NULL)
        return code;
    if (!describe(emi, meter, &metadata) ||
        metadata.channel_count > CHANNELS_MAX - emi->channel_count) {
        emi->api->close(emi->api->ctx, meter);
        return 0;
    }
    emi->meters[emi->meter_count] = meter;
    emi->channel_counts[emi->meter_count++] = metadata.channel_count;
    for (uint32_t i = 0; i < metadata.channel_count; i++)
        name_channel(metadata.channels[i], &emi->channels[emi->channel_count++]);
    return 0;
}

static void close_emi(void *state)
{
    struct emi *emi = state;
    for (uint32_t i = 0; i < emi->meter_count; i++)
        emi->api->close(emi->api->ctx, emi->meters[i]);
    ew_free(emi);
}

static int open_emi(const struct ew_sensor_config *config, void **ret_state,
                    struct ew_error *reterr)
{
    struct emi *emi = ew_calloc(1, sizeof *emi);
    struct ew_emi_battery battery;
    uint32_t refused = 0;
    if (emi == NULL)
        return ETWATCH_ENOMEM;
    emi->api = api_of(config);
    for (uint32_t i = 0; emi->api != NULL && i < METERS_MAX; i++) {
        void *meter = NULL;
        uint32_t code = 0;
        if (!emi->api->open(emi->api->ctx, i, &meter, &code))
            break;
        code = add_meter(emi, meter, code);
        refused = refused == 0 ? code : refused;
    }
    if (emi->meter_count == 0 &&
        (emi->api == NULL || !emi->api->battery(emi->api->ctx, &battery))) {
        close_emi(emi);
        return ew_error_set(reterr, refused == 5 ? ETWATCH_EPERM : ETWATCH_ENOTSUP, (int)refused,
                            "the energy meters of Windows cannot be read (error %u)", refused);
    }
    *ret_state = emi;
    return 0;
}

/* ----------------------------------------------------------------------------- read */

/* Puts what was used since the channel was measured last. */
static void put_energy(struct channel *channel, const struct ew_emi_measurement *now,
                       uint64_t now_ns, const uint64_t cpu[2], bool cpu_known, uint32_t cpus,
                       struct ew_device_reading *out)
{
    uint64_t dt_100ns = now->time_100ns - channel->last.time_100ns;
    uint64_t used_pwh = now->energy_pwh - channel->last.energy_pwh;
    double watts = (double)used_pwh * 0.0036 * 1e-6 / ((double)dt_100ns * 1e-7);
    if (watts > watts_max)
        return; /* a meter that started again, or nonsense */
    uint64_t scaled = used_pwh * UJ_PER_PWH_TOP + channel->left_pwh;
    uint64_t energy_uj = scaled / UJ_PER_PWH_BOTTOM;
    channel->left_pwh = scaled % UJ_PER_PWH_BOTTOM;
    out->from_ns = channel->last_ns;
    EW_DEVICE_PUT(out, energy_uj, energy_uj);
    EW_DEVICE_PUT(out, power_watts, watts);
    uint64_t all = cpu[1] - channel->all_100ns, busy = cpu[0] - channel->busy_100ns;
    if (!channel->attributed || !cpu_known || channel->all_100ns == 0 ||
        cpu[1] <= channel->all_100ns || cpu[0] < channel->busy_100ns || busy > all)
        return;
    double use = (double)busy / (double)all;
    uint64_t dt_ns = now_ns - channel->last_ns;
    out->by_cpu_time = true;
    out->cpu_busy_ns = (uint64_t)(use * (double)dt_ns * cpus);
    EW_DEVICE_PUT(out, idle_energy_uj, ew_idle_power_split(&channel->idle, energy_uj, dt_ns, use));
    etwatch_metric_set_add(&out->estimated, ETWATCH_D_idle_energy_uj);
}

static void read_meter(struct emi *emi, uint32_t meter, uint32_t first, uint64_t now_ns,
                       struct ew_sensor_batch *batch)
{
    const struct ew_emi_api *api = emi->api;
    struct ew_emi_measurement now[EW_EMI_CHANNELS_MAX];
    uint64_t cpu[2] = {0, 0};
    uint32_t count = emi->channel_counts[meter], got = 0;
    uint32_t size = count * (uint32_t)sizeof now[0];
    uint32_t code = api->control(api->ctx, emi->meters[meter], EW_EMI_MEASUREMENT, now, size, &got);
    bool cpu_known = api->cpu_times(api->ctx, &cpu[0], &cpu[1]);
    for (uint32_t i = 0; i < count; i++) {
        struct channel *channel = &emi->channels[first + i];
        struct ew_device_reading *out = ew_sensor_add_device(batch);
        if (out == NULL)
            return;
        out->kind = ETWATCH_DEVICE_ENERGY;
        out->index = first + i;
        out->t_ns = now_ns;
        (void)snprintf(out->driver, sizeof out->driver, "emi");
        (void)snprintf(out->id, sizeof out->id, "%s", channel->id);
        if (code != 0 || got < size) {
            (void)snprintf(batch->problem, sizeof batch->problem,
                           "the meter %s cannot be read (error %u)", channel->id, code);
            channel->last_ns = 0;
            continue;
        }
        if (channel->last_ns != 0 && now[i].time_100ns == channel->last.time_100ns)
            continue; /* not measured again yet: the next reading has it all */
        if (channel->last_ns != 0 && now[i].time_100ns > channel->last.time_100ns &&
            now[i].energy_pwh >= channel->last.energy_pwh)
            put_energy(channel, &now[i], now_ns, cpu, cpu_known, api->cpu_count(api->ctx), out);
        channel->last = now[i];
        channel->last_ns = now_ns;
        channel->busy_100ns = cpu_known ? cpu[0] : 0;
        channel->all_100ns = cpu_known ? cpu[1] : 0;
    }
}

static void read_battery(struct emi *emi, uint64_t now_ns, struct ew_sensor_batch *batch)
{
    struct ew_emi_battery battery = {0};
    struct ew_device_reading *out = ew_sensor_add_device(batch);
    if (out == NULL)
        return;
    out->kind = ETWATCH_DEVICE_ENERGY;
    out->t_ns = now_ns;
    (void)snprintf(out->driver, sizeof out->driver, "battery");
    (void)snprintf(out->id, sizeof out->id, "battery");
    bool known =
        emi->api->battery(emi->api->ctx, &battery) && battery.discharging && battery.rate_known;
    if (known) {
        EW_DEVICE_PUT(out, power_watts, battery.rate_mw / 1000.0);
        etwatch_metric_set_add(&out->estimated, ETWATCH_D_power_watts);
    }
    if (known && emi->battery_ns != 0) {
        out->from_ns = emi->battery_ns;
        EW_DEVICE_PUT(out, energy_uj,
                      (uint64_t)(battery.rate_mw * 1e-6 * (double)(now_ns - emi->battery_ns)));
        etwatch_metric_set_add(&out->estimated, ETWATCH_D_energy_uj);
    }
    emi->battery_ns = known ? now_ns : 0;
}

static int read_emi(void *state, uint64_t now_ns, struct ew_sensor_batch *batch,
                    struct ew_error *reterr)
{
    struct emi *emi = state;
    uint32_t first = 0;
    (void)reterr;
    for (uint32_t i = 0; i < emi->meter_count; i++) {
        read_meter(emi, i, first, now_ns, batch);
        first += emi->channel_counts[i];
    }
    if (emi->meter_count == 0)
        read_battery(emi, now_ns, batch);
    return 0;
}

const struct ew_sensor_ops ew_sensor_emi = {
    .name = "emi",
    .kinds = 1u << ETWATCH_DEVICE_ENERGY,
    .min_period_ns = 100000000,
    .metrics = EW_METRIC_SET(ETWATCH_M_energy_uj),
    .estimated = EW_METRIC_SET(ETWATCH_M_energy_uj),
    .probe = probe,
    .open = open_emi,
    .close = close_emi,
    .read = read_emi,
};
