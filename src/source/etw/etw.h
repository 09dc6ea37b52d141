/* SPDX-License-Identifier: MIT */
/* Live ETW from the inside: small pieces that controller.c, consumer.c and live.c share. */
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

/* EVENT_TRACE_PROPERTIES with room behind it for the names that Windows writes there. */

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

/* From what a user calls a provider to its GUID. */

/* A GUID in its usual form, a name that the machine or we know (in any case), or a star and a name
 * that the GUID is made from. EINVAL: nobody knows it. */
int ew_provider_find(const struct ew_etw_api *api, const char *name, uint8_t ret_guid[16],
                     struct ew_error *reterr);
/* The GUID that EventSource and TraceLogging make from a name. False: not valid UTF-8. */
bool ew_provider_hash(const char *name, uint8_t ret_guid[16]);

/* ------------------------------------------------------------------------------- pump */

/*
 * The two threads of a live session: one that ETW calls with every event, one that asks for them.
 * They belong to one opening of one session; after a restart there are others.
 */

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

/* --------------------------------------------------------------------- startup_buffer */

/*
 * The first records of a live session, kept until it has told who is there. A recording can be read
 * twice to know that from the beginning; of a session the beginning is kept and gone through twice.
 */

struct ew_startup_buffer {
    struct ew_record *records;
    uint32_t count, room;
    uint8_t *bytes; /* of the records; their pointers are offsets into it until ew_opening_end */
    uint64_t size, bytes_room;
};

/* Takes a copy. False: no room for more, or no memory; it is not kept. */
bool ew_startup_buffer_add(struct ew_startup_buffer *buffer, const struct ew_record *record);
/* No more will be kept: from now on records can be read. */
void ew_startup_buffer_end(struct ew_startup_buffer *buffer);
void ew_startup_buffer_done(struct ew_startup_buffer *buffer);

/* ------------------------------------------------------------------ process_list_sync */

/*
 * What is read beside the events of a live session: the list of all processes, once a second.
 *
 * It has what no event carries (memory, pools, handles, objects of the desktop, and in which mode
 * the clock's ticks found a process), which is told of those that ran; and after a loss of events
 * it says who is there, so that whoever came or went unnoticed is found again.
 *
 * A list is as of the moment at which it was made, while events come later than they happen: it
 * waits until they have come that far.
 */

struct ew_list_sync;

/* The system is closed with it, also if this fails. begun_ns: since then events tell who comes. */
int ew_list_sync_new(const struct ew_winpoll_system *system, uint64_t begun_ns,
                     struct ew_list_sync **ret_list_sync);
void ew_list_sync_free(struct ew_list_sync *list_sync); /* may be NULL */

/* Makes a list if it is time for one and none waits. Returns when it, or the one that waits, was
 * made; UINT64_MAX: there is none. */
uint64_t ew_list_sync_read(struct ew_list_sync *list_sync, uint64_t now_ns);
/* Events up to the list's time have been added up: tells what it says. */
void ew_list_sync_emit(struct ew_list_sync *list_sync, struct ew_tally *tally,
                       const struct ew_facts *facts);
/* Events were lost up to here. */
void ew_list_sync_note_loss(struct ew_list_sync *list_sync, uint64_t t_ns);

/* The metrics that it adds; valid as long as list_sync. */
const struct etwatch_metric_set *ew_list_sync_available(const struct ew_list_sync *list_sync);
/* It tells cycles too, where the list has them. False: it has not. */
bool ew_list_sync_count_cycles(struct ew_list_sync *list_sync);

#endif
