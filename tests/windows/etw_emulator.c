/* SPDX-License-Identifier: MIT */
/*
 * One lock guards all. Events are handed over without it, on the thread that calls `process`, as
 * ETW does: from one thread, in order of time as far as they come together.
 */
#include "etw_emulator.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "etw_events.h"
#include "os/os.h"
#include "source/etl/reader.h"
#include "source/etw/controller.h"

enum { SESSIONS_ROOM = 256, TRACES_ROOM = 512, SYSTEM_RESERVED = 2, HANDLE_BASE = 100 };

struct session {
    bool used;
    uint64_t serial; /* another one each time */
    uint16_t name[EW_ETW_NAME_MAX];
    struct ew_etw_properties properties;
    struct etw_emulator_session seen;
    uint64_t delivered;
};

struct trace {
    bool used, closed;
    uint32_t session;
    uint64_t serial;
    ew_etw_on_event on_event;
    void *context;
};

struct etw_emulator {
    struct etw_emulator_config config;
    struct ew_etw_api api;
    struct ew_mutex *lock;
    struct ew_cond *changed;
    struct session sessions[SESSIONS_ROOM];
    struct trace traces[TRACES_ROOM];
    uint32_t trace_count;
    uint64_t serial;
    struct etw_emulator_counts counts;
    uint32_t stopped_by_others;
    bool done;
    _Atomic uint64_t now_ns, last_ns;
    _Atomic uint64_t delivered, lost;
};

/* ----------------------------------------------------------------------- sessions */

static size_t wide_len(const uint16_t *text)
{
    size_t len = 0;
    while (text[len] != 0)
        len++;
    return len;
}

static bool same_name(const uint16_t *a, const uint16_t *b)
{
    size_t len = wide_len(a);
    return len == wide_len(b) && memcmp(a, b, 2 * len) == 0;
}

static bool name_is_ours(const uint16_t *name)
{
    static const char ours[] = EW_ETW_OURS;
    for (size_t i = 0; ours[i] != '\0'; i++)
        if (name[i] != (uint16_t)ours[i])
            return false;
    return true;
}

static struct session *find(struct etw_emulator *emulator, uint64_t handle, const uint16_t *name)
{
    for (size_t i = 0; i < SESSIONS_ROOM; i++) {
        struct session *session = &emulator->sessions[i];
        if (!session->used)
            continue;
        if (handle != 0 ? handle == HANDLE_BASE + session->serial
                        : name != NULL && same_name(session->name, name))
            return session;
    }
    return NULL;
}

static uint32_t count_sessions(const struct etw_emulator *emulator, uint32_t mode)
{
    uint32_t count = 0;
    for (size_t i = 0; i < SESSIONS_ROOM; i++)
        count += emulator->sessions[i].used &&
                 (emulator->sessions[i].properties.log_mode & mode) == mode;
    return count;
}

static struct session *make_session(struct etw_emulator *emulator, const uint16_t *name,
                                    const struct ew_etw_properties *properties)
{
    size_t i = 0;
    while (emulator->sessions[i].used)
        i++;
    struct session *session = &emulator->sessions[i];
    memset(session, 0, sizeof *session);
    session->used = true;
    session->serial = ++emulator->serial;
    memcpy(session->name, name, 2 * (wide_len(name) + 1));
    session->properties = *properties;
    session->properties.buffers = properties->min_buffers;
    session->seen.buffer_kb = properties->buffer_kb;
    session->seen.min_buffers = properties->min_buffers;
    session->seen.max_buffers = properties->max_buffers;
    session->seen.log_mode = properties->log_mode;
    session->seen.enable_flags = properties->enable_flags;
    emulator->counts.starts++;
    return session;
}

