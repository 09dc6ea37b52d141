/* SPDX-License-Identifier: MIT */
/* The output buffer: numbers, escapes, limits, and that it writes out only whole lines. */
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <etwatch/etwatch.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "test.h"

/* The content of buf as a string. */
static const char *content(struct ew_buf *buf)
{
    ew_buf_char(buf, '\0');
    buf->len--;
    CHECK_EQ_INT(buf->error, 0);
    return buf->data;
}

TEST(integers_are_written_whole)
{
    static const struct {
        uint64_t value;
        const char *want;
    } rows[] = {
        {0, "0"},
        {9, "9"},
        {10, "10"},
        {99, "99"},
        {100, "100"},
        {1234567, "1234567"},
        {10000000000000000000u, "10000000000000000000"},
        {UINT64_MAX, "18446744073709551615"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ew_buf buf;
        ew_buf_init(&buf, 0, NULL, NULL);
        test_row(rows[i].want);
        ew_buf_u64(&buf, rows[i].value);
        CHECK_EQ_STR(content(&buf), rows[i].want);
        ew_buf_done(&buf);
    }
}

TEST(negative_integers_keep_their_sign)
{
    struct ew_buf buf;
    ew_buf_init(&buf, 0, NULL, NULL);
    ew_buf_i64(&buf, -1);
    ew_buf_char(&buf, ' ');
    ew_buf_i64(&buf, INT64_MIN);
    ew_buf_char(&buf, ' ');
    ew_buf_i64(&buf, INT64_MAX);
    CHECK_EQ_STR(content(&buf), "-1 -9223372036854775808 9223372036854775807");
    ew_buf_done(&buf);
}

TEST(doubles_have_fixed_decimals_and_no_exponent)
{
    static const struct {
        double value;
        unsigned decimals;
        const char *want;
    } rows[] = {
        {0.0, 3, "0.000"},
        {-0.0, 3, "0.000"},
        {0.0005, 3, "0.001"},
        {0.0004999, 3, "0.000"},
        {-0.0004, 3, "0.000"},
        {-1.5, 1, "-1.5"},
        {1.05, 3, "1.050"},
        {99.9996, 3, "100.000"},
        {12.345678, 3, "12.346"},
        {1e-300, 3, "0.000"},
        {123456789012.5, 1, "123456789012.5"},
        {2.5, 0, "3"},
        {1e15, 3, "1000000000000000.000"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ew_buf buf;
        ew_buf_init(&buf, 0, NULL, NULL);
        test_row(rows[i].want);
        CHECK(ew_buf_fixed(&buf, rows[i].value, rows[i].decimals));
        CHECK_EQ_STR(content(&buf), rows[i].want);
        ew_buf_done(&buf);
    }
}

TEST(nan_and_infinity_are_refused_and_write_nothing)
{
    static const double values[] = {NAN, INFINITY, -INFINITY, 1e17, -1e300, DBL_MAX};
    struct ew_buf buf;
    ew_buf_init(&buf, 0, NULL, NULL);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        CHECK(!ew_buf_fixed(&buf, values[i], 3));
    CHECK(!ew_buf_fixed(&buf, 1.0, 10));
    CHECK_EQ_UINT(buf.len, 0);
    ew_buf_done(&buf);
}

TEST(numbers_do_not_depend_on_the_locale)
{
    static const char *const locales[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE"};
    bool set = false;
    for (size_t i = 0; i < 3 && !set; i++)
        set = setlocale(LC_ALL, locales[i]) != NULL;
    if (!set)
        SKIP("no locale with a decimal comma is installed");
    struct ew_buf buf;
    ew_buf_init(&buf, 0, NULL, NULL);
    bool ok = ew_buf_fixed(&buf, 1234.5, 2);
    (void)setlocale(LC_ALL, "C");
    CHECK(ok);
    CHECK_EQ_STR(content(&buf), "1234.50");
    ew_buf_done(&buf);
}

struct text_row {
    const char *text;
    const char *want;
    const char *remark;
};

static void check_texts(void (*append)(struct ew_buf *, const char *, size_t),
                        const struct text_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct ew_buf buf;
        ew_buf_init(&buf, 0, NULL, NULL);
        test_row(rows[i].remark);
        append(&buf, rows[i].text, strlen(rows[i].text));
        CHECK_EQ_STR(content(&buf), rows[i].want);
        ew_buf_done(&buf);
    }
}

#define BAD "\xEF\xBF\xBD"

TEST(json_strings_are_escaped)
{
    static const struct text_row rows[] = {
        {"", "\"\"", "empty"},
        {"plain", "\"plain\"", "nothing to do"},
        {"a\"b\\c/", "\"a\\\"b\\\\c/\"", "quote, backslash; the slash stays"},
        {"\b\f\n\r\t", "\"\\b\\f\\n\\r\\t\"", "short escapes"},
        {"\x01\x1f\x7f", "\"\\u0001\\u001f\\u007f\"", "other control characters"},
        {"caf\xC3\xA9", "\"caf\xC3\xA9\"", "two bytes"},
        {"\xE2\x82\xAC\xF0\x9F\x98\x80", "\"\xE2\x82\xAC\xF0\x9F\x98\x80\"",
         "three and four bytes"},
        {"\xC2\x85\xE2\x80\xA8\xE2\x80\xA9", "\"\\u0085\\u2028\\u2029\"",
         "line ends in some programs"},
        {"\xC2\x80\xC2\x9B\xC2\x9F\xC2\xA0", "\"\\u0080\\u009b\\u009f\xC2\xA0\"",
         "C1 controls, to the last one"},
        {"\xE2\x80\xAA\xE2\x80\xAE\xE2\x81\xA6\xE2\x81\xA9", "\"\\u202a\\u202e\\u2066\\u2069\"",
         "overrides and isolates of direction"},
        {"\xE2\x80\x8E\xE2\x80\x8F\xD8\x9C", "\"\\u200e\\u200f\\u061c\"", "marks of direction"},
        {"\xE2\x80\x8D\xE2\x80\xAF\xE2\x81\xA5\xE2\x81\xAA",
         "\"\xE2\x80\x8D\xE2\x80\xAF\xE2\x81\xA5\xE2\x81\xAA\"", "their neighbours stay"},
        {"a\xFFz", "\"a" BAD "z\"", "a byte that UTF-8 never uses"},
        {"\xC3", "\"" BAD "\"", "cut at the end"},
        {"\xE2\x82", "\"" BAD BAD "\"", "cut after two of three"},
        {"\xE2\x82z", "\"" BAD BAD "z\"", "cut in the middle"},
        {"\xC0\x80", "\"" BAD BAD "\"", "overlong NUL"},
        {"\xE0\x80\xAF", "\"" BAD BAD BAD "\"", "overlong slash"},
        {"\xED\xA0\x80", "\"" BAD BAD BAD "\"", "surrogate"},
        {"\xF4\x90\x80\x80", "\"" BAD BAD BAD BAD "\"", "beyond U+10FFFF"},
    };
    check_texts(ew_buf_json_string, rows, sizeof rows / sizeof rows[0]);
}

TEST(a_nul_inside_a_json_string_is_escaped)
{
    struct ew_buf buf;
    ew_buf_init(&buf, 0, NULL, NULL);
    ew_buf_json_string(&buf, "a\0b", 3);
    CHECK_EQ_STR(content(&buf), "\"a\\u0000b\"");
    ew_buf_done(&buf);
}

TEST(csv_fields_are_quoted_only_when_necessary)
{
    static const struct text_row rows[] = {
        {"plain", "plain", "nothing to do"},
        {"", "\"\"", "an empty text is not an unknown one"},
        {"a b", "a b", "a space inside"},
        {" a", "\" a\"", "a space in front"},
        {"a ", "\"a \"", "a space behind"},
        {"a,b", "\"a,b\"", "the separator"},
        {"say \"hi\"", "\"say \"\"hi\"\"\"", "quotes are doubled"},
        {"a\nb", "\"a\nb\"", "a line end"},
        {"a\tb", "a\tb", "a tab inside"},
        {"caf\xC3\xA9", "caf\xC3\xA9", "UTF-8 stays"},
        {"a\xFF", "a" BAD, "invalid UTF-8"},
    };
    check_texts(ew_buf_csv_field, rows, sizeof rows / sizeof rows[0]);
}

/* Fields are examined in blocks of eight bytes. */
TEST(csv_fields_of_every_length_are_examined_whole)
{
    static const struct {
        char byte;
        const char *quote, *want; /* around the field, and instead of the byte */
    } rows[] = {{',', "\"", ","},      {'"', "\"", "\"\""},   {'\n', "\"", "\n"},
                {'\033', "", "\\x1b"}, {'\x7f', "", "\\x7f"}, {'z', "", "z"}};
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        for (size_t len = 1; len <= 33; len++) {
            for (size_t at = 0; at < len; at++) {
                char text[40], want[80];
                struct ew_buf buf;
                memset(text, 'K', sizeof text);
                text[at] = rows[r].byte;
                (void)snprintf(want, sizeof want, "%s%.*s%s%.*s%s", rows[r].quote, (int)at,
                               "KKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKK", rows[r].want,
                               (int)(len - at - 1), "KKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKK",
                               rows[r].quote);
                ew_buf_init(&buf, 0, NULL, NULL);
                ew_buf_csv_field(&buf, text, len);
                CHECK_EQ_STR(content(&buf), want);
                ew_buf_done(&buf);
            }
        }
    }
}

TEST(csv_fields_contain_no_controls_and_no_formulas)
{
    static const struct text_row rows[] = {
        {"a\033[31mb\a", "a\\x1b[31mb\\x07", "ESC and BEL"},
        {"a\nb\r", "\"a\nb\\x0d\"", "a carriage return overwrites the line"},
        {"a\x7F\xC2\x9B", "a\\x7f\\x9b", "DEL and a C1 control"},
        {"a\xE2\x80\xAEz", "a\\u202ez", "a right-to-left override"},
        {"=1+2", "'=1+2", "a formula"},
        {"+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0", "a formula that starts a program"},
        {"@SUM(1,2)", "\"'@SUM(1,2)\"", "a formula in quotes"},
        {"-bash", "'-bash", "a login shell, which looks like a formula"},
        {"-2+3", "'-2+3", "a formula of numbers"},
        {"-.5", "'-.5", "not written like a number"},
        {"\t=1", "'\t=1", "a tab before a formula"},
        {"-5", "-5", "a negative number"},
        {"+0.25", "+0.25", "a number with a sign"},
        {"-", "-", "only a sign"},
        {"a=b", "a=b", "a sign inside"},
    };
    check_texts(ew_buf_csv_field, rows, sizeof rows / sizeof rows[0]);
    struct ew_buf raw;
    ew_buf_init(&raw, 0, NULL, NULL);
    raw.csv_raw = true;
    ew_buf_csv_field(&raw, "=1\033", 3);
    CHECK_EQ_STR(content(&raw), "=1\033");
    ew_buf_done(&raw);
}

TEST(screen_text_fits_and_contains_no_terminal_controls)
{
    static const struct {
        const char *text;
        size_t columns;
        const char *want;
        size_t used;
        const char *remark;
    } rows[] = {
        {"abc", 5, "abc", 3, "fits"},
        {"abc", 3, "abc", 3, "fits exactly"},
        {"abcd", 3, "ab+", 3, "is cut and marked"},
        {"abc", 0, "", 0, "no room at all"},
        {"\x1b[31mred", 20, "?[31mred", 8, "escape sequence"},
        {"\xC2\x9B"
         "31m",
         20, "?31m", 4, "C1 control"},
        {"a\xE2\x80\xAE"
         "b",
         20, "a?b", 3, "direction override"},
        {"\xFF", 4, "?", 1, "invalid UTF-8"},
        {"\xE6\x97\xA5\xE6\x9C\xAC", 4, "\xE6\x97\xA5\xE6\x9C\xAC", 4, "wide characters"},
        {"\xE6\x97\xA5\xE6\x9C\xAC", 3, "\xE6\x97\xA5+", 3, "a wide one does not fit"},
        {"e\xCC\x81x", 2, "e\xCC\x81x", 2, "a combining mark takes no column"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ew_buf buf;
        ew_buf_init(&buf, 0, NULL, NULL);
        test_row(rows[i].remark);
        CHECK_EQ_UINT(ew_buf_screen(&buf, rows[i].text, strlen(rows[i].text), rows[i].columns),
                      rows[i].used);
        CHECK_EQ_STR(content(&buf), rows[i].want);
        ew_buf_done(&buf);
    }
}

TEST(every_code_point_survives_decoding)
{
    for (uint32_t code = 0x80; code <= 0x10FFFF; code += 7) {
        char bytes[4];
        size_t len = 0;
        if (code >= 0xD800 && code <= 0xDFFF)
            continue;
        if (code < 0x800) {
            bytes[len++] = (char)(0xC0 | code >> 6);
        } else if (code < 0x10000) {
            bytes[len++] = (char)(0xE0 | code >> 12);
            bytes[len++] = (char)(0x80 | (code >> 6 & 63));
        } else {
            bytes[len++] = (char)(0xF0 | code >> 18);
            bytes[len++] = (char)(0x80 | (code >> 12 & 63));
            bytes[len++] = (char)(0x80 | (code >> 6 & 63));
        }
        bytes[len++] = (char)(0x80 | (code & 63));
        uint32_t got = 0;
        CHECK_EQ_UINT(ew_utf8_decode(bytes, len, &got), len);
        CHECK_EQ_UINT(got, code);
        CHECK_EQ_UINT(ew_utf8_decode(bytes, len - 1, &got), 1);
        CHECK_EQ_UINT(got, EW_UTF8_INVALID);
    }
}

struct writes {
    size_t count;
    size_t bytes;
    int fail_with;
    bool whole_lines;
};

static int record_write(void *ctx, const void *bytes, size_t len)
{
    struct writes *writes = ctx;
    writes->count++;
    writes->bytes += len;
    writes->whole_lines = writes->whole_lines && ((const char *)bytes)[len - 1] == '\n';
    return writes->fail_with;
}

TEST(only_whole_lines_are_written_out)
{
    struct writes writes = {.whole_lines = true};
    struct ew_buf buf;
    ew_buf_init(&buf, 1024, record_write, &writes);
    for (int i = 0; i < 1000; i++) {
        ew_buf_repeat(&buf, 'x', (size_t)(i % 97));
        ew_buf_char(&buf, '\n');
        ew_buf_end_line(&buf);
    }
    CHECK_EQ_INT(ew_buf_flush(&buf), 0);
    CHECK(writes.whole_lines);
    CHECK(writes.count > 50);
    size_t want = 0;
    for (size_t i = 0; i < 1000; i++)
        want += i % 97 + 1;
    CHECK_EQ_UINT(writes.bytes, want);
    ew_buf_done(&buf);
}

TEST(a_buffer_never_grows_beyond_its_maximum)
{
    struct ew_buf buf;
    ew_buf_init(&buf, 5000, NULL, NULL);
    ew_buf_repeat(&buf, 'x', 4000);
    ew_buf_repeat(&buf, 'x', 1000);
    CHECK_EQ_INT(buf.error, 0);
    CHECK_EQ_UINT(buf.size, 5000);
    ew_buf_char(&buf, 'x');
    CHECK_EQ_INT(ew_buf_flush(&buf), ETWATCH_ELIMIT);
    CHECK_EQ_UINT(buf.len, 5000);
    ew_buf_done(&buf);
}

TEST(a_failed_write_is_remembered_and_not_repeated)
{
    struct writes writes = {.fail_with = ETWATCH_EOS, .whole_lines = true};
    struct ew_buf buf;
    ew_buf_init(&buf, 0, record_write, &writes);
    ew_buf_text(&buf, "one\n");
    CHECK_EQ_INT(ew_buf_flush(&buf), ETWATCH_EOS);
    ew_buf_text(&buf, "two\n");
    CHECK_EQ_INT(ew_buf_flush(&buf), ETWATCH_EOS);
    CHECK_EQ_UINT(writes.count, 1);
    ew_buf_done(&buf);
}

static int append_much(void *ctx)
{
    (void)ctx;
    struct ew_buf buf;
    ew_buf_init(&buf, 0, NULL, NULL);
    for (int i = 0; i < 5000; i++) {
        ew_buf_u64(&buf, 12345);
        ew_buf_json_string(&buf, "abc\n", 4);
    }
    int rc = ew_buf_flush(&buf);
    ew_buf_done(&buf);
    return rc;
}

TEST(running_out_of_memory_is_reported)
{
    TORTURE(append_much, NULL);
}
