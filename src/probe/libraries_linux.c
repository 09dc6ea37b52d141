/* SPDX-License-Identifier: MIT */
/*
 * Owns the probes. A library is known by device and inode: a probe belongs to the file, so every
 * process that maps it is seen, also one that starts later or was forked.
 *
 * The file is opened through the process (its root may be another one), and the same open file is
 * read and probed. A program may create a session and run it within the 30 ms that the search for
 * the method takes, so Run of the C API is probed first, in a millisecond. An inference that both
 * see is one. When the method has its probe, that at the entry of Run is removed at once, and that
 * at its return after some seconds: a call may be under way. The content is foreign: onnx_elf.c
 * finds functions only where the names of ONNX Runtime are, so that a file that is merely called
 * like it gets no probe.
 */
#include "probe/libraries_linux.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <etwatch/etwatch.h>

#include <etwatch/span.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "os/os.h"
#include "source/ebpf/load.h"

enum {
    LIBRARIES_MAX = 256,
    CPUS_MAX = 1024,
    RING_PAGES = 8,
    MAPS_MAX = 16 << 20, /* bytes of one /proc/PID/maps */
    RECORD_MAX = 8192,
    REQUESTS_MAX = 1024, /* more: every process is looked at */
};

struct library {
    dev_t device;
    ino_t inode;
    int fds[2 * EW_ONNX_FUNCTIONS];
    uint32_t fd_count;
    int early_fds[2];        /* of OrtApi Run, its return and its entry; 0: none */
    uint64_t early_until_ns; /* 0: they stay */
};

static const uint64_t early_ns = UINT64_C(3000000000);

/* The mappings that one CPU makes. */
struct mappings {
    int fd;
    unsigned char *ring; /* a page of the kernel, then RING_PAGES */
};

struct ew_probe_libraries {
    struct ew_probe_programs programs;
    uint32_t flags;        /* enum etwatch_probes_flag */
    struct ew_mutex *lock; /* guards the next seven */
    uint32_t requests[REQUESTS_MAX], request_count;
    struct library list[LIBRARIES_MAX];
    uint32_t count, usable, unusable;
    char problem[160];
    struct mappings cpus[CPUS_MAX];
    uint32_t cpu_count;
    int wake_fd;
    bool stopping;
    struct ew_thread_handle *thread;
};

/* ------------------------------------------------------------------------ probes */

static uint64_t monotonic_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The kernel's number of the kind of event; negative: it has no uprobes. */
static int uprobe_type(void)
{
    int type = -1;
    FILE *file = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
    if (file == NULL)
        return -1;
    if (fscanf(file, "%d", &type) != 1)
        type = -1;
    (void)fclose(file);
    return type;
}

/* A link for several uprobes, from 6.6 on: unlike a uprobe of perf it needs no CAP_SYS_ADMIN.
 * Older headers lack this part of union bpf_attr. */
static int attach_link(const char *path, uint64_t offset, bool leave, int program_fd)
{
    struct {
        uint32_t program_fd, target_fd, attach_type, flags;
        uint64_t path, offsets, counters, cookies;
        uint32_t count, uprobe_flags, pid, pad;
    } attr;
    memset(&attr, 0, sizeof attr);
    attr.program_fd = (uint32_t)program_fd;
    attr.attach_type = EW_LOAD_UPROBE_MULTI;
    attr.path = (uint64_t)(uintptr_t)path;
    attr.offsets = (uint64_t)(uintptr_t)&offset;
    attr.count = 1;
    attr.uprobe_flags = leave ? 1 : 0;
    long fd = syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof attr);
    return fd < 0 ? -errno : (int)fd;
}

