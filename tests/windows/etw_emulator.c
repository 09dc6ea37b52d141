/* SPDX-License-Identifier: MIT */
/* Sessions, their limits and rights. One lock protects all of them. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "etl_kit.h"
#include "etw_emulator_parts.h"
#include "source/poll_windows/poll.h"

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

struct session *emulator_find(struct etw_emulator *emulator, uint64_t handle, const uint16_t *name)
{
    for (size_t i = 0; i < SESSIONS_ROOM; i++) {
        struct session *session = &emulator->sessions[i];
        if (!session->used || session->lives_on > 0)
            continue;
        if (name != NULL ? same_name(session->name, name) : handle == HANDLE_BASE + i)
            return session;
    }
    return NULL;
}

uint32_t emulator_build(const struct etw_emulator *emulator)
{
    return emulator->config.os_build == 0 ? 22631 : emulator->config.os_build;
}

uint32_t emulator_fault(struct etw_emulator *emulator, enum etw_call call)
{
    uint32_t made = emulator->counts.calls[call]++;
    if (emulator->config.fault.call != (uint32_t)call || made < emulator->config.fault.after ||
        (emulator->config.fault.times != 0 && emulator->faults == emulator->config.fault.times))
        return 0;
    emulator->faults++;
    return emulator->config.fault.code;
}

static uint64_t handle_of(const struct etw_emulator *emulator, const struct session *session)
{
    return HANDLE_BASE + (uint64_t)(session - emulator->sessions);
}

static void note_change(struct etw_emulator *emulator, const struct session *session)
{
    emulator->counts.foreign_changes += !name_is_ours(session->name);
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
    if (properties->file_name_at >= sizeof *properties)
        memcpy(session->file, (const uint8_t *)properties + properties->file_name_at,
               sizeof session->file - 2);
    session->seen.buffer_kb = properties->buffer_kb;
    session->seen.min_buffers = properties->min_buffers;
    session->seen.max_buffers = properties->max_buffers;
    session->seen.log_mode = properties->log_mode;
    session->seen.enable_flags = session->enabled.flags = properties->enable_flags;
    atomic_fetch_add(&emulator->changes, 1);
    emulator->counts.starts++;
    return session;
}

static uint32_t check_properties(const struct etw_emulator *emulator, const uint16_t *name,
                                 const struct ew_etw_properties *p)
{
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
    /* EVENT_TRACE_PROPERTIES: the offset is 0 if there is no file. */
    if (!has_file && p->file_name_at != 0)
        return EW_WIN_INVALID_PARAMETER;
    if (emulator->config.memory_buffers != 0 && p->max_buffers > emulator->config.memory_buffers)
        return EW_WIN_NO_SYSTEM_RESOURCES;
    if (emulator->config.no_rights)
        return EW_WIN_ACCESS_DENIED;
    if (emulator->config.no_privilege && (p->enable_flags & 0x1000000) != 0)
        return EW_WIN_PRIVILEGE_NOT_HELD;
    if (count_sessions(emulator, 0) >= max_all)
        return EW_WIN_NO_SYSTEM_RESOURCES;
    if ((p->log_mode & EW_ETW_SYSTEM_LOGGER) != 0 &&
        count_sessions(emulator, EW_ETW_SYSTEM_LOGGER) >= SYSTEM_LOGGERS - SYSTEM_RESERVED)
        return EW_WIN_NO_SYSTEM_RESOURCES;
    return 0;
}

/* A session that is being stopped still exists for StartTrace. */
static bool exists(struct etw_emulator *emulator, const uint16_t *name)
{
    for (size_t i = 0; i < SESSIONS_ROOM; i++) {
        struct session *session = &emulator->sessions[i];
        if (!session->used || !same_name(session->name, name))
            continue;
        if (session->lives_on == 0)
            return true;
        session->used = --session->lives_on > 0;
        return true;
    }
    return false;
}

