/* SPDX-License-Identifier: MIT */
/* How often each kind of event came, for events --count. */
#ifndef EW_CLI_HISTOGRAM_H
#define EW_CLI_HISTOGRAM_H

#include <etwatch/sink.h>

struct ew_histogram {
    struct etwatch_trace_class *kinds; /* with strings of their own */
    uint32_t count, size;
    uint32_t *index; /* hash: place + 1, or 0 */
    uint32_t mask;
};

void ew_histogram_init(struct ew_histogram *histogram);
void ew_histogram_done(struct ew_histogram *histogram);
/* 0 or ETWATCH_ENOMEM. */
int ew_histogram_add(struct ew_histogram *histogram, const struct etwatch_trace_event *event);
/* Hands them to the sink, most frequent first. */
int ew_histogram_put(struct ew_histogram *histogram, struct etwatch_sink *sink);

#endif
