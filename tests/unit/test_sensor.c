/* SPDX-License-Identifier: MIT */
/* The runner of sensors, with drivers that hang, fail, or are not there. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "os/os.h"
#include "sensor/idle_power.h"
#include "sensor/sensor.h"
#include "test.h"

/* What the fake driver does is set before the sensors are opened, except `held`. */
static struct {
    struct ew_mutex *lock;
    struct ew_cond *changed;
    bool held; /* a read that finds it set waits until it is cleared */
    bool inside;
    bool absent;
    int fail_open, fail_read_at;
    int opened, closed, reads;
} driver;

static void driver_init(void)
{
    if (driver.lock == NULL) {
        CHECK_EQ_INT(ew_mutex_new(&driver.lock), 0);
        CHECK_EQ_INT(ew_cond_new(&driver.changed), 0);
    }
    driver.held = driver.inside = driver.absent = false;
    driver.fail_open = driver.fail_read_at = 0;
    driver.opened = driver.closed = driver.reads = 0;
}

static void hold(bool held)
{
    ew_mutex_lock(driver.lock);
    driver.held = held;
    ew_cond_signal(driver.changed);
    ew_mutex_unlock(driver.lock);
}

static int count_of(const int *value)
{
    ew_mutex_lock(driver.lock);
    int count = *value;
    ew_mutex_unlock(driver.lock);
    return count;
}

static void wait_inside(void)
{
    ew_mutex_lock(driver.lock);
    while (!driver.inside)
        (void)ew_cond_wait(driver.changed, driver.lock, 10);
    ew_mutex_unlock(driver.lock);
}

static bool fake_probe(const struct ew_sensor_config *config, struct ew_error *reterr)
{
    (void)config;
    if (driver.absent)
        (void)ew_error_set(reterr, ETWATCH_ENOTSUP, 0, "no such driver");
    return !driver.absent;
}

static int fake_open(const struct ew_sensor_config *config, void **ret_state,
                     struct ew_error *reterr)
{
    (void)config;
    *ret_state = &driver;
    if (driver.fail_open != 0)
        return ew_error_set(reterr, driver.fail_open, 0, "the driver is not loaded");
    ew_mutex_lock(driver.lock);
    driver.opened++;
    ew_mutex_unlock(driver.lock);
    return 0;
}

static void fake_close(void *state)
{
    (void)state;
    ew_mutex_lock(driver.lock);
    driver.closed++;
    ew_cond_signal(driver.changed);
    ew_mutex_unlock(driver.lock);
}

static int fake_read(void *state, uint64_t now_ns, struct ew_sensor_batch *batch,
                     struct ew_error *reterr)
{
    (void)state;
    ew_mutex_lock(driver.lock);
    driver.reads++;
    driver.inside = true;
    ew_cond_signal(driver.changed);
    while (driver.held)
        (void)ew_cond_wait(driver.changed, driver.lock, 10);
    driver.inside = false;
    int reads = driver.reads;
    ew_mutex_unlock(driver.lock);
    if (driver.fail_read_at != 0 && reads >= driver.fail_read_at)
        return ew_error_set(reterr, ETWATCH_EOS, 0, "the device is lost");
    struct ew_device_reading *reading = ew_sensor_add_device(batch);
    if (reading == NULL)
        return ETWATCH_ENOMEM;
    reading->kind = ETWATCH_DEVICE_GPU;
    reading->t_ns = now_ns;
    (void)snprintf(reading->driver, sizeof reading->driver, "fake");
    EW_DEVICE_PUT(reading, util_percent, 50);
    return 0;
}

static const struct ew_sensor_ops fake = {
    .name = "fake",
    .kinds = 1u << ETWATCH_DEVICE_GPU,
    .min_period_ns = 1000000,
    .metrics = {{UINT64_C(1) << ETWATCH_M_gpu_ns}},
    .estimated = {{UINT64_C(1) << ETWATCH_M_gpu_ns}},
    .probe = fake_probe,
    .open = fake_open,
    .close = fake_close,
    .read = fake_read,
};

