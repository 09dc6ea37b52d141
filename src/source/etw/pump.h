/* SPDX-License-Identifier: MIT */
/*
 * The two threads of a live session: one that ETW calls with every event, one that asks for them.
 * They belong to one opening of one session; after a restart there are others.
 */
#ifndef EW_SOURCE_ETW_PUMP_H
#define EW_SOURCE_ETW_PUMP_H

#include <stdbool.h>
#include <stdint.h>

#include "source/etw/controller.h"
#include "source/etw/rings.h"

struct ew_etw_pump;

struct ew_etw_pump_config {
    const struct ew_etw_api *api;
    const char *name;               /* of the session */
    struct ew_etw_session *session; /* NULL: not ours, only read */
    struct ew_etw_rings *rings;
    uint32_t flush_ms;
    uint64_t lag_ns; /* not ours: how long events may be on their way */
    bool no_buffers; /* event by event, even where whole buffers are offered */
};

int ew_etw_pump_start(const struct ew_etw_pump_config *config,
                      struct ew_etw_logfile_header *ret_header, struct ew_etw_pump **ret_pump,
                      struct ew_error *reterr);
/* Asks no more: from now on nobody else uses the session. */
void ew_etw_pump_quiet(struct ew_etw_pump *pump);
/* The session is to be halted first if it is ours: what it has is then put before this returns. */
void ew_etw_pump_stop(struct ew_etw_pump *pump);

/* Whole buffers come, and not events one by one. */
bool ew_etw_pump_has_buffers(const struct ew_etw_pump *pump);
/* The session is over, and all it had has been put. */
bool ew_etw_pump_ended(const struct ew_etw_pump *pump);

struct ew_etw_news {
    uint64_t horizon_ns; /* what happened before has been put */
    uint64_t lost;       /* by the session, in all ... */
    uint64_t lost_ns;    /* ... as of then */
};
void ew_etw_pump_news(struct ew_etw_pump *pump, struct ew_etw_news *ret_news);

#endif
