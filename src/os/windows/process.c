/* SPDX-License-Identifier: MIT */
/* Simple queries about one process. Windows has no /proc, so proc_root is not used. */
#include <windows.h>

#include "os/os.h"

/* OpenProcess rounds ids down to a multiple of 4; only the multiple itself is an id. */
static HANDLE open_process(uint32_t pid, DWORD rights)
{
    if (pid % 4 != 0) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return NULL;
    }
    return OpenProcess(rights, FALSE, pid);
}

/* An ended process can be opened while a handle to it exists, but it no longer counts as existing.
 */
bool ew_os_process_exists(const char *proc_root, uint32_t pid)
{
    return !ew_os_process_ended(proc_root, pid);
}

bool ew_os_process_ended(const char *proc_root, uint32_t pid)
{
    (void)proc_root;
    HANDLE process = open_process(pid, SYNCHRONIZE);
    if (!process)
        return GetLastError() != ERROR_ACCESS_DENIED;
    bool ended = WaitForSingleObject(process, 0) == WAIT_OBJECT_0;
    (void)CloseHandle(process);
    return ended;
}

/* Windows has no cgroups. */
bool ew_os_cgroup(const char *proc_root, uint32_t pid, char *buffer, size_t size, bool *ret_only)
{
    (void)ret_only;
    (void)proc_root;
    (void)pid;
    (void)buffer;
    (void)size;
    return false;
}

bool ew_os_pids_are_foreign(const char *proc_root)
{
    (void)proc_root;
    return false;
}
