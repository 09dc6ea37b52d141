/* SPDX-License-Identifier: MIT */
/* Small questions about one process, answered by /proc. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "os/os.h"

bool ew_os_process_exists(const char *proc_root, uint32_t pid)
{
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/%u", proc_root, pid);
    return length > 0 && (size_t)length < sizeof path && access(path, F_OK) == 0;
}

/* Of lines like "0::/user.slice/session-1.scope" the one without a controller is version 2's. */
bool ew_os_cgroup(const char *proc_root, uint32_t pid, char *buffer, size_t size)
{
    char path[4096], text[4096];
    int length = snprintf(path, sizeof path, "%s/%u/cgroup", proc_root, pid);
    if (length <= 0 || (size_t)length >= sizeof path || size == 0)
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, text, sizeof text - 1);
    (void)close(fd);
    if (got <= 0)
        return false;
    text[got] = '\0';
    const char *line = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
    if (line == NULL)
        return false;
    line += *line == '\n' ? 4 : 3;
    size_t end = strcspn(line, "\n");
    if (end >= size)
        end = size - 1;
    memcpy(buffer, line, end);
    buffer[end] = '\0';
    return true;
}
