/* SPDX-License-Identifier: MIT */
/*
 * Summaries: what each process of a stream of samples did, with the distribution of every metric.
 *
 * Samples are added to a summary, which can be read at any time. etwatch_summary_add can be used as
 * on_samples of etwatch_callbacks with the summary as ctx: the monitor's thread then keeps it up to
 * date, and a slow reader loses nothing. Memory grows with the active processes, about 6 KB each,
 * up to a stated number of them.
 *
 * The rules of etwatch.h hold. A summary may be used from several threads, except free, and inside
 * any callback except its own on_process.
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
    /* 0 = 2048. Beyond it processes are dropped and counted: those that exited first, then those
     * that were seen first. */
    uint32_t max_processes;
    /* May be NULL: gets the same batch after it was added; as in etwatch_callbacks. */
    void (*on_samples)(void *ctx, const struct etwatch_samples *batch);
    void *ctx;
    /* May be NULL: what etwatch_summary_on_devices gets, with the same ctx. */
    void (*on_devices)(void *ctx, const struct etwatch_devices *batch);
};

enum etwatch_summary_flag {
    ETWATCH_SUMMARY_ENDED = 1u << 0,
};

/* Sums that cannot be computed from the statistics of their parts. */
enum etwatch_summary_sum {
    ETWATCH_SUM_SWITCHES, /* switches_voluntary + switches_involuntary */
    ETWATCH_SUM_FAULTS,   /* faults_minor + faults_major */
    ETWATCH_SUM_COUNT
};

/* What one thread of a process did since it was first seen. FIXED. */
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
    uint64_t last_ns;  /* ... to here: its exit, or the latest time of the whole stream */
    uint64_t samples;
    /* The latest value of each gauge and the sums of the counters; after its exit: the EXIT, with
     * totals over its life. */
    const struct etwatch_sample *sample;
    /* By metric. Counters, and cpu_percent: over all intervals; idle intervals count as 0. Gauges:
     * over the samples in which they were read. count 0: unknown. */
    const struct etwatch_aggregate *metrics;
    uint32_t metric_count;
    /* By tid: the threads with THREAD samples that have cycles. At most 4096; more are counted as
     * dropped. */
    uint32_t thread_count;
    const struct etwatch_summary_thread *threads;
    /* By enum etwatch_summary_sum: over the intervals in which both parts were known. */
    const struct etwatch_aggregate *sums;
    uint32_t sum_count;
    uint32_t reserved;
};

/* options may be NULL. */
ETWATCH_API int etwatch_summary_new(const struct etwatch_summary_options *options,
                                    struct etwatch_summary **ret_summary);
/* NULL is fine. No monitor may still add to it. */
ETWATCH_API void etwatch_summary_free(struct etwatch_summary *summary);
/* Adds samples in their order. Samples for which there is no memory are counted as dropped. */
ETWATCH_API void etwatch_summary_add(void *summary, const struct etwatch_samples *batch);
/* Fits on_devices of etwatch_callbacks: passes the batch on to on_devices of the options. */
ETWATCH_API void etwatch_summary_on_devices(void *summary, const struct etwatch_devices *batch);
/* Calls on_process for each process with this pid (0: for all), in the order in which they were
 * first seen; returns their number. on_process must not use the summary. */
ETWATCH_API int etwatch_summary_for_each(
    struct etwatch_summary *summary, uint32_t pid,
    void (*on_process)(void *ctx, const struct etwatch_summary_process *process), void *ctx);
/* How many processes were dropped: too many, or no memory. */
ETWATCH_API uint64_t etwatch_summary_dropped(struct etwatch_summary *summary);

#ifdef __cplusplus
}
#endif

#endif /* ETWATCH_SUMMARY_H */
