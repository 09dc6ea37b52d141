/* SPDX-License-Identifier: MIT */
/*
 * The table of real functions. Makes no decisions: each function passes its arguments on. Static
 * assertions check that our types have the layout of the Windows types.
 */
#include "source/etw/api.h"

#include <stdbool.h>
#include <string.h>

#include <windows.h>
/* evntcons.h needs evntrace.h, which needs windows.h: the comments keep them in this order */
#include <evntrace.h>
/* see above */
#include <evntcons.h>
#include <evntprov.h>

#include "os/os.h"
#include "os/windows/version.h"
#include "source/poll_windows/poll.h"

#define SAME_SIZE(ours, theirs) _Static_assert(sizeof(struct ours) == sizeof(theirs), #theirs)
#define SAME_PLACE(ours, field, theirs, their_field)                                            \
    _Static_assert(offsetof(struct ours, field) == offsetof(theirs, their_field) &&             \
                       sizeof(((struct ours *)0)->field) == sizeof(((theirs *)0)->their_field), \
                   #theirs "." #their_field)

SAME_SIZE(ew_etw_properties, EVENT_TRACE_PROPERTIES);
SAME_PLACE(ew_etw_properties, history, EVENT_TRACE_PROPERTIES, Wnode.HistoricalContext);
SAME_PLACE(ew_etw_properties, guid, EVENT_TRACE_PROPERTIES, Wnode.Guid);
SAME_PLACE(ew_etw_properties, clock, EVENT_TRACE_PROPERTIES, Wnode.ClientContext);
SAME_PLACE(ew_etw_properties, buffer_kb, EVENT_TRACE_PROPERTIES, BufferSize);
SAME_PLACE(ew_etw_properties, log_mode, EVENT_TRACE_PROPERTIES, LogFileMode);
SAME_PLACE(ew_etw_properties, enable_flags, EVENT_TRACE_PROPERTIES, EnableFlags);
SAME_PLACE(ew_etw_properties, events_lost, EVENT_TRACE_PROPERTIES, EventsLost);
SAME_PLACE(ew_etw_properties, real_time_buffers_lost, EVENT_TRACE_PROPERTIES, RealTimeBuffersLost);
SAME_PLACE(ew_etw_properties, file_name_at, EVENT_TRACE_PROPERTIES, LogFileNameOffset);
SAME_PLACE(ew_etw_properties, name_at, EVENT_TRACE_PROPERTIES, LoggerNameOffset);
SAME_SIZE(ew_etw_logfile_header, TRACE_LOGFILE_HEADER);
SAME_PLACE(ew_etw_logfile_header, cpu_mhz, TRACE_LOGFILE_HEADER, CpuSpeedInMHz);
SAME_PLACE(ew_etw_logfile_header, perf_frequency, TRACE_LOGFILE_HEADER, PerfFreq);
SAME_PLACE(ew_etw_logfile_header, start_filetime, TRACE_LOGFILE_HEADER, StartTime);
SAME_PLACE(ew_etw_logfile_header, clock, TRACE_LOGFILE_HEADER, ReservedFlags);
SAME_SIZE(ew_etw_logfile, EVENT_TRACE_LOGFILEW);
SAME_PLACE(ew_etw_logfile, session_name, EVENT_TRACE_LOGFILEW, LoggerName);
SAME_PLACE(ew_etw_logfile, process_mode, EVENT_TRACE_LOGFILEW, ProcessTraceMode);
SAME_PLACE(ew_etw_logfile, header, EVENT_TRACE_LOGFILEW, LogfileHeader);
SAME_PLACE(ew_etw_logfile, on_event, EVENT_TRACE_LOGFILEW, EventRecordCallback);
SAME_PLACE(ew_etw_logfile, context, EVENT_TRACE_LOGFILEW, Context);
SAME_SIZE(ew_etw_filter, EVENT_FILTER_DESCRIPTOR);
SAME_SIZE(ew_etw_enable, ENABLE_TRACE_PARAMETERS);
SAME_PLACE(ew_etw_enable, filters, ENABLE_TRACE_PARAMETERS, EnableFilterDesc);
SAME_PLACE(ew_etw_enable, filter_count, ENABLE_TRACE_PARAMETERS, FilterDescCount);
SAME_SIZE(ew_etw_classic_id, CLASSIC_EVENT_ID);
SAME_SIZE(ew_etw_profile_interval, TRACE_PROFILE_INTERVAL);

static uint32_t start(void *ctx, uint64_t *ret_session, const uint16_t *name,
                      struct ew_etw_properties *properties)
{
    TRACEHANDLE session = 0;
    (void)ctx;
    ULONG rc = StartTraceW(&session, (LPCWSTR)name, (EVENT_TRACE_PROPERTIES *)properties);
    *ret_session = session;
    return rc;
}

static uint32_t control(void *ctx, uint64_t session, const uint16_t *name,
                        struct ew_etw_properties *properties, uint32_t code)
{
    (void)ctx;
    return ControlTraceW(session, (LPCWSTR)name, (EVENT_TRACE_PROPERTIES *)properties, code);
}

static uint32_t enable(void *ctx, uint64_t session, const uint8_t provider[16], uint32_t code,
                       uint8_t level, uint64_t any, uint64_t all,
                       const struct ew_etw_enable *parameters)
{
    (void)ctx;
    return EnableTraceEx2(session, (LPCGUID)provider, code, level, any, all, 0,
                          (ENABLE_TRACE_PARAMETERS *)parameters);
}

static uint64_t open_trace(void *ctx, struct ew_etw_logfile *logfile, uint32_t *ret_error)
{
    (void)ctx;
    TRACEHANDLE trace = OpenTraceW((EVENT_TRACE_LOGFILEW *)logfile);
    if (trace != INVALID_PROCESSTRACE_HANDLE)
        return trace;
    *ret_error = GetLastError();
    return EW_ETW_INVALID_HANDLE;
}

/* Newer than the headers of the build: the layout of the options is asserted by number. */
_Static_assert(sizeof(struct ew_etw_open_options) == 40, "ETW_OPEN_TRACE_OPTIONS");
_Static_assert(offsetof(struct ew_etw_open_options, on_event) == 8, "EventCallback");
_Static_assert(offsetof(struct ew_etw_open_options, on_buffer) == 24, "BufferCallback");

static FARPROC find_function(const wchar_t *library, const char *name)
{
    HMODULE module = GetModuleHandleW(library);
    return module ? GetProcAddress(module, name) : NULL;
}

static uint64_t open_buffers(void *ctx, const uint16_t *name,
                             const struct ew_etw_open_options *options,
                             struct ew_etw_logfile_header *ret_header, uint32_t *ret_error)
{
    union {
        FARPROC found;
        TRACEHANDLE(WINAPI *call)(LPCWSTR, const void *, TRACE_LOGFILE_HEADER *);
    } open;
    (void)ctx;
    /* advapi32 forwards most ETW functions to sechost, but not all that sechost has. */
    open.found = find_function(L"sechost.dll", "OpenTraceFromRealTimeLogger");
    if (!open.found)
        open.found = find_function(L"advapi32.dll", "OpenTraceFromRealTimeLogger");
    *ret_error = EW_WIN_NOT_SUPPORTED;
    if (!open.found)
        return EW_ETW_INVALID_HANDLE;
    TRACEHANDLE trace = open.call((LPCWSTR)name, options, (TRACE_LOGFILE_HEADER *)ret_header);
    if (trace != INVALID_PROCESSTRACE_HANDLE)
        return trace;
    *ret_error = GetLastError();
    return EW_ETW_INVALID_HANDLE;
}

static uint32_t process(void *ctx, uint64_t trace)
{
    TRACEHANDLE handle = trace;
    (void)ctx;
    /* This thread only copies. If it waits for a CPU, the buffers of the session run full. */
    (void)SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_HIGHEST);
    return ProcessTrace(&handle, 1, NULL, NULL);
}

