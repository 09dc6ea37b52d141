/* SPDX-License-Identifier: MIT */
/* Conversion between UTF-16 (Windows) and UTF-8 (etwatch), and of error codes to errno. */
#ifndef EW_OS_WINDOWS_TEXT_H
#define EW_OS_WINDOWS_TEXT_H

#include <stddef.h>
#include <wchar.h>

/* NULL if text is not valid UTF-8 or memory is exhausted. Free with ew_free. */
wchar_t *ew_wide_from_utf8(const char *text);
/* The same for the path of a file, in the form that may have more than 260 characters if it has,
 * also where the machine is not set up for that. */
wchar_t *ew_wide_path(const char *path);
/* Converts UTF-16 units and terminates; truncates to size. Returns the length. */
size_t ew_wide_to_utf8(const wchar_t *text, size_t units, char *buffer, size_t size);
/* The errno equivalent of a GetLastError code, so that strerror can describe it. */
int ew_errno_from_windows(unsigned long code);

#endif
