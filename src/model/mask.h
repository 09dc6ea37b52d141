/* SPDX-License-Identifier: MIT */
/* Command lines without the secrets that people put into them. */
#ifndef EW_MODEL_MASK_H
#define EW_MODEL_MASK_H

#include <stddef.h>

#define EW_MASK_TEXT "***"

/*
 * Writes the arguments (each ends in NUL; a last one that does not was cut) into buffer, joined by
 * blanks, with what looks like a secret replaced by EW_MASK_TEXT. Always terminated if size > 0; a
 * line that does not fit is cut. Returns the length written.
 *
 * Masked are the values of options, assignments, headers and fields whose name speaks of a secret
 * (--password=x, --token x, API_KEY=x, "Authorization: Bearer x", {"secret": "x"}), also inside one
 * argument, as in sh -c; credentials in URLs; user:password after -u; the password options of a few
 * programs that have short ones (mysql -px); and tokens known by their shape (AKIA…, ghp_…, JWT).
 * Where it is not clear whether something is a secret, it is taken for one.
 */
size_t ew_mask_cmdline(const char *args, size_t len, char *buffer, size_t size);

#endif