static uint32_t start(void *ctx, uint64_t *ret_session, const uint16_t *name,
                      struct ew_etw_properties *properties)
{
    struct etw_emulator *emulator = ctx;
    ew_mutex_lock(emulator->lock);
    uint32_t rc = emulator_fault(emulator, ETW_CALL_START);
    if (rc == 0)
        rc = exists(emulator, name) ? EW_WIN_ALREADY_EXISTS
                                    : check_properties(emulator, name, properties);
    if (rc == 0)
        *ret_session = handle_of(emulator, make_session(emulator, name, properties));
    ew_mutex_unlock(emulator->lock);
    return rc;
}

static void fill_properties(const struct session *session, uint64_t handle,
                            struct ew_etw_properties *p)
{
    uint32_t size = p->size, name_at = p->name_at, file_at = p->file_name_at;
    *p = session->properties;
    p->history = handle;
    p->size = size;
    p->name_at = name_at;
    p->file_name_at = file_at;
    size_t bytes = 2 * (wide_len(session->name) + 1);
    if (name_at >= sizeof *p && name_at + bytes <= size)
        memcpy((uint8_t *)p + name_at, session->name, bytes);
    bytes = 2 * (wide_len(session->file) + 1);
    if (file_at >= sizeof *p && file_at + bytes <= size)
        memcpy((uint8_t *)p + file_at, session->file, bytes);
}

void emulator_end_session(struct etw_emulator *emulator, struct session *session)
{
    struct ew_etw_properties foreign = session->properties;
    session->used = emulator->config.stop_takes > 0;
    session->lives_on = emulator->config.stop_takes;
    session->serial = ++emulator->serial; /* its traces end */
    emulator->counts.stops++;
    if (emulator->config.slot_is_reused && name_is_ours(session->name)) {
        static const uint16_t name[] = {'F', 'o', 'r', 'e', 'i', 'g', 'n', 0};
        session->used = false;
        foreign.file_name_at = 0;
        (void)make_session(emulator, name, &foreign);
        emulator->config.slot_is_reused = false;
    }
    ew_cond_signal(emulator->changed);
}

/*
 * Buffered events are delivered before this returns; with real time, as with Windows, they are
 * delivered later.
 */
static void flush(struct etw_emulator *emulator)
{
    if (emulator->config.flush_dead)
        return;
    uint32_t requested = atomic_fetch_add(&emulator->flush_requested, 1) + 1;
    ew_cond_signal(emulator->changed);
    while (emulator->feeding && !emulator->config.real_time &&
           (int32_t)(requested - atomic_load(&emulator->flush_done)) > 0)
        (void)ew_cond_wait(emulator->changed, emulator->lock, -1);
}

/* Whether a UTF-16 name equals ASCII text. */
static bool is_text(const uint16_t *name, const char *text)
{
    size_t i = 0;
    while (text[i] != '\0' && name[i] == (uint16_t)text[i])
        i++;
    return text[i] == '\0' && name[i] == 0;
}

static bool is_kernel_logger(const uint16_t *name)
{
    return is_text(name, "NT Kernel Logger");
}

static enum etw_call call_of(uint32_t code)
{
    return code == EW_ETW_CONTROL_STOP    ? ETW_CALL_STOP
           : code == EW_ETW_CONTROL_FLUSH ? ETW_CALL_FLUSH
                                          : ETW_CALL_QUERY;
}

static uint32_t control_session(struct etw_emulator *emulator, struct session *session,
                                struct ew_etw_properties *properties, uint32_t code)
{
    switch (code) {
    case EW_ETW_CONTROL_STOP:
        if (emulator->config.no_rights || session->stuck)
            return EW_WIN_ACCESS_DENIED;
        note_change(emulator, session);
        fill_properties(session, handle_of(emulator, session), properties);
        emulator_end_session(emulator, session);
        return 0;
    case EW_ETW_CONTROL_UPDATE:
        note_change(emulator, session);
        /* A file name means another file; flags are those of the NT Kernel Logger. */
        if (properties->file_name_at != 0 && session->file[0] == 0)
            return EW_WIN_INVALID_PARAMETER;
        if (is_kernel_logger(session->name))
            session->enabled.flags = session->seen.enable_flags = properties->enable_flags;
        atomic_fetch_add(&emulator->changes, 1);
        return 0;
    case EW_ETW_CONTROL_FLUSH:
        note_change(emulator, session);
        emulator->counts.flushes++;
        flush(emulator);
        return 0;
    default:
        fill_properties(session, handle_of(emulator, session), properties);
        return 0;
    }
}

