/* SPDX-License-Identifier: MIT */
/*
 * Owns one session of ours and the machine-wide setting that it changes (the profile interval),
 * which is restored at the end. Keeps the session's configuration, because another program can stop
 * the session at any time and it must then be restarted.
 *
 * Kernel events are enabled by flags of the session, on every Windows. If Windows refuses that, and
 * has system providers, those are tried too; the first refusal is the one that is reported. A
 * session is always controlled by its name: handles are slot numbers, which Windows gives to other
 * sessions once ours has ended. The properties are filled in anew for every call, because Windows
 * writes to them.
 */
#include "source/etw/controller.h"

#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "os/os.h"
#include "source/etw/etw.h"

enum {
    DEFAULT_BUFFER_KB = 64,
    BUFFER_KB_MIN = 4,
    BUFFER_KB_MAX = 16384,
    MIN_BUFFERS = 4,
    FEW_BUFFERS = 16, /* minimum on machines with few CPUs */
    MAX_BUFFERS = 64,
    CLOCK_QPC = 1,
    PIDS_MAX = 8,
    EVENT_IDS_MAX = 64,
    LEVEL_VERBOSE = 5,
    PROVIDERS_MAX = 64,
    TAKE_OVER_TRIES = 20, /* a stopped session may exist for a moment longer */
    TAKE_OVER_PAUSE_MS = 50,
    KERNEL_MASKS = 8,
};
static const uint64_t default_memory_bytes = 64u << 20;
static const char *const default_name = EW_ETW_OURS "-watch";
static const char *const profile_privilege = "SeSystemProfilePrivilege";

struct ew_etw_session {
    const struct ew_etw_api *api;
    struct ew_etw_session_config config; /* pointers refer to our copies */
    char name[EW_ETW_NAME_MAX];
    uint16_t wide[EW_ETW_NAME_MAX];
    uint16_t file[EW_ETW_TEXT_UNITS];
    struct ew_etw_provider *providers;
    void *claim;     /* on the name; NULL: not supported */
    uint64_t handle; /* 0: not running */
    bool system_providers, took_over;
    bool not_ours; /* a session of this name exists, and its user has more rights */
    struct ew_etw_lost lost;
    struct ew_etw_totals totals;
    struct ew_etw_pmc pmc;
    struct ew_error unprivileged, refused; /* optional extras; code 0: nothing was refused */
    uint64_t refused_providers;            /* bit i: providers[i] */
    bool interval_set;
    struct ew_etw_profile_interval interval_before;
};

/* --------------------------------------------------------------- errors and names */

int ew_etw_fail(struct ew_error *reterr, uint32_t os_code, const char *what, const char *name)
{
    int code = ETWATCH_EOS;
    const char *why = "Windows refused it", *fix = "";
    switch (os_code) {
    case EW_WIN_ACCESS_DENIED:
        code = ETWATCH_EPERM;
        why = "access is denied";
        fix = "run it as an administrator (etwatch: --elevate), or add the user to the group "
              "Performance Log Users and sign in again";
        break;
    case EW_WIN_NOT_ALL_ASSIGNED:
    case EW_WIN_PRIVILEGE_NOT_HELD:
        code = ETWATCH_EPERM;
        why = "the privilege to profile the system is missing";
        fix = "run it as an administrator (etwatch: --elevate), or grant the user "
              "SeSystemProfilePrivilege (Local Security Policy: Profile system performance) and "
              "sign in again";
        break;
    case EW_WIN_NO_SYSTEM_RESOURCES:
        code = ETWATCH_ELIMIT;
        why = "all system loggers of this machine are in use";
        fix = "list them with: etwatch sessions; stop one with: logman stop NAME -ets";
        break;
    case EW_WIN_ALREADY_EXISTS:
        code = ETWATCH_ESTATE;
        why = "a session of this name exists and cannot be stopped";
        fix = "stop it with: logman stop NAME -ets";
        break;
    case EW_WIN_INVALID_PARAMETER:
        code = ETWATCH_EINVAL;
        why = "Windows does not accept the parameters";
        fix = "try smaller buffers, fewer of them, or fewer kinds of events";
        break;
    case EW_WIN_INSTANCE_NOT_FOUND:
        code = ETWATCH_ENOENT;
        why = "there is no such session";
        fix = "list sessions with: etwatch sessions";
        break;
    case EW_WIN_NOT_SUPPORTED:
        code = ETWATCH_ENOTSUP;
        why = "this Windows does not support it";
        break;
    case EW_WIN_NOT_ENOUGH_MEMORY:
        why = "Windows has no memory for it";
        fix = "try smaller or fewer buffers: --buffer-memory";
        break;
    case EW_WIN_BAD_LENGTH:
        why = "Windows does not accept the length of a structure";
        break;
    case EW_WIN_MORE_DATA:
        why = "Windows has more data than fits";
        break;
    case EW_WIN_CANCELLED:
        why = "it was cancelled";
        break;
    default:
        break;
    }
    ew_error_set(reterr, code, os_code, "%s '%.60s': %s (error %u)", what, name, why,
                 (unsigned)os_code);
    if (fix[0] != '\0')
        ew_error_fix(reterr, "%s", fix);
    else
        ew_error_fix(reterr, "the text of the error: net helpmsg %u", (unsigned)os_code);
    return code;
}

