/* SPDX-License-Identifier: MIT */
/*
 * Windows itself, as the poll source asks it. Owns the buffer of the list, which grows to what the
 * last one needed and a little more: between two calls processes come.
 */
#include <string.h>
#include <windows.h>

#include <psapi.h>
#include <winternl.h>

#include "base/alloc.h"
#include "os/os.h"
#include "source/poll_windows/poll.h"

#define STATUS_LENGTH_MISMATCH ((NTSTATUS)0xC0000004)
#define UNIX_EPOCH_FILETIME UINT64_C(116444736000000000)

enum { FIRST_BYTES = 256 * 1024, BYTES_MAX = 256 * 1024 * 1024 };

struct system_buffer {
    uint8_t *bytes;
    ULONG size;
};

static int grow(struct system_buffer *buffer, ULONG needed)
{
    uint64_t size = (uint64_t)(needed > buffer->size ? needed : buffer->size) * 5 / 4;
    if (size < FIRST_BYTES)
        size = FIRST_BYTES;
    if (size > BYTES_MAX)
        return ETWATCH_ELIMIT;
    uint8_t *grown = ew_realloc_array(buffer->bytes, (size_t)size, 1);
    if (!grown)
        return ETWATCH_ENOMEM;
    buffer->bytes = grown;
    buffer->size = (ULONG)size;
    return 0;
}

static int list(void *ctx, struct ew_listing *ret_listing, struct ew_error *reterr)
{
    struct system_buffer *buffer = ctx;
    for (;;) {
        ULONG used = 0;
        NTSTATUS status = STATUS_LENGTH_MISMATCH;
        if (buffer->size > 0)
            status = NtQuerySystemInformation(SystemProcessInformation, buffer->bytes, buffer->size,
                                              &used);
        if (status >= 0) {
            ew_listing_init(ret_listing, buffer->bytes, used, (uintptr_t)buffer->bytes);
            return 0;
        }
        if (status != STATUS_LENGTH_MISMATCH)
            return ew_error_set(reterr, ETWATCH_EOS, status,
                                "Windows does not list its processes (status 0x%lx)",
                                (unsigned long)status);
        int rc = grow(buffer, used);
        if (rc < 0)
            return ew_error_set(reterr, rc, 0, "no memory for the list of processes");
    }
}

static void *hold(void *ctx, uint32_t pid)
{
    (void)ctx;
    return OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, FALSE, pid);
}

static uint64_t units(const FILETIME *time)
{
    return (uint64_t)time->dwHighDateTime << 32 | time->dwLowDateTime;
}

static bool last(void *ctx, void *held, struct ew_winpoll_last *ret_last)
{
    FILETIME created, ended, kernel, user;
    IO_COUNTERS io;
    PROCESS_MEMORY_COUNTERS memory = {.cb = sizeof memory};
    DWORD code;
    (void)ctx;
    if (!GetProcessTimes(held, &created, &ended, &kernel, &user) ||
        !GetProcessIoCounters(held, &io) || !GetExitCodeProcess(held, &code) ||
        !GetProcessMemoryInfo(held, &memory, sizeof memory))
        return false;
    *ret_last = (struct ew_winpoll_last){
        .user = units(&user),
        .kernel = units(&kernel),
        .read_ops = io.ReadOperationCount,
        .write_ops = io.WriteOperationCount,
        .read_bytes = io.ReadTransferCount,
        .write_bytes = io.WriteTransferCount,
        .faults = memory.PageFaultCount,
        .exit_code = code,
    };
    return true;
}

static void release(void *ctx, void *held)
{
    (void)ctx;
    (void)CloseHandle(held);
}

static void close_system(void *ctx)
{
    struct system_buffer *buffer = ctx;
    ew_free(buffer->bytes);
    ew_free(buffer);
}

static int open_source(const struct ew_source_config *config, struct ew_source **ret_source,
                       struct ew_error *reterr)
{
    uint64_t unix_ns, raw_ns;
    if (strcmp(config->proc_root, "/proc") != 0)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0, "Windows has no /proc to be replaced");
    struct system_buffer *buffer = ew_calloc(1, sizeof *buffer);
    if (!buffer)
        return ew_error_set(reterr, ETWATCH_ENOMEM, 0, "out of memory");
    ew_os_anchor(&unix_ns, &raw_ns);
    struct ew_winpoll_system system = {
        .ctx = buffer,
        .list = list,
        .hold = hold,
        .last = last,
        .release = release,
        .close = close_system,
        .raw_zero = (unix_ns - raw_ns) / 100 + UNIX_EPOCH_FILETIME,
    };
    return ew_winpoll_open(config, &system, ret_source, reterr);
}

/* Everything but the opening is in a table of the source's own. */
const struct ew_source_ops ew_source_poll = {
    .id = ETWATCH_SOURCE_POLL,
    .open = open_source,
};
