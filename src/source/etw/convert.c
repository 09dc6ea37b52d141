/* SPDX-License-Identifier: MIT */
/*
 * Five header formats. Events of the kernel's classes get the short headers that they had in the
 * session's buffers: the one without ids if ETW reports none, else the one with ids. Other classic
 * events get EVENT_TRACE_HEADER (with instance ids if they have them), messages their own header,
 * and all others keep their EVENT_HEADER, followed by the extended items.
 *
 * This runs for every event on the thread that ETW calls: no allocation, no lock, one copy.
 */
#include "source/etw/convert.h"

#include <string.h>

#include "base/bytes.h"
#include "model/record.h"
#include "source/etl/walk.h"
#include "source/etw/classes.h"

enum {
    EXTENDED_INSTANCE = 4,
    EXTENDED_COUNTERS = 8,
    COUNTERS_MAX = 7,
    OPCODE_SWITCH = 36,
    INSTANCE_BYTES = 24,
    MESSAGE_FLAGS = 0x2 | 0x8 | 0x20, /* GUID, time, ids */
    MESSAGE_HEADER = 8 + 16 + 8 + 8,
    MARK_EVENT = 0xC0,
    MARK_MESSAGE = 0x90,
};

static void put_u16(uint8_t *to, uint32_t value)
{
    to[0] = (uint8_t)value;
    to[1] = (uint8_t)(value >> 8);
}

static const uint8_t *pointer_at(const uint8_t *at)
{
    const uint8_t *pointer;
    memcpy(&pointer, at, sizeof pointer);
    return pointer;
}

static const uint8_t *item_at(const uint8_t *record, uint32_t i)
{
    return pointer_at(record + EW_ER_EXTENDED) + (size_t)i * EW_ER_ITEM_SIZE;
}

/* ---------------------------------------------------------------------- shape */

static uint32_t framed_size(const uint8_t *item)
{
    return ew_etl_padded(8u + ew_load_u16(item + EW_ER_ITEM_DATA_SIZE));
}

static uint32_t items_size(const uint8_t *record)
{
    uint32_t size = 0, count = ew_load_u16(record + EW_ER_EXTENDED_COUNT);
    for (uint32_t i = 0; i < count; i++)
        size += framed_size(item_at(record, i));
    return size;
}

static const uint8_t *find_item(const uint8_t *record, uint32_t type)
{
    uint32_t count = ew_load_u16(record + EW_ER_EXTENDED_COUNT);
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *item = item_at(record, i);
        if (ew_load_u16(item + EW_ER_ITEM_TYPE) == type)
            return item;
    }
    return NULL;
}

static const uint8_t *instance_of(const uint8_t *record)
{
    const uint8_t *item = find_item(record, EXTENDED_INSTANCE);
    if (item == NULL || ew_load_u16(item + EW_ER_ITEM_DATA_SIZE) < INSTANCE_BYTES)
        return NULL;
    return pointer_at(item + EW_ER_ITEM_DATA);
}

/* If there are more counters than the header can hold, none are written. */
static void find_counters(const uint8_t *record, struct ew_etw_shape *shape)
{
    const uint8_t *item = find_item(record, EXTENDED_COUNTERS);
    uint32_t size = item == NULL ? 0 : ew_load_u16(item + EW_ER_ITEM_DATA_SIZE);
    if (size == 0 || size % 8 != 0 || size / 8 > COUNTERS_MAX)
        return;
    shape->counter_count = (uint8_t)(size / 8);
    shape->counters = pointer_at(item + EW_ER_ITEM_DATA);
}

static uint32_t shape_kernel(const uint8_t *record, bool wide, struct ew_etw_shape *shape)
{
    bool no_ids =
        ew_load_u32(record + EW_ER_TID) == EW_NO_ID && ew_load_u32(record + EW_ER_PID) == EW_NO_ID;
    bool is_switch = shape->group == EW_ETW_CLASS_THREAD && shape->opcode == OPCODE_SWITCH;
    /* The kernel logs an image load (opcode 10) as a process event, and so do recordings. */
    if (shape->group == EW_ETW_CLASS_IMAGE && shape->opcode == 10)
        shape->group = EW_ETW_CLASS_PROCESS;
    /* Only the header without ids has room for counters; a switch does not need ids. */
    if (ew_load_u16(record + EW_ER_EXTENDED_COUNT) != 0 && (no_ids || is_switch))
        find_counters(record, shape);
    if (no_ids || shape->counter_count > 0)
        shape->header_type = (uint8_t)(wide ? EW_ETL_PERFINFO64 : EW_ETL_PERFINFO32);
    else
        shape->header_type = (uint8_t)(wide ? EW_ETL_SYSTEM64 : EW_ETL_SYSTEM32);
    return ew_etl_layouts[shape->header_type].header_size + 8u * shape->counter_count;
}

static uint32_t shape_classic(const uint8_t *record, bool wide, struct ew_etw_shape *shape)
{
    shape->group = ew_etw_class_of(record + EW_ER_PROVIDER);
    if (shape->group != EW_ETW_NO_CLASS)
        return shape_kernel(record, wide, shape);
    if ((shape->instance = instance_of(record)) != NULL) {
        shape->header_type = (uint8_t)(wide ? EW_ETL_INSTANCE64 : EW_ETL_INSTANCE32);
    } else {
        shape->header_type = (uint8_t)(wide ? EW_ETL_FULL64 : EW_ETL_FULL32);
    }
    return ew_etl_layouts[shape->header_type].header_size;
}

