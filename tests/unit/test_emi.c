/* SPDX-License-Identifier: MIT */
/* Energy meters of Windows, with a fake of its functions: units, what is attributed, and what is
 * unknown. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "sensor/emi_api.h"
#include "sensor/emi_metadata.h"
#include "sensor/sensor.h"
#include "test.h"

extern const struct ew_sensor_ops ew_sensor_emi;

#define MS UINT64_C(1000000)
#define PWH_PER_UJ_TIMES_9 2500

/* ------------------------------------------------------------------------- metadata */

static size_t put(uint8_t *to, size_t at, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        to[at + i] = (uint8_t)(value >> 8 * i);
    return at + size;
}

static size_t put_wide(uint8_t *to, size_t at, const char *text)
{
    for (size_t i = 0; i <= strlen(text); i++)
        at = put(to, at, (unsigned char)text[i], 2);
    return at;
}

static size_t make_metadata(uint8_t *to, uint16_t version, const char *const *names, size_t count)
{
    size_t at = 0;
    memset(to, 0, 68);
    if (version == 1) {
        at = put(to, put(to, 68, 1, 2), 2 * (strlen(names[0]) + 1), 2);
        return put_wide(to, at, names[0]);
    }
    at = put(to, put(to, 64, 1, 2), count, 2);
    for (size_t i = 0; i < count; i++) {
        at = put(to, put(to, at, 0, 4), 2 * (strlen(names[i]) + 1), 2);
        at = put_wide(to, at, names[i]);
    }
    return at;
}

static const char *const rapl[] = {"RAPL_Package0_PKG", "RAPL_Package0_PP0", "RAPL_Package0_PP1",
                                   "RAPL_Package0_DRAM", "Current Socket Power"};

TEST(metadata_of_both_versions_is_read)
{
    uint8_t bytes[1024];
    struct ew_emi_metadata metadata;
    size_t size = make_metadata(bytes, 2, rapl, 5);
    CHECK(ew_emi_metadata_parse(2, bytes, size, &metadata));
    CHECK_EQ_UINT(metadata.channel_count, 5);
    CHECK_EQ_STR(metadata.channels[3], "RAPL_Package0_DRAM");
    size = make_metadata(bytes, 1, &rapl[4], 1);
    CHECK(ew_emi_metadata_parse(1, bytes, size, &metadata));
    CHECK_EQ_UINT(metadata.channel_count, 1);
    CHECK_EQ_STR(metadata.channels[0], "Current Socket Power");
}

TEST(metadata_that_is_cut_or_has_another_unit_is_refused)
{
    uint8_t bytes[1024];
    struct ew_emi_metadata metadata;
    for (uint16_t version = 1; version <= 2; version++) {
        size_t size = make_metadata(bytes, version, rapl, 5);
        for (size_t cut = 0; cut < size; cut++)
            CHECK(!ew_emi_metadata_parse(version, bytes, cut, &metadata));
        bytes[version == 1 ? 0 : 68] = 3;
        CHECK(!ew_emi_metadata_parse(version, bytes, size, &metadata));
    }
    size_t size = make_metadata(bytes, 2, rapl, 5);
    CHECK(!ew_emi_metadata_parse(3, bytes, size, &metadata));
    (void)put(bytes, 66, 0, 2);
    CHECK(!ew_emi_metadata_parse(2, bytes, size, &metadata)); /* no channel */
    (void)put(bytes, 66, 60000, 2);
    CHECK(!ew_emi_metadata_parse(2, bytes, size, &metadata));
}

/* -------------------------------------------------------------------------- a machine */

static struct {
    bool meter, battery, denied;
    uint32_t read_error;
    struct ew_emi_measurement now[5];
    uint64_t busy_100ns, all_100ns;
    struct ew_emi_battery state;
    int open;
} machine;

static bool open_meter(void *ctx, uint32_t index, void **ret_meter, uint32_t *ret_error)
{
    (void)ctx;
    if (!machine.meter || index > 0)
        return false;
    *ret_error = machine.denied ? 5 : 0;
    *ret_meter = machine.denied ? NULL : &machine;
    machine.open += !machine.denied;
    return true;
}

