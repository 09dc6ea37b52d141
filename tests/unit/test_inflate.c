/* SPDX-License-Identifier: MIT */
/*
 * Decompression of streams made bit by bit. Each malformed stream ends with the checksum of what a
 * reader would output that does not notice the mistake, so the mistake itself must be found.
 */
#include <stdbool.h>
#include <string.h>

#include <etwatch/etwatch.h>

#include "source/pftrace/inflate.h"
#include "test.h"

enum { STREAM_MAX = 4096, CODES = 19 };

struct stream {
    uint8_t bytes[STREAM_MAX];
    size_t bits;
};

static void put(struct stream *s, uint32_t value, unsigned count)
{
    for (unsigned i = 0; i < count; i++, s->bits++) {
        CHECK(s->bits / 8 < STREAM_MAX);
        s->bytes[s->bits / 8] |= (uint8_t)((value >> i & 1) << s->bits % 8);
    }
}

/* Huffman codes are written from their highest bit on. */
static void put_code(struct stream *s, uint32_t code, unsigned count)
{
    while (count-- > 0)
        put(s, code >> count & 1, 1);
}

static void begin(struct stream *s, uint8_t method, uint8_t flags)
{
    memset(s, 0, sizeof *s);
    put(s, method, 8);
    put(s, flags, 8);
}

/* A block: whether it is the last one, and its kind. */
static void put_block(struct stream *s, bool last, unsigned kind)
{
    put(s, last, 1);
    put(s, kind, 2);
}

/* The fixed code of a symbol. */
static void put_fixed(struct stream *s, unsigned symbol)
{
    if (symbol < 144)
        put_code(s, 0x30 + symbol, 8);
    else if (symbol < 256)
        put_code(s, 0x190 + symbol - 144, 9);
    else if (symbol < 280)
        put_code(s, symbol - 256, 7);
    else
        put_code(s, 0xC0 + symbol - 280, 8);
}

static void put_check(struct stream *s, const char *output, size_t len)
{
    uint32_t a = 1, b = 0;
    for (size_t i = 0; i < len; i++) {
        a = (a + (uint8_t)output[i]) % 65521;
        b = (b + a) % 65521;
    }
    s->bits = (s->bits + 7) & ~(size_t)7;
    uint32_t sum = b << 16 | a;
    for (int shift = 24; shift >= 0; shift -= 8)
        put(s, sum >> shift & 0xFF, 8);
}

static int inflate_it(const struct stream *s, const char *want, size_t len)
{
    struct ew_inflated out = {.max = 100000};
    size_t at = 0;
    int rc = ew_inflate(s->bytes, s->bits / 8, &out, &at);
    CHECK(at <= s->bits / 8);
    if (rc == 0) {
        CHECK_EQ_UINT(out.len, len);
        CHECK_EQ_MEM(out.data, want, len);
    }
    ew_inflated_done(&out);
    return rc;
}

/* A dynamic block's head: the code of the lengths has 5 bits for each of its symbols. */
static void put_head(struct stream *s, unsigned literals, unsigned distances)
{
    put_block(s, true, 2);
    put(s, literals - 257, 5);
    put(s, distances - 1, 5);
    put(s, CODES - 4, 4);
    for (unsigned i = 0; i < CODES; i++)
        put(s, 5, 3);
}

static void put_length(struct stream *s, unsigned symbol)
{
    put_code(s, symbol, 5);
}

static void put_zeros(struct stream *s, unsigned count)
{
    for (; count >= 138; count -= 138) {
        put_length(s, 18);
        put(s, 138 - 11, 7);
    }
    for (; count > 0; count--)
        put_length(s, 0);
}

TEST(a_stored_block_is_copied)
{
    struct stream s;
    begin(&s, 0x78, 0x01);
    put_block(&s, false, 0);
    s.bits = 24;
    put(&s, 3, 16);
    put(&s, 0xFFFF ^ 3, 16);
    put(&s, 'a', 8);
    put(&s, 'b', 8);
    put(&s, 'c', 8);
    put_block(&s, true, 1);
    put_fixed(&s, 256);
    put_check(&s, "abc", 3);
    CHECK_EQ_INT(inflate_it(&s, "abc", 3), 0);
}

