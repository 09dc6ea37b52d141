/* SPDX-License-Identifier: MIT */
/* Shared by the two halves of the emulator: sessions, and the events they deliver. */
#ifndef ETW_EMULATOR_PARTS_H
#define ETW_EMULATOR_PARTS_H

#include <stdatomic.h>

#include "etw_emulator.h"
#include "etw_gates.h"
#include "os/os.h"
#include "source/etw/controller.h"

enum {
    SESSIONS_ROOM = 256,
    TRACES_ROOM = 512,
    SYSTEM_LOGGERS = 8,
    SYSTEM_RESERVED = 2,
    HANDLE_BASE = 100
};

struct session {
    bool used;
    bool stuck;      /* cannot be stopped */
    uint64_t serial; /* a different one each time */
    uint16_t name[EW_ETW_NAME_MAX];
    uint16_t file[512];
    struct ew_etw_properties properties;
    struct etw_emulator_session seen;
    struct etw_enabled enabled;
    uint32_t lives_on; /* stopped, but StartTrace still finds it so many times */
    uint64_t delivered;
};

/* A claimed name. */
struct claim {
    bool used;
    uint64_t serial;
    uint16_t name[EW_ETW_NAME_MAX];
};

struct trace {
    bool used, closed;
    uint32_t session;
    uint64_t serial;
    ew_etw_on_event on_event;
    ew_etw_on_buffer on_buffer; /* or this */
    void *context;
};

struct etw_emulator {
    struct etw_emulator_config config;
    struct ew_etw_api api;
    struct ew_mutex *lock;
    struct ew_cond *changed;
    struct session sessions[SESSIONS_ROOM];
    struct claim claims[SESSIONS_ROOM];
    struct trace traces[TRACES_ROOM];
    uint32_t trace_count;
    uint64_t serial;
    struct etw_emulator_counts counts;
    uint32_t faults;          /* so far */
    uint32_t processing;      /* threads in ProcessTrace */
    bool released;            /* the emulator is being freed */
    _Atomic uint32_t changes; /* of what sessions have enabled */
    uint32_t stopped_by_others;
    bool done;
    bool feeding; /* a thread fills buffers and takes flush requests: */
    _Atomic uint32_t flush_requested, flush_done; /* the number of the last request */
    _Atomic uint64_t now_ns, last_ns;
    _Atomic uint64_t delivered, lost, buffers;
};

/* With the lock held: whether the session still exists and the trace is not closed. */
bool emulator_goes_on(const struct etw_emulator *emulator, const struct trace *trace);

uint32_t emulator_build(const struct etw_emulator *emulator);
/* With the lock held: counts the call; the code with which it must fail, or 0. */
uint32_t emulator_fault(struct etw_emulator *emulator, enum etw_call call);
/* With the lock held. A name wins over a handle. */
struct session *emulator_find(struct etw_emulator *emulator, uint64_t handle, const uint16_t *name);
void emulator_end_session(struct etw_emulator *emulator, struct session *session);

/* For the table of functions. */
uint64_t emulator_open_trace(void *ctx, struct ew_etw_logfile *logfile, uint32_t *ret_error);
uint64_t emulator_open_buffers(void *ctx, const uint16_t *name,
                               const struct ew_etw_open_options *options,
                               struct ew_etw_logfile_header *ret_header, uint32_t *ret_error);
uint32_t emulator_process(void *ctx, uint64_t handle);
uint32_t emulator_close_trace(void *ctx, uint64_t handle);

#endif