static uint32_t control(void *ctx, uint64_t handle, const uint16_t *name,
                        struct ew_etw_properties *properties, uint32_t code)
{
    struct etw_emulator *emulator = ctx;
    ew_mutex_lock(emulator->lock);
    struct session *session = emulator_find(emulator, handle, name);
    uint32_t rc = emulator_fault(emulator, call_of(code));
    if (rc == 0)
        rc = session == NULL ? EW_WIN_INSTANCE_NOT_FOUND
                             : control_session(emulator, session, properties, code);
    /* A session has already been stopped when its properties do not fit. */
    else if (rc == EW_WIN_MORE_DATA && code == EW_ETW_CONTROL_STOP && session != NULL)
        emulator_end_session(emulator, session);
    ew_mutex_unlock(emulator->lock);
    return rc;
}

static uint32_t query_all(void *ctx, struct ew_etw_properties **array, uint32_t count,
                          uint32_t *ret_count)
{
    struct etw_emulator *emulator = ctx;
    uint32_t found = 0;
    ew_mutex_lock(emulator->lock);
    uint32_t rc = emulator_fault(emulator, ETW_CALL_QUERY_ALL);
    for (size_t i = 0; i < SESSIONS_ROOM && rc == 0; i++) {
        const struct session *session = &emulator->sessions[i];
        if (session->used && found < count)
            fill_properties(session, handle_of(emulator, session), array[found]);
        found += session->used;
    }
    ew_mutex_unlock(emulator->lock);
    *ret_count = found;
    return rc == 0 && found > count ? EW_WIN_MORE_DATA : rc;
}

static uint32_t os_build(void *ctx)
{
    return emulator_build(ctx);
}

static uint32_t enable(void *ctx, uint64_t handle, const uint8_t provider[16], uint32_t code,
                       uint8_t level, uint64_t any, uint64_t all,
                       const struct ew_etw_enable *parameters)
{
    struct etw_emulator *emulator = ctx;
    (void)level;
    (void)all;
    ew_mutex_lock(emulator->lock);
    struct session *session = emulator_find(emulator, handle, NULL);
    uint32_t rc = emulator_fault(emulator, ETW_CALL_ENABLE), system = etw_gate_provider(provider);
    if (rc == 0 && session == NULL)
        rc = EW_WIN_INVALID_PARAMETER;
    if (rc == 0) {
        note_change(emulator, session);
        session->seen.providers += code == EW_ETW_ENABLE_PROVIDER;
        session->seen.captures += code == EW_ETW_CAPTURE_STATE;
        session->seen.keywords |= any;
        session->seen.filters += parameters == NULL ? 0 : parameters->filter_count;
        /* Older kernels have no such provider: enabling it succeeds and has no effect. */
        if (system < ETW_GATE_PROVIDERS && os_build(emulator) >= 20348)
            session->enabled.keywords[system] = code == EW_ETW_ENABLE_PROVIDER ? any : 0;
        uint32_t bit = 1u << etw_gate_manifest(provider);
        if (code == EW_ETW_ENABLE_PROVIDER)
            session->enabled.manifests |= bit;
        else if (code == EW_ETW_DISABLE_PROVIDER)
            session->enabled.manifests &= ~bit;
        atomic_fetch_add(&emulator->changes, 1);
    }
    ew_mutex_unlock(emulator->lock);
    return rc;
}

enum { FIRST_SOURCE = 100, SOURCE_ENTRY = 24, BUSY = 170, TOO_SMALL = 122 };

static uint32_t count_sources(const struct etw_emulator *emulator)
{
    uint32_t count = 0;
    while (emulator->config.sources != NULL && emulator->config.sources[count] != NULL)
        count++;
    return count;
}

