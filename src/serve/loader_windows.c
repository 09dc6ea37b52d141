/* SPDX-License-Identifier: MIT */
#include "serve/loader.h"

#include <string.h>

#include "os/os.h"

void *ew_loader_open(const char *const *names, size_t count)
{
    struct ew_os_library *library = NULL;
    char reason[128];
    for (size_t i = 0; library == NULL && i < count; i++)
        library = ew_os_library_open(names[i], reason, sizeof reason);
    return library;
}

bool ew_loader_find(void *library, const char *name, void *ret_function)
{
    void (*function)(void) = ew_os_library_function(library, name);
    memcpy(ret_function, &function, sizeof function);
    return function != NULL;
}
