/* SPDX-License-Identifier: MIT */
/*
 * Files for reading at any offset. Uses positioned reads instead of a mapping: if a mapped file is
 * truncated by another program, an exception is raised, while a short read is just its end. Files
 * are opened with full sharing, for writing and deleting too: a recording may still be growing.
 */
#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <string.h>
#include <windows.h>

#include "base/alloc.h"
#include "os/os.h"
#include "os/windows/text.h"

#include <etwatch/etwatch.h>

struct ew_os_file {
    HANDLE handle;
};

static int fail(int error, int64_t *reterr_os_code)
{
    *reterr_os_code = error;
    return error == EACCES || error == EPERM ? ETWATCH_EPERM : ETWATCH_EOS;
}

/* Windows refuses to open a folder like a file without permission; report EISDIR instead. */
static int open_error(const wchar_t *path)
{
    DWORD code = GetLastError();
    DWORD attributes = GetFileAttributesW(path);
    if (attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY) != 0)
        return EISDIR;
    return ew_errno_from_windows(code);
}

static int open_wide(struct ew_os_file *file, const wchar_t *path, uint64_t *ret_bytes)
{
    LARGE_INTEGER size;
    file->handle =
        CreateFileW(path, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                    NULL, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
    if (file->handle == INVALID_HANDLE_VALUE)
        return open_error(path);
    /* Pipes and devices cannot be read at an offset. */
    if (GetFileType(file->handle) != FILE_TYPE_DISK)
        return ESPIPE;
    if (!GetFileSizeEx(file->handle, &size))
        return ew_errno_from_windows(GetLastError());
    *ret_bytes = (uint64_t)size.QuadPart;
    return 0;
}

int ew_os_file_open(const char *path, struct ew_os_file **ret_file, uint64_t *ret_bytes,
                    int64_t *reterr_os_code)
{
    struct ew_os_file *file = ew_calloc(1, sizeof *file);
    if (!file)
        return ETWATCH_ENOMEM;
    file->handle = INVALID_HANDLE_VALUE;
    wchar_t *wide = ew_wide_path(path);
    if (!wide) {
        ew_os_file_close(file);
        return ETWATCH_ENOMEM;
    }
    int error = open_wide(file, wide, ret_bytes);
    ew_free(wide);
    if (error != 0) {
        ew_os_file_close(file);
        return fail(error, reterr_os_code);
    }
    *ret_file = file;
    return 0;
}

int64_t ew_os_file_read(struct ew_os_file *file, uint64_t offset, void *bytes, size_t size)
{
    const size_t step_max = (size_t)1 << 30;
    size_t done = 0;
    if (size > INT64_MAX || offset > (uint64_t)INT64_MAX - size)
        return ETWATCH_EINVAL;
    while (done < size) {
        uint64_t at = offset + done;
        DWORD got = 0;
        OVERLAPPED place = {0};
        place.Offset = (DWORD)at;
        place.OffsetHigh = (DWORD)(at >> 32);
        DWORD wanted = (DWORD)(size - done < step_max ? size - done : step_max);
        if (!ReadFile(file->handle, (char *)bytes + done, wanted, &got, &place) &&
            GetLastError() != ERROR_HANDLE_EOF)
            return ETWATCH_EOS;
        if (got == 0)
            break;
        done += got;
    }
    return (int64_t)done;
}

void ew_os_file_close(struct ew_os_file *file)
{
    if (!file)
        return;
    if (file->handle != INVALID_HANDLE_VALUE)
        (void)CloseHandle(file->handle);
    ew_free(file);
}

int ew_os_file_try_write(const char *path, bool *ret_made)
{
    wchar_t *wide = ew_wide_path(path);
    if (!wide)
        return ENOENT;
    HANDLE handle = CreateFileW(wide, GENERIC_WRITE, FILE_SHARE_READ, NULL, OPEN_ALWAYS,
                                FILE_ATTRIBUTE_NORMAL, NULL);
    *ret_made = handle != INVALID_HANDLE_VALUE && GetLastError() != ERROR_ALREADY_EXISTS;
    int error = handle == INVALID_HANDLE_VALUE ? open_error(wide) : 0;
    if (handle != INVALID_HANDLE_VALUE)
        (void)CloseHandle(handle);
    ew_free(wide);
    return error;
}

void ew_os_file_remove(const char *path)
{
    wchar_t *wide = ew_wide_path(path);
    if (wide)
        (void)DeleteFileW(wide);
    ew_free(wide);
}

FILE *ew_os_stream_create(const char *path)
{
    wchar_t *wide = ew_wide_path(path);
    HANDLE handle = wide ? CreateFileW(wide, GENERIC_WRITE, FILE_SHARE_READ, NULL, CREATE_NEW,
                                       FILE_ATTRIBUTE_NORMAL, NULL)
                         : INVALID_HANDLE_VALUE;
    int error = wide ? ew_errno_from_windows(GetLastError()) : ENOENT;
    ew_free(wide);
    if (handle == INVALID_HANDLE_VALUE) {
        errno = error;
        return NULL;
    }
    /* They own the handle. */
    int fd = _open_osfhandle((intptr_t)handle, _O_BINARY);
    return fd < 0 ? NULL : _fdopen(fd, "wb");
}

int ew_os_file_rename(const char *from, const char *to)
{
    wchar_t *old = ew_wide_path(from), *name = ew_wide_path(to);
    int error = ENOENT;
    if (old && name)
        error = MoveFileExW(old, name, MOVEFILE_REPLACE_EXISTING)
                    ? 0
                    : ew_errno_from_windows(GetLastError());
    ew_free(old);
    ew_free(name);
    return error;
}

/* The kernel's names begin at the root of its objects, which programs reach as GLOBALROOT. */
bool ew_os_kernel_path(const char *path, char *buffer, size_t size)
{
    static const char user[] = "\\??\\", remote[] = "\\Device\\Mup\\", share[] = "\\??\\UNC\\";
    const char *prefix = "\\\\?\\GLOBALROOT";
    if (path[0] != '\\' || path[1] == '\\' || strncmp(path, remote, sizeof remote - 1) == 0 ||
        strncmp(path, share, sizeof share - 1) == 0)
        return false;
    if (strncmp(path, user, sizeof user - 1) == 0) {
        prefix = "\\\\?\\";
        path += sizeof user - 1;
    }
    int len = snprintf(buffer, size, "%s%s", prefix, path);
    return len > 0 && (size_t)len < size;
}

bool ew_os_full_path(const char *path, char *buffer, size_t size)
{
    wchar_t full[1024];
    wchar_t *wide = ew_wide_from_utf8(path);
    const DWORD room = sizeof full / sizeof full[0];
    DWORD units = wide ? GetFullPathNameW(wide, room, full, NULL) : 0;
    ew_free(wide);
    return units > 0 && units < room && ew_wide_to_utf8(full, units, buffer, size) < size - 1;
}

FILE *ew_os_stream_open(const char *path)
{
    wchar_t *wide = ew_wide_path(path);
    if (!wide) {
        errno = ENOENT;
        return NULL;
    }
    FILE *file = _wfopen(wide, L"rb");
    ew_free(wide);
    return file;
}
