/* SPDX-License-Identifier: MIT */
/* What a program marks arrives at its watcher, and a hostile sender costs the watcher nothing. */
#include <etwatch/span.h>

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/os.h"
#include "span/ring.h"
#include "test.h"

struct seen {
    uint32_t count;
    struct etwatch_span last;
    char name[300], session[300];
};

static void on_span(void *ctx, const struct etwatch_span *span)
{
    struct seen *seen = ctx;
    seen->count++;
    seen->last = *span;
    (void)snprintf(seen->name, sizeof seen->name, "%s", span->name);
    (void)snprintf(seen->session, sizeof seen->session, "%s",
                   span->session == NULL ? "(none)" : span->session);
}

/* Puts the address of the receiver into the environment. */
static struct etwatch_receiver *listen_here(void)
{
    struct etwatch_receiver *receiver = NULL;
    CHECK_EQ_INT(etwatch_receiver_new(&receiver, NULL), 0);
    CHECK_EQ_INT(setenv(EW_SPANS_RING_VARIABLE, etwatch_receiver_address(receiver), 1), 0);
    return receiver;
}

static void stop(struct etwatch_receiver *receiver)
{
    etwatch_receiver_free(receiver);
    CHECK_EQ_INT(unsetenv(EW_SPANS_RING_VARIABLE), 0);
}

static void mark(uint32_t count)
{
    struct etwatch_marks *marks = NULL;
    CHECK_EQ_INT(etwatch_marks_new(&marks), 0);
    for (uint32_t i = 0; i < count; i++)
        etwatch_span_end(marks, etwatch_span_begin(marks), "tokenize",
                         i % 2 == 0 ? NULL : "a.onnx");
    etwatch_marks_free(marks);
}

TEST(a_marked_span_arrives_with_its_name_thread_and_times)
{
    struct etwatch_receiver *receiver = listen_here();
    struct etwatch_marks *marks = NULL;
    struct seen seen = {0};
    CHECK_EQ_INT(etwatch_marks_new(&marks), 0);
    uint64_t begun = etwatch_span_begin(marks);
    CHECK(begun > 0);
    etwatch_span_end(marks, begun, "tokenize", "a.onnx");
    CHECK_EQ_INT(etwatch_receiver_read(receiver, 1000, 0, on_span, &seen), 1);
    CHECK_EQ_STR(seen.name, "tokenize");
    CHECK_EQ_STR(seen.session, "a.onnx");
    CHECK_EQ_UINT(seen.last.kind, ETWATCH_SPAN_WORK);
    CHECK_EQ_UINT(seen.last.flags, 0);
    CHECK_EQ_UINT(seen.last.pid, (uint32_t)getpid());
    CHECK_EQ_UINT(seen.last.tid, (uint32_t)getpid());
    CHECK_EQ_UINT(seen.last.start_ns, begun + 1000);
    CHECK(seen.last.end_ns >= seen.last.start_ns);
    etwatch_span_end(marks, etwatch_span_begin(marks), "decode", NULL);
    CHECK_EQ_INT(etwatch_receiver_read(receiver, 0, 1, on_span, &seen), 1);
    CHECK_EQ_STR(seen.name, "decode");
    CHECK_EQ_STR(seen.session, "(none)");
    CHECK_EQ_INT(etwatch_receiver_read(receiver, 0, 1, on_span, &seen), 0);
    CHECK_EQ_UINT(etwatch_receiver_lost(receiver), 0);
    etwatch_marks_free(marks);
    stop(receiver);
}

TEST(without_a_watcher_nothing_is_marked)
{
    struct etwatch_marks *marks = NULL;
    CHECK_EQ_INT(unsetenv(EW_SPANS_RING_VARIABLE), 0);
    CHECK_EQ_INT(etwatch_marks_new(&marks), 0);
    CHECK_EQ_UINT(etwatch_span_begin(marks), 0);
    etwatch_span_end(marks, 0, "tokenize", NULL);
    etwatch_span_end(NULL, 1, "tokenize", NULL);
    etwatch_marks_free(marks);
}