static bool widen(const char *text, uint16_t *to, size_t room)
{
    size_t len = strlen(text), at = 0;
    for (size_t i = 0; i < len;) {
        uint32_t code;
        i += ew_utf8_decode(text + i, len - i, &code);
        if (code == EW_UTF8_INVALID || at + 3 > room)
            return false;
        if (code >= 0x10000) {
            to[at++] = (uint16_t)(0xD800 + ((code - 0x10000) >> 10));
            to[at++] = (uint16_t)(0xDC00 + ((code - 0x10000) & 0x3FF));
        } else {
            to[at++] = (uint16_t)code;
        }
    }
    to[at] = 0;
    return at > 0;
}

bool ew_etw_wide_name(const char *name, uint16_t ret_wide[EW_ETW_NAME_MAX])
{
    return widen(name, ret_wide, EW_ETW_NAME_MAX);
}

/* ------------------------------------------------------------------- configuration */

static uint32_t at_least(uint32_t value, uint32_t floor)
{
    return value < floor ? floor : value;
}

/*
 * ETW needs two buffers per CPU. Context switches are logged where no memory can be allocated, so
 * the buffers must exist from the start: eight per CPU, and as many again in reserve, within the
 * memory limit. At a million switches per second on four CPUs that lasts 46 ms, which is more than
 * the 31 ms for which another thread may keep our thread off the CPU.
 */
static void plan_buffers(struct ew_etw_session_config *config, uint32_t cpus)
{
    if (config->buffer_kb == 0)
        config->buffer_kb = DEFAULT_BUFFER_KB;
    if (config->memory_bytes == 0)
        config->memory_bytes = default_memory_bytes;
    uint64_t afford = config->memory_bytes / (config->buffer_kb * UINT64_C(1024));
    uint32_t most = afford > UINT32_MAX / 2 ? UINT32_MAX / 2 : (uint32_t)afford;
    uint32_t floor = at_least(2 * cpus, MIN_BUFFERS);
    if (config->min_buffers == 0) {
        uint32_t target = at_least(8 * cpus, FEW_BUFFERS);
        config->min_buffers = at_least(target < most ? target : most, floor);
    }
    if (config->max_buffers == 0) {
        uint32_t target = at_least(16 * cpus, MAX_BUFFERS);
        config->max_buffers = at_least(target < most ? target : most, config->min_buffers);
    }
}

static int check(const struct ew_etw_session_config *config, struct ew_error *reterr)
{
    if (config->buffer_kb < BUFFER_KB_MIN || config->buffer_kb > BUFFER_KB_MAX)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0, "a buffer must have %d to %d KB, not %u",
                            BUFFER_KB_MIN, BUFFER_KB_MAX, (unsigned)config->buffer_kb);
    if (config->max_buffers < config->min_buffers)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0, "max_buffers is less than min_buffers");
    if (config->provider_count > PROVIDERS_MAX)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0, "at most %d providers", PROVIDERS_MAX);
    for (uint32_t i = 0; i < config->provider_count; i++)
        if (config->providers[i].pid_count > PIDS_MAX ||
            config->providers[i].event_id_count > EVENT_IDS_MAX)
            return ew_error_set(reterr, ETWATCH_EINVAL, 0,
                                "a provider can be limited to %d processes and %d events", PIDS_MAX,
                                EVENT_IDS_MAX);
    return 0;
}

