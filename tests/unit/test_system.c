/* SPDX-License-Identifier: MIT */
/* The whole machine: /proc text with known results, and a reading of this machine. */
#include <etwatch/system.h>
#include <string.h>

#include "sensor/system_text.h"
#include "system.h"
#include "test.h"

static struct ew_system_text text;

#define PARSE(which, words) ew_system_parse_##which(words, strlen(words), &text)

TEST(every_file_gives_its_values)
{
    text = (struct ew_system_text){0};
    PARSE(stat, "cpu  10 1 20 100 5 2 3 4 9 9\ncpu0 5 0 10 50 2 1 1 2 0 0\ncpu2 1 2 3 4 5 6 7 8\n"
                "ctxt 777\nprocesses 55\nprocs_running 3\n");
    CHECK_EQ_UINT(text.all.total, 145);
    CHECK_EQ_UINT(text.all.busy, 40);
    CHECK_EQ_UINT(text.cpu_count, 3);
    CHECK_EQ_UINT(text.cpus[1].total, 0);
    CHECK_EQ_UINT(text.cpus[2].busy, 27);
    CHECK_EQ_UINT(text.switches, 777);
    CHECK_EQ_UINT(text.forks, 55);
    CHECK_EQ_UINT(text.running, 3);
    PARSE(meminfo, "MemTotal:  2000 kB\nMemAvailable: 1000 kB\nSwapTotal: 10 kB\nSwapFree: 4 kB\n");
    CHECK_EQ_UINT(text.memory_available, 1024000);
    CHECK_EQ_UINT(text.swap_free, 4096);
    PARSE(vmstat, "pgpgin 5\npgpgout 6\n");
    CHECK_EQ_UINT(text.paged_out, 6144);
    PARSE(diskstats, "8 0 sda 1 2 3 4 5 6 7 8\n8 1 sda1 9 9 9 9 9 9 9 9\n"
                     "259 0 nvme0n1 1 2 10 4 5 6 20 8\n259 1 nvme0n1p1 9 9 9 9 9 9 9 9\n"
                     "253 0 dm-0 9 9 9 9 9 9 9 9\n");
    CHECK_EQ_UINT(text.disk_read, 13 * 512);
    CHECK_EQ_UINT(text.disk_write, 27 * 512);
    PARSE(net_dev, "Inter-| Receive | Transmit\n face |bytes packets|bytes\n"
                   "  lo: 99 1 0 0 0 0 0 0 99 1 0\n  eth0: 1000 1 0 0 0 0 0 0 2000 1 0\n"
                   "  eth1:5 1 0 0 0 0 0 0 6 1 0\n");
    CHECK_EQ_UINT(text.net_received, 1005);
    CHECK_EQ_UINT(text.net_sent, 2006);
    PARSE(loadavg, "0.25 1.50 12.00 2/345 6789\n");
    CHECK_NEAR(text.load[1], 1.5, 1e-9);
    CHECK_EQ_UINT(text.threads, 345);
}

TEST(a_reading_of_this_machine_makes_sense)
{
    struct etwatch_system_reader *reader = NULL;
    struct etwatch_system system = {.size = sizeof system};
    CHECK_EQ_INT(etwatch_system_open(NULL, &reader), 0);
    CHECK_EQ_INT(etwatch_system_read(reader, &system), 0);
    CHECK_EQ_UINT(system.dt_ns, 0);
    CHECK(!etwatch_metric_set_has(&system.has, ETWATCH_S_cpu_percent));
    CHECK(etwatch_metric_set_has(&system.has, ETWATCH_S_memory_total_bytes));
    CHECK(system.memory_available_bytes <= system.memory_total_bytes);
    CHECK_EQ_INT(etwatch_system_read(reader, &system), 0);
    CHECK(system.dt_ns > 0);
    for (uint32_t i = 0; i < system.cpu_count; i++)
        CHECK(system.cpu_percents[i] <= 100.0);
    if (etwatch_metric_set_has(&system.has, ETWATCH_S_processes))
        CHECK(system.processes > 0 && system.processes <= system.threads);
    etwatch_system_close(reader);
}

