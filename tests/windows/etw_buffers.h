/* SPDX-License-Identifier: MIT */
/*
 * The buffers of a session, as Windows has them: a fixed number, each CPU fills one at a time, full
 * ones wait until somebody has read them, and without a free one the event is lost. One thread
 * writes, one takes; only the lists between them are shared.
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
    uint8_t bytes[]; /* with the header of 72 bytes */
};

struct etw_buffers *etw_buffers_new(uint32_t cpu_count, uint32_t buffer_bytes, uint32_t count);
void etw_buffers_free(struct etw_buffers *buffers);

/* Whoever writes: an event as recordings have it. False: no buffer is free. */
bool etw_buffers_write(struct etw_buffers *buffers, uint16_t cpu, uint64_t t_raw, const void *event,
                       uint32_t size);
/* Something was lost: the next buffer of this CPU says so. */
void etw_buffers_mark(struct etw_buffers *buffers, uint16_t cpu);
/* What every CPU is filling can be taken. */
void etw_buffers_flush(struct etw_buffers *buffers);

/* Whoever takes. NULL: there is none. */
struct etw_buffer *etw_buffers_take(struct etw_buffers *buffers);
void etw_buffers_give(struct etw_buffers *buffers, struct etw_buffer *buffer);

#endif
