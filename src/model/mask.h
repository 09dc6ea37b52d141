/* SPDX-License-Identifier: MIT */
/* Masks secrets in command lines. */
#ifndef EW_MODEL_MASK_H
#define EW_MODEL_MASK_H

#include <stddef.h>

#define EW_MASK_TEXT "***"

/*
 * Writes the arguments (each ends in NUL; a last one that does not was truncated) into buffer,
 * joined by spaces, with everything that looks like a secret replaced by EW_MASK_TEXT. Always
 * terminated if size > 0; a line that does not fit is truncated. Returns the length written.
 *
 * Masked are: values of options, assignments, headers and fields with a name that suggests a secret
 * (--password=x, --token x, API_KEY=x, "Authorization: Bearer x", {"secret": "x"}), also inside one
 * argument, as in sh -c; credentials in URLs; user:password after -u; the short password options of
 * a few programs (mysql -px); and tokens with a known shape (AKIA…, ghp_…, JWT). In doubt, a value
 * is masked.
 */
size_t ew_mask_cmdline(const char *args, size_t len, char *buffer, size_t size);

#endif
