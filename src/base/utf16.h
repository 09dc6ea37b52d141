/* SPDX-License-Identifier: MIT */
/* UTF-16LE as Windows writes it: unaligned, often not terminated, not always valid. */
#ifndef EW_BASE_UTF16_H
#define EW_BASE_UTF16_H

#include <stddef.h>
#include <stdint.h>

/* The most UTF-8 that so many bytes of UTF-16 can become, without a terminator. */
#define EW_UTF16_UTF8_MAX(len) ((len) / 2 * 3)

/* Bytes before the first NUL unit; all whole units if there is none. len in bytes. */
size_t ew_utf16_len(const uint8_t *bytes, size_t len);

/*
 * Converts and terminates; size > 0. Returns the length without the terminator. What does not fit
 * is left out, at a whole character. A surrogate without its other half becomes U+FFFD, a single
 * byte at the end is ignored, a NUL inside stays one.
 */
size_t ew_utf16_to_utf8(const uint8_t *bytes, size_t len, char *buffer, size_t size);

#endif
