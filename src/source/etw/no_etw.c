/* SPDX-License-Identifier: MIT */
/*
 * The ETW source of a build that has none: it can never be opened, and says what works instead. It
 * stands in by file, so that nobody else has to ask.
 */
#include "source/source.h"

static int refuse(const struct ew_source_config *config, struct ew_source **ret_source,
                  struct ew_error *reterr)
{
    (void)config;
    (void)ret_source;
    ew_error_set(reterr, ETWATCH_ENOTSUP, 0, "this build of etwatch has no live ETW source");
    ew_error_fix(reterr, "record with wpr or xperf, then: etwatch report FILE.etl");
    return ETWATCH_ENOTSUP;
}

/* Only open is ever called: no source exists that the others could be given. */
const struct ew_source_ops ew_source_etw = {
    .id = ETWATCH_SOURCE_ETW,
    .open = refuse,
};
