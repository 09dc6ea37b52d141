/* SPDX-License-Identifier: MIT */
/* UTF-16LE as Windows writes it: unaligned, often not terminated, not always valid. */
#ifndef EW_BASE_UTF16_H
#define EW_BASE_UTF16_H

#include <stddef.h>
#include <stdint.h>

/* Upper bound of the UTF-8 length of len bytes of UTF-16, without a terminator. */
#define EW_UTF16_UTF8_MAX(len) ((len) / 2 * 3)

/* Bytes before the first NUL unit; all whole units if there is none. len is in bytes. */
size_t ew_utf16_len(const uint8_t *bytes, size_t len);

/*
 * Converts and terminates; size > 0. Returns the length without the terminator. Truncates to size,
 * between characters. An unpaired surrogate becomes U+FFFD, a single byte at the end is ignored, an
 * embedded NUL is kept.
 */
size_t ew_utf16_to_utf8(const uint8_t *bytes, size_t len, char *buffer, size_t size);

#endif
