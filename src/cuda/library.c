/* SPDX-License-Identifier: MIT */
/*
 * Finds CUPTI and its functions. The program may have loaded one already (PyTorch links to it):
 * then that one is used, because two would fight for the same GPU. Else the version that fits the
 * driver, where the linker, the program's CUDA runtime (Python wheels put both below one folder) or
 * the toolkit have it.
 */
#include "cuda/library.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/ring.h"

enum { PATH_SIZE = 1024, FOLDERS_MAX = 8 };

static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8",
                                    "libcupti.so.11.7"};
enum { NAMES = sizeof names / sizeof names[0] };

struct folders {
    char path[FOLDERS_MAX][PATH_SIZE];
    uint32_t count;
};

/* Folders of the CUDA runtimes that are loaded. */
static int add_folder(struct dl_phdr_info *info, size_t size, void *data)
{
    struct folders *folders = data;
    const char *slash = info->dlpi_name == NULL ? NULL : strrchr(info->dlpi_name, '/');
    (void)size;
    if (slash == NULL || strncmp(slash + 1, "libcudart.so", 12) != 0 ||
        folders->count == FOLDERS_MAX || (size_t)(slash - info->dlpi_name) >= PATH_SIZE)
        return 0;
    char *to = folders->path[folders->count++];
    memcpy(to, info->dlpi_name, (size_t)(slash - info->dlpi_name));
    to[slash - info->dlpi_name] = '\0';
    return 0;
}

static void *open_in(const char *folder, const char *below, const char *name)
{
    char path[2 * PATH_SIZE];
    int len = snprintf(path, sizeof path, "%s%s/%s", folder, below, name);
    return len < 0 || (size_t)len >= sizeof path ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void *open_name(const char *name, const struct folders *folders)
{
    static const char *const siblings[] = {"", "/../../cuda_cupti/lib", "/../extras/CUPTI/lib64"};
    static const char *const toolkits[] = {
        "/usr/local/cuda/extras/CUPTI/lib64", "/usr/local/cuda/lib64",
        "/usr/local/cuda-13/extras/CUPTI/lib64", "/usr/local/cuda-12/extras/CUPTI/lib64"};
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    for (uint32_t i = 0; library == NULL && i < folders->count; i++)
        for (size_t s = 0; library == NULL && s < sizeof siblings / sizeof siblings[0]; s++)
            library = open_in(folders->path[i], siblings[s], name);
    for (size_t i = 0; library == NULL && i < sizeof toolkits / sizeof toolkits[0]; i++)
        library = open_in(toolkits[i], "", name);
    return library;
}

/* The driver runs CUPTI of its own and older versions. */
static bool fits_driver(const char *name)
{
    int version = 0;
    int (*get)(int *) = NULL;
    void *function = ew_cuda_driver_function("cuDriverGetVersion");
    memcpy(&get, &function, sizeof get);
    if (get == NULL || get(&version) != 0 || version <= 0)
        return true;
    return strtol(name + strlen("libcupti.so."), NULL, 10) <= version / 1000;
}

void *ew_cuda_library_open(char *reterr, size_t size)
{
    const char *wanted = getenv(EW_GPU_CUPTI_VARIABLE);
    void *library = NULL;
    if (wanted != NULL && wanted[0] != '\0') {
        library = dlopen(wanted, RTLD_NOW | RTLD_LOCAL);
        if (library == NULL)
            (void)snprintf(reterr, size, "CUPTI cannot be loaded: %.160s", dlerror());
        return library;
    }
    struct folders folders = {.count = 0};
    for (uint32_t i = 0; library == NULL && i < NAMES; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (library == NULL)
        (void)dl_iterate_phdr(add_folder, &folders);
    for (uint32_t i = 0; library == NULL && i < NAMES; i++)
        if (fits_driver(names[i]))
            library = open_name(names[i], &folders);
    if (library == NULL)
        (void)snprintf(reterr, size,
                       "CUPTI (libcupti.so.13, .12) is not installed; it is part of the CUDA "
                       "toolkit and of the Python package nvidia-cuda-cupti");
    return library;
}

void *ew_cuda_driver_function(const char *name)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *function = driver == NULL ? dlsym(RTLD_DEFAULT, name) : dlsym(driver, name);
    if (driver != NULL)
        (void)dlclose(driver); /* its own reference stays */
    return function;
}

static bool find(void *library, const char *name, void *slot)
{
    void *function = dlsym(library, name);
    memcpy(slot, &function, sizeof function);
    return function != NULL;
}

#define FIND(member, name) find(library, "cupti" name, &api.member)

bool ew_cuda_library_resolve(void *library, struct cupti_api *ret_api, char *reterr, size_t size)
{
    struct cupti_api api;
    uint32_t version = 0;
    memset(&api, 0, sizeof api);
    bool complete = FIND(version, "GetVersion") &&
                    FIND(register_callbacks, "ActivityRegisterCallbacks") &&
                    FIND(enable, "ActivityEnable") && FIND(disable, "ActivityDisable") &&
                    FIND(next, "ActivityGetNextRecord") && FIND(flush, "ActivityFlushAll");
    (void)FIND(dropped, "ActivityGetNumDroppedRecords");
    (void)FIND(timestamp, "GetTimestamp");
    (void)FIND(register_timestamp, "ActivityRegisterTimestampCallback");
    (void)FIND(thread_id_type, "SetThreadIdType");
    (void)FIND(enable_runtime_call, "ActivityEnableRuntimeApi");
    (void)FIND(enable_driver_call, "ActivityEnableDriverApi");
    (void)FIND(subscribe, "Subscribe");
    (void)FIND(unsubscribe, "Unsubscribe");
    (void)FIND(error_string, "GetResultString");
    (void)(FIND(nvtx, "NvtxInitialize2") || find(library, "InitializeInjectionNvtx2", &api.nvtx));
    if (!complete || api.version(&version) != CUPTI_OK) {
        (void)snprintf(reterr, size, "this CUPTI lacks functions of its activity interface");
        return false;
    }
    /* 17 and 18 are CUDA 11.7 and 11.8; 12.x counts up to 28; since 13.0 it is 130000 and so on. */
    bool known = (version >= 17 && version < 50) || version / 10000 == 13;
    if (!known) {
        (void)snprintf(reterr, size,
                       "CUPTI has version %u: its records are not known (CUDA 11.7 "
                       "to 13 are)",
                       version);
        return false;
    }
    *ret_api = api;
    return true;
}
