/* SPDX-License-Identifier: MIT */
/*
 * Sleeps until a raw time, a wake or a readable descriptor.
 *
 * Wake-ups dominate the cost of a monitor, so each takes one system call: ppoll with a computed
 * timeout. A timerfd would need an additional read, and a settime for each new deadline. Its only
 * gain would be an immediate wake-up after a suspend; ppoll's clock stops meanwhile, so the first
 * wake-up after a suspend is late by at most the remaining sleep time.
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

/* Consumes all pending wakes; several before one wait count as one. */
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
    /* If the eventfd is full, a wake is already pending. */
    const uint64_t one = 1;
    while (write(waiter->event_fd, &one, sizeof one) < 0 && errno == EINTR)
        continue;
}