static struct {
    int batches, notices;
    uint32_t flags;
    char text[256];
} got;

static void on_batch(void *ctx, const struct ew_sensor_batch *batch)
{
    (void)ctx;
    CHECK_EQ_UINT(batch->device_count, 1);
    CHECK_EQ_STR(batch->sensor, "fake");
    got.batches++;
}

static void on_notice(void *ctx, const struct ew_sensor_notice *notice)
{
    (void)ctx;
    got.notices++;
    got.flags = notice->flags;
    (void)snprintf(got.text, sizeof got.text, "%s", notice->text);
}

static const struct ew_sensor_receiver receiver = {NULL, on_batch, on_notice};

static struct ew_sensors *open_fake(void)
{
    static const struct ew_sensor_ops *const list[] = {&fake, NULL};
    const struct ew_sensors_config config = {
        .sensor = {.proc_root = "/proc", .sys_root = "/sys"},
        .kinds = 1u << ETWATCH_DEVICE_GPU,
        .period_ns = {0, 1000000, 0, 0},
        .epoch_ns = ew_os_raw_ns(),
        .ops = list,
    };
    struct ew_sensors *sensors = NULL;
    memset(&got, 0, sizeof got);
    CHECK_EQ_INT(ew_sensors_open(&config, &sensors), 0);
    return sensors;
}

/* Drains until the condition holds; a failure shows as a test that does not end. */
#define DRAIN_UNTIL(sensors, condition)                         \
    while (!(condition)) {                                      \
        ew_sensors_wait((sensors), 10);                         \
        ew_sensors_drain((sensors), ew_os_raw_ns(), &receiver); \
    }

TEST(a_sensor_delivers_batches)
{
    driver_init();
    struct ew_sensors *sensors = open_fake();
    DRAIN_UNTIL(sensors, got.batches >= 3);
    CHECK_EQ_INT(got.notices, 0);
    ew_sensors_close(sensors);
    CHECK_EQ_INT(driver.closed, driver.opened);
}

/* The driver is released only after the drains: if one of them waited, the test would not end. */
TEST(a_driver_that_hangs_delays_no_drain_and_is_reported_once)
{
    driver_init();
    driver.held = true;
    struct ew_sensors *sensors = open_fake();
    wait_inside();
    uint64_t now_ns = ew_os_raw_ns();
    ew_sensors_drain(sensors, now_ns, &receiver);
    CHECK_EQ_INT(got.notices, 0);
    for (int i = 0; i < 10; i++)
        ew_sensors_drain(sensors, now_ns + 5000000000 + (uint64_t)i, &receiver);
    CHECK_EQ_INT(got.notices, 1);
    CHECK_EQ_INT(got.batches, 0);
    CHECK_CONTAINS(got.text, "has not answered for a second");
    CHECK_EQ_UINT(got.flags, ETWATCH_DEVICE_PROBLEM);
    hold(false);
    DRAIN_UNTIL(sensors, got.batches >= 1);
    CHECK_EQ_INT(got.notices, 2);
    CHECK_EQ_UINT(got.flags, ETWATCH_DEVICE_PROBLEM | ETWATCH_DEVICE_RECOVERED);
    ew_sensors_close(sensors);
}

TEST(closing_does_not_wait_for_a_driver_that_hangs)
{
    driver_init();
    driver.held = true;
    struct ew_sensors *sensors = open_fake();
    wait_inside();
    ew_sensors_close(sensors);
    CHECK_EQ_INT(count_of(&driver.closed), 0);
    hold(false); /* its thread ends by itself and frees everything */
    while (count_of(&driver.closed) == 0)
        ew_mutex_lock(driver.lock), (void)ew_cond_wait(driver.changed, driver.lock, 10),
            ew_mutex_unlock(driver.lock);
}

