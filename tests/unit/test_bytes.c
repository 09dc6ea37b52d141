/* SPDX-License-Identifier: MIT */
/* The bounded cursor: the values it reads, where it stops, and that its first error is kept. */
#include <string.h>

#include "base/bytes.h"
#include "test.h"

#include <etwatch/etwatch.h>

static struct ew_bytes over(const char *text)
{
    struct ew_bytes in;
    ew_bytes_init(&in, text, strlen(text));
    return in;
}

static void check_failed(const struct ew_bytes *in, int error, uint64_t offset)
{
    CHECK_EQ_INT(in->error, error);
    CHECK_EQ_UINT(in->error_offset, offset);
    CHECK_EQ_UINT(ew_bytes_left(in), 0);
}

TEST(integers_are_little_endian_at_any_alignment)
{
    static const uint8_t data[] = {0xff, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07,
                                   0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0xfe};
    struct ew_bytes in;
    ew_bytes_init(&in, data, sizeof data);
    CHECK_EQ_UINT(ew_bytes_u8(&in), 0xff);
    CHECK_EQ_UINT(ew_bytes_u16(&in), 0x0201);
    CHECK_EQ_UINT(ew_bytes_u32(&in), 0x06050403);
    CHECK_EQ_UINT(ew_bytes_u64(&in), UINT64_C(0xfe0d0c0b0a090807));
    CHECK_EQ_UINT(ew_bytes_left(&in), 0);
    CHECK(ew_bytes_ok(&in));
}

