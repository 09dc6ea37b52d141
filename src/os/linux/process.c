/* SPDX-License-Identifier: MIT */
/* Simple queries about one process, from /proc. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "model/cgroup.h"
#include "os/os.h"

bool ew_os_process_exists(const char *proc_root, uint32_t pid)
{
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/%u", proc_root, pid);
    return length > 0 && (size_t)length < sizeof path && access(path, F_OK) == 0;
}

/* 42 (a) b) Z 1 …: the state follows the last parenthesis; names may contain some. */
bool ew_os_process_ended(const char *proc_root, uint32_t pid)
{
    char path[4096], text[512];
    struct ew_bytes in;
    int length = snprintf(path, sizeof path, "%s/%u/stat", proc_root, pid);
    if (length <= 0 || (size_t)length >= sizeof path)
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return !ew_os_process_exists(proc_root, pid);
    ssize_t got = read(fd, text, sizeof text);
    (void)close(fd);
    ew_bytes_init(&in, text, got > 0 ? (size_t)got : 0);
    (void)ew_bytes_until_last(&in, ')');
    ew_bytes_skip_spaces(&in);
    int state = ew_bytes_peek(&in);
    return got <= 0 || state == 'Z' || state == 'X';
}

bool ew_os_cgroup(const char *proc_root, uint32_t pid, char *buffer, size_t size, bool *ret_only)
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
    if (got <= 0 || !ew_cgroup_shown(text, (size_t)got, &found, ret_only))
        return false;
    (void)ew_span_copy(found, buffer, size);
    return true;
}

/* The first namespace of process ids has a fixed number (PROC_PID_INIT_INO in the kernel). */
bool ew_os_pids_are_foreign(const char *proc_root)
{
    char path[4096], target[64];
    (void)snprintf(path, sizeof path, "%s/self/ns/pid", proc_root);
    ssize_t len = readlink(path, target, sizeof target - 1);
    if (len <= 0)
        return false;
    target[len] = '\0';
    return strcmp(target, "pid:[4026531836]") != 0;
}
