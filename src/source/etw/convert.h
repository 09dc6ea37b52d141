/* SPDX-License-Identifier: MIT */
/*
 * Converts an EVENT_RECORD delivered by ETW into the bytes that the same event has in a recording.
 * The walk over recordings then makes the record, so that live and recorded events cannot differ.
 *
 * An EVENT_RECORD contains pointers and comes from the system library in this process: its layout
 * and its lengths are trusted.
 */
#ifndef EW_SOURCE_ETW_CONVERT_H
#define EW_SOURCE_ETW_CONVERT_H

#include <stdint.h>

/* Offsets in an EVENT_RECORD of a 64-bit system; the header is the same as in recordings. */
enum {
    EW_ER_FLAGS = 4,
    EW_ER_TID = 8,
    EW_ER_PID = 12,
    EW_ER_TIME = 16,
    EW_ER_PROVIDER = 24,
    EW_ER_ID = 40,
    EW_ER_VERSION = 42,
    EW_ER_LEVEL = 44,
    EW_ER_OPCODE = 45,
    EW_ER_CPU_TIMES = 56,
    EW_ER_HEADER_SIZE = 80,
    EW_ER_CPU = 80,
    EW_ER_EXTENDED_COUNT = 84,
    EW_ER_DATA_SIZE = 86,
    EW_ER_EXTENDED = 88,
    EW_ER_DATA = 96,
    EW_ER_CONTEXT = 104,
    EW_ER_SIZE = 112,
    /* EVENT_HEADER_EXTENDED_DATA_ITEM */
    EW_ER_ITEM_TYPE = 2,
    EW_ER_ITEM_DATA_SIZE = 6,
    EW_ER_ITEM_DATA = 8,
    EW_ER_ITEM_SIZE = 16,
};

enum ew_er_flag {
    EW_ER_EXTENDED_INFO = 0x01,
    EW_ER_TRACE_MESSAGE = 0x08,
    EW_ER_32_BIT = 0x20,
    EW_ER_64_BIT = 0x40,
    EW_ER_CLASSIC = 0x100,
    EW_ER_CPU_INDEX = 0x200,
};

/* How an event will be written; determined first, because space must be reserved for it. */
struct ew_etw_shape {
    uint32_t size;          /* total, without padding; 0: too large for a recording */
    uint32_t data_size;     /* payload bytes */
    uint32_t extended_size; /* MANIFEST: framed items including padding */
    uint8_t header_type;    /* as on disk */
    uint8_t group, opcode;  /* kernel classes only */
    uint16_t cpu;
    const uint8_t *instance; /* INSTANCE: 24 bytes of ids */
    const uint8_t *counters; /* PERFINFO: hardware counters of the CPU, 8 bytes each */
    uint8_t counter_count;
};

void ew_etw_shape(const uint8_t *event_record, struct ew_etw_shape *ret_shape);
/* Writes shape->size bytes. */
void ew_etw_write(const uint8_t *event_record, const struct ew_etw_shape *shape, uint8_t *to);

#endif
