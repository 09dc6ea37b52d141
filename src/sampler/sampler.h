/* SPDX-License-Identifier: MIT */
/*
 * Converts facts to samples: the exact activity of each process (and thread) in each interval.
 *
 * It has no clock and no thread: time comes in with the facts, so a recording yields the same
 * samples as the live run. Facts go in through the callbacks of ew_sampler_facts;
 * ew_sampler_deliver delivers the finished intervals. Raw times go in, Unix times come out. One
 * thread at a time.
 *
 * Order of delivery per interval: the STARTs, then the SAMPLEs (each followed by its THREADs), then
 * the final SAMPLEs of processes that exited and their EXITs.
 *
 *  - CPU time is attributed to the nanosecond: at each interval end a run is split in proportion to
 *    time, and so are its user and kernel parts. Other counts of a run go to the interval with the
 *    largest part of its CPU time; in its other intervals they are unknown, unless they were 0.
 *  - A count for an interval already delivered is added to the oldest undelivered one and counted
 * in `late`: sums stay exact, only the time is shifted.
 *  - A gauge is on the sample for which it is valid: read at or after the end of the interval and
 *    before the process's next sample, or read earlier if the process has not run since.
 *  - dt_ns is the part of the interval in which the process existed.
 *  - A START carries the gauges known when it is delivered.
 *  - An EXIT waits for the last readings of the process's threads, at most two seconds and, if
 *    something was lost, two cuts.
 */
#ifndef EW_SAMPLER_SAMPLER_H
#define EW_SAMPLER_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/device.h"
#include "model/facts.h"

struct ew_sampler;

struct ew_sampler_config {
    uint32_t source; /* enum etwatch_source, for the samples */
    bool rounds;     /* polling: each cut closes one interval, which starts at the last cut */
    bool threads;    /* emit THREAD samples */
    bool dense;      /* a sample for every process and interval */
    bool aggregate;  /* keep the data for ew_sampler_aggregate */
    struct etwatch_metric_set
        available;                     /* metrics of the source: known to be 0 where nothing ran */
    struct etwatch_metric_set metrics; /* metrics to report; empty: all */
    uint64_t epoch_ns;                 /* raw: start of the first interval and of monitoring */
    uint64_t interval_ns;
    int64_t unix_minus_raw_ns;
    uint32_t max_processes;
    uint32_t max_threads;
    void *ctx;
    /* Receives samples in order, valid until it returns. */
    void (*emit)(void *ctx, const struct etwatch_sample *samples, size_t count);
    /* May be NULL. Called after all samples of a cut; their strings are valid until it returns. */
    void (*emitted)(void *ctx);
    /* May be NULL. Counters (EW_HAS_C) that are unknown in what is delivered now, whatever the
     * readings have. */
    uint32_t (*unproven)(const void *unproven_ctx);
    const void *unproven_ctx;
    void (*loss)(void *ctx, const struct etwatch_loss *loss);                   /* may be NULL */
    void (*event)(void *ctx, const struct etwatch_event *events, size_t count); /* may be NULL */
    /* Called once per process (and again after an exec) when its strings are first needed. Must
     * leave unknown strings unchanged; the strings are copied. May be NULL. */
    void (*describe)(void *ctx, uint32_t pid, uint32_t uid, const char *sid, uint64_t cgroup_id,
                     const char **ret_user, const char **ret_cgroup, const char **ret_cmdline);
};

struct ew_sampler_counts {
    uint64_t objects;   /* all delivered objects */
    uint64_t samples;   /* SAMPLEs and THREADs among them */
    uint64_t intervals; /* delivered, empty ones included */
    uint64_t readings;
    uint64_t late;      /* readings that arrived after their interval was delivered */
    uint64_t lost;      /* as far as known to the source and the tables */
    uint64_t processes; /* currently in the table */
    uint64_t threads;
};

/* ETWATCH_EINVAL (configuration) or ETWATCH_ENOMEM. */
int ew_sampler_new(const struct ew_sampler_config *config, struct ew_sampler **ret_sampler);
void ew_sampler_free(struct ew_sampler *sampler);

/* The callbacks to which a source delivers. */
void ew_sampler_facts(struct ew_sampler *sampler, struct ew_facts *ret_facts);

/* Delivers every interval that ends at or before horizon_ns. Returns the number of delivered
 * objects, or ETWATCH_ENOMEM if memory was short since the last cut: what could not be kept is
 * counted as lost, everything else was delivered. ETWATCH_ESTATE after finish. */
int ew_sampler_deliver(struct ew_sampler *sampler, uint64_t horizon_ns);
/* Delivers everything, including the last, shorter interval up to now_ns. Returns like deliver. */
int ew_sampler_finish(struct ew_sampler *sampler, uint64_t now_ns);

/* What a process did on a device, and energy that CPU time caused (model/device.h): after the facts
 * of the same time. The first returns whether the process is watched, the second the energy that
 * was attributed to watched processes. */
bool ew_sampler_device(struct ew_sampler *sampler, const struct ew_device_use *use);
uint64_t ew_sampler_energy(struct ew_sampler *sampler, const struct ew_energy_use *use);

/* Sets the interval length from at_ns on, an interval end after all facts so far. ETWATCH_EINVAL:
 * at_ns is not an interval end, or interval_ns is outside 1 ms to 10 s; ETWATCH_ESTATE: too late;
 * ETWATCH_ELIMIT: too many pending changes. In rounds mode only a check. */
int ew_sampler_set_interval(struct ew_sampler *sampler, uint64_t at_ns, uint64_t interval_ns);

/* Totals since the process's start as far as known, and its latest gauges. The name is copied to
 * buffer (may be NULL), other strings are NULL. ETWATCH_ENOENT. */
int ew_sampler_snapshot(const struct ew_sampler *sampler, uint32_t pid,
                        struct etwatch_sample *ret_sample, char *buffer, size_t buffer_size);
/* metric: ETWATCH_M_cpu_percent (idle intervals count as 0) or ETWATCH_M_rss_bytes (where known).
 */
int ew_sampler_aggregate(const struct ew_sampler *sampler, uint32_t pid, uint32_t metric,
                         struct etwatch_aggregate *ret_aggregate);
/* Changes the set of counters that the source delivers. */
void ew_sampler_set_available(struct ew_sampler *sampler,
                              const struct etwatch_metric_set *available);
/* Stops monitoring a process: its activity so far is delivered, but no EXIT. ETWATCH_ENOENT. */
int ew_sampler_forget(struct ew_sampler *sampler, uint32_t pid);

void ew_sampler_counts(const struct ew_sampler *sampler, struct ew_sampler_counts *ret_counts);

#endif
