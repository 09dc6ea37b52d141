/* SPDX-License-Identifier: MIT */
/* The name of this machine, and ids of its users. */
#include "os/os.h"

#include <pwd.h>
#include <stdio.h>
#include <sys/utsname.h>

bool ew_os_user_id(const char *name, uint32_t *ret_uid)
{
    char text[4096];
    struct passwd entry, *found = NULL;
    if (getpwnam_r(name, &entry, text, sizeof text, &found) != 0 || found == NULL)
        return false;
    *ret_uid = (uint32_t)found->pw_uid;
    return true;
}

void ew_os_host_name(char *buffer, size_t size)
{
    struct utsname name;
    (void)snprintf(buffer, size, "%s", uname(&name) == 0 ? name.nodename : "");
}

void ew_os_system_name(char *buffer, size_t size)
{
    struct utsname name;
    if (uname(&name) == 0)
        (void)snprintf(buffer, size, "%s %s", name.sysname, name.release);
    else
        (void)snprintf(buffer, size, "Linux");
}