TEST(a_last_reading_is_taken_on_request_but_not_of_a_driver_that_hangs)
{
    driver_init();
    struct ew_sensors *sensors = open_fake();
    DRAIN_UNTIL(sensors, got.batches >= 1);
    int before = count_of(&driver.reads);
    ew_sensors_read_now(sensors, 10000);
    CHECK(count_of(&driver.reads) > before);
    hold(true);
    wait_inside();
    ew_sensors_drain(sensors, ew_os_raw_ns() + 5000000000, &receiver);
    ew_sensors_read_now(sensors, 600000); /* returns at once */
    hold(false);
    ew_sensors_close(sensors);
}

TEST(a_sensor_that_fails_while_reading_is_reported_once_and_closed)
{
    driver_init();
    driver.fail_read_at = 2;
    struct ew_sensors *sensors = open_fake();
    DRAIN_UNTIL(sensors, got.notices >= 1);
    CHECK_EQ_INT(got.batches, 1);
    CHECK_EQ_STR(got.text, "the device is lost");
    ew_sensors_close(sensors);
    CHECK_EQ_INT(driver.opened, 1);
    CHECK_EQ_INT(driver.closed, 1);
}

TEST(a_driver_that_cannot_be_opened_is_reported_once)
{
    driver_init();
    driver.fail_open = ETWATCH_EPERM;
    struct ew_sensors *sensors = open_fake();
    DRAIN_UNTIL(sensors, got.notices >= 1);
    CHECK_EQ_STR(got.text, "the driver is not loaded");
    CHECK_EQ_UINT(got.flags, ETWATCH_DEVICE_PROBLEM | ETWATCH_DEVICE_ABSENT);
    ew_sensors_close(sensors);
}

TEST(a_machine_without_the_driver_starts_no_thread)
{
    struct etwatch_metric_set metrics, estimated;
    driver_init();
    driver.absent = true;
    struct ew_sensors *sensors = open_fake();
    ew_sensors_drain(sensors, ew_os_raw_ns(), &receiver);
    ew_sensors_drain(sensors, ew_os_raw_ns(), &receiver);
    CHECK_EQ_INT(got.notices, 1);
    CHECK_EQ_STR(got.text, "no such driver");
    ew_sensors_metrics(sensors, &metrics, &estimated);
    CHECK(etwatch_metric_set_is_empty(&metrics));
    ew_sensors_close(sensors);
    CHECK_EQ_INT(driver.opened, 0);
}

TEST(a_queue_that_is_not_drained_keeps_the_latest_batches)
{
    driver_init();
    struct ew_sensors *sensors = open_fake();
    while (count_of(&driver.reads) < 100)
        ew_sensors_read_now(sensors, 10);
    ew_sensors_drain(sensors, ew_os_raw_ns(), &receiver);
    /* The queue has 64; the thread may add one while it is drained. */
    CHECK(got.batches >= 1);
    CHECK(got.batches <= 64 + 1);
    ew_sensors_close(sensors);
}

TEST(idle_power_is_the_lowest_power_of_a_nearly_idle_device)
{
    struct ew_idle_power idle = {0};
    /* 10 W for a second, half in use: nothing better is known than the share of time. */
    CHECK_EQ_UINT(ew_idle_power_split(&idle, 10000000, 1000000000, 0.5), 5000000);
    CHECK_EQ_UINT(ew_idle_power_split(&idle, 3000000, 1000000000, 0.01), 3000000);
    CHECK_EQ_UINT(ew_idle_power_split(&idle, 10000000, 1000000000, 0.5), 3000000);
    CHECK_EQ_UINT(ew_idle_power_split(&idle, 2000000, 1000000000, 0.02), 2000000);
    CHECK_EQ_UINT(ew_idle_power_split(&idle, 10000000, 1000000000, 1), 2000000);
    CHECK_EQ_UINT(ew_idle_power_split(&idle, 1000000, 1000000000, 1), 1000000); /* never more */
}
