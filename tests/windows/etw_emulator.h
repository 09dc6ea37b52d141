/* SPDX-License-Identifier: MIT */
/*
 * An ETW for tests: sessions by name, with the limits and rights of Windows, and events from a
 * recording or a generator, handed over as ETW does. It is put in the place of the real functions
 * by the table that it fills, and by nothing else.
 */
#ifndef ETW_EMULATOR_H
#define ETW_EMULATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "source/etw/api.h"

struct etw_emulator;

/* 2026-01-01, as recordings of our writer have it: the machine's counter was 0 then. */
#define ETW_EMULATOR_START_FILETIME INT64_C(134116992000000000)

struct etw_emulator_config {
    uint32_t os_build;                         /* 0: 22631, Windows 11 */
    uint32_t cpu_count;                        /* 0: 4 */
    uint32_t max_sessions, max_system_loggers; /* 0: 64, 8, two of which are not for everybody */
    bool no_rights;                            /* access is denied */
    bool no_privilege;                         /* SeSystemProfilePrivilege is missing */
    uint32_t clock;                            /* 0: 1, QPC */
    uint64_t perf_frequency;                   /* 0: 10 MHz */
    uint32_t cpu_mhz;                          /* 0: 2000 */
    uint64_t start_raw;                        /* of a session that counts cycles */
    bool real_time; /* time is the machine's own; else it is that of the last event */

    /* What a session yields. A recording (each opening gets it from the beginning) … */
    const void *recording;
    size_t recording_size;
    uint64_t move_ticks; /* all its times are so much later (see etw_move.h) */
    bool to_now;         /* or: it begins when it is played */
    uint64_t now_ns;     /* without real_time: before the first event */
    /* … or this many switches a CPU, made up, rate_hz in all (0: as fast as can be). */
    uint64_t generate;
    uint64_t rate_hz;

    bool offers_buffers; /* whole buffers can be had, as from Windows 11 on */
    bool
        session_buffers; /* events wait in the session's buffers, whole or not: see etw_buffers.h */
    uint32_t pause_ms;   /* whoever hands over sleeps so long before each buffer */
    uint32_t hold; /* events are handed over in so many at a time, each after a FLUSH; 0: at once */
    uint64_t lose_every;         /* of so many events one is lost; 0: none */
    bool lose_marks;             /* and the stream says where */
    uint64_t lose_from, lose_to; /* the events with these numbers are lost (from 1 on) */
    uint64_t stop_after; /* somebody stops the session after so many events of it; 0: nobody */
    uint32_t stop_times; /* so often */
    const struct ew_winpoll_system *processes; /* who lists them; NULL: nobody */
    /* Sources of hardware counters by name, the last one NULL; their numbers are 100, 101, … NULL:
     * Windows does not know what that is. */
    const char *const *sources;
    uint32_t max_counters;  /* more are refused; 0: 4 */
    bool counters_busy;     /* all are */
    bool counters_once;     /* only the first session gets them */
    bool no_counted_events; /* counters can be chosen, but not with switches */
    bool stuck_session;     /* a session cannot be stopped by name */
    bool knows_owners;      /* names can be claimed, until etw_emulator_kill */
};

struct etw_emulator *etw_emulator_new(const struct etw_emulator_config *config);
void etw_emulator_free(struct etw_emulator *emulator);
const struct ew_etw_api *etw_emulator_api(struct etw_emulator *emulator);

/* A session as if somebody else had made it. */
void etw_emulator_add(struct etw_emulator *emulator, const char *name, uint32_t log_mode,
                      uint32_t enable_flags);
/* Every process but the one that goes on is gone, however it ended: its sessions stay. */
void etw_emulator_kill(struct etw_emulator *emulator);
/* The one registered provider. */
#define ETW_EMULATOR_PROVIDER "Emulated-Provider"
extern const uint8_t etw_emulator_provider_guid[16];
void etw_emulator_set_rights(struct etw_emulator *emulator, bool no_rights, bool no_privilege);

/* All that is to come has been handed over (by one opening). */
bool etw_emulator_done(struct etw_emulator *emulator);
uint64_t etw_emulator_now_ns(struct etw_emulator *emulator);

struct etw_emulator_counts {
    uint32_t sessions, ours;  /* now */
    uint32_t starts, stops;   /* ever */
    uint64_t delivered, lost; /* events */
    uint64_t last_ns;         /* of the last one */
    uint32_t flushes;
    uint64_t buffers; /* handed over whole */
    uint32_t profile_interval_100ns;
};
void etw_emulator_counts(struct etw_emulator *emulator, struct etw_emulator_counts *ret_counts);

struct etw_emulator_session {
    uint32_t buffer_kb, min_buffers, max_buffers, log_mode, enable_flags, stack_count;
    uint64_t keywords; /* of all providers that are on, together */
    uint32_t providers, filters;
    uint32_t counters[8], counter_count; /* numbers of sources */
    bool counted_switches;
};
/* False: there is none. */
bool etw_emulator_session(struct etw_emulator *emulator, const char *name,
                          struct etw_emulator_session *ret_session);

#endif