static uint32_t check_properties(const struct etw_emulator *emulator, const uint16_t *name,
                                 const struct ew_etw_properties *p)
{
    uint32_t max_system =
        emulator->config.max_system_loggers ? emulator->config.max_system_loggers : 8;
    uint32_t max_all = emulator->config.max_sessions ? emulator->config.max_sessions : 64;
    if (p->size < sizeof *p || p->name_at < sizeof *p || name[0] == 0 ||
        p->wnode_flags != EW_ETW_WNODE_TRACED_GUID)
        return EW_WIN_INVALID_PARAMETER;
    if (p->buffer_kb < 4 || p->buffer_kb > 16384 || p->max_buffers < p->min_buffers)
        return EW_WIN_INVALID_PARAMETER;
    const uint8_t *file = (const uint8_t *)p + p->file_name_at;
    bool has_file = p->file_name_at >= sizeof *p && ew_load_u16(file) != 0;
    if (has_file != ((p->log_mode & EW_ETW_SEQUENTIAL_FILE) != 0) ||
        has_file == ((p->log_mode & EW_ETW_REAL_TIME) != 0))
        return EW_WIN_INVALID_PARAMETER;
    if (emulator->config.no_rights)
        return EW_WIN_ACCESS_DENIED;
    if (emulator->config.no_privilege && (p->enable_flags & 0x1000000) != 0)
        return EW_WIN_PRIVILEGE_NOT_HELD;
    if (count_sessions(emulator, 0) >= max_all)
        return EW_WIN_NO_SYSTEM_RESOURCES;
    if ((p->log_mode & EW_ETW_SYSTEM_LOGGER) != 0 &&
        count_sessions(emulator, EW_ETW_SYSTEM_LOGGER) >= max_system - SYSTEM_RESERVED)
        return EW_WIN_NO_SYSTEM_RESOURCES;
    return 0;
}

static uint32_t start(void *ctx, uint64_t *ret_session, const uint16_t *name,
                      struct ew_etw_properties *properties)
{
    struct etw_emulator *emulator = ctx;
    ew_mutex_lock(emulator->lock);
    uint32_t rc = find(emulator, 0, name) != NULL ? EW_WIN_ALREADY_EXISTS
                                                  : check_properties(emulator, name, properties);
    if (rc == 0)
        *ret_session = HANDLE_BASE + make_session(emulator, name, properties)->serial;
    ew_mutex_unlock(emulator->lock);
    return rc;
}

static void tell(const struct session *session, struct ew_etw_properties *p)
{
    uint32_t size = p->size, name_at = p->name_at, file_at = p->file_name_at;
    *p = session->properties;
    p->size = size;
    p->name_at = name_at;
    p->file_name_at = file_at;
    size_t bytes = 2 * (wide_len(session->name) + 1);
    if (name_at >= sizeof *p && name_at + bytes <= size)
        memcpy((uint8_t *)p + name_at, session->name, bytes);
}

static void end_session(struct etw_emulator *emulator, struct session *session)
{
    session->used = false;
    emulator->counts.stops++;
    ew_cond_signal(emulator->changed);
}

static uint32_t control_session(struct etw_emulator *emulator, struct session *session,
                                struct ew_etw_properties *properties, uint32_t code)
{
    switch (code) {
    case EW_ETW_CONTROL_STOP:
        if (emulator->config.no_rights || emulator->config.stuck_session)
            return EW_WIN_ACCESS_DENIED;
        tell(session, properties);
        end_session(emulator, session);
        return 0;
    case EW_ETW_CONTROL_UPDATE:
        session->properties.enable_flags = session->seen.enable_flags = properties->enable_flags;
        return 0;
    case EW_ETW_CONTROL_FLUSH:
        emulator->counts.flushes++;
        ew_cond_signal(emulator->changed);
        return 0;
    default:
        tell(session, properties);
        return 0;
    }
}

static uint32_t control(void *ctx, uint64_t handle, const uint16_t *name,
                        struct ew_etw_properties *properties, uint32_t code)
{
    struct etw_emulator *emulator = ctx;
    ew_mutex_lock(emulator->lock);
    struct session *session = find(emulator, handle, name);
    uint32_t rc = session == NULL ? EW_WIN_INSTANCE_NOT_FOUND
                                  : control_session(emulator, session, properties, code);
    ew_mutex_unlock(emulator->lock);
    return rc;
}

static uint32_t query_all(void *ctx, struct ew_etw_properties **array, uint32_t count,
                          uint32_t *ret_count)
{
    struct etw_emulator *emulator = ctx;
    uint32_t found = 0;
    ew_mutex_lock(emulator->lock);
    for (size_t i = 0; i < SESSIONS_ROOM; i++) {
        if (emulator->sessions[i].used && found < count)
            tell(&emulator->sessions[i], array[found]);
        found += emulator->sessions[i].used;
    }
    ew_mutex_unlock(emulator->lock);
    *ret_count = found;
    return found > count ? EW_WIN_MORE_DATA : 0;
}

