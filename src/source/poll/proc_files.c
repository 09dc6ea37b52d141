/* SPDX-License-Identifier: MIT */
/*
 * Owns every system call on a /proc tree. Invariant: kept_count is the number of descriptors that
 * callers hold from ew_proc_read, and never exceeds kept_max.
 *
 * The CPU clock of a process makes polling cheap: 0.4 us show whether a process ran at all, against
 * 9 us for its files, and no right is needed. /proc/PID/schedstat is no substitute: it counts only
 * the first thread.
 */
#include "source/poll/proc_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "source/poll/proc_text.h"

/* Each kept descriptor holds a page of kernel memory; this many are 16 MiB. */
#define KEPT_LIMIT 4096u

/* A quarter of the process's limit, and at least 64, stay available for the rest of the program. */
static uint32_t kept_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 0;
    uint64_t soft = limit.rlim_cur == RLIM_INFINITY ? UINT32_MAX : (uint64_t)limit.rlim_cur;
    uint64_t reserve = soft / 4 > 64 ? soft / 4 : 64;
    uint64_t usable = soft > reserve ? soft - reserve : 0;
    return usable < KEPT_LIMIT ? (uint32_t)usable : KEPT_LIMIT;
}

static int open_root(const char *root)
{
    return open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static bool is_procfs(int fd)
{
    struct statfs fs;
    return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/* Reads into files->text from the start of fd. Returns the length or a negative errno. */
static ssize_t read_text(struct ew_proc_files *files, int fd)
{
    ssize_t len;
    do
        len = pread(fd, files->text, sizeof files->text, 0);
    while (len < 0 && errno == EINTR);
    if (len < 0)
        return -errno;
    files->len = (size_t)len;
    return len;
}

/* Reads a file directly below the root, once. */
static bool read_once(struct ew_proc_files *files, const char *path)
{
    int fd = openat(files->root_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return false;
    ssize_t len = read_text(files, fd);
    (void)close(fd);
    return len > 0;
}

/* In some sandboxes only the caller's own clock works; every other process would look gone. */
static bool clocks_work(void)
{
    uint64_t ns;
    uint32_t other = getppid() > 0 ? (uint32_t)getppid() : 1;
    return ew_proc_cpu_ns((uint32_t)getpid(), &ns) == EW_PROC_OK &&
           ew_proc_cpu_ns(other, &ns) == EW_PROC_OK;
}

static void probe_features(struct ew_proc_files *files)
{
    struct stat fds;
    files->own_ids = read_once(files, "self/status") &&
                     ew_proc_same_namespace(files->text, files->len, (uint32_t)getpid()) &&
                     clocks_work();
    files->fd_counts = fstatat(files->root_fd, "self/fd", &fds, 0) == 0 && fds.st_size > 0;
    if (!files->own_ids)
        return;
    files->loadavg_fd = openat(files->root_fd, "loadavg", O_RDONLY | O_CLOEXEC | O_NOCTTY);
    /* Containers may mount their own file over it, which may be wrong. */
    if (files->loadavg_fd >= 0 && !is_procfs(files->loadavg_fd)) {
        (void)close(files->loadavg_fd);
        files->loadavg_fd = -1;
    }
}

int ew_proc_files_open(struct ew_proc_files *files, const char *root, struct ew_error *reterr)
{
    *files = (struct ew_proc_files){.root_fd = -1, .loadavg_fd = -1};
    files->root = ew_strdup(root);
    if (!files->root)
        return ew_error_set(reterr, ETWATCH_ENOMEM, 0, "out of memory");
    files->root_fd = open_root(root);
    if (files->root_fd < 0) {
        int os_code = errno;
        ew_proc_files_close(files);
        int code = os_code == EACCES || os_code == EPERM ? ETWATCH_EPERM : ETWATCH_EOS;
        ew_error_set(reterr, code, os_code, "cannot open %s: %s", root, strerror(os_code));
        ew_error_fix(reterr, "mount -t proc proc %s", root);
        return code;
    }
    files->procfs = is_procfs(files->root_fd);
    if (files->procfs) {
        files->kept_max = kept_limit();
        probe_features(files);
    }
    return 0;
}

void ew_proc_files_close(struct ew_proc_files *files)
{
    if (files->root_fd >= 0)
        (void)close(files->root_fd);
    if (files->loadavg_fd >= 0)
        (void)close(files->loadavg_fd);
    files->root_fd = files->loadavg_fd = -1;
    ew_free(files->root);
    files->root = NULL;
}

int ew_proc_files_refresh(struct ew_proc_files *files, struct ew_error *reterr)
{
    if (files->procfs)
        return 0;
    int fd = open_root(files->root);
    if (fd < 0)
        return ew_error_set(reterr, ETWATCH_EOS, errno, "cannot open %s: %s", files->root,
                            strerror(errno));
    (void)close(files->root_fd);
    files->root_fd = fd;
    return 0;
}

static enum ew_proc_result result_of(int os_code)
{
    return os_code == ENOENT || os_code == ESRCH ? EW_PROC_GONE : EW_PROC_DENIED;
}

static int open_entry(struct ew_proc_files *files, uint32_t pid, uint32_t tid, const char *file)
{
    char path[64];
    if (tid)
        (void)snprintf(path, sizeof path, "%lu/task/%lu/%s", (unsigned long)pid, (unsigned long)tid,
                       file);
    else
        (void)snprintf(path, sizeof path, "%lu/%s", (unsigned long)pid, file);
    return openat(files->root_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

void ew_proc_drop(struct ew_proc_files *files, int *fd)
{
    if (*fd < 0)
        return;
    (void)close(*fd);
    *fd = -1;
    files->kept_count--;
}

enum ew_proc_result ew_proc_read(struct ew_proc_files *files, uint32_t pid, uint32_t tid,
                                 const char *file, bool keep, int *fd)
{
    files->len = 0;
    if (*fd >= 0) {
        ssize_t len = read_text(files, *fd);
        if (len >= 0)
            return EW_PROC_OK;
        ew_proc_drop(files, fd);
        return result_of((int)-len);
    }
    int opened = open_entry(files, pid, tid, file);
    if (opened < 0) {
        /* Descriptors have run out: from now on keep no more than those held now. */
        if (errno == EMFILE || errno == ENFILE)
            files->kept_max = files->kept_count;
        return result_of(errno);
    }
    ssize_t len = read_text(files, opened);
    if (len >= 0 && keep && files->kept_count < files->kept_max) {
        *fd = opened;
        files->kept_count++;
    } else {
        (void)close(opened);
    }
    return len >= 0 ? EW_PROC_OK : result_of((int)-len);
}

static int add_id(struct ew_proc_ids *ids, uint32_t id, uint32_t max)
{
    if (ids->count == max) {
        ids->overflow++;
        return 0;
    }
    if (ids->count == ids->capacity) {
        uint32_t capacity = ids->capacity ? ids->capacity * 2 : 64;
        uint32_t *grown = ew_realloc_array(ids->ids, capacity, sizeof *grown);
        if (!grown)
            return ETWATCH_ENOMEM;
        ids->ids = grown;
        ids->capacity = capacity;
    }
    ids->ids[ids->count++] = id;
    return 0;
}

/* getdents64 instead of readdir: a DIR would cost one heap block of 32 KiB per directory and
 * round. */
static int list_fd(int fd, uint32_t max, struct ew_proc_ids *ids)
{
    _Alignas(struct dirent64) char block[16384];
    ids->count = ids->overflow = 0;
    for (;;) {
        ssize_t size = getdents64(fd, block, sizeof block);
        if (size < 0)
            return errno == ENOENT || errno == ESRCH ? ETWATCH_ENOENT : ETWATCH_EOS;
        if (size == 0)
            return (int)ids->count;
        for (ssize_t at = 0; at < size;) {
            const struct dirent64 *entry = (const void *)(block + at);
            uint32_t id = ew_proc_parse_pid_name(entry->d_name);
            if (id && add_id(ids, id, max) != 0)
                return ETWATCH_ENOMEM;
            at += entry->d_reclen;
        }
    }
}

int ew_proc_list(struct ew_proc_files *files, uint32_t pid, uint32_t max, struct ew_proc_ids *ids)
{
    if (pid == 0) {
        if (lseek(files->root_fd, 0, SEEK_SET) < 0)
            return ETWATCH_EOS;
        return list_fd(files->root_fd, max, ids);
    }
    char path[32];
    (void)snprintf(path, sizeof path, "%lu/task", (unsigned long)pid);
    int fd = openat(files->root_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || errno == ESRCH ? ETWATCH_ENOENT : ETWATCH_EOS;
    int rc = list_fd(fd, max, ids);
    (void)close(fd);
    return rc;
}

enum ew_proc_result ew_proc_cpu_ns(uint32_t pid, uint64_t *ret_ns)
{
    /* The kernel's encoding of a process's clock, CPUCLOCK_SCHED. clock_getcpuclockid returns
     * the same after one more system call that checks whether the process exists. */
    clockid_t clock = (clockid_t)(~pid << 3 | 2u);
    struct timespec t;
    if (clock_gettime(clock, &t) != 0)
        return EW_PROC_GONE;
    *ret_ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    return EW_PROC_OK;
}

bool ew_proc_last_pid(struct ew_proc_files *files, uint32_t *ret_pid)
{
    return files->loadavg_fd >= 0 && read_text(files, files->loadavg_fd) > 0 &&
           ew_proc_parse_last_pid(files->text, files->len, ret_pid, NULL) == 0;
}

/* Counts one by one, for kernels that do not report the number. */
static bool count_entries(struct ew_proc_files *files, const char *path, uint64_t *ret_count)
{
    _Alignas(struct dirent64) char block[4096];
    uint64_t count = 0;
    ssize_t size;
    int fd = openat(files->root_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return false;
    while ((size = getdents64(fd, block, sizeof block)) > 0)
        for (ssize_t at = 0; at < size;) {
            const struct dirent64 *entry = (const void *)(block + at);
            count += entry->d_name[0] != '.';
            at += entry->d_reclen;
        }
    (void)close(fd);
    *ret_count = count;
    return size == 0;
}

bool ew_proc_fd_count(struct ew_proc_files *files, uint32_t pid, uint64_t *ret_count)
{
    char path[32];
    struct stat fds;
    (void)snprintf(path, sizeof path, "%lu/fd", (unsigned long)pid);
    if (!files->fd_counts)
        return files->procfs && count_entries(files, path, ret_count);
    if (fstatat(files->root_fd, path, &fds, 0) != 0)
        return false;
    *ret_count = (uint64_t)fds.st_size;
    return true;
}