TEST(an_integer_that_does_not_fit_is_truncated_input_at_its_start)
{
    static const uint8_t data[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    for (size_t size = 0; size < 8; size++) {
        struct ew_bytes in;
        ew_bytes_init(&in, data, size + 1);
        ew_bytes_skip(&in, 1);
        CHECK_EQ_UINT(ew_bytes_u64(&in), 0);
        check_failed(&in, ETWATCH_ETRUNC, 1);
    }
    struct ew_bytes in;
    ew_bytes_init(&in, NULL, 0);
    CHECK(ew_bytes_take(&in, 0) != NULL);
    CHECK_EQ_UINT(ew_bytes_u8(&in), 0);
    check_failed(&in, ETWATCH_ETRUNC, 0);
}

TEST(the_first_error_stays_and_nothing_moves_after_it)
{
    struct ew_bytes in = over("12x34");
    CHECK_EQ_UINT(ew_bytes_dec_u64(&in), 12);
    CHECK_EQ_UINT(ew_bytes_dec_u64(&in), 0);
    check_failed(&in, ETWATCH_EFORMAT, 2);
    CHECK_EQ_UINT(ew_bytes_u32(&in), 0);
    CHECK(ew_bytes_take(&in, 1) == NULL);
    CHECK(ew_bytes_take(&in, 0) == NULL);
    CHECK_EQ_INT(ew_bytes_peek(&in), -1);
    CHECK(!ew_bytes_accept(&in, "x"));
    CHECK_EQ_UINT(ew_bytes_until(&in, '4').len, 0);
    CHECK_EQ_UINT(ew_bytes_until_last(&in, '4').len, 0);
    ew_bytes_expect(&in, "y");
    ew_bytes_seek(&in, 0);
    ew_bytes_align(&in, 4);
    ew_bytes_skip_spaces(&in);
    ew_bytes_skip_fields(&in, 1);
    ew_bytes_fail(&in, ETWATCH_ETRUNC);
    CHECK_EQ_INT(ew_bytes_dec_i64(&in), 0);
    CHECK_EQ_UINT(ew_bytes_hex_u64(&in), 0);
    struct ew_span line;
    CHECK(!ew_bytes_line(&in, &line));
    check_failed(&in, ETWATCH_EFORMAT, 2);
    CHECK_EQ_UINT(in.pos, 2);
}

TEST(a_size_near_the_largest_does_not_wrap)
{
    struct ew_bytes in = over("abcdef");
    ew_bytes_skip(&in, 3);
    CHECK(ew_bytes_take(&in, SIZE_MAX - 1) == NULL);
    check_failed(&in, ETWATCH_ETRUNC, 3);
    in = over("abcdef");
    ew_bytes_seek(&in, SIZE_MAX);
    check_failed(&in, ETWATCH_ETRUNC, 0);
}

TEST(a_sub_range_ends_at_its_size_and_knows_its_offset)
{
    struct ew_bytes in = over("ab12cd"), sub, inner;
    ew_bytes_skip(&in, 2);
    ew_bytes_sub(&in, 2, &sub);
    CHECK_EQ_UINT(ew_bytes_left(&in), 2);
    CHECK_EQ_INT(ew_bytes_u8(&in), 'c');
    ew_bytes_skip(&sub, 1);
    CHECK_EQ_UINT(ew_bytes_offset(&sub), 3);
    ew_bytes_sub(&sub, 1, &inner);
    CHECK_EQ_UINT(ew_bytes_dec_u64(&inner), 2);
    CHECK_EQ_UINT(ew_bytes_u8(&inner), 0);
    check_failed(&inner, ETWATCH_ETRUNC, 4);
    CHECK(ew_bytes_ok(&in));
}

TEST(a_sub_range_that_does_not_fit_carries_the_error)
{
    struct ew_bytes in = over("abc"), sub;
    ew_bytes_skip(&in, 1);
    ew_bytes_sub(&in, 3, &sub);
    check_failed(&in, ETWATCH_ETRUNC, 1);
    check_failed(&sub, ETWATCH_ETRUNC, 1);
    CHECK_EQ_UINT(ew_bytes_u8(&sub), 0);
}

TEST(alignment_and_seek_count_from_the_start_of_the_cursor)
{
    struct ew_bytes in = over("x12345678"), sub;
    ew_bytes_skip(&in, 1);
    ew_bytes_sub(&in, 8, &sub);
    ew_bytes_align(&sub, 4);
    CHECK_EQ_UINT(sub.pos, 0);
    ew_bytes_skip(&sub, 1);
    ew_bytes_align(&sub, 4);
    CHECK_EQ_INT(ew_bytes_peek(&sub), '5');
    ew_bytes_seek(&sub, 8);
    CHECK_EQ_UINT(ew_bytes_left(&sub), 0);
    ew_bytes_seek(&sub, 1);
    CHECK_EQ_INT(ew_bytes_u8(&sub), '2');
    ew_bytes_align(&sub, 16);
    check_failed(&sub, ETWATCH_ETRUNC, 3);
}

TEST(decimal_numbers_end_before_the_first_other_byte)
{
    static const struct {
        const char *text, *remark;
        uint64_t value;
        size_t left;
        int error;
        uint64_t offset;
    } rows[] = {
        {"0", "zero", 0, 0, 0, 0},
        {"007x", "leading zeros", 7, 1, 0, 0},
        {"18446744073709551615 ", "the largest", UINT64_MAX, 1, 0, 0},
        {"18446744073709551616", "one more", 0, 0, ETWATCH_EFORMAT, 0},
        {"99999999999999999999999", "far too many digits", 0, 0, ETWATCH_EFORMAT, 0},
        {"", "nothing", 0, 0, ETWATCH_ETRUNC, 0},
        {" 1", "a blank first", 0, 0, ETWATCH_EFORMAT, 0},
        {"-1", "a sign", 0, 0, ETWATCH_EFORMAT, 0},
        {"+1", "a plus", 0, 0, ETWATCH_EFORMAT, 0},
        {"a", "a letter", 0, 0, ETWATCH_EFORMAT, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ew_bytes in = over(rows[i].text);
        test_row(rows[i].remark);
        CHECK_EQ_UINT(ew_bytes_dec_u64(&in), rows[i].value);
        CHECK_EQ_INT(in.error, rows[i].error);
        CHECK_EQ_UINT(ew_bytes_left(&in), rows[i].left);
        CHECK_EQ_UINT(in.error_offset, rows[i].offset);
    }
}

TEST(signed_numbers_reach_both_ends_and_no_further)
{
    static const struct {
        const char *text;
        int64_t value;
        int error;
    } rows[] = {
        {"-9223372036854775808", INT64_MIN, 0},
        {"9223372036854775807", INT64_MAX, 0},
        {"-9223372036854775809", 0, ETWATCH_EFORMAT},
        {"9223372036854775808", 0, ETWATCH_EFORMAT},
        {"-1", -1, 0},
        {"-0", 0, 0},
        {"-", 0, ETWATCH_ETRUNC},
        {"", 0, ETWATCH_ETRUNC},
        {"--1", 0, ETWATCH_EFORMAT},
        {"- 1", 0, ETWATCH_EFORMAT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ew_bytes in = over(rows[i].text);
        test_row(rows[i].text);
        CHECK_EQ_INT(ew_bytes_dec_i64(&in), rows[i].value);
        CHECK_EQ_INT(in.error, rows[i].error);
        CHECK_EQ_UINT(in.error_offset, 0);
    }
}

TEST(hexadecimal_numbers_take_either_case)
{
    struct ew_bytes in = over("fFa0,10000000000000000");
    CHECK_EQ_UINT(ew_bytes_hex_u64(&in), 0xffa0);
    CHECK_EQ_INT(ew_bytes_u8(&in), ',');
    CHECK_EQ_UINT(ew_bytes_hex_u64(&in), 0);
    check_failed(&in, ETWATCH_EFORMAT, 5);
    in = over("ffffffffffffffff");
    CHECK_EQ_UINT(ew_bytes_hex_u64(&in), UINT64_MAX);
    in = over("g");
    CHECK_EQ_UINT(ew_bytes_hex_u64(&in), 0);
    check_failed(&in, ETWATCH_EFORMAT, 0);
}

TEST(fields_are_skipped_within_their_line)
{
    struct ew_bytes in = over("a  bb\tccc d\nnext");
    ew_bytes_skip_fields(&in, 2);
    CHECK_EQ_INT(ew_bytes_peek(&in), 'c');
    ew_bytes_skip_fields(&in, 0);
    CHECK_EQ_INT(ew_bytes_peek(&in), 'c');
    ew_bytes_skip_fields(&in, 2);
    CHECK_EQ_INT(ew_bytes_peek(&in), '\n');
    ew_bytes_skip_fields(&in, 1);
    check_failed(&in, ETWATCH_ETRUNC, 11);
}

TEST(expected_text_distinguishes_truncation_from_a_mismatch)
{
    struct ew_bytes in = over("VmRSS:");
    CHECK(!ew_bytes_accept(&in, "VmHWM:"));
    CHECK(!ew_bytes_accept(&in, ""));
    CHECK(!ew_bytes_accept(&in, "VmRSS: "));
    CHECK(ew_bytes_ok(&in));
    ew_bytes_expect(&in, "Vm");
    ew_bytes_expect(&in, "RSS:\t");
    check_failed(&in, ETWATCH_ETRUNC, 2);
    in = over("VmRSS:");
    ew_bytes_expect(&in, "VmX");
    check_failed(&in, ETWATCH_EFORMAT, 0);
    in = over("");
    ew_bytes_expect(&in, "x");
    check_failed(&in, ETWATCH_ETRUNC, 0);
}

TEST(text_is_taken_up_to_a_stop)
{
    struct ew_bytes in = over("a(b)c) d");
    struct ew_span span = ew_bytes_until(&in, '(');
    CHECK(ew_span_equals(span, "a"));
    span = ew_bytes_until_last(&in, ')');
    CHECK(ew_span_equals(span, "b)c"));
    CHECK(ew_span_starts(span, "b)"));
    CHECK(!ew_span_starts(span, "b)cd"));
    CHECK(!ew_span_equals(span, "b)"));
    CHECK_EQ_INT(ew_bytes_peek(&in), ' ');
    span = ew_bytes_until(&in, '(');
    CHECK_EQ_UINT(span.len, 0);
    check_failed(&in, ETWATCH_ETRUNC, 6);
    in = over("abc");
    (void)ew_bytes_until_last(&in, 'x');
    check_failed(&in, ETWATCH_ETRUNC, 0);
}

TEST(lines_are_read_one_by_one_and_the_last_needs_no_newline)
{
    struct ew_bytes in = over("one\n\nthree");
    struct ew_span line;
    CHECK(ew_bytes_line(&in, &line));
    CHECK(ew_span_equals(line, "one"));
    CHECK(ew_bytes_line(&in, &line));
    CHECK(ew_span_equals(line, ""));
    CHECK(ew_bytes_line(&in, &line));
    CHECK(ew_span_equals(line, "three"));
    CHECK(!ew_bytes_line(&in, &line));
    CHECK(ew_bytes_ok(&in));
}

TEST(a_copied_span_is_truncated_to_its_buffer_and_terminated)
{
    struct ew_span span = {"abcdef", 6};
    char buffer[8];
    CHECK_EQ_UINT(ew_span_copy(span, buffer, sizeof buffer), 6);
    CHECK_EQ_STR(buffer, "abcdef");
    CHECK_EQ_UINT(ew_span_copy(span, buffer, 4), 3);
    CHECK_EQ_STR(buffer, "abc");
    CHECK_EQ_UINT(ew_span_copy(span, buffer, 1), 0);
    CHECK_EQ_STR(buffer, "");
}
