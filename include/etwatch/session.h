/* SPDX-License-Identifier: MIT */
/*
 * ETW sessions: the options of a session of etwatch, recordings that ETW itself writes, the
 * sessions of this machine, and the removal of sessions that etwatch left behind. Only on Windows;
 * elsewhere every call that needs a session returns ETWATCH_ENOTSUP.
 *
 * The rules of etwatch.h hold. A recorder may be used by one thread at a time.
 */
#ifndef ETWATCH_SESSION_H
#define ETWATCH_SESSION_H

#include <etwatch/etwatch.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ own session */

/* A provider of events: with a manifest, of TraceLogging or an EventSource. */
struct etwatch_provider {
    uint32_t size;
    uint32_t level; /* 1 critical to 5 verbose, up to 255; 0 = 5 */
    /* Its registered name ("Microsoft-Windows-Kernel-File"), its GUID, or a star and the name that
     * its GUID is derived from ("*MyCompany.MyComponent"). */
    const char *name;
    uint64_t keywords;    /* any of them; 0 = all */
    const uint32_t *pids; /* only these processes, at most 8, without their descendants */
    uint32_t pid_count;
    uint32_t event_id_count;
    const uint16_t *event_ids; /* only these events, at most 64 */
};

/* For tests and diagnosis: how kernel events are enabled, and how a monitor reads them. One of each
 * pair; without it etwatch tries both. */
enum etwatch_session_way {
    ETWATCH_SESSION_BY_FLAGS = 1u << 0,     /* flags of the session: every Windows */
    ETWATCH_SESSION_BY_PROVIDERS = 1u << 1, /* system providers: Windows 11, Server 2022 */
    ETWATCH_SESSION_BY_EVENTS = 1u << 2,    /* event by event: every Windows */
    ETWATCH_SESSION_BY_BUFFERS = 1u << 3,   /* whole buffers, where Windows has them */
};

struct etwatch_session_options {
    uint32_t size;
    uint32_t buffer_kb;    /* 4 to 16384; 0 = 64 */
    uint32_t min_buffers;  /* 0 = eight a CPU, as far as memory_bytes allows */
    uint32_t max_buffers;  /* 0 = sixteen a CPU, at least 64, likewise */
    uint32_t flush_ms;     /* how long events may stay in a buffer, 1 to 60000; 0 = 100 */
    uint32_t profile_hz;   /* samples of "profile" a second, 1 to 8000, which enables it; the rate
                              applies to the machine and is restored at the end; 0 = unchanged */
    uint64_t memory_bytes; /* limit of the buffers, unless their number is given; 0 = 64 MiB */
    const char *name;      /* prefixed with "etwatch-" if it is not; NULL = by purpose */
    const char *kernel;    /* kinds of kernel events: "process,thread,cswitch"; NULL = as needed */
    const char *stacks;    /* those of them that have a stack; NULL = none */
    const struct etwatch_provider *providers; /* the `size` of the first is the stride of all */
    uint32_t provider_count;                  /* at most 64 */
    uint32_t ways;                            /* enum etwatch_session_way; 0 = automatic */
    /* Recorder only: cycles, instructions and cache_misses to record with every context switch;
     * other members are ignored. A monitor enables the counters that its metrics need. */
    struct etwatch_metric_set counters;
};

/* The kinds of kernel events by name: "process", "thread", …; NULL after the last. The names of
 * Windows ("EVENT_TRACE_FLAG_PROCESS") are accepted too. */
ETWATCH_API const char *etwatch_session_kernel_name(uint32_t index);

/*
 * Changes the kinds of kernel events of a running monitor with an own session, and those with
 * stacks (NULL: unchanged; "": none). Processes and threads are always enabled. Metrics that need
 * the disabled events become unknown. ENOTSUP: another source; ESTATE: not running, the session
 * belongs to another program, or in a callback of the monitor; EINVAL: unknown kind.
 */
ETWATCH_API int etwatch_monitor_set_kernel(struct etwatch_monitor *monitor, const char *kernel,
                                           const char *stacks, struct etwatch_error_info *reterr);

/* -------------------------------------------------------------- recordings of ETW */

struct etwatch_recorder;

struct etwatch_recorder_stats {
    uint32_t size;
    uint32_t running; /* 0: the session was stopped, by us or by another program */
    uint64_t duration_ns;
    uint64_t file_bytes;
    uint64_t events_lost;  /* no buffer was free */
    uint64_t buffers_lost; /* could not be written */
    uint64_t buffers_written;
};

/*
 * ETW itself writes a recording of the whole machine into a file, which is replaced. The file is
 * opened before the session starts; if that fails no new file is left behind. options may be NULL.
 * EPERM, ELIMIT, ESTATE, EINVAL, ENOTSUP: the message has the reason.
 */
ETWATCH_API int etwatch_recorder_start(const char *path,
                                       const struct etwatch_session_options *options,
                                       struct etwatch_recorder **ret_recorder,
                                       struct etwatch_error_info *reterr);
ETWATCH_API int etwatch_recorder_stats(struct etwatch_recorder *recorder,
                                       struct etwatch_recorder_stats *ret_stats);
/* Why a requested counter is not in the recording; NULL: it is, or was not requested. Valid as long
 * as the recorder. */
ETWATCH_API const char *etwatch_recorder_unavailable_reason(const struct etwatch_recorder *recorder,
                                                            uint32_t metric);
/* Ends the session; the file is then complete. Safe to call twice. */
ETWATCH_API int etwatch_recorder_stop(struct etwatch_recorder *recorder);
/* Stops if it runs, and frees. NULL is fine. */
ETWATCH_API void etwatch_recorder_free(struct etwatch_recorder *recorder);

/* ------------------------------------------------------------------- all sessions */

enum etwatch_session_flag {
    ETWATCH_SESSION_OURS = 1u << 0,      /* named "etwatch" or "etwatch-…" */
    ETWATCH_SESSION_SYSTEM = 1u << 1,    /* a system logger: kernel events */
    ETWATCH_SESSION_REAL_TIME = 1u << 2, /* can be read with etwatch_config.session */
    ETWATCH_SESSION_ORPHAN = 1u << 3,    /* one of ours without a running program */
};

struct etwatch_session_info {
    uint32_t size;
    uint32_t flags;   /* enum etwatch_session_flag */
    const char *name; /* UTF-8 */
    uint32_t buffer_kb;
    uint32_t min_buffers, max_buffers;
    uint32_t buffers, free_buffers; /* now */
    uint32_t buffers_written;
    uint32_t events_lost;            /* no buffer was free */
    uint32_t buffers_lost;           /* could not be written */
    uint32_t real_time_buffers_lost; /* not read in time */
    uint32_t log_mode;               /* Windows flags */
    uint32_t clock;                  /* 1 performance counter, 2 system time, 3 CPU cycles */
    uint32_t kernel_flags;           /* Windows flags */
    uint32_t flush_s;                /* 0: Windows decides */
    const char *file;                /* its output; "" if none */
    const char *kernel;              /* kernel_flags by name: "process,cswitch"; "" if none */
};

/* Calls on_session for each; returns their number. EPERM: missing rights. */
ETWATCH_API int etwatch_session_list(void (*on_session)(void *ctx,
                                                        const struct etwatch_session_info *info),
                                     void *ctx, struct etwatch_error_info *reterr);
/* Stops sessions of etwatch without a running program; returns their number. Never touches others.
 */
ETWATCH_API int etwatch_session_cleanup(struct etwatch_error_info *reterr);

#ifdef __cplusplus
}
#endif

#endif
