/* SPDX-License-Identifier: MIT */
/*
 * Sessions: making ours, changing it, ending it, and looking at all there are.
 *
 * A session outlives the process that made it, so ours have fixed names: whoever finds one that was
 * left behind knows it, ends it and makes a new one. Others are never touched, and the NT Kernel
 * Logger never used. Only EW_ETW_OURS and names that begin with it and a dash are ours.
 *
 * One that somebody of ours still uses is no orphan: who comes later has a number behind the name.
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
enum { EW_ETW_NAME_MAX = 128 }; /* bytes of UTF-8, with the end */

/* A provider with a manifest or of TraceLogging. */
struct ew_etw_provider {
    uint8_t guid[16];
    uint8_t level;     /* 0: 5, verbose */
    uint64_t keywords; /* 0: all */
    const uint32_t *pids;
    uint32_t pid_count; /* at most 8 */
    const uint16_t *event_ids;
    uint32_t event_id_count; /* at most 64 */
};

struct ew_etw_session_config {
    const char *name;       /* NULL: "etwatch-watch"; must be ours */
    uint32_t kernel;        /* enum ew_etw_kernel; 0: EW_ETW_KERNEL_WATCH */
    uint32_t stacks;        /* the same: those whose events get a stack */
    uint32_t buffer_kb;     /* 0: 64; 4 to 16384 */
    uint32_t min_buffers;   /* 0: by CPUs */
    uint32_t max_buffers;   /* 0: by CPUs and memory */
    uint64_t memory_bytes;  /* that buffers may take at most; 0: 64 MiB */
    uint32_t profile_100ns; /* 0: as it is; else set, and restored at the end */
    const char *file;       /* ETW writes this recording itself; NULL: real time */
    const struct ew_etw_provider *providers;
    uint32_t provider_count;
    uint32_t counters; /* EW_HAS_PMC: hardware counters that switches are to carry */
};

struct ew_etw_session;

/*
 * Starts a session. EPERM: not the rights (5) or not the privilege (1314); ELIMIT: all system
 * loggers are taken (1450); ESTATE: one of this name is there and cannot be ended (183); EINVAL:
 * refused by Windows (87), or by us; EOS otherwise. os_code has the code of Windows, fix what
 * helps.
 */
int ew_etw_session_start(const struct ew_etw_api *api, const struct ew_etw_session_config *config,
                         struct ew_etw_session **ret_session, struct ew_error *reterr);
/* Ends and frees it, and puts back what was changed machine-wide. */
void ew_etw_session_stop(struct ew_etw_session *session);
/* Ends it but keeps it: it can be started again. */
void ew_etw_session_halt(struct ew_etw_session *session);
int ew_etw_session_restart(struct ew_etw_session *session, struct ew_error *reterr);

/* From now on these kernel events. */
int ew_etw_session_set_kernel(struct ew_etw_session *session, uint32_t kernel,
                              struct ew_error *reterr);
/* From now on these come with a stack; the same set as above. */
int ew_etw_session_set_stacks(struct ew_etw_session *session, uint32_t stacks,
                              struct ew_error *reterr);
int ew_etw_session_flush(struct ew_etw_session *session);
/* What the session tells of itself; after its end: as of then. False: it is over, and what is told
 * is what it told last. */
struct ew_etw_totals {
    uint32_t events_lost, log_buffers_lost, real_time_buffers_lost, buffers_written, buffer_kb;
};
bool ew_etw_session_totals(struct ew_etw_session *session, struct ew_etw_totals *ret_totals);
/* Events and buffers that the session lost since it was started, as far as Windows tells. After its
 * end: as of then. */
uint64_t ew_etw_session_lost(struct ew_etw_session *session);
const char *ew_etw_session_name(const struct ew_etw_session *session);
uint32_t ew_etw_session_kernel(const struct ew_etw_session *session);
/* What its switches carry, and why not what else they were to carry; as of its last start. */
const struct ew_etw_pmc *ew_etw_session_pmc(const struct ew_etw_session *session);
/* Whether another took the place of one that was left behind. */
bool ew_etw_session_took_over(const struct ew_etw_session *session);

/* ------------------------------------------------------------------- all of them */

struct ew_etw_session_info {
    char name[4 * EW_ETW_NAME_MAX];
    char file[1024]; /* "": none; cut if it is longer */
    bool ours, orphan, system_logger, real_time;
    uint32_t buffer_kb, min_buffers, max_buffers, buffers, free_buffers, buffers_written;
    uint32_t events_lost, log_buffers_lost, real_time_buffers_lost;
    uint32_t log_mode, flush_s, clock, kernel_flags;
};

bool ew_etw_is_ours(const char *name);
/* One by name: ENOENT if there is none. */
int ew_etw_session_query(const struct ew_etw_api *api, const char *name,
                         struct ew_etw_session_info *ret_info, struct ew_error *reterr);
/* Calls on_session for each; returns their number or an error. */
int ew_etw_session_list(const struct ew_etw_api *api,
                        void (*on_session)(void *ctx, const struct ew_etw_session_info *info),
                        void *ctx, struct ew_error *reterr);
/* Ends those of ours that nobody uses any more; returns how many. */
int ew_etw_session_cleanup(const struct ew_etw_api *api, struct ew_error *reterr);

/* Names in UTF-16, for whoever opens a session. False: not valid, or too long. */
bool ew_etw_wide_name(const char *name, uint16_t ret_wide[EW_ETW_NAME_MAX]);
/* Code and words for a failed call of Windows. */
int ew_etw_fail(struct ew_error *reterr, uint32_t os_code, const char *what, const char *name);

/* recorder.c, session_list.c: the public calls on a given table of functions. */
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