static uint32_t enable(void *ctx, uint64_t handle, const uint8_t provider[16], uint32_t code,
                       uint8_t level, uint64_t any, uint64_t all,
                       const struct ew_etw_enable *parameters)
{
    struct etw_emulator *emulator = ctx;
    (void)level;
    (void)all;
    (void)provider;
    ew_mutex_lock(emulator->lock);
    struct session *session = find(emulator, handle, NULL);
    if (session != NULL) {
        session->seen.providers += code == EW_ETW_ENABLE_PROVIDER;
        session->seen.keywords |= any;
        session->seen.filters += parameters == NULL ? 0 : parameters->filter_count;
    }
    uint32_t rc = session == NULL ? EW_WIN_INVALID_PARAMETER : 0;
    ew_mutex_unlock(emulator->lock);
    return rc;
}

static uint32_t set_information(void *ctx, uint64_t handle, uint32_t what, void *value,
                                uint32_t size)
{
    struct etw_emulator *emulator = ctx;
    uint32_t rc = EW_WIN_NOT_SUPPORTED;
    ew_mutex_lock(emulator->lock);
    struct session *session = find(emulator, handle, NULL);
    if (emulator->config.no_privilege) {
        rc = EW_WIN_PRIVILEGE_NOT_HELD;
    } else if (what == EW_ETW_INFO_PROFILE_INTERVAL && handle == 0) {
        emulator->counts.profile_interval_100ns =
            ((const struct ew_etw_profile_interval *)value)->interval_100ns;
        rc = 0;
    } else if (what == EW_ETW_INFO_STACKS && session != NULL) {
        session->seen.stack_count = size / (uint32_t)sizeof(struct ew_etw_classic_id);
        rc = 0;
    }
    ew_mutex_unlock(emulator->lock);
    return rc;
}

static uint32_t query_information(void *ctx, uint64_t handle, uint32_t what, void *value,
                                  uint32_t size, uint32_t *ret_size)
{
    struct etw_emulator *emulator = ctx;
    struct ew_etw_profile_interval interval = {0};
    if (handle != 0 || what != EW_ETW_INFO_PROFILE_INTERVAL || size < sizeof interval)
        return EW_WIN_NOT_SUPPORTED;
    ew_mutex_lock(emulator->lock);
    interval.interval_100ns = emulator->counts.profile_interval_100ns;
    ew_mutex_unlock(emulator->lock);
    memcpy(value, &interval, sizeof interval);
    *ret_size = sizeof interval;
    return 0;
}

static uint32_t enable_privilege(void *ctx, const char *name)
{
    struct etw_emulator *emulator = ctx;
    (void)name;
    return emulator->config.no_privilege ? EW_WIN_NOT_ALL_ASSIGNED : 0;
}

static uint32_t os_build(void *ctx)
{
    const struct etw_emulator *emulator = ctx;
    return emulator->config.os_build == 0 ? 22631 : emulator->config.os_build;
}

static uint32_t cpu_count(void *ctx)
{
    return ((const struct etw_emulator *)ctx)->config.cpu_count;
}

static uint64_t now_ns(void *ctx)
{
    return etw_emulator_now_ns(ctx);
}

static int64_t start_filetime(const struct etw_emulator *emulator)
{
    (void)emulator;
    return INT64_C(134116992000000000); /* 2026-01-01, as recordings of our writer have it */
}

/* The recording begins at start_raw, at its start_filetime. */
static void anchor(void *ctx, uint64_t *ret_unix_ns, uint64_t *ret_raw_ns)
{
    const struct etw_emulator *emulator = ctx;
    if (emulator->config.real_time) {
        ew_os_anchor(ret_unix_ns, ret_raw_ns);
        return;
    }
    *ret_unix_ns = (uint64_t)(start_filetime(emulator) - INT64_C(116444736000000000)) * 100;
    *ret_raw_ns = 0;
}

/* ------------------------------------------------------------------------- events */

