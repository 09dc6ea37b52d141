/* SPDX-License-Identifier: MIT */
/* Events as bytes: every header type with its fields at Windows' offsets. */
#include <string.h>

#include "etl_writer_layout.h"

enum {
    SYSTEM_BYTES = 0x20,
    COMPACT_BYTES = 0x18,
    PERFINFO_BYTES = 0x10,
    FULL_BYTES = 0x30,
    INSTANCE_BYTES = 0x48,
    EVENT_HEADER_BYTES = 0x50,
    MESSAGE_BYTES = 8,
    EXTENDED_INFO = 1,
    TRACE_MARK = 0xC0,
    MESSAGE_MARK = 0x90,
};

enum message_part {
    MESSAGE_SEQUENCE = 1,
    MESSAGE_GUID = 2,
    MESSAGE_COMPONENT = 4,
    MESSAGE_TIME = 8,
    MESSAGE_IDS = 0x20,
};

static size_t message_header_size(uint32_t flags)
{
    size_t size = MESSAGE_BYTES;
    size += flags & MESSAGE_SEQUENCE ? 4 : 0;
    size += flags & MESSAGE_COMPONENT ? 4 : flags & MESSAGE_GUID ? 16 : 0;
    size += flags & MESSAGE_TIME ? 8 : 0;
    size += flags & MESSAGE_IDS ? 8 : 0;
    return size;
}

static size_t header_size(const struct ew_etl_event *event)
{
    switch (event->header_type) {
    case 1:
    case 2:
        return SYSTEM_BYTES;
    case 3:
    case 4:
        return COMPACT_BYTES;
    case 10:
    case 20:
        return FULL_BYTES;
    case 11:
    case 21:
        return INSTANCE_BYTES;
    case 15:
        return message_header_size(event->message_flags);
    case 16:
    case 17:
        return PERFINFO_BYTES + 8 * (size_t)(event->counter_count & 7);
    case 18:
    case 19:
        return (size_t)EVENT_HEADER_BYTES + event->extended_size;
    default:
        return 0;
    }
}

size_t ew_etl_event_size(const struct ew_etl_event *event)
{
    size_t size = header_size(event);
    return size ? size + event->payload_size : 0;
}

static void put_bytes(uint8_t *out, const void *bytes, size_t size)
{
    if (bytes && size)
        memcpy(out, bytes, size);
    else
        memset(out, 0, size);
}

/* SYSTEM, COMPACT and PERFINFO begin with the same fields. */
static void put_kernel(const struct ew_etl_event *event, size_t size, uint8_t *out)
{
    ew_store_u16(out, event->version);
    out[2] = event->header_type;
    out[3] = TRACE_MARK;
    ew_store_u16(out + 4, (uint16_t)size);
    out[6] = event->opcode;
    out[7] = event->group;
    if (event->header_type >= 16) {
        ew_store_u64(out + 8, event->t_raw);
        out[1] = event->counter_count & 7;
        for (uint8_t i = 0; i < out[1]; i++)
            ew_store_u64(out + PERFINFO_BYTES + 8 * (size_t)i, event->counters[i]);
        return;
    }
    ew_store_u32(out + 8, event->tid);
    ew_store_u32(out + 12, event->pid);
    ew_store_u64(out + 16, event->t_raw);
    if (event->header_type <= 2) {
        ew_store_u32(out + 24, event->kernel_ticks);
        ew_store_u32(out + 28, event->user_ticks);
    }
}

static void put_classic(const struct ew_etl_event *event, size_t size, uint8_t *out)
{
    ew_store_u16(out, (uint16_t)size);
    out[2] = event->header_type;
    out[3] = TRACE_MARK;
    out[4] = event->opcode;
    out[5] = event->level;
    ew_store_u16(out + 6, event->version);
    ew_store_u32(out + 8, event->tid);
    ew_store_u32(out + 12, event->pid);
    ew_store_u64(out + 16, event->t_raw);
    put_bytes(out + 24, event->provider, 16);
    ew_store_u32(out + 40, event->kernel_ticks);
    ew_store_u32(out + 44, event->user_ticks);
    if (event->header_type == 11 || event->header_type == 21) {
        ew_store_u32(out + 48, event->id);
        ew_store_u32(out + 52, 0);
        put_bytes(out + 56, event->activity, 16);
    }
}

static void put_manifest(const struct ew_etl_event *event, size_t size, uint8_t *out)
{
    ew_store_u16(out, (uint16_t)size);
    out[2] = event->header_type;
    out[3] = TRACE_MARK;
    ew_store_u16(out + 4, event->extended_size ? EXTENDED_INFO : 0);
    ew_store_u16(out + 6, 0);
    ew_store_u32(out + 8, event->tid);
    ew_store_u32(out + 12, event->pid);
    ew_store_u64(out + 16, event->t_raw);
    put_bytes(out + 24, event->provider, 16);
    ew_store_u16(out + 40, event->id);
    out[42] = event->version;
    out[43] = event->channel;
    out[44] = event->level;
    out[45] = event->opcode;
    ew_store_u16(out + 46, event->task);
    ew_store_u64(out + 48, event->keyword);
    ew_store_u32(out + 56, event->kernel_ticks);
    ew_store_u32(out + 60, event->user_ticks);
    put_bytes(out + 64, event->activity, 16);
    put_bytes(out + EVENT_HEADER_BYTES, event->extended, event->extended_size);
}

static void put_message(const struct ew_etl_event *event, size_t size, uint32_t number,
                        uint8_t *out)
{
    uint32_t flags = event->message_flags;
    ew_store_u16(out, (uint16_t)size);
    out[2] = 0;
    out[3] = MESSAGE_MARK;
    ew_store_u16(out + 4, event->id);
    ew_store_u16(out + 6, (uint16_t)flags);
    out += MESSAGE_BYTES;
    if (flags & MESSAGE_SEQUENCE) {
        ew_store_u32(out, number);
        out += 4;
    }
    if (flags & MESSAGE_COMPONENT) {
        ew_store_u32(out, event->task);
        out += 4;
    } else if (flags & MESSAGE_GUID) {
        put_bytes(out, event->provider, 16);
        out += 16;
    }
    if (flags & MESSAGE_TIME) {
        ew_store_u64(out, event->t_raw);
        out += 8;
    }
    if (flags & MESSAGE_IDS) {
        ew_store_u32(out, event->tid);
        ew_store_u32(out + 4, event->pid);
    }
}

void ew_etl_event_put(const struct ew_etl_event *event, size_t size, uint32_t number, uint8_t *out)
{
    switch (event->header_type) {
    case 10:
    case 11:
    case 20:
    case 21:
        put_classic(event, size, out);
        break;
    case 15:
        put_message(event, size, number, out);
        break;
    case 18:
    case 19:
        put_manifest(event, size, out);
        break;
    default:
        put_kernel(event, size, out);
    }
    put_bytes(out + size - event->payload_size, event->payload, event->payload_size);
}
