/* SPDX-License-Identifier: MIT */
/*
 * A ring of samples. Names are copied into the slot, because the ledger that owns them goes on
 * living; user, cgroup and command line belong to the monitor and outlive the queue's use of them.
 */
#include "monitor/queue.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

int ew_queue_init(struct ew_queue *queue, size_t size)
{
    memset(queue, 0, sizeof *queue);
    queue->slots = ew_calloc(size, sizeof *queue->slots);
    if (queue->slots == NULL)
        return ETWATCH_ENOMEM;
    queue->size = size;
    return 0;
}

void ew_queue_done(struct ew_queue *queue)
{
    ew_free(queue->slots);
    ew_free(queue->handed_out);
    memset(queue, 0, sizeof *queue);
}

static const char *keep(char buffer[EW_QUEUE_NAME_SIZE], const char *text)
{
    if (text == NULL)
        return NULL;
    (void)snprintf(buffer, EW_QUEUE_NAME_SIZE, "%s", text);
    return buffer;
}

/* Only says which strings there are; the pointers are set when the slot has its last place. */
void ew_queue_put(struct ew_queue *queue, const struct etwatch_sample *sample)
{
    if (queue->size == 0)
        return;
    if (queue->count == queue->size) {
        queue->first = (queue->first + 1) % queue->size;
        queue->count--;
        queue->dropped++;
    }
    struct ew_queue_slot *slot = &queue->slots[(queue->first + queue->count) % queue->size];
    slot->sample = *sample;
    slot->sample.name = keep(slot->name, sample->name);
    slot->sample.thread_name = keep(slot->thread_name, sample->thread_name);
    queue->count++;
}

int ew_queue_take(struct ew_queue *queue, struct etwatch_sample *ret_samples, size_t max)
{
    size_t count = queue->count < max ? queue->count : max;
    if (count > queue->handed_out_size) {
        struct ew_queue_slot *bigger = ew_realloc_array(queue->handed_out, count, sizeof *bigger);
        if (bigger == NULL)
            return ETWATCH_ENOMEM;
        queue->handed_out = bigger;
        queue->handed_out_size = count;
    }
    for (size_t i = 0; i < count; i++) {
        struct ew_queue_slot *out = &queue->handed_out[i];
        *out = queue->slots[(queue->first + i) % queue->size];
        if (out->sample.name != NULL)
            out->sample.name = out->name;
        if (out->sample.thread_name != NULL)
            out->sample.thread_name = out->thread_name;
        ret_samples[i] = out->sample;
    }
    if (count > 0)
        queue->first = (queue->first + count) % queue->size;
    queue->count -= count;
    return (int)count;
}
