/* SPDX-License-Identifier: MIT */
/*
 * Payload bytes, self-describing events and recordings in memory. The kernel's classes are in
 * etl_kernel.c.
 */
#include "etl_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"
#include "base/utf8.h"

/* bbccf6c1-6cd1-48c4-80ff-839482e37671 */
const uint8_t etl_ktc_metadata[16] = {0xc1, 0xf6, 0xcc, 0xbb, 0xd1, 0x6c, 0xc4, 0x48,
                                      0x80, 0xff, 0x83, 0x94, 0x82, 0xe3, 0x76, 0x71};
/* 6a399ae0-4bc6-4de9-870b-3657f8947e7e */
const uint8_t etl_rt_lost[16] = {0xe0, 0x9a, 0x39, 0x6a, 0xc6, 0x4b, 0xe9, 0x4d,
                                 0x87, 0x0b, 0x36, 0x57, 0xf8, 0x94, 0x7e, 0x7e};

/* ------------------------------------------------------------ payload by hand */

void etl_clear(struct etl_payload *p)
{
    p->size = 0;
}

void etl_bytes(struct etl_payload *p, const void *bytes, size_t size)
{
    if (size > ETL_PAYLOAD_ROOM - p->size) {
        fprintf(stderr, "etl_kit: the payload is too long\n");
        abort();
    }
    if (size > 0)
        memcpy(p->bytes + p->size, bytes, size);
    p->size += (uint32_t)size;
}

void etl_u8(struct etl_payload *p, unsigned value)
{
    uint8_t byte = (uint8_t)value;
    etl_bytes(p, &byte, 1);
}

void etl_u16(struct etl_payload *p, unsigned value)
{
    etl_u8(p, value & 0xFF);
    etl_u8(p, value >> 8 & 0xFF);
}

void etl_u32(struct etl_payload *p, uint32_t value)
{
    uint8_t bytes[4] = {(uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16),
                        (uint8_t)(value >> 24)};
    etl_bytes(p, bytes, 4);
}

void etl_u64(struct etl_payload *p, uint64_t value)
{
    etl_u32(p, (uint32_t)value);
    etl_u32(p, (uint32_t)(value >> 32));
}

void etl_pointer(struct etl_payload *p, unsigned pointer_size, uint64_t value)
{
    if (pointer_size == 4)
        etl_u32(p, (uint32_t)value);
    else
        etl_u64(p, value);
}

void etl_ansi(struct etl_payload *p, const char *text)
{
    if (text)
        etl_bytes(p, text, strlen(text) + 1);
}

void etl_wide(struct etl_payload *p, const char *text)
{
    if (!text)
        return;
    size_t len = strlen(text);
    for (size_t i = 0; i < len;) {
        uint32_t code;
        i += ew_utf8_decode(text + i, len - i, &code);
        if (code >= 0x10000 && code != EW_UTF8_INVALID) {
            etl_u16(p, 0xD800 + ((code - 0x10000) >> 10));
            etl_u16(p, 0xDC00 + ((code - 0x10000) & 0x3FF));
        } else {
            etl_u16(p, code == EW_UTF8_INVALID ? 0xFFFD : code);
        }
    }
    etl_u16(p, 0);
}

static unsigned hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    return (unsigned)((c | 32) - 'a') + 10;
}

void etl_guid(const char *text, uint8_t ret_guid[16])
{
    /* The first three groups are numbers, little-endian on disk. */
    static const uint8_t place[16] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
    unsigned count = 0;
    for (; *text && count < 16; text++) {
        if (*text == '{' || *text == '-' || text[1] == 0)
            continue;
        ret_guid[place[count++]] = (uint8_t)(hex_digit(text[0]) << 4 | hex_digit(text[1]));
        text++;
    }
}

/* ------------------------------------------------------- self-describing events */

void etl_tlg_begin(struct etl_payload *p, const char *event_name)
{
    etl_clear(p);
    etl_u16(p, 0); /* the size is set at the end */
    etl_u8(p, 0);  /* no tags */
    etl_ansi(p, event_name);
}

