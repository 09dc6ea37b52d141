/* SPDX-License-Identifier: MIT */
/*
 * The process that creates, renames and removes files of one place after this process gave up its
 * rights. It holds the folder and acts as its owner, without capabilities. A request is a verb and
 * a number, so a caller that was taken over by a hostile file can name no other file.
 *
 * It ends when the socket is closed, however the caller ended, and then removes the temporary file:
 * nothing is left behind after kill -9 either.
 */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/place_linux.h"
#include "os/os.h"

struct request {
    uint32_t verb, number;
};

union control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
};

/* ------------------------------------------------------------------------ the helper */

static void answer(int socket_fd, int error, int fd)
{
    union control control;
    struct iovec bytes = {&error, sizeof error};
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
    memset(&control, 0, sizeof control);
    if (fd >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(header), &fd, sizeof fd);
    }
    while (sendmsg(socket_fd, &message, MSG_NOSIGNAL) < 0 && errno == EINTR)
        continue;
    if (fd >= 0)
        (void)close(fd);
}

static void perform(struct ew_place *place, int socket_fd, const struct request *request)
{
    int fd = -1, error = EINVAL;
    if (request->verb == EW_PLACE_CREATE)
        error = ew_place_create(place, request->number, &fd);
    else if (request->verb == EW_PLACE_COMMIT && place->temporary[0] != '\0')
        error = ew_place_commit(place);
    else if (request->verb == EW_PLACE_REMOVE)
        error = ew_place_remove(place, request->number);
    answer(socket_fd, error, fd);
}

/* Whatever the caller has open must not stay open because of the helper. */
static void close_others(int first, int second)
{
    long most = sysconf(_SC_OPEN_MAX);
    most = most < 0 || most > 4096 ? 4096 : most;
    for (int fd = 0; fd < most; fd++)
        if (fd != first && fd != second)
            (void)close(fd);
}

static void serve(struct ew_place *place, int socket_fd)
{
    struct request request;
    sigset_t all;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL); /* Ctrl-C is for the caller */
    close_others(socket_fd, place->folder_fd);
    if (place->actor != EW_NO_ACTOR && setresuid(place->actor, place->actor, place->actor) == 0)
        place->actor = EW_NO_ACTOR;
    ew_os_drop_all_rights();
    for (;;) {
        ssize_t got = read(socket_fd, &request, sizeof request);
        if (got == (ssize_t)sizeof request)
            perform(place, socket_fd, &request);
        else if (got >= 0 || errno != EINTR)
            break;
    }
    if (place->temporary[0] != '\0')
        (void)ew_place_remove(place, 0);
    _exit(0);
}

/* ------------------------------------------------------------------------ the caller */

int ew_place_detach(struct ew_place *place)
{
    int ends[2];
    if (place->special)
        return 0;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return errno;
    pid_t pid = fork();
    int error = errno;
    if (pid == 0)
        serve(place, ends[1]);
    (void)close(ends[1]);
    if (pid < 0) {
        (void)close(ends[0]);
        return error;
    }
    place->socket_fd = ends[0];
    place->helper = pid;
    return 0;
}

/* The descriptor of an answer, or -1. */
static int take_fd(struct msghdr *message)
{
    int fd = -1;
    struct cmsghdr *header = CMSG_FIRSTHDR(message);
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof fd))
        memcpy(&fd, CMSG_DATA(header), sizeof fd);
    return fd;
}

int ew_place_ask(struct ew_place *place, enum ew_place_request request, uint32_t number,
                 int *ret_fd)
{
    struct request asked = {(uint32_t)request, number};
    int error = EIO;
    union control control;
    struct iovec bytes = {&error, sizeof error};
    struct msghdr message = {.msg_iov = &bytes,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t got;
    if (write(place->socket_fd, &asked, sizeof asked) != (ssize_t)sizeof asked)
        return EIO;
    do
        got = recvmsg(place->socket_fd, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got != (ssize_t)sizeof error)
        return EIO;
    int fd = take_fd(&message);
    if (ret_fd)
        *ret_fd = fd;
    return error == 0 && ret_fd && fd < 0 ? EIO : error;
}

void ew_place_dismiss(struct ew_place *place)
{
    (void)close(place->socket_fd);
    while (waitpid(place->helper, NULL, 0) < 0 && errno == EINTR)
        continue;
    place->socket_fd = -1;
    place->temporary[0] = '\0';
}