static uint64_t open_trace(void *ctx, struct ew_etw_logfile *logfile, uint32_t *ret_error)
{
    struct etw_emulator *emulator = ctx;
    uint64_t handle = EW_ETW_INVALID_HANDLE;
    ew_mutex_lock(emulator->lock);
    struct session *session = find(emulator, 0, logfile->session_name);
    if (session == NULL || emulator->trace_count == TRACES_ROOM) {
        *ret_error = EW_WIN_INSTANCE_NOT_FOUND;
    } else {
        struct trace *trace = &emulator->traces[emulator->trace_count];
        *trace = (struct trace){
            .used = true,
            .session = (uint32_t)(session - emulator->sessions),
            .serial = session->serial,
            .on_event = logfile->on_event,
            .context = logfile->context,
        };
        handle = ++emulator->trace_count;
        logfile->header.clock = emulator->config.clock;
        logfile->header.perf_frequency = emulator->config.perf_frequency;
        logfile->header.cpu_mhz = emulator->config.cpu_mhz;
        logfile->header.start_filetime = start_filetime(emulator);
        logfile->header.cpu_count = emulator->config.cpu_count;
    }
    ew_mutex_unlock(emulator->lock);
    return handle;
}

static bool goes_on(struct etw_emulator *emulator, const struct trace *trace)
{
    const struct session *session = &emulator->sessions[trace->session];
    return session->used && session->serial == trace->serial && !trace->closed;
}

static void wait_for_end(struct etw_emulator *emulator, const struct trace *trace)
{
    ew_mutex_lock(emulator->lock);
    if (goes_on(emulator, trace)) {
        emulator->done = true;
        /* Time goes on. */
        atomic_fetch_add(&emulator->now_ns, 1000000000);
    }
    ew_cond_signal(emulator->changed);
    while (goes_on(emulator, trace))
        (void)ew_cond_wait(emulator->changed, emulator->lock, -1);
    ew_mutex_unlock(emulator->lock);
}

/* What is held goes out when somebody asks for it, or when the session ends. */
static void wait_for_flush(struct etw_emulator *emulator, const struct trace *trace)
{
    ew_mutex_lock(emulator->lock);
    uint32_t before = emulator->counts.flushes;
    while (goes_on(emulator, trace) && emulator->counts.flushes == before)
        (void)ew_cond_wait(emulator->changed, emulator->lock, -1);
    ew_mutex_unlock(emulator->lock);
}

static uint64_t to_ns(const struct etw_emulator *emulator, uint64_t raw)
{
    uint64_t hz = emulator->config.perf_frequency;
    if (emulator->config.clock == 2)
        return (raw - (uint64_t)start_filetime(emulator)) * 100;
    if (emulator->config.clock == 3)
        return raw * 1000 / emulator->config.cpu_mhz;
    return raw / hz * 1000000000 + raw % hz * 1000000000 / hz;
}

struct feed {
    struct etw_emulator *emulator;
    const struct trace *trace;
    uint64_t count;
};

/* False: the session is over. */
static bool before_event(struct feed *feed)
{
    struct etw_emulator *emulator = feed->emulator;
    const struct etw_emulator_config *config = &emulator->config;
    feed->count++;
    bool hold = config->hold > 0 && feed->count % config->hold == 0;
    if (hold)
        wait_for_flush(emulator, feed->trace);
    if (feed->count % 256 != 0 && !hold && config->stop_after == 0)
        return true;
    ew_mutex_lock(emulator->lock);
    struct session *session = &emulator->sessions[feed->trace->session];
    bool on = goes_on(emulator, feed->trace);
    if (on && config->stop_after > 0 && feed->count > config->stop_after &&
        emulator->stopped_by_others < config->stop_times) {
        emulator->stopped_by_others++;
        end_session(emulator, session);
        on = false;
    }
    /* What is in the buffers of a session that ends still comes. */
    bool closed = feed->trace->closed;
    bool stopped_by_us = !on && !closed && emulator->stopped_by_others == 0;
    ew_mutex_unlock(emulator->lock);
    return on || (stopped_by_us && config->generate == 0);
}

