/* SPDX-License-Identifier: MIT */
/* Shared libraries by dlopen. The handle of dlopen is the library itself. */
#include "os/os.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

struct ew_os_library *ew_os_library_open(const char *path, char *reterr_text, size_t size)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *text = handle == NULL ? dlerror() : NULL;
    if (handle == NULL)
        (void)snprintf(reterr_text, size, "%s", text != NULL ? text : "cannot be loaded");
    return handle;
}

void (*ew_os_library_function(struct ew_os_library *library, const char *name))(void)
{
    void (*function)(void) = NULL;
    void *symbol = dlsym(library, name);
    memcpy(&function, &symbol, sizeof function);
    return function;
}

void ew_os_library_close(struct ew_os_library *library)
{
    if (library != NULL)
        (void)dlclose(library);
}
