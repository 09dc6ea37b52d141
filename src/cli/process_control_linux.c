/* SPDX-License-Identifier: MIT */
/*
 * Signals and priorities of other processes. A pidfd is opened first and the start time compared
 * afterwards, so that the process cannot change in between: a reused pid is never hit.
 */
#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <etwatch/process.h>

enum { NICE_MIN = -20, NICE_MAX = 19 };

static int code_of(int error)
{
    return error == ESRCH                      ? ETWATCH_ENOENT
           : error == EPERM || error == EACCES ? ETWATCH_EPERM
                                               : ETWATCH_EOS;
}

/* Start times are computed from the clock of the boot and may differ by the clock's adjustment. */
static bool is_same(uint32_t pid, uint64_t start_ns)
{
    const uint64_t tolerance_ns = 20000000; /* two ticks of the kernel's start time */
    struct etwatch_sample sample = {.size = sizeof sample};
    struct etwatch_process_id id;
    if (etwatch_process_read(pid, 0, &sample, NULL, 0, &id, NULL) < 0)
        return false;
    uint64_t apart = id.start_ns > start_ns ? id.start_ns - start_ns : start_ns - id.start_ns;
    return apart <= tolerance_ns;
}

/* A descriptor of the process, or a negative code. */
static int open_process(uint32_t pid, uint64_t start_ns)
{
    int fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    if (fd < 0)
        return code_of(errno);
    if (is_same(pid, start_ns))
        return fd;
    (void)close(fd);
    return ETWATCH_ENOENT;
}

int ew_cli_process_signal(uint32_t pid, uint64_t start_ns, enum ew_process_signal signal)
{
    int fd = open_process(pid, start_ns);
    if (fd < 0)
        return fd;
    int number = signal == EW_SIGNAL_KILL ? SIGKILL : SIGTERM;
    int rc = syscall(SYS_pidfd_send_signal, fd, number, NULL, 0) == 0 ? 0 : code_of(errno);
    (void)close(fd);
    return rc;
}

int ew_cli_process_renice(uint32_t pid, uint64_t start_ns, int steps, int *ret_nice)
{
    int fd = open_process(pid, start_ns);
    if (fd < 0)
        return fd;
    errno = 0;
    int nice = getpriority(PRIO_PROCESS, pid);
    int rc = nice == -1 && errno != 0 ? code_of(errno) : 0;
    nice = nice + steps < NICE_MIN ? NICE_MIN : nice + steps > NICE_MAX ? NICE_MAX : nice + steps;
    if (rc == 0 && setpriority(PRIO_PROCESS, pid, nice) != 0)
        rc = code_of(errno);
    (void)close(fd);
    if (rc == 0)
        *ret_nice = nice;
    return rc;
}
