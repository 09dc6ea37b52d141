/* SPDX-License-Identifier: MIT */
/*
 * Parses buffer headers and the log-file header. Of the three sizes in a buffer header only the
 * last (Offset) is reliable: SavedOffset is 0 in files of Windows 7, and CurrentOffset was seen to
 * exceed the buffer. One exception: data beyond SavedOffset in the first buffer of a merged
 * recording is repeated in the next buffer.
 */
#include "source/etl/header.h"

#include <string.h>

#include "base/bytes.h"
#include "base/utf16.h"

enum {
    FLAG_PROCESSOR_INDEX = 0x20,
    PROCESSOR_INDEX_MASK = 0x07FF,
    COMPRESSION_HUFFMAN = 4,
    /* No data that Windows writes compresses this much: sixteen events of 64 KB of zeros reach
     * 5000 to 1. */
    MAX_RATIO = 8192,
    SYSTEM_HEADER_SIZE = 0x20,
    LOG_HEADER_SIZE_32 = 0x110,
    LOG_HEADER_SIZE_64 = 0x118,
};

void ew_etl_buffer_parse(const uint8_t *bytes, struct ew_etl_buffer *ret_buffer)
{
    struct ew_etl_buffer *b = ret_buffer;
    b->size = ew_load_u32(bytes);
    b->flushed_raw = ew_load_u64(bytes + 0x10);
    b->sequence = ew_load_u64(bytes + 0x18);
    b->clock = ew_load_u64(bytes + 0x20);
    b->cpu = ew_load_u16(bytes + 0x28);
    b->logger = ew_load_u16(bytes + 0x2A);
    b->filled = ew_load_u32(bytes + 0x30);
    uint32_t saved = ew_load_u32(bytes + 4);
    b->flags = ew_load_u16(bytes + 0x34) & 0x7F;
    b->type = ew_load_u16(bytes + 0x36);
    b->reference_filetime = ew_load_u64(bytes + 0x38);
    b->reference_raw = ew_load_u64(bytes + 0x40);
    if (b->type == EW_ETL_TYPE_HEADER && saved > EW_ETL_HEADER_SIZE && saved < b->filled &&
        !(b->flags & EW_ETL_FLAG_COMPRESSED))
        b->filled = saved;
    /* Windows 7 and before: a byte of CPU number and a byte of alignment. */
    b->cpu &= b->flags & FLAG_PROCESSOR_INDEX ? PROCESSOR_INDEX_MASK : 0xFF;
    if (b->flags & EW_ETL_FLAG_COMPRESSED && ew_load_u32(bytes + 0x2C) == COMPRESSION_HUFFMAN)
        b->flags |= EW_ETL_FLAG_HUFFMAN;
}

const char *ew_etl_buffer_problem(const struct ew_etl_buffer *buffer)
{
    if (buffer->size < EW_ETL_HEADER_SIZE)
        return "the buffer is shorter than its header";
    if (buffer->size > EW_ETL_BUFFER_MAX)
        return "the buffer claims more than 16 MiB";
    if (buffer->filled < EW_ETL_HEADER_SIZE)
        return "the buffer claims to be filled less than its header";
    if (!(buffer->flags & EW_ETL_FLAG_COMPRESSED))
        return NULL;
    if (buffer->filled > EW_ETL_BUFFER_MAX)
        return "the buffer claims to inflate to more than 16 MiB";
    if (buffer->filled / MAX_RATIO > buffer->size)
        return "the buffer claims an impossible compression";
    return NULL;
}

/* Converts UTF-16 up to its NUL or the end of the event, and skips it. */
static void take_text(struct ew_bytes *in, char *ret_text)
{
    size_t left = ew_bytes_left(in);
    const uint8_t *bytes = ew_bytes_take(in, left);
    size_t len = bytes ? ew_utf16_len(bytes, left) : 0;
    (void)ew_utf16_to_utf8(bytes, len, ret_text, EW_ETL_NAME_SIZE);
    if (bytes)
        ew_bytes_seek(in, in->pos - left + (left - len < 2 ? left : len + 2));
}

/* TRACE_LOGFILE_HEADER: the layouts differ only in the size of two pointers. */
static void parse_fields(struct ew_bytes *in, size_t pointer_size, struct ew_etl_file_info *info)
{
    info->buffer_bytes = ew_bytes_u32(in);
    info->os_major = ew_bytes_u8(in);
    info->os_minor = ew_bytes_u8(in);
    info->layout_major = ew_bytes_u8(in);
    info->layout_minor = ew_bytes_u8(in);
    info->os_build = ew_bytes_u32(in);
    info->cpu_count = ew_bytes_u32(in);
    info->end_filetime = (int64_t)ew_bytes_u64(in);
    info->timer_resolution_100ns = ew_bytes_u32(in);
    info->file_size_max = ew_bytes_u32(in);
    info->log_file_mode = ew_bytes_u32(in);
    info->buffers_written = ew_bytes_u32(in);
    ew_bytes_skip(in, 4); /* StartBuffers */
    info->pointer_size = ew_bytes_u32(in);
    info->events_lost = ew_bytes_u32(in);
    info->cpu_mhz = ew_bytes_u32(in);
    ew_bytes_skip(in, 2 * pointer_size);
    info->timezone_bias_minutes = (int32_t)ew_bytes_u32(in);
    ew_bytes_skip(in, 172);
    info->boot_filetime = (int64_t)ew_bytes_u64(in);
    info->perf_frequency = ew_bytes_u64(in);
    info->start_filetime = (int64_t)ew_bytes_u64(in);
    info->clock = ew_bytes_u32(in);
    info->buffers_lost = ew_bytes_u32(in);
}

const char *ew_etl_log_header_parse(const uint8_t *event, size_t size,
                                    struct ew_etl_file_info *ret_info, char *ret_session,
                                    char *ret_file)
{
    struct ew_bytes in;
    ew_bytes_init(&in, event, size);
    ew_bytes_skip(&in, 2);
    uint8_t type = ew_bytes_u8(&in), marker = ew_bytes_u8(&in);
    uint16_t event_size = ew_bytes_u16(&in), hook = ew_bytes_u16(&in);
    ew_bytes_skip(&in, 8);
    uint64_t raw = ew_bytes_u64(&in);
    if (!ew_bytes_ok(&in) || marker != 0xC0 || (type != 1 && type != 2) || hook != 0)
        return "the first event is not a log-file header";
    size_t layout_size = type == 2 ? LOG_HEADER_SIZE_64 : LOG_HEADER_SIZE_32;
    if (event_size > size || event_size < SYSTEM_HEADER_SIZE + layout_size)
        return "the log-file header is too short";

    struct ew_bytes body;
    ew_bytes_init(&body, event + SYSTEM_HEADER_SIZE, event_size - (size_t)SYSTEM_HEADER_SIZE);
    parse_fields(&body, type == 2 ? 8 : 4, ret_info);
    ret_info->header_raw = raw;
    ret_info->compressed = (ret_info->log_file_mode & EW_ETL_MODE_COMPRESSED) != 0;
    if (ret_info->pointer_size != 4 && ret_info->pointer_size != 8)
        ret_info->pointer_size = type == 2 ? 8 : 4;
    ew_bytes_seek(&body, layout_size);
    take_text(&body, ret_session);
    take_text(&body, ret_file);
    ret_info->session_name = ret_session;
    ret_info->file_name = ret_file;
    return NULL;
}
