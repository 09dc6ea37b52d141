/* SPDX-License-Identifier: MIT */
/* Shared libraries by LoadLibrary. A bare name is searched in System32 only: another folder could
 * hold a library of another user. */
#include <stdio.h>
#include <string.h>
#include <windows.h>

#include "os/os.h"

struct ew_os_library *ew_os_library_open(const char *path, char *reterr_text, size_t size)
{
    bool bare = strpbrk(path, "/\\:") == NULL;
    HMODULE module = LoadLibraryExA(
        path, NULL, bare ? LOAD_LIBRARY_SEARCH_SYSTEM32 : LOAD_LIBRARY_SEARCH_DEFAULT_DIRS);
    if (module == NULL)
        (void)snprintf(reterr_text, size, "%s cannot be loaded (error %lu)", path, GetLastError());
    return (struct ew_os_library *)(void *)module;
}

void (*ew_os_library_function(struct ew_os_library *library, const char *name))(void)
{
    void (*function)(void) = NULL;
    FARPROC symbol = GetProcAddress((HMODULE)(void *)library, name);
    memcpy(&function, &symbol, sizeof function);
    return function;
}

void ew_os_library_close(struct ew_os_library *library)
{
    if (library != NULL)
        (void)FreeLibrary((HMODULE)(void *)library);
}