/* Fills the queue of the receiver, as programs do while their watcher is stopped. */
static void fill_queue(const char *address)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t len = strlen(address) - 1; /* the '@' stands for the byte 0 */
    memcpy(to.sun_path + 1, address + 1, len);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    CHECK(fd >= 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
    uint32_t sent = 0;
    while (sent < 100000 && sendto(fd, "x", 1, 0, (struct sockaddr *)&to, size) == 1)
        sent++;
    CHECK(sent > 0 && sent < 100000);
    (void)close(fd);
}

TEST(a_watcher_that_does_not_read_stops_no_program)
{
    struct etwatch_receiver *receiver = listen_here();
    struct seen seen = {0};
    fill_queue(etwatch_receiver_address(receiver));
    mark(2); /* returns */
    CHECK_EQ_INT(etwatch_receiver_read(receiver, 0, 0, on_span, &seen), 0);
    mark(2);
    CHECK_EQ_INT(etwatch_receiver_read(receiver, 0, 1, on_span, &seen), 2);
    stop(receiver);
}

TEST(spans_that_were_overwritten_are_counted_as_lost)
{
    enum { MORE = 100 };
    struct etwatch_receiver *receiver = listen_here();
    struct seen seen = {0};
    mark(EW_SPANS_RING_RECORDS + MORE);
    CHECK_EQ_INT(etwatch_receiver_read(receiver, 0, 1, on_span, &seen), EW_SPANS_RING_RECORDS);
    CHECK_EQ_UINT(seen.count, EW_SPANS_RING_RECORDS);
    CHECK_EQ_UINT(etwatch_receiver_lost(receiver), MORE);
    stop(receiver);
}

TEST(a_forked_child_has_a_ring_of_its_own)
{
    struct etwatch_receiver *receiver = listen_here();
    struct etwatch_marks *marks = NULL;
    struct seen seen = {0};
    CHECK_EQ_INT(etwatch_marks_new(&marks), 0);
    etwatch_span_end(marks, etwatch_span_begin(marks), "parent", NULL);
    CHECK_EQ_INT(etwatch_receiver_read(receiver, 0, 0, on_span, &seen), 1);
    pid_t child = fork();
    if (child == 0) {
        etwatch_span_end(marks, etwatch_span_begin(marks), "child", NULL);
        _exit(0);
    }
    CHECK_EQ_INT(waitpid(child, NULL, 0), child);
    CHECK_EQ_INT(etwatch_receiver_read(receiver, 0, 1, on_span, &seen), 1);
    CHECK_EQ_STR(seen.name, "child");
    CHECK_EQ_UINT(seen.last.pid, (uint32_t)child);
    etwatch_marks_free(marks);
    stop(receiver);
}

/* The program reads marks after it has given up its rights. */
TEST(a_confined_receiver_accepts_rings)
{
    enum { NO_FILTER = 99 };
    pid_t child = fork();
    if (child == 0) {
        struct etwatch_receiver *receiver = listen_here();
        struct seen seen = {0};
        mark(1);
        if (ew_os_confine_live() <= 0)
            _exit(NO_FILTER);
        _exit(etwatch_receiver_read(receiver, 0, 1, on_span, &seen));
    }
    int status = 0;
    CHECK_EQ_INT(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_FILTER)
        SKIP("this build or system has no filter of system calls");
    CHECK_EQ_INT(WEXITSTATUS(status), 1);
}

/* ------------------------------------------------------------------- hostile senders */

/* A ring that is not one: the seals are missing, or its bytes are 0. */
static int make_ring(bool sealed, bool header)
{
    const struct ew_spans_ring_header right = {.version = EW_SPANS_RING_VERSION,
                                               .records = EW_SPANS_RING_RECORDS,
                                               .texts = EW_SPANS_RING_TEXTS};
    int fd = memfd_create("ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK(fd >= 0);
    CHECK_EQ_INT(ftruncate(fd, EW_SPANS_RING_SIZE), 0);
    if (header) {
        CHECK_EQ_INT(pwrite(fd, &right, sizeof right, 0), sizeof right);
        CHECK_EQ_INT(pwrite(fd, EW_SPANS_RING_MAGIC, 8, 0), 8);
    }
    if (sealed)
        CHECK_EQ_INT(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    return fd;
}

static void send_fds(const struct etwatch_receiver *receiver, const int *fds, size_t count)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const char *address = etwatch_receiver_address(receiver) + 1;
    memcpy(to.sun_path + 1, address, strlen(address));
    char text[] = "x";
    struct iovec part = {text, 1};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(8 * sizeof(int))];
    } control;
    memset(&control, 0, sizeof control);
    struct msghdr message = {
        .msg_name = &to,
        .msg_namelen = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(address)),
        .msg_iov = &part,
        .msg_iovlen = 1,
    };
    if (count > 0) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(header), fds, count * sizeof(int));
    }
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    CHECK_EQ_INT(sendmsg(fd, &message, 0), 1);
    CHECK_EQ_INT(close(fd), 0);
}

