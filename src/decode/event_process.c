/* SPDX-License-Identifier: MIT */
/* The class Process: starts, exits, rundowns, and resource counters. */
#include "decode/event.h"
#include "decode/kernel_table.h"

static void clear_process(struct ew_event *event)
{
    event->tid = EW_NO_ID;
    event->u.process.key = 0;
    event->u.process.parent_pid = event->u.process.session_id = EW_NO_ID;
    event->u.process.exit_status = 0;
    event->u.process.flags = 0;
    event->u.process.start_filetime = event->u.process.exit_filetime = 0;
    event->u.process.image = (struct ew_event_text){NULL, 0, false};
    event->u.process.command_line = (struct ew_event_text){NULL, 0, true};
    event->u.process.sid = NULL;
    event->u.process.sid_size = 0;
}

/* The fixed part; returns the offset of the SID, 0 if the payload is too short. */
static size_t decode_fixed(const struct ew_record *record, size_t pointer_size,
                           struct ew_event *event)
{
    const uint8_t *p = record->payload;
    uint8_t version = record->version;
    size_t end = version == 0  ? 2 * pointer_size
                 : version < 3 ? 16 + pointer_size
                 : version < 4 ? 16 + 2 * pointer_size
                               : 20 + 2 * pointer_size;
    if (record->payload_size < end)
        return 0;
    if (version == 0) {
        event->pid = (uint32_t)ew_event_pointer(p, pointer_size);
        event->u.process.parent_pid = (uint32_t)ew_event_pointer(p + pointer_size, pointer_size);
        return end;
    }
    /* In version 1 this is the page directory, which is unique as well. */
    event->u.process.key = ew_event_pointer(p, pointer_size);
    p += pointer_size;
    event->pid = ew_load_u32(p);
    event->u.process.parent_pid = ew_load_u32(p + 4);
    event->u.process.session_id = ew_load_u32(p + 8);
    event->u.process.exit_status = (int32_t)ew_load_u32(p + 12);
    if (version >= 4)
        event->u.process.flags = ew_load_u32(p + 16 + pointer_size);
    return end;
}

static bool decode_process(const struct ew_record *record, size_t pointer_size,
                           enum ew_event_kind kind, struct ew_event *event)
{
    const uint8_t *sid;
    struct ew_event_text unused;
    size_t sid_len, size = record->payload_size;
    clear_process(event);
    size_t at = decode_fixed(record, pointer_size, event);
    if (!at)
        return false;
    size_t skip = ew_kernel_sid(record->payload + at, size - at, pointer_size, &sid, &sid_len);
    if (!skip)
        return false;
    event->kind = (uint8_t)kind;
    event->u.process.sid = sid;
    event->u.process.sid_size = (uint32_t)sid_len;
    at = ew_event_ansi(record, at + skip, &event->u.process.image);
    if (record->version >= 2)
        at = ew_event_wide(record, at, &event->u.process.command_line);
    if (record->version >= 5 && kind == EW_EVENT_PROCESS_DEFUNCT) {
        at = ew_event_wide(record, at, &unused); /* package */
        at = ew_event_wide(record, at, &unused); /* application */
        if (size - at >= 8)
            event->u.process.exit_filetime = ew_load_u64(record->payload + at);
    }
    return true;
}

static bool decode_counters(const struct ew_record *record, size_t pointer_size,
                            struct ew_event *event)
{
    const uint8_t *p = record->payload;
    if (record->payload_size < 16 + 11 * pointer_size)
        return false;
    event->kind = EW_EVENT_PROCESS_COUNTERS;
    event->pid = ew_load_u32(p);
    event->tid = EW_NO_ID;
    event->u.counters.fault_count = ew_load_u32(p + 4);
    event->u.counters.handle_count = ew_load_u32(p + 8);
    p += 16;
    event->u.counters.peak_virtual_bytes = ew_event_pointer(p, pointer_size);
    event->u.counters.peak_working_set_bytes = ew_event_pointer(p + pointer_size, pointer_size);
    /* Then the peaks of the page file and of both pools. */
    event->u.counters.virtual_bytes = ew_event_pointer(p + 5 * pointer_size, pointer_size);
    event->u.counters.working_set_bytes = ew_event_pointer(p + 6 * pointer_size, pointer_size);
    event->u.counters.pagefile_bytes = ew_event_pointer(p + 7 * pointer_size, pointer_size);
    event->u.counters.pool_paged_bytes = ew_event_pointer(p + 8 * pointer_size, pointer_size);
    event->u.counters.pool_nonpaged_bytes = ew_event_pointer(p + 9 * pointer_size, pointer_size);
    event->u.counters.private_bytes = ew_event_pointer(p + 10 * pointer_size, pointer_size);
    return true;
}

bool ew_event_of_process(const struct ew_record *record, uint8_t opcode, size_t pointer_size,
                         struct ew_event *event)
{
    switch (opcode) {
    case 1:
        return decode_process(record, pointer_size, EW_EVENT_PROCESS_START, event);
    case 2:
        return decode_process(record, pointer_size, EW_EVENT_PROCESS_END, event);
    case 3:
        return decode_process(record, pointer_size, EW_EVENT_PROCESS_THERE, event);
    case 4:
        return decode_process(record, pointer_size, EW_EVENT_PROCESS_STILL, event);
    case 39:
        return decode_process(record, pointer_size, EW_EVENT_PROCESS_DEFUNCT, event);
    case 32:
    case 33:
        return decode_counters(record, pointer_size, event);
    default:
        return true;
    }
}
