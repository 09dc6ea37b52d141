/* SPDX-License-Identifier: MIT */
/*
 * The stacks of profile samples in a recording. A sample and its stack are different events: the
 * stack names the time of its sample, and comes after it, its user part maybe much later.
 */
#ifndef EW_EXPORT_STACKS_H
#define EW_EXPORT_STACKS_H

#include <etwatch/trace.h>

#include "sink/flame.h"

struct ew_stacks_counts {
    uint64_t samples;    /* in the part and of the processes that were asked for */
    uint64_t with_stack; /* of them */
    uint64_t frames;     /* different ones */
    uint64_t unnamed;    /* of them: of no module */
    uint64_t refused;    /* samples that did not fit into memory */
};

/*
 * Reads the recording twice: `all` for modules and stacks that are told by a key, `chosen` for the
 * samples. Both are the same files; `all` is not limited to processes or a part. Fills flame.
 */
int ew_stacks_read(struct etwatch_trace *all, struct etwatch_trace *selection,
                   struct ew_flame *flame, struct ew_stacks_counts *ret_counts);

#endif
