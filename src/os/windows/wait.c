/* SPDX-License-Identifier: MIT */
/*
 * Sleeps until a raw time or a wake. A wait with a timeout in milliseconds ends at a clock tick, up
 * to 15.6 ms late; a high-resolution timer (Windows 10 1803) ends within half a millisecond and,
 * unlike timeBeginPeriod, does not make timers of other processes fire more often.
 *
 * There are no descriptors to wait for: a Windows source that needs to be drained early wakes the
 * waiter.
 */
#include <windows.h>

#include "base/alloc.h"
#include "os/os.h"

#include <etwatch/etwatch.h>

#ifndef CREATE_WAITABLE_TIMER_HIGH_RESOLUTION
#define CREATE_WAITABLE_TIMER_HIGH_RESOLUTION 0x00000002
#endif

struct ew_waiter {
    HANDLE event; /* set by a wake, reset by the wait it ends */
    HANDLE timer;
};

static HANDLE make_timer(void)
{
    HANDLE timer =
        CreateWaitableTimerExW(NULL, NULL, CREATE_WAITABLE_TIMER_HIGH_RESOLUTION, TIMER_ALL_ACCESS);
    return timer ? timer : CreateWaitableTimerExW(NULL, NULL, 0, TIMER_ALL_ACCESS);
}

int ew_waiter_new(struct ew_waiter **ret_waiter)
{
    struct ew_waiter *waiter = ew_calloc(1, sizeof *waiter);
    if (!waiter)
        return ETWATCH_ENOMEM;
    waiter->event = CreateEventW(NULL, FALSE, FALSE, NULL);
    waiter->timer = make_timer();
    if (!waiter->event || !waiter->timer) {
        ew_waiter_free(waiter);
        return ETWATCH_ELIMIT;
    }
    *ret_waiter = waiter;
    return 0;
}

void ew_waiter_free(struct ew_waiter *waiter)
{
    if (!waiter)
        return;
    if (waiter->event)
        (void)CloseHandle(waiter->event);
    if (waiter->timer)
        (void)CloseHandle(waiter->timer);
    ew_free(waiter);
}

static int wait_for(struct ew_waiter *waiter, uint64_t left_ns)
{
    HANDLE both[2] = {waiter->event, waiter->timer};
    /* Negative: relative to now. Rounded up, so that a wait never ends early. */
    uint64_t units = left_ns / 100 + 1;
    LARGE_INTEGER due = {.QuadPart = units > INT64_MAX ? -INT64_MAX : -(int64_t)units};
    if (!SetWaitableTimer(waiter->timer, &due, 0, NULL, NULL, FALSE))
        return ETWATCH_EOS;
    switch (WaitForMultipleObjects(2, both, FALSE, INFINITE)) {
    case WAIT_OBJECT_0:
        return 1;
    case WAIT_OBJECT_0 + 1:
        return 0;
    default:
        return ETWATCH_EOS;
    }
}

int ew_waiter_wait(struct ew_waiter *waiter, uint64_t until_raw_ns, int fd)
{
    (void)fd;
    int woken = WaitForSingleObject(waiter->event, 0) == WAIT_OBJECT_0;
    while (!woken) {
        uint64_t now_ns = ew_os_raw_ns();
        if (now_ns >= until_raw_ns)
            return 0;
        woken = wait_for(waiter, until_raw_ns - now_ns);
    }
    return woken;
}

void ew_waiter_wake(struct ew_waiter *waiter)
{
    (void)SetEvent(waiter->event);
}
