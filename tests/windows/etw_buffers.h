/* SPDX-License-Identifier: MIT */
/*
 * The buffers of a session, as Windows has them: a fixed number, each CPU fills one at a time, full
 * ones wait until they are read, and without a free one the event is lost. One thread writes, one
 * thread takes; only the lists between them are shared.
 */
#ifndef ETW_BUFFERS_H
#define ETW_BUFFERS_H

#include <stdbool.h>
#include <stdint.h>

#include "os/os.h"

struct etw_buffers;

struct etw_buffer {
    struct etw_buffer *next;
    uint32_t filled, events;
    uint64_t due_ns; /* not to be taken before */
    uint8_t bytes[]; /* including the header of 72 bytes */
};

struct etw_buffers *etw_buffers_new(uint32_t cpu_count, uint32_t buffer_bytes, uint32_t count);
void etw_buffers_free(struct etw_buffers *buffers);

/* Writer thread: writes an event in the format of recordings. False: no buffer is free. */
bool etw_buffers_write(struct etw_buffers *buffers, uint16_t cpu, uint64_t t_raw, const void *event,
                       uint32_t size);
/* Marks a loss: the next buffer of this CPU is flagged. */
void etw_buffers_mark(struct etw_buffers *buffers, uint16_t cpu);
/* A buffer without events that is flagged as a loss. */
void etw_buffers_empty(struct etw_buffers *buffers, uint16_t cpu);
/* Makes the partly filled buffer of every CPU available, with this time; 0: of its last event. */
void etw_buffers_flush(struct etw_buffers *buffers, uint64_t t_raw);

/* Before writing: full buffers of CPU 0 can be taken only this much later; 0: all of them at once.
 */
void etw_buffers_delay(struct etw_buffers *buffers, uint32_t ms);

/* Taking thread: the next full buffer that is due, or NULL if there is none. */
struct etw_buffer *etw_buffers_take(struct etw_buffers *buffers);
void etw_buffers_give(struct etw_buffers *buffers, struct etw_buffer *buffer);

#endif
