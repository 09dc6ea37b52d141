/* SPDX-License-Identifier: MIT */
/* Owns the descriptor of the data. A batch is one write of whole lines. */
#include "cli/cli.h"

#include <errno.h>
#include <io.h>
#include <windows.h>

#include "os/windows/text.h"

int ew_output_close(struct ew_output *output)
{
    int error = 0;
    if (output->path != NULL && output->fd >= 0 && _close(output->fd) != 0)
        error = errno;
    output->fd = -1;
    return error;
}

/* Not the write of the C library, which treats a partial write as a full disk. */
int ew_output_write(void *ctx, const void *bytes, size_t len)
{
    const DWORD max = 1 << 30;
    struct ew_output *output = ctx;
    const char *at = bytes;
    HANDLE handle = (HANDLE)_get_osfhandle(output->fd);
    while (len > 0) {
        DWORD done = 0;
        if (!WriteFile(handle, at, len < max ? (DWORD)len : max, &done, NULL) || done == 0) {
            output->os_error = ew_errno_from_windows(GetLastError());
            return ETWATCH_EOS;
        }
        at += done;
        len -= done;
    }
    return 0;
}

void ew_output_truncate(struct ew_output *output, uint64_t bytes)
{
    if (output->path != NULL && output->fd >= 0)
        (void)_chsize_s(output->fd, (long long)bytes);
}

bool ew_output_reader_gone(const struct ew_output *output)
{
    return output->os_error == EPIPE;
}
