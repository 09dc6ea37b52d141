/* SPDX-License-Identifier: MIT */
/* Owns copies of the patterns. */
#include "export/export.h"

#include <string.h>

#include "base/alloc.h"
#include "base/event_pattern.h"

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

bool ew_export_name_filter_match(const struct ew_event_name_filter *names, const char *provider,
                                 const uint8_t *guid, const char *event)
{
    bool wanted = names->provider_count == 0;
    for (uint32_t i = 0; i < names->provider_count && !wanted; i++)
        wanted = ew_pattern_provider(names->providers[i], provider, guid);
    if (!wanted || names->event_count == 0)
        return wanted;
    for (uint32_t i = 0; i < names->event_count; i++)
        if (ew_pattern_event(names->events[i], event))
            return true;
    return false;
}
