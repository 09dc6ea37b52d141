/* SPDX-License-Identifier: MIT */
/*
 * Adds events up: who ran when, on which CPU, and what it did. Windows has no counters that a
 * kernel program could add up for us, so this is done here, on one thread, with no allocation per
 * event.
 *
 * Events come in time order. The tally keeps, per CPU, the thread that runs and since when; per
 * thread and process the absolute counters; and the thread-to-process map as it was at each moment
 * (ids are reused). It yields the same facts as any other source: process facts and readings, cut
 * at interval ends exactly, so that ledger and sampler cannot tell a recording from a live session.
 *
 * What is not known is not made up: before the first switch on a CPU, and after a loss on it,
 * nobody is known to run there, and the threads concerned are marked incomplete.
 */
#ifndef EW_TALLY_H
#define EW_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/event.h"
#include "model/facts.h"
#include "model/record.h"

struct ew_tally;

struct ew_tally_config {
    uint32_t max_processes; /* 0: 65536 */
    uint32_t max_threads;   /* 0: 131072 */
    uint64_t first_ns;      /* raw: the recording begins */
    /* Facts: only if interval_ns is not 0. Interval ends are epoch_ns + n * interval_ns. */
    uint64_t epoch_ns;
    uint64_t interval_ns;
    bool threads; /* thread names and priorities in the readings too */
    bool images;  /* keep the list of images */
    /* Turns the session's clock into ns, for times inside payloads. */
    void *clock_ctx;
    uint64_t (*raw_to_ns)(void *ctx, const struct ew_record *record, uint64_t raw);
    /* Only these are told as facts: NULL = everybody. Descendants are followed. */
    bool (*wanted)(void *ctx, uint32_t pid, const char *name);
    void *wanted_ctx;
};

int ew_tally_new(const struct ew_tally_config *config, struct ew_tally **ret_tally);
void ew_tally_free(struct ew_tally *tally);

/* Takes one event; facts (may be NULL) get what became certain by it. 0 or ETWATCH_ENOMEM (then
 * counted as lost). */
int ew_tally_event(struct ew_tally *tally, const struct ew_record *record,
                   const struct ew_event *event, const struct ew_facts *facts);
/* Time has come this far (no event before it will come): closes intervals. */
void ew_tally_advance(struct ew_tally *tally, uint64_t t_ns, const struct ew_facts *facts);
/* Events of this CPU (UINT16_MAX: any) were lost up to now. */
void ew_tally_loss(struct ew_tally *tally, uint16_t cpu, uint64_t t_ns, uint64_t count,
                   const struct ew_facts *facts);
/* From at_ns on, an interval end. */
void ew_tally_set_interval(struct ew_tally *tally, uint64_t at_ns, uint64_t interval_ns);
/* The recording ends at t_ns: whoever runs is accounted for up to there. */
void ew_tally_finish(struct ew_tally *tally, uint64_t t_ns, const struct ew_facts *facts);

/* -------------------------------------------------------------------- totals */

enum ew_total_flag {
    EW_TOTAL_CPU_ESTIMATED = 1u << 0, /* from profile samples: there were no switches */
    EW_TOTAL_STARTED = 1u << 1,       /* its start is in the recording */
    EW_TOTAL_ENDED = 1u << 2,
    EW_TOTAL_HAS_EXIT = 1u << 3, /* exit_status */
    EW_TOTAL_HAS_PPID = 1u << 4,
    EW_TOTAL_HAS_SESSION = 1u << 5,
    EW_TOTAL_INCOMPLETE = 1u << 6, /* events were lost while it lived */
    EW_TOTAL_IDLE = 1u << 7,       /* the idle process */
};

/* One process, or one thread of it, over its whole life in the recording. Valid until the next
 * event. */
struct ew_total {
    uint32_t flags;
    uint32_t pid, tid; /* tid 0: the process */
    uint32_t ppid, session_id;
    int32_t exit_status;
    uint64_t start_ns, end_ns; /* raw; 0: not in the recording */
    const char *name;          /* UTF-8, "" unknown */
    const char *command_line;  /* processes; "" unknown. Private: mask before showing */
    uint32_t thread_count;     /* ever */
    uint32_t image_count;
    uint32_t counter_has, gauge_has;
    uint64_t counter[EW_COUNTER_COUNT];
    uint64_t gauge[EW_GAUGE_COUNT];
    uint64_t samples; /* profile samples */
};

/* In order of start; threads after their process if asked for. Returns what on_total returned if
 * that was not 0. */
int ew_tally_totals(const struct ew_tally *tally, bool threads,
                    int (*on_total)(void *ctx, const struct ew_total *total), void *ctx);

/* Program files and libraries, in order of loading; kept only if the configuration asks for them.
 */
struct ew_tally_image {
    uint32_t pid;
    uint64_t base, bytes;
    uint64_t load_ns, unload_ns; /* raw; 0: before or after the recording */
    const char *path;
};
int ew_tally_images(const struct ew_tally *tally,
                    int (*on_image)(void *ctx, const struct ew_tally_image *image), void *ctx);

struct ew_tally_system {
    uint64_t busy_ns, idle_ns, dpc_ns, isr_ns; /* summed over CPUs, where known */
    uint64_t unknown_ns;                       /* CPU time for which nobody is known */
    uint64_t switches, samples;
    bool cpu_from_switches;
    uint64_t lost;
    uint64_t unattributed; /* events of threads that nothing is known about */
};
void ew_tally_system(const struct ew_tally *tally, struct ew_tally_system *ret_system);

#endif
