/* SPDX-License-Identifier: MIT */
/*
 * Owns a copy of the session options of a caller. Whatever can be checked without a session is
 * checked by the copy, so that nothing has been started when an option is rejected; only what needs
 * the machine, the GUID for a provider's name, is resolved later.
 */
#include "source/etw/session_options.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "decode/guid.h"
#include "decode/manifests.h"
#include "source/etw/etw.h"

enum {
    FLUSH_MS_MAX = 60000,
    PROFILE_HZ_MAX = 8000,
    LEVEL_MAX = 255,
    PROVIDERS_MAX = 64,
    BUFFERS_MAX = 65536,
};

int ew_session_options_kernel(const char *what, const char *names, uint32_t *ret_set,
                              struct ew_error *reterr)
{
    struct ew_error why;
    memset(&why, 0, sizeof why);
    int error = ew_etw_kernel_parse(names, ret_set, &why);
    if (error == 0 && *ret_set == 0)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0, "%s names no kind of kernel event", what);
    if (error == 0)
        return 0;
    ew_error_set(reterr, error, 0, "%s: %.200s", what, why.message);
    ew_error_fix(reterr, "%s", why.fix);
    return error;
}

/* "etwatch-NAME", unless name already has that prefix. */
static int take_name(struct ew_session_options *to, const char *name, struct ew_error *reterr)
{
    if (name == NULL)
        return 0;
    const char *before = ew_etw_is_ours(name) ? "" : EW_ETW_OURS "-";
    int len = snprintf(to->name, sizeof to->name, "%s%s", before, name);
    if (name[0] == '\0' || len < 0 || (size_t)len >= sizeof to->name)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0,
                            "the name of a session must have 1 to %d bytes, including " EW_ETW_OURS
                            "-",
                            EW_ETW_NAME_MAX - 1);
    to->session.name = to->name;
    return 0;
}

static int check_numbers(const struct etwatch_session_options *from, struct ew_error *reterr)
{
    if (from->flush_ms > FLUSH_MS_MAX)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0, "flush_ms must be at most %d", FLUSH_MS_MAX);
    if (from->profile_hz > PROFILE_HZ_MAX)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0, "profile_hz must be at most %d",
                            PROFILE_HZ_MAX);
    if (from->buffer_kb != 0 && (from->buffer_kb < 4 || from->buffer_kb > 16384))
        return ew_error_set(reterr, ETWATCH_EINVAL, 0, "buffer_kb must be 4 to 16384, not %u",
                            (unsigned)from->buffer_kb);
    if (from->min_buffers > BUFFERS_MAX || from->max_buffers > BUFFERS_MAX)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0, "at most %d buffers", BUFFERS_MAX);
    if (from->max_buffers != 0 && from->min_buffers > from->max_buffers)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0,
                            "min_buffers (%u) is more than max_buffers (%u)",
                            (unsigned)from->min_buffers, (unsigned)from->max_buffers);
    if (from->provider_count > PROVIDERS_MAX)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0, "at most %d providers", PROVIDERS_MAX);
    if (from->provider_count > 0 && from->providers == NULL)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0, "a count is set, but its list is NULL");
    return 0;
}

static int take_kernel(struct ew_etw_session_config *to, const struct etwatch_session_options *from,
                       struct ew_error *reterr)
{
    int error = 0;
    if (from->kernel != NULL)
        error = ew_session_options_kernel("kernel", from->kernel, &to->kernel, reterr);
    if (error == 0 && from->stacks != NULL)
        error = ew_session_options_kernel("stacks", from->stacks, &to->stacks, reterr);
    if (error != 0 || from->profile_hz == 0)
        return error;
    to->profile_100ns = (10000000 + from->profile_hz / 2) / from->profile_hz;
    to->kernel = (to->kernel == 0 ? EW_ETW_KERNEL_WATCH : to->kernel) | EW_ETW_PROFILE;
    return 0;
}

