/* SPDX-License-Identifier: MIT */
/*
 * Helpers for the tests of the monitor. Every test that does not depend on the source runs with
 * polling, which works everywhere, and with eBPF where it can be opened.
 */
#ifndef MONITOR_KIT_H
#define MONITOR_KIT_H

#include <stdio.h>

#include <etwatch/etwatch.h>

#include "system.h"
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
        .flags = ETWATCH_CONFIG_NO_BUDGET,
        .callbacks = {.size = sizeof(struct etwatch_callbacks)},
    };
}

/* Returns false and prints a note if this source cannot work here; polling always works. */
static inline int can_open(uint32_t source)
{
    struct etwatch_config config = config_for(source);
    struct etwatch_error_info error = {.size = sizeof error};
    struct etwatch_monitor *monitor = NULL;
    test_row(etwatch_source_name(source));
    int rc = etwatch_monitor_new(&config, &monitor, &error);
    CHECK(rc == 0 || rc == ETWATCH_ENOTSUP); /* a source of another operating system */
    if (rc == 0)
        rc = etwatch_monitor_open(monitor, &error);
    etwatch_monitor_free(monitor);
    if (rc != 0 && source == ETWATCH_SOURCE_EBPF)
        printf("# not run with ebpf: %s\n", error.message);
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

#endif
