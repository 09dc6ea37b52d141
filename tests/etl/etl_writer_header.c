/* SPDX-License-Identifier: MIT */
/*
 * The log-file header event: the first event of every recording, which describes how to read all
 * others. Its layout depends on the pointer size, because two of its fields were once pointers.
 */
#include <string.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "etl_writer_layout.h"

enum {
    SYSTEM_BYTES = 0x20,
    INFO_BYTES_32 = 0x110,
    INFO_BYTES_64 = 0x118,
    ZONE_BYTES = 176, /* time zone, all zero: UTC */
    TIMER_100NS = 156250,
    CPU_MHZ = 2400,
    HEADER_VERSION = 2,
};

#define FILETIME_2026 134116992000000000 /* 1 January, 0:00 UTC */

struct ew_etl_writer_config ew_etl_config_filled(const struct ew_etl_writer_config *config)
{
    struct ew_etl_writer_config c = *config;
    c.buffer_bytes = c.buffer_bytes ? c.buffer_bytes : 65536;
    c.cpu_count = c.cpu_count ? c.cpu_count : 1;
    c.pointer_size = c.pointer_size ? c.pointer_size : 8;
    if (c.os_major == 0) {
        c.os_major = 10;
        c.os_minor = 0;
    }
    c.os_build = c.os_build ? c.os_build : 19045;
    c.clock = c.clock ? c.clock : 1;
    c.perf_frequency = c.perf_frequency ? c.perf_frequency : 10000000;
    c.start_filetime = c.start_filetime ? c.start_filetime : FILETIME_2026;
    c.session_name = c.session_name ? c.session_name : "etwatch";
    c.file_name = c.file_name ? c.file_name : "etwatch";
    if (c.compress)
        c.log_file_mode |= EW_ETL_MODE_COMPRESSED;
    return c;
}

uint64_t ew_etl_ticks_to_100ns(const struct ew_etl_writer_config *config, uint64_t ticks)
{
    uint64_t hz = config->perf_frequency;
    if (config->clock == 2)
        return ticks;
    if (config->clock == 3)
        return ticks / CPU_MHZ * 10 + ticks % CPU_MHZ * 10 / CPU_MHZ;
    return ticks / hz * 10000000 + ticks % hz * 10000000 / hz;
}

/* UTF-16 with terminator; returns the end. With out NULL it only counts. */
static size_t put_name(const char *name, uint8_t *out)
{
    size_t size = 0, len = strlen(name);
    for (size_t i = 0; i < len;) {
        uint32_t code;
        i += ew_utf8_decode(name + i, len - i, &code);
        code = code == EW_UTF8_INVALID ? 0xFFFD : code;
        if (code >= 0x10000) {
            if (out) {
                ew_store_u16(out + size, (uint16_t)(0xD800 + ((code - 0x10000) >> 10)));
                ew_store_u16(out + size + 2, (uint16_t)(0xDC00 + ((code - 0x10000) & 0x3FF)));
            }
            size += 4;
            continue;
        }
        if (out)
            ew_store_u16(out + size, (uint16_t)code);
        size += 2;
    }
    if (out)
        ew_store_u16(out + size, 0);
    return size + 2;
}

static void put_info(const struct ew_etl_writer_config *c, uint8_t *info)
{
    uint8_t *tail = info + 0x38 + 2 * c->pointer_size + ZONE_BYTES;
    ew_store_u32(info, c->buffer_bytes);
    info[4] = (uint8_t)c->os_major;
    info[5] = (uint8_t)c->os_minor;
    info[6] = c->compress ? 2 : 1;
    info[7] = c->compress ? 0 : 5;
    ew_store_u32(info + 0x08, c->os_build);
    ew_store_u32(info + 0x0C, c->cpu_count);
    ew_store_u32(info + 0x18, TIMER_100NS);
    ew_store_u32(info + 0x20, c->log_file_mode);
    ew_store_u32(info + 0x24, 1); /* this buffer; the final number is patched at the end */
    ew_store_u32(info + 0x28, 1);
    ew_store_u32(info + 0x2C, c->pointer_size);
    ew_store_u32(info + 0x34, CPU_MHZ);
    uint64_t up_100ns = ew_etl_ticks_to_100ns(c, c->start_raw);
    uint64_t start = (uint64_t)c->start_filetime;
    ew_store_u64(tail, start > up_100ns ? (start - up_100ns) / 10000000 * 10000000 : 0);
    ew_store_u64(tail + 8, c->perf_frequency);
    ew_store_u64(tail + 16, start);
    ew_store_u32(tail + 24, c->clock);
}

int ew_etl_file_header_new(const struct ew_etl_writer_config *c, uint8_t **ret_bytes,
                           size_t *ret_size)
{
    size_t info_size = c->pointer_size == 4 ? INFO_BYTES_32 : INFO_BYTES_64;
    size_t size = SYSTEM_BYTES + info_size;
    size_t session_size = put_name(c->session_name, NULL), file_size = put_name(c->file_name, NULL);
    if (session_size + file_size > EW_ETL_MAX_EVENT_BYTES - size)
        return ETWATCH_EINVAL;
    uint8_t *bytes = ew_calloc(size + session_size + file_size, 1);
    if (!bytes)
        return ETWATCH_ENOMEM;
    struct ew_etl_event event = {.header_type = c->pointer_size == 4 ? 1 : 2,
                                 .version = HEADER_VERSION,
                                 .t_raw = c->start_raw,
                                 .pid = 4,
                                 .tid = 8};
    ew_etl_event_put(&event, size + session_size + file_size, 0, bytes);
    put_info(c, bytes + SYSTEM_BYTES);
    put_name(c->session_name, bytes + size);
    put_name(c->file_name, bytes + size + session_size);
    *ret_bytes = bytes;
    *ret_size = size + session_size + file_size;
    return 0;
}

void ew_etl_file_header_close(uint8_t *event, uint32_t pointer_size,
                              const struct ew_etl_closing *closing)
{
    uint8_t *info = event + SYSTEM_BYTES;
    ew_store_u64(info + 0x10, (uint64_t)closing->end_filetime);
    ew_store_u32(info + 0x24, closing->buffers_written);
    ew_store_u32(info + 0x30, closing->events_lost);
    ew_store_u32(info + (pointer_size == 4 ? 0x10C : 0x114), closing->buffers_lost);
}