/* A uprobe of perf. One event is enough: its programs run on every CPU. */
static int attach_event(const char *path, uint64_t offset, bool leave, int program_fd)
{
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof attr);
    int type = uprobe_type();
    if (type < 0)
        return -ENOSYS;
    attr.type = (uint32_t)type;
    attr.size = sizeof attr;
    attr.config = leave ? 1 : 0;
    attr.config1 = (uint64_t)(uintptr_t)path;
    attr.config2 = offset;
    long fd = syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd >= 0 && (ioctl((int)fd, PERF_EVENT_IOC_SET_BPF, program_fd) != 0 ||
                    ioctl((int)fd, PERF_EVENT_IOC_ENABLE, 0) != 0)) {
        int error = errno;
        (void)close((int)fd);
        return -error;
    }
    return fd < 0 ? -errno : (int)fd;
}

/* Instructions that the kernel cannot emulate are executed in a copy, at the cost of another trap.
 * Not all kernels emulate endbr64, which most functions begin with; it changes nothing, so that the
 * function is the same after it. */
static uint64_t after_endbr64(int file_fd, uint64_t offset)
{
    static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    uint8_t code[sizeof endbr64];
    bool begins = pread(file_fd, code, sizeof code, (off_t)offset) == (ssize_t)sizeof code &&
                  memcmp(code, endbr64, sizeof code) == 0;
    return begins ? offset + sizeof code : offset;
}

static int attach_one(int *fds, uint32_t *fd_count, int file_fd, uint64_t offset, bool leave,
                      int program_fd)
{
    char path[64];
    if (offset == 0 || program_fd < 0)
        return 0;
    offset = after_endbr64(file_fd, offset);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", file_fd);
    int fd = attach_link(path, offset, leave, program_fd);
    if (fd == -EINVAL || fd == -EOPNOTSUPP)
        fd = attach_event(path, offset, leave, program_fd);
    if (fd < 0)
        return -fd;
    fds[(*fd_count)++] = fd;
    return 0;
}

/* The return first: an entry without one would be a call that never ends. */
static int attach_pair(const struct ew_probe_programs *programs, int *fds, uint32_t *fd_count,
                       int file_fd, uint64_t offset, uint32_t which)
{
    int error = attach_one(fds, fd_count, file_fd, offset, true, programs->leave[which]);
    return error != 0 ? error
                      : attach_one(fds, fd_count, file_fd, offset, false, programs->enter[which]);
}

static int attach(const struct ew_probe_libraries *libraries, struct library *library, int file_fd,
                  const uint64_t offsets[EW_ONNX_FUNCTIONS])
{
    const struct ew_probe_programs *programs = &libraries->programs;
    uint32_t early = 0;
    int error = attach_pair(programs, library->early_fds, &early, file_fd, offsets[EW_ONNX_API_RUN],
                            EW_ONNX_API_RUN);
    for (uint32_t i = 0; error == 0 && i < EW_ONNX_FUNCTIONS; i++)
        if (i != EW_ONNX_API_RUN)
            error = attach_pair(programs, library->fds, &library->fd_count, file_fd, offsets[i], i);
    return error;
}

static void drop_early(struct library *library, uint32_t first)
{
    for (uint32_t i = first; i < 2; i++) {
        if (library->early_fds[i] > 0)
            (void)close(library->early_fds[i]);
        library->early_fds[i] = 0;
    }
}

static int64_t read_file(void *ctx, uint64_t offset, void *bytes, size_t size)
{
    size_t got = 0;
    while (got < size) {
        ssize_t count = pread(*(int *)ctx, (char *)bytes + got, size - got, (off_t)(offset + got));
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return count < 0 ? -1 : (int64_t)got;
        got += (size_t)count;
    }
    return (int64_t)got;
}

/* Without its path: it may be private. */
static void refuse(struct ew_probe_libraries *libraries, const char *path, const char *reason)
{
    const char *slash = strrchr(path, '/');
    libraries->unusable++;
    (void)snprintf(libraries->problem, sizeof libraries->problem, "%.80s: %s",
                   slash != NULL ? slash + 1 : path, reason);
}