void etl_tlg_field(struct etl_payload *p, const char *name, unsigned in_type, unsigned out_type)
{
    etl_ansi(p, name);
    etl_u8(p, out_type ? in_type | 0x80 : in_type);
    if (out_type)
        etl_u8(p, out_type);
}

void etl_tlg_array(struct etl_payload *p, const char *name, unsigned in_type, unsigned count)
{
    etl_tlg_field(p, name, in_type | 0x20, 0);
    etl_u16(p, count);
}

void etl_tlg_struct(struct etl_payload *p, const char *name, unsigned field_count)
{
    /* In place of the output format: the number of following fields that belong to it. */
    etl_tlg_field(p, name, 24, field_count);
}

void etl_tlg_end(struct etl_payload *p)
{
    p->bytes[0] = (uint8_t)p->size;
    p->bytes[1] = (uint8_t)(p->size >> 8);
}

void etl_tlg_provider(struct etl_payload *p, const char *name)
{
    etl_clear(p);
    etl_u16(p, (unsigned)(2 + strlen(name) + 1));
    etl_ansi(p, name);
}

void etl_extended(struct etl_payload *p, unsigned type, const void *data, size_t size, bool more)
{
    static const uint8_t zeros[8];
    size_t total = (8 + size + 7) & ~(size_t)7;
    etl_u16(p, (unsigned)total);
    etl_u16(p, type);
    etl_u16(p, more ? 1 : 0);
    etl_u16(p, (unsigned)size);
    etl_bytes(p, data, size);
    etl_bytes(p, zeros, total - 8 - size);
}

void etl_manifest_chunk(struct etl_payload *p, unsigned chunk, unsigned chunk_count,
                        const void *bytes, size_t size)
{
    etl_clear(p);
    etl_u8(p, 1); /* format */
    etl_u8(p, 1); /* version 1.0 */
    etl_u8(p, 0);
    etl_u8(p, 0x5B); /* magic */
    etl_u16(p, chunk_count);
    etl_u16(p, chunk);
    etl_bytes(p, bytes, size);
}

enum { EVENT_INFO_BYTES = 112, PROPERTY_BYTES = 24 };

static size_t wide_size(const char *text)
{
    static struct etl_payload scratch; /* test code, single-threaded */
    if (!text)
        return 0;
    etl_clear(&scratch);
    etl_wide(&scratch, text);
    return scratch.size;
}

static uint32_t offset_of(const char *text, uint32_t *next)
{
    if (!text)
        return 0;
    uint32_t offset = *next;
    *next += (uint32_t)wide_size(text);
    return offset;
}

void etl_event_info(struct etl_payload *p, const struct etl_event_info *x)
{
    static const uint8_t no_guid[16];
    uint32_t next = EVENT_INFO_BYTES + PROPERTY_BYTES * x->property_count;
    etl_clear(p);
    etl_bytes(p, x->provider, 16);
    etl_bytes(p, no_guid, 16);
    etl_u16(p, x->id);
    etl_u8(p, x->version);
    etl_u8(p, x->channel);
    etl_u8(p, x->level);
    etl_u8(p, x->opcode);
    etl_u16(p, x->task);
    etl_u64(p, x->keyword);
    etl_u32(p, 0); /* described by a manifest */
    etl_u32(p, offset_of(x->provider_name, &next));
    for (int i = 0; i < 3; i++) /* level, channel, keywords */
        etl_u32(p, 0);
    etl_u32(p, offset_of(x->task_name, &next));
    etl_u32(p, offset_of(x->opcode_name, &next));
    for (int i = 0; i < 6; i++) /* messages, binary XML, activity names */
        etl_u32(p, 0);
    etl_u32(p, x->property_count);
    etl_u32(p, x->property_count);
    etl_u32(p, 0);
    for (uint32_t i = 0; i < x->property_count; i++) {
        const struct etl_property *property = &x->properties[i];
        etl_u32(p, property->flags);
        etl_u32(p, offset_of(property->name, &next));
        etl_u16(p, property->in_type);
        etl_u16(p, property->out_type);
        etl_u32(p, 0);
        etl_u16(p, property->count);
        etl_u16(p, property->length);
        etl_u32(p, 0);
    }
    etl_wide(p, x->provider_name);
    etl_wide(p, x->task_name);
    etl_wide(p, x->opcode_name);
    for (uint32_t i = 0; i < x->property_count; i++)
        etl_wide(p, x->properties[i].name);
}

