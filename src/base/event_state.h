/* SPDX-License-Identifier: MIT */
/* How much of an event is known, as outputs name it: every output has the same three words. */
#ifndef EW_BASE_EVENT_STATE_H
#define EW_BASE_EVENT_STATE_H

#include <etwatch/trace.h>

/* flags: of enum etwatch_trace_event_flag. */
static inline uint32_t ew_event_state(uint32_t flags)
{
    return (flags & ETWATCH_TRACE_DECODED) != 0 ? ETWATCH_CLASS_DECODED
           : (flags & ETWATCH_TRACE_NAMED) != 0 ? ETWATCH_CLASS_PARTLY
                                                : ETWATCH_CLASS_RAW;
}

/* NULL: a state of a later version. */
static inline const char *ew_event_state_name(uint32_t state)
{
    return state == ETWATCH_CLASS_DECODED  ? "decoded"
           : state == ETWATCH_CLASS_PARTLY ? "partly"
           : state == ETWATCH_CLASS_RAW    ? "raw"
                                           : NULL;
}

#endif