/* Other processes start and exit meanwhile, so the counts are lower bounds. */
TEST(starts_and_exits_are_estimated_from_two_lists)
{
    struct etwatch_system_reader *reader = NULL;
    struct etwatch_system system = {.size = sizeof system};
    CHECK_EQ_INT(etwatch_system_open(NULL, &reader), 0);
    CHECK_EQ_INT(etwatch_system_read(reader, &system), 0);
    CHECK(!etwatch_metric_set_has(&system.has, ETWATCH_S_processes_started));
    uint32_t pid = test_start_busy();
    CHECK_EQ_INT(etwatch_system_read(reader, &system), 0);
    CHECK(etwatch_metric_set_has(&system.has, ETWATCH_S_processes_started) &&
          system.processes_started >= 1);
    CHECK(etwatch_metric_set_has(&system.estimated, ETWATCH_S_processes_started));
    test_end_child(pid);
    CHECK_EQ_INT(etwatch_system_read(reader, &system), 0);
    CHECK(etwatch_metric_set_has(&system.has, ETWATCH_S_processes_ended) &&
          system.processes_ended >= 1);
    etwatch_system_close(reader);
}

TEST(counts_set_by_the_caller_are_exact)
{
    struct etwatch_system_reader *reader = NULL;
    struct etwatch_system system = {.size = sizeof system};
    CHECK_EQ_INT(etwatch_system_open(NULL, &reader), 0);
    etwatch_system_set_process_counts(reader, 1000, 2000);
    CHECK_EQ_INT(etwatch_system_read(reader, &system), 0);
    CHECK(!etwatch_metric_set_has(&system.has, ETWATCH_S_processes_started));
    etwatch_system_set_process_counts(reader, 7, 0);
    CHECK_EQ_INT(etwatch_system_read(reader, &system), 0);
    CHECK_EQ_UINT(system.processes_started, 7);
    CHECK_EQ_UINT(system.processes_ended, 0);
    CHECK(etwatch_metric_set_has(&system.has, ETWATCH_S_processes_ended));
    CHECK(!etwatch_metric_set_has(&system.estimated, ETWATCH_S_processes_started));
    CHECK(!etwatch_metric_set_has(&system.estimated, ETWATCH_S_processes_ended));
    etwatch_system_close(reader);
}

TEST(an_average_begins_with_the_current_value_and_follows_it)
{
    double load[3] = {0};
    ew_system_average(4, 0, 1000, load);
    CHECK_NEAR(load[2], 4, 1e-9);
    for (uint64_t second = 1; second <= 60; second++)
        ew_system_average(0, second * 1000, (second + 1) * 1000, load);
    CHECK_NEAR(load[0], 4 * 0.36788, 0.001); /* a minute later 1/e is left */
    CHECK_NEAR(load[1], 4 * 0.81873, 0.001);
    CHECK_NEAR(load[2], 4 * 0.93551, 0.001);
    ew_system_average(2, 61000, UINT64_C(1) << 40, load);
    CHECK_NEAR(load[0], 2, 1e-6);
}

TEST(every_value_has_a_row_with_its_origin_on_each_system)
{
    struct etwatch_metric_info info = {.size = sizeof info};
    struct etwatch_metric_backend backend = {.size = sizeof backend};
    for (uint32_t i = 0; i < ETWATCH_SYSTEM_METRIC_COUNT; i++) {
        CHECK_EQ_INT(etwatch_system_info(i, &info), 0);
        CHECK(info.name != NULL && info.unit != NULL && info.help != NULL && info.help[0] != '\0');
        CHECK_EQ_STR(info.group, "system");
        CHECK(strncmp(info.prometheus, "etwatch_system_", 15) == 0);
        CHECK((strcmp(info.kind, "counter") == 0) == (strstr(info.prometheus, "_total") != NULL));
        for (uint32_t os = 0; os < ETWATCH_SYSTEM_OS_COUNT; os++) {
            CHECK_EQ_INT(etwatch_system_backend(i, os, &backend), 0);
            CHECK(backend.how != NULL && backend.how[0] != '\0');
        }
    }
    CHECK_EQ_INT(etwatch_system_info(ETWATCH_SYSTEM_METRIC_COUNT, &info), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_system_backend(0, ETWATCH_SYSTEM_OS_COUNT, &backend), ETWATCH_EINVAL);
    CHECK(etwatch_system_os_name(ETWATCH_SYSTEM_OS_COUNT) == NULL);
}
