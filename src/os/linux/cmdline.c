/* SPDX-License-Identifier: MIT */
/*
 * Command lines, as the kernel stores them: arguments that end in NUL. They are returned in this
 * form because masking secrets needs to know where an argument ends.
 */
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

bool ew_os_cmdline(const char *proc_root, uint32_t pid, char *buffer, size_t size, size_t *ret_len)
{
    char path[4096];
    int path_len = snprintf(path, sizeof path, "%s/%lu/cmdline", proc_root, (unsigned long)pid);
    if (path_len < 0 || (size_t)path_len >= sizeof path)
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return false;
    size_t len = 0;
    ssize_t got = 0;
    while (len < size) {
        got = read(fd, buffer + len, size - len);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        len += (size_t)got;
    }
    (void)close(fd);
    if (got < 0)
        return false;
    *ret_len = len;
    return true;
}
