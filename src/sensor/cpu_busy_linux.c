/* SPDX-License-Identifier: MIT */
/* The kernel counts in ticks of 10 ms for each CPU, so a short reading is coarse; only shares of
 * the total are used. */
#include "sensor/cpu_busy_linux.h"

#include <string.h>
#include <unistd.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"
#include "sensor/sysfs_linux.h"
#include "sensor/system_text.h"

enum { TEXT_SIZE = 256 << 10 };

int ew_cpu_busy_open(struct ew_cpu_busy *cpu, const char *proc_root)
{
    memset(cpu, 0, sizeof *cpu);
    cpu->fd = ew_sysfs_open(proc_root, "stat");
    cpu->text = ew_calloc(TEXT_SIZE, 1);
    cpu->parsed = ew_calloc(1, sizeof *cpu->parsed);
    if (cpu->text != NULL && cpu->parsed != NULL)
        return 0;
    ew_cpu_busy_close(cpu);
    return ETWATCH_ENOMEM;
}

void ew_cpu_busy_close(struct ew_cpu_busy *cpu)
{
    if (cpu->fd >= 0)
        (void)close(cpu->fd);
    cpu->fd = -1;
    ew_free(cpu->text);
    ew_free(cpu->parsed);
    cpu->text = NULL;
    cpu->parsed = NULL;
}

bool ew_cpu_busy_read(struct ew_cpu_busy *cpu, uint64_t dt_ns, uint64_t *ret_busy_ns,
                      double *ret_use)
{
    const bool was_known = cpu->known;
    const uint64_t busy = cpu->busy, total = cpu->total;
    ssize_t len = cpu->fd < 0 ? -1 : pread(cpu->fd, cpu->text, TEXT_SIZE, 0);
    cpu->known = false;
    if (len <= 0)
        return false;
    memset(cpu->parsed, 0, sizeof *cpu->parsed);
    ew_system_parse_stat(cpu->text, (size_t)len, cpu->parsed);
    cpu->known = (cpu->parsed->has & EW_SYSTEM_STAT) != 0 && cpu->parsed->cpu_count > 0;
    cpu->busy = cpu->parsed->all.busy;
    cpu->total = cpu->parsed->all.total;
    cpu->cpu_count = cpu->parsed->cpu_count;
    if (!cpu->known || !was_known || cpu->total <= total || cpu->busy < busy)
        return false;
    double use = (double)(cpu->busy - busy) / (double)(cpu->total - total);
    *ret_use = use < 1 ? use : 1;
    *ret_busy_ns = (uint64_t)(*ret_use * (double)dt_ns * cpu->cpu_count);
    return true;
}
