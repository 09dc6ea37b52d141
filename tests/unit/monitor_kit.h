/* SPDX-License-Identifier: MIT */
/*
 * What the tests of the monitor share. Every question that does not depend on the source is put to
 * polling, which works everywhere, and to eBPF where it can be opened.
 */
#ifndef MONITOR_KIT_H
#define MONITOR_KIT_H

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <etwatch/etwatch.h>

#include "test.h"

static const uint32_t sources[] = {ETWATCH_SOURCE_POLL, ETWATCH_SOURCE_EBPF};
enum { SOURCE_COUNT = sizeof sources / sizeof sources[0] };

static inline struct etwatch_config config_for(uint32_t source)
{
    return (struct etwatch_config){
        .size = sizeof(struct etwatch_config),
        .source = source,
        .hz = 100,
        .latency_ms = 20,
        .flags = ETWATCH_NO_BUDGET,
        .callbacks = {.size = sizeof(struct etwatch_callbacks)},
    };
}

/* False, with a remark in the output, where this source cannot work; polling always can. */
static inline int can_open(uint32_t source)
{
    struct etwatch_config config = config_for(source);
    struct etwatch_error_info error = {.size = sizeof error};
    struct etwatch_monitor *monitor = NULL;
    test_row(etwatch_source_name(source));
    CHECK_EQ_INT(etwatch_monitor_new(&config, &monitor, &error), 0);
    int rc = etwatch_monitor_open(monitor, &error);
    etwatch_monitor_free(monitor);
    if (rc != 0 && source == ETWATCH_SOURCE_EBPF)
        printf("# not asked of ebpf: %s\n", error.message);
    else
        CHECK_EQ_INT(rc, 0);
    return rc == 0;
}

static inline struct etwatch_monitor *new_monitor(const struct etwatch_config *config)
{
    struct etwatch_error_info error = {.size = sizeof error};
    struct etwatch_monitor *monitor = NULL;
    int rc = etwatch_monitor_new(config, &monitor, &error);
    if (rc != 0)
        printf("# %s\n", error.message);
    CHECK_EQ_INT(rc, 0);
    return monitor;
}

static inline void sleep_ms(long ms)
{
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

/* A child that computes until it is ended or its parent is gone. */
static inline pid_t start_busy(void)
{
    pid_t parent = getpid(), pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        for (volatile unsigned i = 0;; i++)
            if (i % 4000000 == 0 && getppid() != parent)
                _exit(0);
    }
    return pid;
}

static inline void end_child(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static inline int open_descriptors(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    CHECK(dir != NULL);
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

#endif