static bool is_lost(struct feed *feed)
{
    struct etw_emulator *emulator = feed->emulator;
    uint64_t every = emulator->config.lose_every;
    if (every == 0 || feed->count % every != 0)
        return false;
    atomic_fetch_add(&emulator->lost, 1);
    ew_mutex_lock(emulator->lock);
    emulator->sessions[feed->trace->session].properties.events_lost++;
    ew_mutex_unlock(emulator->lock);
    return true;
}

static void hand_over(struct feed *feed, struct etw_event *event)
{
    etw_event_context(event, feed->trace->context);
    feed->trace->on_event(event->bytes);
}

static void deliver(struct feed *feed, struct etw_event *event, uint64_t t_ns)
{
    struct etw_emulator *emulator = feed->emulator;
    if (!emulator->config.real_time)
        atomic_store(&emulator->now_ns, t_ns);
    atomic_store_explicit(&emulator->last_ns, t_ns, memory_order_relaxed);
    hand_over(feed, event);
    atomic_fetch_add_explicit(&emulator->delivered, 1, memory_order_relaxed);
}

static void feed_recording(struct feed *feed)
{
    struct etw_emulator *emulator = feed->emulator;
    struct ew_etl_reader *reader = NULL;
    const struct ew_record *records;
    struct ew_etl_options options = {.workers = 1};
    struct etw_event *event = calloc(1, sizeof *event);
    int count;
    if (event == NULL ||
        ew_etl_open_memory(emulator->config.recording, emulator->config.recording_size, &options,
                           &reader, NULL) != 0)
        abort();
    bool on = true;
    while (on && (count = ew_etl_next(reader, &records)) > 0)
        for (int i = 0; i < count && (on = before_event(feed)); i++) {
            uint64_t t_ns = to_ns(emulator, records[i].t_raw);
            if (!is_lost(feed)) {
                if (etw_event_from(event, &records[i]))
                    deliver(feed, event, t_ns);
            } else if (emulator->config.lose_marks) {
                etw_event_lost(event, records[i].t_raw, records[i].cpu);
                hand_over(feed, event);
            }
        }
    ew_etl_close(reader);
    free(event);
}

static void sleep_until(struct etw_emulator *emulator, uint64_t due_ns)
{
    ew_mutex_lock(emulator->lock);
    while (ew_os_raw_ns() < due_ns)
        (void)ew_cond_wait(emulator->changed, emulator->lock, 1);
    ew_mutex_unlock(emulator->lock);
}

/* Switches between threads of one process, on each CPU in turn. */
static void feed_switches(struct feed *feed)
{
    struct etw_emulator *emulator = feed->emulator;
    const struct etw_emulator_config *config = &emulator->config;
    struct etw_event *event = calloc(1, sizeof *event);
    uint64_t total = config->generate * config->cpu_count, began_ns = ew_os_raw_ns();
    if (event == NULL)
        abort();
    etw_event_switch(event);
    for (uint64_t i = 0; i < total && before_event(feed); i++) {
        uint64_t due_ns = config->rate_hz == 0 ? 0 : i * 1000000000 / config->rate_hz;
        if (config->rate_hz != 0 && i % 1024 == 0)
            sleep_until(emulator, began_ns + due_ns);
        uint64_t t_ns = config->real_time ? began_ns + due_ns : 1000000 + i * 1000;
        etw_event_set_switch(event, t_ns / (1000000000 / config->perf_frequency),
                             (uint16_t)(i % config->cpu_count), (uint32_t)(i / config->cpu_count));
        if (!is_lost(feed))
            deliver(feed, event, t_ns);
    }
    free(event);
}

static uint32_t process(void *ctx, uint64_t handle)
{
    struct etw_emulator *emulator = ctx;
    struct feed feed = {.emulator = emulator, .trace = &emulator->traces[handle - 1]};
    if (emulator->config.recording != NULL)
        feed_recording(&feed);
    else
        feed_switches(&feed);
    wait_for_end(emulator, feed.trace);
    return 0;
}

static uint32_t close_trace(void *ctx, uint64_t handle)
{
    struct etw_emulator *emulator = ctx;
    ew_mutex_lock(emulator->lock);
    emulator->traces[handle - 1].closed = true;
    ew_cond_signal(emulator->changed);
    ew_mutex_unlock(emulator->lock);
    return 0;
}