static uint32_t open_files(void)
{
    DIR *folder = opendir("/proc/self/fd");
    uint32_t count = 0;
    CHECK(folder != NULL);
    while (readdir(folder) != NULL)
        count++;
    CHECK_EQ_INT(closedir(folder), 0);
    return count;
}

TEST(refused_rings_are_counted_and_leave_no_open_file)
{
    struct etwatch_receiver *receiver = listen_here();
    struct seen seen = {0};
    int rings[] = {make_ring(false, true), make_ring(true, false), STDIN_FILENO};
    int good = make_ring(true, true);
    int many[] = {good, good, good, good};
    uint32_t before = open_files();
    for (size_t i = 0; i < 3; i++)
        send_fds(receiver, &rings[i], 1);
    send_fds(receiver, NULL, 0);
    CHECK_EQ_INT(etwatch_receiver_read(receiver, 0, 0, on_span, &seen), 0);
    CHECK_EQ_UINT(etwatch_receiver_lost(receiver), 4);
    send_fds(receiver, many, 4); /* one is taken */
    CHECK_EQ_INT(etwatch_receiver_read(receiver, 0, 0, on_span, &seen), 0);
    CHECK_EQ_UINT(etwatch_receiver_lost(receiver), 4);
    CHECK_EQ_UINT(open_files(), before);
    for (size_t i = 0; i < 2; i++)
        CHECK_EQ_INT(close(rings[i]), 0);
    CHECK_EQ_INT(close(good), 0);
    stop(receiver);
}

/* Marks once as another user; with `orphan` as a process that this one did not start. */
static pid_t mark_as_other_user(bool orphan, int done_fd, int hold_fd)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    pid_t parent = getpid();
    if (orphan && fork() != 0)
        _exit(0);
    while (orphan && getppid() == parent)
        (void)usleep(1000);
    char byte = 0;
    bool other = setgroups(0, NULL) == 0 && setgid(65534) == 0 && setuid(65534) == 0;
    if (other)
        mark(1);
    ssize_t told = write(done_fd, other ? "y" : "n", 1);
    _exit(told == 1 && read(hold_fd, &byte, 1) >= 0 ? 0 : 1);
}

static uint64_t lost_of_other_user(bool orphan, int *ret_count)
{
    struct etwatch_receiver *receiver = listen_here();
    struct seen seen = {0};
    int done[2], hold[2];
    char byte = 0;
    CHECK_EQ_INT(pipe(done), 0);
    CHECK_EQ_INT(pipe(hold), 0);
    pid_t child = mark_as_other_user(orphan, done[1], hold[0]);
    CHECK_EQ_INT(read(done[0], &byte, 1), 1);
    CHECK_EQ_INT(byte, 'y');
    *ret_count = etwatch_receiver_read(receiver, 0, 0, on_span, &seen);
    uint64_t lost = etwatch_receiver_lost(receiver);
    CHECK_EQ_INT(write(hold[1], "x", 1), 1);
    CHECK_EQ_INT(waitpid(child, NULL, 0), child);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ_INT(close(done[i]), 0);
        CHECK_EQ_INT(close(hold[i]), 0);
    }
    stop(receiver);
    return lost;
}

TEST(root_accepts_rings_of_other_users_from_its_descendants_only)
{
    int count = 0;
    if (getuid() != 0)
        SKIP("needs root");
    CHECK_EQ_UINT(lost_of_other_user(false, &count), 0);
    CHECK_EQ_INT(count, 1);
    CHECK_EQ_UINT(lost_of_other_user(true, &count), 1);
    CHECK_EQ_INT(count, 0);
}
