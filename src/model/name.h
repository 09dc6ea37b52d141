/* SPDX-License-Identifier: MIT */
/* How programs are selected by name: one rule for the command line, polling and eBPF. */
#ifndef EW_MODEL_NAME_H
#define EW_MODEL_NAME_H

#include <stdbool.h>
#include <stdint.h>

/* Linux truncates process names to this many bytes. */
#define EW_NAME_CUT_LEN 15

/*
 * Whether a program name matches a pattern: it is equal, or the pattern followed by '.', '-' or a
 * digit. "python" matches python, python3.11 and python.exe, but not pythonista. A name of the
 * length to which Linux truncates also matches a longer pattern that starts with it. An empty
 * pattern matches nothing.
 *
 * A pattern with '*' (any bytes) or '?' (any one byte) must match the whole name.
 */
bool ew_name_matches(const char *pattern, const char *name);
/* Whether the pattern contains '*' or '?'. */
bool ew_name_is_glob(const char *pattern);
/* Whether this is a process of Windows itself: pid 0 or 4, or System, Idle, Registry. name may be
 * NULL. */
bool ew_name_is_windows_system(uint32_t pid, const char *name);

#endif
