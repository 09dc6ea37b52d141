/* SPDX-License-Identifier: MIT */
/*
 * Clocks. The raw clock is the performance counter, which is also the clock of an ETW session; it
 * never steps. Its frequency is queried each time: it is fixed at boot and stored in memory that
 * Windows shares with every process, while caching it would be global state.
 */
#include <windows.h>

#include "os/os.h"

#define NS_PER_S 1000000000u
/* 1601 to 1970, in units of 100 ns. */
#define UNIX_EPOCH_FILETIME UINT64_C(116444736000000000)

uint64_t ew_os_raw_ns(void)
{
    LARGE_INTEGER count, frequency;
    (void)QueryPerformanceFrequency(&frequency);
    (void)QueryPerformanceCounter(&count);
    uint64_t ticks = (uint64_t)count.QuadPart, per_s = (uint64_t)frequency.QuadPart;
    /* Whole seconds first, since ticks * 10^9 has more than 64 bits after half an hour. */
    return ticks / per_s * NS_PER_S + ticks % per_s * NS_PER_S / per_s;
}

static uint64_t read_unix_ns(void)
{
    FILETIME now;
    GetSystemTimePreciseAsFileTime(&now);
    uint64_t units = (uint64_t)now.dwHighDateTime << 32 | now.dwLowDateTime;
    return (units - UNIX_EPOCH_FILETIME) * 100;
}

void ew_os_anchor(uint64_t *ret_unix_ns, uint64_t *ret_raw_ns)
{
    /* The tightest of a few pairs: being scheduled out between two reads would shift every
     * timestamp in the output. */
    uint64_t best_width_ns = UINT64_MAX;
    for (int i = 0; i < 5; i++) {
        uint64_t before_ns = ew_os_raw_ns();
        uint64_t unix_ns = read_unix_ns();
        uint64_t width_ns = ew_os_raw_ns() - before_ns;
        if (width_ns < best_width_ns) {
            best_width_ns = width_ns;
            *ret_unix_ns = unix_ns;
            *ret_raw_ns = before_ns + width_ns / 2;
        }
    }
}

static uint64_t units_of(FILETIME time)
{
    return (uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime;
}

/* With the rules of the year in question, unlike FileTimeToLocalFileTime. */
int32_t ew_os_utc_offset_s(uint64_t unix_ns)
{
    uint64_t units = unix_ns / NS_PER_S * (NS_PER_S / 100) + UNIX_EPOCH_FILETIME;
    FILETIME time = {(DWORD)units, (DWORD)(units >> 32)};
    SYSTEMTIME utc, local;
    if (!FileTimeToSystemTime(&time, &utc) ||
        !SystemTimeToTzSpecificLocalTime(NULL, &utc, &local) ||
        !SystemTimeToFileTime(&local, &time))
        return 0;
    return (int32_t)((int64_t)(units_of(time) - units) / 10000000);
}

uint64_t ew_os_thread_cpu_ns(void)
{
    FILETIME created, ended, kernel, user;
    if (!GetThreadTimes(GetCurrentThread(), &created, &ended, &kernel, &user))
        return 0;
    uint64_t kernel_units = (uint64_t)kernel.dwHighDateTime << 32 | kernel.dwLowDateTime;
    uint64_t user_units = (uint64_t)user.dwHighDateTime << 32 | user.dwLowDateTime;
    return (kernel_units + user_units) * 100;
}

uint32_t ew_os_cpu_count(void)
{
    DWORD count = GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
    return count > 0 ? (uint32_t)count : 1;
}
