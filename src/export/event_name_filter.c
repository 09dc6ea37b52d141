/* SPDX-License-Identifier: MIT */
/* Owns lower-case copies of the patterns; only ASCII letters are folded. */
#include "export/export.h"

#include <string.h>

#include "base/alloc.h"

enum { GUID_LEN = 36 };

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static int copy_words(const char *const *names, uint32_t count, char ***ret_words,
                      uint32_t *ret_count)
{
    if (count == 0)
        return 0;
    if (names == NULL)
        return ETWATCH_EINVAL;
    char **copies = ew_calloc(count, sizeof *copies);
    if (copies == NULL)
        return ETWATCH_ENOMEM;
    *ret_words = copies;
    for (uint32_t i = 0; i < count; i++) {
        if (names[i] == NULL)
            return ETWATCH_EINVAL;
        copies[i] = ew_strdup(names[i]);
        if (copies[i] == NULL)
            return ETWATCH_ENOMEM;
        ++*ret_count;
        for (char *at = copies[i]; *at != '\0'; at++)
            *at = lower(*at);
    }
    return 0;
}

int ew_export_name_filter_init(struct ew_event_name_filter *names,
                               const struct etwatch_table_options *options)
{
    memset(names, 0, sizeof *names);
    int rc = copy_words(options->providers, options->provider_count, &names->providers,
                        &names->provider_count);
    if (rc == 0)
        rc = copy_words(options->events, options->event_count, &names->events, &names->event_count);
    return rc;
}

void ew_export_name_filter_done(struct ew_event_name_filter *names)
{
    for (uint32_t i = 0; i < names->provider_count; i++)
        ew_free(names->providers[i]);
    for (uint32_t i = 0; i < names->event_count; i++)
        ew_free(names->events[i]);
    ew_free(names->providers);
    ew_free(names->events);
    memset(names, 0, sizeof *names);
}

static bool has_part(const char *text, const char *part)
{
    for (; *text != '\0'; text++) {
        size_t i = 0;
        while (part[i] != '\0' && lower(text[i]) == part[i])
            i++;
        if (part[i] == '\0')
            return true;
    }
    return part[0] == '\0';
}

/* Compares with the usual text form of a GUID, with or without braces. */
static bool is_guid(const char *word, const uint8_t guid[16])
{
    static const uint8_t order[16] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
    static const char digits[] = "0123456789abcdef";
    char text[GUID_LEN], *at = text;
    for (size_t i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *at++ = '-';
        *at++ = digits[guid[order[i]] >> 4];
        *at++ = digits[guid[order[i]] & 15];
    }
    word += word[0] == '{';
    return strlen(word) >= GUID_LEN && memcmp(word, text, GUID_LEN) == 0;
}

bool ew_export_name_filter_match(const struct ew_event_name_filter *names, const char *provider,
                                 const uint8_t *guid, const char *event)
{
    bool wanted = names->provider_count == 0;
    for (uint32_t i = 0; i < names->provider_count && !wanted; i++)
        wanted = has_part(provider, names->providers[i]) ||
                 (guid != NULL && is_guid(names->providers[i], guid));
    if (!wanted || names->event_count == 0)
        return wanted;
    for (uint32_t i = 0; i < names->event_count; i++)
        if (has_part(event, names->events[i]))
            return true;
    return false;
}
