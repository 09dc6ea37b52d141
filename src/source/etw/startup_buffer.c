/* SPDX-License-Identifier: MIT */
/*
 * Owns two growing arrays. The bytes of an event (header, items, payload) lie in one piece, so one
 * copy takes them all; as the array may move while it grows, pointers are made at the end.
 */
#include "source/etw/startup_buffer.h"

#include <string.h>

#include "base/alloc.h"

enum { RECORDS_MAX = 1 << 18, BYTES_MAX = 32 << 20 };

static bool grow(struct ew_opening *opening, uint64_t bytes)
{
    if (opening->count == opening->room) {
        uint32_t room = opening->room == 0 ? 1024 : 2 * opening->room;
        void *records = room > RECORDS_MAX
                            ? NULL
                            : ew_realloc_array(opening->records, room, sizeof *opening->records);
        if (records == NULL)
            return false;
        opening->records = records;
        opening->room = room;
    }
    if (opening->size + bytes > opening->bytes_room) {
        uint64_t room = 2 * (opening->bytes_room + bytes);
        void *moved = room > BYTES_MAX ? NULL : ew_realloc_array(opening->bytes, (size_t)room, 1);
        if (moved == NULL)
            return false;
        opening->bytes = moved;
        opening->bytes_room = room;
    }
    return true;
}

static const uint8_t *begin_of(const struct ew_record *record)
{
    return record->header != NULL ? record->header : record->payload;
}

bool ew_opening_keep(struct ew_opening *opening, const struct ew_record *record)
{
    const uint8_t *begin = begin_of(record);
    uint64_t bytes = (uint64_t)(record->payload - begin) + record->payload_size;
    if (!grow(opening, bytes))
        return false;
    memcpy(opening->bytes + opening->size, begin, (size_t)bytes);
    opening->records[opening->count++] = *record;
    opening->size += bytes;
    return true;
}

void ew_opening_end(struct ew_opening *opening)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < opening->count; i++) {
        struct ew_record *record = &opening->records[i];
        const uint8_t *begin = begin_of(record), *copy = opening->bytes + at;
        at += (uint64_t)(record->payload - begin) + record->payload_size;
        record->payload = copy + (record->payload - begin);
        if (record->provider != NULL)
            record->provider = copy + (record->provider - begin);
        if (record->header != NULL)
            record->header = copy;
    }
}

void ew_opening_done(struct ew_opening *opening)
{
    ew_free(opening->records);
    ew_free(opening->bytes);
    memset(opening, 0, sizeof *opening);
}
