/* SPDX-License-Identifier: MIT */
#include "sensor/wddm_api.h"

#include <stddef.h>
#include <string.h>

#include "os/os.h"

_Static_assert(sizeof(void *) != 8 ||
                   (sizeof(struct ew_pdh_item) == 48 && offsetof(struct ew_pdh_item, first) == 24),
               "PDH_RAW_COUNTER_ITEM_W");
_Static_assert(sizeof(struct ew_kmt_adapter) == 20, "D3DKMT_ADAPTERINFO");

/* All function pointers have one representation here. */
static bool find(struct ew_os_library *library, const char *name, void *slot, size_t size)
{
    void (*function)(void) = library == NULL ? NULL : ew_os_library_function(library, name);
    if (function == NULL || size != sizeof function)
        return false;
    memcpy(slot, &function, size);
    return true;
}

#define FIND(library, member, name) find((library), (name), &api->member, sizeof api->member)

bool ew_wddm_api_load(struct ew_wddm_api *api)
{
    char text[200];
    memset(api, 0, sizeof *api);
    api->pdh = ew_os_library_open("pdh.dll", text, sizeof text);
    api->gdi = ew_os_library_open("gdi32.dll", text, sizeof text);
    bool counters = FIND(api->pdh, open_query, "PdhOpenQueryW") &&
                    FIND(api->pdh, add_english_counter, "PdhAddEnglishCounterW") &&
                    FIND(api->pdh, collect, "PdhCollectQueryData") &&
                    FIND(api->pdh, raw_array, "PdhGetRawCounterArrayW") &&
                    FIND(api->pdh, close_query, "PdhCloseQuery");
    bool adapters = FIND(api->gdi, enumerate, "D3DKMTEnumAdapters2") &&
                    FIND(api->gdi, query, "D3DKMTQueryAdapterInfo") &&
                    FIND(api->gdi, close_adapter, "D3DKMTCloseAdapter");
    if (!adapters)
        api->enumerate = NULL;
    if (!counters)
        ew_wddm_api_done(api);
    return counters;
}

void ew_wddm_api_done(struct ew_wddm_api *api)
{
    if (api->pdh != NULL)
        ew_os_library_close(api->pdh);
    if (api->gdi != NULL)
        ew_os_library_close(api->gdi);
    memset(api, 0, sizeof *api);
}