static uint32_t close_trace(void *ctx, uint64_t trace)
{
    (void)ctx;
    return CloseTrace(trace);
}

static uint32_t set_information(void *ctx, uint64_t session, uint32_t what, void *value,
                                uint32_t size)
{
    (void)ctx;
    return TraceSetInformation(session, (TRACE_INFO_CLASS)what, value, size);
}

static uint32_t query_information(void *ctx, uint64_t session, uint32_t what, void *value,
                                  uint32_t size, uint32_t *ret_size)
{
    union {
        FARPROC found;
        ULONG(WINAPI *call)(TRACEHANDLE, int, PVOID, ULONG, PULONG);
    } query;
    ULONG got = 0;
    (void)ctx;
    /* Not every advapi32 has it: looked up at run time. */
    query.found = find_function(L"advapi32.dll", "TraceQueryInformation");
    if (!query.found)
        return EW_WIN_NOT_SUPPORTED;
    ULONG rc = query.call(session, (int)what, value, size, &got);
    *ret_size = got;
    return rc;
}

static uint32_t query_all(void *ctx, struct ew_etw_properties **array, uint32_t count,
                          uint32_t *ret_count)
{
    ULONG got = 0;
    (void)ctx;
    ULONG rc = QueryAllTracesW((EVENT_TRACE_PROPERTIES **)array, count, &got);
    *ret_count = got;
    return rc;
}