static uint32_t control(void *ctx, void *meter, uint32_t code, void *out, uint32_t size,
                        uint32_t *ret_size)
{
    uint8_t bytes[1024];
    uint16_t version = 2;
    (void)ctx;
    CHECK(meter == &machine);
    size_t length = make_metadata(bytes, 2, rapl, 5);
    uint32_t length_32 = (uint32_t)length;
    const void *from = code == EW_EMI_VERSION         ? (const void *)&version
                       : code == EW_EMI_METADATA_SIZE ? (const void *)&length_32
                       : code == EW_EMI_METADATA      ? (const void *)bytes
                                                      : (const void *)machine.now;
    if (code == EW_EMI_MEASUREMENT && machine.read_error != 0)
        return machine.read_error;
    memcpy(out, from, size);
    *ret_size = size;
    return 0;
}

static void close_meter(void *ctx, void *meter)
{
    (void)ctx;
    CHECK(meter == &machine);
    machine.open--;
}

static bool cpu_times(void *ctx, uint64_t *ret_busy_100ns, uint64_t *ret_all_100ns)
{
    (void)ctx;
    *ret_busy_100ns = machine.busy_100ns;
    *ret_all_100ns = machine.all_100ns;
    return true;
}

static uint32_t cpu_count(void *ctx)
{
    (void)ctx;
    return 4;
}

static bool battery(void *ctx, struct ew_emi_battery *ret_battery)
{
    (void)ctx;
    *ret_battery = machine.state;
    return machine.battery;
}

static const struct ew_emi_api api = {.open = open_meter,
                                      .control = control,
                                      .close = close_meter,
                                      .cpu_times = cpu_times,
                                      .cpu_count = cpu_count,
                                      .battery = battery};
static const struct ew_sensor_config config = {.energy = true, .emi = &api};
static void *opened;
static struct ew_sensor_batch batch;

static void start(void)
{
    struct ew_error err = {0};
    CHECK(ew_sensor_emi.probe(&config, &err));
    CHECK_EQ_INT(ew_sensor_emi.open(&config, &opened, &err), 0);
}

static const struct ew_device_reading *read_at(uint64_t t_ms, const char *id)
{
    struct ew_error err = {0};
    batch.device_count = batch.use_count = 0;
    batch.problem[0] = '\0';
    CHECK_EQ_INT(ew_sensor_emi.read(opened, t_ms * MS, &batch, &err), 0);
    for (uint32_t i = 0; i < batch.device_count; i++)
        if (strcmp(batch.devices[i].id, id) == 0)
            return &batch.devices[i];
    return NULL;
}

static void stop(void)
{
    ew_sensor_emi.close(opened);
    ew_free(batch.devices);
    memset(&batch, 0, sizeof batch);
    CHECK_EQ_INT(machine.open, 0);
}

/* 20 J in two seconds on each channel, 4 processors, a quarter of them busy. */
static void pass(uint64_t seconds)
{
    for (uint32_t i = 0; i < 5; i++) {
        machine.now[i].energy_pwh += seconds * 10000000 / 9 * PWH_PER_UJ_TIMES_9 + 1000;
        machine.now[i].time_100ns += seconds * 10000000;
    }
    machine.busy_100ns += seconds * 10000000;
    machine.all_100ns += seconds * 40000000;
}

TEST(picowatt_hours_become_joules_and_packages_are_attributed)
{
    memset(&machine, 0, sizeof machine);
    machine.meter = machine.battery = true;
    start();
    pass(3);
    const struct ew_device_reading *package = read_at(1000, "package-0");
    CHECK(package != NULL);
    CHECK(etwatch_metric_set_is_empty(&package->has)); /* nothing before the start */
    CHECK_EQ_UINT(batch.device_count, 5);              /* and no battery where there is a meter */
    pass(2);
    package = read_at(3000, "package-0");
    CHECK_EQ_UINT(package->from_ns, 1000 * MS);
    CHECK_NEAR(package->energy_uj, 20000000, 10);
    CHECK_NEAR(package->power_watts, 10, 0.001);
    CHECK(package->by_cpu_time);
    CHECK_EQ_UINT(package->cpu_busy_ns, 2000 * MS); /* a quarter of 4 processors for 2 s */
    CHECK(package->idle_energy_uj > 0 && package->idle_energy_uj < package->energy_uj);
    CHECK(etwatch_metric_set_has(&package->estimated, ETWATCH_D_idle_energy_uj));
    CHECK(!etwatch_metric_set_has(&package->estimated, ETWATCH_D_energy_uj));
    pass(1);
    CHECK(read_at(4000, "package-0/dram")->by_cpu_time);
    pass(1);
    /* Parts of the package, and meters of unknown extent. */
    CHECK(!read_at(5000, "package-0/core")->by_cpu_time);
    pass(1);
    CHECK(!read_at(6000, "Current Socket Power")->by_cpu_time);
    stop();
}

