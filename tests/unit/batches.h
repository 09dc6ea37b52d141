/* SPDX-License-Identifier: MIT */
/* Arrays of the tests as batches of the library. */
#ifndef BATCHES_H
#define BATCHES_H

#include <etwatch/arrow.h>
#include <etwatch/sink.h>
#include <etwatch/summary.h>

static inline int sink_samples(struct etwatch_sink *sink, const struct etwatch_sample *samples,
                               size_t count)
{
    struct etwatch_samples batch = etwatch_samples_of(samples, count);
    return etwatch_sink_samples(sink, &batch);
}

static inline int sink_events(struct etwatch_sink *sink, const struct etwatch_event *events,
                              size_t count)
{
    struct etwatch_events batch = etwatch_events_of(events, count);
    return etwatch_sink_events(sink, &batch);
}

static inline int sink_windows(struct etwatch_sink *sink, const struct etwatch_window *windows,
                               size_t count)
{
    struct etwatch_windows batch = etwatch_windows_of(windows, count);
    return etwatch_sink_windows(sink, &batch);
}

static inline void summary_add(struct etwatch_summary *summary,
                               const struct etwatch_sample *samples, size_t count)
{
    struct etwatch_samples batch = etwatch_samples_of(samples, count);
    etwatch_summary_add(summary, &batch);
}

static inline void collect_samples(struct etwatch_collector *collector,
                                   const struct etwatch_sample *samples, size_t count)
{
    struct etwatch_samples batch = etwatch_samples_of(samples, count);
    etwatch_collector_on_samples(collector, &batch);
}

static inline void collect_events(struct etwatch_collector *collector,
                                  const struct etwatch_event *events, size_t count)
{
    struct etwatch_events batch = etwatch_events_of(events, count);
    etwatch_collector_on_events(collector, &batch);
}

#endif
