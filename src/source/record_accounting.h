/* SPDX-License-Identifier: MIT */
/*
 * From records to facts: what a recording and a live session have in common. Records are decoded
 * and added up; whoever was asked for is told of, and command lines are kept if they are wanted.
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

/* The scheduler's events of an ETW session, as the user gets them from every system. */

/* all: of every thread, not only of processes that were asked for. Call it before the tally takes
 * the event, and once more after it has (over): a thread that starts is known only then, one that
 * ends only before. */
void ew_sched_events_emit(const struct ew_tally *tally, bool all, bool over,
                          const struct ew_record *record, const struct ew_event *event,
                          const struct ew_facts *facts);

struct ew_record_accounting_line;

struct ew_record_accounting {
    struct ew_tally *tally;
    struct ew_selection selection;
    const struct ew_facts *facts; /* of the drain at hand */
    uint64_t horizon_ns, last_ns;
    bool cut; /* an interval ended in this drain */
    struct ew_source_stats stats;
    bool events, events_all; /* the scheduler's events are told too; of everybody */
    struct ew_record_accounting_line **lines; /* NULL: nobody wants them */
    uint32_t line_count;
};

/* own: what the source knows (CPUs, clock, classes, beginning); the rest is filled in from config.
 * The struct must stay where it is. */
int ew_record_accounting_init(struct ew_record_accounting *accounting,
                              const struct ew_source_config *config,
                              const struct ew_tally_config *own);
void ew_record_accounting_done(struct ew_record_accounting *accounting);

/* Anything but a loss. */
void ew_record_accounting_take(struct ew_record_accounting *accounting,
                               const struct ew_record *record, const struct ew_facts *facts);
/* What is known of a process beside its facts; until the next call. */
const char *ew_record_accounting_cmdline(const struct ew_record_accounting *accounting,
                                         uint32_t pid);

#define EW_KIND(name) (UINT64_C(1) << EW_EVENT_##name)
/* The metrics that these kinds of events (EW_KIND) yield, and those of them that are estimates. */
struct etwatch_metric_set ew_record_accounting_available(uint64_t kinds);
struct etwatch_metric_set ew_record_accounting_estimated(uint64_t kinds);

#endif
