/* SPDX-License-Identifier: MIT */
/*
 * A queue instead of callbacks, and processes that are added and removed while the monitor runs.
 *
 * Watches each PID for the given time, one after the other, with one monitor: add, read the
 * samples, take a snapshot and the percentiles, remove. Usage: follow SECONDS PID...
 */
#include <etwatch/etwatch.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BATCH = 64 };

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Reads for this long; returns the number of samples of this process, or an error code. */
static int read_for(struct etwatch_monitor *monitor, uint32_t pid, double seconds)
{
    static struct etwatch_sample batch[BATCH];
    int total = 0;
    for (double end = now_s() + seconds; now_s() < end;) {
        int count = etwatch_monitor_read(monitor, batch, BATCH, 50);
        if (count < 0)
            return count;
        for (int i = 0; i < count; i++)
            total += batch[i].type == ETWATCH_TYPE_SAMPLE && batch[i].pid == pid;
    }
    return total;
}

static int follow(struct etwatch_monitor *monitor, uint32_t pid, double seconds)
{
    char name[64] = "?";
    struct etwatch_sample whole = {.size = sizeof whole};
    struct etwatch_aggregate cpu = {.size = sizeof cpu};
    int rc = etwatch_monitor_add(monitor, pid);
    int samples = rc == 0 ? read_for(monitor, pid, seconds) : rc;
    if (samples < 0)
        return samples;
    rc = etwatch_monitor_snapshot(monitor, pid, &whole, name, sizeof name);
    if (rc == 0)
        rc = etwatch_monitor_aggregate(monitor, pid, ETWATCH_M_cpu_percent, &cpu);
    if (rc < 0)
        return rc;
    printf("%" PRIu32 " %s samples %d cpu_ms %.1f average %.1f%% p95 %.1f%% max %.1f%%\n", pid,
           name, samples, (double)whole.cpu_ns / 1e6, cpu.avg, cpu.p95, cpu.max);
    return etwatch_monitor_remove(monitor, pid);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: follow SECONDS PID...\n");
        return 2;
    }
    struct etwatch_config config = {
        .size = sizeof config,
        .hz = 50,
        .flags = ETWATCH_CONFIG_QUEUE | ETWATCH_CONFIG_AGGREGATE,
    };
    struct etwatch_error_info error = {.size = sizeof error};
    struct etwatch_monitor *monitor = NULL;
    int rc = etwatch_monitor_new(&config, &monitor, &error);
    if (rc == 0)
        rc = etwatch_monitor_start(monitor, &error);
    if (rc < 0) {
        fprintf(stderr, "follow: %s\n%s\n", error.message, error.fix);
        etwatch_monitor_free(monitor);
        return 1;
    }
    int status = 0;
    for (int i = 2; i < argc; i++) {
        uint32_t pid = (uint32_t)strtoul(argv[i], NULL, 10);
        rc = follow(monitor, pid, strtod(argv[1], NULL));
        if (rc < 0) {
            fprintf(stderr, "follow: process %" PRIu32 ": %s\n", pid, etwatch_strerror(rc));
            status = 1;
        }
    }
    etwatch_monitor_free(monitor); /* stops first */
    return status;
}
