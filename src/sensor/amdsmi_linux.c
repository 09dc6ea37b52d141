/* SPDX-License-Identifier: MIT */
/*
 * Declarations are our own, after amdsmi.h of ROCm 6 and 7, of functions that never changed. GPUs
 * are known by their PCI address. Nothing that the library returns is trusted: counts are bounded,
 * a resolution that cannot be is unknown.
 */
#include "sensor/amdsmi_linux.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "os/os.h"

enum { GPUS_MAX = 64, SOCKETS_MAX = 64, SUCCESS = 0, INIT_AMD_GPUS = 2 };

struct gpu {
    void *handle;
    char pci_address[32];
};

struct ew_amdsmi {
    struct ew_os_library *library;
    bool started;
    int (*init)(uint64_t flags);
    int (*shut_down)(void);
    int (*sockets)(uint32_t *count, void **handles);
    int (*processors)(void *socket, uint32_t *count, void **handles);
    int (*pci_id)(void *processor, uint64_t *id);
    int (*energy)(void *processor, uint64_t *count, float *uj_per_count, uint64_t *time_ns);
    struct gpu gpus[GPUS_MAX];
    uint32_t count;
};

/* Assigns a function of any type: all function pointers have one representation here. */
static bool find(struct ew_os_library *library, const char *name, void *slot)
{
    void (*function)(void) = ew_os_library_function(library, name);
    memcpy(slot, &function, sizeof function);
    return function != NULL;
}

static bool resolve(struct ew_amdsmi *amdsmi)
{
    struct ew_os_library *library = amdsmi->library;
    return find(library, "amdsmi_init", &amdsmi->init) &&
           find(library, "amdsmi_shut_down", &amdsmi->shut_down) &&
           find(library, "amdsmi_get_socket_handles", &amdsmi->sockets) &&
           find(library, "amdsmi_get_processor_handles", &amdsmi->processors) &&
           find(library, "amdsmi_get_gpu_bdf_id", &amdsmi->pci_id) &&
           find(library, "amdsmi_get_energy_count", &amdsmi->energy);
}

/* Domain in the upper half; bus, device and function as in the configuration space. */
static void add_gpu(struct ew_amdsmi *amdsmi, void *handle)
{
    uint64_t id = 0;
    if (amdsmi->count == GPUS_MAX || amdsmi->pci_id(handle, &id) != SUCCESS)
        return;
    struct gpu *gpu = &amdsmi->gpus[amdsmi->count++];
    gpu->handle = handle;
    (void)snprintf(gpu->pci_address, sizeof gpu->pci_address, "%04x:%02x:%02x.%x",
                   (unsigned)(id >> 32), (unsigned)(id >> 8 & 0xff), (unsigned)(id >> 3 & 0x1f),
                   (unsigned)(id & 7));
}

static void list_gpus(struct ew_amdsmi *amdsmi)
{
    void *sockets[SOCKETS_MAX] = {NULL}, *processors[GPUS_MAX];
    uint32_t socket_count = SOCKETS_MAX;
    if (amdsmi->sockets(&socket_count, sockets) != SUCCESS)
        return;
    for (uint32_t s = 0; s < socket_count && s < SOCKETS_MAX; s++) {
        uint32_t count = GPUS_MAX;
        memset(processors, 0, sizeof processors);
        if (sockets[s] == NULL || amdsmi->processors(sockets[s], &count, processors) != SUCCESS)
            continue;
        for (uint32_t i = 0; i < count && i < GPUS_MAX && processors[i] != NULL; i++)
            add_gpu(amdsmi, processors[i]);
    }
}

struct ew_amdsmi *ew_amdsmi_open(const char *path, char *ret_problem, size_t size)
{
    char text[200] = "";
    struct ew_amdsmi *amdsmi = ew_calloc(1, sizeof *amdsmi);
    if (amdsmi == NULL)
        return NULL;
    amdsmi->library = ew_os_library_open(path, text, sizeof text);
    if (amdsmi->library != NULL && !resolve(amdsmi)) {
        (void)snprintf(text, sizeof text, "it lacks functions of ROCm 6");
    } else if (amdsmi->library != NULL) {
        int code = amdsmi->init(INIT_AMD_GPUS);
        amdsmi->started = code == SUCCESS;
        (void)snprintf(text, sizeof text, "it does not start (status %d)", code);
    }
    if (amdsmi->started) {
        list_gpus(amdsmi);
        (void)snprintf(text, sizeof text, "it has no GPU");
    }
    if (amdsmi->count > 0)
        return amdsmi;
    (void)snprintf(ret_problem, size,
                   "AMD SMI (%.60s) cannot be used, so energy is an estimate: %s", path, text);
    ew_amdsmi_close(amdsmi);
    return NULL;
}

void ew_amdsmi_close(struct ew_amdsmi *amdsmi)
{
    if (amdsmi == NULL)
        return;
    if (amdsmi->started)
        (void)amdsmi->shut_down();
    ew_os_library_close(amdsmi->library);
    ew_free(amdsmi);
}

bool ew_amdsmi_energy(struct ew_amdsmi *amdsmi, const char *pci_address, double *ret_uj)
{
    for (uint32_t i = 0; amdsmi != NULL && i < amdsmi->count; i++) {
        uint64_t count = 0, time_ns = 0;
        float uj_per_count = 0;
        if (strcmp(amdsmi->gpus[i].pci_address, pci_address) != 0)
            continue;
        if (amdsmi->energy(amdsmi->gpus[i].handle, &count, &uj_per_count, &time_ns) != SUCCESS)
            return false;
        double uj = (double)count * (double)uj_per_count;
        if (!(uj_per_count > 0 && uj_per_count < 1e6f) || !(uj > 0 && uj < 9e18))
            return false;
        *ret_uj = uj;
        return true;
    }
    return false;
}
