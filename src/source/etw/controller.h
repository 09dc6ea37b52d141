/* SPDX-License-Identifier: MIT */
/*
 * ETW sessions: starts, changes and stops ours, and lists all.
 *
 * A session outlives the process that started it, so ours have fixed names: the next etwatch
 * recognizes one that was left behind, stops it and starts a new one. Sessions of other programs
 * are never changed, and the NT Kernel Logger is never used. Only the name EW_ETW_OURS and names
 * that begin with it and a dash are ours.
 *
 * A session that a running etwatch uses is not an orphan: later instances append a number to the
 * name. They do so too where an orphan cannot be stopped, because its user had more rights.
 */
#ifndef EW_SOURCE_ETW_CONTROLLER_H
#define EW_SOURCE_ETW_CONTROLLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "source/etw/api.h"
#include "source/etw/kernel.h"
#include "source/etw/pmc.h"

#define EW_ETW_OURS "etwatch"
enum { EW_ETW_NAME_MAX = 128 }; /* bytes of UTF-8, with the terminator */

/* A manifest-based or TraceLogging provider. */
struct ew_etw_provider {
    uint8_t guid[16];
    uint8_t level;     /* 0: 5, verbose */
    uint64_t keywords; /* 0: all */
    const uint32_t *pids;
    uint32_t pid_count; /* at most 8 */
    const uint16_t *event_ids;
    uint32_t event_id_count; /* at most 64 */
};

/* How kernel events are enabled; for tests and diagnosis. */
enum ew_etw_way { EW_ETW_WAY_ANY, EW_ETW_WAY_FLAGS, EW_ETW_WAY_PROVIDERS };

struct ew_etw_session_config {
    const char *name;       /* NULL: "etwatch-watch"; must be one of ours */
    uint32_t kernel;        /* enum ew_etw_kernel; 0: EW_ETW_KERNEL_WATCH */
    uint32_t stacks;        /* likewise: the events that carry a stack */
    uint32_t buffer_kb;     /* 0: 64; 4 to 16384 */
    uint32_t min_buffers;   /* 0: derived from the CPU count */
    uint32_t max_buffers;   /* 0: derived from CPU count and memory */
    uint64_t memory_bytes;  /* memory limit of the buffers; 0: 64 MiB */
    uint32_t profile_100ns; /* 0: unchanged; else set, and restored at the end */
    const char *file;       /* ETW writes this recording itself; NULL: real time */
    const struct ew_etw_provider *providers;
    uint32_t provider_count;
    uint32_t counters; /* EW_HAS_PMC: hardware counters that switches should carry */
    uint32_t way;      /* enum ew_etw_way */
    /* Providers, stacks and profiling may be refused: the session then starts without them. */
    bool optional;
};

struct ew_etw_session;

/*
 * Starts a session. EPERM: missing rights (5) or privilege (1314); ELIMIT: all system loggers or
 * sessions are in use, or there is no memory for the fewest buffers (1450); ESTATE: a session of
 * this name exists and cannot be stopped (183); EINVAL: rejected by Windows (87) or by us; EOS
 * otherwise. os_code is the Windows error code, fix a remedy.
 */
int ew_etw_session_start(const struct ew_etw_api *api, const struct ew_etw_session_config *config,
                         struct ew_etw_session **ret_session, struct ew_error *reterr);
/* Stops and frees it, and restores what was changed machine-wide. */
void ew_etw_session_stop(struct ew_etw_session *session);
/* Stops it but keeps it: it can be restarted. False: Windows refused to stop it. */
bool ew_etw_session_halt(struct ew_etw_session *session);
int ew_etw_session_restart(struct ew_etw_session *session, struct ew_error *reterr);

/* Changes the logged kernel events. */
int ew_etw_session_set_kernel(struct ew_etw_session *session, uint32_t kernel,
                              struct ew_error *reterr);
/* Changes the events that carry a stack; the same set as above. */
int ew_etw_session_set_stacks(struct ew_etw_session *session, uint32_t stacks,
                              struct ew_error *reterr);
int ew_etw_session_flush(struct ew_etw_session *session);
/* The counts of the session; after its end, the last ones. False: it has ended. */
struct ew_etw_totals {
    uint32_t events_lost, log_buffers_lost, real_time_buffers_lost, buffers_written, buffer_kb;
};
bool ew_etw_session_totals(struct ew_etw_session *session, struct ew_etw_totals *ret_totals);
/* What the session lost since it was started, as counted by Windows; after its end, the last
 * count. How many events a lost buffer held is not known. */
struct ew_etw_lost {
    uint64_t events, buffers;
};
struct ew_etw_lost ew_etw_session_lost(struct ew_etw_session *session);
const char *ew_etw_session_name(const struct ew_etw_session *session);
uint32_t ew_etw_session_kernel(const struct ew_etw_session *session);
/* The counters that its switches carry, and why others are missing; as of its last start. */
const struct ew_etw_pmc *ew_etw_session_pmc(const struct ew_etw_session *session);
/* Why the session runs without an optional part, as of its last start; NULL: it has all. */
const struct ew_error *ew_etw_session_refused(const struct ew_etw_session *session);
/* Whether this provider is enabled, as of its last start. */
bool ew_etw_session_has_provider(const struct ew_etw_session *session, const uint8_t guid[16]);
/* Whether a session that was left behind was replaced. */
bool ew_etw_session_took_over(const struct ew_etw_session *session);

/* ------------------------------------------------------------------ all sessions */

struct ew_etw_session_info {
    char name[4 * EW_ETW_NAME_MAX];
    char file[1024]; /* "": none; truncated if too long */
    bool ours, orphan, system_logger, real_time;
    uint32_t buffer_kb, min_buffers, max_buffers, buffers, free_buffers, buffers_written;
    uint32_t events_lost, log_buffers_lost, real_time_buffers_lost;
    uint32_t log_mode, flush_s, clock, kernel_flags;
};

bool ew_etw_is_ours(const char *name);
/* One session by name; ENOENT: there is none. */
int ew_etw_session_query(const struct ew_etw_api *api, const char *name,
                         struct ew_etw_session_info *ret_info, struct ew_error *reterr);
/* Calls on_session for each; returns their number or an error. */
int ew_etw_session_list(const struct ew_etw_api *api,
                        void (*on_session)(void *ctx, const struct ew_etw_session_info *info),
                        void *ctx, struct ew_error *reterr);
/* Stops our sessions that no process uses any more; returns their number. */
int ew_etw_session_cleanup(const struct ew_etw_api *api, struct ew_error *reterr);

/* Converts a name to UTF-16. False: not valid, or too long. */
bool ew_etw_wide_name(const char *name, uint16_t ret_wide[EW_ETW_NAME_MAX]);
/* Error code and message for a failed Windows call. */
int ew_etw_fail(struct ew_error *reterr, uint32_t os_code, const char *what, const char *name);

/* recorder.c, session_list.c: the public functions with a given table. */
struct etwatch_recorder;
struct etwatch_session_options;
struct etwatch_session_info;
int ew_recorder_start(const struct ew_etw_api *api, const char *path,
                      const struct etwatch_session_options *options,
                      struct etwatch_recorder **ret_recorder, struct ew_error *reterr);
int ew_sessions_list(const struct ew_etw_api *api,
                     void (*on_session)(void *ctx, const struct etwatch_session_info *info),
                     void *ctx, struct ew_error *reterr);

#endif
