/* SPDX-License-Identifier: MIT */
/* Windows has no filter that a running process can install; a reader gives up its privileges. */
#include "os/os.h"

int ew_os_confine_reader(void)
{
    ew_os_drop_all_rights();
    return 0;
}

int ew_os_confine_server(bool connect)
{
    (void)connect;
    return 0;
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