static uint32_t set_counters(const struct etw_emulator *emulator, struct session *session,
                             const uint32_t *numbers, uint32_t count)
{
    uint32_t most = emulator->config.max_counters == 0 ? 4 : emulator->config.max_counters;
    bool again = emulator->config.counters_once && emulator->counts.starts > 1;
    if (count > most || again || emulator->config.counters_busy)
        return BUSY;
    for (uint32_t i = 0; i < count; i++)
        if (numbers[i] - FIRST_SOURCE >= count_sources(emulator))
            return EW_WIN_INVALID_PARAMETER;
    memcpy(session->seen.counters, numbers, count * sizeof numbers[0]);
    session->seen.counter_count = count;
    return 0;
}

static uint32_t set_counted(const struct etw_emulator *emulator, struct session *session,
                            const struct ew_etw_classic_id *id, uint32_t size)
{
    static const uint8_t thread[4] = {0xd1, 0xa8, 0x6f, 0x3d};
    if (emulator->config.no_counted_events || session->seen.counter_count == 0 ||
        size != sizeof *id || id->type != 36 || memcmp(id->guid, thread, 4) != 0)
        return EW_WIN_INVALID_PARAMETER;
    session->seen.counted_switches = true;
    return 0;
}

/* PROFILE_SOURCE_INFO: distance to the next, number, limits, eight bytes, name. */
static uint32_t fill_sources(const struct etw_emulator *emulator, uint8_t *to, uint32_t size,
                             uint32_t *ret_size)
{
    uint32_t count = count_sources(emulator), at = 0;
    for (uint32_t i = 0; i < count; i++) {
        const char *name = emulator->config.sources[i];
        uint32_t len = (uint32_t)strlen(name), room = (SOURCE_ENTRY + 2 * len + 2 + 7) & ~7u;
        uint32_t next = i + 1 < count ? room : 0, number = FIRST_SOURCE + i;
        if (at + room <= size) {
            memset(to + at, 0, room);
            memcpy(to + at, &next, 4);
            memcpy(to + at + 4, &number, 4);
            for (uint32_t k = 0; k < len; k++)
                to[at + SOURCE_ENTRY + 2 * k] = (uint8_t)name[k];
        }
        at += room;
    }
    *ret_size = at;
    return at <= size ? 0 : TOO_SMALL;
}

static uint32_t set_information(void *ctx, uint64_t handle, uint32_t what, void *value,
                                uint32_t size)
{
    struct etw_emulator *emulator = ctx;
    uint32_t rc = EW_WIN_NOT_SUPPORTED;
    ew_mutex_lock(emulator->lock);
    struct session *session = emulator_find(emulator, handle, NULL);
    uint32_t fault = emulator_fault(emulator, ETW_CALL_SET_INFORMATION);
    if (session != NULL && handle != 0)
        note_change(emulator, session);
    if (fault != 0) {
        rc = fault;
    } else if (what == EW_ETW_INFO_KERNEL_FLAGS && session != NULL && size >= 4) {
        memcpy(&session->enabled.flags, value, 4);
        session->seen.enable_flags = session->enabled.flags;
        atomic_fetch_add(&emulator->changes, 1);
        rc = 0;
    } else if (emulator->config.no_privilege) {
        rc = EW_WIN_PRIVILEGE_NOT_HELD;
    } else if (what == EW_ETW_INFO_PROFILE_INTERVAL && handle == 0) {
        emulator->counts.profile_interval_100ns =
            ((const struct ew_etw_profile_interval *)value)->interval_100ns;
        rc = 0;
    } else if (what == EW_ETW_INFO_STACKS && session != NULL) {
        session->seen.stack_count = size / (uint32_t)sizeof(struct ew_etw_classic_id);
        rc = 0;
    } else if (what == EW_ETW_INFO_PMC_COUNTERS && session != NULL) {
        rc = set_counters(emulator, session, value, size / 4);
    } else if (what == EW_ETW_INFO_PMC_EVENTS && session != NULL) {
        rc = set_counted(emulator, session, value, size);
    }
    ew_mutex_unlock(emulator->lock);
    return rc;
}

