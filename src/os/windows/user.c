/* SPDX-License-Identifier: MIT */
/* Users of Windows have no numbers, so no source ever asks for the name of one. */
#include <stdio.h>

#include "os/os.h"

void ew_os_user_name(uint32_t uid, char *buffer, size_t size)
{
    (void)snprintf(buffer, size, "%lu", (unsigned long)uid);
}
