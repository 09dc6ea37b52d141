/* SPDX-License-Identifier: MIT */
/*
 * Queue between the thread that ETW calls and the thread that processes events: a chain of blocks
 * per CPU, merged by time when they are taken.
 *
 * One producer, one consumer; neither ever waits for the other. All blocks come from one pool of
 * fixed size, so that a busy CPU can use what idle CPUs do not need. If the pool is empty the event
 * is lost: it is counted, and the position of the loss is marked in the chain.
 */
#ifndef EW_SOURCE_ETW_RINGS_H
#define EW_SOURCE_ETW_RINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/record.h"

struct ew_etw_rings;

/* pool_bytes is an upper limit: memory is touched only when a block is needed. */
int ew_etw_rings_new(uint32_t cpu_count, uint64_t pool_bytes, struct ew_etw_rings **ret_rings);
void ew_etw_rings_free(struct ew_etw_rings *rings);

/* Puts an EVENT_RECORD. Producer thread only. */
void ew_etw_rings_put(struct ew_etw_rings *rings, const uint8_t *event_record);
/*
 * Puts a whole buffer of the session in the format of recordings, with its 72-byte header. Producer
 * thread only. The buffer is copied in one piece; its events are parsed when they are taken.
 */
void ew_etw_rings_put_buffer(struct ew_etw_rings *rings, const uint8_t *bytes, uint32_t size);

/*
 * Takes up to max records with a raw time of at most horizon_raw, in time order; equal times in the
 * order in which they were put. Their bytes are valid until the next call. t_ns is not set. A LOSS
 * record has the number of events lost at this position as payload (8 bytes). Its opcode is 1 if
 * the session lost events, which it counts itself: the number is then 1.
 */
size_t ew_etw_rings_take(struct ew_etw_rings *rings, uint64_t horizon_raw,
                         struct ew_record *records, size_t max);

struct ew_etw_rings_counts {
    /* dropped: reported or not. Events of whole buffers count as put when they are taken. */
    uint64_t put, dropped;
    uint64_t late; /* taken after later ones */
    uint32_t blocks, blocks_used_max;
};
uint64_t ew_etw_rings_late(const struct ew_etw_rings *rings);
/* The most by which the horizon was ahead of a late event, in raw time, since the last call. */
uint64_t ew_etw_rings_lateness(struct ew_etw_rings *rings);
void ew_etw_rings_counts(const struct ew_etw_rings *rings, struct ew_etw_rings_counts *ret_counts);

#endif
