/* SPDX-License-Identifier: MIT */
/* How a program's name is asked for: one rule for the command line, polling and eBPF. */
#ifndef EW_MODEL_NAME_H
#define EW_MODEL_NAME_H

#include <stdbool.h>
#include <stdint.h>

/* Linux keeps this many bytes of a name. */
#define EW_NAME_CUT_LEN 15

/*
 * Whether name is the program that pattern asks for: the same, or the pattern followed by '.', '-'
 * or a digit. "python" asks for python, python3.11 and python.exe, not for pythonista. A name as
 * long as Linux keeps is taken for the start of a longer pattern. An empty pattern asks for none.
 *
 * With '*' (any bytes) or '?' (any one) in it, a pattern asks for the whole name as it stands.
 */
bool ew_name_matches(const char *pattern, const char *name);
/* Whether it has one of the two in it. */
bool ew_name_is_glob(const char *pattern);
/* Whether this is one of Windows' own: the ids 0 and 4, System, Idle, Registry. name may be NULL.
 */
bool ew_name_is_windows_system(uint32_t pid, const char *name);

#endif