/* Called with the lock. The API is probed before the long search for the methods begins. */
static bool probe(struct ew_probe_libraries *libraries, struct library *library, int fd,
                  const char *path)
{
    struct ew_onnx_file file = {read_file, &fd};
    uint64_t api[EW_ONNX_FUNCTIONS] = {0}, methods[EW_ONNX_FUNCTIONS] = {0};
    int rc = ew_onnx_find_api(&file, api);
    int error = rc < 0 ? 0 : attach(libraries, library, fd, api);
    if (rc == 0 && error == 0)
        rc = ew_onnx_find_methods(&file, methods);
    if (rc == 0 && error == 0 && methods[EW_ONNX_RUN] != 0)
        error = attach(libraries, library, fd, methods);
    if (error == ENOSYS)
        refuse(libraries, path, "this kernel has no uprobes (CONFIG_UPROBE_EVENTS)");
    else if (error != 0)
        refuse(libraries, path, strerror(error));
    else if (rc == ETWATCH_EFORMAT)
        refuse(libraries, path, "not a library of x86-64 or arm64");
    else if (rc < 0)
        refuse(libraries, path, etwatch_strerror(rc));
    else if (methods[EW_ONNX_RUN] == 0 && api[EW_ONNX_API_RUN] == 0)
        refuse(libraries, path, "the function that runs a session was not found");
    if (rc == 0 && error == 0 && methods[EW_ONNX_RUN] != 0) {
        drop_early(library, 1);
        library->early_until_ns = monotonic_ns() + early_ns;
    }
    return rc == 0 && error == 0 && (methods[EW_ONNX_RUN] != 0 || api[EW_ONNX_API_RUN] != 0);
}

static void drop(struct library *library)
{
    drop_early(library, 0);
    for (uint32_t i = 0; i < library->fd_count; i++)
        (void)close(library->fds[i]);
    library->fd_count = 0;
}

static void add_file(struct ew_probe_libraries *libraries, int fd, const char *path)
{
    struct stat info;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        return;
    ew_mutex_lock(libraries->lock);
    bool known = false;
    for (uint32_t i = 0; i < libraries->count && !known; i++)
        known = libraries->list[i].device == info.st_dev && libraries->list[i].inode == info.st_ino;
    if (!known && libraries->count == LIBRARIES_MAX) {
        refuse(libraries, path, "more than 256 libraries");
    } else if (!known) {
        struct library *library = &libraries->list[libraries->count++];
        *library = (struct library){.device = info.st_dev, .inode = info.st_ino};
        if (probe(libraries, library, fd, path))
            libraries->usable++;
        else
            drop(library);
    }
    ew_mutex_unlock(libraries->lock);
}

/* ---------------------------------------------------------------------- mappings */

/* Its name says that it is ONNX Runtime, and it is one that is wanted. */
static bool is_candidate(const struct ew_probe_libraries *libraries, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    if (slash == NULL || strstr(name, "onnxruntime") == NULL ||
        strstr(name, "onnxruntime_providers") != NULL)
        return false;
    bool python = strstr(name, "pybind") != NULL;
    return (libraries->flags & (python ? (uint32_t)ETWATCH_PROBES_NO_PYTHON
                                       : (uint32_t)ETWATCH_PROBES_ONLY_PYTHON)) == 0;
}

/* By the mapping itself, which also works for a file that was removed; else by its path. */
static int open_mapping(uint32_t pid, uint64_t from, uint64_t to, const char *path)
{
    char name[PATH_MAX + 32];
    (void)snprintf(name, sizeof name, "/proc/%u/map_files/%llx-%llx", (unsigned)pid,
                   (unsigned long long)from, (unsigned long long)to);
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        (void)snprintf(name, sizeof name, "/proc/%u/root%s", (unsigned)pid, path);
        fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    }
    /* The process may be gone already, or be one that only its own user may look at. */
    return fd < 0 ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : fd;
}

