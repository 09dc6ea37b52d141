/* SPDX-License-Identifier: MIT */
/*
 * Energy meters are devices of the interface class GUID_DEVICE_ENERGY_METER, listed by cfgmgr32;
 * the battery's state is that of CallNtPowerInformation. Both libraries are loaded for each call,
 * because calls are rare (open, and the battery where there is no meter).
 */
#include <windows.h>

#include <string.h>

#include "base/alloc.h"
#include "os/os.h"
#include "sensor/emi_api.h"

enum { PATHS_MAX = 65536, SYSTEM_BATTERY_STATE_CLASS = 5, PRESENT_ONLY = 0 };
#define RATE_UNKNOWN 0x80000000u

static const GUID meter_class = {
    0x45bd8344, 0x7ed6, 0x49cf, {0xa4, 0x40, 0xc2, 0x76, 0xc9, 0x33, 0xb0, 0x53}};

typedef DWORD(WINAPI *list_size_fn)(ULONG *, const GUID *, const WCHAR *, ULONG);
typedef DWORD(WINAPI *list_fn)(const GUID *, const WCHAR *, WCHAR *, ULONG, ULONG);
typedef LONG(WINAPI *power_fn)(int, void *, ULONG, void *, ULONG);

/* SYSTEM_BATTERY_STATE */
struct battery_state {
    BYTE ac, present, charging, discharging, spare[3], tag;
    DWORD max_mwh, remaining_mwh, rate, estimated_s, alert1, alert2;
};
_Static_assert(sizeof(struct battery_state) == 32, "layout of Windows");

static bool find(struct ew_os_library *library, const char *name, void *slot)
{
    void (*function)(void) = library == NULL ? NULL : ew_os_library_function(library, name);
    memcpy(slot, &function, sizeof function);
    return function != NULL;
}

/* The paths of all meters, each terminated, behind the last an empty one. NULL: none. */
static WCHAR *list_paths(void)
{
    char text[200];
    struct ew_os_library *library = ew_os_library_open("cfgmgr32.dll", text, sizeof text);
    list_size_fn list_size;
    list_fn list;
    ULONG units = 0;
    WCHAR *paths = NULL;
    if (find(library, "CM_Get_Device_Interface_List_SizeW", &list_size) &&
        find(library, "CM_Get_Device_Interface_ListW", &list) &&
        list_size(&units, &meter_class, NULL, PRESENT_ONLY) == 0 && units > 1 && units <= PATHS_MAX)
        paths = ew_calloc(units + 2, sizeof *paths);
    if (paths != NULL && list(&meter_class, NULL, paths, units, PRESENT_ONLY) != 0) {
        ew_free(paths);
        paths = NULL;
    }
    if (library != NULL)
        ew_os_library_close(library);
    return paths;
}

static bool open_meter(void *ctx, uint32_t index, void **ret_meter, uint32_t *ret_error)
{
    WCHAR *paths = list_paths();
    const WCHAR *path = paths;
    (void)ctx;
    *ret_meter = NULL;
    for (uint32_t i = 0; path != NULL && *path != 0 && i < index; i++)
        path += wcslen(path) + 1;
    bool found = path != NULL && *path != 0;
    if (found) {
        HANDLE handle = CreateFileW(path, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL,
                                    OPEN_EXISTING, 0, NULL);
        *ret_error = handle == INVALID_HANDLE_VALUE ? GetLastError() : 0;
        *ret_meter = handle == INVALID_HANDLE_VALUE ? NULL : handle;
    }
    ew_free(paths);
    return found;
}

static uint32_t control(void *ctx, void *meter, uint32_t code, void *out, uint32_t size,
                        uint32_t *ret_size)
{
    DWORD written = 0;
    (void)ctx;
    BOOL done = DeviceIoControl(meter, code, NULL, 0, out, size, &written, NULL);
    *ret_size = written;
    return done ? 0 : GetLastError();
}

static void close_meter(void *ctx, void *meter)
{
    (void)ctx;
    (void)CloseHandle(meter);
}

static uint64_t ticks_of(const FILETIME *time)
{
    return (uint64_t)time->dwHighDateTime << 32 | time->dwLowDateTime;
}

static bool cpu_times(void *ctx, uint64_t *ret_busy_100ns, uint64_t *ret_all_100ns)
{
    FILETIME idle, kernel, user;
    (void)ctx;
    if (!GetSystemTimes(&idle, &kernel, &user))
        return false;
    *ret_all_100ns = ticks_of(&kernel) + ticks_of(&user); /* kernel time includes idle time */
    *ret_busy_100ns = *ret_all_100ns > ticks_of(&idle) ? *ret_all_100ns - ticks_of(&idle) : 0;
    return true;
}

static uint32_t cpu_count(void *ctx)
{
    (void)ctx;
    return GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
}

static bool battery(void *ctx, struct ew_emi_battery *ret_battery)
{
    char text[200];
    struct ew_os_library *library = ew_os_library_open("powrprof.dll", text, sizeof text);
    struct battery_state state;
    power_fn power;
    (void)ctx;
    memset(&state, 0, sizeof state);
    bool known = find(library, "CallNtPowerInformation", &power) &&
                 power(SYSTEM_BATTERY_STATE_CLASS, NULL, 0, &state, sizeof state) == 0 &&
                 state.present != 0;
    if (library != NULL)
        ew_os_library_close(library);
    if (!known)
        return false;
    /* The rate is negative while the battery discharges. */
    int32_t rate_mw = (int32_t)state.rate;
    ret_battery->discharging = state.discharging != 0;
    ret_battery->rate_known = state.rate != RATE_UNKNOWN && rate_mw < 0;
    ret_battery->rate_mw = ret_battery->rate_known ? (uint32_t)-rate_mw : 0;
    return true;
}

static const struct ew_emi_api real = {
    .open = open_meter,
    .control = control,
    .close = close_meter,
    .cpu_times = cpu_times,
    .cpu_count = cpu_count,
    .battery = battery,
};

const struct ew_emi_api *ew_emi_real_api(void)
{
    return &real;
}