/* --------------------------------------------------------------------- for the test */

struct etw_emulator *etw_emulator_new(const struct etw_emulator_config *config)
{
    struct etw_emulator *emulator = calloc(1, sizeof *emulator);
    if (emulator == NULL || ew_mutex_new(&emulator->lock) != 0 ||
        ew_cond_new(&emulator->changed) != 0)
        abort();
    emulator->config = *config;
    if (config->cpu_count == 0)
        emulator->config.cpu_count = 4;
    if (config->clock == 0)
        emulator->config.clock = 1;
    if (config->perf_frequency == 0)
        emulator->config.perf_frequency = 10000000;
    if (config->cpu_mhz == 0)
        emulator->config.cpu_mhz = 2000;
    emulator->counts.profile_interval_100ns = 10000;
    emulator->api = (struct ew_etw_api){
        .ctx = emulator,
        .start = start,
        .control = control,
        .enable = enable,
        .open = open_trace,
        .process = process,
        .close = close_trace,
        .set_information = set_information,
        .query_information = query_information,
        .query_all = query_all,
        .enable_privilege = enable_privilege,
        .os_build = os_build,
        .cpu_count = cpu_count,
        .now_ns = now_ns,
        .anchor = anchor,
    };
    return emulator;
}

void etw_emulator_free(struct etw_emulator *emulator)
{
    ew_cond_free(emulator->changed);
    ew_mutex_free(emulator->lock);
    free(emulator);
}

const struct ew_etw_api *etw_emulator_api(struct etw_emulator *emulator)
{
    return &emulator->api;
}

void etw_emulator_add(struct etw_emulator *emulator, const char *name, uint32_t log_mode,
                      uint32_t enable_flags)
{
    uint16_t wide[EW_ETW_NAME_MAX];
    struct ew_etw_properties properties = {
        .log_mode = log_mode,
        .enable_flags = enable_flags,
        .buffer_kb = 64,
        .min_buffers = 4,
        .max_buffers = 64,
        .flush_s = 1,
    };
    if (!ew_etw_wide_name(name, wide))
        abort();
    ew_mutex_lock(emulator->lock);
    (void)make_session(emulator, wide, &properties);
    ew_mutex_unlock(emulator->lock);
}

void etw_emulator_set_rights(struct etw_emulator *emulator, bool no_rights, bool no_privilege)
{
    ew_mutex_lock(emulator->lock);
    emulator->config.no_rights = no_rights;
    emulator->config.no_privilege = no_privilege;
    ew_mutex_unlock(emulator->lock);
}

bool etw_emulator_done(struct etw_emulator *emulator)
{
    ew_mutex_lock(emulator->lock);
    bool done = emulator->done;
    ew_mutex_unlock(emulator->lock);
    return done;
}

uint64_t etw_emulator_now_ns(struct etw_emulator *emulator)
{
    return emulator->config.real_time ? ew_os_raw_ns() : atomic_load(&emulator->now_ns);
}

void etw_emulator_counts(struct etw_emulator *emulator, struct etw_emulator_counts *ret_counts)
{
    ew_mutex_lock(emulator->lock);
    *ret_counts = emulator->counts;
    ret_counts->sessions = count_sessions(emulator, 0);
    for (size_t i = 0; i < SESSIONS_ROOM; i++)
        ret_counts->ours += emulator->sessions[i].used && name_is_ours(emulator->sessions[i].name);
    ew_mutex_unlock(emulator->lock);
    ret_counts->delivered = atomic_load(&emulator->delivered);
    ret_counts->lost = atomic_load(&emulator->lost);
    ret_counts->last_ns = atomic_load(&emulator->last_ns);
}

bool etw_emulator_session(struct etw_emulator *emulator, const char *name,
                          struct etw_emulator_session *ret_session)
{
    uint16_t wide[EW_ETW_NAME_MAX];
    if (!ew_etw_wide_name(name, wide))
        return false;
    ew_mutex_lock(emulator->lock);
    const struct session *session = find(emulator, 0, wide);
    if (session != NULL)
        *ret_session = session->seen;
    ew_mutex_unlock(emulator->lock);
    return session != NULL;
}