static void add_mapping(struct ew_probe_libraries *libraries, uint32_t pid, uint64_t from,
                        uint64_t to, const char *path)
{
    int fd = open_mapping(pid, from, to, path);
    if (fd < 0)
        return;
    add_file(libraries, fd, path);
    (void)close(fd);
}

/* 7f00-7f10 r-xp 0000 08:01 123   /path */
static void add_line(struct ew_probe_libraries *libraries, uint32_t pid, struct ew_span line)
{
    char path[PATH_MAX];
    struct ew_bytes bytes;
    ew_bytes_init(&bytes, line.text, line.len);
    uint64_t from = ew_bytes_hex_u64(&bytes);
    ew_bytes_expect(&bytes, "-");
    uint64_t to = ew_bytes_hex_u64(&bytes);
    ew_bytes_skip_spaces(&bytes);
    const uint8_t *rights = ew_bytes_take(&bytes, 4);
    bool executable = rights != NULL && rights[2] == 'x';
    ew_bytes_skip_fields(&bytes, 3);
    ew_bytes_skip_spaces(&bytes);
    struct ew_span rest = {(const char *)bytes.data + bytes.pos, ew_bytes_left(&bytes)};
    if (!executable || rest.len == 0 || rest.len >= sizeof path)
        return;
    (void)ew_span_copy(rest, path, sizeof path);
    if (is_candidate(libraries, path))
        add_mapping(libraries, pid, from, to, path);
}

static void scan_process(struct ew_probe_libraries *libraries, uint32_t pid)
{
    char name[32], *text = NULL;
    size_t size = 0, used = 0;
    (void)snprintf(name, sizeof name, "/proc/%u/maps", (unsigned)pid);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && size < MAPS_MAX) {
        if (used == size) {
            char *larger = ew_realloc_array(text, size == 0 ? 65536 : size * 2, 1);
            if (larger == NULL)
                break;
            text = larger;
            size = size == 0 ? 65536 : size * 2;
        }
        ssize_t count = read(fd, text + used, size - used);
        if (count <= 0)
            break;
        used += (size_t)count;
    }
    if (fd >= 0)
        (void)close(fd);
    struct ew_bytes bytes;
    struct ew_span line;
    ew_bytes_init(&bytes, text, used);
    while (ew_bytes_line(&bytes, &line))
        add_line(libraries, pid, line);
    ew_free(text);
}

static void scan(struct ew_probe_libraries *libraries, uint32_t pid)
{
    if (pid != 0) {
        scan_process(libraries, pid);
        return;
    }
    DIR *folder = opendir("/proc");
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        struct ew_bytes bytes;
        ew_bytes_init(&bytes, entry->d_name, strlen(entry->d_name));
        uint64_t number = ew_bytes_dec_u64(&bytes);
        if (ew_bytes_ok(&bytes) && ew_bytes_left(&bytes) == 0 && number <= INT32_MAX)
            scan_process(libraries, (uint32_t)number);
    }
    if (folder != NULL)
        (void)closedir(folder);
}

/* ------------------------------------------------------------------------ thread */

static int open_cpu(struct mappings *mappings, int cpu)
{
    struct perf_event_attr attr;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    memset(&attr, 0, sizeof attr);
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_DUMMY;
    attr.size = sizeof attr;
    attr.mmap = 1;
    attr.mmap2 = 1;
    attr.watermark = 1;
    attr.wakeup_watermark = 1;
    long fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return errno;
    void *ring =
        mmap(NULL, (RING_PAGES + 1) * page, PROT_READ | PROT_WRITE, MAP_SHARED, (int)fd, 0);
    if (ring == MAP_FAILED) {
        int error = errno;
        (void)close((int)fd);
        return error;
    }
    *mappings = (struct mappings){.fd = (int)fd, .ring = ring};
    return 0;
}

