/* SPDX-License-Identifier: MIT */
/*
 * Clocks. The raw clock is CLOCK_BOOTTIME: it never steps, it continues through suspend, and the
 * kernel records the start times of processes in it.
 */
#include "os/os.h"

#include <time.h>
#include <unistd.h>

static uint64_t read_clock(clockid_t clock)
{
    struct timespec t = {0};
    (void)clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t ew_os_raw_ns(void)
{
    return read_clock(CLOCK_BOOTTIME);
}

void ew_os_anchor(uint64_t *ret_unix_ns, uint64_t *ret_raw_ns)
{
    /* The tightest of a few pairs: being scheduled out between two reads would shift every
     * timestamp in the output. */
    uint64_t best_width_ns = UINT64_MAX;
    for (int i = 0; i < 5; i++) {
        uint64_t before_ns = read_clock(CLOCK_BOOTTIME);
        uint64_t unix_ns = read_clock(CLOCK_REALTIME);
        uint64_t width_ns = read_clock(CLOCK_BOOTTIME) - before_ns;
        if (width_ns < best_width_ns) {
            best_width_ns = width_ns;
            *ret_unix_ns = unix_ns;
            *ret_raw_ns = before_ns + width_ns / 2;
        }
    }
}

/* The C library reads the zone once: before the program confines itself (confine.c). */
int32_t ew_os_utc_offset_s(uint64_t unix_ns)
{
    time_t seconds = (time_t)(unix_ns / 1000000000);
    struct tm local;
    return localtime_r(&seconds, &local) != NULL ? (int32_t)local.tm_gmtoff : 0;
}

uint64_t ew_os_thread_cpu_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

uint32_t ew_os_cpu_count(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? (uint32_t)count : 1;
}
