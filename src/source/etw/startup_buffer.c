/* SPDX-License-Identifier: MIT */
/*
 * Owns two growing arrays. The bytes of an event (header, items, payload) are contiguous, so one
 * copy takes them all. The array may move while it grows, so pointers are set at the end.
 */
#include "source/etw/etw.h"

#include <string.h>

#include "base/alloc.h"

enum { RECORDS_MAX = 1 << 18, BYTES_MAX = 32 << 20 };

static bool grow(struct ew_startup_buffer *buffer, uint64_t bytes)
{
    if (buffer->count == buffer->room) {
        uint32_t room = buffer->room == 0 ? 1024 : 2 * buffer->room;
        void *records = room > RECORDS_MAX
                            ? NULL
                            : ew_realloc_array(buffer->records, room, sizeof *buffer->records);
        if (records == NULL)
            return false;
        buffer->records = records;
        buffer->room = room;
    }
    if (buffer->size + bytes > buffer->bytes_room) {
        uint64_t room = 2 * (buffer->bytes_room + bytes);
        void *moved = room > BYTES_MAX ? NULL : ew_realloc_array(buffer->bytes, (size_t)room, 1);
        if (moved == NULL)
            return false;
        buffer->bytes = moved;
        buffer->bytes_room = room;
    }
    return true;
}

static const uint8_t *begin_of(const struct ew_record *record)
{
    return record->header != NULL ? record->header : record->payload;
}

bool ew_startup_buffer_add(struct ew_startup_buffer *buffer, const struct ew_record *record)
{
    const uint8_t *begin = begin_of(record);
    uint64_t bytes = (uint64_t)(record->payload - begin) + record->payload_size;
    if (!grow(buffer, bytes))
        return false;
    memcpy(buffer->bytes + buffer->size, begin, (size_t)bytes);
    buffer->records[buffer->count++] = *record;
    buffer->size += bytes;
    return true;
}

void ew_startup_buffer_end(struct ew_startup_buffer *buffer)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < buffer->count; i++) {
        struct ew_record *record = &buffer->records[i];
        const uint8_t *begin = begin_of(record), *copy = buffer->bytes + at;
        at += (uint64_t)(record->payload - begin) + record->payload_size;
        record->payload = copy + (record->payload - begin);
        if (record->provider != NULL)
            record->provider = copy + (record->provider - begin);
        if (record->header != NULL)
            record->header = copy;
    }
}

void ew_startup_buffer_done(struct ew_startup_buffer *buffer)
{
    ew_free(buffer->records);
    ew_free(buffer->bytes);
    memset(buffer, 0, sizeof *buffer);
}
