/* SPDX-License-Identifier: MIT */
/* From what a user calls a provider to its GUID. */
#ifndef EW_SOURCE_ETW_PROVIDER_NAME_H
#define EW_SOURCE_ETW_PROVIDER_NAME_H

#include <stdbool.h>

#include "base/error.h"
#include "source/etw/api.h"

/* A GUID in its usual form, a name that the machine or we know (in any case), or a star and a name
 * that the GUID is made from. EINVAL: nobody knows it. */
int ew_provider_find(const struct ew_etw_api *api, const char *name, uint8_t ret_guid[16],
                     struct ew_error *reterr);
/* The GUID that EventSource and TraceLogging make from a name. False: not valid UTF-8. */
bool ew_provider_hash(const char *name, uint8_t ret_guid[16]);

#endif
