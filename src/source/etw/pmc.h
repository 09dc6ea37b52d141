/* SPDX-License-Identifier: MIT */
/*
 * Hardware counters of the CPU with every context switch: finds which of the requested ones this
 * machine has, by the names that Windows lists, and enables them in the session. A failure is not
 * fatal: the counter is unknown then, and a line of text gives the reason.
 */
#ifndef EW_SOURCE_ETW_PMC_H
#define EW_SOURCE_ETW_PMC_H

#include <stdint.h>

#include "model/pmc.h"
#include "source/etw/api.h"

enum { EW_ETW_PMC_REASON = 160 };

struct ew_etw_pmc {
    struct ew_pmc_map map; /* what switches carry, in this order; count 0: nothing */
    char reason[EW_COUNTER_COUNT][EW_ETW_PMC_REASON]; /* of requested counters; "": available */
};

/* Why a metric is not carried; NULL: it is, or it was not requested. */
const char *ew_etw_pmc_unavailable_reason(const struct ew_etw_pmc *pmc, uint32_t metric);
/* wanted: EW_HAS_C bits within EW_HAS_PMC. The session must already log switches. */
void ew_etw_pmc_enable(const struct ew_etw_api *api, uint64_t session, uint32_t wanted,
                       struct ew_etw_pmc *ret_pmc);

#endif
