/* SPDX-License-Identifier: MIT */
/*
 * ETW sessions: what ours is to log and how, recordings that ETW writes itself, which sessions this
 * machine has, and ending those that etwatch left behind. Only on Windows; elsewhere every call
 * that needs a session returns ETWATCH_ENOTSUP. The rules of etwatch.h hold.
 */
#ifndef ETWATCH_SESSION_H
#define ETWATCH_SESSION_H

#include <etwatch/etwatch.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------ a session of ours */

/* Events of a program or component: one with a manifest, of TraceLogging or an EventSource. */
struct etwatch_provider {
    uint32_t size;
    uint32_t level; /* 1 critical to 5 verbose, up to 255; 0 = 5 */
    /* Its registered name ("Microsoft-Windows-Kernel-File"), its GUID, or a star and the name that
     * its GUID is made from ("*MyCompany.MyComponent"). */
    const char *name;
    uint64_t keywords;    /* any of them; 0 = all */
    const uint32_t *pids; /* only of these processes, at most 8; what they fork is not meant */
    uint32_t pid_count;
    uint32_t event_id_count;
    const uint16_t *event_ids; /* only these events, at most 64 */
};

struct etwatch_session_options {
    uint32_t size;
    uint32_t buffer_kb;    /* 4 to 16384; 0 = 64 */
    uint32_t min_buffers;  /* 0 = eight a CPU, as far as memory_bytes allows */
    uint32_t max_buffers;  /* 0 = sixteen a CPU, at least 64, likewise */
    uint32_t flush_ms;     /* how long events may stay in a buffer, 1 to 60000; 0 = 100 */
    uint32_t profile_hz;   /* samples of "profile" a second, 1 to 8000, and switches it on; the rate
                              is the machine's, and put back at the end; 0 = as it is */
    uint64_t memory_bytes; /* that the buffers may take, unless their number is given; 0 = 64 MiB */
    const char *name;      /* "etwatch-" is put before it unless it begins so; NULL = by purpose */
    const char
        *kernel; /* kinds of kernel events: "process,thread,cswitch"; NULL = what is needed */
    const char *stacks; /* those of them that come with a stack; NULL = none */
    const struct etwatch_provider *providers; /* each as large as the size of the first */
    uint32_t provider_count;                  /* at most 64 */
    uint32_t reserved;
    /* Recorder only: cycles, instructions and cache_misses to record with every context switch;
     * other members are ignored. A monitor enables the counters that its metrics need. */
    struct etwatch_metric_set counters;
};

/* The kinds of kernel events by name: "process", "thread", …; NULL after the last. The names that
 * Windows has for them ("EVENT_TRACE_FLAG_PROCESS") are understood too. */
ETWATCH_API const char *etwatch_session_kernel_name(uint32_t index);

/*
 * While a monitor runs on a session of ours: from now on these kinds of kernel events, those with
 * stacks (NULL: as they are; "": none). Processes and threads always are. What is no longer told is
 * unknown from then on. ENOTSUP: another
 * source; ESTATE: not running, or the session is not ours; EINVAL: names an unknown kind.
 */
ETWATCH_API int etwatch_monitor_set_kernel(struct etwatch_monitor *monitor, const char *kernel,
                                           const char *stacks, struct etwatch_error_info *reterr);

/* -------------------------------------------------------------- recordings of ETW */

struct etwatch_recorder;

struct etwatch_recorder_stats {
    uint32_t size;
    uint32_t running; /* 0: the session is over, by us or by somebody else */
    uint64_t duration_ns;
    uint64_t file_bytes;
    uint64_t events_lost;  /* no buffer was free */
    uint64_t buffers_lost; /* could not be written */
    uint64_t buffers_written;
};

/*
 * ETW itself writes a recording of the whole machine into a file, which is replaced. The file is
 * opened before anything is started, and if nothing can be started a new one is not left behind.
 * options may be NULL. EPERM, ELIMIT, ESTATE, EINVAL, ENOTSUP as the message says.
 */
ETWATCH_API int etwatch_recorder_start(const char *path,
                                       const struct etwatch_session_options *options,
                                       struct etwatch_recorder **ret_recorder,
                                       struct etwatch_error_info *reterr);
ETWATCH_API int etwatch_recorder_stats(struct etwatch_recorder *recorder,
                                       struct etwatch_recorder_stats *ret_stats);
/* Why a counter that was asked for is not in the recording; NULL: it is, or was not asked for. As
 * long as the recorder. */
ETWATCH_API const char *etwatch_recorder_unavailable_reason(const struct etwatch_recorder *recorder,
                                                            uint32_t metric);
/* Ends the session; everything is in the file then. Safe to call twice. */
ETWATCH_API int etwatch_recorder_stop(struct etwatch_recorder *recorder);
/* Stops if need be. NULL is fine. */
ETWATCH_API void etwatch_recorder_free(struct etwatch_recorder *recorder);

/* ------------------------------------------------------------------- all sessions */

enum etwatch_session_flag {
    ETWATCH_SESSION_OURS = 1u << 0,      /* by its name: "etwatch", "etwatch-…" */
    ETWATCH_SESSION_SYSTEM = 1u << 1,    /* a system logger: kernel events */
    ETWATCH_SESSION_REAL_TIME = 1u << 2, /* can be read with etwatch_config.session */
    ETWATCH_SESSION_ORPHAN = 1u << 3,    /* one of ours that nobody uses any more */
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
    uint32_t real_time_buffers_lost; /* nobody read them in time */
    uint32_t log_mode;               /* as Windows has it */
    uint32_t clock;                  /* 1 performance counter, 2 system time, 3 CPU cycles */
    uint32_t kernel_flags;           /* as Windows has them */
    uint32_t flush_s;                /* 0: Windows decides */
    const char *file;                /* that it writes; "" if none */
    const char *kernel;              /* the same by name: "process,cswitch"; "" if none */
};

/* Calls on_session for each; returns their number. EPERM: missing rights. */
ETWATCH_API int etwatch_session_list(void (*on_session)(void *ctx,
                                                        const struct etwatch_session_info *info),
                                     void *ctx, struct etwatch_error_info *reterr);
/* Ends those of ours that nobody uses any more; returns how many. Others are never touched. */
ETWATCH_API int etwatch_session_cleanup(struct etwatch_error_info *reterr);

#ifdef __cplusplus
}
#endif

#endif
