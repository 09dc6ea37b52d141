/* SPDX-License-Identifier: MIT */
/* Queries sessions, of any program, and stops our orphans. */
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/utf16.h"
#include "source/etw/controller.h"
#include "source/etw/etw.h"

enum { SESSIONS_AT_FIRST = 64, SESSIONS_MAX = 1024 };

bool ew_etw_is_ours(const char *name)
{
    size_t len = strlen(EW_ETW_OURS);
    return strncmp(name, EW_ETW_OURS, len) == 0 && (name[len] == '\0' || name[len] == '-');
}

/* Ours, and not in use by any process. Without support for claims, every session of ours counts
 * as an orphan. */
static bool is_orphan(const struct ew_etw_api *api, const char *name)
{
    uint16_t wide[EW_ETW_NAME_MAX];
    if (!ew_etw_is_ours(name) || !ew_etw_wide_name(name, wide))
        return false;
    void *claim = api->claim == NULL ? NULL : api->claim(api->ctx, wide);
    if (claim != NULL)
        api->release(api->ctx, claim);
    return claim != NULL || api->claim == NULL;
}

static void read_text(const struct ew_etw_room *room, uint32_t at, char *text, size_t size)
{
    const uint8_t *bytes = (const uint8_t *)room;
    if (at < sizeof room->properties || at >= sizeof *room)
        return;
    (void)ew_utf16_to_utf8(bytes + at, ew_utf16_len(bytes + at, sizeof *room - at), text, size);
}

static void read_info(const struct ew_etw_room *room, struct ew_etw_session_info *info)
{
    const struct ew_etw_properties *p = &room->properties;
    memset(info, 0, sizeof *info);
    read_text(room, p->name_at, info->name, sizeof info->name);
    read_text(room, p->file_name_at, info->file, sizeof info->file);
    info->ours = ew_etw_is_ours(info->name);
    info->system_logger = (p->log_mode & EW_ETW_SYSTEM_LOGGER) != 0;
    info->real_time = (p->log_mode & EW_ETW_REAL_TIME) != 0;
    info->buffer_kb = p->buffer_kb;
    info->min_buffers = p->min_buffers;
    info->max_buffers = p->max_buffers;
    info->buffers = p->buffers;
    info->free_buffers = p->free_buffers;
    info->buffers_written = p->buffers_written;
    info->events_lost = p->events_lost;
    info->log_buffers_lost = p->log_buffers_lost;
    info->real_time_buffers_lost = p->real_time_buffers_lost;
    info->log_mode = p->log_mode;
    info->flush_s = p->flush_s;
    info->clock = p->clock;
    info->kernel_flags = p->enable_flags;
}

int ew_etw_session_query(const struct ew_etw_api *api, const char *name,
                         struct ew_etw_session_info *ret_info, struct ew_error *reterr)
{
    uint16_t wide[EW_ETW_NAME_MAX];
    struct ew_etw_room room;
    ew_etw_room_init(&room);
    if (!ew_etw_wide_name(name, wide))
        return ew_etw_fail(reterr, EW_WIN_INSTANCE_NOT_FOUND, "cannot find the session", name);
    uint32_t rc = api->control(api->ctx, 0, wide, &room.properties, EW_ETW_CONTROL_QUERY);
    if (rc != 0)
        return ew_etw_fail(reterr, rc, "cannot query the session", name);
    read_info(&room, ret_info);
    return 0;
}

struct listing {
    struct ew_etw_room *rooms;
    struct ew_etw_properties **array;
    uint32_t room_count, count;
};

static void free_listing(struct listing *listing)
{
    ew_free(listing->rooms);
    ew_free(listing->array);
}

static int make_listing(struct listing *listing, uint32_t room_count)
{
    memset(listing, 0, sizeof *listing);
    listing->rooms = ew_calloc(room_count, sizeof *listing->rooms);
    listing->array = ew_calloc(room_count, sizeof(struct ew_etw_properties *));
    listing->room_count = room_count;
    if (listing->rooms == NULL || listing->array == NULL) {
        free_listing(listing);
        return ETWATCH_ENOMEM;
    }
    for (uint32_t i = 0; i < room_count; i++) {
        ew_etw_room_init(&listing->rooms[i]);
        listing->array[i] = &listing->rooms[i].properties;
    }
    return 0;
}

/* Grows until all fit: 64 sessions by default, but a machine may be configured for more. */
static int list_all(const struct ew_etw_api *api, struct listing *listing, struct ew_error *reterr)
{
    for (uint32_t room = SESSIONS_AT_FIRST; room <= SESSIONS_MAX; room *= 4) {
        if (make_listing(listing, room) != 0)
            return ew_error_set(reterr, ETWATCH_ENOMEM, 0, "out of memory");
        uint32_t rc = api->query_all(api->ctx, listing->array, room, &listing->count);
        if (rc == 0)
            return 0;
        free_listing(listing);
        if (rc != EW_WIN_MORE_DATA)
            return ew_etw_fail(reterr, rc, "cannot list", "all sessions");
    }
    return ew_error_set(reterr, ETWATCH_ELIMIT, 0, "more than %d sessions", SESSIONS_MAX);
}

int ew_etw_session_list(const struct ew_etw_api *api,
                        void (*on_session)(void *ctx, const struct ew_etw_session_info *info),
                        void *ctx, struct ew_error *reterr)
{
    struct listing listing;
    struct ew_etw_session_info info;
    int error = list_all(api, &listing, reterr);
    if (error != 0)
        return error;
    uint32_t count = listing.count < listing.room_count ? listing.count : listing.room_count;
    for (uint32_t i = 0; i < count; i++) {
        read_info(&listing.rooms[i], &info);
        info.orphan = is_orphan(api, info.name);
        on_session(ctx, &info);
    }
    free_listing(&listing);
    return (int)count;
}

struct cleanup {
    const struct ew_etw_api *api;
    struct ew_error *error;
    int ended, failed;
};

static void end_ours(void *ctx, const struct ew_etw_session_info *info)
{
    struct cleanup *cleanup = ctx;
    struct ew_etw_room room;
    uint16_t wide[EW_ETW_NAME_MAX];
    if (!info->orphan || !ew_etw_wide_name(info->name, wide))
        return;
    ew_etw_room_init(&room);
    uint32_t rc =
        cleanup->api->control(cleanup->api->ctx, 0, wide, &room.properties, EW_ETW_CONTROL_STOP);
    if (rc == 0)
        cleanup->ended++;
    else if (rc != EW_WIN_INSTANCE_NOT_FOUND)
        cleanup->failed = ew_etw_fail(cleanup->error, rc, "cannot stop the session", info->name);
}

int ew_etw_session_cleanup(const struct ew_etw_api *api, struct ew_error *reterr)
{
    struct cleanup cleanup = {.api = api, .error = reterr};
    int error = ew_etw_session_list(api, end_ours, &cleanup, reterr);
    if (error < 0)
        return error;
    return cleanup.failed != 0 ? cleanup.failed : cleanup.ended;
}
