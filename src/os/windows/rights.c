/* SPDX-License-Identifier: MIT */
/*
 * Least privilege: once a source is open only a few privileges are needed. Kept are debugging, to
 * read the counters of other users' processes; profiling, to change what a session records; and
 * traversing folders, without which no file can be opened. The others are removed from the token
 * permanently, not only disabled.
 */
#include <windows.h>

#include "base/alloc.h"
#include "os/os.h"

static const wchar_t *const kept[] = {L"SeDebugPrivilege", L"SeSystemProfilePrivilege",
                                      L"SeChangeNotifyPrivilege"};

static bool is_kept(const LUID *luid)
{
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        LUID other;
        if (LookupPrivilegeValueW(NULL, kept[i], &other) && other.LowPart == luid->LowPart &&
            other.HighPart == luid->HighPart)
            return true;
    }
    return false;
}

static void remove_privileges(HANDLE token, bool all_of_them)
{
    DWORD size = 0;
    (void)GetTokenInformation(token, TokenPrivileges, NULL, 0, &size);
    TOKEN_PRIVILEGES *all = ew_calloc(1, size > 0 ? size : 1);
    if (all && GetTokenInformation(token, TokenPrivileges, all, size, &size)) {
        for (DWORD i = 0; i < all->PrivilegeCount; i++)
            if (all_of_them || !is_kept(&all->Privileges[i].Luid))
                all->Privileges[i].Attributes = SE_PRIVILEGE_REMOVED;
        (void)AdjustTokenPrivileges(token, FALSE, all, 0, NULL, NULL);
    }
    ew_free(all);
}

static void drop(bool all_of_them)
{
    HANDLE token;
    if (!OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY | TOKEN_ADJUST_PRIVILEGES, &token))
        return;
    remove_privileges(token, all_of_them);
    (void)CloseHandle(token);
}

void ew_os_drop_rights(void)
{
    drop(false);
}

void ew_os_drop_all_rights(void)
{
    drop(true);
}

void ew_os_thread_drop_rights(void)
{
}
