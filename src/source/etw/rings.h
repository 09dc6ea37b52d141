/* SPDX-License-Identifier: MIT */
/*
 * Between the thread that ETW calls and the one that adds up: events in blocks, a chain of blocks
 * per CPU, put together by time when they are taken.
 *
 * One thread puts, one takes; neither ever waits for the other. All blocks come from one pool of a
 * fixed size, so that a busy CPU can have what the idle ones do not need. If the pool is empty the
 * event is lost: it is counted, and where it was lost is marked in the chain.
 */
#ifndef EW_SOURCE_ETW_RINGS_H
#define EW_SOURCE_ETW_RINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/record.h"

struct ew_etw_rings;

/* pool_bytes is memory that may be used, not that is: blocks are touched when they are needed. */
int ew_etw_rings_new(uint32_t cpu_count, uint64_t pool_bytes, struct ew_etw_rings **ret_rings);
void ew_etw_rings_free(struct ew_etw_rings *rings);

/* An EVENT_RECORD. On the one thread that puts. */
void ew_etw_rings_put(struct ew_etw_rings *rings, const uint8_t *event_record);
/*
 * A whole buffer of the session as it lies in recordings, with its header of 72 bytes; likewise. It
 * is copied in one piece, and its events are found when they are taken.
 */
void ew_etw_rings_put_buffer(struct ew_etw_rings *rings, const uint8_t *bytes, uint32_t size);

/*
 * Up to max records whose raw time is at most horizon_raw, by time; equal times in the order in
 * which they were put. Their bytes are valid until the next call. t_ns is left to the caller. A
 * record of kind LOSS has as payload the number of events that were lost there (8 bytes). Its
 * opcode is 1 if it was the session that lost something, which counts that itself: the number is
 * then 1.
 */
size_t ew_etw_rings_take(struct ew_etw_rings *rings, uint64_t horizon_raw,
                         struct ew_record *records, size_t max);

struct ew_etw_rings_counts {
    /* dropped: all that were, whether told or not. Those in whole buffers are put when taken. */
    uint64_t put, dropped;
    uint64_t late; /* taken after later ones had been */
    uint32_t blocks, blocks_used_max;
};
uint64_t ew_etw_rings_late(const struct ew_etw_rings *rings);
void ew_etw_rings_counts(const struct ew_etw_rings *rings, struct ew_etw_rings_counts *ret_counts);

#endif