/* ------------------------------------------------------------------- recordings */

int etl_memory_write(void *ctx, const void *bytes, size_t len)
{
    struct etl_memory *m = ctx;
    if (m->size + len > m->room) {
        size_t room = 2 * m->room + len;
        uint8_t *more = ew_realloc_array(m->bytes, room, 1);
        if (!more)
            return ETWATCH_ENOMEM;
        m->bytes = more;
        m->room = room;
    }
    memcpy(m->bytes + m->size, bytes, len);
    m->size += len;
    return 0;
}

int etl_memory_rewrite(void *ctx, uint64_t offset, const void *bytes, size_t len)
{
    struct etl_memory *m = ctx;
    if (offset > m->size || len > m->size - offset)
        return ETWATCH_EINVAL;
    memcpy(m->bytes + offset, bytes, len);
    return 0;
}

void etl_memory_free(struct etl_memory *memory)
{
    ew_free(memory->bytes);
    *memory = (struct etl_memory){0};
}

/* As in real recordings: frequent events and the rundown have no IDs in their header. */
static bool is_short_header(unsigned hook)
{
    unsigned group = hook >> 8, opcode = hook & 0xFF;
    switch (group) {
    case 0x01: /* disk: completion */
        return opcode == 10 || opcode == 11 || opcode == 14;
    case 0x03: /* process: rundown and counters */
        return opcode == 3 || opcode == 4 || opcode >= 32;
    case 0x05: /* thread: scheduler and names */
        return opcode == 36 || opcode == 50 || opcode == 72;
    case 0x0F: /* profiler and interrupts, but not the interval */
        return opcode < 72 || opcode > 74;
    case 0x14: /* image: rundown */
        return opcode >= 3;
    default:
        return group == 0x02 || group == 0x04 || group == 0x06 || group == 0x08 || group == 0x18;
    }
}

int etl_write_kernel(struct ew_etl_writer *writer, unsigned ptr, unsigned hook, unsigned version,
                     uint16_t cpu, uint64_t t_raw, uint32_t pid, uint32_t tid,
                     const struct etl_payload *payload)
{
    unsigned type = (is_short_header(hook) ? 16u : 1u) + (ptr == 8);
    struct ew_etl_event event = {.header_type = (uint8_t)type,
                                 .group = (uint8_t)(hook >> 8),
                                 .opcode = (uint8_t)hook,
                                 .version = (uint8_t)version,
                                 .cpu = cpu,
                                 .t_raw = t_raw,
                                 .pid = pid,
                                 .tid = tid,
                                 .payload = payload->bytes,
                                 .payload_size = payload->size};
    return ew_etl_write(writer, &event);
}

int etl_write_counted(struct ew_etl_writer *writer, unsigned ptr, unsigned hook, unsigned version,
                      uint16_t cpu, uint64_t t_raw, const uint64_t *counters, uint32_t count,
                      const struct etl_payload *payload)
{
    struct ew_etl_event event = {.header_type = (uint8_t)(16u + (ptr == 8)),
                                 .group = (uint8_t)(hook >> 8),
                                 .opcode = (uint8_t)hook,
                                 .version = (uint8_t)version,
                                 .cpu = cpu,
                                 .t_raw = t_raw,
                                 .counters = counters,
                                 .counter_count = (uint8_t)count,
                                 .payload = payload->bytes,
                                 .payload_size = payload->size};
    return ew_etl_write(writer, &event);
}