void ew_etw_shape(const uint8_t *record, struct ew_etw_shape *ret_shape)
{
    uint32_t flags = ew_load_u16(record + EW_ER_FLAGS), head;
    bool wide = (flags & EW_ER_32_BIT) == 0;
    ret_shape->data_size = ew_load_u16(record + EW_ER_DATA_SIZE);
    ret_shape->extended_size = 0;
    ret_shape->instance = NULL;
    ret_shape->counter_count = 0;
    ret_shape->opcode = record[EW_ER_OPCODE];
    ret_shape->cpu = flags & EW_ER_CPU_INDEX ? ew_load_u16(record + EW_ER_CPU) : record[EW_ER_CPU];
    if (flags & EW_ER_TRACE_MESSAGE) {
        ret_shape->header_type = EW_ETL_MESSAGE;
        head = MESSAGE_HEADER;
    } else if (flags & EW_ER_CLASSIC) {
        head = shape_classic(record, wide, ret_shape);
    } else {
        ret_shape->header_type = (uint8_t)(wide ? EW_ETL_EVENT64 : EW_ETL_EVENT32);
        ret_shape->extended_size = items_size(record);
        head = EW_ER_HEADER_SIZE + ret_shape->extended_size;
    }
    uint32_t size = head + ret_shape->data_size;
    ret_shape->size = size <= UINT16_MAX ? size : 0;
}

/* ---------------------------------------------------------------------- write */

static uint32_t write_kernel(const uint8_t *record, const struct ew_etw_shape *shape, uint8_t *to)
{
    to[0] = record[EW_ER_VERSION];
    to[1] = 0;
    to[2] = shape->header_type;
    to[3] = MARK_EVENT;
    put_u16(to + 4, shape->size);
    to[6] = shape->opcode;
    to[7] = shape->group;
    if (shape->header_type == EW_ETL_PERFINFO32 || shape->header_type == EW_ETL_PERFINFO64) {
        memcpy(to + 8, record + EW_ER_TIME, 8);
        to[1] = shape->counter_count;
        if (shape->counter_count > 0)
            memcpy(to + 16, shape->counters, 8u * shape->counter_count);
        return 16 + 8u * shape->counter_count;
    }
    memcpy(to + 8, record + EW_ER_TID, 16); /* tid, pid, time */
    memcpy(to + 24, record + EW_ER_CPU_TIMES, 8);
    return 32;
}

static uint32_t write_classic(const uint8_t *record, const struct ew_etw_shape *shape, uint8_t *to)
{
    put_u16(to, shape->size);
    to[2] = shape->header_type;
    to[3] = MARK_EVENT;
    to[4] = shape->opcode;
    to[5] = record[EW_ER_LEVEL];
    put_u16(to + 6, record[EW_ER_VERSION]);
    memcpy(to + 8, record + EW_ER_TID, 32); /* tid, pid, time, GUID */
    memcpy(to + 40, record + EW_ER_CPU_TIMES, 8);
    if (shape->instance == NULL)
        return 0x30;
    memcpy(to + 0x30, shape->instance, INSTANCE_BYTES);
    return 0x48;
}

static uint32_t write_message(const uint8_t *record, const struct ew_etw_shape *shape, uint8_t *to)
{
    uint32_t flags = ew_load_u16(record + EW_ER_FLAGS);
    put_u16(to, shape->size);
    to[2] = 0;
    to[3] = MARK_MESSAGE;
    memcpy(to + 4, record + EW_ER_ID, 2);
    put_u16(to + 6, MESSAGE_FLAGS | (flags & EW_ER_32_BIT ? 0x40u : 0x80u));
    memcpy(to + 8, record + EW_ER_PROVIDER, 16);
    memcpy(to + 24, record + EW_ER_TIME, 8);
    memcpy(to + 32, record + EW_ER_TID, 8);
    return MESSAGE_HEADER;
}

static uint32_t write_items(const uint8_t *record, uint8_t *to)
{
    uint32_t at = 0, count = ew_load_u16(record + EW_ER_EXTENDED_COUNT);
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *item = item_at(record, i);
        uint32_t data = ew_load_u16(item + EW_ER_ITEM_DATA_SIZE), framed = framed_size(item);
        put_u16(to + at, framed);
        memcpy(to + at + 2, item + EW_ER_ITEM_TYPE, 2);
        put_u16(to + at + 4, i + 1 < count);
        put_u16(to + at + 6, data);
        memcpy(to + at + 8, pointer_at(item + EW_ER_ITEM_DATA), data);
        memset(to + at + 8 + data, 0, framed - 8 - data);
        at += framed;
    }
    return at;
}

static uint32_t write_event(const uint8_t *record, const struct ew_etw_shape *shape, uint8_t *to)
{
    memcpy(to, record, EW_ER_HEADER_SIZE);
    put_u16(to, shape->size);
    to[2] = shape->header_type;
    to[3] = MARK_EVENT;
    to[EW_ER_FLAGS] = (uint8_t)((to[EW_ER_FLAGS] & ~EW_ER_EXTENDED_INFO) |
                                (shape->extended_size ? EW_ER_EXTENDED_INFO : 0));
    return EW_ER_HEADER_SIZE + write_items(record, to + EW_ER_HEADER_SIZE);
}

void ew_etw_write(const uint8_t *record, const struct ew_etw_shape *shape, uint8_t *to)
{
    uint32_t head;
    switch (shape->header_type) {
    case EW_ETL_MESSAGE:
        head = write_message(record, shape, to);
        break;
    case EW_ETL_EVENT32:
    case EW_ETL_EVENT64:
        head = write_event(record, shape, to);
        break;
    case EW_ETL_FULL32:
    case EW_ETL_FULL64:
    case EW_ETL_INSTANCE32:
    case EW_ETL_INSTANCE64:
        head = write_classic(record, shape, to);
        break;
    default:
        head = write_kernel(record, shape, to);
        break;
    }
    if (shape->data_size > 0)
        memcpy(to + head, pointer_at(record + EW_ER_DATA), shape->data_size);
}
