/* SPDX-License-Identifier: MIT */
/* Small questions about one process. There is no tree of files to ask, so proc_root is not used. */
#include <windows.h>

#include "os/os.h"

/* Windows opens a process by any of four numbers, of which only the first is its id. */
static HANDLE open_process(uint32_t pid, DWORD rights)
{
    if (pid % 4 != 0) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return NULL;
    }
    return OpenProcess(rights, FALSE, pid);
}

/* An ended process stays openable as long as somebody holds it, but nobody else sees it. */
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

/* Windows has none. */
bool ew_os_cgroup(const char *proc_root, uint32_t pid, char *buffer, size_t size, bool *ret_only)
{
    (void)ret_only;
    (void)proc_root;
    (void)pid;
    (void)buffer;
    (void)size;
    return false;
}