static int open_cpus(struct ew_probe_libraries *libraries)
{
    long count = sysconf(_SC_NPROCESSORS_CONF);
    for (int cpu = 0; cpu < count && libraries->cpu_count < CPUS_MAX; cpu++) {
        int error = open_cpu(&libraries->cpus[libraries->cpu_count], cpu);
        if (error == 0)
            libraries->cpu_count++;
        else if (error != ENODEV) /* it is offline */
            return error;
    }
    return 0;
}

/* A record of perf: type, rights and size; pid, tid, address, length, offset in the file; device,
 * inode and its generation; protection, flags; path. */
static void use_record(struct ew_probe_libraries *libraries, const uint8_t *record, size_t size)
{
    enum { PATH_AT = 72 };
    char path[PATH_MAX];
    if (size <= PATH_AT || ew_load_u32(record) != PERF_RECORD_MMAP2)
        return;
    size_t len = strnlen((const char *)record + PATH_AT, size - PATH_AT);
    if (len == size - PATH_AT || len >= sizeof path)
        return;
    memcpy(path, record + PATH_AT, len + 1);
    uint64_t from = ew_load_u64(record + 16);
    if (is_candidate(libraries, path))
        add_mapping(libraries, ew_load_u32(record + 8), from, from + ew_load_u64(record + 24),
                    path);
}

static void read_cpu(struct ew_probe_libraries *libraries, struct mappings *mappings)
{
    static const size_t head = sizeof(struct perf_event_header);
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = RING_PAGES * page;
    struct perf_event_mmap_page *meta = (void *)mappings->ring;
    const uint8_t *data = mappings->ring + page;
    uint64_t end = __atomic_load_n(&meta->data_head, __ATOMIC_ACQUIRE), at = meta->data_tail;
    while (end - at >= head) {
        uint8_t record[RECORD_MAX];
        for (size_t i = 0; i < head; i++)
            record[i] = data[(at + i) % size];
        size_t len = ew_load_u16(record + 6);
        if (len < head || len > end - at)
            break;
        for (size_t i = head; i < len && i < sizeof record; i++)
            record[i] = data[(at + i) % size];
        use_record(libraries, record, len < sizeof record ? len : sizeof record);
        at += len;
    }
    __atomic_store_n(&meta->data_tail, end, __ATOMIC_RELEASE);
}

/* False: the thread ends. */
static bool take_requests(struct ew_probe_libraries *libraries)
{
    uint64_t count;
    ssize_t got = read(libraries->wake_fd, &count, sizeof count);
    (void)got; /* nothing to read: another request was taken with this one */
    while (!__atomic_load_n(&libraries->stopping, __ATOMIC_ACQUIRE)) {
        ew_mutex_lock(libraries->lock);
        uint32_t left = libraries->request_count;
        uint32_t pid = left > 0 ? libraries->requests[--libraries->request_count] : 0;
        ew_mutex_unlock(libraries->lock);
        if (left == 0)
            return true;
        scan(libraries, pid);
    }
    return false;
}

/* Removes early probes that are due. How long to wait for the next one in ms; -1: there is none. */
static int end_early(struct ew_probe_libraries *libraries)
{
    uint64_t now_ns = monotonic_ns(), next_ns = 0;
    ew_mutex_lock(libraries->lock);
    for (uint32_t i = 0; i < libraries->count; i++) {
        struct library *library = &libraries->list[i];
        if (library->early_fds[0] == 0 || library->early_until_ns == 0)
            continue;
        if (library->early_until_ns <= now_ns)
            drop_early(library, 0);
        else if (next_ns == 0 || library->early_until_ns < next_ns)
            next_ns = library->early_until_ns;
    }
    ew_mutex_unlock(libraries->lock);
    return next_ns == 0 ? -1 : (int)((next_ns - now_ns) / 1000000) + 1;
}

