/* SPDX-License-Identifier: MIT */
/* Samples kept for a reader: bounded, the oldest go first, and every one that goes is counted. */
#ifndef EW_MONITOR_QUEUE_H
#define EW_MONITOR_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include <etwatch/etwatch.h>

enum { EW_QUEUE_NAME_SIZE = 64 };

struct ew_queue_slot {
    struct etwatch_sample sample;
    char name[EW_QUEUE_NAME_SIZE];
    char thread_name[EW_QUEUE_NAME_SIZE];
};

struct ew_queue {
    struct ew_queue_slot *slots;
    size_t size, first, count;
    uint64_t dropped;
    char **texts; /* users and cgroups, each once, the latest first */
    size_t text_count, text_size;
    struct ew_queue_slot *handed_out; /* what the last take's strings point into */
    size_t handed_out_size;
};

int ew_queue_init(struct ew_queue *queue, size_t size);
void ew_queue_done(struct ew_queue *queue);
void ew_queue_put(struct ew_queue *queue, const struct etwatch_sample *sample);
/* Strings of the samples stay valid until the next take. Returns the count or ENOMEM. */
int ew_queue_take(struct ew_queue *queue, struct etwatch_sample *ret_samples, size_t max);
/* The strings are copied to ret_texts, each once. Ends before the first sample whose strings find
 * no room there; those of the very first are then unknown. Returns the count. */
int ew_queue_copy(struct ew_queue *queue, struct etwatch_sample *ret_samples, size_t max,
                  char *ret_texts, size_t texts_size, size_t *ret_texts_used);

#endif