TEST(nothing_is_lost_between_conversions)
{
    uint64_t sum_uj = 0;
    memset(&machine, 0, sizeof machine);
    machine.meter = true;
    start();
    for (uint64_t i = 1; i <= 1000; i++) {
        machine.now[0].energy_pwh += 1111;
        machine.now[0].time_100ns += 1000000;
        const struct ew_device_reading *package = read_at(100 * i, "package-0");
        sum_uj +=
            etwatch_metric_set_has(&package->has, ETWATCH_D_energy_uj) ? package->energy_uj : 0;
    }
    CHECK_EQ_UINT(sum_uj, UINT64_C(999) * 1111 * 9 / 2500);
    stop();
}

TEST(a_meter_that_was_not_updated_has_no_zero)
{
    memset(&machine, 0, sizeof machine);
    machine.meter = true;
    start();
    pass(1);
    (void)read_at(1000, "package-0");
    CHECK(etwatch_metric_set_is_empty(&read_at(1500, "package-0")->has));
    pass(1);
    const struct ew_device_reading *package = read_at(2000, "package-0");
    CHECK_EQ_UINT(package->from_ns, 1000 * MS);
    CHECK_NEAR(package->power_watts, 10, 0.001);
    stop();
}

TEST(a_meter_that_starts_again_or_fails_is_unknown)
{
    memset(&machine, 0, sizeof machine);
    machine.meter = true;
    start();
    pass(5);
    (void)read_at(1000, "package-0");
    memset(machine.now, 0, sizeof machine.now);
    CHECK(etwatch_metric_set_is_empty(&read_at(2000, "package-0")->has));
    machine.read_error = 21;
    CHECK(etwatch_metric_set_is_empty(&read_at(3000, "package-0")->has));
    CHECK_CONTAINS(batch.problem, "error 21");
    machine.read_error = 0;
    pass(1);
    CHECK(etwatch_metric_set_is_empty(&read_at(4000, "package-0")->has));
    pass(1);
    CHECK_NEAR(read_at(5000, "package-0")->power_watts, 10, 0.001);
    CHECK_EQ_STR(batch.problem, "");
    pass(1);
    machine.now[0].energy_pwh += UINT64_C(1) << 62;
    CHECK(etwatch_metric_set_is_empty(&read_at(6000, "package-0")->has));
    stop();
}

TEST(a_battery_stands_in_only_where_there_is_no_meter)
{
    memset(&machine, 0, sizeof machine);
    machine.battery = true;
    machine.state = (struct ew_emi_battery){true, true, 15000};
    start();
    const struct ew_device_reading *reading = read_at(1000, "battery");
    CHECK_NEAR(reading->power_watts, 15, 0);
    CHECK(!etwatch_metric_set_has(&reading->has, ETWATCH_D_energy_uj));
    reading = read_at(3000, "battery");
    CHECK_EQ_UINT(reading->energy_uj, 30000000);
    CHECK(etwatch_metric_set_has(&reading->estimated, ETWATCH_D_energy_uj));
    CHECK(!reading->by_cpu_time);
    machine.state.discharging = false; /* connected: what the machine uses is unknown */
    CHECK(etwatch_metric_set_is_empty(&read_at(4000, "battery")->has));
    machine.state.discharging = true;
    CHECK(!etwatch_metric_set_has(&read_at(5000, "battery")->has, ETWATCH_D_energy_uj));
    machine.state.rate_known = false;
    CHECK(etwatch_metric_set_is_empty(&read_at(6000, "battery")->has));
    stop();
}

TEST(a_meter_without_rights_is_reported)
{
    struct ew_error err = {0};
    memset(&machine, 0, sizeof machine);
    machine.meter = machine.denied = true;
    CHECK(ew_sensor_emi.probe(&config, &err));
    CHECK_EQ_INT(ew_sensor_emi.open(&config, &opened, &err), ETWATCH_EPERM);
    CHECK_CONTAINS(err.message, "error 5");
}

TEST(a_machine_without_meter_and_battery_has_no_sensor)
{
    struct ew_error err = {0};
    memset(&machine, 0, sizeof machine);
    CHECK(!ew_sensor_emi.probe(&config, &err));
    CHECK_CONTAINS(err.message, "no energy meter");
}