TEST(a_stored_block_with_a_wrong_length_check_is_refused)
{
    struct stream s;
    begin(&s, 0x78, 0x01);
    put_block(&s, true, 0);
    s.bits = 24;
    put(&s, 1, 16);
    put(&s, 0xFFFF ^ 2, 16);
    put(&s, 'a', 8);
    put_check(&s, "a", 1);
    CHECK_EQ_INT(inflate_it(&s, "a", 1), ETWATCH_EFORMAT);
}

TEST(a_stored_block_longer_than_the_stream_is_truncated)
{
    struct stream s;
    begin(&s, 0x78, 0x01);
    put_block(&s, true, 0);
    s.bits = 24;
    put(&s, 2, 16);
    put(&s, 0xFFFF ^ 2, 16);
    put(&s, 'a', 8);
    CHECK_EQ_INT(inflate_it(&s, "", 0), ETWATCH_ETRUNC);
}

TEST(a_wrong_head_is_refused)
{
    static const uint8_t heads[][2] = {
        {0x78, 0x02},             /* the check bits */
        {0x79, 31 - 0x7900 % 31}, /* another method */
        {0x78, 0x20},             /* needs a dictionary */
    };
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        struct stream s;
        begin(&s, heads[i][0], heads[i][1]);
        put_block(&s, true, 1);
        put_fixed(&s, 256);
        put_check(&s, "", 0);
        CHECK_EQ_INT(inflate_it(&s, "", 0), ETWATCH_EFORMAT);
    }
}

TEST(an_unknown_kind_of_block_is_refused)
{
    struct stream s;
    begin(&s, 0x78, 0x01);
    put_block(&s, true, 3);
    put_check(&s, "", 0);
    CHECK_EQ_INT(inflate_it(&s, "", 0), ETWATCH_EFORMAT);
}

TEST(a_wrong_checksum_is_refused)
{
    struct stream s;
    begin(&s, 0x78, 0x01);
    put_block(&s, true, 1);
    put_fixed(&s, 'x');
    put_fixed(&s, 256);
    put_check(&s, "y", 1);
    CHECK_EQ_INT(inflate_it(&s, "x", 1), ETWATCH_EFORMAT);
}

TEST(matches_repeat_what_was_output)
{
    struct stream s;
    begin(&s, 0x78, 0x01);
    put_block(&s, true, 1);
    put_fixed(&s, 'a');
    put_fixed(&s, 'b');
    put_fixed(&s, 257); /* 3 bytes, */
    put_code(&s, 1, 5); /* from 2 before: overlapping */
    put_fixed(&s, 265); /* 11 or 12 bytes: */
    put(&s, 1, 1);      /* 12, */
    put_code(&s, 4, 5); /* from 5 or 6 before: */
    put(&s, 0, 1);      /* 5 */
    put_fixed(&s, 256);
    static const char want[] = "ababaababaababaab";
    put_check(&s, want, 17);
    CHECK_EQ_INT(inflate_it(&s, want, 17), 0);
}

TEST(a_match_from_before_the_begin_is_refused)
{
    struct stream s;
    begin(&s, 0x78, 0x01);
    put_block(&s, true, 1);
    put_fixed(&s, 'a');
    put_fixed(&s, 257);
    put_code(&s, 1, 5); /* 2 before */
    put_fixed(&s, 256);
    put_check(&s, "aaaa", 4);
    CHECK_EQ_INT(inflate_it(&s, "", 0), ETWATCH_EFORMAT);
}

