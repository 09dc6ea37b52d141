/* SPDX-License-Identifier: MIT */
/*
 * The real Windows functions of the poll source. Owns the buffer of the list, which grows to the
 * size of the last list and a little more, because processes may start between two calls.
 */
#include <string.h>
#include <windows.h>

#include <psapi.h>
#include <winternl.h>

#include "base/alloc.h"
#include "os/os.h"
#include "os/windows/version.h"
#include "source/poll_windows/poll.h"

#define STATUS_LENGTH_MISMATCH ((NTSTATUS)0xC0000004)
#define UNIX_EPOCH_FILETIME UINT64_C(116444736000000000)

enum { FIRST_BYTES = 256 * 1024, BYTES_MAX = 256 * 1024 * 1024 };

struct system_buffer {
    uint8_t *bytes;
    ULONG size;
    bool is_wine;
    DWORD session;                               /* of this process */
    DWORD(WINAPI *gui_resources)(HANDLE, DWORD); /* NULL: not available */
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
                                "Windows refused to list processes (status 0x%lx)",
                                (unsigned long)status);
        int rc = grow(buffer, used);
        if (rc < 0)
            return ew_error_set(reterr, rc, 0, "no memory for the list of processes");
    }
}

static void *hold(void *ctx, uint32_t pid)
{
    (void)ctx;
    /* The desktop object counts need the full query right. */
    HANDLE process = OpenProcess(PROCESS_QUERY_INFORMATION, FALSE, pid);
    return process ? process : OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, FALSE, pid);
}

static uint64_t units(const FILETIME *time)
{
    return (uint64_t)time->dwHighDateTime << 32 | time->dwLowDateTime;
}

/* Each query can be refused by itself: the exit code must not depend on the others. */
static bool last(void *ctx, void *held, struct ew_winpoll_last *ret_last)
{
    FILETIME created, ended, kernel, user;
    IO_COUNTERS io;
    PROCESS_MEMORY_COUNTERS memory = {.cb = sizeof memory};
    ULONG64 cycles = 0;
    DWORD code;
    (void)ctx;
    if (!GetExitCodeProcess(held, &code))
        return false;
    bool figures = GetProcessTimes(held, &created, &ended, &kernel, &user) &&
                   GetProcessIoCounters(held, &io) &&
                   GetProcessMemoryInfo(held, &memory, sizeof memory);
    *ret_last = (struct ew_winpoll_last){.exit_code = code, .only_exit_code = true};
    if (!figures)
        return true;
    if (!QueryProcessCycleTime(held, &cycles))
        cycles = 0;
    *ret_last = (struct ew_winpoll_last){
        .cycles = cycles,
        .user = units(&user),
        .kernel = units(&kernel),
        .read_ops = io.ReadOperationCount,
        .write_ops = io.WriteOperationCount,
        .read_bytes = io.ReadTransferCount,
        .write_bytes = io.WriteTransferCount,
        .other_ops = io.OtherOperationCount,
        .other_bytes = io.OtherTransferCount,
        .faults = memory.PageFaultCount,
        .exit_code = code,
    };
    return true;
}

/* Without a desktop (Nano; Server Core has one) and in Wine the counts are meaningless. */
static void find_gui(struct system_buffer *buffer)
{
    struct ew_windows_version version;
    union {
        FARPROC found;
        DWORD(WINAPI *call)(HANDLE, DWORD);
    } gui = {NULL};
    ew_windows_version(&version);
    buffer->is_wine = version.wine != NULL;
    /* Not imported: loading user32 attaches a process to the desktop. */
    HMODULE user32 =
        version.wine ? NULL : LoadLibraryExW(L"user32.dll", NULL, LOAD_LIBRARY_SEARCH_SYSTEM32);
    if (user32)
        gui.found = GetProcAddress(user32, "GetGuiResources");
    buffer->gui_resources = gui.found ? gui.call : NULL;
}

static uint32_t take(uint64_t gauge[EW_GAUGE_COUNT], enum ew_gauge which, uint64_t value)
{
    gauge[which] = value;
    return 1u << which;
}

