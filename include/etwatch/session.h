/* SPDX-License-Identifier: MIT */
/*
 * ETW sessions of this machine: which there are, and ending those that etwatch left behind. Only on
 * Windows; elsewhere every call returns ETWATCH_ENOTSUP. The rules of etwatch.h hold.
 */
#ifndef ETWATCH_SESSION_H
#define ETWATCH_SESSION_H

#include <etwatch/etwatch.h>

#ifdef __cplusplus
extern "C" {
#endif

enum etwatch_session_flag {
    ETWATCH_SESSION_OURS = 1u << 0,      /* by its name: "etwatch", "etwatch-…" */
    ETWATCH_SESSION_SYSTEM = 1u << 1,    /* a system logger: kernel events */
    ETWATCH_SESSION_REAL_TIME = 1u << 2, /* can be read with etwatch_config.session */
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
};

/* Calls on_session for each; returns their number. EPERM: missing rights. */
ETWATCH_API int etwatch_session_list(void (*on_session)(void *ctx,
                                                        const struct etwatch_session_info *info),
                                     void *ctx, struct etwatch_error_info *reterr);
/* Ends those of ours, whoever uses them; returns how many. Others are never touched. */
ETWATCH_API int etwatch_session_cleanup(struct etwatch_error_info *reterr);

#ifdef __cplusplus
}
#endif

#endif
