/* SPDX-License-Identifier: MIT */
/* Chooses the unit by magnitude and the number of decimals so that three or four digits remain. */
#include "base/units.h"

/* Three significant digits: 1.23, 12.3, 123. */
static void three_digits(struct ew_buf *out, double value)
{
    unsigned decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    if (!ew_buf_fixed(out, value, decimals))
        ew_buf_char(out, '-');
}

void ew_units_bytes(struct ew_buf *out, uint64_t bytes)
{
    static const char *const units[] = {" B", " KB", " MB", " GB", " TB", " PB", " EB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 999.5 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024;
        unit++;
    }
    if (unit == 0)
        ew_buf_u64(out, bytes);
    else
        three_digits(out, value);
    ew_buf_text(out, units[unit]);
}

void ew_units_ns(struct ew_buf *out, uint64_t ns)
{
    double ms = (double)ns / 1e6;
    if (ns == 0) {
        ew_buf_text(out, "0 ms");
    } else if (ms < 0.9995) {
        (void)ew_buf_fixed(out, ms, 3);
        ew_buf_text(out, " ms");
    } else if (ms < 999.5) {
        three_digits(out, ms);
        ew_buf_text(out, " ms");
    } else {
        three_digits(out, ms / 1e3);
        ew_buf_text(out, " s");
    }
}

void ew_units_count(struct ew_buf *out, uint64_t count)
{
    if (count < 1000000) {
        ew_buf_u64(out, count);
    } else if (count < 1000000000) {
        three_digits(out, (double)count / 1e6);
        ew_buf_text(out, " M");
    } else {
        three_digits(out, (double)count / 1e9);
        ew_buf_text(out, " G");
    }
}

void ew_units_percent(struct ew_buf *out, double percent)
{
    if (percent < 0)
        ew_buf_char(out, '-');
    else
        three_digits(out, percent);
}

static void two_digits(struct ew_buf *out, uint64_t value)
{
    ew_buf_char(out, (char)('0' + value / 10 % 10));
    ew_buf_char(out, (char)('0' + value % 10));
}

/* Days since 1970 to a date, by eras of 400 years that start in March (the leap day comes last). */
static void put_second(struct ew_buf *out, uint64_t unix_ns)
{
    uint64_t seconds = unix_ns / 1000000000;
    uint64_t days = seconds / 86400 + 719468;
    uint64_t era_day = days % 146097;
    uint64_t era_year = (era_day - era_day / 1460 + era_day / 36524 - era_day / 146096) / 365;
    uint64_t year_day = era_day - (365 * era_year + era_year / 4 - era_year / 100);
    uint64_t shifted = (5 * year_day + 2) / 153;
    uint64_t month = shifted < 10 ? shifted + 3 : shifted - 9;
    ew_buf_u64(out, days / 146097 * 400 + era_year + (month <= 2));
    ew_buf_char(out, '-');
    two_digits(out, month);
    ew_buf_char(out, '-');
    two_digits(out, year_day - (153 * shifted + 2) / 5 + 1);
    ew_buf_char(out, ' ');
    two_digits(out, seconds / 3600 % 24);
    ew_buf_char(out, ':');
    two_digits(out, seconds / 60 % 60);
    ew_buf_char(out, ':');
    two_digits(out, seconds % 60);
}

/* Zones are less than a day apart from UTC; an offset that is not is ignored. */
void ew_units_time(struct ew_buf *out, uint64_t unix_ns, ew_utc_offset offset)
{
    int32_t seconds = offset != NULL ? offset(unix_ns) : 0;
    uint64_t shift_ns = (uint64_t)(seconds < 0 ? -(int64_t)seconds : seconds) * 1000000000;
    bool known = shift_ns < UINT64_C(86400) * 1000000000 && (seconds > 0 || shift_ns <= unix_ns);
    if (seconds == 0 || !known) {
        put_second(out, unix_ns);
        ew_buf_text(out, " UTC");
        return;
    }
    put_second(out, seconds < 0 ? unix_ns - shift_ns : unix_ns + shift_ns);
    ew_buf_text(out, seconds < 0 ? " -" : " +");
    two_digits(out, shift_ns / 3600 / 1000000000);
    ew_buf_char(out, ':');
    two_digits(out, shift_ns / 60 / 1000000000 % 60);
}

void ew_units_clock(struct ew_buf *out, uint64_t unix_ns)
{
    char digits[EW_U64_DIGITS];
    put_second(out, unix_ns);
    /* The leading one keeps the leading zeros. */
    (void)ew_raw_u64(digits, 1000000 + unix_ns / 1000 % 1000000);
    digits[0] = '.';
    ew_buf_bytes(out, digits, 7);
}
