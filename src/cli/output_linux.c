/* SPDX-License-Identifier: MIT */
/*
 * Owns the descriptor of the data. A batch is one write of whole lines, unless the system accepts
 * only a part of it, or the descriptor is non-blocking and full.
 */
#include "cli/cli.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

int ew_output_close(struct ew_output *output)
{
    int error = 0;
    if (output->path != NULL && output->fd >= 0 && close(output->fd) != 0)
        error = errno;
    output->fd = -1;
    return error;
}

static void wait_for_room(int fd)
{
    struct pollfd polled = {.fd = fd, .events = POLLOUT};
    (void)poll(&polled, 1, 250);
}

int ew_output_write(void *ctx, const void *bytes, size_t len)
{
    struct ew_output *output = ctx;
    const char *at = bytes;
    while (len > 0) {
        ssize_t done = write(output->fd, at, len);
        if (done > 0) {
            at += done;
            len -= (size_t)done;
            continue;
        }
        bool full = errno == EAGAIN || errno == EWOULDBLOCK;
        /* A second signal ends the program even if the reader does not read. */
        if ((errno != EINTR && !full) || ew_signals_insisting()) {
            output->os_error = errno;
            return ETWATCH_EOS;
        }
        if (full)
            wait_for_room(output->fd);
    }
    return 0;
}

void ew_output_truncate(struct ew_output *output, uint64_t bytes)
{
    if (output->path != NULL && output->fd >= 0 && ftruncate(output->fd, (off_t)bytes) != 0)
        return; /* readers skip a truncated packet */
}

bool ew_output_reader_gone(const struct ew_output *output)
{
    return output->os_error == EPIPE;
}
