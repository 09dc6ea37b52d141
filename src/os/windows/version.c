/* SPDX-License-Identifier: MIT */
/*
 * The version as the kernel reports it: GetVersionEx returns a version that depends on the
 * program's manifest. Wine is recognized by a function that only its ntdll exports.
 */
#include "os/windows/version.h"

#include <string.h>
#include <windows.h>

static FARPROC find(const char *name)
{
    HMODULE ntdll = GetModuleHandleW(L"ntdll.dll");
    return ntdll ? GetProcAddress(ntdll, name) : NULL;
}

void ew_windows_version(struct ew_windows_version *ret_version)
{
    union {
        FARPROC found;
        LONG(WINAPI *rtl_get_version)(OSVERSIONINFOW *);
        const char *(__cdecl *wine_get_version)(void);
    } call;
    OSVERSIONINFOW info = {.dwOSVersionInfoSize = sizeof info};
    memset(ret_version, 0, sizeof *ret_version);
    call.found = find("RtlGetVersion");
    if (call.found && call.rtl_get_version(&info) == 0) {
        ret_version->major = info.dwMajorVersion;
        ret_version->minor = info.dwMinorVersion;
        ret_version->build = info.dwBuildNumber;
    }
    call.found = find("wine_get_version");
    if (call.found)
        ret_version->wine = call.wine_get_version();
}
