/* SPDX-License-Identifier: MIT */
/* CPU time that all processes of the machine used, from /proc/stat. */
#ifndef EW_SENSOR_CPU_BUSY_LINUX_H
#define EW_SENSOR_CPU_BUSY_LINUX_H

#include <stdbool.h>
#include <stdint.h>

struct ew_cpu_busy {
    int fd;
    bool known; /* busy, total and cpu_count are those of the last reading */
    uint64_t busy, total;
    uint32_t cpu_count;
    char *text;
    struct ew_system_text *parsed;
};

/* 0 or ETWATCH_ENOMEM. An unreadable file makes every reading unknown. */
int ew_cpu_busy_open(struct ew_cpu_busy *cpu, const char *proc_root);
void ew_cpu_busy_close(struct ew_cpu_busy *cpu);
/* CPU time in the dt_ns since the last call, and the share of all CPUs (0 to 1). False: unknown. */
bool ew_cpu_busy_read(struct ew_cpu_busy *cpu, uint64_t dt_ns, uint64_t *ret_busy_ns,
                      double *ret_use);

#endif
