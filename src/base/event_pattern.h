/* SPDX-License-Identifier: MIT */
/*
 * Patterns that select events by name. A pattern is a whole name or a glob ('*', '?'), never a
 * substring: "Thread/Start" must not select "ThreadPoolWorkerThread/Start". ASCII letters are
 * compared without case.
 */
#ifndef EW_BASE_EVENT_PATTERN_H
#define EW_BASE_EVENT_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

/* The whole name of the provider, or its GUID in the usual form, with or without braces. guid: 16
 * bytes as on disk, or NULL. */
bool ew_pattern_provider(const char *pattern, const char *provider, const uint8_t *guid);
/* The whole name ("Thread/CSwitch"), or what stands before or after its slash. */
bool ew_pattern_event(const char *pattern, const char *event);

#endif
