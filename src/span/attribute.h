/* SPDX-License-Identifier: MIT */
/* Divides the latency of one span by cause. Reads the history, keeps nothing. */
#ifndef EW_SPANS_ATTRIBUTE_H
#define EW_SPANS_ATTRIBUTE_H

#include "span/history.h"

/* Fills everything after `session`. The sum of ns[] is the latency. */
void ew_spans_attribute(const struct ew_spans_history *history, struct etwatch_span *span);

/* The number of pool threads of the process without that of the span; 0: unknown. ret_run_ns: the
 * time that they were on a CPU within the span. */
uint32_t ew_spans_pool(const struct ew_spans_history *history, const struct etwatch_span *span,
                       uint64_t *ret_run_ns);

/* Adds ns to the entry of this kind, pid and tid, or to a new one; a full table replaces nothing.
 */
void ew_spans_cause_add(struct etwatch_cause *causes, uint32_t *count, uint32_t max,
                        const struct etwatch_cause *cause);
/* The largest first. */
void ew_spans_cause_sort(struct etwatch_cause *causes, uint32_t count);

#endif
