/* SPDX-License-Identifier: MIT */
/* What the makers of tables share. */
#ifndef EW_MONITOR_TABLES_H
#define EW_MONITOR_TABLES_H

#include <etwatch/arrow.h>

#include "base/error.h"

/* The options as they are, checked; given may be NULL. */
int ew_table_options_take(const struct etwatch_table_options *given,
                          struct etwatch_table_options *ret_options, struct ew_error *reterr);

#endif
