/* SPDX-License-Identifier: MIT */
/* Pure functions. */
#include "base/event_pattern.h"

#include <stddef.h>
#include <string.h>

enum { GUID_LEN = 36 };

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/* The last star is extended until the rest matches; earlier stars need not be retried, so this
 * takes at most len(pattern) * len steps. */
static bool matches(const char *pattern, const char *name, size_t len)
{
    const char *end = name + len, *star = NULL, *from = NULL;
    while (name < end) {
        if (*pattern == '*') {
            star = pattern++;
            from = name;
        } else if (*pattern == '?' || (*pattern != '\0' && lower(*pattern) == lower(*name))) {
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

static bool is_guid(const char *word, const uint8_t guid[16])
{
    static const uint8_t order[16] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
    static const char digits[] = "0123456789abcdef";
    char text[GUID_LEN + 1], *at = text;
    for (size_t i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *at++ = '-';
        *at++ = digits[guid[order[i]] >> 4];
        *at++ = digits[guid[order[i]] & 15];
    }
    *at = '\0';
    bool braces = word[0] == '{';
    size_t len = strlen(word);
    if (braces && (len != GUID_LEN + 2 || word[len - 1] != '}'))
        return false;
    return len - (braces ? 2 : 0) == GUID_LEN && matches(text, word + braces, GUID_LEN);
}

bool ew_pattern_provider(const char *pattern, const char *provider, const uint8_t *guid)
{
    return matches(pattern, provider, strlen(provider)) || (guid != NULL && is_guid(pattern, guid));
}

bool ew_pattern_event(const char *pattern, const char *event)
{
    const char *slash = strchr(event, '/');
    if (matches(pattern, event, strlen(event)))
        return true;
    return slash != NULL && (matches(pattern, event, (size_t)(slash - event)) ||
                             matches(pattern, slash + 1, strlen(slash + 1)));
}
