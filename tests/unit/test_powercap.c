/* SPDX-License-Identifier: MIT */
/* The energy meters of CPUs in an injected /sys: powercap, and perf where powercap may not be read.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "sensor/sensor.h"
#include "test.h"

extern const struct ew_sensor_ops ew_sensor_powercap;

#define SECOND_NS UINT64_C(1000000000)

static struct {
    char root[64];
    void *state;
    uint64_t now_ns;
    struct ew_sensor_batch batch;
    struct ew_error err;
    int refuse; /* errno of perf_open */
    uint64_t asked[8];
    int cpus[8];
    uint32_t asked_count;
} run;

static void write_file(const char *name, const void *bytes, size_t len)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", run.root, name);
    for (char *at = path + strlen(run.root) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        (void)mkdir(path, 0700);
        *at = '/';
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0);
    CHECK_EQ_INT(write(fd, bytes, len), len);
    CHECK_EQ_INT(close(fd), 0);
}

static void text_file(const char *name, const char *text)
{
    write_file(name, text, strlen(text));
}

static void counter_file(uint64_t event, uint64_t count)
{
    char name[64];
    (void)snprintf(name, sizeof name, "counter-%llu", (unsigned long long)event);
    write_file(name, &count, sizeof count);
}

/* Counters are files of the test, by the number of the event. */
static int fake_perf_open(uint32_t type, uint64_t event, int cpu)
{
    char path[512];
    CHECK_EQ_UINT(type, 11);
    CHECK(run.asked_count < 8);
    run.asked[run.asked_count] = event;
    run.cpus[run.asked_count++] = cpu;
    errno = run.refuse;
    if (run.refuse != 0)
        return -1;
    (void)snprintf(path, sizeof path, "%s/counter-%llu", run.root, (unsigned long long)event);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static void begin(void)
{
    memset(&run, 0, sizeof run);
    (void)snprintf(run.root, sizeof run.root, "/tmp/etwatch-rapl-XXXXXX");
    CHECK(mkdtemp(run.root) != NULL);
    run.now_ns = 100 * SECOND_NS;
}

static void make_pmu(void)
{
#define PMU "bus/event_source/devices/power/"
    text_file(PMU "type", "11\n");
    text_file(PMU "cpumask", "0,18\n");
    text_file(PMU "events/energy-pkg", "event=0x02\n");
    text_file(PMU "events/energy-pkg.unit", "Joules\n");
    text_file(PMU "events/energy-pkg.scale", "2.3283064365386962890625e-10\n");
    text_file(PMU "events/energy-ram", "event=0x03\n");
    text_file(PMU "events/energy-ram.unit", "Joules\n");
    text_file(PMU "events/energy-ram.scale", "1.5e-5\n");
    text_file("devices/system/cpu/cpu18/topology/physical_package_id", "1\n");
    counter_file(2, 0);
    counter_file(3, 0);
}

static int open_sensor(void)
{
    const struct ew_sensor_config config = {
        .proc_root = "/proc", .sys_root = run.root, .energy = true, .perf_open = fake_perf_open};
    struct ew_error none = {0};
    CHECK(ew_sensor_powercap.probe(&config, &none));
    return ew_sensor_powercap.open(&config, &run.state, &run.err);
}

static void read_once(void)
{
    run.now_ns += SECOND_NS;
    run.batch.device_count = 0;
    CHECK_EQ_INT(ew_sensor_powercap.read(run.state, run.now_ns, &run.batch, &run.err), 0);
}

static const struct ew_device_reading *device(const char *id)
{
    for (uint32_t i = 0; i < run.batch.device_count; i++)
        if (strcmp(run.batch.devices[i].id, id) == 0)
            return &run.batch.devices[i];
    FAIL("no such meter");
    return NULL;
}

static void end(bool opened)
{
    char command[128];
    if (opened)
        ew_sensor_powercap.close(run.state);
    ew_free(run.batch.devices);
    (void)snprintf(command, sizeof command, "rm -r %s", run.root);
    CHECK_EQ_INT(system(command), 0);
}

TEST(perf_has_the_counters_where_powercap_has_none)
{
    begin();
    make_pmu();
    text_file("class/powercap/intel-rapl:0/name", "package-0\n");
    CHECK_EQ_INT(open_sensor(), 0);
    CHECK_EQ_UINT(run.asked_count, 4);
    CHECK_EQ_INT(run.cpus[3], 18);
    read_once();
    counter_file(2, UINT64_C(3) << 32); /* 3 J */
    counter_file(3, 100000);            /* 1.5 J */
    read_once();
    CHECK_EQ_UINT(run.batch.device_count, 4);
    CHECK_EQ_STR(device("package-0")->driver, "perf");
    CHECK_NEAR(device("package-0")->energy_uj, 3000000, 1);
    CHECK_NEAR(device("package-1")->energy_uj, 3000000, 1);
    CHECK_NEAR(device("package-1/dram")->energy_uj, 1500000, 1);
    CHECK_NEAR(device("package-0")->power_watts, 3, 0.001);
    end(true);
}

TEST(without_rights_the_reason_and_both_capabilities_are_reported)
{
    begin();
    make_pmu();
    run.refuse = EACCES;
    CHECK_EQ_INT(open_sensor(), ETWATCH_EPERM);
    CHECK_CONTAINS(run.err.fix, "cap_dac_read_search,cap_perfmon");
    end(false);
}

TEST(powercap_is_preferred_and_perf_is_not_opened)
{
    begin();
    make_pmu();
    text_file("class/powercap/intel-rapl:0/name", "package-0\n");
    text_file("class/powercap/intel-rapl:0/energy_uj", "1000\n");
    CHECK_EQ_INT(open_sensor(), 0);
    CHECK_EQ_UINT(run.asked_count, 0);
    read_once();
    text_file("class/powercap/intel-rapl:0/energy_uj", "5000\n");
    read_once();
    CHECK_EQ_UINT(run.batch.device_count, 1);
    CHECK_EQ_STR(device("package-0")->driver, "powercap");
    CHECK_EQ_UINT(device("package-0")->energy_uj, 4000);
    end(true);
}

/* Counters that wrap often, at random: what is reported is what was used. */
TEST(the_sum_of_the_readings_is_what_the_counters_counted)
{
    static const char *const meters[] = {"intel-rapl:0", "intel-rapl:0:0", "intel-rapl:1"};
    static const char *const ids[] = {"package-0", "core", "psys"};
    uint64_t random = 88172645463325252u, range_uj = 65532610987, used[3] = {0}, sum[3] = {0};
    uint64_t now[3] = {65532000000, 5, 0}, idle_uj = 0;
    char name[96], text[32];
    begin();
    for (int i = 0; i < 3; i++) {
        (void)snprintf(name, sizeof name, "class/powercap/%s/name", meters[i]);
        text_file(name, ids[i]);
        (void)snprintf(name, sizeof name, "class/powercap/%s/max_energy_range_uj", meters[i]);
        text_file(name, "65532610987\n");
        (void)snprintf(name, sizeof name, "class/powercap/%s/energy_uj", meters[i]);
        (void)snprintf(text, sizeof text, "%llu\n", (unsigned long long)now[i]);
        text_file(name, text);
    }
    CHECK_EQ_INT(open_sensor(), 0);
    read_once();
    for (int step = 0; step < 200; step++) {
        for (int i = 0; i < 3; i++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
            uint64_t grown = (random >> 20) % (range_uj - 1);
            used[i] += grown;
            now[i] = now[i] + grown > range_uj ? now[i] + grown - range_uj : now[i] + grown;
            (void)snprintf(name, sizeof name, "class/powercap/%s/energy_uj", meters[i]);
            (void)snprintf(text, sizeof text, "%020llu\n", (unsigned long long)now[i]);
            text_file(name, text);
        }
        read_once();
        sum[0] += device("package-0")->energy_uj;
        sum[1] += device("package-0/core")->energy_uj;
        sum[2] += device("psys")->energy_uj;
        CHECK(device("package-0")->idle_energy_uj <= device("package-0")->energy_uj);
        idle_uj += device("package-0")->idle_energy_uj;
        /* The package contains its cores, and the board both: only one is attributed. */
        CHECK(!device("package-0/core")->by_cpu_time && !device("psys")->by_cpu_time);
    }
    for (int i = 0; i < 3; i++)
        CHECK_EQ_UINT(sum[i], used[i]);
    CHECK(idle_uj <= used[0]);
    end(true);
}

TEST(parts_belong_to_their_package_also_on_a_machine_with_eleven)
{
    char name[96], text[32];
    begin();
    for (int i = 0; i < 11; i++) {
        (void)snprintf(name, sizeof name, "class/powercap/intel-rapl:%d/name", i);
        (void)snprintf(text, sizeof text, "package-%d\n", i);
        text_file(name, text);
        (void)snprintf(name, sizeof name, "class/powercap/intel-rapl:%d/energy_uj", i);
        text_file(name, "7\n");
        (void)snprintf(name, sizeof name, "class/powercap/intel-rapl:%d:0/name", i);
        text_file(name, "dram\n");
        (void)snprintf(name, sizeof name, "class/powercap/intel-rapl:%d:0/energy_uj", i);
        text_file(name, "7\n");
    }
    CHECK_EQ_INT(open_sensor(), 0);
    read_once();
    CHECK_EQ_UINT(run.batch.device_count, 22);
    CHECK(device("package-1/dram") != NULL && device("package-10/dram") != NULL);
    end(true);
}

TEST(a_malformed_pmu_has_no_counters)
{
    static const struct {
        const char *remark, *file, *text;
    } rows[] = {
        {"a unit that is not energy", PMU "events/energy-pkg.unit", "Watts\n"},
        {"a scale that is no number", PMU "events/energy-pkg.scale", "e-10\n"},
        {"an exponent that is too large", PMU "events/energy-pkg.scale", "1e-99999\n"},
        {"an event in another form", PMU "events/energy-pkg", "config=2\n"},
        {"no CPU", PMU "cpumask", "\n"},
        {"a CPU that cannot be", PMU "cpumask", "99999999999999999999\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].remark);
        begin();
        make_pmu();
        (void)text_file(PMU "events/energy-ram", "\n");
        text_file(rows[i].file, rows[i].text);
        CHECK_EQ_INT(open_sensor(), ETWATCH_ENOTSUP);
        CHECK_EQ_UINT(run.asked_count, 0);
        end(false);
    }
}
