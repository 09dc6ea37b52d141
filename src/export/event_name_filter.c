/* SPDX-License-Identifier: MIT */
/* Owns copies of the patterns. Filters are few, and their names are matched once per kind of kernel
 * event. */
#include "export/export.h"

#include <string.h>

#include "base/alloc.h"
#include "base/event_pattern.h"
#include "base/sized.h"

enum { FILTERS_MAX = 256, NUMBERS_MAX = 65536 };

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

/* A copy of a list of numbers. */
static int copy_numbers(const void *list, uint32_t count, size_t each, void *ret_copy)
{
    if (count == 0)
        return 0;
    if (list == NULL || count > NUMBERS_MAX)
        return ETWATCH_EINVAL;
    void *copy = ew_calloc(count, each);
    if (copy == NULL)
        return ETWATCH_ENOMEM;
    memcpy(copy, list, count * each);
    memcpy(ret_copy, &copy, sizeof copy);
    return 0;
}

static int copy_filter(const struct etwatch_event_filter *from, struct ew_event_filter *to)
{
    static const uint32_t known =
        ETWATCH_FILTER_EXCLUDE | ETWATCH_FILTER_FIRST_THREADS | ETWATCH_FILTER_OTHER_THREADS;
    if ((from->flags & ~known) != 0)
        return ETWATCH_EINVAL;
    to->flags = from->flags;
    if (from->provider != NULL && (to->provider = ew_strdup(from->provider)) == NULL)
        return ETWATCH_ENOMEM;
    int rc = copy_words(from->events, from->event_count, &to->events, &to->event_count);
    if (rc == 0)
        rc = copy_numbers(from->pids, from->pid_count, sizeof *from->pids, &to->pids);
    if (rc == 0)
        rc = copy_numbers(from->ids, from->id_count, sizeof *from->ids, &to->ids);
    to->pid_count = to->pids != NULL ? from->pid_count : 0;
    to->id_count = to->ids != NULL ? from->id_count : 0;
    return rc;
}

static int copy_filters(struct ew_event_name_filter *names,
                        const struct etwatch_table_options *options)
{
    if (options->filter_count == 0)
        return 0;
    if (options->filters == NULL || options->filter_count > FILTERS_MAX)
        return ETWATCH_EINVAL;
    uint32_t stride = options->filters->size;
    names->filters = ew_calloc(options->filter_count, sizeof *names->filters);
    if (names->filters == NULL)
        return ETWATCH_ENOMEM;
    int rc = 0;
    for (uint32_t i = 0; i < options->filter_count && rc == 0; i++) {
        struct etwatch_event_filter given = {.size = sizeof given};
        const unsigned char *at = (const unsigned char *)options->filters + (size_t)i * stride;
        struct ew_error why = {0};
        rc = ew_sized_in(&given, sizeof given, at, "event filter", &why);
        if (rc == 0)
            rc = copy_filter(&given, &names->filters[names->filter_count++]);
        names->includes = names->includes || (given.flags & ETWATCH_FILTER_EXCLUDE) == 0;
    }
    return rc;
}

int ew_export_name_filter_init(struct ew_event_name_filter *names,
                               const struct etwatch_table_options *options)
{
    memset(names, 0, sizeof *names);
    int rc = copy_words(options->providers, options->provider_count, &names->providers,
                        &names->provider_count);
    if (rc == 0)
        rc = copy_words(options->events, options->event_count, &names->events, &names->event_count);
    if (rc == 0)
        rc = copy_filters(names, options);
    if (rc == 0)
        rc = ew_selection_init(&names->processes, options->pids, options->pid_count, options->names,
                               options->name_count);
    return rc;
}

static void free_words(char **words, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        ew_free(words[i]);
    ew_free(words);
}

void ew_export_name_filter_done(struct ew_event_name_filter *names)
{
    free_words(names->providers, names->provider_count);
    free_words(names->events, names->event_count);
    for (uint32_t i = 0; i < names->filter_count; i++) {
        struct ew_event_filter *filter = &names->filters[i];
        free_words(filter->events, filter->event_count);
        ew_free(filter->provider);
        ew_free(filter->pids);
        ew_free(filter->ids);
    }
    ew_free(names->filters);
    ew_selection_done(&names->processes);
    memset(names, 0, sizeof *names);
}

