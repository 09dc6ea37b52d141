/* SPDX-License-Identifier: MIT */
/*
 * Two calls: the times of all processors together, and memory. What Windows tells only through
 * performance counters (disks, network, each processor) is not known here.
 */
#include <windows.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"
#include "sensor/system.h"

struct ew_system_source {
    uint32_t cpu_count;
};

int ew_system_source_open(const char *proc_root, struct ew_system_source **ret_source)
{
    SYSTEM_INFO info;
    (void)proc_root;
    struct ew_system_source *source = ew_calloc(1, sizeof *source);
    if (source == NULL)
        return ETWATCH_ENOMEM;
    GetSystemInfo(&info);
    source->cpu_count = (uint32_t)info.dwNumberOfProcessors;
    *ret_source = source;
    return 0;
}

void ew_system_source_close(struct ew_system_source *source)
{
    ew_free(source);
}

static uint64_t of_filetime(FILETIME time)
{
    return (uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime;
}

int ew_system_source_read(struct ew_system_source *source, struct ew_system_text *ret_text,
                          uint64_t *ret_processes)
{
    FILETIME idle, kernel, user;
    MEMORYSTATUSEX memory = {.dwLength = sizeof memory};
    (void)source;
    (void)ret_processes;
    if (GetSystemTimes(&idle, &kernel, &user)) { /* kernel has idle in it */
        ret_text->all.total = of_filetime(kernel) + of_filetime(user);
        ret_text->all.busy = ret_text->all.total - of_filetime(idle);
        ret_text->cpu_count = source->cpu_count;
        ret_text->has |= EW_SYSTEM_STAT;
    }
    if (GlobalMemoryStatusEx(&memory)) {
        ret_text->memory_total = memory.ullTotalPhys;
        ret_text->memory_available = memory.ullAvailPhys;
        ret_text->has |= EW_SYSTEM_MEMORY;
    }
    return 0;
}
