/* SPDX-License-Identifier: MIT */
/*
 * Uses the C library for the digits; the shortest sufficient form is found by reading it back,
 * starting with the fewest digits that can be enough. The decimal separator of the locale is
 * replaced.
 */
#include "base/real.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reads_back(const char *text, double value, bool single)
{
    return single ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value;
}

char *ew_raw_real(char *at, double value, bool single)
{
    int most = single ? 9 : 17;
    int len = 0;
    if (!isfinite(value))
        return NULL;
    for (int digits = single ? 6 : 15; digits <= most; digits++) {
        len = snprintf(at, EW_REAL_LEN, "%.*g", digits, value);
        if (len <= 0 || len >= EW_REAL_LEN)
            return NULL;
        if (reads_back(at, value, single))
            break;
    }
    char *to = at;
    for (const char *from = at; *from != '\0'; from++) {
        if (strchr("0123456789+-e", *from) != NULL)
            *to++ = *from;
        else if (to == at || to[-1] != '.')
            *to++ = '.'; /* some separators are more than one byte */
    }
    *to = '\0';
    return to;
}