static void run(void *arg)
{
    struct ew_probe_libraries *libraries = arg;
    struct pollfd *fds = ew_calloc(libraries->cpu_count + 1, sizeof *fds);
    /* It sleeps nearly always; when a library is mapped, a few ms decide. */
    (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), -20);
    ew_os_thread_drop_rights();
    if (fds == NULL)
        return;
    fds[0] = (struct pollfd){.fd = libraries->wake_fd, .events = POLLIN};
    for (uint32_t i = 0; i < libraries->cpu_count; i++)
        fds[i + 1] = (struct pollfd){.fd = libraries->cpus[i].fd, .events = POLLIN};
    while ((fds[0].revents & POLLIN) == 0 || take_requests(libraries)) {
        if (poll(fds, libraries->cpu_count + 1, end_early(libraries)) < 0 && errno != EINTR)
            break;
        for (uint32_t i = 0; i < libraries->cpu_count; i++) {
            /* A CPU that goes offline stays readable. */
            if ((fds[i + 1].revents & (POLLERR | POLLHUP)) != 0)
                fds[i + 1].fd = -1;
            else if ((fds[i + 1].revents & POLLIN) != 0)
                read_cpu(libraries, &libraries->cpus[i]);
        }
    }
    ew_free(fds);
}

/* --------------------------------------------------------------------- interface */

int ew_probe_libraries_new(const struct ew_probe_programs *programs, uint32_t flags,
                           struct ew_probe_libraries **ret_libraries)
{
    struct ew_probe_libraries *libraries = ew_calloc(1, sizeof *libraries);
    if (libraries == NULL)
        return ENOMEM;
    libraries->programs = *programs;
    libraries->flags = flags;
    libraries->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int error = libraries->wake_fd < 0 ? errno : 0;
    if (error == 0 && ew_mutex_new(&libraries->lock) < 0)
        error = ENOMEM;
    if (error == 0)
        error = open_cpus(libraries);
    if (error == 0 && ew_os_thread_start(run, libraries, &libraries->thread) < 0)
        error = EAGAIN;
    if (error != 0) {
        ew_probe_libraries_free(libraries);
        return error;
    }
    *ret_libraries = libraries;
    return 0;
}

static void wake(struct ew_probe_libraries *libraries)
{
    uint64_t one = 1;
    ssize_t written = write(libraries->wake_fd, &one, sizeof one);
    (void)written; /* an eventfd that holds less than its maximum takes it */
}

void ew_probe_libraries_of(struct ew_probe_libraries *libraries, uint32_t pid)
{
    ew_mutex_lock(libraries->lock);
    if (libraries->request_count < REQUESTS_MAX)
        libraries->requests[libraries->request_count++] = pid;
    else
        libraries->requests[0] = 0;
    ew_mutex_unlock(libraries->lock);
    wake(libraries);
}

void ew_probe_libraries_free(struct ew_probe_libraries *libraries)
{
    if (libraries == NULL)
        return;
    if (libraries->thread != NULL) {
        __atomic_store_n(&libraries->stopping, true, __ATOMIC_RELEASE);
        wake(libraries);
        ew_os_thread_join(libraries->thread);
    }
    for (uint32_t i = 0; i < libraries->count; i++)
        drop(&libraries->list[i]);
    for (uint32_t i = 0; i < libraries->cpu_count; i++) {
        (void)munmap(libraries->cpus[i].ring, (RING_PAGES + 1) * (size_t)sysconf(_SC_PAGESIZE));
        (void)close(libraries->cpus[i].fd);
    }
    if (libraries->wake_fd >= 0)
        (void)close(libraries->wake_fd);
    if (libraries->lock != NULL)
        ew_mutex_free(libraries->lock);
    ew_free(libraries);
}

void ew_probe_libraries_stats(struct ew_probe_libraries *libraries, uint32_t *ret_probed,
                              uint32_t *ret_unusable, char *problem, size_t size)
{
    ew_mutex_lock(libraries->lock);
    *ret_probed = libraries->usable;
    *ret_unusable = libraries->unusable;
    (void)snprintf(problem, size, "%s", libraries->problem);
    ew_mutex_unlock(libraries->lock);
}
