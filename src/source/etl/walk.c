/* SPDX-License-Identifier: MIT */
/*
 * The uncommon part of reading events: the end of a buffer, messages of the old software
 * preprocessor (WPP), the chain of extended items, and damage.
 */
#include "source/etl/walk.h"

/* Sizes and offsets according to "Event (trace) headers" as Windows Vista to 11 write them. The
 * obsolete types 12 to 14 (TIMED, ERROR, WNODE) were never seen on disk. */
const struct ew_etl_layout ew_etl_layouts[EW_ETL_TYPE_COUNT] = {
    [EW_ETL_SYSTEM32] = {0x20, 0x10, 4},   [EW_ETL_SYSTEM64] = {0x20, 0x10, 4},
    [EW_ETL_COMPACT32] = {0x18, 0x10, 4},  [EW_ETL_COMPACT64] = {0x18, 0x10, 4},
    [EW_ETL_PERFINFO32] = {0x10, 8, 4},    [EW_ETL_PERFINFO64] = {0x10, 8, 4},
    [EW_ETL_FULL32] = {0x30, 0x10, 0},     [EW_ETL_FULL64] = {0x30, 0x10, 0},
    [EW_ETL_INSTANCE32] = {0x48, 0x10, 0}, [EW_ETL_INSTANCE64] = {0x48, 0x10, 0},
    [EW_ETL_EVENT32] = {0x50, 0x10, 0},    [EW_ETL_EVENT64] = {0x50, 0x10, 0},
};

enum {
    END_MARKER_SIZE = 4,
    MESSAGE_HEADER_SIZE = 8,
    MESSAGE_SEQUENCE = 0x1,
    MESSAGE_GUID = 0x2,
    MESSAGE_COMPONENT = 0x4, /* takes precedence over GUID */
    MESSAGE_TIME = 0x8,
    MESSAGE_IDS = 0x20,
    MESSAGE_POINTER32 = 0x40,
};

/* Offsets of the optional fields of a message; 0: absent. */
struct message {
    uint32_t guid_at, time_at, ids_at, payload_at;
};

static struct message message_layout(uint32_t flags)
{
    struct message m = {0};
    uint32_t at = MESSAGE_HEADER_SIZE;
    if (flags & MESSAGE_SEQUENCE)
        at += 4;
    if (flags & MESSAGE_COMPONENT) {
        at += 4;
    } else if (flags & MESSAGE_GUID) {
        m.guid_at = at;
        at += 16;
    }
    if (flags & MESSAGE_TIME) {
        m.time_at = at;
        at += 8;
    }
    if (flags & MESSAGE_IDS) {
        m.ids_at = at;
        at += 8;
    }
    m.payload_at = at;
    return m;
}

void ew_etl_fill_message(struct ew_record *record, const uint8_t *at, uint32_t size)
{
    uint32_t flags = ew_load_u16(at + 6);
    struct message m = message_layout(flags);
    record->kind = EW_RECORD_MESSAGE;
    record->id = ew_load_u16(at + 4);
    record->version = record->opcode = record->group = 0;
    record->pointer_size = (uint8_t)(flags & MESSAGE_POINTER32 ? 4 : 8);
    record->provider = m.guid_at ? at + m.guid_at : NULL;
    if (m.ids_at) {
        record->tid = ew_load_u32(at + m.ids_at);
        record->pid = ew_load_u32(at + m.ids_at + 4);
    }
    record->payload = at + m.payload_at;
    record->payload_size = size - m.payload_at;
}

static enum ew_etl_step frame_message(const uint8_t *at, size_t left,
                                      struct ew_etl_frame *ret_frame, const char **ret_what)
{
    *ret_what = "a message is cut short";
    if (left < MESSAGE_HEADER_SIZE)
        return EW_ETL_CUT;
    uint32_t size = ew_load_u16(at);
    struct message m = message_layout(ew_load_u16(at + 6));
    if (size < m.payload_at) {
        *ret_what = "a message is shorter than its header";
        return EW_ETL_BAD;
    }
    if (size > left)
        return EW_ETL_CUT;
    *ret_frame = (struct ew_etl_frame){
        .t_raw = m.time_at ? ew_load_u64(at + m.time_at) : 0,
        .size = size,
        .type = EW_ETL_MESSAGE,
        .has_time = m.time_at != 0,
    };
    return EW_ETL_EVENT;
}

/* Classifies an event that the fast path rejected: truncated or damaged. */
static enum ew_etl_step frame_event(const uint8_t *at, size_t left, uint32_t type,
                                    const char **ret_what)
{
    const struct ew_etl_layout *layout =
        type < EW_ETL_TYPE_COUNT ? &ew_etl_layouts[type] : &ew_etl_layouts[0];
    *ret_what = "an event of an unknown type";
    if (layout->header_size == 0)
        return EW_ETL_BAD;
    *ret_what = "an event is cut short";
    if (left < 8)
        return EW_ETL_CUT;
    uint32_t size = ew_load_u16(at + layout->size_at);
    if (size >= layout->header_size)
        return EW_ETL_CUT;
    *ret_what = "an event is shorter than its header";
    return EW_ETL_BAD;
}

enum ew_etl_step ew_etl_frame_slow(const uint8_t *at, const uint8_t *end,
                                   struct ew_etl_frame *ret_frame, const char **ret_what)
{
    if (ew_etl_frame_fast(at, end, ret_frame))
        return EW_ETL_EVENT;
    size_t left = (size_t)(end - at);
    if (left < END_MARKER_SIZE)
        return EW_ETL_DONE;
    uint32_t marker = ew_load_u32(at);
    if (marker == UINT32_MAX)
        return EW_ETL_DONE;
    if (marker >= 0xC0000000)
        return frame_event(at, left, marker >> 16 & 0xFF, ret_what);
    if ((marker & 0xD0000000) == 0x90000000)
        return frame_message(at, left, ret_frame, ret_what);
    *ret_what = "no event begins here";
    return EW_ETL_BAD;
}

bool ew_etl_peek_time(const uint8_t *at, size_t size, uint64_t *ret_raw)
{
    if (size < MESSAGE_HEADER_SIZE)
        return false;
    uint32_t marker = ew_load_u32(at), type = marker >> 16 & 0xFF, time_at = 0;
    if (marker >= 0xC0000000 && type < EW_ETL_TYPE_COUNT)
        time_at = ew_etl_layouts[type].time_at;
    else if ((marker & 0xD0000000) == 0x90000000)
        time_at = message_layout(ew_load_u16(at + 6)).time_at;
    if (time_at == 0 || size < time_at + 8)
        return false;
    *ret_raw = ew_load_u64(at + time_at);
    return true;
}

/* Each item: u16 size including this header, a multiple of 8; u16 type; u16 bit 0: another
 * follows; u16 size of the data. */
uint32_t ew_etl_extended_size(const uint8_t *at, uint32_t size, bool *ret_bad)
{
    enum { EVENT_HEADER_SIZE = 0x50, ITEM_HEADER_SIZE = 8 };
    uint32_t total = 0, room = size - EVENT_HEADER_SIZE;
    for (bool more = true; more;) {
        const uint8_t *item = at + EVENT_HEADER_SIZE + total;
        uint32_t item_size = room - total < ITEM_HEADER_SIZE ? 0 : ew_load_u16(item);
        if (item_size < ITEM_HEADER_SIZE || item_size % 8 != 0 || item_size > room - total ||
            ew_load_u16(item + 6) > item_size - ITEM_HEADER_SIZE) {
            *ret_bad = true;
            break;
        }
        more = item[4] & 1;
        total += item_size;
    }
    return total;
}
