/* SPDX-License-Identifier: MIT */
/*
 * Ends processes and changes their priority class. The handle is opened first and the start time
 * compared afterwards: a handle keeps its process, so a reused pid is never hit.
 */
#include "cli/cli.h"

#include <windows.h>

/* 100 ns units between 1601 and 1970. */
static const uint64_t unix_epoch = UINT64_C(116444736000000000);

static const struct {
    DWORD class_id;
    int nice;
} classes[] = {
    {REALTIME_PRIORITY_CLASS, -20},    {HIGH_PRIORITY_CLASS, -10},
    {ABOVE_NORMAL_PRIORITY_CLASS, -5}, {NORMAL_PRIORITY_CLASS, 0},
    {BELOW_NORMAL_PRIORITY_CLASS, 5},  {IDLE_PRIORITY_CLASS, 19},
};
enum { CLASS_COUNT = sizeof classes / sizeof classes[0] };

static int code_of(DWORD error)
{
    return error == ERROR_INVALID_PARAMETER ? ETWATCH_ENOENT
           : error == ERROR_ACCESS_DENIED   ? ETWATCH_EPERM
                                            : ETWATCH_EOS;
}

static bool is_same(HANDLE process, uint64_t start_ns)
{
    const uint64_t tolerance_ns = 20000000;
    FILETIME start, unused[3];
    if (!GetProcessTimes(process, &start, &unused[0], &unused[1], &unused[2]))
        return false;
    uint64_t ticks = (uint64_t)start.dwHighDateTime << 32 | start.dwLowDateTime;
    uint64_t ns = (ticks - unix_epoch) * 100;
    return (ns > start_ns ? ns - start_ns : start_ns - ns) <= tolerance_ns;
}

static int open_process(uint32_t pid, uint64_t start_ns, DWORD access, HANDLE *ret_process)
{
    HANDLE process = OpenProcess(access | PROCESS_QUERY_LIMITED_INFORMATION, FALSE, pid);
    if (process == NULL)
        return code_of(GetLastError());
    if (is_same(process, start_ns)) {
        *ret_process = process;
        return 0;
    }
    (void)CloseHandle(process);
    return ETWATCH_ENOENT;
}

/* Windows has no request to end that a program without windows would get: both end it at once. */
int ew_cli_process_signal(uint32_t pid, uint64_t start_ns, enum ew_process_signal signal)
{
    HANDLE process;
    (void)signal;
    int rc = open_process(pid, start_ns, PROCESS_TERMINATE, &process);
    if (rc < 0)
        return rc;
    rc = TerminateProcess(process, 1) ? 0 : code_of(GetLastError());
    (void)CloseHandle(process);
    return rc;
}

int ew_cli_process_renice(uint32_t pid, uint64_t start_ns, int steps, int *ret_nice)
{
    HANDLE process;
    int rc = open_process(pid, start_ns, PROCESS_SET_INFORMATION, &process);
    if (rc < 0)
        return rc;
    DWORD now = GetPriorityClass(process);
    int at = 3; /* an unknown class counts as normal */
    for (int i = 0; i < CLASS_COUNT; i++)
        if (classes[i].class_id == now)
            at = i;
    at += steps > 0 ? 1 : -1;
    at = at < 0 ? 0 : at >= CLASS_COUNT ? CLASS_COUNT - 1 : at;
    rc = SetPriorityClass(process, classes[at].class_id) ? 0 : code_of(GetLastError());
    (void)CloseHandle(process);
    if (rc == 0)
        *ret_nice = classes[at].nice;
    return rc;
}
