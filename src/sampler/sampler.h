/* SPDX-License-Identifier: MIT */
/*
 * Turns facts into samples: what each process (and thread) did in each interval, exactly.
 *
 * No clock and no thread of its own: time comes in with the facts, so a recording gives the samples
 * the live run gave. Facts go in through the callbacks of ew_sampler_facts; ew_sampler_cut delivers
 * the intervals that are finished. Raw times go in, Unix times come out. One thread at a time.
 *
 * What comes out, interval by interval: the STARTs, then the SAMPLEs (each followed by its
 * THREADs), then the final SAMPLEs of those that ended and their EXITs.
 *
 *  - CPU time is placed to the nanosecond: at each interval end a run is split in proportion to
 * time. The user and kernel part follow it. What else a run counted goes whole to the interval with
 * the largest part of its CPU time; in the others it is unknown, unless it was 0.
 *  - A count for an interval already delivered is added to the oldest one not yet delivered, and
 *    counted in `late`: sums stay exact, only its place moved.
 *  - A gauge is on the sample it is true for: read at or after the end of the interval, before the
 *    process's next sample, or read earlier and the process has not run since.
 *  - dt_ns is the part of the interval in which the process existed.
 *  - A START carries the gauges known when it is delivered.
 *  - An EXIT waits for the last readings of the process's threads, at most two seconds and, where
 *    something was lost, two cuts.
 */
#ifndef EW_SAMPLER_SAMPLER_H
#define EW_SAMPLER_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/facts.h"

struct ew_sampler;

struct ew_sampler_config {
    uint32_t source; /* enum etwatch_source, for the samples */
    bool rounds;     /* polling: a cut closes exactly one interval, from the last cut on */
    bool threads;    /* THREAD samples too */
    bool dense;      /* a sample for every process and interval */
    bool aggregate;  /* keep what ew_sampler_aggregate needs */
    struct etwatch_metric_set available; /* of the source: 0 in an interval without activity */
    struct etwatch_metric_set metrics;   /* to report; empty: all */
    uint64_t epoch_ns;                   /* raw: the first interval begins, watching began */
    uint64_t interval_ns;
    int64_t unix_minus_raw_ns;
    uint32_t max_processes;
    uint32_t max_threads;
    void *ctx;
    /* Samples in order, valid until it returns. */
    void (*emit)(void *ctx, const struct etwatch_sample *samples, size_t count);
    /* May be NULL. All samples of a cut were emitted; until now their strings are valid. */
    void (*emitted)(void *ctx);
    void (*loss)(void *ctx, const struct etwatch_loss *loss);                   /* may be NULL */
    void (*event)(void *ctx, const struct etwatch_event *events, size_t count); /* may be NULL */
    /* Asked once per process (and again after an exec) when its strings are first needed. Leaves
     * what it does not know; copies are taken. May be NULL. */
    void (*describe)(void *ctx, uint32_t pid, uint32_t uid, uint64_t cgroup_id,
                     const char **ret_user, const char **ret_cgroup, const char **ret_cmdline);
};

struct ew_sampler_counts {
    uint64_t objects;   /* everything delivered */
    uint64_t samples;   /* the SAMPLEs and THREADs among them */
    uint64_t intervals; /* delivered, with the empty ones */
    uint64_t readings;
    uint64_t late;      /* readings that came after their interval was delivered */
    uint64_t lost;      /* as far as the source or the tables know */
    uint64_t processes; /* in the table now */
    uint64_t threads;
};

/* ETWATCH_EINVAL: the configuration; ETWATCH_ENOMEM. */
int ew_sampler_new(const struct ew_sampler_config *config, struct ew_sampler **ret_sampler);
void ew_sampler_free(struct ew_sampler *sampler);

/* The callbacks that a source delivers to. */
void ew_sampler_facts(struct ew_sampler *sampler, struct ew_facts *ret_facts);

/* Delivers every interval that ends at or before horizon_ns. Returns the number of objects
 * delivered, or ETWATCH_ENOMEM if memory was short since the last cut: what could not be kept is
 * counted as lost, the rest was delivered. ETWATCH_ESTATE after finish. */
int ew_sampler_deliver(struct ew_sampler *sampler, uint64_t horizon_ns);
/* At the end: everything, the last and shorter interval up to now_ns too. As cut. */
int ew_sampler_finish(struct ew_sampler *sampler, uint64_t now_ns);

/* From at_ns on, an interval end for which no fact has been taken yet, intervals are this long.
 * ETWATCH_EINVAL: at_ns is none, or interval_ns is out of 1 ms to 10 s; ETWATCH_ESTATE: too late;
 * ETWATCH_ELIMIT: too many changes wait. With rounds only a check. */
int ew_sampler_set_interval(struct ew_sampler *sampler, uint64_t at_ns, uint64_t interval_ns);

/* Totals since the process began as far as known, and its latest gauges. The name is copied to
 * buffer (may be NULL), other strings are NULL. ETWATCH_ENOENT. */
int ew_sampler_snapshot(const struct ew_sampler *sampler, uint32_t pid,
                        struct etwatch_sample *ret_sample, char *buffer, size_t buffer_size);
/* metric: ETWATCH_M_cpu_percent (idle intervals count as 0) or ETWATCH_M_rss_bytes (where known).
 */
int ew_sampler_aggregate(const struct ew_sampler *sampler, uint32_t pid, uint32_t metric,
                         struct etwatch_aggregate *ret_aggregate);
/* From now on the source delivers other counters. */
void ew_sampler_set_available(struct ew_sampler *sampler,
                              const struct etwatch_metric_set *available);
/* The process is no longer watched: what it did is delivered, no EXIT. ETWATCH_ENOENT. */
int ew_sampler_forget(struct ew_sampler *sampler, uint32_t pid);

void ew_sampler_counts(const struct ew_sampler *sampler, struct ew_sampler_counts *ret_counts);

#endif