static int take_provider(struct ew_etw_provider *to, struct ew_provider_request *request,
                         const struct etwatch_provider *from, struct ew_error *reterr)
{
    if (from->name == NULL || from->name[0] == '\0' || strlen(from->name) >= sizeof request->name)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0, "a provider needs a name, or its GUID");
    if (from->pid_count > EW_PROVIDER_PIDS_MAX || from->event_id_count > EW_PROVIDER_IDS_MAX ||
        (from->pid_count > 0 && from->pids == NULL) ||
        (from->event_id_count > 0 && from->event_ids == NULL))
        return ew_error_set(reterr, ETWATCH_EINVAL, 0,
                            "%.80s: a provider can be limited to %d processes and %d events",
                            from->name, EW_PROVIDER_PIDS_MAX, EW_PROVIDER_IDS_MAX);
    if (from->level > LEVEL_MAX)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0, "%.80s: level must be at most %d",
                            from->name, LEVEL_MAX);
    memcpy(request->name, from->name, strlen(from->name) + 1);
    if (from->pid_count > 0)
        memcpy(request->pids, from->pids, from->pid_count * sizeof request->pids[0]);
    if (from->event_id_count > 0)
        memcpy(request->ids, from->event_ids, from->event_id_count * sizeof request->ids[0]);
    to->level = (uint8_t)from->level;
    to->keywords = from->keywords;
    to->pids = request->pids;
    to->pid_count = from->pid_count;
    to->event_ids = request->ids;
    to->event_id_count = from->event_id_count;
    return 0;
}

static int take_providers(struct ew_session_options *to, const struct etwatch_session_options *from,
                          struct ew_error *reterr)
{
    const unsigned char *at = (const unsigned char *)from->providers;
    if (from->provider_count == 0)
        return 0;
    to->providers = ew_calloc(from->provider_count, sizeof *to->providers);
    to->requests = ew_calloc(from->provider_count, sizeof *to->requests);
    if (to->providers == NULL || to->requests == NULL)
        return ew_error_set(reterr, ETWATCH_ENOMEM, 0, "out of memory");
    uint32_t each = from->providers->size;
    for (uint32_t i = 0; i < from->provider_count; i++, at += each) {
        struct etwatch_provider given;
        int error = ew_sized_in(&given, sizeof given, at, "provider", reterr);
        if (error == 0)
            error = take_provider(&to->providers[i], &to->requests[i], &given, reterr);
        if (error != 0)
            return error;
    }
    to->session.providers = to->providers;
    to->session.provider_count = from->provider_count;
    return 0;
}

int ew_session_options_copy(struct ew_session_options *to,
                            const struct etwatch_session_options *from, struct ew_error *reterr)
{
    struct etwatch_session_options given;
    memset(to, 0, sizeof *to);
    int error = ew_sized_in(&given, sizeof given, from, "session_options", reterr);
    if (error == 0)
        error = check_numbers(&given, reterr);
    if (error == 0)
        error = take_name(to, given.name, reterr);
    if (error == 0)
        error = take_kernel(&to->session, &given, reterr);
    if (error == 0)
        error = take_providers(to, &given, reterr);
    if (error != 0) {
        ew_session_options_done(to);
        return error;
    }
    to->flush_ms = given.flush_ms;
    to->no_buffers = (given.ways & ETWATCH_SESSION_BY_EVENTS) != 0;
    to->session.way = (given.ways & ETWATCH_SESSION_BY_PROVIDERS) != 0 ? EW_ETW_WAY_PROVIDERS
                      : (given.ways & ETWATCH_SESSION_BY_FLAGS) != 0   ? EW_ETW_WAY_FLAGS
                                                                       : EW_ETW_WAY_ANY;
    to->session.buffer_kb = given.buffer_kb;
    to->session.min_buffers = given.min_buffers;
    to->session.max_buffers = given.max_buffers;
    to->session.memory_bytes = given.memory_bytes;
    to->session.counters = ew_pmc_counters_of(&given.counters);
    return 0;
}

int ew_session_options_resolve(struct ew_session_options *options, const struct ew_etw_api *api,
                               struct ew_error *reterr)
{
    for (uint32_t i = 0; i < options->session.provider_count; i++) {
        int error =
            ew_provider_find(api, options->requests[i].name, options->providers[i].guid, reterr);
        if (error != 0)
            return error;
    }
    return 0;
}

void ew_session_options_done(struct ew_session_options *options)
{
    ew_free(options->providers);
    ew_free(options->requests);
    memset(options, 0, sizeof *options);
}
