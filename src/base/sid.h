/* SPDX-License-Identifier: MIT */
/* The security identifiers of users of Windows, as text: S-1-5-18. */
#ifndef EW_BASE_SID_H
#define EW_BASE_SID_H

#include <stddef.h>
#include <stdint.h>

enum { EW_SID_SIZE = 192 }; /* the longest text, with its terminator */

/* Returns the length of the text, 0 if the bytes are not a SID. */
size_t ew_sid_text(char to[EW_SID_SIZE], const uint8_t *sid, size_t size);
/* The name of a user that exists on every Windows, otherwise the text itself. */
const char *ew_sid_name(const char *text);

#endif