static uint32_t enable_privilege(void *ctx, const char *name)
{
    HANDLE token;
    TOKEN_PRIVILEGES wanted = {.PrivilegeCount = 1};
    (void)ctx;
    wanted.Privileges[0].Attributes = SE_PRIVILEGE_ENABLED;
    if (!LookupPrivilegeValueA(NULL, name, &wanted.Privileges[0].Luid) ||
        !OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY | TOKEN_ADJUST_PRIVILEGES, &token))
        return GetLastError();
    /* Succeeds even if the token lacks the privilege; the last error is the real result. */
    BOOL done = AdjustTokenPrivileges(token, FALSE, &wanted, 0, NULL, NULL);
    DWORD error = GetLastError();
    (void)CloseHandle(token);
    return done && error == ERROR_SUCCESS ? 0 : error;
}

static int processes(void *ctx, struct ew_winpoll_system *ret_system)
{
    (void)ctx;
    return ew_winpoll_system(ret_system);
}

static uint32_t os_build(void *ctx)
{
    struct ew_windows_version version;
    (void)ctx;
    ew_windows_version(&version);
    return version.build;
}

static uint32_t cpu_count(void *ctx)
{
    (void)ctx;
    return ew_os_cpu_count();
}

static uint64_t now_ns(void *ctx)
{
    (void)ctx;
    return ew_os_raw_ns();
}

static void anchor(void *ctx, uint64_t *ret_unix_ns, uint64_t *ret_raw_ns)
{
    (void)ctx;
    ew_os_anchor(ret_unix_ns, ret_raw_ns);
}

/* Parses "{22fb2cd6-0e7b-…}". */
static bool read_guid(const wchar_t *text, uint8_t ret_guid[16])
{
    /* In memory the first three parts are little-endian. */
    static const uint8_t order[16] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
    unsigned digits = 0;
    memset(ret_guid, 0, 16);
    for (; *text != 0 && digits < 32; text++) {
        wchar_t c = *text;
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            continue;
        uint8_t *to = &ret_guid[order[digits / 2]];
        *to = (uint8_t)(*to << 4 | digit);
        digits++;
    }
    return digits == 32;
}

