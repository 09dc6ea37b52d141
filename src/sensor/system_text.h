/* SPDX-License-Identifier: MIT */
/* Parses the system-wide files of /proc: absolute values, as far as present. */
#ifndef EW_SENSOR_SYSTEM_TEXT_H
#define EW_SENSOR_SYSTEM_TEXT_H

#include <stddef.h>
#include <stdint.h>

enum { EW_SYSTEM_CPUS_MAX = 1024 };

enum ew_system_has {
    EW_SYSTEM_STAT = 1u << 0,
    EW_SYSTEM_MEMORY = 1u << 1,
    EW_SYSTEM_SWAP = 1u << 2,
    EW_SYSTEM_PAGING = 1u << 3,
    EW_SYSTEM_DISKS = 1u << 4,
    EW_SYSTEM_NET = 1u << 5,
    EW_SYSTEM_LOAD = 1u << 6,
    EW_SYSTEM_PROCESSES = 1u << 7, /* process starts and exits */
};

struct ew_system_cpu {
    uint64_t busy, total; /* ticks; both 0: CPU not present */
};

struct ew_system_text {
    uint32_t has; /* enum ew_system_has */
    uint32_t cpu_count;
    struct ew_system_cpu all, cpus[EW_SYSTEM_CPUS_MAX];
    uint64_t switches, forks, running;
    uint64_t memory_total, memory_available, swap_total, swap_free; /* bytes */
    uint64_t paged_in, paged_out;                                   /* bytes */
    uint64_t disk_read, disk_write, net_received, net_sent;         /* bytes */
    double load[3];
    uint64_t threads;
    uint64_t processes_started, processes_ended; /* as far as two lists show */
};

/* Each adds the values of one file; unknown lines are ignored. */
void ew_system_parse_stat(const void *text, size_t len, struct ew_system_text *out);
void ew_system_parse_meminfo(const void *text, size_t len, struct ew_system_text *out);
void ew_system_parse_vmstat(const void *text, size_t len, struct ew_system_text *out);
void ew_system_parse_diskstats(const void *text, size_t len, struct ew_system_text *out);
void ew_system_parse_net_dev(const void *text, size_t len, struct ew_system_text *out);
void ew_system_parse_loadavg(const void *text, size_t len, struct ew_system_text *out);

/*
 * Updates the averages over 1, 5 and 15 minutes the way Linux does: the current number of
 * `runnable` threads counts for the time since `before_ms`. before_ms 0: first value, the averages
 * become it.
 */
void ew_system_average(uint64_t runnable, uint64_t before_ms, uint64_t now_ms, double load[3]);

#endif
