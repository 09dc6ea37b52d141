/* SPDX-License-Identifier: MIT */
/* What the makers of exports share. */
#ifndef EW_EXPORT_EXPORT_H
#define EW_EXPORT_EXPORT_H

#include <etwatch/export.h>

#include "base/error.h"

struct ew_perfetto_export {
    const struct etwatch_trace *trace; /* an .etl; it is read anew */
    const struct etwatch_table_options *options;
    etwatch_write_fn write;
    void *ctx;
    uint64_t rows; /* events that were written so far */
    struct etwatch_trace_stats *ret_stats;
    struct ew_error *reterr;
};

int ew_export_perfetto(struct ew_perfetto_export *export);

#endif