/* Providers with a manifest are in the registry, by GUID, with their name as the value. */
static uint32_t find_provider(void *ctx, const uint16_t *name, uint8_t ret_guid[16])
{
    static const wchar_t publishers[] =
        L"SOFTWARE\\Microsoft\\Windows\\CurrentVersion\\WINEVT\\Publishers";
    wchar_t key[64], value[256];
    HKEY all;
    (void)ctx;
    LSTATUS rc = RegOpenKeyExW(HKEY_LOCAL_MACHINE, publishers, 0, KEY_READ, &all);
    if (rc != ERROR_SUCCESS)
        return (uint32_t)rc;
    for (DWORD i = 0;; i++) {
        DWORD key_units = sizeof key / sizeof key[0], size = sizeof value;
        rc = RegEnumKeyExW(all, i, key, &key_units, NULL, NULL, NULL, NULL);
        if (rc != ERROR_SUCCESS)
            break;
        if (RegGetValueW(all, key, NULL, RRF_RT_REG_SZ, NULL, value, &size) == ERROR_SUCCESS &&
            _wcsicmp(value, (const wchar_t *)name) == 0) {
            rc = read_guid(key, ret_guid) ? ERROR_SUCCESS : ERROR_INVALID_DATA;
            break;
        }
    }
    (void)RegCloseKey(all);
    return (uint32_t)rc;
}

/* A named mutex exists machine-wide while any process has it open. Only its existence matters,
 * not its owner or its state. */
static void *claim(void *ctx, const uint16_t *name)
{
    static const wchar_t prefix[] = L"Global\\etwatch.session.";
    wchar_t path[320];
    size_t at = sizeof prefix / sizeof prefix[0] - 1;
    (void)ctx;
    memcpy(path, prefix, sizeof prefix);
    for (; *name != 0 && at + 1 < sizeof path / sizeof path[0]; name++)
        path[at++] = *name == L'\\' ? L'/' : *name;
    path[at] = 0;
    HANDLE mutex = CreateMutexW(NULL, FALSE, path);
    if (mutex && GetLastError() == ERROR_ALREADY_EXISTS) {
        (void)CloseHandle(mutex);
        return NULL;
    }
    return mutex;
}

static void release(void *ctx, void *held)
{
    (void)ctx;
    (void)CloseHandle(held);
}

/* tdh.dll is loaded for each query: most programs never need it. */
static uint32_t event_info(void *ctx, const uint8_t provider[16], const uint8_t descriptor[16],
                           void *buffer, uint32_t *size)
{
    union {
        FARPROC found;
        ULONG(WINAPI *call)(LPCGUID, const void *, void *, ULONG *);
    } function = {0};
    (void)ctx;
    HMODULE tdh = LoadLibraryExW(L"tdh.dll", NULL, LOAD_LIBRARY_SEARCH_SYSTEM32);
    if (!tdh)
        return GetLastError();
    ULONG bytes = *size, rc = ERROR_NOT_SUPPORTED;
    function.found = GetProcAddress(tdh, "TdhGetManifestEventInformation");
    if (function.found)
        rc = function.call((LPCGUID)(const void *)provider, descriptor, buffer, &bytes);
    *size = bytes;
    (void)FreeLibrary(tdh);
    return rc;
}

static const struct ew_etw_api real_api = {
    .start = start,
    .control = control,
    .enable = enable,
    .open = open_trace,
    .open_buffers = open_buffers,
    .process = process,
    .close = close_trace,
    .set_information = set_information,
    .query_information = query_information,
    .query_all = query_all,
    .enable_privilege = enable_privilege,
    .processes = processes,
    .os_build = os_build,
    .cpu_count = cpu_count,
    .now_ns = now_ns,
    .anchor = anchor,
    .find_provider = find_provider,
    .claim = claim,
    .release = release,
    .event_info = event_info,
};

const struct ew_etw_api *ew_etw_real_api(struct ew_error *reterr)
{
    struct ew_windows_version version;
    ew_windows_version(&version);
    if (!version.wine)
        return &real_api;
    /* Wine implements the functions and they succeed, but no event is ever delivered. */
    ew_error_set(reterr, ETWATCH_ENOTSUP, 0, "Wine %.40s has no ETW", version.wine);
    ew_error_fix(reterr, "run etwatch on Windows");
    return NULL;
}