static uint32_t slow(void *ctx, void *held, uint64_t gauge[EW_GAUGE_COUNT])
{
    enum {
        PROCESS_HANDLE_COUNT = 20,
        PROCESS_IO_PRIORITY = 33,
        GDI_OBJECTS = 0,
        USER_OBJECTS = 1,
    };
    const struct system_buffer *buffer = ctx;
    DWORD session = buffer->session + 1;
    ULONG handles[2] = {0, 0}; /* current and peak */
    ULONG io_priority = 0;
    DWORD_PTR may_use = 0, has_cpus = 0;
    uint32_t has = 0;
    if (NtQueryInformationProcess(held, (PROCESSINFOCLASS)PROCESS_HANDLE_COUNT, handles,
                                  sizeof handles, NULL) >= 0 &&
        handles[1] != 0)
        has |= take(gauge, EW_G_handles_peak, handles[1]);
    if (!buffer->is_wine && NtQueryInformationProcess(held, (PROCESSINFOCLASS)PROCESS_IO_PRIORITY,
                                                      &io_priority, sizeof io_priority, NULL) >= 0)
        has |= take(gauge, EW_G_io_priority, io_priority);
    /* 0: its threads are in several processor groups. */
    if (GetProcessAffinityMask(held, &may_use, &has_cpus) && may_use != 0)
        has |= take(gauge, EW_G_affinity, may_use);
    /* Of processes in other sessions it returns 0 without an error. */
    if (!buffer->gui_resources || !ProcessIdToSessionId(GetProcessId(held), &session) ||
        session != buffer->session)
        return has;
    SetLastError(ERROR_SUCCESS);
    DWORD gdi = buffer->gui_resources(held, GDI_OBJECTS);
    DWORD user = buffer->gui_resources(held, USER_OBJECTS);
    if (GetLastError() == ERROR_SUCCESS)
        has |= take(gauge, EW_G_gdi_objects, gdi) | take(gauge, EW_G_user_objects, user);
    return has;
}

static void *hold_thread(void *ctx, uint32_t tid)
{
    (void)ctx;
    return OpenThread(THREAD_QUERY_LIMITED_INFORMATION, FALSE, tid);
}

static uint64_t thread_cycles(void *ctx, void *held)
{
    ULONG64 cycles = 0;
    (void)ctx;
    return QueryThreadCycleTime(held, &cycles) ? cycles : 0;
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

static uint64_t zero_now(void *ctx)
{
    uint64_t unix_ns, raw_ns;
    (void)ctx;
    ew_os_anchor(&unix_ns, &raw_ns);
    return (unix_ns - raw_ns) / 100 + UNIX_EPOCH_FILETIME;
}

/* With it, an administrator can query the processes of all users. Without it, their gauges stay
 * unknown. */
static void enable_debug_privilege(void)
{
    HANDLE token;
    TOKEN_PRIVILEGES wanted = {.PrivilegeCount = 1};
    wanted.Privileges[0].Attributes = SE_PRIVILEGE_ENABLED;
    if (!OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY | TOKEN_ADJUST_PRIVILEGES, &token))
        return;
    if (LookupPrivilegeValueW(NULL, SE_DEBUG_NAME, &wanted.Privileges[0].Luid))
        (void)AdjustTokenPrivileges(token, FALSE, &wanted, 0, NULL, NULL);
    (void)CloseHandle(token);
}

int ew_winpoll_system(struct ew_winpoll_system *ret_system)
{
    struct system_buffer *buffer = ew_calloc(1, sizeof *buffer);
    if (!buffer)
        return ETWATCH_ENOMEM;
    enable_debug_privilege();
    find_gui(buffer);
    if (!ProcessIdToSessionId(GetCurrentProcessId(), &buffer->session))
        buffer->gui_resources = NULL;
    *ret_system = (struct ew_winpoll_system){
        .ctx = buffer,
        .list = list,
        .hold = hold,
        .last = last,
        .slow = slow,
        .slow_has = EW_METRIC_SET(ETWATCH_M_affinity, ETWATCH_M_handles_peak),
        .release = release,
        .hold_thread = hold_thread,
        .thread_cycles = thread_cycles,
        .close = close_system,
        .raw_zero = zero_now(buffer),
        .zero = zero_now,
    };
    if (!buffer->is_wine)
        etwatch_metric_set_add(&ret_system->slow_has, ETWATCH_M_io_priority);
    if (buffer->gui_resources)
        etwatch_metric_set_union(&ret_system->slow_has,
                                 &EW_METRICS(ETWATCH_M_gdi_objects, ETWATCH_M_user_objects));
    return 0;
}

static int open_source(const struct ew_source_config *config, struct ew_source **ret_source,
                       struct ew_error *reterr)
{
    struct ew_winpoll_system system;
    if (strcmp(config->proc_root, "/proc") != 0)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0,
                            "Windows has no /proc: proc_root cannot be set");
    if (ew_winpoll_system(&system) < 0)
        return ew_error_set(reterr, ETWATCH_ENOMEM, 0, "out of memory");
    return ew_winpoll_open(config, &system, ret_source, reterr);
}

/* The other functions are in the table of each opened source. */
const struct ew_source_ops ew_source_poll = {
    .id = ETWATCH_SOURCE_POLL,
    .open = open_source,
};
