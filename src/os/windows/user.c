/* SPDX-License-Identifier: MIT */
/*
 * Users of Windows have no numeric ids, so sources do not report any: the user is read from the
 * process's token and its name looked up. The lookup may involve a domain server, so callers with
 * many processes cache names by the key, which is a hash of the user's SID.
 */
#include <stdio.h>
#include <windows.h>
/* needs windows.h */
#include <sddl.h>

#include "base/alloc.h"
#include "os/os.h"
#include "os/windows/text.h"

void ew_os_user_name(uint32_t uid, char *buffer, size_t size)
{
    (void)snprintf(buffer, size, "%lu", (unsigned long)uid);
}

bool ew_os_is_windows(void)
{
    return true;
}

bool ew_os_has_uids(void)
{
    return false;
}

/* FNV-1a. */
static uint64_t key_of(const void *bytes, DWORD size)
{
    const unsigned char *at = bytes;
    uint64_t key = UINT64_C(0xcbf29ce484222325);
    for (DWORD i = 0; i < size; i++)
        key = (key ^ at[i]) * UINT64_C(0x100000001b3);
    return key;
}

/* A hash of the SID: the low half of the key of the user's processes. */
bool ew_os_user_id(const char *name, uint32_t *ret_uid)
{
    char sid[SECURITY_MAX_SID_SIZE];
    wchar_t domain[256];
    DWORD size = sizeof sid, domain_units = 256;
    SID_NAME_USE use;
    wchar_t *wide = ew_wide_from_utf8(name);
    bool known = wide && LookupAccountNameW(NULL, wide, sid, &size, domain, &domain_units, &use);
    if (known)
        *ret_uid = (uint32_t)key_of(sid, GetLengthSid(sid));
    ew_free(wide);
    return known;
}

/* Omits the domain, which is usually the machine itself. */
static bool name_of(PSID sid, char *buffer, size_t size)
{
    wchar_t name[256], domain[256];
    DWORD name_units = 256, domain_units = 256;
    SID_NAME_USE use;
    if (!LookupAccountSidW(NULL, sid, name, &name_units, domain, &domain_units, &use))
        return false;
    (void)ew_wide_to_utf8(name, name_units, buffer, size);
    return buffer[0] != '\0';
}

bool ew_os_process_user(uint32_t pid, uint64_t *ret_key, char *buffer, size_t size)
{
    union {
        TOKEN_USER user;
        char room[256]; /* a SID has at most 68 bytes */
    } token;
    DWORD used = 0;
    HANDLE process = OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, FALSE, pid), handle = NULL;
    bool known = process && OpenProcessToken(process, TOKEN_QUERY, &handle) &&
                 GetTokenInformation(handle, TokenUser, &token, sizeof token, &used);
    if (known) {
        *ret_key = key_of(token.user.User.Sid, GetLengthSid(token.user.User.Sid));
        known = buffer == NULL || name_of(token.user.User.Sid, buffer, size);
    }
    if (handle)
        (void)CloseHandle(handle);
    if (process)
        (void)CloseHandle(process);
    return known;
}

bool ew_os_sid_user(const char *sid, uint64_t *ret_key, char *buffer, size_t size)
{
    PSID bytes = NULL;
    if (!ConvertStringSidToSidA(sid, &bytes))
        return false;
    *ret_key = key_of(bytes, GetLengthSid(bytes));
    bool known = buffer == NULL || name_of(bytes, buffer, size);
    (void)LocalFree(bytes);
    return known;
}
