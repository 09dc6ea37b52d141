/* SPDX-License-Identifier: MIT */
/*
 * Owns the ring of this process and what is kept to fill it: buffers for CUPTI and the texts that
 * are in the ring already. CUPTI returns buffers on threads of its own and on that which flushes; a
 * lock makes them one writer. Nothing here waits for the watcher: a reader that is too slow loses
 * records, which it can count.
 *
 * Buffers come from malloc, because a program that registers its own functions with CUPTI later
 * gets our buffers too, and the documented way to release one is free(). In a forked child nothing
 * may be touched: the process id is compared first.
 */
#include "cuda/records.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "gpu/calls.h"

/* A buffer is returned when it is full and all its work is done: a small one is returned sooner. */
enum { BUFFER_SIZE = 64 * 1024, SPARE_MAX = 32, NAMES = 8192, PROBE_MAX = 64 };

struct name {
    const char *key; /* as CUPTI passes it; NULL: free */
    char *text;      /* a copy: the program may reuse the memory for another text */
    uint32_t offset;
};

static struct {
    pid_t pid;
    unsigned char *ring; /* NULL: not open */
    const struct cupti_api *api;
    pthread_mutex_t lock; /* guards everything below */
    uint64_t next;        /* number of the next record */
    uint32_t text_used;
    struct name names[NAMES];
    uint32_t name_count;
    uint8_t *spare[SPARE_MAX];
    uint32_t spare_count;
    int64_t clock_ns;
    uint32_t canary_tid, canary_cbid;
    uint64_t canaries;
    char *(*demangle)(const char *name, char *buffer, size_t *size, int *status);
} own = {.lock = PTHREAD_MUTEX_INITIALIZER};

uint64_t ew_cuda_now(void)
{
    struct timespec t = {0};
    (void)clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ------------------------------------------------------------------------ the ring */

static bool send_ring(const char *address, int ring_fd)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t len = strlen(address) - 1; /* the '@' stands for the byte 0 */
    memcpy(to.sun_path + 1, address + 1, len);
    char text[] = EW_GPU_RING_MAGIC;
    struct iovec part = {text, sizeof text - 1};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    memset(&control, 0, sizeof control);
    struct msghdr message = {
        .msg_name = &to,
        .msg_namelen = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len),
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof control,
    };
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof ring_fd);
    memcpy(CMSG_DATA(header), &ring_fd, sizeof ring_fd);
    /* The queue of the watcher is short, and many processes may start at once. */
    const struct timeval limit = {.tv_sec = 1};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
    (void)close(fd);
    return sent >= 0;
}

