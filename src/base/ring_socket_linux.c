/* SPDX-License-Identifier: MIT */
#include "base/ring_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/hash.h"

/* The depth of a process tree below this process in which a sender is looked for. */
enum { DEPTH_MAX = 256 };

int ew_ring_socket_open(struct ew_ring_socket *ring_socket, const char *purpose,
                        struct ew_error *reterr)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int on = 1;
    (void)snprintf(ring_socket->address, sizeof ring_socket->address, "@etwatch-%.20s-%016llx",
                   purpose, (unsigned long long)ew_random_u64());
    size_t len = strlen(ring_socket->address) - 1;
    memcpy(at.sun_path + 1, ring_socket->address + 1, len);
    ring_socket->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (ring_socket->fd >= 0 &&
        setsockopt(ring_socket->fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0 &&
        bind(ring_socket->fd, (struct sockaddr *)&at,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len)) == 0)
        return 0;
    return ew_error_set(reterr, ETWATCH_EOS, errno, "cannot open a socket for %s: %s", purpose,
                        strerror(errno));
}

void ew_ring_socket_close(struct ew_ring_socket *ring_socket)
{
    if (ring_socket->fd >= 0)
        (void)close(ring_socket->fd);
    ring_socket->fd = -1;
}

/* Without the seal its owner could cut the file, and reading it would end this process; so would
 * reading a hole in huge pages when none is left. */
const unsigned char *ew_ring_socket_map(int fd, size_t size)
{
    struct stat info;
    struct statfs system;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(fd, &info) != 0 ||
        info.st_size < (off_t)size || fstatfs(fd, &system) != 0 || system.f_type != TMPFS_MAGIC)
        return NULL;
    void *bytes = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    return bytes == MAP_FAILED ? NULL : bytes;
}

void ew_ring_socket_unmap(const unsigned char *bytes, size_t size)
{
    if (bytes != NULL)
        (void)munmap((void *)(uintptr_t)bytes, size);
}

/* 0: unknown, because the process is gone. */
static uint32_t parent_of(uint32_t pid)
{
    char path[32], text[512];
    struct ew_bytes bytes;
    (void)snprintf(path, sizeof path, "/proc/%u/stat", (unsigned)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof text);
    if (fd >= 0)
        (void)close(fd);
    ew_bytes_init(&bytes, text, len < 0 ? 0 : (size_t)len);
    (void)ew_bytes_until_last(&bytes, ')');
    ew_bytes_skip_fields(&bytes, 1);
    ew_bytes_skip_spaces(&bytes);
    uint64_t parent = ew_bytes_dec_u64(&bytes);
    return ew_bytes_ok(&bytes) ? (uint32_t)parent : 0;
}

static bool is_descendant(uint32_t pid)
{
    uint32_t me = (uint32_t)getpid();
    for (uint32_t depth = 0; pid != 0 && pid != me && depth < DEPTH_MAX; depth++)
        pid = parent_of(pid);
    return pid == me;
}

static bool may_send(const struct ucred *sender)
{
    if (sender->pid <= 0)
        return false;
    return sender->uid == getuid() || sender->uid == 0 ||
           (getuid() == 0 && is_descendant((uint32_t)sender->pid));
}

/* The first descriptor of a message; a sender may add more, which are closed. */
static int take_fd(const struct cmsghdr *header, int memory_fd)
{
    size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
        int fd;
        memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
        if (memory_fd < 0)
            memory_fd = fd;
        else
            (void)close(fd);
    }
    return memory_fd;
}

bool ew_ring_socket_receive(const struct ew_ring_socket *ring_socket, char *text, size_t size,
                            struct ew_ring_message *ret_message)
{
    struct iovec part = {text, size};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
    } control;
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    struct ucred sender = {.pid = 0};
    int memory_fd = -1;
    ssize_t len = recvmsg(ring_socket->fd, &message, MSG_CMSG_CLOEXEC);
    if (len < 0)
        return false;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c != NULL; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
            memory_fd = take_fd(c, memory_fd);
        else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS)
            memcpy(&sender, CMSG_DATA(c), sizeof sender);
    }
    if (memory_fd >= 0 && !may_send(&sender)) {
        (void)close(memory_fd);
        memory_fd = -1;
    }
    *ret_message =
        (struct ew_ring_message){.fd = memory_fd, .pid = (uint32_t)sender.pid, .len = (size_t)len};
    return true;
}

bool ew_ring_socket_take(const struct ew_ring_socket *ring_socket, size_t size,
                         const unsigned char **ret_bytes, uint32_t *ret_pid)
{
    char text[16];
    struct ew_ring_message message;
    if (!ew_ring_socket_receive(ring_socket, text, sizeof text, &message))
        return false;
    *ret_bytes = message.fd >= 0 ? ew_ring_socket_map(message.fd, size) : NULL;
    *ret_pid = message.pid;
    if (message.fd >= 0)
        (void)close(message.fd);
    return true;
}
