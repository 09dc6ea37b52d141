/* SPDX-License-Identifier: MIT */
/* JSON of others: values, escapes, limits, and that broken text is an error and no value. */
#include <string.h>

#include <etwatch/etwatch.h>

#include "base/json_read.h"
#include "test.h"

static struct ew_bytes over(const char *text)
{
    struct ew_bytes in;
    ew_bytes_init(&in, text, strlen(text));
    return in;
}

TEST(members_of_an_object_are_read_in_their_order)
{
    struct ew_bytes in =
        over(" { \"a\" : 12 , \"b\":[1, -2.5e1 ,3], \"c\":true,\"d\":{} , \"e\":null}");
    char key[8], keys[8] = {0};
    uint64_t a = 0;
    double sum = 0;
    bool c = false;
    for (bool more = ew_jsonin_first(&in, '{'); more; more = ew_jsonin_next(&in, '}')) {
        ew_jsonin_key(&in, key, sizeof key);
        keys[strlen(keys)] = key[0];
        if (key[0] == 'a')
            a = ew_jsonin_u64(&in);
        else if (key[0] == 'b')
            for (bool item = ew_jsonin_first(&in, '['); item; item = ew_jsonin_next(&in, ']'))
                sum += ew_jsonin_number(&in);
        else if (key[0] == 'c')
            c = ew_jsonin_bool(&in);
        else
            ew_jsonin_skip(&in);
    }
    CHECK(ew_bytes_ok(&in));
    CHECK_EQ_UINT(ew_bytes_left(&in), 0);
    CHECK_EQ_STR(keys, "abcde");
    CHECK_EQ_UINT(a, 12);
    CHECK_NEAR(sum, -21.0, 1e-12);
    CHECK(c);
}

TEST(strings_are_decoded_and_cut_at_a_character)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"\"plain\"", "plain"},
        {"\"a\\\"b\\\\c\\/d\\n\"", "a\"b\\c/d\n"},
        {"\"\\u0041\\u00e9\\u20ac\"", "A\xc3\xa9\xe2\x82\xac"},
        {"\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80"},
        {"\"\\ud83dx\"", "\xef\xbf\xbdx"},
        {"\"\\u0000x\"", "?x"},
        {"\"123456789012345\"", "12345678901"},
        {"\"1234567890\xe2\x82\xac\"", "1234567890"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[12];
        struct ew_bytes in = over(rows[i].text);
        test_row(rows[i].text);
        size_t len = ew_jsonin_text(&in, text, sizeof text);
        CHECK(ew_bytes_ok(&in));
        CHECK_EQ_STR(text, rows[i].want);
        CHECK_EQ_UINT(len, strlen(rows[i].want));
        CHECK_EQ_UINT(ew_bytes_left(&in), 0);
    }
}

TEST(numbers_are_exact_as_far_as_a_double_is)
{
    static const struct {
        const char *text;
        double want;
    } rows[] = {
        {"0", 0},
        {"-0.5", -0.5},
        {"1e3", 1000},
        {"12.5E-1", 1.25},
        {"9007199254740992", 9007199254740992.0},
        {"0.1", 0.1},
        {"123456789012345678901234", 123456789012345678901234.0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ew_bytes in = over(rows[i].text);
        test_row(rows[i].text);
        double got = ew_jsonin_number(&in);
        CHECK(ew_bytes_ok(&in));
        CHECK_NEAR(got, rows[i].want, 1e-12 * (rows[i].want < 0 ? -rows[i].want : rows[i].want));
    }
    struct ew_bytes in = over("18446744073709551615,");
    CHECK_EQ_UINT(ew_jsonin_u64(&in), UINT64_MAX);
    CHECK(ew_bytes_ok(&in));
}

TEST(broken_text_is_an_error)
{
    static const char *const rows[] = {
        "",      "{",      "{\"a\"",  "{\"a\":}",  "{\"a\" 1}", "{\"a\":1,}", "[1,]",
        "[1 2]", "\"open", "\"\\x\"", "\"\\u12\"", "tru",       "nul",        "-",
        "1.",    "1e",     "{1:2}",   "[\"a\"}",   "}",         "{\"a\":1]",
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ew_bytes in = over(rows[i]);
        test_row(rows[i]);
        ew_jsonin_skip(&in);
        CHECK(!ew_bytes_ok(&in));
    }
    struct ew_bytes in = over("1.5");
    CHECK_EQ_UINT(ew_jsonin_u64(&in), 0);
    CHECK_EQ_INT(in.error, ETWATCH_EFORMAT);
}

TEST(any_value_can_be_skipped_up_to_the_depth)
{
    char text[300] = "";
    struct ew_bytes in = over("{\"a\":[{},[],[[1]],{\"b\":{\"c\":\"]}\"}}],\"d\":-1.5e+3} 7");
    ew_jsonin_skip(&in);
    CHECK_EQ_UINT(ew_jsonin_u64(&in), 7);
    CHECK(ew_bytes_ok(&in));
    for (int extra = 0; extra < 2; extra++) {
        size_t depth = EW_JSON_DEPTH_MAX + (size_t)extra;
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        text[2 * depth] = '\0';
        in = over(text);
        ew_jsonin_skip(&in);
        CHECK_EQ_INT(in.error, extra == 0 ? 0 : ETWATCH_EFORMAT);
    }
}