TEST(symbols_without_a_meaning_are_refused)
{
    for (unsigned symbol = 286; symbol <= 287; symbol++) {
        struct stream s;
        begin(&s, 0x78, 0x01);
        put_block(&s, true, 1);
        put_fixed(&s, 'a');
        put_fixed(&s, symbol);
        put_fixed(&s, 256);
        put_check(&s, "a", 1);
        CHECK_EQ_INT(inflate_it(&s, "a", 1), ETWATCH_EFORMAT);
    }
    for (unsigned distance = 30; distance <= 31; distance++) {
        struct stream s;
        begin(&s, 0x78, 0x01);
        put_block(&s, true, 1);
        put_fixed(&s, 'a');
        put_fixed(&s, 257);
        put_code(&s, distance, 5);
        put_fixed(&s, 256);
        put_check(&s, "a", 1);
        CHECK_EQ_INT(inflate_it(&s, "a", 1), ETWATCH_EFORMAT);
    }
}

/* Literals 0 to 10 have codes of 1 to 11 bits, 11 and the end of the block of 12. */
static void put_lengths_up_to_12(struct stream *s)
{
    for (unsigned length = 1; length <= 12; length++)
        put_length(s, length);
    put_zeros(s, 256 - 12);
    put_length(s, 12);
}

TEST(codes_longer_than_the_table_are_read)
{
    struct stream s;
    begin(&s, 0x78, 0x01);
    put_head(&s, 257, 1);
    put_lengths_up_to_12(&s);
    put_length(&s, 0); /* no distances */
    static const char want[] = {11, 0, 10, 3, 11};
    put_code(&s, 0xFFE, 12);
    put_code(&s, 0, 1);
    put_code(&s, 0x7FE, 11);
    put_code(&s, 0xE, 4);
    put_code(&s, 0xFFE, 12);
    put_code(&s, 0xFFF, 12);
    put_check(&s, want, sizeof want);
    CHECK_EQ_INT(inflate_it(&s, want, sizeof want), 0);
}

TEST(a_long_code_that_is_cut_is_truncated)
{
    struct stream s;
    begin(&s, 0x78, 0x01);
    put_head(&s, 257, 1);
    put_lengths_up_to_12(&s);
    put_length(&s, 0);
    s.bits = s.bits / 8 * 8; /* the zeros that remain are literals */
    put_code(&s, 0xFF, 8);
    CHECK_EQ_INT(inflate_it(&s, "", 0), ETWATCH_ETRUNC);
}

TEST(a_code_that_is_not_assigned_is_refused)
{
    struct stream s;
    begin(&s, 0x78, 0x01);
    put_head(&s, 257, 1);
    put_length(&s, 2); /* literal 0: 00; 256: 01; 10 and 11 are nothing */
    put_zeros(&s, 255);
    put_length(&s, 2);
    put_length(&s, 0);
    put_code(&s, 0, 2);
    put_code(&s, 2, 2);
    put_code(&s, 1, 2);
    put(&s, 0, 16);
    put_check(&s, "\0", 1);
    CHECK_EQ_INT(inflate_it(&s, "\0", 1), ETWATCH_EFORMAT);
}

TEST(codes_with_too_many_symbols_are_refused)
{
    struct stream s;
    begin(&s, 0x78, 0x01);
    put_head(&s, 257, 1);
    for (unsigned i = 0; i < 3; i++)
        put_length(&s, 1); /* three codes of one bit */
    put_zeros(&s, 253);
    put_length(&s, 1);
    put_length(&s, 0);
    put(&s, 0xFFFFFF, 24);
    put_check(&s, "", 0);
    CHECK_EQ_INT(inflate_it(&s, "", 0), ETWATCH_EFORMAT);
    begin(&s, 0x78, 0x01); /* of distances */
    put_head(&s, 257, 3);
    put_length(&s, 1);
    put_zeros(&s, 255);
    put_length(&s, 1);
    for (unsigned i = 0; i < 3; i++)
        put_length(&s, 1);
    put_code(&s, 1, 1);
    put_check(&s, "", 0);
    CHECK_EQ_INT(inflate_it(&s, "", 0), ETWATCH_EFORMAT);
    begin(&s, 0x78, 0x01); /* of the lengths */
    put_block(&s, true, 2);
    put(&s, 0, 5);
    put(&s, 0, 5);
    put(&s, CODES - 4, 4);
    for (unsigned i = 0; i < CODES; i++)
        put(&s, 1, 3);
    put(&s, 0, 32);
    put_check(&s, "", 0);
    CHECK_EQ_INT(inflate_it(&s, "", 0), ETWATCH_EFORMAT);
}

