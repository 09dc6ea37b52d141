/* SPDX-License-Identifier: MIT */
/* The names of this machine and its system. */
#include <stdio.h>
#include <windows.h>

#include "os/os.h"
#include "os/windows/text.h"
#include "os/windows/version.h"

void ew_os_host_name(char *buffer, size_t size)
{
    wchar_t name[256];
    DWORD units = sizeof name / sizeof name[0];
    if (size == 0)
        return;
    buffer[0] = '\0';
    if (GetComputerNameExW(ComputerNameDnsHostname, name, &units))
        (void)ew_wide_to_utf8(name, units, buffer, size);
}

void ew_os_system_name(char *buffer, size_t size)
{
    struct ew_windows_version version;
    ew_windows_version(&version);
    (void)snprintf(buffer, size, "Windows %lu.%lu.%lu%s%s%s", (unsigned long)version.major,
                   (unsigned long)version.minor, (unsigned long)version.build,
                   version.wine ? " (Wine " : "", version.wine ? version.wine : "",
                   version.wine ? ")" : "");
}
