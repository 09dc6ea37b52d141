/* SPDX-License-Identifier: MIT */
/*
 * Hardware counters of the CPU with every context switch: which of those that are asked for this
 * machine has, by the names that its Windows lists, and the session told to log them. Whatever is
 * refused is no reason not to watch: it is not known then, and there is a line that says why.
 */
#ifndef EW_SOURCE_ETW_PMC_H
#define EW_SOURCE_ETW_PMC_H

#include <stdint.h>

#include "model/pmc.h"
#include "source/etw/api.h"

enum { EW_ETW_PMC_WHY = 160 };

struct ew_etw_pmc {
    struct ew_pmc_map map; /* what switches carry, in this order; count 0: nothing */
    char why[EW_COUNTER_COUNT][EW_ETW_PMC_WHY]; /* of those that were asked for; "": it has it */
};

/* Why a metric is not carried; NULL: it is, or nobody asked for it. */
const char *ew_etw_pmc_why_not(const struct ew_etw_pmc *pmc, uint32_t metric);
/* wanted: EW_HAS_C, of EW_HAS_PMC. The session logs switches already. */
void ew_etw_pmc_ask(const struct ew_etw_api *api, uint64_t session, uint32_t wanted,
                    struct ew_etw_pmc *ret_pmc);

#endif
