/* SPDX-License-Identifier: MIT */
/* The whole machine: the text of /proc with known answers, and a reading of this machine. */
#include <etwatch/system.h>
#include <string.h>

#include "sensor/system_text.h"
#include "test.h"

static struct ew_system_text text;

#define PARSE(which, words) ew_system_parse_##which(words, strlen(words), &text)

TEST(every_file_gives_its_figures)
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
    CHECK_EQ_UINT(system.has & (uint64_t)1 << ETWATCH_S_cpu_percent, 0);
    CHECK((system.has & (uint64_t)1 << ETWATCH_S_memory_total_bytes) != 0);
    CHECK(system.memory_available_bytes <= system.memory_total_bytes);
    CHECK_EQ_INT(etwatch_system_read(reader, &system), 0);
    CHECK(system.dt_ns > 0);
    for (uint32_t i = 0; i < system.cpu_count; i++)
        CHECK(system.cpu_percents[i] <= 100.0);
    if ((system.has & (uint64_t)1 << ETWATCH_S_processes) != 0)
        CHECK(system.processes > 0 && system.processes <= system.threads);
    etwatch_system_close(reader);
}
