/* SPDX-License-Identifier: MIT */
/*
 * Owns the writing side of the ring. Writers on several threads take record numbers from a counter;
 * a record is published by its commit number. The page that says "ready" is wiped in a forked child
 * (MADV_WIPEONFORK), so that the child makes a ring of its own without a check of its pid.
 *
 * A watcher that is gone is no error: the ring is then written and never read.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <etwatch/span.h>

#include "base/alloc.h"
#include "span/ring.h"

enum { STATE_NEW = 0, STATE_OPENING = 1, STATE_READY = 2, STATE_FAILED = 3, TEXT_CELLS = 512 };

/* Wiped by fork. */
struct state {
    uint32_t state; /* STATE_* */
    uint32_t lock;  /* of the texts */
    uint64_t next;  /* record number */
    uint32_t text_used;
    struct {
        uint32_t hash, offset;
    } cells[TEXT_CELLS];
};

struct etwatch_marks {
    char address[108]; /* "": no watcher */
    struct state *state;
    size_t state_size;
    unsigned char *ring; /* valid if the state is READY */
};

int etwatch_marks_new(struct etwatch_marks **ret_marks)
{
    const char *address = getenv(EW_SPANS_RING_VARIABLE);
    struct etwatch_marks *marks = ret_marks == NULL ? NULL : ew_calloc(1, sizeof *marks);
    if (ret_marks == NULL)
        return ETWATCH_EINVAL;
    if (marks == NULL)
        return ETWATCH_ENOMEM;
    size_t len = address == NULL ? 0 : strlen(address);
    if (len > 1 && len < sizeof marks->address && address[0] == '@') {
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        marks->state_size = (sizeof *marks->state + page - 1) & ~(page - 1);
        void *state = mmap(NULL, marks->state_size, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (state == MAP_FAILED) {
            ew_free(marks);
            return ETWATCH_ENOMEM;
        }
        (void)madvise(state, marks->state_size, MADV_WIPEONFORK);
        marks->state = state;
        memcpy(marks->address, address, len);
    }
    *ret_marks = marks;
    return 0;
}

void etwatch_marks_free(struct etwatch_marks *marks)
{
    if (marks == NULL)
        return;
    if (marks->ring != NULL)
        (void)munmap(marks->ring, EW_SPANS_RING_SIZE);
    if (marks->state != NULL)
        (void)munmap(marks->state, marks->state_size);
    ew_free(marks);
}

/* --------------------------------------------------------------------- the ring */

static bool send_ring(const char *address, int ring_fd)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t len = strlen(address) - 1; /* the '@' stands for the byte 0 */
    memcpy(to.sun_path + 1, address + 1, len);
    char text[] = EW_SPANS_RING_MAGIC;
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
    /* The queue of the watcher is short. A watcher that is stopped must not stop the program. */
    const struct timeval limit = {.tv_sec = 1};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
    (void)close(fd);
    return sent >= 0;
}

