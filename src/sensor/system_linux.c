/* SPDX-License-Identifier: MIT */
/*
 * Owns the descriptors of the system-wide files of /proc, which stay open: a reading is one pread
 * of each. The number of processes is derived from the link count of /proc, less the number of
 * links that are not processes, which is measured once. Also owns the list of process ids, if
 * starts and exits are needed: the kernel counts forks, but threads are forks too.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <etwatch/system.h>

#include "base/alloc.h"
#include "sensor/system.h"

enum { TEXT_SIZE = 256 << 10, PIDS_MAX = 1 << 22 };

const struct etwatch_metric_set ew_system_source_estimates =
    EW_METRIC_SET(ETWATCH_S_processes_started, ETWATCH_S_processes_ended);

static const struct {
    const char *name;
    void (*parse)(const void *text, size_t len, struct ew_system_text *out);
} files[] = {
    {"stat", ew_system_parse_stat},       {"meminfo", ew_system_parse_meminfo},
    {"vmstat", ew_system_parse_vmstat},   {"diskstats", ew_system_parse_diskstats},
    {"net/dev", ew_system_parse_net_dev}, {"loadavg", ew_system_parse_loadavg},
};
enum { FILE_COUNT = sizeof files / sizeof files[0] };

struct pids {
    uint32_t *list; /* ascending */
    uint32_t count, room;
};

struct ew_system_source {
    int root_fd, fds[FILE_COUNT];
    struct pids now, before;
    bool listed; /* now is valid */
    uint64_t started, ended;
    uint64_t other_links; /* UINT64_MAX: the link count is unusable */
    char *text;
};

static uint64_t links(int root_fd)
{
    struct stat status;
    return fstat(root_fd, &status) == 0 ? (uint64_t)status.st_nlink : 0;
}

/* The links that are not processes. Unknown in a recorded tree. */
static uint64_t count_other_links(int root_fd)
{
    uint64_t numbers = 0, before = links(root_fd);
    int fd = openat(root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (folder == NULL)
        return UINT64_MAX;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        numbers += entry->d_name[0] >= '1' && entry->d_name[0] <= '9';
    (void)closedir(folder);
    return before > numbers ? before - numbers : UINT64_MAX;
}

int ew_system_source_open(const char *proc_root, struct ew_system_source **ret_source)
{
    struct ew_system_source *source = ew_calloc(1, sizeof *source);
    if (source == NULL)
        return ETWATCH_ENOMEM;
    source->text = ew_calloc(TEXT_SIZE, 1);
    source->root_fd = open(proc_root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < FILE_COUNT; i++)
        source->fds[i] =
            source->root_fd < 0 ? -1 : openat(source->root_fd, files[i].name, O_RDONLY | O_CLOEXEC);
    if (source->text == NULL || source->root_fd < 0) {
        int rc = source->text == NULL ? ETWATCH_ENOMEM : ETWATCH_EOS;
        ew_system_source_close(source);
        return rc;
    }
    source->other_links = count_other_links(source->root_fd);
    *ret_source = source;
    return 0;
}

void ew_system_source_close(struct ew_system_source *source)
{
    for (int i = 0; i < FILE_COUNT; i++)
        if (source->fds[i] >= 0)
            (void)close(source->fds[i]);
    if (source->root_fd >= 0)
        (void)close(source->root_fd);
    ew_free(source->now.list);
    ew_free(source->before.list);
    ew_free(source->text);
    ew_free(source);
}

/* -------------------------------------------------------------- starts and exits */

static bool add_pid(struct pids *pids, uint32_t pid)
{
    if (pids->count == pids->room) {
        uint32_t room = pids->room == 0 ? 1024 : pids->room * 2;
        uint32_t *grown =
            room > PIDS_MAX ? NULL : ew_realloc_array(pids->list, room, sizeof *grown);
        if (grown == NULL)
            return false;
        pids->list = grown;
        pids->room = room;
    }
    pids->list[pids->count++] = pid;
    return true;
}

static int compare_pids(const void *a, const void *b)
{
    const uint32_t *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

static bool list_pids(int root_fd, struct pids *pids)
{
    bool whole = true, sorted = true;
    int fd = openat(root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    pids->count = 0;
    if (folder == NULL)
        return false;
    for (const struct dirent *entry; whole && (entry = readdir(folder)) != NULL;) {
        uint32_t pid = 0;
        for (const char *at = entry->d_name; *at >= '0' && *at <= '9' && pid < PIDS_MAX; at++)
            pid = pid * 10 + (uint32_t)(*at - '0');
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
            continue;
        sorted = sorted && (pids->count == 0 || pids->list[pids->count - 1] < pid);
        whole = add_pid(pids, pid);
    }
    (void)closedir(folder);
    if (!sorted)
        qsort(pids->list, pids->count, sizeof *pids->list, compare_pids);
    return whole;
}

/* Processes that start and exit between two lists are in neither. */
static void count_processes(struct ew_system_source *source, struct ew_system_text *out)
{
    struct pids last = source->now;
    bool again = source->listed;
    uint32_t i = 0, j = 0;
    source->now = source->before;
    source->before = last;
    source->listed = list_pids(source->root_fd, &source->now);
    while (again && source->listed && (i < source->now.count || j < last.count)) {
        bool started =
            j == last.count || (i < source->now.count && source->now.list[i] < last.list[j]);
        bool ended =
            i == source->now.count || (j < last.count && source->now.list[i] > last.list[j]);
        source->started += started;
        source->ended += ended;
        i += !ended;
        j += !started;
    }
    out->processes_started = source->started;
    out->processes_ended = source->ended;
    out->has |= source->listed ? EW_SYSTEM_PROCESSES : 0;
}

/* Reads to the end: a read of a /proc file may return only a part. */
static size_t read_whole(int fd, char *text)
{
    size_t len = 0;
    while (len < TEXT_SIZE) {
        ssize_t part = pread(fd, text + len, TEXT_SIZE - len, (off_t)len);
        if (part < 0 && errno == EINTR)
            continue;
        if (part <= 0)
            break;
        len += (size_t)part;
    }
    return len;
}

int ew_system_source_read(struct ew_system_source *source, bool lists,
                          struct ew_system_text *ret_text, uint64_t *ret_processes)
{
    if (lists)
        count_processes(source, ret_text);
    for (int i = 0; i < FILE_COUNT; i++) {
        size_t len = source->fds[i] < 0 ? 0 : read_whole(source->fds[i], source->text);
        if (len > 0)
            files[i].parse(source->text, len, ret_text);
    }
    uint64_t all = links(source->root_fd);
    if (source->other_links != UINT64_MAX && all >= source->other_links)
        *ret_processes = all - source->other_links;
    return 0;
}