/* The description of the machine belongs into a file only. */
static uint32_t enable_flags(const struct ew_etw_session *session, uint32_t kernel)
{
    uint32_t rest = session->file[0] == 0 ? EW_ETW_FLAG_NO_SYSCONFIG : 0;
    return session->system_providers ? 0 : ew_etw_kernel_flags(kernel) | rest;
}

static void fill_properties(const struct ew_etw_session *session, struct ew_etw_room *room)
{
    const struct ew_etw_session_config *config = &session->config;
    ew_etw_room_init(room);
    struct ew_etw_properties *p = &room->properties;
    p->clock = CLOCK_QPC;
    p->buffer_kb = config->buffer_kb;
    p->min_buffers = config->min_buffers;
    p->max_buffers = config->max_buffers;
    p->flush_s = 1;
    p->log_mode = EW_ETW_SYSTEM_LOGGER | EW_ETW_INDEPENDENT_SESSION;
    p->enable_flags = enable_flags(session, config->kernel);
    p->log_mode |= session->file[0] != 0 ? EW_ETW_SEQUENTIAL_FILE : EW_ETW_REAL_TIME;
    memcpy(room->file, session->file, sizeof room->file);
    if (session->file[0] == 0)
        p->file_name_at = 0; /* else Windows expects the name of a file */
}

/* ---------------------------------------------------------------------- providers */

