/* SPDX-License-Identifier: MIT */
/* Owns the descriptor of the data. A batch is one write of whole lines. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <string.h>
#include <sys/stat.h>
#include <windows.h>

#include "base/alloc.h"
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
    /* Not inherited: a command that outlives etwatch would keep the file open. */
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

bool ew_output_is_special(const char *path)
{
    wchar_t *wide = ew_wide_from_utf8(path);
    DWORD found = wide == NULL ? INVALID_FILE_ATTRIBUTES : GetFileAttributesW(wide);
    ew_free(wide);
    DWORD other = FILE_ATTRIBUTE_DEVICE | FILE_ATTRIBUTE_DIRECTORY;
    bool device = path[0] == '\\' && path[1] == '\\' && (path[2] == '.' || path[2] == '?');
    return device || _stricmp(path, "NUL") == 0 ||
           (found != INVALID_FILE_ATTRIBUTES && (found & other) != 0);
}

int ew_output_replace(const char *from, const char *path)
{
    wchar_t *old = ew_wide_from_utf8(from), *wide = ew_wide_from_utf8(path);
    bool done = old != NULL && wide != NULL && MoveFileExW(old, wide, MOVEFILE_REPLACE_EXISTING);
    ew_free(old);
    ew_free(wide);
    return done ? 0 : EACCES;
}
