/* SPDX-License-Identifier: MIT */
/*
 * The events in a buffer: boundaries, time, and conversion to a record.
 *
 * Framing and filling are separate, because the merge must know the time of every stream's next
 * event before it takes one. Framing verifies that the header of the type is complete and that the
 * event ends within the given bytes; filling relies on that and repeats no check.
 */
#ifndef EW_SOURCE_ETL_WALK_H
#define EW_SOURCE_ETL_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "model/record.h"

/* For the loop of the merge, where a call costs as much as the called function. */
#if defined(__GNUC__)
#define EW_ETL_INLINE static inline __attribute__((always_inline))
#else
#define EW_ETL_INLINE static inline
#endif

/* Header types on disk; 32 and 64 give the size of pointers in the payload. */
enum {
    EW_ETL_SYSTEM32 = 1,
    EW_ETL_SYSTEM64 = 2,
    EW_ETL_COMPACT32 = 3,
    EW_ETL_COMPACT64 = 4,
    EW_ETL_FULL32 = 10,
    EW_ETL_INSTANCE32 = 11,
    EW_ETL_MESSAGE = 15,
    EW_ETL_PERFINFO32 = 16,
    EW_ETL_PERFINFO64 = 17,
    EW_ETL_EVENT32 = 18,
    EW_ETL_EVENT64 = 19,
    EW_ETL_FULL64 = 20,
    EW_ETL_INSTANCE64 = 21,
    EW_ETL_TYPE_COUNT = 32,
};

struct ew_etl_layout {
    uint8_t header_size; /* 0: no such type, or parsed separately (MESSAGE) */
    uint8_t time_at, size_at;
};

extern const struct ew_etl_layout ew_etl_layouts[EW_ETL_TYPE_COUNT];

struct ew_etl_frame {
    uint64_t t_raw;
    uint32_t size; /* without padding */
    uint8_t type;
    bool has_time; /* messages may lack a time */
};

enum ew_etl_step {
    EW_ETL_EVENT, /* *ret_frame is set */
    EW_ETL_CUT,   /* an event starts here but does not end before `end` */
    EW_ETL_DONE,  /* no more events in this buffer */
    EW_ETL_BAD,   /* not an event */
};

/* Handles all uncommon cases: ends, messages, damage. *ret_what describes the damage (CUT, BAD). */
enum ew_etl_step ew_etl_frame_slow(const uint8_t *at, const uint8_t *end,
                                   struct ew_etl_frame *ret_frame, const char **ret_what);
/* The time of the event at `at`, which may be incomplete. */
bool ew_etl_peek_time(const uint8_t *at, size_t size, uint64_t *ret_raw);
/* Fills in a message with its optional fields. */
void ew_etl_fill_message(struct ew_record *record, const uint8_t *at, uint32_t size);
/* Bytes of extended items from at + 0x50 on; *ret_bad: the chain is broken after these. */
uint32_t ew_etl_extended_size(const uint8_t *at, uint32_t size, bool *ret_bad);

/* Sizes are padded to 8; the padding may be missing at the end of a buffer. */
static inline uint32_t ew_etl_padded(uint32_t size)
{
    return (size + 7) & ~UINT32_C(7);
}

EW_ETL_INLINE bool ew_etl_frame_fast(const uint8_t *at, const uint8_t *end,
                                     struct ew_etl_frame *ret_frame)
{
    ptrdiff_t left = end - at; /* negative if the padding of the last event is missing */
    if (left < 16)
        return false;
    uint32_t marker = ew_load_u32(at);
    uint32_t type = marker >> 16 & 0xFF;
    if (marker < 0xC0000000 || type >= EW_ETL_TYPE_COUNT)
        return false;
    /* The branch lets the processor predict the layout: a table lookup would make the load of
     * the size wait for the type. */
    struct ew_etl_layout layout = {16, 8, 4};
    if (type != EW_ETL_PERFINFO64)
        layout = ew_etl_layouts[type];
    uint32_t size = ew_load_u16(at + layout.size_at);
    if (layout.header_size == 0 || size < layout.header_size || (ptrdiff_t)size > left)
        return false;
    ret_frame->t_raw = ew_load_u64(at + layout.time_at);
    ret_frame->size = size;
    ret_frame->type = (uint8_t)type;
    ret_frame->has_time = true;
    return true;
}

/* Fills in the rest of a framed event; the caller sets t_ns and t_raw. Returns false if its
 * content contradicts its size: the record then lacks payload or extended items. */
EW_ETL_INLINE bool ew_etl_fill(struct ew_record *record, const uint8_t *at, uint32_t size,
                               uint8_t type, uint16_t cpu)
{
    uint32_t skip;
    bool bad = false;
    record->header = at;
    record->provider = NULL;
    record->cpu = cpu;
    record->id = 0;
    record->extended_size = 0;
    record->kind = EW_RECORD_KERNEL;
    record->header_type = type;
    record->version = at[0];
    record->opcode = at[6];
    record->group = at[7];
    record->pid = record->tid = EW_NO_ID;
    switch (type) {
    case EW_ETL_PERFINFO32:
    case EW_ETL_PERFINFO64:
        /* Flags in the upper byte of the version: hardware counters precede the data. */
        skip = 16 + 8 * (at[1] & 7u) + (at[1] & 0x80u) / 16;
        record->pointer_size = (uint8_t)(type == EW_ETL_PERFINFO64 ? 8 : 4);
        bad = skip > size;
        break;
    case EW_ETL_SYSTEM32:
    case EW_ETL_SYSTEM64:
    case EW_ETL_COMPACT32:
    case EW_ETL_COMPACT64:
        record->tid = ew_load_u32(at + 8);
        record->pid = ew_load_u32(at + 12);
        record->pointer_size = (uint8_t)(type & 1 ? 4 : 8);
        skip = type <= EW_ETL_SYSTEM64 ? 0x20 : 0x18;
        break;
    case EW_ETL_EVENT32:
    case EW_ETL_EVENT64:
        record->kind = EW_RECORD_MANIFEST;
        record->tid = ew_load_u32(at + 8);
        record->pid = ew_load_u32(at + 12);
        record->provider = at + 0x18;
        record->id = ew_load_u16(at + 0x28);
        record->version = at[0x2A];
        record->group = at[0x2C];
        record->opcode = at[0x2D];
        record->pointer_size = (uint8_t)(type == EW_ETL_EVENT64 ? 8 : 4);
        skip = 0x50;
        if (at[4] & 1) {
            record->extended_size = (uint16_t)ew_etl_extended_size(at, size, &bad);
            skip += record->extended_size;
        }
        break;
    case EW_ETL_MESSAGE:
        ew_etl_fill_message(record, at, size);
        return true;
    default: /* FULL, INSTANCE */
        record->kind = EW_RECORD_CLASSIC;
        record->tid = ew_load_u32(at + 8);
        record->pid = ew_load_u32(at + 12);
        record->provider = at + 0x18;
        record->opcode = at[4];
        record->group = at[5];
        record->version = at[6];
        record->pointer_size = (uint8_t)(type >= EW_ETL_FULL64 ? 8 : 4);
        skip = type == EW_ETL_FULL32 || type == EW_ETL_FULL64 ? 0x30 : 0x48;
        break;
    }
    if (skip > size)
        skip = size;
    record->payload = at + skip;
    record->payload_size = size - skip;
    return !bad;
}

#endif
