/* SPDX-License-Identifier: MIT */
/* Owns the descriptor of the data. A batch is one write of whole lines. */
#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"
#include "cli/signals.h"
#include "os/windows/text.h"

enum { STANDARD_OUTPUT = 1 };

int ew_output_open(struct ew_output *output, const char *path)
{
    *output = (struct ew_output){.fd = STANDARD_OUTPUT, .path = path};
    if (path == NULL)
        return 0;
    wchar_t *wide = ew_wide_from_utf8(path);
    if (wide == NULL)
        return EINVAL;
    /* Not for children: a command that outlives us would keep the file open. */
    output->fd = _wopen(wide, _O_WRONLY | _O_CREAT | _O_TRUNC | _O_BINARY | _O_NOINHERIT,
                        _S_IREAD | _S_IWRITE);
    int error = output->fd < 0 ? errno : 0;
    ew_free(wide);
    return error;
}

int ew_output_close(struct ew_output *output)
{
    int error = 0;
    if (output->path != NULL && output->fd >= 0 && _close(output->fd) != 0)
        error = errno;
    output->fd = -1;
    return error;
}

int ew_output_write(void *ctx, const void *bytes, size_t len)
{
    struct ew_output *output = ctx;
    const char *at = bytes;
    while (len > 0) {
        int done = _write(output->fd, at, len < INT_MAX ? (unsigned)len : INT_MAX);
        if (done > 0) {
            at += done;
            len -= (size_t)done;
            continue;
        }
        /* Of a pipe whose reader has gone the C library says EINVAL. */
        output->os_error = _doserrno != 0 ? ew_errno_from_windows(_doserrno) : errno;
        return ETWATCH_EOS;
    }
    return 0;
}

bool ew_output_reader_gone(const struct ew_output *output)
{
    return output->os_error == EPIPE;
}
