/* SPDX-License-Identifier: MIT */
/* There is no ETW here: everything else of live ETW is built for the tests alone. */
#include "source/etw/api.h"

const struct ew_etw_api *ew_etw_real_api(struct ew_error *reterr)
{
    ew_error_set(reterr, ETWATCH_ENOTSUP, 0, "ETW sessions are there on Windows only");
    ew_error_fix(reterr, "recordings can be read everywhere: etwatch report FILE.etl");
    return NULL;
}
