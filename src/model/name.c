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
enum { FOLDED_SIZE = 512 };

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

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

/* Names of Windows are compared without case, on every system: recordings are read everywhere. */
static bool is_of_windows(const char *name)
{
    static const char suffix[] = ".exe";
    size_t len = strlen(name);
    if (len < sizeof suffix)
        return ew_name_is_windows_system(UINT32_MAX, name);
    for (size_t i = 0; suffix[i] != '\0'; i++)
        if (lower(name[len - 4 + i]) != suffix[i])
            return ew_name_is_windows_system(UINT32_MAX, name);
    return true;
}

/* False: longer than any name. */
static bool fold(const char *text, char folded[FOLDED_SIZE])
{
    size_t len = strlen(text);
    for (size_t i = 0; i <= len && len < FOLDED_SIZE; i++)
        folded[i] = lower(text[i]);
    return len < FOLDED_SIZE;
}

static bool matches(const char *pattern, const char *name)
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

bool ew_name_matches(const char *pattern, const char *name)
{
    char folded_pattern[FOLDED_SIZE], folded_name[FOLDED_SIZE];
    if (matches(pattern, name))
        return true;
    return is_of_windows(name) && fold(pattern, folded_pattern) && fold(name, folded_name) &&
           matches(folded_pattern, folded_name);
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
