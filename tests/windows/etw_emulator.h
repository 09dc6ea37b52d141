/* SPDX-License-Identifier: MIT */
/*
 * An ETW for tests: sessions by name, with the limits and rights of Windows, and events from a
 * recording or a generator, delivered as ETW does. It replaces the real functions through the table
 * that it fills, and in no other way.
 *
 * It follows Microsoft's documentation, not our expectations: a session gets only the events that
 * its flags or keywords enable (etw_gates.h), handles are slot numbers that are reused, a name wins
 * over a handle, flags in an UPDATE count for the NT Kernel Logger only. Every call can be made to
 * fail (fault), and what Windows does not promise can be taken away one by one.
 */
#ifndef ETW_EMULATOR_H
#define ETW_EMULATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "source/etw/api.h"

struct etw_emulator;

/* The calls that can fail. */
enum etw_call {
    ETW_CALL_NONE,
    ETW_CALL_START,
    ETW_CALL_QUERY,
    ETW_CALL_STOP,
    ETW_CALL_FLUSH,
    ETW_CALL_ENABLE,
    ETW_CALL_SET_INFORMATION,
    ETW_CALL_QUERY_INFORMATION,
    ETW_CALL_QUERY_ALL,
    ETW_CALL_OPEN,
    ETW_CALL_OPEN_BUFFERS,
    ETW_CALL_PROCESS,
    ETW_CALL_CLOSE,
    ETW_CALL_PRIVILEGE,
    ETW_CALL_COUNT,
};

/* 2026-01-01, as in recordings of the test writer: the machine's counter was 0 at that time. */
#define ETW_EMULATOR_START_FILETIME INT64_C(134116992000000000)

struct etw_emulator_config {
    uint32_t os_build;       /* 0: 22631, Windows 11 */
    uint32_t cpu_count;      /* 0: 4 */
    uint32_t max_sessions;   /* 0: 64 */
    bool loggers_in_use;     /* "Logger 1" to "Logger 6": all that are not reserved */
    bool no_rights;          /* access is denied */
    bool no_privilege;       /* SeSystemProfilePrivilege is missing */
    uint32_t clock;          /* 0: 1, QPC */
    uint64_t perf_frequency; /* 0: 10 MHz */
    uint32_t cpu_mhz;        /* 0: 2000 */
    uint64_t start_raw;      /* of a session that counts cycles */
    bool real_time;          /* time is real time; otherwise it is that of the last event */

    /* The events of a session. A recording (each open reads it from the beginning) … */
    const void *recording;
    size_t recording_size;
    uint64_t move_ticks; /* all its times are shifted by this much (see etw_move.h) */
    bool to_now;         /* or: it begins when it is played */
    uint64_t now_ns;     /* without real_time: before the first event */
    /* … or this many generated switches per CPU, rate_hz in total (0: as fast as possible). */
    uint64_t generate;
    uint64_t rate_hz;

    bool offers_buffers; /* whole buffers are available, as since Windows 11 */
    bool
        session_buffers; /* events wait in the session's buffers, whole or not: see etw_buffers.h */
    uint32_t pause_ms;   /* the delivering thread sleeps this long before each buffer */
    uint32_t
        hold; /* events are delivered in groups of this size, each after a FLUSH; 0: all at once */
    uint64_t lose_every;         /* one of this many events is lost; 0: none */
    bool lose_marks;             /* and the stream marks the position */
    uint64_t lose_from, lose_to; /* the events with these numbers are lost (from 1) */
    uint64_t stop_after; /* the session is stopped from outside after this many of its events; 0:
                            never */
    uint32_t stop_times; /* this many times */
    const struct ew_winpoll_system *processes; /* the emulated process list; NULL: empty */
    /* Sources of hardware counters by name, the last entry is NULL; their numbers are 100, 101, …
     * NULL: this Windows does not support the query. */
    const char *const *sources;
    uint32_t max_counters;  /* more counters are refused; 0: 4 */
    bool counters_busy;     /* all counters are refused */
    bool counters_once;     /* only the first session gets them */
    bool no_counted_events; /* counters can be set, but not with switches */
    bool stuck_session;     /* a session that is added cannot be stopped */
    bool knows_owners;      /* names can be claimed, until etw_emulator_kill */

