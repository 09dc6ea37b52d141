/* SPDX-License-Identifier: MIT */
/* The scheduler's events of an ETW session, as the user gets them from every system. */
#ifndef EW_SOURCE_SCHED_EVENTS_H
#define EW_SOURCE_SCHED_EVENTS_H

#include <stdbool.h>

#include "model/event.h"
#include "model/facts.h"
#include "model/record.h"
#include "tally/tally.h"

/* all: of every thread, not only of processes that were asked for. Call it before the tally takes
 * the event, and once more after it has (over): a thread that starts is known only then, one that
 * ends only before. */
void ew_sched_events_emit(const struct ew_tally *tally, bool all, bool over,
                          const struct ew_record *record, const struct ew_event *event,
                          const struct ew_facts *facts);

#endif
