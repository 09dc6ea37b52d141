/* SPDX-License-Identifier: MIT */
/* The list of fields, and conversion of text to UTF-8. */
#include <string.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"
#include "base/utf16.h"
#include "model/field.h"
#include "test.h"

TEST(utf16_becomes_utf8)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *want;
        const char *remark;
    } rows[] = {
        {"", 0, "", "nothing"},
        {"A\0b\0", 4, "Ab", "ASCII"},
        {"\xE9\0", 2, "\xC3\xA9", "two bytes"},
        {"\xAC\x20", 2, "\xE2\x82\xAC", "three bytes"},
        {"\x3D\xD8\x00\xDE", 4, "\xF0\x9F\x98\x80", "a pair"},
        {"\xFF\xDB\xFF\xDF", 4, "\xF4\x8F\xBF\xBF", "the last code point"},
        {"\x3D\xD8", 2, "\xEF\xBF\xBD", "half a pair at the end"},
        {"\x3D\xD8"
         "A\0",
         4,
         "\xEF\xBF\xBD"
         "A",
         "half a pair before a letter"},
        {"\x00\xDE"
         "A\0",
         4,
         "\xEF\xBF\xBD"
         "A",
         "the second half alone"},
        {"\x3D\xD8\x3D\xD8\x00\xDE", 6, "\xEF\xBF\xBD\xF0\x9F\x98\x80", "a half before a pair"},
        {"A\0b", 3, "A", "a byte too many"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char buffer[32];
        test_row(rows[i].remark);
        size_t len =
            ew_utf16_to_utf8((const uint8_t *)rows[i].bytes, rows[i].len, buffer, sizeof buffer);
        CHECK_EQ_STR(buffer, rows[i].want);
        CHECK_EQ_UINT(len, strlen(rows[i].want));
    }
}

TEST(utf16_that_does_not_fit_is_cut_at_a_character)
{
    const uint8_t text[] = {'a', 0, 0xAC, 0x20, 0x3D, 0xD8, 0x00, 0xDE};
    static const size_t want[] = {0, 0, 1, 1, 1, 4, 4, 4, 4, 8, 8};
    for (size_t size = 1; size <= 10; size++) {
        char buffer[16];
        memset(buffer, 'x', sizeof buffer);
        CHECK_EQ_UINT(ew_utf16_to_utf8(text, sizeof text, buffer, size), want[size]);
        CHECK_EQ_INT(buffer[want[size]], '\0');
        CHECK_EQ_INT(buffer[size], 'x');
    }
    CHECK(EW_UTF16_UTF8_MAX(sizeof text) >= 8);
}

TEST(utf16_length_ends_at_the_first_nul_unit)
{
    CHECK_EQ_UINT(ew_utf16_len((const uint8_t *)"a\0\0\0b\0", 6), 2);
    CHECK_EQ_UINT(ew_utf16_len((const uint8_t *)"a\0b\0", 4), 4);
    CHECK_EQ_UINT(ew_utf16_len((const uint8_t *)"a\0b", 3), 2);
    /* The zero bytes of two adjacent units are not a NUL. */
    CHECK_EQ_UINT(ew_utf16_len((const uint8_t *)"\x41\x00\x00\x01\x00\x00", 6), 4);
    CHECK_EQ_UINT(ew_utf16_len(NULL, 0), 0);
}

TEST(text_does_not_move_until_the_next_clear)
{
    uint8_t wide[512];
    struct ew_fields fields;
    const char *first[64];
    ew_fields_init(&fields);
    for (size_t i = 0; i < sizeof wide; i++)
        wide[i] = i % 2 ? 0 : (uint8_t)('a' + i % 26);
    for (int round = 0; round < 3; round++) {
        ew_fields_clear(&fields);
        for (int i = 0; i < 64; i++) {
            wide[0] = (uint8_t)('A' + i % 26);
            ew_fields_utf16(&fields, "f", 1, wide, sizeof wide);
            first[i] = fields.list[i].v.text;
        }
        CHECK_EQ_UINT(fields.count, 64);
        CHECK(!fields.cut);
        for (int i = 0; i < 64; i++) {
            CHECK(fields.list[i].v.text == first[i]);
            CHECK_EQ_UINT(fields.list[i].len, sizeof wide / 2);
            CHECK_EQ_INT(fields.list[i].v.text[0], 'A' + i % 26);
            CHECK_EQ_INT(fields.list[i].v.text[1], 'a' + 2);
        }
    }
    ew_fields_done(&fields);
}

static void one_event(void *ctx)
{
    struct ew_fields *fields = ctx;
    static const uint8_t wide[6000] = {'a', 0, 'b', 0};
    ew_fields_clear(fields);
    for (int i = 0; i < 40; i++)
        ew_fields_utf16(fields, "f", 1, wide, sizeof wide);
}

TEST(similar_events_allocate_nothing)
{
    struct ew_fields fields;
    ew_fields_init(&fields);
    for (int i = 0; i < 4; i++)
        one_event(&fields);
    CHECK_EQ_UINT(test_count_allocations(one_event, &fields), 0);
    CHECK_EQ_UINT(fields.count, 40);
    ew_fields_done(&fields);
}

