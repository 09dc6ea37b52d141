/* SPDX-License-Identifier: MIT */
/* What record can write: a function for each ending. Each returns the exit code of the program. */
#ifndef EW_CLI_RECORD_H
#define EW_CLI_RECORD_H

#include "cli/args/options.h"

/* .etl: a session of ETW that writes the file itself. Windows. */
int ew_record_etl(const struct ew_options *options);
/* .pftrace: a Perfetto trace, from whatever source there is. */
int ew_record_pftrace(const struct ew_options *options);

#endif
