/* SPDX-License-Identifier: MIT */
/* Hardware counters carried by switches, for the other files of the tally. */
#ifndef EW_TALLY_PMC_H
#define EW_TALLY_PMC_H

#include "tally/internal.h"

/* The known counters: EW_HAS_C. */
uint32_t ew_tally_pmc_known(const struct ew_tally *tally);
/* A switch carried this many counters. */
void ew_tally_pmc_saw(struct ew_tally *tally, uint8_t count);
/* The meaning of the counters. */
void ew_tally_pmc_names(struct ew_tally *tally, const struct ew_pmc_map *map);
/* Windows reports that another program used the counters. */
void ew_tally_pmc_disturbed(struct ew_tally *tally);
/* ran: the thread that ran on this CPU since its last switch; NULL: unknown. */
void ew_tally_pmc_switch(struct ew_tally *tally, struct ew_tally_cpu *cpu,
                         const struct ew_event *event, struct ew_tally_thread *ran);
/* End of the recording: running threads lose what was counted since they were switched in. */
void ew_tally_pmc_finish(struct ew_tally *tally);
void ew_tally_pmc_counters(const struct ew_tally *tally, const uint64_t work[EW_WORK_COUNT],
                           uint64_t counter[EW_COUNTER_COUNT]);

#endif