bool ew_cuda_ring_open(const char *address)
{
    struct ew_gpu_ring_header header = {
        .version = EW_GPU_RING_VERSION, .records = EW_GPU_RING_RECORDS, .texts = EW_GPU_RING_TEXTS};
    memcpy(header.magic, EW_GPU_RING_MAGIC, sizeof header.magic);
    header.pid = (uint32_t)getpid();
    header.started_ns = ew_cuda_now();
    int fd = memfd_create("etwatch-gpu", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return false;
    void *ring = MAP_FAILED;
    if (ftruncate(fd, EW_GPU_RING_SIZE) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        ring = mmap(NULL, EW_GPU_RING_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    bool sent = false;
    if (ring != MAP_FAILED) {
        memcpy(ring, &header, sizeof header);
        own.ring = ring;
        own.pid = getpid();
        own.text_used = 8;
        sent = send_ring(address, fd);
    }
    (void)close(fd);
    return sent;
}

struct ew_gpu_ring_header *ew_cuda_ring_header(void)
{
    return (struct ew_gpu_ring_header *)(void *)own.ring;
}

void ew_cuda_ring_set_state(uint32_t state, const char *problem)
{
    struct ew_gpu_ring_header *header = ew_cuda_ring_header();
    size_t len = problem == NULL ? 0 : strnlen(problem, EW_GPU_RING_PROBLEM - 1);
    if (len > 0)
        memcpy(header->problem, problem, len);
    header->problem[len] = '\0';
    __atomic_store_n(&header->state, state, __ATOMIC_RELEASE);
}

void ew_cuda_set_clock(int64_t boot_minus_cupti_ns)
{
    (void)pthread_mutex_lock(&own.lock);
    own.clock_ns = boot_minus_cupti_ns;
    (void)pthread_mutex_unlock(&own.lock);
}

void ew_cuda_set_canary(uint32_t tid, uint32_t cbid)
{
    (void)pthread_mutex_lock(&own.lock);
    own.canary_tid = tid;
    own.canary_cbid = cbid;
    (void)pthread_mutex_unlock(&own.lock);
}

uint64_t ew_cuda_canaries(void)
{
    (void)pthread_mutex_lock(&own.lock);
    uint64_t canaries = own.canaries;
    (void)pthread_mutex_unlock(&own.lock);
    return canaries;
}

static void put(struct ew_gpu_ring_record *record)
{
    uint64_t number = own.next++;
    unsigned char *to =
        own.ring + EW_GPU_RING_FIRST + number % EW_GPU_RING_RECORDS * sizeof *record;
    uint64_t *commit = (uint64_t *)(void *)(to + offsetof(struct ew_gpu_ring_record, commit));
    /* A reader that copies the old record while it is overwritten must see that. */
    __atomic_store_n(commit, 0, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    memcpy(to, record, offsetof(struct ew_gpu_ring_record, commit));
    __atomic_store_n(commit, number + 1, __ATOMIC_RELEASE);
}

/* ------------------------------------------------------------------------- texts */

static uint32_t add_text(const char *name)
{
    int status = -1;
    char *readable = own.demangle != NULL && name[0] == '_' && name[1] == 'Z'
                         ? own.demangle(name, NULL, NULL, &status)
                         : NULL;
    const char *text = status == 0 && readable != NULL ? readable : name;
    size_t len = strnlen(text, EW_GPU_RING_TEXT_MAX);
    uint32_t at = own.text_used;
    if (at + 2 + len > EW_GPU_RING_TEXTS) {
        at = 0;
    } else {
        unsigned char *to = own.ring + EW_GPU_RING_HEADER + at;
        to[0] = (unsigned char)(len & 0xff);
        to[1] = (unsigned char)(len >> 8);
        memcpy(to + 2, text, len);
        own.text_used = at + 2 + (uint32_t)len;
    }
    free(readable);
    return at;
}

/* The offset of a text in the ring; 0: none, or there is no room for it. */
static uint32_t text_of(const char *name)
{
    if (name == NULL)
        return 0;
    size_t home = ((uintptr_t)name >> 3) * 0x9e3779b97f4a7c15u >> 40;
    for (uint32_t i = 0; i < PROBE_MAX; i++) {
        struct name *entry = &own.names[(home + i) % NAMES];
        if (entry->key == name && strcmp(entry->text, name) == 0)
            return entry->offset;
        if (entry->key != NULL)
            continue;
        char *copy = own.name_count < NAMES / 2 ? strdup(name) : NULL;
        if (copy == NULL)
            return 0;
        *entry = (struct name){.key = name, .text = copy, .offset = add_text(name)};
        own.name_count++;
        return entry->offset;
    }
    return 0;
}

/* ----------------------------------------------------------------------- records */

static uint64_t time_of(uint64_t cupti_ns)
{
    return cupti_ns == 0 ? 0 : cupti_ns + (uint64_t)own.clock_ns;
}

static void put_operation(uint8_t kind, uint8_t sub, uint64_t start, uint64_t end, uint32_t device,
                          uint32_t context, uint32_t stream, uint32_t correlation, uint32_t text,
                          uint64_t bytes, uint32_t flags)
{
    struct ew_gpu_ring_record out = {
        .start_ns = time_of(start),
        .end_ns = time_of(end),
        .kind = kind,
        .sub = sub,
        .device = (uint16_t)device,
        .context = context,
        .stream = stream,
        .correlation = correlation,
        .text = text,
        .bytes = bytes,
        .flags = flags,
    };
    put(&out);
}

static void put_call(const struct cupti_call *in, bool driver)
{
    const struct ew_gpu_call_info *call = ew_gpu_call_find(driver, in->cbid);
    if (driver && in->cbid == own.canary_cbid && in->thread == own.canary_tid)
        own.canaries++;
    if (call == NULL)
        return;
    struct ew_gpu_ring_record out = {
        .start_ns = time_of(in->start),
        .end_ns = time_of(in->end),
        .kind = EW_GPU_RECORD_CALL,
        .sub = (uint8_t)call->call,
        .device = driver,
        .context = in->cbid,
        .correlation = in->correlation,
        .tid = in->thread,
        .flags = in->result != 0,
    };
    put(&out);
}

static void put_marker(const struct cupti_marker *in)
{
    enum { OF_THREAD = 2 };
    struct ew_gpu_ring_record out = {
        .start_ns = time_of(in->time),
        .end_ns = time_of(in->time),
        .kind = EW_GPU_RECORD_MARK,
        .sub = (uint8_t)in->flags,
        .correlation = in->id,
        .text = text_of(in->name),
        .tid = in->object_kind == OF_THREAD ? in->thread : 0,
    };
    put(&out);
}

static void put_record(const void *record)
{
    uint32_t kind;
    memcpy(&kind, record, sizeof kind);
    switch (kind) {
    case CUPTI_CONCURRENT_KERNEL: {
        const struct cupti_kernel *k = record;
        put_operation(EW_GPU_RECORD_KERNEL, 0, k->start, k->end, k->device, k->context, k->stream,
                      k->correlation, text_of(k->name), 0, 0);
        break;
    }
    case CUPTI_MEMCPY: {
        const struct cupti_memcpy *c = record;
        put_operation(EW_GPU_RECORD_COPY, c->copy_kind, c->start, c->end, c->device, c->context,
                      c->stream, c->correlation, 0, c->bytes, c->flags & 1u);
        break;
    }
    case CUPTI_MEMCPY_PEER: {
        const struct cupti_memcpy_peer *c = record;
        put_operation(EW_GPU_RECORD_COPY, c->copy_kind, c->start, c->end, c->device, c->context,
                      c->stream, c->correlation, 0, c->bytes, c->flags & 1u);
        break;
    }
    case CUPTI_MEMSET: {
        const struct cupti_memset *s = record;
        put_operation(EW_GPU_RECORD_SET, 0, s->start, s->end, s->device, s->context, s->stream,
                      s->correlation, 0, s->bytes, 0);
        break;
    }
    case CUPTI_SYNCHRONIZATION: {
        const struct cupti_synchronization *s = record;
        put_operation(EW_GPU_RECORD_SYNC, (uint8_t)s->type, s->start, s->end, 0, s->context,
                      s->stream, s->correlation, 0, 0, 0);
        break;
    }
    case CUPTI_DRIVER:
    case CUPTI_RUNTIME:
        put_call(record, kind == CUPTI_DRIVER);
        break;
    case CUPTI_MARKER:
        put_marker(record);
        break;
    default:
        break;
    }
}

/* ----------------------------------------------------------------------- buffers */

void ew_cuda_records_init(const struct cupti_api *api)
{
    void *demangle = dlsym(RTLD_DEFAULT, "__cxa_demangle");
    void *runtime = demangle == NULL ? dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD) : NULL;
    if (runtime != NULL)
        demangle = dlsym(runtime, "__cxa_demangle");
    memcpy(&own.demangle, &demangle, sizeof own.demangle);
    own.api = api;
}

void ew_cuda_request(uint8_t **buffer, size_t *size, size_t *records_max)
{
    uint8_t *taken = NULL;
    *records_max = 0; /* as many as fit */
    if (own.pid == getpid()) {
        (void)pthread_mutex_lock(&own.lock);
        if (own.spare_count > 0)
            taken = own.spare[--own.spare_count];
        (void)pthread_mutex_unlock(&own.lock);
    }
    if (taken == NULL)
        taken = malloc(BUFFER_SIZE);
    *buffer = taken;
    *size = taken == NULL ? 0 : BUFFER_SIZE;
}

void ew_cuda_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    void *record = NULL;
    size_t dropped = 0;
    if (buffer == NULL)
        return;
    if (own.pid != getpid()) {
        free(buffer);
        return;
    }
    (void)pthread_mutex_lock(&own.lock);
    while (valid > 0 && own.api->next(buffer, valid, &record) == CUPTI_OK && record != NULL)
        put_record(record);
    if (own.api->dropped != NULL && own.api->dropped(context, stream, &dropped) == CUPTI_OK)
        __atomic_fetch_add(&ew_cuda_ring_header()->dropped, dropped, __ATOMIC_RELAXED);
    bool keep = size == BUFFER_SIZE && own.spare_count < SPARE_MAX;
    if (keep)
        own.spare[own.spare_count++] = buffer;
    (void)pthread_mutex_unlock(&own.lock);
    if (!keep)
        free(buffer);
}
