/* SPDX-License-Identifier: MIT */
/*
 * Sleeping until a raw time, a wake or a readable descriptor.
 *
 * A wake-up is what a monitor pays for, so each costs one system call: ppoll with a computed
 * timeout. A timerfd would cost a read and, at each new deadline, a settime more, and would gain
 * nothing but waking at once after a suspend; ppoll's clock stands still meanwhile, so the first
 * wake-up after a suspend comes late by at most what was left to sleep.
 */
#include "os/os.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"

#include <etwatch/etwatch.h>

struct ew_waiter {
    int event_fd;
};

int ew_waiter_new(struct ew_waiter **ret_waiter)
{
    struct ew_waiter *waiter = ew_calloc(1, sizeof *waiter);
    if (!waiter)
        return ETWATCH_ENOMEM;
    waiter->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (waiter->event_fd < 0) {
        int code = errno == EMFILE || errno == ENFILE ? ETWATCH_ELIMIT : ETWATCH_EOS;
        ew_free(waiter);
        return code;
    }
    *ret_waiter = waiter;
    return 0;
}

void ew_waiter_free(struct ew_waiter *waiter)
{
    if (!waiter)
        return;
    (void)close(waiter->event_fd);
    ew_free(waiter);
}

/* Takes all wakes so far; several that came before one wait count as one. */
static void take_wakes(struct ew_waiter *waiter)
{
    uint64_t count;
    while (read(waiter->event_fd, &count, sizeof count) < 0 && errno == EINTR)
        continue;
}

int ew_waiter_wait(struct ew_waiter *waiter, uint64_t until_raw_ns, int fd)
{
    struct pollfd polled[2] = {{.fd = waiter->event_fd, .events = POLLIN},
                               {.fd = fd, .events = POLLIN}};
    uint64_t now_ns = ew_os_raw_ns();
    uint64_t left_ns = until_raw_ns > now_ns ? until_raw_ns - now_ns : 0;
    struct timespec timeout = {.tv_sec = (time_t)(left_ns / 1000000000u),
                               .tv_nsec = (long)(left_ns % 1000000000u)};
    int count = ppoll(polled, fd >= 0 ? 2 : 1, &timeout, NULL);
    if (count < 0)
        return errno == EINTR ? 1 : ETWATCH_EOS;
    if (polled[0].revents)
        take_wakes(waiter);
    return count > 0 ? 1 : 0;
}

void ew_waiter_wake(struct ew_waiter *waiter)
{
    /* Full means that a wake is pending already. */
    const uint64_t one = 1;
    while (write(waiter->event_fd, &one, sizeof one) < 0 && errno == EINTR)
        continue;
}