static uint32_t query_information(void *ctx, uint64_t handle, uint32_t what, void *value,
                                  uint32_t size, uint32_t *ret_size)
{
    struct etw_emulator *emulator = ctx;
    struct ew_etw_profile_interval interval = {0};
    ew_mutex_lock(emulator->lock);
    uint32_t rc = emulator_fault(emulator, ETW_CALL_QUERY_INFORMATION);
    ew_mutex_unlock(emulator->lock);
    if (rc != 0)
        return rc;
    if (handle == 0 && what == EW_ETW_INFO_MAX_LOGGERS && size >= 4) {
        memcpy(value,
               &(uint32_t){emulator->config.max_sessions ? emulator->config.max_sessions : 64}, 4);
        *ret_size = 4;
        return 0;
    }
    if (handle == 0 && what == EW_ETW_INFO_PROFILE_SOURCES && emulator->config.sources != NULL)
        return fill_sources(emulator, value, size, ret_size);
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
    ew_mutex_lock(emulator->lock);
    uint32_t rc = emulator_fault(emulator, ETW_CALL_PRIVILEGE);
    ew_mutex_unlock(emulator->lock);
    return rc == 0 && emulator->config.no_privilege ? EW_WIN_NOT_ALL_ASSIGNED : rc;
}

static int processes(void *ctx, struct ew_winpoll_system *ret_system)
{
    const struct etw_emulator *emulator = ctx;
    if (emulator->config.processes == NULL)
        return ETWATCH_ENOTSUP;
    *ret_system = *emulator->config.processes;
    return 0;
}

static uint32_t cpu_count(void *ctx)
{
    return ((const struct etw_emulator *)ctx)->config.cpu_count;
}

static uint64_t now_ns(void *ctx)
{
    return etw_emulator_now_ns(ctx);
}

/* The recording begins at start_raw, at its start_filetime. */
static void anchor(void *ctx, uint64_t *ret_unix_ns, uint64_t *ret_raw_ns)
{
    const struct etw_emulator *emulator = ctx;
    if (emulator->config.real_time) {
        ew_os_anchor(ret_unix_ns, ret_raw_ns);
        return;
    }
    *ret_unix_ns = (uint64_t)(ETW_EMULATOR_START_FILETIME - INT64_C(116444736000000000)) * 100;
    *ret_raw_ns = 0;
}

const uint8_t etw_emulator_provider_guid[16] = {0xe7, 1, 2, 3, 4, 5, 6, 7};

static uint32_t find_provider(void *ctx, const uint16_t *name, uint8_t ret_guid[16])
{
    (void)ctx;
    if (!is_text(name, ETW_EMULATOR_PROVIDER))
        return EW_WIN_INSTANCE_NOT_FOUND;
    memcpy(ret_guid, etw_emulator_provider_guid, 16);
    return 0;
}

/* The layout of the registered provider's event 7. */
static uint32_t event_info(void *ctx, const uint8_t provider[16], const uint8_t descriptor[16],
                           void *buffer, uint32_t *size)
{
    static const struct etl_property properties[] = {{"Number", 8, 0, 1, 4, 0},
                                                     {"Label", 1, 0, 1, 0, 0}};
    static const struct etl_event_info info = {.provider = etw_emulator_provider_guid,
                                               .id = 7,
                                               .version = 1,
                                               .level = 4,
                                               .opcode = 1,
                                               .task = 3,
                                               .provider_name = ETW_EMULATOR_PROVIDER,
                                               .task_name = "Job",
                                               .opcode_name = "win:Start",
                                               .properties = properties,
                                               .property_count = 2};
    struct etw_emulator *emulator = ctx;
    struct etl_payload *payload = calloc(1, sizeof *payload);
    if (payload == NULL)
        abort();
    ew_mutex_lock(emulator->lock);
    emulator->counts.layouts++;
    ew_mutex_unlock(emulator->lock);
    uint32_t rc = EW_WIN_INSTANCE_NOT_FOUND;
    if (memcmp(provider, etw_emulator_provider_guid, 16) == 0 && descriptor[0] == 7) {
        etl_event_info(payload, &info);
        rc = payload->size > *size ? EW_WIN_MORE_DATA : 0;
        if (rc == 0)
            memcpy(buffer, payload->bytes, payload->size);
        *size = (uint32_t)payload->size;
    }
    free(payload);
    return rc;
}

