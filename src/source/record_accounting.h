/* SPDX-License-Identifier: MIT */
/*
 * From records to facts: the part that recordings and live sessions share. Decodes records, adds
 * them up in the tally, emits facts for the selected processes, and keeps command lines if they are
 * requested.
 */
#ifndef EW_SOURCE_RECORD_ACCOUNTING_H
#define EW_SOURCE_RECORD_ACCOUNTING_H

#include <stdbool.h>
#include <stdint.h>

#include "model/event.h"
#include "model/facts.h"
#include "model/record.h"
#include "model/selection.h"
#include "source/source.h"
#include "tally/tally.h"

/* ----------------------------------------------------------------------- sched_events */

/* Scheduler events of an ETW session in the form that every backend delivers (struct
 * etwatch_event). */

/* all: for every thread, not only for those of selected processes. causes: a wake-up by an
 * interrupt has no waker, and waits for pages are marked. Call once before the tally processes the
 * event and once after it (after = true): a starting thread is known only after, an ending thread
 * only before. */
struct ew_sched_events {
    bool all, causes;
};
void ew_sched_events_emit(const struct ew_tally *tally, const struct ew_sched_events *options,
                          bool after, const struct ew_record *record, const struct ew_event *event,
                          const struct ew_facts *facts);

struct ew_accounting_line;

struct ew_accounting {
    struct ew_tally *tally;
    struct ew_selection selection;
    const struct ew_facts *facts; /* of the current drain */
    uint64_t horizon_ns, last_ns;
    bool cut; /* an interval ended in this drain */
    struct ew_source_stats stats;
    bool events; /* emit scheduler events */
    struct ew_sched_events sched;
    struct ew_accounting_line **lines; /* NULL: command lines are not requested */
    uint32_t line_count;
};

/* own: what the source knows (CPUs, clock, classes, start time); the rest is filled in from
 * config. The accounting must not move in memory afterwards. */
int ew_accounting_init(struct ew_accounting *accounting, const struct ew_source_config *config,
                       const struct ew_tally_config *own);
void ew_accounting_done(struct ew_accounting *accounting);

/* For every record except a loss. */
void ew_accounting_take(struct ew_accounting *accounting, const struct ew_record *record,
                        const struct ew_facts *facts);
/* The command line of a process, or NULL; valid until the next call. */
const char *ew_accounting_cmdline(const struct ew_accounting *accounting, uint32_t pid);

#define EW_KIND(name) (UINT64_C(1) << EW_EVENT_##name)
/* The metrics that these kinds of events (EW_KIND) yield, and those of them that are estimates. */
struct etwatch_metric_set ew_accounting_available(uint64_t kinds);
struct etwatch_metric_set ew_accounting_estimated(uint64_t kinds);

#endif
