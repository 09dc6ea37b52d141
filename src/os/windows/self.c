/* SPDX-License-Identifier: MIT */
/* Memory of this process. */
#include <windows.h>

#include <psapi.h>

#include "os/os.h"

bool ew_os_self_rss(uint64_t *ret_rss_bytes, uint64_t *ret_peak_bytes)
{
    PROCESS_MEMORY_COUNTERS counters = {.cb = sizeof counters};
    if (!GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof counters))
        return false;
    *ret_rss_bytes = counters.WorkingSetSize;
    *ret_peak_bytes = counters.PeakWorkingSetSize;
    return true;
}
