/* SPDX-License-Identifier: MIT */
/* Who ran when, out of a recording. */
#ifndef EW_EXPORT_TIMELINE_H
#define EW_EXPORT_TIMELINE_H

#include <etwatch/trace.h>

#include "base/buf.h"
#include "model/selection.h"

/* Writes the JSON of chrome://tracing. trace: of all processes; chosen: whose slices are written.
 * Counts slices. */
int ew_timeline_chrome(struct etwatch_trace *trace, const struct ew_selection *selection,
                       struct ew_buf *out, uint64_t *ret_slices);

#endif
