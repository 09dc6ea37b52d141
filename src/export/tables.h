/* SPDX-License-Identifier: MIT */
/* What the makers of tables share. */
#ifndef EW_EXPORT_TABLES_H
#define EW_EXPORT_TABLES_H

#include <etwatch/arrow.h>

#include "base/error.h"

/* The options as they are, checked; given may be NULL. */
int ew_table_options_take(const struct etwatch_table_options *given,
                          struct etwatch_table_options *ret_options, struct ew_error *reterr);

/* etwatch_trace_table; *stats (may be NULL) gets what the reading found when the stream is
 * released.
 */
int ew_trace_table(const struct etwatch_trace *trace, uint32_t table,
                   const struct etwatch_table_options *options, struct etwatch_trace_stats *stats,
                   struct ArrowArrayStream *ret_stream, struct ew_error *reterr);

enum ew_trace_again {
    EW_TRACE_ALL_PROCESSES = 1 << 0, /* not only those that were asked for */
    EW_TRACE_ALL = 3,                /* nor only the part */
};
/* The same files, and unless flags says otherwise the same part and processes, for a reading of its
 * own. */
int ew_trace_open_again(const struct etwatch_trace *trace,
                        const struct etwatch_table_options *options, uint32_t flags,
                        struct etwatch_trace **ret_trace, struct ew_error *reterr);

/* A monitor of the recording's files, of the processes that were asked for. It is open, and what is
 * there at the beginning was delivered. *ret_monitor is to be freed after an error too. */
int ew_trace_monitor(const struct etwatch_trace *trace, double hz, uint32_t flags,
                     const struct etwatch_callbacks *callbacks,
                     struct etwatch_monitor **ret_monitor, struct etwatch_error_info *reterr);

#endif
