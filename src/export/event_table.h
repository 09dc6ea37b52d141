/* SPDX-License-Identifier: MIT */
/* The events of a recording as columns. */
#ifndef EW_EXPORT_EVENT_TABLE_H
#define EW_EXPORT_EVENT_TABLE_H

#include <etwatch/arrow.h>

#include "arrow/export.h"
#include "base/error.h"

/* A stream over a trace, which is the stream's on success. */
int ew_table_events(struct etwatch_trace *trace, const struct etwatch_table_options *options,
                    struct etwatch_trace_stats *stats, struct ArrowArrayStream *ret_stream,
                    struct ew_error *reterr);

#endif