/* ------------------------------------------------------------------------ matching */

static bool any_event(char *const *events, uint32_t count, const char *event)
{
    bool found = count == 0;
    for (uint32_t i = 0; i < count && !found; i++)
        found = ew_pattern_event(events[i], event);
    return found;
}

/* By the lists of providers and events. */
static bool is_listed(const struct ew_event_name_filter *names, const struct ew_event_key *key)
{
    bool wanted = names->provider_count == 0;
    for (uint32_t i = 0; i < names->provider_count && !wanted; i++)
        wanted = ew_pattern_provider(names->providers[i], key->provider, key->guid);
    return wanted && any_event(names->events, names->event_count, key->event);
}

static bool is_named(const struct ew_event_filter *filter, const struct ew_event_key *key)
{
    return (filter->provider == NULL ||
            ew_pattern_provider(filter->provider, key->provider, key->guid)) &&
           any_event(filter->events, filter->event_count, key->event);
}

static bool has_conditions(const struct ew_event_filter *filter)
{
    return filter->pid_count + filter->id_count > 0 ||
           (filter->flags & ~(uint32_t)ETWATCH_FILTER_EXCLUDE) != 0;
}

static bool is_about_thread(const char *event)
{
    return strcmp(event, "task_newtask") == 0 || strcmp(event, "sched_process_exit") == 0;
}

static bool meets_conditions(const struct ew_event_filter *filter, const struct ew_event_key *key)
{
    bool first = (key->flags & ETWATCH_TRACE_FIRST_THREAD) != 0;
    bool met = filter->pid_count == 0;
    for (uint32_t i = 0; i < filter->pid_count && !met; i++)
        met = key->pid != EW_NO_ID && filter->pids[i] == key->pid;
    bool has_id = filter->id_count == 0;
    for (uint32_t i = 0; i < filter->id_count && !has_id; i++)
        has_id = filter->ids[i] == key->id;
    if ((filter->flags & ETWATCH_FILTER_FIRST_THREADS) != 0)
        met = met && is_about_thread(key->event) && first;
    if ((filter->flags & ETWATCH_FILTER_OTHER_THREADS) != 0)
        met = met && is_about_thread(key->event) && !first;
    return met && has_id;
}

enum ew_event_verdict ew_export_name_filter_kind(const struct ew_event_name_filter *names,
                                                 const struct ew_event_key *key)
{
    enum ew_event_verdict in = names->includes ? EW_EVENTS_NONE : EW_EVENTS_ALL;
    bool some_out = false;
    if (!is_listed(names, key))
        return EW_EVENTS_NONE;
    for (uint32_t i = 0; i < names->filter_count; i++) {
        const struct ew_event_filter *filter = &names->filters[i];
        if (!is_named(filter, key))
            continue;
        bool some = has_conditions(filter);
        if ((filter->flags & ETWATCH_FILTER_EXCLUDE) == 0)
            in = some && in != EW_EVENTS_ALL ? EW_EVENTS_SOME : EW_EVENTS_ALL;
        else if (!some)
            return EW_EVENTS_NONE;
        else
            some_out = true;
    }
    return in == EW_EVENTS_ALL && some_out ? EW_EVENTS_SOME : in;
}

bool ew_export_name_filter_match(const struct ew_event_name_filter *names,
                                 const struct ew_event_key *key)
{
    bool in = !names->includes;
    if (!is_listed(names, key))
        return false;
    for (uint32_t i = 0; i < names->filter_count; i++) {
        const struct ew_event_filter *filter = &names->filters[i];
        if (!is_named(filter, key) || !meets_conditions(filter, key))
            continue;
        if ((filter->flags & ETWATCH_FILTER_EXCLUDE) != 0)
            return false;
        in = true;
    }
    return in;
}

bool ew_export_name_filter_event(const struct ew_event_name_filter *names,
                                 const struct etwatch_trace_event *event)
{
    struct ew_event_key key = {
        .provider = event->provider,
        .event = event->event,
        .guid = event->provider_guid,
        .pid = (event->flags & ETWATCH_TRACE_HAS_PID) != 0 ? event->pid : EW_NO_ID,
        .id = event->id,
        .flags = event->flags,
    };
    return ew_export_name_filter_match(names, &key) &&
           ew_export_name_filter_process(names, key.pid, event->process);
}
