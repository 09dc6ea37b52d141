/* SPDX-License-Identifier: MIT */
/* The public list of ETW sessions, converted from the internal one. */
#include <string.h>

#include <etwatch/session.h>

#include "source/etw/controller.h"

struct listing {
    void (*on_session)(void *ctx, const struct etwatch_session_info *info);
    void *ctx;
};

static void name_kernel(uint32_t flags, char *text, size_t size)
{
    uint32_t set = ew_etw_kernel_from_flags(flags);
    size_t at = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < EW_ETW_KERNEL_COUNT; i++) {
        const char *name = ew_etw_kernel_name(i);
        size_t len = strlen(name);
        if ((set >> i & 1) == 0 || at + len + 2 > size)
            continue;
        if (at > 0)
            text[at++] = ',';
        memcpy(text + at, name, len + 1);
        at += len;
    }
}

const char *etwatch_session_kernel_name(uint32_t index)
{
    return ew_etw_kernel_name(index);
}

static void emit(void *ctx, const struct ew_etw_session_info *info)
{
    const struct listing *listing = ctx;
    char kernel[400];
    name_kernel(info->kernel_flags, kernel, sizeof kernel);
    struct etwatch_session_info out = {
        .size = sizeof out,
        .flags = (info->ours ? ETWATCH_SESSION_OURS : 0u) |
                 (info->orphan ? ETWATCH_SESSION_ORPHAN : 0u) |
                 (info->system_logger ? ETWATCH_SESSION_SYSTEM : 0u) |
                 (info->real_time ? ETWATCH_SESSION_REAL_TIME : 0u),
        .name = info->name,
        .buffer_kb = info->buffer_kb,
        .min_buffers = info->min_buffers,
        .max_buffers = info->max_buffers,
        .buffers = info->buffers,
        .free_buffers = info->free_buffers,
        .buffers_written = info->buffers_written,
        .events_lost = info->events_lost,
        .buffers_lost = info->log_buffers_lost,
        .real_time_buffers_lost = info->real_time_buffers_lost,
        .log_mode = info->log_mode,
        .clock = info->clock,
        .kernel_flags = info->kernel_flags,
        .flush_s = info->flush_s,
        .file = info->file,
        .kernel = kernel,
    };
    listing->on_session(listing->ctx, &out);
}

int ew_sessions_list(const struct ew_etw_api *api,
                     void (*on_session)(void *ctx, const struct etwatch_session_info *info),
                     void *ctx, struct ew_error *reterr)
{
    struct listing listing = {on_session, ctx};
    return ew_etw_session_list(api, emit, &listing, reterr);
}

int etwatch_session_list(void (*on_session)(void *ctx, const struct etwatch_session_info *info),
                         void *ctx, struct etwatch_error_info *reterr)
{
    struct ew_error error;
    if (on_session == NULL)
        return ETWATCH_EINVAL;
    memset(&error, 0, sizeof error);
    const struct ew_etw_api *api = ew_etw_real_api(&error);
    int rc = api == NULL ? error.code : ew_sessions_list(api, on_session, ctx, &error);
    if (rc < 0)
        ew_error_out(reterr, &error, error.code);
    return rc;
}

int etwatch_session_cleanup(struct etwatch_error_info *reterr)
{
    struct ew_error error;
    memset(&error, 0, sizeof error);
    const struct ew_etw_api *api = ew_etw_real_api(&error);
    int rc = api == NULL ? error.code : ew_etw_session_cleanup(api, &error);
    if (rc < 0)
        ew_error_out(reterr, &error, error.code);
    return rc;
}
