/* SPDX-License-Identifier: MIT */
/*
 * Every Windows function that live ETW calls, as a table, so that tests can substitute an emulator.
 * The types mirror those of evntrace.h and evntcons.h, with the same layout on 64-bit systems:
 * api_windows.c, which holds the real table, asserts that they agree. All other code of live ETW is
 * portable and is tested on every system.
 *
 * Functions return Windows error codes, 0 for success. The first argument is the table's ctx.
 */
#ifndef EW_SOURCE_ETW_API_H
#define EW_SOURCE_ETW_API_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Windows error codes that are handled. */
enum {
    EW_WIN_ACCESS_DENIED = 5,
    EW_WIN_NOT_ENOUGH_MEMORY = 8,
    EW_WIN_BAD_LENGTH = 24,
    EW_WIN_NOT_SUPPORTED = 50,
    EW_WIN_INVALID_PARAMETER = 87,
    EW_WIN_ALREADY_EXISTS = 183,
    EW_WIN_MORE_DATA = 234,
    EW_WIN_CANCELLED = 1223,
    EW_WIN_NOT_ALL_ASSIGNED = 1300,
    EW_WIN_PRIVILEGE_NOT_HELD = 1314,
    EW_WIN_NO_SYSTEM_RESOURCES = 1450,
    EW_WIN_INSTANCE_NOT_FOUND = 4201,
    EW_WIN_CTX_CLOSE_PENDING = 7007,
};

#define EW_ETW_INVALID_HANDLE UINT64_MAX

enum { EW_ETW_CONTROL_QUERY = 0, EW_ETW_CONTROL_STOP, EW_ETW_CONTROL_UPDATE, EW_ETW_CONTROL_FLUSH };

enum ew_etw_log_mode {
    EW_ETW_SEQUENTIAL_FILE = 0x1,
    EW_ETW_REAL_TIME = 0x100,
    EW_ETW_SYSTEM_LOGGER = 0x02000000,
    EW_ETW_INDEPENDENT_SESSION = 0x08000000,
};

/* How events are delivered. */
enum ew_etw_process_mode {
    EW_ETW_PROCESS_REAL_TIME = 0x100,
    EW_ETW_PROCESS_RAW_TIMESTAMP = 0x1000,
    EW_ETW_PROCESS_EVENT_RECORD = 0x10000000,
};

/* EVENT_TRACE_PROPERTIES with its WNODE_HEADER; the names follow at the given offsets. */
struct ew_etw_properties {
    uint32_t size; /* including the names */
    uint32_t provider_id;
    uint64_t history; /* after a query: the handle of the session (WNODE_HEADER) */
    int64_t time;
    uint8_t guid[16];
    uint32_t clock; /* 1 QPC, 2 system time, 3 CPU cycles */
    uint32_t wnode_flags;
    uint32_t buffer_kb;
    uint32_t min_buffers, max_buffers;
    uint32_t max_file_mb;
    uint32_t log_mode;
    uint32_t flush_s;
    uint32_t enable_flags;
    int32_t age_limit;
    uint32_t buffers, free_buffers;
    uint32_t events_lost;
    uint32_t buffers_written;
    uint32_t log_buffers_lost, real_time_buffers_lost;
    uint64_t thread;
    uint32_t file_name_at, name_at;
};
#define EW_ETW_WNODE_TRACED_GUID 0x00020000u

/* TRACE_LOGFILE_HEADER */
struct ew_etw_logfile_header {
    uint32_t buffer_bytes;
    uint8_t version[4];
    uint32_t os_build;
    uint32_t cpu_count;
    int64_t end_filetime;
    uint32_t timer_resolution_100ns;
    uint32_t max_file_mb;
    uint32_t log_mode;
    uint32_t buffers_written;
    uint32_t start_buffers, pointer_size, events_lost, cpu_mhz;
    uint64_t logger_name, file_name;
    uint8_t timezone[176];
    int64_t boot_filetime;
    uint64_t perf_frequency;
    int64_t start_filetime;
    uint32_t clock;
    uint32_t buffers_lost;
};

/* ETW delivers each event as an EVENT_RECORD; convert.h knows its layout. */
typedef void (*ew_etw_on_event)(const void *event_record);

/* EVENT_TRACE_LOGFILEW */
struct ew_etw_logfile {
    const uint16_t *file_name;
    const uint16_t *session_name;
    int64_t current_time;
    uint32_t buffers_read;
    uint32_t process_mode;
    uint8_t current_event[88];
    struct ew_etw_logfile_header header;
    void *buffer_callback;
    uint32_t buffer_size, filled, events_lost;
    uint32_t pad;
    ew_etw_on_event on_event;
    uint32_t is_kernel_trace;
    uint32_t pad2;
    void *context; /* copied into every EVENT_RECORD */
};

/* A whole buffer with its header, in the format of recordings. Returns nonzero to continue. */
typedef int32_t (*ew_etw_on_buffer)(const void *buffer, uint32_t size, const void *info,
                                    void *context);

/* ETW_OPEN_TRACE_OPTIONS. Without on_event ETW does not parse the events of a buffer. */
struct ew_etw_open_options {
    uint32_t modes; /* 1: raw timestamps */
    uint32_t pad;
    ew_etw_on_event on_event;
    void *event_context;
    ew_etw_on_buffer on_buffer;
    void *buffer_context;
};
#define EW_ETW_OPEN_RAW_TIMESTAMP 1u

