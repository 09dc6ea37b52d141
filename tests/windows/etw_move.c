/* SPDX-License-Identifier: MIT */
#include "etw_move.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "decode/decode.h"
#include "model/event.h"

enum { MESSAGE = 15, PERFINFO_32 = 16, PERFINFO_64 = 17 };

static void add(uint8_t *at, uint64_t ticks)
{
    uint64_t value = ew_load_u64(at) + ticks;
    memcpy(at, &value, 8);
}

/* The offset of the time in the header; 0: it has none. For a message its flags determine it. */
static size_t time_at(const struct ew_record *record)
{
    if (record->header_type == PERFINFO_32 || record->header_type == PERFINFO_64)
        return 8;
    if (record->header_type != MESSAGE)
        return 16;
    uint32_t flags = ew_load_u16(record->header + 6);
    size_t at = 8;
    at += (flags & 1) != 0 ? 4 : 0;
    at += (flags & 4) != 0 ? 4 : (flags & 2) != 0 ? 16 : 0;
    return (flags & 8) != 0 ? at : 0;
}

/* An interrupt and a hard fault contain their start time. */
static void move_payload(const struct ew_record *record, uint8_t *payload, uint64_t ticks)
{
    struct ew_event event;
    if (record->payload_size < 8 || !ew_decode_event(record, &event))
        return;
    if (event.kind == EW_EVENT_INTERRUPT || event.kind == EW_EVENT_HARD_FAULT)
        add(payload, ticks);
}

const struct ew_record *etw_move(struct etw_moved *moved, const struct ew_record *record,
                                 uint64_t ticks)
{
    size_t before = (size_t)(record->payload - record->header);
    if (before + record->payload_size > sizeof moved->bytes)
        abort();
    memcpy(moved->bytes, record->header, before + record->payload_size);
    if (time_at(record) != 0)
        add(moved->bytes + time_at(record), ticks);
    move_payload(record, moved->bytes + before, ticks);
    moved->record = *record;
    moved->record.header = moved->bytes;
    moved->record.payload = moved->bytes + before;
    moved->record.t_raw += ticks;
    if (record->provider != NULL)
        moved->record.provider = moved->bytes + (record->provider - record->header);
    return &moved->record;
}
