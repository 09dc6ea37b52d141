/* SPDX-License-Identifier: MIT */
/* Internal interfaces that controller.c, consumer.c and live.c share. */
#ifndef EW_SOURCE_ETW_ETW_H
#define EW_SOURCE_ETW_ETW_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "model/record.h"
#include "source/etw/api.h"
#include "source/etw/controller.h"
#include "source/etw/rings.h"
#include "source/poll_windows/poll.h"
#include "tally/tally.h"

/* ------------------------------------------------------------------------- properties */

/* EVENT_TRACE_PROPERTIES followed by space for the names that Windows writes. */

enum { EW_ETW_TEXT_UNITS = 1024 };

struct ew_etw_room {
    struct ew_etw_properties properties;
    uint16_t name[EW_ETW_TEXT_UNITS];
    uint16_t file[EW_ETW_TEXT_UNITS];
};

static inline void ew_etw_room_init(struct ew_etw_room *room)
{
    memset(room, 0, sizeof *room);
    room->properties.size = sizeof *room;
    room->properties.wnode_flags = EW_ETW_WNODE_TRACED_GUID;
    room->properties.name_at = offsetof(struct ew_etw_room, name);
    room->properties.file_name_at = offsetof(struct ew_etw_room, file);
}

/* ---------------------------------------------------------------------- provider_name */

/* Finds the GUID of a provider: name is a GUID in its usual form, a registered or built-in name
 * (case is ignored), or '*' and a name from which the GUID is derived. EINVAL: unknown. */
int ew_provider_find(const struct ew_etw_api *api, const char *name, uint8_t ret_guid[16],
                     struct ew_error *reterr);
/* The GUID that EventSource and TraceLogging derive from a name. False: not valid UTF-8. */
bool ew_provider_hash(const char *name, uint8_t ret_guid[16]);

/* ------------------------------------------------------------------------------- pump */

/*
 * The two threads of a live session: ETW calls the first with every event, the second flushes the
 * session. They belong to one open trace of one session; a restart creates new ones.
 */

struct ew_etw_pump;

struct ew_etw_pump_config {
    const struct ew_etw_api *api;
    const char *name;               /* of the session */
    struct ew_etw_session *session; /* NULL: another program's, only read */
    struct ew_etw_rings *rings;
    uint32_t flush_ms;
    uint64_t lag_ns; /* maximum delay of an event if flushing has no effect */
    bool no_buffers; /* single events, even where whole buffers are supported */
};

int ew_etw_pump_start(const struct ew_etw_pump_config *config,
                      struct ew_etw_logfile_header *ret_header, struct ew_etw_pump **ret_pump,
                      struct ew_error *reterr);
/* Ends the flushing thread: afterwards only the caller uses the session. */
void ew_etw_pump_stop_flushing(struct ew_etw_pump *pump);
/*
 * halted: the session has been stopped and ends by itself after all of its events, which are then
 * in the rings when this returns. Otherwise the trace is closed first. False: Windows does not
 * return from ProcessTrace; pump, rings and table must remain valid for ever.
 */
bool ew_etw_pump_stop(struct ew_etw_pump *pump, bool halted);

/* Whole buffers are delivered instead of single events. */
bool ew_etw_pump_has_buffers(const struct ew_etw_pump *pump);
/* The session has ended, and all of its events are in the rings. */
bool ew_etw_pump_ended(const struct ew_etw_pump *pump);

/* The Windows error code with which it has ended. */
uint32_t ew_etw_pump_result(const struct ew_etw_pump *pump);
/* Whole buffers were requested, but none has come: it ended at once, or two seconds have passed. */
bool ew_etw_pump_is_mute(const struct ew_etw_pump *pump);

struct ew_etw_pump_status {
    uint64_t flushed_ns;     /* time of the last but one flush that Windows accepted; 0: none */
    uint64_t arrived_raw;    /* latest time of a buffer or an event that has arrived */
    uint64_t lagging_ns;     /* all earlier events have arrived even if flushing has no effect */
    struct ew_etw_lost lost; /* total lost by the session ... */
    uint64_t lost_ns;        /* ... at this time */
};
void ew_etw_pump_status(struct ew_etw_pump *pump, struct ew_etw_pump_status *ret_status);

/* --------------------------------------------------------------------- startup_buffer */

/*
 * Keeps the first records of a live session until its rundown has listed the preexisting processes.
 * A recording can be read twice to know them from the start; of a session, the start is buffered
 * and processed twice.
 */

struct ew_startup_buffer {
    struct ew_record *records;
    uint32_t count, room;
    uint8_t
        *bytes; /* of the records; until ew_startup_buffer_end, offsets replace their pointers */
    uint64_t size, bytes_room;
};

/* Adds a copy. False: no space left, or no memory; the record is not kept. */
bool ew_startup_buffer_add(struct ew_startup_buffer *buffer, const struct ew_record *record);
/* Ends buffering: the records can be read from now on. */
void ew_startup_buffer_end(struct ew_startup_buffer *buffer);
void ew_startup_buffer_done(struct ew_startup_buffer *buffer);

/* ------------------------------------------------------------------ process_list_sync */

/*
 * Polled gauges of a live session: the list of all processes, read once a second.
 *
 * It has what no event carries (memory, pools, handles, desktop objects, and user and kernel time
 * by clock ticks), which is emitted for processes that ran. After a loss of events it also shows
 * which processes exist, so that starts and ends that were lost are found.
 *
 * A list is as of the moment of reading, while events arrive later than they happen: the list is
 * held back until the events have caught up.
 */

struct ew_etw_list_sync;

/* Takes ownership of system, also on failure. begun_ns: from then on events report starts. */
int ew_etw_list_sync_new(const struct ew_winpoll_system *system, uint64_t begun_ns,
                         struct ew_etw_list_sync **ret_list_sync);
void ew_etw_list_sync_free(struct ew_etw_list_sync *list_sync); /* may be NULL */

/* Learns the processes and threads of the list that was read when it was made, before the tally
 * processes any event. */
void ew_etw_list_sync_seed(const struct ew_etw_list_sync *list_sync, struct ew_tally *tally);

/* Reads a list if one is due and none is pending. Returns the time of the pending list;
 * UINT64_MAX: none. */
uint64_t ew_etw_list_sync_read(struct ew_etw_list_sync *list_sync, uint64_t now_ns);
/* Emits the pending list. The tally must have processed all events up to its time. */
void ew_etw_list_sync_emit(struct ew_etw_list_sync *list_sync, struct ew_tally *tally,
                           const struct ew_facts *facts);
/* Events were lost up to t_ns. */
void ew_etw_list_sync_note_loss(struct ew_etw_list_sync *list_sync, uint64_t t_ns);

/* The metrics that it adds; valid as long as list_sync. */
const struct etwatch_metric_set *
ew_etw_list_sync_available(const struct ew_etw_list_sync *list_sync);
/* Also emits cycles, if the list has them. False: it does not. */
bool ew_etw_list_sync_count_cycles(struct ew_etw_list_sync *list_sync);

#endif
