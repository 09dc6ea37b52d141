/* SPDX-License-Identifier: MIT */
/* UTF-8 that may be anything: process names are bytes of the user's choosing. */
#ifndef EW_BASE_UTF8_H
#define EW_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EW_UTF8_INVALID 0xFFFFFFFFu

/* Decodes one character of at least one byte. Returns the bytes it takes; for an invalid one 1,
 * and *ret_code is EW_UTF8_INVALID. Overlong forms and surrogates are invalid. */
size_t ew_utf8_decode(const char *text, size_t len, uint32_t *ret_code);
/* Is every character valid? */
bool ew_utf8_is_valid(const char *text, size_t len);
/* Screen columns of a character: 0 for combining marks, 2 for wide East Asian ones, else 1. */
unsigned ew_utf8_columns(uint32_t code);

#endif
