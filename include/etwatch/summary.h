/* SPDX-License-Identifier: MIT */
/*
 * Summaries: what each process of a stream of samples did, with the spread of every metric.
 *
 * A summary is fed with samples and asked at any time. etwatch_summary_add fits on_samples of
 * etwatch_callbacks with the summary as ctx: it is then kept by the monitor's own thread, and
 * nothing is lost to a slow reader. Memory grows with the processes that did something, some 6 KB
 * each, up to a stated number of them.
 *
 * The rules of etwatch.h hold. A summary may be used from several threads, except free.
 */
#ifndef ETWATCH_SUMMARY_H
#define ETWATCH_SUMMARY_H

#include <etwatch/etwatch.h>

#ifdef __cplusplus
extern "C" {
#endif

struct etwatch_summary;

struct etwatch_summary_options {
    uint32_t size;
    /* 0 = 2048. Beyond it those go that ended first, then those that were seen first; counted. */
    uint32_t max_processes;
    /* May be NULL: gets the same samples, after they were added; as in etwatch_callbacks. */
    void (*on_samples)(void *ctx, const struct etwatch_sample *samples, size_t count);
    void *ctx;
};

enum etwatch_summary_flag {
    ETWATCH_SUMMARY_ENDED = 1u << 0,
};

/* What one thread of a process did since it was first heard of. */
struct etwatch_summary_thread {
    uint32_t tid;
    uint32_t reserved;
    uint64_t cycles;
};

/* One process; everything is valid until the callback returns. */
struct etwatch_summary_process {
    uint32_t size;
    uint32_t flags;    /* enum etwatch_summary_flag */
    uint64_t first_ns; /* watched from here ... */
    uint64_t last_ns;  /* ... until here: its end, or the latest time of the whole stream */
    uint64_t samples;
    /* The latest of each gauge, and the sums of the counters. One that ended: its EXIT, totals over
     * its life. */
    const struct etwatch_sample *sample;
    /* By metric. Counters, and cpu_percent: over all intervals, those in which it did nothing count
     * as 0. Gauges: over the samples in which they were read. count 0: unknown. */
    const struct etwatch_aggregate *metrics;
    uint32_t metric_count;
    /* By tid, those whose cycles are known: THREAD samples that have them were added. At most 4096;
     * what others did is counted as dropped. */
    uint32_t thread_count;
    const struct etwatch_summary_thread *threads;
};

/* options may be NULL. */
ETWATCH_API int etwatch_summary_new(const struct etwatch_summary_options *options,
                                    struct etwatch_summary **ret_summary);
/* NULL is fine. Not while something still adds to it. */
ETWATCH_API void etwatch_summary_free(struct etwatch_summary *summary);
/* Takes samples in their order. What finds no memory is counted as dropped. */
ETWATCH_API void etwatch_summary_add(void *summary, const struct etwatch_sample *samples,
                                     size_t count);
/* Calls on_process for each process, or those with this pid (0: all), in the order in which they
 * were first seen; returns their number. on_process must not use the summary. */
ETWATCH_API int etwatch_summary_for_each(
    struct etwatch_summary *summary, uint32_t pid,
    void (*on_process)(void *ctx, const struct etwatch_summary_process *process), void *ctx);
/* How many processes went because there were too many, or found no memory. */
ETWATCH_API uint64_t etwatch_summary_dropped(struct etwatch_summary *summary);

#ifdef __cplusplus
}
#endif

#endif /* ETWATCH_SUMMARY_H */