TEST(ansi_that_is_not_utf8_is_latin1)
{
    struct ew_fields fields;
    ew_fields_init(&fields);
    ew_fields_ansi(&fields, "a", 1, (const uint8_t *)"plain", 5);
    ew_fields_ansi(&fields, "b", 1, (const uint8_t *)"na\xC3\xAFve", 6);
    ew_fields_ansi(&fields, "c", 1, (const uint8_t *)"na\xEFve", 5);
    CHECK_EQ_UINT(fields.count, 3);
    CHECK_EQ_UINT(fields.list[0].len, 5);
    CHECK_EQ_UINT(fields.list[1].len, 6);
    CHECK_EQ_UINT(fields.list[2].len, 6);
    CHECK_EQ_MEM(fields.list[2].v.text, "na\xC3\xAFve", 6);
    ew_fields_done(&fields);
}

/* Opening and closing entries balance, and none closes before it opens. */
static void check_nesting(const struct ew_fields *fields)
{
    uint32_t depth = 0;
    for (uint32_t i = 0; i < fields->count; i++) {
        if (fields->list[i].type == EW_FIELD_ARRAY || fields->list[i].type == EW_FIELD_STRUCT)
            depth++;
        if (fields->list[i].type == EW_FIELD_CLOSE) {
            CHECK(depth > 0);
            depth--;
        }
    }
    CHECK_EQ_UINT(depth, 0);
}

TEST(a_truncated_list_still_closes_its_open_entries)
{
    struct ew_fields fields;
    ew_fields_init(&fields);
    for (int i = 0; i < 5; i++)
        ew_fields_open(&fields, "s", 1, EW_FIELD_STRUCT);
    for (int i = 0; i < EW_FIELDS_MAX; i++)
        ew_fields_u64(&fields, "u", 1, EW_FIELD_U64, (uint64_t)i);
    for (int i = 0; i < 3; i++)
        ew_fields_open(&fields, "beyond", 6, EW_FIELD_ARRAY);
    for (int i = 0; i < 8; i++)
        ew_fields_close(&fields);
    CHECK(fields.cut);
    CHECK_EQ_INT(fields.error, 0);
    CHECK_EQ_UINT(fields.count, EW_FIELDS_MAX);
    CHECK_EQ_UINT(fields.open, 0);
    check_nesting(&fields);
    ew_fields_close(&fields); /* an extra one changes nothing */
    CHECK_EQ_UINT(fields.count, EW_FIELDS_MAX);
    ew_fields_clear(&fields);
    CHECK(!fields.cut);
    ew_fields_done(&fields);
}

TEST(text_of_one_event_is_bounded)
{
    static const uint8_t wide[60000] = {'x', 0};
    struct ew_fields fields;
    ew_fields_init(&fields);
    for (int i = 0; i < 1000; i++)
        ew_fields_utf16(&fields, "f", 1, wide, sizeof wide);
    CHECK(fields.cut);
    CHECK(fields.count < 1000);
    CHECK_EQ_INT(fields.error, 0);
    ew_fields_clear(&fields);
    ew_fields_utf16(&fields, "f", 1, wide, 4);
    CHECK(!fields.cut);
    CHECK_EQ_UINT(fields.count, 1);
    ew_fields_done(&fields);
}

static int fill(void *ctx)
{
    (void)ctx;
    struct ew_fields fields;
    ew_fields_init(&fields);
    ew_fields_open(&fields, "s", 1, EW_FIELD_STRUCT);
    for (int i = 0; i < 100; i++)
        ew_fields_i64(&fields, "i", 1, -i);
    ew_fields_utf16(&fields, "t", 1, (const uint8_t *)"a\0b\0", 4);
    ew_fields_ansi(&fields, "t", 1, (const uint8_t *)"\xFF", 1);
    const char *label = ew_fields_keep(&fields, "A, B", 4);
    ew_fields_enum(&fields, "e", 1, 3, label, 4);
    ew_fields_close(&fields);
    check_nesting(&fields);
    int error = fields.error;
    ew_fields_done(&fields);
    return error;
}

TEST(running_out_of_memory_is_reported)
{
    TORTURE(fill, NULL);
}

TEST(values_keep_their_kind)
{
    struct ew_fields fields;
    ew_fields_init(&fields);
    ew_fields_u64(&fields, "h", 1, EW_FIELD_HEX, UINT64_MAX);
    ew_fields_i64(&fields, "i", 1, INT64_MIN);
    ew_fields_double(&fields, "d", 1, EW_FIELD_FLOAT, 0.5);
    ew_fields_raw(&fields, "r", 1, EW_FIELD_GUID, (const uint8_t *)"0123456789abcdef", 16);
    ew_fields_null(&fields, "n", 1);
    ew_fields_enum(&fields, "e", 1, 7, NULL, 9);
    ew_fields_enum(&fields, "e", 1, 8, "Eight", 5);
    CHECK_EQ_UINT(fields.list[0].v.u, UINT64_MAX);
    CHECK_EQ_INT(fields.list[1].v.i, INT64_MIN);
    CHECK_NEAR(fields.list[2].v.d, 0.5, 0);
    CHECK_EQ_INT(fields.list[2].type, EW_FIELD_FLOAT);
    CHECK_EQ_MEM(fields.list[3].v.raw, "0123456789abcdef", 16);
    CHECK_EQ_INT(fields.list[4].type, EW_FIELD_NULL);
    CHECK_EQ_UINT(fields.list[5].v.u, 7);
    CHECK_EQ_UINT(fields.list[5].len, 0);
    CHECK_EQ_UINT(fields.list[6].len, 5);
    CHECK_EQ_MEM(fields.list[6].label, "Eight", 5);
    ew_fields_done(&fields);
}
