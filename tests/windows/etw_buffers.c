/* SPDX-License-Identifier: MIT */
/* The lock protects the list of free buffers and the queue of full ones. */
#include "etw_buffers.h"

#include <stdlib.h>
#include <string.h>

enum { HEADER = 72, FLAG_LOST = 2, FLAG_CPU_INDEX = 0x20, STATE_FLUSH = 3 };

struct etw_buffers {
    struct ew_mutex *lock;
    uint32_t cpu_count, buffer_bytes;
    uint64_t sequence;
    uint32_t delay_ms;           /* of CPU 0 */
    struct etw_buffer **current; /* one per CPU */
    bool *lost;                  /* likewise: since its last buffer */
    struct etw_buffer *free, *first, *last;
};

struct etw_buffers *etw_buffers_new(uint32_t cpu_count, uint32_t buffer_bytes, uint32_t count)
{
    struct etw_buffers *buffers = calloc(1, sizeof *buffers);
    if (buffers == NULL || ew_mutex_new(&buffers->lock) != 0)
        abort();
    buffers->cpu_count = cpu_count;
    buffers->buffer_bytes = buffer_bytes;
    buffers->current = calloc(cpu_count, sizeof(struct etw_buffer *));
    buffers->lost = calloc(cpu_count, sizeof *buffers->lost);
    if (buffers->current == NULL || buffers->lost == NULL)
        abort();
    for (uint32_t i = 0; i < count; i++) {
        struct etw_buffer *buffer = malloc(sizeof *buffer + buffer_bytes);
        if (buffer == NULL)
            abort();
        etw_buffers_give(buffers, buffer);
    }
    return buffers;
}

static void free_list(struct etw_buffer *buffer)
{
    while (buffer != NULL) {
        struct etw_buffer *next = buffer->next;
        free(buffer);
        buffer = next;
    }
}

void etw_buffers_free(struct etw_buffers *buffers)
{
    free_list(buffers->free);
    free_list(buffers->first);
    for (uint32_t cpu = 0; cpu < buffers->cpu_count; cpu++)
        free(buffers->current[cpu]);
    free(buffers->current);
    free(buffers->lost);
    ew_mutex_free(buffers->lock);
    free(buffers);
}

/* ------------------------------------------------------------------------- writing */

static void begin(struct etw_buffers *buffers, struct etw_buffer *buffer, uint16_t cpu)
{
    uint8_t *head = buffer->bytes;
    uint32_t state = STATE_FLUSH;
    uint16_t flags = (uint16_t)(FLAG_CPU_INDEX | (buffers->lost[cpu] ? FLAG_LOST : 0));
    memset(head, 0, HEADER);
    memcpy(head, &buffers->buffer_bytes, 4);
    memcpy(head + 0x18, &buffers->sequence, 8);
    memcpy(head + 0x28, &cpu, 2);
    memcpy(head + 0x2C, &state, 4);
    memcpy(head + 0x34, &flags, 2);
    buffers->sequence++;
    buffers->lost[cpu] = false;
    buffer->filled = HEADER;
    buffer->events = 0;
}

static void queue(struct etw_buffers *buffers, uint16_t cpu)
{
    struct etw_buffer *buffer = buffers->current[cpu];
    buffers->current[cpu] = NULL;
    if (buffer == NULL)
        return;
    memcpy(buffer->bytes + 0x30, &buffer->filled, 4);
    if (buffer->filled < buffers->buffer_bytes) /* what Windows writes after the last event */
        memset(buffer->bytes + buffer->filled, 0xFF, buffers->buffer_bytes - buffer->filled);
    buffer->next = NULL;
    ew_mutex_lock(buffers->lock);
    bool delayed = cpu == 0 && buffers->delay_ms > 0;
    buffer->due_ns = delayed ? ew_os_raw_ns() + buffers->delay_ms * UINT64_C(1000000) : 0;
    if (buffers->first == NULL)
        buffers->first = buffer;
    else
        buffers->last->next = buffer;
    buffers->last = buffer;
    ew_mutex_unlock(buffers->lock);
}

static struct etw_buffer *get(struct etw_buffers *buffers)
{
    ew_mutex_lock(buffers->lock);
    struct etw_buffer *buffer = buffers->free;
    if (buffer != NULL)
        buffers->free = buffer->next;
    ew_mutex_unlock(buffers->lock);
    return buffer;
}

bool etw_buffers_write(struct etw_buffers *buffers, uint16_t cpu, uint64_t t_raw, const void *event,
                       uint32_t size)
{
    uint32_t padded = (size + 7) & ~7u;
    struct etw_buffer *buffer = buffers->current[cpu];
    if (buffer != NULL && buffer->filled + padded > buffers->buffer_bytes) {
        queue(buffers, cpu);
        buffer = NULL;
    }
    if (buffer == NULL) {
        buffer = padded > buffers->buffer_bytes - HEADER ? NULL : get(buffers);
        if (buffer == NULL)
            return false;
        begin(buffers, buffer, cpu);
        buffers->current[cpu] = buffer;
    }
    memcpy(buffer->bytes + buffer->filled, event, size);
    memset(buffer->bytes + buffer->filled + size, 0xA5, padded - size); /* may contain anything */
    memcpy(buffer->bytes + 0x10, &t_raw, 8);
    buffer->filled += padded;
    buffer->events++;
    return true;
}

void etw_buffers_mark(struct etw_buffers *buffers, uint16_t cpu)
{
    queue(buffers, cpu);
    buffers->lost[cpu] = true;
}

void etw_buffers_empty(struct etw_buffers *buffers, uint16_t cpu)
{
    struct etw_buffer *buffer = get(buffers);
    if (buffer == NULL)
        abort();
    buffers->lost[cpu] = true;
    begin(buffers, buffer, cpu);
    buffers->current[cpu] = buffer;
    queue(buffers, cpu);
}

void etw_buffers_flush(struct etw_buffers *buffers, uint64_t t_raw)
{
    for (uint32_t cpu = 0; cpu < buffers->cpu_count; cpu++) {
        if (buffers->current[cpu] != NULL && t_raw != 0)
            memcpy(buffers->current[cpu]->bytes + 0x10, &t_raw, 8);
        queue(buffers, (uint16_t)cpu);
    }
}

/* -------------------------------------------------------------------------- taking */

void etw_buffers_delay(struct etw_buffers *buffers, uint32_t ms)
{
    ew_mutex_lock(buffers->lock);
    buffers->delay_ms = ms;
    ew_mutex_unlock(buffers->lock);
}

struct etw_buffer *etw_buffers_take(struct etw_buffers *buffers)
{
    struct etw_buffer *before = NULL;
    ew_mutex_lock(buffers->lock);
    struct etw_buffer *buffer = buffers->first;
    while (buffer != NULL && buffers->delay_ms > 0 && buffer->due_ns > 0 &&
           buffer->due_ns > ew_os_raw_ns()) {
        before = buffer;
        buffer = buffer->next;
    }
    if (buffer != NULL && before == NULL)
        buffers->first = buffer->next;
    else if (buffer != NULL)
        before->next = buffer->next;
    if (buffer != NULL && buffers->last == buffer)
        buffers->last = before;
    ew_mutex_unlock(buffers->lock);
    return buffer;
}

void etw_buffers_give(struct etw_buffers *buffers, struct etw_buffer *buffer)
{
    ew_mutex_lock(buffers->lock);
    buffer->next = buffers->free;
    buffers->free = buffer;
    ew_mutex_unlock(buffers->lock);
}
