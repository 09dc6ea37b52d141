/* SPDX-License-Identifier: MIT */
/* GUIDs: 16 bytes as on disk; the first three parts are little-endian. */
#ifndef EW_DECODE_GUID_H
#define EW_DECODE_GUID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EW_GUID_TEXT = 37 }; /* with the terminator */

/* "22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716", lower case, terminated. */
void ew_guid_text(const uint8_t guid[16], char ret_text[EW_GUID_TEXT]);
/* Either case, with or without braces; false if it is not a GUID. */
bool ew_guid_parse(const char *text, size_t len, uint8_t ret_guid[16]);

#endif