    struct {
        uint32_t call, code; /* enum etw_call fails with this Windows error code … */
        uint32_t after;      /* … after this many calls that work … */
        uint32_t times;      /* … this many times; 0: always */
    } fault;
    /* Not the session decides what it gets, but the group mask that the recording itself has: what
     * is withheld then proves that a row of etw_gates.c is wrong. Without a mask all is delivered.
     */
    bool own_mask;
    bool flush_dead; /* FLUSH succeeds, but only the timer of the session flushes */
    bool no_rundown; /* preexisting processes and threads are not logged at the start … */
    uint32_t late_rundown_ms; /* … or this late */
    bool rundown_at_stop;     /* they are logged again when the session stops (DCEnd) */
    uint32_t start_delay_ms;  /* a session logs nothing for this long after StartTrace */
    uint32_t slow_cpu_ms;     /* full buffers of CPU 0 come this much later than others */
    bool mute_buffers;        /* whole buffers are promised, but none comes … */
    bool buffers_end;         /* … or ProcessTrace returns at once */
    bool deaf_process;      /* ProcessTrace goes on after its session has ended, until CloseTrace */
    bool dead_process;      /* … and even after that, until etw_emulator_free */
    bool empty_lost_buffer; /* the first buffer is empty and flagged as a loss */
    bool slot_is_reused;    /* the slot of a session that is stopped goes to "Foreign" */
    uint32_t stop_takes;    /* a stopped session exists for so many more calls of StartTrace */
    uint32_t memory_buffers; /* more buffers do not fit into memory; 0: they do */
};

struct etw_emulator *etw_emulator_new(const struct etw_emulator_config *config);
void etw_emulator_free(struct etw_emulator *emulator);
const struct ew_etw_api *etw_emulator_api(struct etw_emulator *emulator);

/* Adds a session as if another program had made it. */
void etw_emulator_add(struct etw_emulator *emulator, const char *name, uint32_t log_mode,
                      uint32_t enable_flags);
/* All processes except the running one are gone, however they ended: their sessions remain. */
void etw_emulator_kill(struct etw_emulator *emulator);
/* The one registered provider. */
#define ETW_EMULATOR_PROVIDER "Emulated-Provider"
extern const uint8_t etw_emulator_provider_guid[16];
void etw_emulator_set_rights(struct etw_emulator *emulator, bool no_rights, bool no_privilege);

/* Everything has been delivered (by one open). */
bool etw_emulator_done(struct etw_emulator *emulator);
uint64_t etw_emulator_now_ns(struct etw_emulator *emulator);

struct etw_emulator_counts {
    uint32_t sessions, ours;  /* currently */
    uint32_t starts, stops;   /* in total */
    uint64_t delivered, lost; /* events */
    uint64_t last_ns;         /* of the last session */
    uint32_t flushes;
    uint64_t buffers; /* delivered whole */
    uint32_t profile_interval_100ns;
    uint32_t layouts;         /* queried */
    uint32_t foreign_changes; /* calls that changed a session that is not ours */
    uint32_t calls[ETW_CALL_COUNT];
};
void etw_emulator_counts(struct etw_emulator *emulator, struct etw_emulator_counts *ret_counts);

struct etw_emulator_session {
    uint32_t buffer_kb, min_buffers, max_buffers, log_mode, enable_flags, stack_count;
    uint64_t keywords; /* of all enabled providers together, ever */
    uint32_t providers, filters, captures;
    uint32_t counters[8], counter_count; /* numbers of sources */
    bool counted_switches;
};
/* False: there is no such session. */
bool etw_emulator_session(struct etw_emulator *emulator, const char *name,
                          struct etw_emulator_session *ret_session);

#endif
