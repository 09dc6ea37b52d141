/* SPDX-License-Identifier: MIT */
/* Reads small files of /sys. A folder is named by a path, so that tests can use a recorded tree. */
#include "sensor/sysfs_linux.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"

enum { PATH_SIZE = 1024, TEXT_SIZE = 256, ENTRIES_MAX = 4096 };

int ew_sysfs_open(const char *folder, const char *name)
{
    char path[PATH_SIZE];
    int len = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (len < 0 || (size_t)len >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return open(path, O_RDONLY | O_CLOEXEC);
}

bool ew_sysfs_number(int fd, uint64_t *ret_value)
{
    char text[TEXT_SIZE];
    ssize_t len = fd < 0 ? -1 : pread(fd, text, sizeof text, 0);
    if (len <= 0)
        return false;
    struct ew_bytes in;
    ew_bytes_init(&in, text, (size_t)len);
    uint64_t value = ew_bytes_dec_u64(&in);
    if (!ew_bytes_ok(&in))
        return false;
    *ret_value = value;
    return true;
}

bool ew_sysfs_read_number(const char *folder, const char *name, uint64_t *ret_value)
{
    int fd = ew_sysfs_open(folder, name);
    bool known = ew_sysfs_number(fd, ret_value);
    if (fd >= 0)
        (void)close(fd);
    return known;
}

bool ew_sysfs_read_text(const char *folder, const char *name, char *text, size_t size)
{
    char bytes[TEXT_SIZE];
    struct ew_bytes in;
    struct ew_span line;
    int fd = ew_sysfs_open(folder, name);
    ssize_t len = fd < 0 ? -1 : pread(fd, bytes, sizeof bytes, 0);
    if (fd >= 0)
        (void)close(fd);
    if (len <= 0)
        return false;
    ew_bytes_init(&in, bytes, (size_t)len);
    if (!ew_bytes_line(&in, &line))
        return false;
    (void)ew_span_copy(line, text, size);
    return true;
}

bool ew_sysfs_link_name(const char *folder, const char *name, char *text, size_t size)
{
    char path[PATH_SIZE], target[PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    ssize_t len = readlink(path, target, sizeof target - 1);
    if (len <= 0)
        return false;
    target[len] = '\0';
    const char *slash = strrchr(target, '/');
    (void)snprintf(text, size, "%s", slash != NULL ? slash + 1 : target);
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool add_name(char ***names, size_t *count, const char *name)
{
    char **bigger = ew_realloc_array(*names, *count + 1, sizeof *bigger);
    if (bigger == NULL)
        return false;
    *names = bigger;
    bigger[*count] = ew_strdup(name);
    if (bigger[*count] == NULL)
        return false;
    ++*count;
    return true;
}

bool ew_sysfs_list(const char *folder, void (*each)(void *ctx, const char *name), void *ctx)
{
    DIR *entries = opendir(folder);
    char **names = NULL;
    size_t count = 0;
    if (entries == NULL)
        return false;
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL && count < ENTRIES_MAX;)
        if (entry->d_name[0] != '.' && !add_name(&names, &count, entry->d_name))
            break;
    (void)closedir(entries);
    if (count > 0)
        qsort(names, count, sizeof *names, by_name);
    for (size_t i = 0; i < count; i++) {
        each(ctx, names[i]);
        ew_free(names[i]);
    }
    ew_free(names);
    return true;
}
