/* SPDX-License-Identifier: MIT */
/*
 * Files for reading at any offset. Uses positioned reads instead of a mapping: if a mapped file is
 * truncated by another program, a signal kills this process, while a short read is just its end.
 */
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"

#include <etwatch/etwatch.h>

struct ew_os_file {
    int fd;
    bool kept; /* not to be closed */
};

/* Files that were opened before the process gave up the right to open any. */
static struct kept_file {
    const char *path;
    int fd, error; /* fd -1: the errno */
} * kept_files;
static size_t kept_count;

/* Without O_NONBLOCK, opening a pipe without a writer would block for ever. */
static int open_fd(const char *path)
{
    return open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

static void keep(const char *path)
{
    int fd = open_fd(path);
    kept_files[kept_count++] = (struct kept_file){path, fd, fd < 0 ? errno : 0};
}

int ew_os_file_keep(const char *const *paths, size_t count)
{
    kept_files = ew_calloc(count + 1, sizeof *kept_files);
    if (!kept_files)
        return ETWATCH_ENOMEM;
    keep("/proc/self/status"); /* own memory */
    for (size_t i = 0; i < count; i++)
        keep(paths[i]);
    return 0;
}

static void open_or_find(struct ew_os_file *file, const char *path)
{
    for (size_t i = 0; i < kept_count; i++) {
        if (strcmp(kept_files[i].path, path) == 0) {
            *file = (struct ew_os_file){kept_files[i].fd, true};
            errno = kept_files[i].error;
            return;
        }
    }
    file->fd = open_fd(path);
}

static int fail(int64_t *reterr_os_code)
{
    *reterr_os_code = errno;
    return errno == EACCES || errno == EPERM ? ETWATCH_EPERM : ETWATCH_EOS;
}

/* Pipes and devices cannot be read at an offset. */
static int check_kind(int fd, uint64_t *ret_bytes, int64_t *reterr_os_code)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return fail(reterr_os_code);
    if (!S_ISREG(st.st_mode)) {
        errno = S_ISDIR(st.st_mode) ? EISDIR : ESPIPE;
        return fail(reterr_os_code);
    }
    *ret_bytes = (uint64_t)st.st_size;
    return 0;
}

int ew_os_file_open(const char *path, struct ew_os_file **ret_file, uint64_t *ret_bytes,
                    int64_t *reterr_os_code)
{
    struct ew_os_file *file = ew_calloc(1, sizeof *file);
    if (!file)
        return ETWATCH_ENOMEM;
    open_or_find(file, path);
    int rc = file->fd < 0 ? fail(reterr_os_code) : check_kind(file->fd, ret_bytes, reterr_os_code);
    if (rc < 0) {
        ew_os_file_close(file);
        return rc;
    }
    *ret_file = file;
    return 0;
}

int64_t ew_os_file_read(struct ew_os_file *file, uint64_t offset, void *bytes, size_t size)
{
    size_t done = 0;
    if (size > INT64_MAX || offset > (uint64_t)INT64_MAX - size)
        return ETWATCH_EINVAL;
    while (done < size) {
        ssize_t got = pread(file->fd, (char *)bytes + done, size - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return ETWATCH_EOS;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (int64_t)done;
}

void ew_os_file_close(struct ew_os_file *file)
{
    if (!file)
        return;
    if (file->fd >= 0 && !file->kept)
        (void)close(file->fd);
    ew_free(file);
}

int ew_os_file_try_write(const char *path, bool *ret_made)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0600);
    *ret_made = fd >= 0;
    if (fd < 0 && errno == EEXIST)
        fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return errno;
    (void)close(fd);
    return 0;
}

void ew_os_file_remove(const char *path)
{
    (void)unlink(path);
}

FILE *ew_os_stream_create(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0600);
    return fd < 0 ? NULL : fdopen(fd, "wb");
}

int ew_os_file_rename(const char *from, const char *to)
{
    return rename(from, to) == 0 ? 0 : errno;
}

bool ew_os_kernel_path(const char *path, char *buffer, size_t size)
{
    int len = snprintf(buffer, size, "%s", path);
    return path[0] == '/' && len > 0 && (size_t)len < size;
}

bool ew_os_full_path(const char *path, char *buffer, size_t size)
{
    char folder[4096];
    if (path[0] == '/') {
        int len = snprintf(buffer, size, "%s", path);
        return len > 0 && (size_t)len < size;
    }
    if (!getcwd(folder, sizeof folder))
        return false;
    int len = snprintf(buffer, size, "%s/%s", folder, path);
    return len > 0 && (size_t)len < size;
}

FILE *ew_os_stream_open(const char *path)
{
    return fopen(path, "rb");
}
