/* SPDX-License-Identifier: MIT */
/* Which events were asked for, by parts of the names of their provider and their own. */
#ifndef EW_EXPORT_EVENT_NAME_FILTER_H
#define EW_EXPORT_EVENT_NAME_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include <etwatch/arrow.h>

struct ew_event_name_filter {
    char **providers, **events; /* lower case */
    uint32_t provider_count, event_count;
};

/* Takes copies. 0, ETWATCH_EINVAL (a list or a word is NULL) or ETWATCH_ENOMEM. */
int ew_event_name_filter_init(struct ew_event_name_filter *names,
                              const struct etwatch_table_options *options);
void ew_event_name_filter_done(struct ew_event_name_filter *names);
/* guid: 16 bytes as on disk, or NULL. */
bool ew_event_name_filter_match(const struct ew_event_name_filter *names, const char *provider,
                                const uint8_t *guid, const char *event);

#endif
