/* SPDX-License-Identifier: MIT */
/* The offsets are those of evntcons.h on 64-bit Windows, written out here a second time. */
#include "etw_events.h"

#include <string.h>

#include "base/bytes.h"
#include "etl_kit.h"
#include "source/etw/classes.h"

enum {
    FLAGS = 4,
    TID = 8,
    PID = 12,
    TIME = 16,
    PROVIDER = 24,
    ID = 40,
    VERSION = 42,
    LEVEL = 44,
    OPCODE = 45,
    TIMES = 56,
    CPU = 80,
    ITEM_COUNT = 84,
    DATA_SIZE = 86,
    ITEMS = 88,
    DATA = 96,
    CONTEXT = 104,
    FLAG_EXTENDED = 0x1,
    FLAG_MESSAGE = 0x8,
    FLAG_32 = 0x20,
    FLAG_64 = 0x40,
    FLAG_CLASSIC = 0x100,
    FLAG_CPU_INDEX = 0x200,
};

static void put16(uint8_t *at, unsigned value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
}

static void put_pointer(uint8_t *at, const void *pointer)
{
    memcpy(at, &pointer, sizeof pointer);
}

static void begin(struct etw_event *event, unsigned flags, uint64_t t_raw, uint16_t cpu)
{
    memset(event->bytes, 0, sizeof event->bytes);
    put16(event->bytes + FLAGS, flags | FLAG_CPU_INDEX);
    memcpy(event->bytes + TIME, &t_raw, 8);
    put16(event->bytes + CPU, cpu);
}

static void set_item(struct etw_event *event, unsigned i, unsigned type, const void *data,
                     unsigned size)
{
    uint8_t *item = event->items + 16 * i;
    memset(item, 0, 16);
    put16(item + 2, type);
    put16(item + 6, size);
    put_pointer(item + 8, data);
    put16(event->bytes + ITEM_COUNT, i + 1);
    put_pointer(event->bytes + ITEMS, event->items);
    event->bytes[FLAGS] |= FLAG_EXTENDED;
}

static bool from_kernel(struct etw_event *event, const struct ew_record *record)
{
    bool image = record->group == 3 && record->opcode == 10;
    const uint8_t *guid = ew_etw_class_guid(image ? 0x14 : record->group);
    if (guid == NULL)
        return false;
    memcpy(event->bytes + PROVIDER, guid, 16);
    event->bytes[OPCODE] = record->opcode;
    if (record->header_type <= 2)
        memcpy(event->bytes + TIMES, record->header + 0x18, 8);
    if (record->header_type >= 16 && (record->header[1] & 7) != 0)
        set_item(event, 0, 8, record->header + 16, 8 * (record->header[1] & 7u));
    return true;
}

static void from_classic(struct etw_event *event, const struct ew_record *record)
{
    memcpy(event->bytes + PROVIDER, record->provider, 16);
    event->bytes[OPCODE] = record->opcode;
    event->bytes[LEVEL] = record->group;
    memcpy(event->bytes + TIMES, record->header + 0x28, 8);
    if (record->header_type == 11 || record->header_type == 21)
        set_item(event, 0, 4, record->header + 0x30, 24);
}

static void from_manifest(struct etw_event *event, const struct ew_record *record)
{
    const uint8_t *at = record->header + 0x50, *end = at + record->extended_size;
    unsigned flags = ew_load_u16(event->bytes + FLAGS);
    uint8_t cpu[4];
    memcpy(cpu, event->bytes + CPU, 4);
    memcpy(event->bytes, record->header, 0x50);
    memcpy(event->bytes + CPU, cpu, 4);
    put16(event->bytes + FLAGS, (ew_load_u16(record->header + FLAGS) & ~1u) | flags);
    for (unsigned i = 0; at < end && i < ETW_ITEMS_MAX; i++) {
        set_item(event, i, ew_load_u16(at + 2), at + 8, ew_load_u16(at + 6));
        at += ew_load_u16(at);
    }
}

bool etw_event_from(struct etw_event *event, const struct ew_record *record)
{
    unsigned flags = record->pointer_size == 4 ? FLAG_32 : FLAG_64;
    if (record->kind == EW_RECORD_LOSS)
        return false;
    if (record->kind == EW_RECORD_MESSAGE)
        flags |= FLAG_MESSAGE;
    else if (record->kind != EW_RECORD_MANIFEST)
        flags |= FLAG_CLASSIC;
    begin(event, flags, record->t_raw, record->cpu);
    if (record->kind == EW_RECORD_MANIFEST)
        from_manifest(event, record);
    event->bytes[VERSION] = record->version;
    memcpy(event->bytes + TID, &record->tid, 4);
    memcpy(event->bytes + PID, &record->pid, 4);
    memcpy(event->bytes + TIME, &record->t_raw, 8);
    put16(event->bytes + DATA_SIZE, record->payload_size);
    put_pointer(event->bytes + DATA, record->payload);
    if (record->kind == EW_RECORD_KERNEL)
        return from_kernel(event, record);
    if (record->kind == EW_RECORD_CLASSIC)
        from_classic(event, record);
    if (record->kind == EW_RECORD_MESSAGE) {
        put16(event->bytes + ID, record->id);
        if (record->provider != NULL)
            memcpy(event->bytes + PROVIDER, record->provider, 16);
    }
    return true;
}

void etw_event_lost(struct etw_event *event, uint64_t t_raw, uint16_t cpu)
{
    begin(event, FLAG_CLASSIC | FLAG_64, t_raw, cpu);
    memcpy(event->bytes + PROVIDER, etl_rt_lost, 16);
    event->bytes[OPCODE] = 32;
}

void etw_event_switch(struct etw_event *event)
{
    begin(event, FLAG_CLASSIC | FLAG_64, 0, 0);
    memcpy(event->bytes + PROVIDER, ew_etw_class_guid(5), 16);
    event->bytes[OPCODE] = 36;
    event->bytes[VERSION] = 4;
    memset(event->bytes + TID, 0xFF, 8);
    memset(event->data, 0, sizeof event->data);
    event->data[8] = event->data[9] = 8;
    event->data[14] = 5;
    put16(event->bytes + DATA_SIZE, 24);
    put_pointer(event->bytes + DATA, event->data);
}

static void set_threads(uint8_t *payload, uint16_t cpu, uint32_t round)
{
    uint32_t base = 1000u + cpu * 64u, in = base + 4 * ((round + 1) % 8),
             out = base + 4 * (round % 8);
    memcpy(payload, &in, 4);
    memcpy(payload + 4, &out, 4);
}

void etw_switch_bytes(uint8_t bytes[ETW_SWITCH_SIZE], uint64_t t_raw, uint16_t cpu, uint32_t round)
{
    static const uint8_t head[8] = {4, 0, 17, 0xC0, ETW_SWITCH_SIZE, 0, 36, 5};
    memset(bytes, 0, ETW_SWITCH_SIZE);
    memcpy(bytes, head, sizeof head);
    memcpy(bytes + 8, &t_raw, 8);
    set_threads(bytes + 16, cpu, round);
    bytes[16 + 8] = bytes[16 + 9] = 8;
    bytes[16 + 14] = 5;
}

void etw_event_set_switch(struct etw_event *event, uint64_t t_raw, uint16_t cpu, uint32_t round)
{
    memcpy(event->bytes + TIME, &t_raw, 8);
    put16(event->bytes + CPU, cpu);
    set_threads(event->data, cpu, round);
}

void etw_event_context(struct etw_event *event, void *context)
{
    memcpy(event->bytes + CONTEXT, &context, sizeof context);
}
