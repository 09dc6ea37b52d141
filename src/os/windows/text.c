/* SPDX-License-Identifier: MIT */
/*
 * Text conversion. Windows is always called with UTF-16, so that the machine's code page does not
 * affect names of files and processes.
 */
#include "os/windows/text.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <windows.h>

#include "base/alloc.h"
#include "base/utf16.h"

/* Missing from <winerror.h> of some mingw versions. */
#ifndef ERROR_ELEVATION_REQUIRED
#define ERROR_ELEVATION_REQUIRED 740L
#endif

wchar_t *ew_wide_from_utf8(const char *text)
{
    int units = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, NULL, 0);
    wchar_t *wide = units > 0 ? ew_calloc((size_t)units, sizeof *wide) : NULL;
    if (wide)
        (void)MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, wide, units);
    return wide;
}

/* \\?\ takes a full path as it is: C:\x becomes \\?\C:\x, \\server\x becomes \\?\UNC\server\x. */
static wchar_t *in_long_form(const wchar_t *wide)
{
    static const wchar_t local[] = L"\\\\?\\", network[] = L"\\\\?\\UNC\\";
    DWORD units = GetFullPathNameW(wide, 0, NULL, NULL);
    wchar_t *full = units > 0 ? ew_calloc((size_t)units + 16, sizeof *full) : NULL;
    wchar_t *at = full ? full + 8 : NULL;
    if (!full || GetFullPathNameW(wide, units, at, NULL) >= units) {
        ew_free(full);
        return NULL;
    }
    bool shared = at[0] == L'\\' && at[1] == L'\\';
    const wchar_t *prefix = shared ? network : local;
    size_t len = wcslen(prefix);
    if (shared)
        at += 2;
    memmove(full + len, at, (wcslen(at) + 1) * sizeof *at);
    memcpy(full, prefix, len * sizeof *prefix);
    return full;
}

wchar_t *ew_wide_path(const char *path)
{
    enum { LONG = 240 }; /* a folder may have 248 characters */
    wchar_t *wide = ew_wide_from_utf8(path);
    bool special =
        wide && wide[0] == L'\\' && wide[1] == L'\\' && (wide[2] == L'?' || wide[2] == L'.');
    DWORD units = wide && !special ? GetFullPathNameW(wide, 0, NULL, NULL) : 0;
    wchar_t *longer = units > LONG ? in_long_form(wide) : NULL;
    if (!longer)
        return wide;
    ew_free(wide);
    return longer;
}

size_t ew_wide_to_utf8(const wchar_t *text, size_t units, char *buffer, size_t size)
{
    return ew_utf16_to_utf8((const uint8_t *)text, units * sizeof *text, buffer, size);
}

int ew_errno_from_windows(unsigned long code)
{
    switch (code) {
    case ERROR_SUCCESS:
        return 0;
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_DRIVE:
    case ERROR_BAD_NETPATH:
    case ERROR_BAD_NET_NAME:
    case ERROR_INVALID_NAME:
        return ENOENT;
    case ERROR_ACCESS_DENIED:
    case ERROR_SHARING_VIOLATION:
    case ERROR_LOCK_VIOLATION:
    case ERROR_WRITE_PROTECT:
        return EACCES;
    case ERROR_ELEVATION_REQUIRED:
    case ERROR_PRIVILEGE_NOT_HELD:
        return EPERM;
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_OUTOFMEMORY:
        return ENOMEM;
    case ERROR_TOO_MANY_OPEN_FILES:
        return EMFILE;
    case ERROR_BAD_EXE_FORMAT:
    case ERROR_EXE_MACHINE_TYPE_MISMATCH:
        return ENOEXEC;
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL:
        return ENOSPC;
    case ERROR_FILENAME_EXCED_RANGE:
        return ENAMETOOLONG;
    case ERROR_BROKEN_PIPE:
    case ERROR_NO_DATA:
    case ERROR_PIPE_NOT_CONNECTED:
        return EPIPE;
    case ERROR_INVALID_PARAMETER:
        return EINVAL;
    default:
        return EIO;
    }
}
