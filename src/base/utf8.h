/* SPDX-License-Identifier: MIT */
/* Decoding of untrusted UTF-8: process names are arbitrary bytes. */
#ifndef EW_BASE_UTF8_H
#define EW_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EW_UTF8_INVALID 0xFFFFFFFFu

/* Decodes one character; len must be at least 1. Returns its length in bytes; for an invalid one 1,
 * and *ret_code is EW_UTF8_INVALID. Overlong forms and surrogates are invalid. */
size_t ew_utf8_decode(const char *text, size_t len, uint32_t *ret_code);
/* Whether every character is valid. */
bool ew_utf8_is_valid(const char *text, size_t len);
/* Screen columns of a character: 0 for combining marks, 2 for wide East Asian ones, else 1. */
unsigned ew_utf8_columns(uint32_t code);

#endif
