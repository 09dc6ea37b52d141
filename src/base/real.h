/* SPDX-License-Identifier: MIT */
/* Formats arbitrary floating-point numbers from untrusted input. */
#ifndef EW_BASE_REAL_H
#define EW_BASE_REAL_H

#include <stdbool.h>

enum { EW_REAL_LEN = 32 };

/*
 * Writes the shortest decimal form that reads back as the same value (of single precision if
 * `single`), with a '.' in every locale, and terminates it. Returns the new end; NULL, and
 * nothing written, if the value is not finite. at has room for EW_REAL_LEN bytes.
 */
char *ew_raw_real(char *at, double value, bool single);

#endif