/* EVENT_FILTER_DESCRIPTOR */
struct ew_etw_filter {
    uint64_t at; /* address */
    uint32_t size;
    uint32_t type;
};
#define EW_ETW_FILTER_PID 0x80000004u
#define EW_ETW_FILTER_EVENT_ID 0x80000200u

/* ENABLE_TRACE_PARAMETERS, version 2 */
struct ew_etw_enable {
    uint32_t version;
    uint32_t property;
    uint32_t control_flags;
    uint8_t source[16];
    uint32_t pad;
    const struct ew_etw_filter *filters;
    uint32_t filter_count;
    uint32_t pad2;
};
enum { EW_ETW_DISABLE_PROVIDER, EW_ETW_ENABLE_PROVIDER, EW_ETW_CAPTURE_STATE };

/* Classes of TraceSetInformation and TraceQueryInformation. */
enum ew_etw_info {
    EW_ETW_INFO_STACKS = 3,       /* array of struct ew_etw_classic_id; replaces the previous one */
    EW_ETW_INFO_KERNEL_FLAGS = 4, /* eight 32-bit masks; the first has the session's flags */
    EW_ETW_INFO_PROFILE_INTERVAL = 5, /* struct ew_etw_profile_interval; session 0 */
    EW_ETW_INFO_PROFILE_SOURCES = 7,  /* consecutive PROFILE_SOURCE_INFO; session 0 */
    EW_ETW_INFO_PMC_EVENTS = 8,       /* array of struct ew_etw_classic_id */
    EW_ETW_INFO_PMC_COUNTERS = 9,     /* array of 32-bit source ids */
    EW_ETW_INFO_MAX_LOGGERS = 19,
};

struct ew_etw_classic_id {
    uint8_t guid[16];
    uint8_t type;
    uint8_t reserved[7];
};

struct ew_etw_profile_interval {
    uint32_t source;
    uint32_t interval_100ns;
};

struct ew_winpoll_system;

struct ew_etw_api {
    void *ctx;
    uint32_t (*start)(void *ctx, uint64_t *ret_session, const uint16_t *name,
                      struct ew_etw_properties *properties);
    /* By name: ETW ignores the handle if a name is given. Handles are slot numbers that are reused,
     * so a handle alone might be another program's session by now. */
    uint32_t (*control)(void *ctx, uint64_t session, const uint16_t *name,
                        struct ew_etw_properties *properties, uint32_t code);
    uint32_t (*enable)(void *ctx, uint64_t session, const uint8_t provider[16], uint32_t code,
                       uint8_t level, uint64_t any, uint64_t all,
                       const struct ew_etw_enable *parameters);
    uint64_t (*open)(void *ctx, struct ew_etw_logfile *logfile, uint32_t *ret_error);
    /* The same for whole buffers (OpenTraceFromRealTimeLogger, Windows 11 22H2 and Server 2022);
     * NOT_SUPPORTED: this Windows does not have the function. */
    uint64_t (*open_buffers)(void *ctx, const uint16_t *name,
                             const struct ew_etw_open_options *options,
                             struct ew_etw_logfile_header *ret_header, uint32_t *ret_error);
    uint32_t (*process)(void *ctx, uint64_t trace); /* returns when the trace has ended */
    uint32_t (*close)(void *ctx, uint64_t trace);
    uint32_t (*set_information)(void *ctx, uint64_t session, uint32_t what, void *value,
                                uint32_t size);
    uint32_t (*query_information)(void *ctx, uint64_t session, uint32_t what, void *value,
                                  uint32_t size, uint32_t *ret_size);
    uint32_t (*query_all)(void *ctx, struct ew_etw_properties **array, uint32_t count,
                          uint32_t *ret_count);
    /* Enables a privilege of the token; NOT_ALL_ASSIGNED: the token does not have it. */
    uint32_t (*enable_privilege)(void *ctx, const char *name);
    /* Lists processes, independently of events; the caller closes it. ENOTSUP: not available. */
    int (*processes)(void *ctx, struct ew_winpoll_system *ret_system);
    uint32_t (*os_build)(void *ctx);
    uint32_t (*cpu_count)(void *ctx);
    /* The raw clock of facts; the same clock as the session's if that is QPC. */
    uint64_t (*now_ns)(void *ctx);
    void (*anchor)(void *ctx, uint64_t *ret_unix_ns, uint64_t *ret_raw_ns);
    /* The GUID of a provider that is registered on this machine under this name, ignoring case.
     * May be NULL: none is registered. */
    uint32_t (*find_provider)(void *ctx, const uint16_t *name, uint8_t ret_guid[16]);
    /* Reserves the name until release, or until this process ends in any way. Returns NULL if
     * another process holds it. Both may be NULL: reservations are not supported. */
    void *(*claim)(void *ctx, const uint16_t *name);
    void (*release)(void *ctx, void *claim);
    /* TRACE_EVENT_INFO of an event of a registered provider (TdhGetManifestEventInformation).
     * descriptor: the EVENT_DESCRIPTOR of an event, 16 bytes. *size: of the buffer, then of what
     * was written. May be NULL: this Windows does not have it. */
    uint32_t (*event_info)(void *ctx, const uint8_t provider[16], const uint8_t descriptor[16],
                           void *buffer, uint32_t *size);
};

/* The real table; NULL and an error where ETW does not exist (other systems, Wine). */
const struct ew_etw_api *ew_etw_real_api(struct ew_error *reterr);

#endif