static uint32_t enable_system(struct ew_etw_session *session, uint32_t before, uint32_t after)
{
    const struct ew_etw_api *api = session->api;
    for (uint32_t i = 0; i < EW_ETW_SYSTEM_PROVIDERS; i++) {
        uint64_t old = ew_etw_kernel_keywords(before, i);
        uint64_t keywords = ew_etw_kernel_keywords(after, i);
        if (keywords == old)
            continue;
        uint32_t code = keywords == 0 ? EW_ETW_DISABLE_PROVIDER : EW_ETW_ENABLE_PROVIDER;
        uint32_t rc = api->enable(api->ctx, session->handle, ew_etw_system_provider(i), code,
                                  LEVEL_VERBOSE, keywords, 0, NULL);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* EVENT_FILTER_EVENT_ID */
struct event_id_filter {
    uint8_t in, reserved;
    uint16_t count;
    uint16_t ids[EVENT_IDS_MAX];
};

/* The graphics kernel describes its devices and contexts when they are made, and on request. */
static bool has_state(const uint8_t provider[16])
{
    static const uint8_t dxgkrnl[16] = {0x5a, 0xc4, 0x2e, 0x80, 0x99, 0x1e, 0x83, 0x4b,
                                        0x99, 0x20, 0x87, 0xc9, 0x82, 0x77, 0xba, 0x9d};
    return memcmp(provider, dxgkrnl, sizeof dxgkrnl) == 0;
}

static uint32_t enable_provider(const struct ew_etw_session *session,
                                const struct ew_etw_provider *provider)
{
    struct event_id_filter ids = {.in = 1, .count = (uint16_t)provider->event_id_count};
    struct ew_etw_filter filters[2];
    struct ew_etw_enable parameters = {.version = 2, .filters = filters};
    if (provider->pid_count > 0)
        filters[parameters.filter_count++] = (struct ew_etw_filter){
            .at = (uint64_t)(uintptr_t)provider->pids,
            .size = provider->pid_count * (uint32_t)sizeof *provider->pids,
            .type = EW_ETW_FILTER_PID,
        };
    if (provider->event_id_count > 0) {
        memcpy(ids.ids, provider->event_ids, 2 * provider->event_id_count);
        filters[parameters.filter_count++] = (struct ew_etw_filter){
            .at = (uint64_t)(uintptr_t)&ids,
            .size = 4 + 2 * provider->event_id_count,
            .type = EW_ETW_FILTER_EVENT_ID,
        };
    }
    if (parameters.filter_count == 0)
        parameters.filters = NULL;
    uint32_t rc = session->api->enable(
        session->api->ctx, session->handle, provider->guid, EW_ETW_ENABLE_PROVIDER,
        provider->level == 0 ? LEVEL_VERBOSE : provider->level, provider->keywords, 0, &parameters);
    /* Without it the contexts that exist already are unknown, no more. */
    if (rc == 0 && has_state(provider->guid))
        (void)session->api->enable(session->api->ctx, session->handle, provider->guid,
                                   EW_ETW_CAPTURE_STATE, 0, 0, 0, NULL);
    return rc;
}

/* ----------------------------------------------------------------- machine-wide */

static uint32_t set_interval(struct ew_etw_session *session)
{
    const struct ew_etw_api *api = session->api;
    struct ew_etw_profile_interval wanted = {.interval_100ns = session->config.profile_100ns};
    uint32_t size = 0;
    if (wanted.interval_100ns == 0 || session->interval_set)
        return 0;
    uint32_t rc =
        api->query_information(api->ctx, 0, EW_ETW_INFO_PROFILE_INTERVAL, &session->interval_before,
                               sizeof session->interval_before, &size);
    /* Do not change what cannot be restored. */
    if (rc != 0)
        return rc;
    rc = api->set_information(api->ctx, 0, EW_ETW_INFO_PROFILE_INTERVAL, &wanted, sizeof wanted);
    session->interval_set = rc == 0;
    return rc;
}

static void restore_interval(struct ew_etw_session *session)
{
    if (session->interval_set)
        (void)session->api->set_information(session->api->ctx, 0, EW_ETW_INFO_PROFILE_INTERVAL,
                                            &session->interval_before,
                                            sizeof session->interval_before);
    session->interval_set = false;
}

static uint32_t set_stacks(struct ew_etw_session *session)
{
    struct ew_etw_classic_id ids[EW_ETW_STACKS_MAX];
    size_t count = ew_etw_kernel_stacks(session->config.stacks, ids);
    return session->api->set_information(session->api->ctx, session->handle, EW_ETW_INFO_STACKS,
                                         ids, (uint32_t)(count * sizeof ids[0]));
}

/* -------------------------------------------------------------------------- start */

static uint32_t start_once(struct ew_etw_session *session)
{
    struct ew_etw_room room;
    fill_properties(session, &room);
    return session->api->start(session->api->ctx, &session->handle, session->wide,
                               &room.properties);
}

/* A session with the same name was left behind: it is stopped. Windows may need a moment for that.
 */
static uint32_t start_or_take_over(struct ew_etw_session *session)
{
    const struct ew_etw_api *api = session->api;
    struct ew_etw_room room;
    uint32_t rc = start_once(session);
    session->not_ours = false;
    for (int i = 0; rc == EW_WIN_ALREADY_EXISTS && i < TAKE_OVER_TRIES; i++) {
        if (i > 0)
            ew_os_sleep_ms(TAKE_OVER_PAUSE_MS);
        ew_etw_room_init(&room);
        uint32_t stopped =
            api->control(api->ctx, 0, session->wide, &room.properties, EW_ETW_CONTROL_STOP);
        session->not_ours = stopped == EW_WIN_ACCESS_DENIED;
        session->took_over |= stopped == 0 || stopped == EW_WIN_MORE_DATA;
        rc = start_once(session);
        if (session->not_ours)
            break; /* another user started it, with more rights */
    }
    return rc;
}

/* ------------------------------------------------------------ limits of the machine */

struct usage {
    uint32_t sessions, system_loggers;
};

static void count_usage(void *ctx, const struct ew_etw_session_info *info)
{
    struct usage *usage = ctx;
    bool reserved = strcmp(info->name, "NT Kernel Logger") == 0 ||
                    strcmp(info->name, "Circular Kernel Context Logger") == 0;
    usage->sessions++;
    usage->system_loggers += info->system_logger && !reserved;
}

enum limit { LIMIT_LOGGERS, LIMIT_SESSIONS, LIMIT_MEMORY, LIMIT_UNKNOWN };

/* Error 1450 has three causes, which Windows does not distinguish. */
static enum limit find_limit(const struct ew_etw_session *session, uint32_t *ret_most)
{
    enum { SYSTEM_LOGGERS = 6, DEFAULT_SESSIONS = 64 }; /* eight, two of which are reserved */
    const struct ew_etw_api *api = session->api;
    struct usage usage = {0, 0};
    uint32_t most = 0, size = 0;
    if (api->query_information(api->ctx, 0, EW_ETW_INFO_MAX_LOGGERS, &most, sizeof most, &size) !=
            0 ||
        most == 0)
        most = DEFAULT_SESSIONS;
    *ret_most = most;
    if (ew_etw_session_list(api, count_usage, &usage, NULL) < 0)
        return LIMIT_UNKNOWN;
    if (usage.system_loggers >= SYSTEM_LOGGERS)
        return LIMIT_LOGGERS;
    return usage.sessions >= most ? LIMIT_SESSIONS : LIMIT_MEMORY;
}

/* Fewer buffers may help. */
static bool may_be_memory(const struct ew_etw_session *session)
{
    uint32_t most = 0;
    enum limit limit = find_limit(session, &most);
    return limit == LIMIT_MEMORY || limit == LIMIT_UNKNOWN;
}

/* An unknown cause is reported as the most frequent one, all loggers in use. */
static int fail_by_limit(const struct ew_etw_session *session, struct ew_error *reterr)
{
    uint32_t most = 0;
    enum limit limit = find_limit(session, &most);
    int code =
        ew_etw_fail(reterr, EW_WIN_NO_SYSTEM_RESOURCES, "cannot start the session", session->name);
    if (limit == LIMIT_SESSIONS) {
        ew_error_set(reterr, code, EW_WIN_NO_SYSTEM_RESOURCES,
                     "cannot start the session '%.60s': all %u sessions of this machine are in use "
                     "(error 1450)",
                     session->name, (unsigned)most);
        ew_error_fix(reterr,
                     "list them with: etwatch sessions; stop one with: logman stop NAME -ets");
    } else if (limit == LIMIT_MEMORY) {
        ew_error_set(reterr, code, EW_WIN_NO_SYSTEM_RESOURCES,
                     "cannot start the session '%.60s': no memory for its buffers (error 1450)",
                     session->name);
        ew_error_fix(reterr, "try smaller or fewer buffers: --buffer-memory");
    }
    return code;
}

/* Fewer buffers, down to the two per CPU that Windows needs. False: there are no fewer. */
static bool shrink_buffers(struct ew_etw_session *session)
{
    struct ew_etw_session_config *config = &session->config;
    uint32_t floor = at_least(2 * session->api->cpu_count(session->api->ctx), MIN_BUFFERS);
    if (config->max_buffers <= floor)
        return false;
    config->max_buffers = at_least(config->max_buffers / 2, floor);
    if (config->min_buffers > config->max_buffers)
        config->min_buffers = config->max_buffers;
    return true;
}

static int start_session(struct ew_etw_session *session, struct ew_error *reterr)
{
    uint32_t rc = start_or_take_over(session);
    while ((rc == EW_WIN_NOT_ENOUGH_MEMORY ||
            (rc == EW_WIN_NO_SYSTEM_RESOURCES && may_be_memory(session))) &&
           shrink_buffers(session))
        rc = start_or_take_over(session);
    if (rc == 0)
        return 0;
    session->handle = 0;
    if (rc == EW_WIN_NO_SYSTEM_RESOURCES)
        return fail_by_limit(session, reterr);
    return ew_etw_fail(reterr, rc, "cannot start the session", session->name);
}

/* The result of a call that only an extra of the session needs. An optional extra is left out. */
static int check_extra(struct ew_etw_session *session, uint32_t rc, const char *what,
                       struct ew_error *reterr)
{
    struct ew_error why = {0};
    if (rc == 0)
        return 0;
    int error = ew_etw_fail(&why, rc, what, session->name);
    if (session->config.optional) {
        if (session->refused.code == 0)
            session->refused = why;
        return 0;
    }
    if (reterr != NULL)
        *reterr = why;
    return error;
}

static int configure(struct ew_etw_session *session, struct ew_error *reterr)
{
    const struct ew_etw_session_config *config = &session->config;
    int error =
        check_extra(session, set_interval(session), "cannot set the profile interval for", reterr);
    /* Before events are enabled: otherwise the rundown events have no stack. */
    if (error == 0 && config->stacks != 0)
        error = check_extra(session, set_stacks(session), "cannot enable stacks in", reterr);
    if (error != 0)
        return error;
    uint32_t rc = session->system_providers ? enable_system(session, 0, config->kernel) : 0;
    if (rc != 0)
        return ew_etw_fail(reterr, rc, "cannot enable kernel events in", session->name);
    for (uint32_t i = 0; i < config->provider_count && error == 0; i++) {
        rc = enable_provider(session, &config->providers[i]);
        session->refused_providers |= (uint64_t)(rc != 0) << i;
        error = check_extra(session, rc, "cannot enable a provider in", reterr);
    }
    if (error != 0)
        return error;
    /* After switches are enabled: Windows accepts only events that are logged. */
    bool switches = (config->kernel & EW_ETW_CSWITCH) != 0;
    ew_etw_pmc_enable(session->api, session->handle, switches ? config->counters : 0,
                      &session->pmc);
    return 0;
}

static int start_this_way(struct ew_etw_session *session, bool system_providers,
                          struct ew_error *reterr)
{
    session->system_providers = system_providers;
    int error = start_session(session, reterr);
    if (error != 0)
        return error;
    session->lost = (struct ew_etw_lost){0};
    session->refused = session->unprivileged;
    session->refused_providers = 0;
    error = configure(session, reterr);
    if (error != 0)
        (void)ew_etw_session_halt(session);
    return error;
}

/* Without the privilege Windows refuses a session that profiles as a whole. */
static int check_privilege(struct ew_etw_session *session, struct ew_error *reterr)
{
    const struct ew_etw_api *api = session->api;
    struct ew_etw_session_config *config = &session->config;
    bool profiles =
        (config->kernel & EW_ETW_PROFILE) != 0 || config->stacks != 0 || config->profile_100ns != 0;
    uint32_t rc = api->enable_privilege(api->ctx, profile_privilege);
    if (rc == 0 || !profiles)
        return 0;
    (void)ew_etw_fail(&session->unprivileged, rc, "cannot profile in", session->name);
    if (config->optional && (config->kernel & ~(uint32_t)EW_ETW_PROFILE) != 0) {
        config->kernel &= ~(uint32_t)EW_ETW_PROFILE;
        config->stacks = config->profile_100ns = 0;
        return 0;
    }
    if (reterr != NULL)
        *reterr = session->unprivileged;
    return session->unprivileged.code;
}

int ew_etw_session_restart(struct ew_etw_session *session, struct ew_error *reterr)
{
    const struct ew_etw_api *api = session->api;
    const struct ew_etw_session_config *config = &session->config;
    (void)ew_etw_session_halt(session);
    int error = check_privilege(session, reterr);
    if (error != 0)
        return error;
    error = config->way == EW_ETW_WAY_PROVIDERS ? start_this_way(session, true, reterr)
                                                : start_this_way(session, false, reterr);
    /* What both ways need alike is not tried twice: a free logger, and a free name. */
    bool another_way = config->way == EW_ETW_WAY_ANY && error != 0 && error != ETWATCH_ELIMIT &&
                       error != ETWATCH_ESTATE &&
                       ew_etw_has_system_providers(api->os_build(api->ctx));
    if (another_way && start_this_way(session, true, NULL) == 0)
        return 0;
    return error;
}

static int copy_providers(struct ew_etw_session *session, struct ew_error *reterr)
{
    struct ew_etw_session_config *config = &session->config;
    if (config->provider_count == 0)
        return 0;
    session->providers = ew_calloc(config->provider_count, sizeof *session->providers);
    if (session->providers == NULL)
        return ew_error_set(reterr, ETWATCH_ENOMEM, 0, "out of memory");
    for (uint32_t i = 0; i < config->provider_count; i++) {
        struct ew_etw_provider *copy = &session->providers[i];
        uint32_t *pids = ew_calloc(PIDS_MAX, sizeof *pids);
        uint16_t *ids = ew_calloc(EVENT_IDS_MAX, sizeof *ids);
        *copy = config->providers[i];
        if (pids != NULL && copy->pid_count > 0)
            memcpy(pids, copy->pids, copy->pid_count * sizeof *pids);
        if (ids != NULL && copy->event_id_count > 0)
            memcpy(ids, copy->event_ids, copy->event_id_count * sizeof *ids);
        copy->pids = pids;
        copy->event_ids = ids;
        if (pids == NULL || ids == NULL)
            return ew_error_set(reterr, ETWATCH_ENOMEM, 0, "out of memory");
    }
    config->providers = session->providers;
    return 0;
}

static int take_config(struct ew_etw_session *session,
                       const struct ew_etw_session_config *requested, struct ew_error *reterr)
{
    const struct ew_etw_api *api = session->api;
    struct ew_etw_session_config *config = &session->config;
    const char *name = requested->name == NULL ? default_name : requested->name;
    *config = *requested;
    config->name = session->name;
    if (config->kernel == 0)
        config->kernel = EW_ETW_KERNEL_WATCH;
    if (!ew_etw_is_ours(name) || strlen(name) >= sizeof session->name ||
        !ew_etw_wide_name(name, session->wide)) {
        ew_error_set(reterr, ETWATCH_EINVAL, 0, "'%.60s' is not a valid session name", name);
        ew_error_fix(reterr, "use a short name that begins with " EW_ETW_OURS "-");
        return ETWATCH_EINVAL;
    }
    memcpy(session->name, name, strlen(name) + 1);
    if (requested->file != NULL && !widen(requested->file, session->file, EW_ETW_TEXT_UNITS))
        return ew_error_set(reterr, ETWATCH_EINVAL, 0, "'%.60s' is not a valid file name",
                            requested->file);
    config->file = NULL;
    plan_buffers(config, at_least(api->cpu_count(api->ctx), 1));
    int error = check(config, reterr);
    return error == 0 ? copy_providers(session, reterr) : error;
}

/* Gives the session the name of that number (len: the length without it) and claims it. False: a
 * running etwatch holds the name. */
static bool take_number(struct ew_etw_session *session, size_t len, char number)
{
    const struct ew_etw_api *api = session->api;
    if (number > '1' && len + 3 <= sizeof session->name) {
        session->name[len] = '-';
        session->name[len + 1] = number;
        session->name[len + 2] = '\0';
    }
    if (!ew_etw_wide_name(session->name, session->wide))
        return false;
    if (api->claim != NULL)
        session->claim = api->claim(api->ctx, session->wide);
    return api->claim == NULL || session->claim != NULL;
}

/* A name held by a running etwatch is skipped: its session must not be stopped. So is the name of a
 * session that cannot be stopped, because a user with more rights left it behind. */
static int start_by_name(struct ew_etw_session *session, struct ew_error *reterr)
{
    const struct ew_etw_api *api = session->api;
    size_t len = strlen(session->name);
    int error = 0;
    for (char number = '1'; number <= '9'; number++) {
        if (!take_number(session, len, number))
            continue;
        error = ew_etw_session_restart(session, reterr);
        if (error != ETWATCH_ESTATE || !session->not_ours)
            return error;
        if (session->claim != NULL)
            api->release(api->ctx, session->claim);
        session->claim = NULL;
    }
    session->name[len] = '\0';
    if (error != 0)
        return error;
    ew_error_set(reterr, ETWATCH_ELIMIT, 0, "nine sessions '%.60s' are in use", session->name);
    ew_error_fix(reterr, "stop one of the other running etwatch processes");
    return ETWATCH_ELIMIT;
}

int ew_etw_session_start(const struct ew_etw_api *api, const struct ew_etw_session_config *config,
                         struct ew_etw_session **ret_session, struct ew_error *reterr)
{
    struct ew_etw_session *session = ew_calloc(1, sizeof *session);
    if (session == NULL)
        return ew_error_set(reterr, ETWATCH_ENOMEM, 0, "out of memory");
    session->api = api;
    int error = take_config(session, config, reterr);
    if (error == 0)
        error = start_by_name(session, reterr);
    if (error != 0) {
        ew_etw_session_stop(session);
        return error;
    }
    *ret_session = session;
    return 0;
}

/* ------------------------------------------------------------------------ control */

/* QUERY and STOP both return the losses. 0, or the Windows error code. */
static uint32_t control_and_read_totals(struct ew_etw_session *session, uint32_t code)
{
    struct ew_etw_room room;
    const struct ew_etw_properties *p = &room.properties;
    ew_etw_room_init(&room);
    uint32_t rc =
        session->api->control(session->api->ctx, 0, session->wide, &room.properties, code);
    /* MORE_DATA: a name did not fit. The figures are complete, and a session has been stopped. */
    if (rc != 0 && rc != EW_WIN_MORE_DATA)
        return rc;
    session->lost = (struct ew_etw_lost){
        .events = p->events_lost,
        .buffers = (uint64_t)p->log_buffers_lost + p->real_time_buffers_lost,
    };
    session->totals = (struct ew_etw_totals){
        .events_lost = p->events_lost,
        .log_buffers_lost = p->log_buffers_lost,
        .real_time_buffers_lost = p->real_time_buffers_lost,
        .buffers_written = p->buffers_written,
        .buffer_kb = p->buffer_kb,
    };
    return 0;
}

bool ew_etw_session_halt(struct ew_etw_session *session)
{
    bool stopped =
        session->handle == 0 || control_and_read_totals(session, EW_ETW_CONTROL_STOP) == 0;
    session->handle = 0;
    return stopped;
}

struct ew_etw_lost ew_etw_session_lost(struct ew_etw_session *session)
{
    if (session->handle != 0)
        (void)control_and_read_totals(session, EW_ETW_CONTROL_QUERY);
    return session->lost;
}

bool ew_etw_session_totals(struct ew_etw_session *session, struct ew_etw_totals *ret_totals)
{
    /* A query that fails otherwise says nothing about the session. */
    bool runs = session->handle != 0 &&
                control_and_read_totals(session, EW_ETW_CONTROL_QUERY) != EW_WIN_INSTANCE_NOT_FOUND;
    *ret_totals = session->totals;
    return runs;
}

void ew_etw_session_stop(struct ew_etw_session *session)
{
    if (session == NULL)
        return;
    (void)ew_etw_session_halt(session);
    restore_interval(session);
    if (session->claim != NULL)
        session->api->release(session->api->ctx, session->claim);
    for (uint32_t i = 0; session->providers != NULL && i < session->config.provider_count; i++) {
        ew_free((void *)session->providers[i].pids);
        ew_free((void *)session->providers[i].event_ids);
    }
    ew_free(session->providers);
    ew_free(session);
}

/* Functions that take a handle must not reach a session that got the slot of ours. */
static uint32_t check_handle(const struct ew_etw_session *session)
{
    struct ew_etw_room room;
    ew_etw_room_init(&room);
    uint32_t rc = session->api->control(session->api->ctx, 0, session->wide, &room.properties,
                                        EW_ETW_CONTROL_QUERY);
    if (rc != 0 && rc != EW_WIN_MORE_DATA)
        return rc;
    /* MORE_DATA: there is a session of our name, but perhaps without its handle. */
    bool unknown = rc == EW_WIN_MORE_DATA && room.properties.history == 0;
    return unknown || room.properties.history == session->handle ? 0 : EW_WIN_INSTANCE_NOT_FOUND;
}

int ew_etw_session_set_kernel(struct ew_etw_session *session, uint32_t kernel,
                              struct ew_error *reterr)
{
    uint32_t masks[KERNEL_MASKS] = {enable_flags(session, kernel)};
    uint32_t rc = check_handle(session);
    if (rc == 0 && session->system_providers)
        rc = enable_system(session, session->config.kernel, kernel);
    else if (rc == 0) /* flags in an UPDATE count for the NT Kernel Logger only */
        rc = session->api->set_information(session->api->ctx, session->handle,
                                           EW_ETW_INFO_KERNEL_FLAGS, masks, sizeof masks);
    if (rc != 0)
        return ew_etw_fail(reterr, rc, "cannot change what is logged in", session->name);
    session->config.kernel = kernel;
    return 0;
}

int ew_etw_session_set_stacks(struct ew_etw_session *session, uint32_t stacks,
                              struct ew_error *reterr)
{
    uint32_t before = session->config.stacks;
    if (stacks == before)
        return 0;
    session->config.stacks = stacks;
    uint32_t rc = session->api->enable_privilege(session->api->ctx, profile_privilege);
    rc = rc == 0 ? check_handle(session) : rc;
    rc = rc == 0 ? set_stacks(session) : rc;
    if (rc == 0)
        return 0;
    session->config.stacks = before;
    return ew_etw_fail(reterr, rc, "cannot change which events have stacks in", session->name);
}

int ew_etw_session_flush(struct ew_etw_session *session)
{
    struct ew_etw_room room;
    ew_etw_room_init(&room);
    room.properties.file_name_at = 0;
    uint32_t rc = session->api->control(session->api->ctx, 0, session->wide, &room.properties,
                                        EW_ETW_CONTROL_FLUSH);
    return rc == 0 ? 0 : ETWATCH_EOS;
}

const char *ew_etw_session_name(const struct ew_etw_session *session)
{
    return session->name;
}

uint32_t ew_etw_session_kernel(const struct ew_etw_session *session)
{
    return session->config.kernel;
}

const struct ew_etw_pmc *ew_etw_session_pmc(const struct ew_etw_session *session)
{
    return &session->pmc;
}

const struct ew_error *ew_etw_session_refused(const struct ew_etw_session *session)
{
    return session->refused.code == 0 ? NULL : &session->refused;
}

bool ew_etw_session_has_provider(const struct ew_etw_session *session, const uint8_t guid[16])
{
    for (uint32_t i = 0; i < session->config.provider_count; i++)
        if (memcmp(session->config.providers[i].guid, guid, 16) == 0)
            return (session->refused_providers >> i & 1) == 0;
    return false;
}

bool ew_etw_session_took_over(const struct ew_etw_session *session)
{
    return session->took_over;
}
