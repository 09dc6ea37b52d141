/* SPDX-License-Identifier: MIT */
/* The two encodings: UTF-16 of Windows, UTF-8 of everything of ours; and error codes as errno. */
#ifndef EW_OS_WINDOWS_TEXT_H
#define EW_OS_WINDOWS_TEXT_H

#include <stddef.h>
#include <wchar.h>

/* NULL if text is not valid UTF-8 or memory is out. ew_free frees it. */
wchar_t *ew_wide_from_utf8(const char *text);
/* Converts units of UTF-16 and terminates; what does not fit is left out. Returns the length. */
size_t ew_utf8_from_wide(const wchar_t *text, size_t units, char *buffer, size_t size);
/* The errno that says the same as this code of GetLastError, so that strerror has words for it. */
int ew_errno_from_windows(unsigned long code);

#endif