TEST(too_many_codes_are_refused)
{
    for (unsigned more = 0; more < 2; more++) {
        unsigned literals = more != 0 ? 257 : 287, distances = more != 0 ? 31 : 1;
        struct stream s;
        begin(&s, 0x78, 0x01);
        put_head(&s, literals, distances);
        put_length(&s, 1);
        put_zeros(&s, 255);
        put_length(&s, 1);
        put_zeros(&s, literals - 257 + distances);
        put_code(&s, 1, 1);
        put_check(&s, "", 0);
        CHECK_EQ_INT(inflate_it(&s, "", 0), ETWATCH_EFORMAT);
    }
}

TEST(a_repeated_length_needs_one_before_and_ends_with_the_codes)
{
    struct stream s;
    begin(&s, 0x78, 0x01);
    put_head(&s, 257, 1);
    put_length(&s, 16); /* nothing to repeat */
    put(&s, 0, 2);
    put_zeros(&s, 253);
    put_length(&s, 1);
    put_length(&s, 0);
    put_code(&s, 0, 1);
    put_check(&s, "", 0);
    CHECK_EQ_INT(inflate_it(&s, "", 0), ETWATCH_EFORMAT);
    begin(&s, 0x78, 0x01);
    put_head(&s, 257, 1);
    put_length(&s, 1);
    put_zeros(&s, 255);
    put_length(&s, 1);
    put_length(&s, 17); /* three zeros, where one remains */
    put(&s, 0, 3);
    put_code(&s, 1, 1);
    put_check(&s, "", 0);
    CHECK_EQ_INT(inflate_it(&s, "", 0), ETWATCH_EFORMAT);
    begin(&s, 0x78, 0x01);
    put_head(&s, 258, 2);
    put_length(&s, 8);
    put_zeros(&s, 252);
    for (unsigned i = 0; i < 2; i++)
        put_length(&s, 8);
    put_length(&s, 16); /* five lengths of 8: 255 to 257 and two distances */
    put(&s, 2, 2);
    put_code(&s, 0, 8);
    put_code(&s, 4, 8); /* literals 0, 253, 254, 255, then 256 */
    put_check(&s, "\0", 1);
    CHECK_EQ_INT(inflate_it(&s, "\0", 1), 0);
}

TEST(output_grows_up_to_the_maximum)
{
    static char want[70000];
    struct stream s;
    memset(want, 'z', sizeof want);
    for (unsigned extra = 0; extra < 2; extra++) {
        begin(&s, 0x78, 0x01);
        put_block(&s, true, 1);
        put_fixed(&s, 'z');
        for (unsigned i = 0; i < 271; i++) { /* 258 bytes each, from one before */
            put_fixed(&s, 285);
            put_code(&s, 0, 5);
        }
        for (unsigned i = 0; i < 81 + extra; i++)
            put_fixed(&s, 'z');
        put_fixed(&s, 256);
        put_check(&s, want, 70000);
        struct ew_inflated out = {.max = 70000};
        size_t at = 0;
        int rc = ew_inflate(s.bytes, s.bits / 8, &out, &at);
        CHECK_EQ_INT(rc, extra == 0 ? 0 : ETWATCH_ELIMIT);
        CHECK_EQ_UINT(out.len, 70000);
        CHECK(out.size <= 70000);
        CHECK_EQ_MEM(out.data, want, 70000);
        ew_inflated_done(&out);
    }
}