static bool open_ring(struct etwatch_marks *marks)
{
    struct ew_spans_ring_header header = {.version = EW_SPANS_RING_VERSION,
                                          .records = EW_SPANS_RING_RECORDS,
                                          .texts = EW_SPANS_RING_TEXTS};
    memcpy(header.magic, EW_SPANS_RING_MAGIC, sizeof header.magic);
    header.pid = (uint32_t)getpid();
    int fd = memfd_create("etwatch-spans", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return false;
    void *ring = MAP_FAILED;
    if (ftruncate(fd, EW_SPANS_RING_SIZE) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        ring = mmap(NULL, EW_SPANS_RING_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    bool sent = false;
    if (ring != MAP_FAILED) {
        memcpy(ring, &header, sizeof header);
        /* In a forked child the ring of the parent is still mapped here. */
        if (marks->ring != NULL)
            (void)munmap(marks->ring, EW_SPANS_RING_SIZE);
        marks->ring = ring;
        sent = send_ring(marks->address, fd);
    }
    (void)close(fd);
    return sent;
}

/* Whether the ring of this process can be written; makes it first. */
static bool is_ready(struct etwatch_marks *marks)
{
    struct state *state = marks->state;
    uint32_t seen = __atomic_load_n(&state->state, __ATOMIC_ACQUIRE);
    if (seen == STATE_NEW && __atomic_compare_exchange_n(&state->state, &seen, STATE_OPENING, false,
                                                         __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        state->text_used = 8;
        seen = open_ring(marks) ? STATE_READY : STATE_FAILED;
        __atomic_store_n(&state->state, seen, __ATOMIC_RELEASE);
    }
    while (seen == STATE_OPENING)
        seen = __atomic_load_n(&state->state, __ATOMIC_ACQUIRE);
    return seen == STATE_READY;
}

static uint32_t add_text(struct etwatch_marks *marks, const char *text, size_t len)
{
    struct state *state = marks->state;
    uint32_t at = state->text_used;
    if (at + 2 + len > EW_SPANS_RING_TEXTS)
        return 0;
    unsigned char *to = marks->ring + EW_SPANS_RING_HEADER + at;
    to[0] = (unsigned char)(len & 0xff);
    to[1] = (unsigned char)(len >> 8);
    memcpy(to + 2, text, len);
    state->text_used = at + 2 + (uint32_t)len;
    return at;
}

static bool text_is(const struct etwatch_marks *marks, uint32_t offset, const char *text,
                    size_t len)
{
    const unsigned char *at = marks->ring + EW_SPANS_RING_HEADER + offset;
    return at[0] == (len & 0xff) && at[1] == len >> 8 && memcmp(at + 2, text, len) == 0;
}

/* The offset of the text; cells are published by their offset and never change. */
static uint32_t text_of(struct etwatch_marks *marks, const char *text)
{
    struct state *state = marks->state;
    uint32_t hash = 2166136261u;
    size_t len = 0;
    if (text == NULL)
        return 0;
    for (; text[len] != '\0' && len < EW_SPANS_RING_TEXT_MAX; len++)
        hash = (hash ^ (unsigned char)text[len]) * 16777619u;
    for (int locked = 0; locked < 2; locked++) {
        uint32_t offset = 0;
        for (uint32_t i = 0; i < TEXT_CELLS; i++) {
            uint32_t cell = (hash + i) % TEXT_CELLS;
            offset = __atomic_load_n(&state->cells[cell].offset, __ATOMIC_ACQUIRE);
            if (offset != 0 && state->cells[cell].hash == hash && text_is(marks, offset, text, len))
                break;
            if (offset == 0) {
                if (locked == 0)
                    break;
                offset = add_text(marks, text, len);
                state->cells[cell].hash = hash;
                __atomic_store_n(&state->cells[cell].offset, offset, __ATOMIC_RELEASE);
                break;
            }
            offset = 0;
        }
        if (locked == 1)
            __atomic_store_n(&state->lock, 0, __ATOMIC_RELEASE);
        if (offset != 0 || locked == 1)
            return offset;
        while (__atomic_exchange_n(&state->lock, 1, __ATOMIC_ACQUIRE) != 0)
            continue;
    }
    return 0;
}

/* ----------------------------------------------------------------------- spans */

static uint64_t now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t etwatch_span_begin(struct etwatch_marks *marks)
{
    return marks == NULL || marks->state == NULL ? 0 : now();
}

void etwatch_span_end(struct etwatch_marks *marks, uint64_t begun, const char *name,
                      const char *session)
{
    if (marks == NULL || begun == 0 || marks->state == NULL)
        return;
    uint64_t end_ns = now();
    if (!is_ready(marks))
        return;
    uint32_t tid = (uint32_t)syscall(SYS_gettid);
    struct ew_spans_ring_record record = {
        .start_ns = begun,
        .end_ns = end_ns,
        .tid = tid,
        .end_tid = tid,
        .name = text_of(marks, name),
        .session = text_of(marks, session),
        .kind = ETWATCH_SPAN_WORK,
    };
    uint64_t number = __atomic_fetch_add(&marks->state->next, 1, __ATOMIC_RELAXED);
    unsigned char *to =
        marks->ring + EW_SPANS_RING_FIRST + number % EW_SPANS_RING_RECORDS * sizeof record;
    memcpy(to, &record, offsetof(struct ew_spans_ring_record, commit));
    __atomic_store_n((uint64_t *)(void *)(to + offsetof(struct ew_spans_ring_record, commit)),
                     number + 1, __ATOMIC_RELEASE);
}
