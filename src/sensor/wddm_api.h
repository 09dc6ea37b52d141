/* SPDX-License-Identifier: MIT */
/*
 * The functions of Windows that wddm.c calls, as a table, so that tests can put a fake in their
 * place. Declarations are our own, with the layouts of 64-bit Windows: pdh.dll (performance
 * counters) and gdi32.dll (D3DKMT, the interface to the graphics kernel) are loaded when they are
 * needed, and no header of Windows is included. Calling conventions do not differ on the processors
 * that we build for.
 */
#ifndef EW_SENSOR_WDDM_API_H
#define EW_SENSOR_WDDM_API_H

#include <stdbool.h>
#include <stdint.h>

struct ew_os_library;

/* PDH_STATUS */
#define EW_PDH_MORE_DATA 0x800007D2u
#define EW_PDH_NO_INSTANCE 0x800007D1u
#define EW_PDH_NO_DATA 0x800007D5u
enum { EW_PDH_VALID_DATA = 0, EW_PDH_NEW_DATA = 1 };

/* PDH_RAW_COUNTER_ITEM_W; names point into the buffer, behind the items. */
struct ew_pdh_item {
    const uint16_t *name;
    uint32_t status;
    uint32_t filetime[2];
    uint32_t pad;
    int64_t first, second;
    uint32_t multi_count;
    uint32_t pad2;
};

/* D3DKMT_ADAPTERINFO */
struct ew_kmt_adapter {
    uint32_t handle;
    uint32_t luid_low, luid_high;
    uint32_t source_count;
    int32_t precise;
};

/* D3DKMT_ENUMADAPTERS2; without a list it returns the count. */
struct ew_kmt_enumerate {
    uint32_t count;
    struct ew_kmt_adapter *list;
};

/* D3DKMT_QUERYADAPTERINFO */
struct ew_kmt_query {
    uint32_t handle;
    uint32_t type;
    void *data;
    uint32_t size;
};

enum ew_kmt_type {
    EW_KMT_SEGMENT_SIZE = 3,
    EW_KMT_ADDRESS = 6,
    EW_KMT_REGISTRY_INFO = 8,
    EW_KMT_ADAPTER_TYPE = 15,
    EW_KMT_DEVICE_IDS = 31,
};

enum ew_kmt_adapter_type {
    EW_KMT_RENDER = 1u << 0,
    EW_KMT_SOFTWARE = 1u << 2,
    EW_KMT_INDIRECT_DISPLAY = 1u << 6,
    EW_KMT_COMPUTE_ONLY = 1u << 11,
};

struct ew_kmt_segment_size {
    uint64_t dedicated_bytes, dedicated_system_bytes, shared_bytes;
};

struct ew_kmt_address {
    uint32_t bus, device, function;
};

struct ew_kmt_registry_info {
    uint16_t adapter[260], bios[260], dac[260], chip[260];
};

struct ew_kmt_device_ids {
    uint32_t index;
    uint32_t vendor, device, sub_vendor, sub_system, revision, bus_type;
};

struct ew_wddm_api {
    uint32_t (*open_query)(const uint16_t *source, uintptr_t user, void **ret_query);
    uint32_t (*add_english_counter)(void *query, const uint16_t *path, uintptr_t user,
                                    void **ret_counter);
    uint32_t (*collect)(void *query);
    uint32_t (*raw_array)(void *counter, uint32_t *size, uint32_t *count,
                          struct ew_pdh_item *items);
    uint32_t (*close_query)(void *query);
    /* NULL: this Windows does not have them. 0: success. */
    int32_t (*enumerate)(struct ew_kmt_enumerate *adapters);
    int32_t (*query)(struct ew_kmt_query *query);
    int32_t (*close_adapter)(const uint32_t *handle);
    struct ew_os_library *pdh, *gdi; /* to close; NULL in a fake */
};

/* Loads the real functions; false: this system has none. ew_wddm_api_done unloads them. */
bool ew_wddm_api_load(struct ew_wddm_api *ret_api);
void ew_wddm_api_done(struct ew_wddm_api *api);

#endif