static void *claim_name(void *ctx, const uint16_t *name)
{
    struct etw_emulator *emulator = ctx;
    struct claim *made = NULL;
    size_t room = SESSIONS_ROOM;
    ew_mutex_lock(emulator->lock);
    for (size_t i = 0; i < SESSIONS_ROOM; i++) {
        if (emulator->claims[i].used && same_name(emulator->claims[i].name, name))
            break;
        if (!emulator->claims[i].used && room == SESSIONS_ROOM)
            room = i;
        if (i + 1 == SESSIONS_ROOM && room < SESSIONS_ROOM)
            made = malloc(sizeof *made);
    }
    if (made != NULL) {
        struct claim *claim = &emulator->claims[room];
        claim->used = true;
        claim->serial = ++emulator->serial;
        memcpy(claim->name, name, 2 * (wide_len(name) + 1));
        *made = *claim;
    }
    ew_mutex_unlock(emulator->lock);
    return made;
}

/* A killed process has no claim any more. */
static void release_name(void *ctx, void *claim)
{
    struct etw_emulator *emulator = ctx;
    const struct claim *made = claim;
    ew_mutex_lock(emulator->lock);
    for (size_t i = 0; i < SESSIONS_ROOM; i++)
        if (emulator->claims[i].serial == made->serial)
            emulator->claims[i].used = false;
    ew_mutex_unlock(emulator->lock);
    free(claim);
}

void etw_emulator_kill(struct etw_emulator *emulator)
{
    ew_mutex_lock(emulator->lock);
    for (size_t i = 0; i < SESSIONS_ROOM; i++)
        emulator->claims[i].used = false;
    ew_mutex_unlock(emulator->lock);
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
    atomic_store(&emulator->now_ns, config->now_ns);
    emulator->api = (struct ew_etw_api){
        .ctx = emulator,
        .start = start,
        .control = control,
        .enable = enable,
        .open = emulator_open_trace,
        .open_buffers = emulator_open_buffers,
        .process = emulator_process,
        .close = emulator_close_trace,
        .set_information = set_information,
        .query_information = query_information,
        .query_all = query_all,
        .enable_privilege = enable_privilege,
        .processes = processes,
        .os_build = os_build,
        .cpu_count = cpu_count,
        .now_ns = now_ns,
        .anchor = anchor,
        .find_provider = find_provider,
        .event_info = event_info,
        .claim = config->knows_owners ? claim_name : NULL,
        .release = config->knows_owners ? release_name : NULL,
    };
    for (int i = 1; i <= SYSTEM_LOGGERS - SYSTEM_RESERVED && config->loggers_in_use; i++)
        etw_emulator_add(emulator,
                         (const char[]){'L', 'o', 'g', 'g', 'e', 'r', ' ', (char)('0' + i), 0},
                         EW_ETW_SYSTEM_LOGGER | EW_ETW_REAL_TIME, 0);
    return emulator;
}

/* What a consumer gave up because its thread did not come back: not freed, but not lost either. */
static void *volatile given_up[TRACES_ROOM];

void etw_emulator_free(struct etw_emulator *emulator)
{
    for (uint32_t i = 0; i < emulator->trace_count && emulator->config.dead_process; i++)
        given_up[i] = emulator->traces[i].context;
    /* A thread that was given up comes back only now. */
    ew_mutex_lock(emulator->lock);
    emulator->released = true;
    ew_cond_signal(emulator->changed);
    while (emulator->processing > 0)
        (void)ew_cond_wait(emulator->changed, emulator->lock, 10);
    ew_mutex_unlock(emulator->lock);
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
    make_session(emulator, wide, &properties)->stuck = emulator->config.stuck_session;
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
    ret_counts->buffers = atomic_load(&emulator->buffers);
    ret_counts->last_ns = atomic_load(&emulator->last_ns);
}

bool etw_emulator_session(struct etw_emulator *emulator, const char *name,
                          struct etw_emulator_session *ret_session)
{
    uint16_t wide[EW_ETW_NAME_MAX];
    if (!ew_etw_wide_name(name, wide))
        return false;
    ew_mutex_lock(emulator->lock);
    const struct session *session = emulator_find(emulator, 0, wide);
    if (session != NULL)
        *ret_session = session->seen;
    ew_mutex_unlock(emulator->lock);
    return session != NULL;
}
