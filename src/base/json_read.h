/* SPDX-License-Identifier: MIT */
/*
 * Reads JSON of others from a bounded cursor, value by value. Nothing is allocated and nothing is
 * recursive; the first error is kept in the cursor, as everywhere. An object or array:
 *
 *   for (bool more = ew_jsonin_first(in, '{'); more; more = ew_jsonin_next(in, '}')) {
 *       ew_jsonin_key(in, key, sizeof key);
 *       ... read or skip the value ...
 *   }
 */
#ifndef EW_BASE_JSON_READ_H
#define EW_BASE_JSON_READ_H

#include "base/bytes.h"

enum { EW_JSON_DEPTH_MAX = 64 };

/* The first byte of the next value ('{', '[', '"', 't', 'f', 'n', '-' or a digit); 0: there is none
 * or the cursor has failed. */
char ew_jsonin_peek(struct ew_bytes *in);

/* Enters an object or array; whether it has an item. */
bool ew_jsonin_first(struct ew_bytes *in, char open);
/* After an item: whether another one follows. Also false after an error. */
bool ew_jsonin_next(struct ew_bytes *in, char close);

/* A string with its escapes decoded, cut to the buffer at a character, terminated. Returns the
 * number of bytes kept; a byte of 0 in it becomes '?'. */
size_t ew_jsonin_text(struct ew_bytes *in, char *text, size_t size);
/* The name of a member and its colon. */
void ew_jsonin_key(struct ew_bytes *in, char *key, size_t size);
/* A number. Integers up to 2^53 are exact. */
double ew_jsonin_number(struct ew_bytes *in);
/* An integer of 64 bits, not negative; a number with a fraction or a sign is an error. */
uint64_t ew_jsonin_u64(struct ew_bytes *in);
/* true or false. */
bool ew_jsonin_bool(struct ew_bytes *in);
/* Any value, of a depth up to EW_JSON_DEPTH_MAX. */
void ew_jsonin_skip(struct ew_bytes *in);

#endif
