/* SPDX-License-Identifier: MIT */
/* Hardware counters that switches carry, for the other files of the tally. */
#ifndef EW_TALLY_PMC_H
#define EW_TALLY_PMC_H

#include "tally/internal.h"

/* The counters that are known: EW_HAS_C. */
uint32_t ew_pmc_known(const struct ew_tally *tally);
/* A switch carried so many. */
void ew_pmc_saw(struct ew_tally *tally, uint8_t count);
/* What they are. */
void ew_pmc_names(struct ew_tally *tally, const struct ew_pmc_map *map);
/* Windows says that somebody else used them. */
void ew_pmc_disturbed(struct ew_tally *tally);
/* ran: who ran on this CPU since its last switch; NULL: that is not known. */
void ew_pmc_switch(struct ew_tally *tally, struct ew_tally_cpu *cpu, const struct ew_event *event,
                   struct ew_tally_thread *ran);
/* The end: what those that run counted since they were switched to is not told any more. */
void ew_pmc_finish(struct ew_tally *tally);
void ew_pmc_counters(const struct ew_tally *tally, const uint64_t deed[EW_DEED_COUNT],
                     uint64_t counter[EW_COUNTER_COUNT]);

#endif
