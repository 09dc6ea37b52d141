/* SPDX-License-Identifier: MIT */
/*
 * Windows has no filter of system calls that a running process can install. A reader gives up its
 * privileges. The process that serves also lowers its integrity level, after which it cannot write
 * to anything of the user or the system, nor open their processes, and starts no process.
 */
#include <string.h>
#include <windows.h>

#include "os/os.h"

/* ProcessChildProcessPolicy of Windows 10, and its first flag. */
enum { CHILD_PROCESS_POLICY = 13, NO_CHILD_PROCESS = 1 };

int ew_os_confine_reader(void)
{
    ew_os_drop_all_rights();
    return 0;
}

/* Older systems do not have the policy. */
static void forbid_children(void)
{
    BOOL(WINAPI * set_policy)(int policy, void *value, SIZE_T size) = NULL;
    FARPROC found = GetProcAddress(GetModuleHandleW(L"kernel32.dll"), "SetProcessMitigationPolicy");
    DWORD flags = NO_CHILD_PROCESS;
    memcpy(&set_policy, &found, sizeof set_policy);
    if (set_policy != NULL)
        (void)set_policy(CHILD_PROCESS_POLICY, &flags, sizeof flags);
}

static bool lower_integrity(void)
{
    SID low = {.Revision = SID_REVISION,
               .SubAuthorityCount = 1,
               .IdentifierAuthority = {SECURITY_MANDATORY_LABEL_AUTHORITY},
               .SubAuthority = {SECURITY_MANDATORY_LOW_RID}};
    TOKEN_MANDATORY_LABEL label = {.Label = {.Sid = &low, .Attributes = SE_GROUP_INTEGRITY}};
    HANDLE token;
    if (!OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY | TOKEN_ADJUST_DEFAULT, &token))
        return false;
    BOOL lowered = SetTokenInformation(token, TokenIntegrityLevel, &label,
                                       (DWORD)(sizeof label + GetLengthSid(&low)));
    (void)CloseHandle(token);
    return lowered;
}

int ew_os_confine_server(bool connect)
{
    (void)connect;
    forbid_children();
    bool lowered = lower_integrity();
    ew_os_drop_all_rights();
    return lowered;
}

int ew_os_confine_live(void)
{
    return 0;
}

int ew_os_file_keep(const char *const *paths, size_t count)
{
    (void)paths;
    (void)count;
    return 0;
}
