/* SPDX-License-Identifier: MIT */
/* Linux has no ETW: the rest of live ETW is built here only for its tests. */
#include "source/etw/api.h"

const struct ew_etw_api *ew_etw_real_api(struct ew_error *reterr)
{
    ew_error_set(reterr, ETWATCH_ENOTSUP, 0, "ETW sessions exist on Windows only");
    ew_error_fix(reterr, "recordings can be read everywhere: etwatch report FILE.etl");
    return NULL;
}
