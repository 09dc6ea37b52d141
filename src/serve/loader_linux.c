/* SPDX-License-Identifier: MIT */
#include "serve/loader.h"

#include <dlfcn.h>
#include <string.h>

void *ew_loader_open(const char *const *names, size_t count)
{
    void *library = NULL;
    for (size_t i = 0; library == NULL && i < count; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

/* C does not convert a pointer to an object into one to a function. */
bool ew_loader_find(void *library, const char *name, void *ret_function)
{
    void *symbol = dlsym(library, name);
    memcpy(ret_function, &symbol, sizeof symbol);
    return symbol != NULL;
}
