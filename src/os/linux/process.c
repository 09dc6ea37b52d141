/* SPDX-License-Identifier: MIT */
/* Small questions about one process, answered by /proc. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/bytes.h"
#include "os/os.h"

bool ew_os_process_exists(const char *proc_root, uint32_t pid)
{
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/%u", proc_root, pid);
    return length > 0 && (size_t)length < sizeof path && access(path, F_OK) == 0;
}

/* Of lines like "0::/user.slice/session-1.scope" the one without a controller is version 2's. */
static bool find_path(const char *text, size_t len, struct ew_span *ret_path)
{
    struct ew_bytes in;
    struct ew_span line;
    ew_bytes_init(&in, text, len);
    while (ew_bytes_line(&in, &line)) {
        if (ew_span_starts(line, "0::")) {
            *ret_path = (struct ew_span){line.text + 3, line.len - 3};
            return true;
        }
    }
    return false;
}

bool ew_os_cgroup(const char *proc_root, uint32_t pid, char *buffer, size_t size)
{
    char path[4096], text[4096];
    int length = snprintf(path, sizeof path, "%s/%u/cgroup", proc_root, pid);
    if (length <= 0 || (size_t)length >= sizeof path || size == 0)
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, text, sizeof text);
    (void)close(fd);
    struct ew_span found;
    if (got <= 0 || !find_path(text, (size_t)got, &found))
        return false;
    (void)ew_span_copy(found, buffer, size);
    return true;
}
