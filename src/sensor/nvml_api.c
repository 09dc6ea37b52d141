/* SPDX-License-Identifier: MIT */
/*
 * Finds the library of the NVIDIA driver and its functions. Of a function with versions the newest
 * that we know is taken, then older ones: a driver has all versions up to its own.
 */
#include "sensor/nvml_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/os.h"

struct ew_os_library *ew_nvml_load(const char *path, struct ew_error *reterr)
{
    /* Never libnvidia-ml.so: that is a stub for building. On Windows older drivers have it with
     * their tools. */
    static const char *const places[] = {"libnvidia-ml.so.1", "nvml.dll",
                                         "C:\\Program Files\\NVIDIA Corporation\\NVSMI\\nvml.dll"};
    char text[200] = "";
    struct ew_os_library *library = NULL;
    if (path != NULL)
        library = ew_os_library_open(path, text, sizeof text);
    for (size_t i = 0; path == NULL && library == NULL && i < sizeof places / sizeof places[0]; i++)
        library = ew_os_library_open(places[i], text, sizeof text);
    if (library == NULL && path == NULL)
        (void)ew_error_set(reterr, ETWATCH_ENOTSUP, 0,
                           "no NVIDIA driver: its library (libnvidia-ml.so.1, nvml.dll) is not "
                           "installed");
    else if (library == NULL)
        (void)ew_error_set(reterr, ETWATCH_ENOTSUP, 0, "the NVIDIA library cannot be loaded: %s",
                           text);
    return library;
}

/* Assigns a function of any type: all function pointers have one representation here. */
static bool find(struct ew_os_library *library, const char *name, void *slot, size_t size)
{
    void (*function)(void) = ew_os_library_function(library, name);
    if (function == NULL || size != sizeof function)
        return false;
    memcpy(slot, &function, size);
    return true;
}

#define FIND(member, name) find(library, (name), &api.member, sizeof api.member)

static void find_lists(struct ew_os_library *library, struct ew_nvml_list *lists)
{
    static const char *const names[EW_NVML_LISTS] = {"Compute", "Graphics", "MPSCompute"};
    for (uint32_t i = 0; i < EW_NVML_LISTS; i++) {
        static const char *const versions[] = {"_v3", "_v2", ""};
        bool found = false;
        for (uint32_t v = 0; v < 3 && !found; v++) {
            char name[96];
            (void)snprintf(name, sizeof name, "nvmlDeviceGet%sRunningProcesses%s", names[i],
                           versions[v]);
            found = v < 2 ? find(library, name, &lists[i].get, sizeof lists[i].get)
                          : find(library, name, &lists[i].get_v1, sizeof lists[i].get_v1);
        }
    }
}

bool ew_nvml_resolve(struct ew_os_library *library, struct ew_nvml_api *ret_api)
{
    struct ew_nvml_api api;
    memset(&api, 0, sizeof api);
    bool complete = (FIND(init, "nvmlInit_v2") || FIND(init, "nvmlInit")) &&
                    FIND(shutdown, "nvmlShutdown") &&
                    (FIND(count, "nvmlDeviceGetCount_v2") || FIND(count, "nvmlDeviceGetCount")) &&
                    (FIND(handle, "nvmlDeviceGetHandleByIndex_v2") ||
                     FIND(handle, "nvmlDeviceGetHandleByIndex"));
    (void)FIND(error_string, "nvmlErrorString");
    (void)FIND(name, "nvmlDeviceGetName");
    (void)(FIND(pci, "nvmlDeviceGetPciInfo_v3"));
    (void)FIND(memory_v2, "nvmlDeviceGetMemoryInfo_v2");
    (void)FIND(memory, "nvmlDeviceGetMemoryInfo");
    (void)FIND(rates, "nvmlDeviceGetUtilizationRates");
    (void)FIND(encoder, "nvmlDeviceGetEncoderUtilization");
    (void)FIND(decoder, "nvmlDeviceGetDecoderUtilization");
    (void)FIND(power, "nvmlDeviceGetPowerUsage");
    (void)FIND(temperature, "nvmlDeviceGetTemperature");
    (void)FIND(clock, "nvmlDeviceGetClockInfo");
    (void)FIND(energy, "nvmlDeviceGetTotalEnergyConsumption");
    (void)(FIND(throttle, "nvmlDeviceGetCurrentClocksEventReasons") ||
           FIND(throttle, "nvmlDeviceGetCurrentClocksThrottleReasons"));
    (void)FIND(pcie, "nvmlDeviceGetPcieThroughput");
    (void)FIND(samples, "nvmlDeviceGetSamples");
    (void)FIND(process_utilization, "nvmlDeviceGetProcessUtilization");
    (void)FIND(fields, "nvmlDeviceGetFieldValues");
    (void)FIND(mig_mode, "nvmlDeviceGetMigMode");
    (void)FIND(mig_handle, "nvmlDeviceGetMigDeviceHandleByIndex");
    find_lists(library, api.lists);
    *ret_api = api;
    return complete;
}
