/* SPDX-License-Identifier: MIT */
/* The energy of a GPU of amdgpu, by the counter of AMD SMI, on a fake library and an injected /sys.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "sensor/sensor.h"
#include "test.h"

extern const struct ew_sensor_ops ew_sensor_drm;

#define SECOND_NS UINT64_C(1000000000)

static struct {
    char root[64], control[96], proc_root[96], sys_root[96], library[512];
    void *state;
    uint64_t now_ns;
    struct ew_sensor_batch batch;
} run;

static void write_file(const char *name, const char *text)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", run.root, name);
    for (char *at = path + strlen(run.root) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        (void)mkdir(path, 0700);
        *at = '/';
    }
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    CHECK(fputs(text, file) >= 0);
    CHECK_EQ_INT(fclose(file), 0);
}

static void make_link(const char *name, const char *target)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", run.root, name);
    CHECK_EQ_INT(symlink(target, path), 0);
}

static void find_library(void)
{
    ssize_t len = readlink("/proc/self/exe", run.library, sizeof run.library - 40);
    CHECK(len > 0);
    run.library[len] = '\0';
    char *slash = strrchr(run.library, '/');
    CHECK(slash != NULL);
    (void)snprintf(slash, 40, "/libfakeamdsmi.so");
    if (access(run.library, R_OK) != 0)
        SKIP("the fake library was not built");
}

/* A GPU of amdgpu that uses 42 W (gpu/amdgpu/thermal), and a /proc without processes. */
static void begin(const char *text)
{
#define DEVICE "sys/bus/pci/devices/0000:03:00.0/"
    memset(&run, 0, sizeof run);
    find_library();
    (void)snprintf(run.root, sizeof run.root, "/tmp/etwatch-amdsmi-XXXXXX");
    CHECK(mkdtemp(run.root) != NULL);
    (void)snprintf(run.control, sizeof run.control, "%s/control", run.root);
    CHECK_EQ_INT(setenv("FAKE_AMDSMI", run.control, 1), 0);
    write_file("control", text);
    write_file("proc/stat", "");
    write_file(DEVICE "hwmon/hwmon3/power1_average", "42000000\n");
    write_file("sys/drivers/amdgpu/x", "");
    write_file("sys/class/drm/card0/x", "");
    make_link(DEVICE "driver", "../../../../drivers/amdgpu");
    make_link("sys/class/drm/card0/device", "../../../bus/pci/devices/0000:03:00.0");
    (void)snprintf(run.proc_root, sizeof run.proc_root, "%s/proc", run.root);
    (void)snprintf(run.sys_root, sizeof run.sys_root, "%s/sys", run.root);
    const struct ew_sensor_config config = {
        .proc_root = run.proc_root,
        .sys_root = run.sys_root,
        .amdsmi_library = run.library,
        .energy = true,
    };
    struct ew_error err = {0};
    run.now_ns = 100 * SECOND_NS;
    CHECK_EQ_INT(ew_sensor_drm.open(&config, &run.state, &err), 0);
}

static const struct ew_device_reading *read_once(const char *text)
{
    struct ew_error err = {0};
    if (text != NULL)
        write_file("control", text);
    run.now_ns += SECOND_NS;
    run.batch.device_count = run.batch.use_count = 0;
    run.batch.problem[0] = '\0';
    CHECK_EQ_INT(ew_sensor_drm.read(run.state, run.now_ns, &run.batch, &err), 0);
    CHECK_EQ_UINT(run.batch.device_count, 1);
    return &run.batch.devices[0];
}

static void end(void)
{
    char command[128];
    ew_sensor_drm.close(run.state);
    ew_free(run.batch.devices);
    ew_free(run.batch.uses);
    (void)snprintf(command, sizeof command, "rm -r %s", run.root);
    CHECK_EQ_INT(system(command), 0);
}

static bool has_energy(const struct ew_device_reading *reading)
{
    return etwatch_metric_set_has(&reading->has, ETWATCH_D_energy_uj);
}

static bool is_estimate(const struct ew_device_reading *reading)
{
    return etwatch_metric_set_has(&reading->estimated, ETWATCH_D_energy_uj);
}

TEST(the_energy_of_an_amd_gpu_is_that_of_the_counter)
{
    uint64_t sum_uj = 0;
    begin("sockets 2\ncount 1000000\n");
    CHECK_EQ_STR(read_once(NULL)->id, "0000:03:00.0");
    CHECK(!has_energy(&run.batch.devices[0])); /* the first reading starts the counter */
    for (unsigned i = 1; i <= 50; i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "sockets 2\ncount %u\n", 1000000 + i * 777777);
        const struct ew_device_reading *reading = read_once(text);
        CHECK(has_energy(reading) && !is_estimate(reading));
        sum_uj += reading->energy_uj;
    }
    CHECK_NEAR(sum_uj, 50 * 777777 * 15.3, 60); /* 15.3 is a float */
    end();
}

TEST(without_the_counter_energy_is_power_times_time)
{
    static const struct {
        const char *remark, *text, *problem;
    } rows[] = {{"the library does not start", "init 34\nsockets 1\ncount 5\n", "status 34"},
                {"no GPU", "sockets 0\ncount 5\n", "no GPU"},
                {"no counter", "sockets 1\ncode 2\ncount 5\n", ""},
                {"a counter that stays 0", "sockets 1\ncount 0\n", ""},
                {"nonsense", "sockets 1\ncount 5\ngarbage 1\n", ""}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].remark);
        begin(rows[i].text);
        (void)read_once(NULL);
        const struct ew_device_reading *reading = read_once(NULL);
        CHECK(has_energy(reading) && is_estimate(reading));
        CHECK_EQ_UINT(reading->energy_uj, 42000000);
        CHECK_CONTAINS(run.batch.problem, rows[i].problem);
        CHECK_EQ_INT(run.batch.problem[0] == '\0', rows[i].problem[0] == '\0');
        end();
    }
}

TEST(a_counter_that_restarts_is_unknown_once)
{
    begin("sockets 1\ncount 5000000\n");
    (void)read_once(NULL);
    CHECK(has_energy(read_once("sockets 1\ncount 6000000\n")));
    CHECK(!has_energy(read_once("sockets 1\ncount 10\n")));
    CHECK_NEAR(read_once("sockets 1\ncount 1000010\n")->energy_uj, 15300000, 3);
    end();
}
