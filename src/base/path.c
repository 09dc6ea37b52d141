/* SPDX-License-Identifier: MIT */
/* Text of paths. */
#include "base/path.h"

#include <stdio.h>
#include <string.h>

const char *ew_path_name(const char *path)
{
    const char *name = path;
    for (const char *at = path; *at != '\0'; at++)
        if (*at == '/' || *at == '\\')
            name = at + 1;
    return name;
}

bool ew_path_numbered(const char *path, uint32_t number, char *buffer, size_t size)
{
    const char *dot = strrchr(ew_path_name(path), '.');
    size_t stem = dot != NULL ? (size_t)(dot - path) : strlen(path);
    int len = number <= 1
                  ? snprintf(buffer, size, "%s", path)
                  : snprintf(buffer, size, "%.*s.%u%s", (int)stem, path, number, path + stem);
    return len >= 0 && (size_t)len < size;
}
