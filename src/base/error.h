/* SPDX-License-Identifier: MIT */
/* The error of a call: a code, one line that says what failed and where, and one that says how to
 * fix it. */
#ifndef EW_BASE_ERROR_H
#define EW_BASE_ERROR_H

#include <stdint.h>

#include <etwatch/etwatch.h>

struct ew_error {
    int code; /* ETWATCH_E* */
    int64_t os_code;
    uint64_t offset;
    char message[256];
    char fix[256];
};

/* Formats are those of C11, even where the system's C library defaults to others. */
#if defined(__clang__)
#define EW_PRINTF(f, a) __attribute__((format(printf, f, a)))
#elif defined(__GNUC__)
#define EW_PRINTF(f, a) __attribute__((format(gnu_printf, f, a)))
#else
#define EW_PRINTF(f, a)
#endif

/* Fills *err (may be NULL) and returns code, so that callers can write `return ew_error_set(…)`. */
int ew_error_set(struct ew_error *err, int code, int64_t os_code, const char *format, ...)
    EW_PRINTF(4, 5);
/* Adds the fix to an error already set. */
void ew_error_fix(struct ew_error *err, const char *format, ...) EW_PRINTF(2, 3);

/* Fills the caller's struct (may be NULL) with err, or with the text of rc if err has no message.
 */
void ew_error_out(struct etwatch_error_info *reterr, const struct ew_error *err, int rc);

#endif
