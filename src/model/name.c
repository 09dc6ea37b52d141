/* SPDX-License-Identifier: MIT */
/* Pure functions. The eBPF program implements the same rule, since it cannot call this. */
#include "model/name.h"

#include <string.h>

bool ew_name_is_glob(const char *pattern)
{
    return strpbrk(pattern, "*?") != NULL;
}

/* The last star is extended until the rest matches; earlier stars need not be retried, so this
 * takes at most len(pattern) * len(name) steps. */
static bool glob_matches(const char *pattern, const char *name)
{
    const char *star = NULL, *from = NULL;
    while (*name != '\0') {
        if (*pattern == '*') {
            star = pattern++;
            from = name;
        } else if (*pattern == '?' || *pattern == *name) {
            pattern++;
            name++;
        } else if (star != NULL) {
            pattern = star + 1;
            name = ++from;
        } else {
            return false;
        }
    }
    return pattern[strspn(pattern, "*")] == '\0';
}

bool ew_name_matches(const char *pattern, const char *name)
{
    size_t pattern_len = strlen(pattern);
    size_t name_len = strlen(name);
    if (pattern_len == 0)
        return false;
    if (ew_name_is_glob(pattern))
        return glob_matches(pattern, name);
    if (pattern_len > name_len)
        return name_len == EW_NAME_CUT_LEN && memcmp(pattern, name, name_len) == 0;
    if (memcmp(pattern, name, pattern_len) != 0)
        return false;
    char next = name[pattern_len];
    return next == '\0' || next == '.' || next == '-' || (next >= '0' && next <= '9');
}

bool ew_name_is_windows_system(uint32_t pid, const char *name)
{
    static const char *const names[] = {"System", "Idle", "Registry"};
    if (pid == 0 || pid == 4)
        return true;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && name != NULL; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}
