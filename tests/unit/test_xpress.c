/* SPDX-License-Identifier: MIT */
/*
 * Both compressions of MS-XCA: the examples printed in the specification, round trips, and damaged
 * input. Every buffer has exactly the declared size, so that the address sanitizer detects any
 * access outside.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "source/etl/xpress.h"
#include "test.h"
#include "xpress_deflate.h"

struct method {
    const char *name;
    int (*inflate)(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size,
                   size_t *ret_written);
    int64_t (*deflate)(const uint8_t *in, size_t in_size, uint8_t *out);
};

static const struct method methods[] = {
    {"plain", ew_xpress_inflate, ew_xpress_deflate},
    {"huffman", ew_xpress_huffman_inflate, ew_xpress_huffman_deflate},
};

static uint32_t random_state;

static uint32_t next_random(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

static uint8_t *make(size_t size)
{
    uint8_t *block = ew_calloc(size ? size : 1, 1);
    CHECK(block != NULL);
    return block;
}

static uint8_t *copy_of(const uint8_t *bytes, size_t size)
{
    uint8_t *block = make(size);
    memcpy(block, bytes, size);
    return block;
}

/* -------------------------------------------------------------- data shapes */

enum shape { ZEROS, NOISE, TEXT, EVENTS, FAR_REPEATS, SHORT_PERIODS, SKEWED, SHAPES };

static const char *const shape_names[SHAPES] = {"zeros",       "noise",         "text",  "events",
                                                "far repeats", "short periods", "skewed"};

static uint8_t shape_byte(enum shape shape, const uint8_t *data, size_t i)
{
    static const char words[] = "the quick brown fox jumps over the lazy dog and again ";
    switch (shape) {
    case ZEROS:
        return 0;
    case NOISE:
        return (uint8_t)next_random();
    case TEXT:
        return next_random() % 16 ? (uint8_t)words[i % (sizeof words - 1)] : (uint8_t)(97 + i % 7);
    case EVENTS: /* 40-byte records in which a few bytes change */
        return (uint8_t)(i % 40 < 4 ? i / 40 : i % 40 == 8 ? next_random() : i % 40);
    case FAR_REPEATS:
        return i < 8000 ? (uint8_t)next_random() : data[i - 8000 + i % 3 / 2];
    case SHORT_PERIODS: /* every distance from 1 to 40 for a while */
        return (uint8_t)(i % (1 + i / 300 % 40));
    default: { /* few bytes are very frequent: deep Huffman trees */
        uint32_t r = next_random(), bits = 0;
        while (bits < 20 && (r >> bits & 1u))
            bits++;
        return (uint8_t)(bits * 11 + (bits > 6 ? next_random() % 9 : 0));
    }
    }
}

static uint8_t *make_shape(enum shape shape, size_t size)
{
    uint8_t *data = make(size);
    random_state = (uint32_t)size * 7 + (uint32_t)shape;
    for (size_t i = 0; i < size; i++)
        data[i] = shape_byte(shape, data, i);
    return data;
}

/* The compressed form, in a block of exactly its size. */
static uint8_t *compress(const struct method *method, const uint8_t *data, size_t size,
                         size_t *ret_size)
{
    uint8_t *room = make(ew_xpress_bound(size));
    int64_t packed_size = method->deflate(data, size, room);
    CHECK(packed_size >= 0);
    CHECK((size_t)packed_size <= ew_xpress_bound(size));
    uint8_t *packed = copy_of(room, (size_t)packed_size);
    ew_free(room);
    *ret_size = (size_t)packed_size;
    return packed;
}

static void check_round_trip(const struct method *method, const uint8_t *data, size_t size)
{
    size_t packed_size, written = 0;
    uint8_t *packed = compress(method, data, size, &packed_size);
    uint8_t *out = make(size);
    CHECK_EQ_INT(method->inflate(packed, packed_size, out, size, &written), 0);
    CHECK_EQ_UINT(written, size);
    CHECK_EQ_MEM(out, data, size);
    ew_free(out);
    ew_free(packed);
}

/* -------------------------------------------------- examples of the specification */

static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz";

static void fill_abc(uint8_t *out)
{
    for (size_t i = 0; i < 300; i++)
        out[i] = (uint8_t)("abc"[i % 3]);
}

/* The first 256 bytes of an example, given by those that are not zero, followed by the stream. */
static uint8_t *huffman_example(const uint8_t (*lengths)[2], size_t count, const uint8_t *stream,
                                size_t stream_size)
{
    uint8_t *bytes = make(256 + stream_size);
    for (size_t i = 0; i < count; i++)
        bytes[lengths[i][0]] = lengths[i][1];
    memcpy(bytes + 256, stream, stream_size);
    return bytes;
}

static void check_example(const struct method *method, const uint8_t *packed, size_t packed_size,
                          const void *data, size_t size)
{
    size_t written = 0;
    uint8_t *out = make(size);
    CHECK_EQ_INT(method->inflate(packed, packed_size, out, size, &written), 0);
    CHECK_EQ_UINT(written, size);
    CHECK_EQ_MEM(out, data, size);
    ew_free(out);
    size_t own_size;
    uint8_t *own = compress(method, data, size, &own_size);
    CHECK_EQ_UINT(own_size, packed_size);
    CHECK_EQ_MEM(own, packed, packed_size);
    ew_free(own);
}

TEST(plain_examples_of_the_specification_work_in_both_directions)
{
    uint8_t letters[4 + 26] = {0x3f, 0, 0, 0}, abc[300];
    static const uint8_t repeated[] = {0xff, 0xff, 0xff, 0x1f, 0x61, 0x62, 0x63,
                                       0x17, 0x00, 0x0f, 0xff, 0x26, 0x01};
    memcpy(letters + 4, alphabet, 26);
    check_example(&methods[0], letters, sizeof letters, alphabet, 26);
    fill_abc(abc);
    check_example(&methods[0], repeated, sizeof repeated, abc, sizeof abc);
}

TEST(huffman_examples_of_the_specification_work_in_both_directions)
{
    static const uint8_t letter_lengths[][2] = {
        {0x30, 0x50}, {0x31, 0x55}, {0x32, 0x55}, {0x33, 0x55}, {0x34, 0x55},
        {0x35, 0x55}, {0x36, 0x55}, {0x37, 0x55}, {0x38, 0x55}, {0x39, 0x55},
        {0x3a, 0x55}, {0x3b, 0x45}, {0x3c, 0x44}, {0x3d, 0x04}, {0x80, 0x04}};
    static const uint8_t letter_stream[] = {0xd8, 0x52, 0x3e, 0xd7, 0x94, 0x11, 0x5b,
                                            0xe9, 0x19, 0x5f, 0xf9, 0xd6, 0x7c, 0xdf,
                                            0x8d, 0x04, 0x00, 0x00, 0x00, 0x00};
    static const uint8_t abc_lengths[][2] = {
        {0x30, 0x30}, {0x31, 0x23}, {0x80, 0x02}, {0x8f, 0x20}};
    static const uint8_t abc_stream[] = {0xa8, 0xdc, 0x00, 0x00, 0xff, 0x26, 0x01};
    uint8_t abc[300];
    fill_abc(abc);
    uint8_t *packed = huffman_example(letter_lengths, 15, letter_stream, sizeof letter_stream);
    check_example(&methods[1], packed, 256 + sizeof letter_stream, alphabet, 26);
    ew_free(packed);
    packed = huffman_example(abc_lengths, 4, abc_stream, sizeof abc_stream);
    check_example(&methods[1], packed, 256 + sizeof abc_stream, abc, sizeof abc);
    ew_free(packed);
}

/* ------------------------------------------------------------- round trips */

TEST(every_shape_and_size_survives_a_round_trip)
{
    static const size_t sizes[] = {0,     1,     2,     3,     4,     5,      31,     32,
                                   33,    63,    64,    65,    127,   255,    256,    257,
                                   300,   1000,  4096,  8191,  8192,  8193,   16384,  65464,
                                   65535, 65536, 65537, 70000, 98304, 131072, 131073, 200000};
    for (size_t m = 0; m < 2; m++) {
        for (int shape = 0; shape < SHAPES; shape++) {
            for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
                char row[64];
                snprintf(row, sizeof row, "%s, %s, %zu bytes", methods[m].name, shape_names[shape],
                         sizes[i]);
                test_row(row);
                uint8_t *data = make_shape((enum shape)shape, sizes[i]);
                check_round_trip(&methods[m], data, sizes[i]);
                ew_free(data);
            }
        }
    }
}

TEST(every_small_size_survives_a_round_trip)
{
    for (size_t m = 0; m < 2; m++) {
        for (size_t size = 0; size < 400; size++) {
            uint8_t *data = make_shape(size % 2 ? EVENTS : SHORT_PERIODS, size);
            check_round_trip(&methods[m], data, size);
            ew_free(data);
        }
    }
}

/* Lengths at each border of their encodings: 3 bits, nibble, byte, 16 bits, 32 bits. */
TEST(match_lengths_at_every_encoding_limit_survive_a_round_trip)
{
    static const size_t lengths[] = {3,   4,   8,   9,   10,    11,    23,    24,    25,    26,
                                     278, 279, 280, 281, 65537, 65538, 65539, 65540, 70000, 200000};
    for (size_t m = 0; m < 2; m++) {
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            for (size_t period = 1; period <= 33; period += period < 4 ? 1 : 13) {
                char row[64];
                snprintf(row, sizeof row, "%s, period %zu, length %zu", methods[m].name, period,
                         lengths[i]);
                test_row(row);
                size_t size = period + lengths[i];
                uint8_t *data = make(size + 5);
                for (size_t k = 0; k < size; k++)
                    data[k] = (uint8_t)(k % period + 1);
                memcpy(data + size, "\xf1\xf2\xf3\xf4\xf5", 5);
                check_round_trip(&methods[m], data, size + 5);
                ew_free(data);
            }
        }
    }
}

/* Two long matches share a length byte, whatever is between them. */
TEST(shared_length_nibbles_survive_a_round_trip)
{
    uint8_t data[4096];
    size_t size = 0;
    for (unsigned i = 0; i < 40; i++) {
        memcpy(data + size, "0123456789abcdefghij", 20);
        size += 12 + i % 9;
        for (unsigned k = 0; k < i % 4; k++)
            data[size++] = (uint8_t)(0x80 + i + k);
    }
    check_round_trip(&methods[0], data, size);
    size_t packed_size;
    uint8_t *packed = compress(&methods[0], data, size, &packed_size);
    CHECK(packed_size < size / 2);
    ew_free(packed);
}

/* --------------------------------------------------------------- bad input */

/* Truncated anywhere: the output is never longer than the input allows and always a true prefix. */
TEST(truncated_input_gives_a_prefix_and_an_error)
{
    for (size_t m = 0; m < 2; m++) {
        for (int shape = 0; shape < SHAPES; shape++) {
            test_row(shape_names[shape]);
            size_t size = 1200, packed_size, written;
            uint8_t *data = make_shape((enum shape)shape, size), *out = make(size);
            uint8_t *packed = compress(&methods[m], data, size, &packed_size);
            for (size_t cut = 0; cut < packed_size; cut++) {
                uint8_t *part = copy_of(packed, cut);
                memset(out, 0xEE, size);
                int rc = methods[m].inflate(part, cut, out, size, &written);
                CHECK(rc == 0 || rc == ETWATCH_ETRUNC);
                CHECK(rc < 0 ? written < size : written == size);
                CHECK_EQ_MEM(out, data, written);
                ew_free(part);
            }
            ew_free(packed);
            ew_free(data);
            ew_free(out);
        }
    }
}

TEST(output_stops_at_the_end_of_a_smaller_buffer)
{
    for (size_t m = 0; m < 2; m++) {
        size_t size = 700, packed_size, written;
        uint8_t *data = make_shape(TEXT, size);
        uint8_t *packed = compress(&methods[m], data, size, &packed_size);
        for (size_t room = 0; room <= size; room++) {
            uint8_t *out = make(room);
            int rc = methods[m].inflate(packed, packed_size, out, room, &written);
            CHECK(rc == 0 || rc == ETWATCH_EFORMAT); /* a match must not be cut */
            CHECK(rc < 0 ? written < room : written == room);
            CHECK_EQ_MEM(out, data, written);
            ew_free(out);
        }
        ew_free(packed);
        ew_free(data);
    }
}

TEST(too_large_an_output_size_is_truncated_input)
{
    for (size_t m = 0; m < 2; m++) {
        size_t size = 500, packed_size, written;
        uint8_t *data = make_shape(TEXT, size), *out = make(size + 100000);
        uint8_t *packed = compress(&methods[m], data, size, &packed_size);
        int rc = methods[m].inflate(packed, packed_size, out, size + 100000, &written);
        /* The plain format ends exactly; the end symbol of Huffman is also a match of three bytes.
         */
        CHECK_EQ_INT(rc, ETWATCH_ETRUNC);
        CHECK(written >= size && written <= size + 100);
        CHECK_EQ_MEM(out, data, size);
        ew_free(packed);
        ew_free(data);
        ew_free(out);
    }
}

TEST(changed_bytes_never_leave_the_buffers)
{
    for (size_t m = 0; m < 2; m++) {
        for (int shape = 0; shape < SHAPES; shape++) {
            size_t size = 3000, packed_size, written;
            uint8_t *data = make_shape((enum shape)shape, size), *out = make(size);
            uint8_t *packed = compress(&methods[m], data, size, &packed_size);
            for (int round = 0; round < 400; round++) {
                uint8_t *bad = copy_of(packed, packed_size);
                for (int i = 0; i < 1 + round % 4; i++)
                    bad[next_random() % packed_size] ^= (uint8_t)(1u << next_random() % 8);
                int rc = methods[m].inflate(bad, packed_size, out, size, &written);
                CHECK(rc == 0 || rc == ETWATCH_EFORMAT || rc == ETWATCH_ETRUNC);
                CHECK(rc == 0 ? written == size : written <= size);
                ew_free(bad);
            }
            ew_free(packed);
            ew_free(data);
            ew_free(out);
        }
    }
}

struct bad_input {
    const char *remark;
    uint8_t bytes[16];
    size_t size, out_size;
    int rc;
    size_t written;
};

TEST(malformed_plain_input_is_refused)
{
    static const struct bad_input rows[] = {
        {"nothing", {0}, 0, 1, ETWATCH_ETRUNC, 0},
        {"half of the flags", {0, 0, 0}, 3, 1, ETWATCH_ETRUNC, 0},
        {"flags only", {0, 0, 0, 0}, 4, 1, ETWATCH_ETRUNC, 0},
        {"a match at the beginning", {0, 0, 0, 0x80, 0, 0}, 6, 3, ETWATCH_EFORMAT, 0},
        {"a match before the beginning", {0, 0, 0, 0x40, 'a', 8, 0}, 7, 4, ETWATCH_EFORMAT, 1},
        {"a match past the end", {0, 0, 0, 0x40, 'a', 0, 0}, 7, 3, ETWATCH_EFORMAT, 1},
        {"a match that exactly fits", {0, 0, 0, 0x40, 'a', 0, 0}, 7, 4, 0, 4},
        {"half of a match", {0, 0, 0, 0x40, 'a', 0}, 6, 4, ETWATCH_ETRUNC, 1},
        {"no nibble", {0, 0, 0, 0x40, 'a', 7, 0}, 7, 14, ETWATCH_ETRUNC, 1},
        {"no byte", {0, 0, 0, 0x40, 'a', 7, 0, 15}, 8, 14, ETWATCH_ETRUNC, 1},
        {"no word", {0, 0, 0, 0x40, 'a', 7, 0, 15, 255, 1}, 10, 400, ETWATCH_ETRUNC, 1},
        {"a missing double word",
         {0, 0, 0, 0x40, 'a', 7, 0, 15, 255, 0, 0, 1, 1},
         13,
         400,
         ETWATCH_ETRUNC,
         1},
        {"a word that is too small",
         {0, 0, 0, 0x40, 'a', 7, 0, 15, 255, 21, 0},
         11,
         400,
         ETWATCH_EFORMAT,
         1},
        {"the smallest word", {0, 0, 0, 0x40, 'a', 7, 0, 15, 255, 22, 0}, 11, 26, 0, 26},
        {"a double word of all ones",
         {0, 0, 0, 0x40, 'a', 7, 0, 15, 255, 0, 0, 255, 255, 255, 255},
         15,
         400,
         ETWATCH_EFORMAT,
         1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].remark);
        uint8_t *in = copy_of(rows[i].bytes, rows[i].size), *out = make(rows[i].out_size);
        size_t written = 77;
        CHECK_EQ_INT(ew_xpress_inflate(in, rows[i].size, out, rows[i].out_size, &written),
                     rows[i].rc);
        CHECK_EQ_UINT(written, rows[i].written);
        ew_free(in);
        ew_free(out);
    }
}

/* The same far from the ends, where the fast loop is used. */
TEST(bad_matches_in_the_fast_loop_are_refused)
{
    uint8_t in[400] = {0}, out[4000];
    static const struct {
        const char *remark;
        uint8_t match[8];
    } rows[] = {
        {"before the beginning", {0x08, 0}},
        {"far before the beginning", {0xf8, 0xff}},
        {"a word that is too small", {7, 0, 15, 255, 21, 0}},
        {"past the end", {7, 0, 15, 255, 0xff, 0x7f}},
        {"a double word of all ones", {7, 0, 15, 255, 0, 0, 255, 255}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].remark);
        memset(in, 0xff, sizeof in);
        memcpy(in,
               "\0\0\0\x40"
               "a",
               5);
        memcpy(in + 5, rows[i].match, sizeof rows[i].match);
        size_t written = 77;
        CHECK_EQ_INT(ew_xpress_inflate(in, sizeof in, out, sizeof out, &written), ETWATCH_EFORMAT);
        CHECK_EQ_UINT(written, 1);
    }
}

TEST(invalid_huffman_tables_are_refused)
{
    uint8_t in[300], out[64];
    size_t written = 77;
    memset(in, 0x11, sizeof in); /* 512 codes of one bit */
    CHECK_EQ_INT(ew_xpress_huffman_inflate(in, sizeof in, out, sizeof out, &written),
                 ETWATCH_EFORMAT);
    CHECK_EQ_UINT(written, 0);
    memset(in, 0, sizeof in); /* no code at all */
    CHECK_EQ_INT(ew_xpress_huffman_inflate(in, sizeof in, out, sizeof out, &written),
                 ETWATCH_EFORMAT);
    CHECK_EQ_INT(ew_xpress_huffman_inflate(in, 255, out, sizeof out, &written), ETWATCH_ETRUNC);
}

/* ------------------------------------------------------------------ memory */

static int deflate_both(void *ctx)
{
    uint8_t *out = ctx;
    int64_t plain = ew_xpress_deflate((const uint8_t *)alphabet, 26, out);
    int64_t huffman =
        plain < 0 ? plain : ew_xpress_huffman_deflate((const uint8_t *)alphabet, 26, out);
    return huffman < 0 ? (int)huffman : 0;
}

TEST(compression_without_memory_is_an_error)
{
    uint8_t out[1024];
    TORTURE(deflate_both, out);
}

/* -------------------------------------------------------------- real recordings */

enum { HEAD = 72, COMPRESSED = 0x40, MAX_FILE = 64 * 1024 * 1024 };

static uint8_t *read_file(const char *path, size_t *ret_size)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = make(MAX_FILE);
    CHECK(file != NULL);
    *ret_size = fread(bytes, 1, MAX_FILE, file);
    fclose(file);
    return bytes;
}

/*
 * Every event of a buffer ends where the next one begins, and the last one at the end of the
 * buffer.
 */
static void check_walk(const uint8_t *events, size_t size)
{
    size_t at = 0;
    while (at + 8 <= size) {
        uint32_t mark = ew_load_u32(events + at);
        unsigned type = mark >> 16 & 0xFF;
        bool is_kernel = mark >> 24 == 0xC0 && (type <= 4 || type == 16 || type == 17);
        size_t len = is_kernel ? ew_load_u16(events + at + 4) : mark & 0xFFFF;
        CHECK(mark >> 31 == 1);
        CHECK(len >= 8);
        at += (len + 7) & ~(size_t)7;
    }
    CHECK_EQ_UINT(at, size);
}

static unsigned check_file(const uint8_t *bytes, size_t size)
{
    unsigned count = 0;
    for (size_t at = 0; at + HEAD <= size;) {
        size_t buffer_size = ew_load_u32(bytes + at), filled = ew_load_u32(bytes + at + 0x30);
        size_t written;
        if (buffer_size < HEAD || buffer_size > size - at)
            break;
        if (ew_load_u16(bytes + at + 0x34) & COMPRESSED) {
            uint8_t *in = copy_of(bytes + at + HEAD, buffer_size - HEAD),
                    *out = make(filled - HEAD);
            CHECK_EQ_INT(ew_xpress_inflate(in, buffer_size - HEAD, out, filled - HEAD, &written),
                         0);
            CHECK_EQ_UINT(written, filled - HEAD);
            check_walk(out, written);
            check_round_trip(&methods[0], out, written);
            check_round_trip(&methods[1], out, written);
            ew_free(in);
            ew_free(out);
            count++;
        }
        at += buffer_size;
    }
    return count;
}

TEST(compressed_buffers_of_real_recordings_are_decompressed)
{
    const char *corpus = getenv("ETWATCH_CORPUS");
    char path[1024];
    unsigned count = 0;
    if (corpus == NULL)
        SKIP("ETWATCH_CORPUS names no folder with recordings");
    snprintf(path, sizeof path, "%s/etl", corpus);
    DIR *folder = opendir(path);
    if (folder == NULL)
        SKIP("no folder etl in ETWATCH_CORPUS");
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        size_t size;
        test_row(entry->d_name);
        snprintf(path, sizeof path, "%s/etl/%s", corpus, entry->d_name);
        uint8_t *bytes = read_file(path, &size);
        count += check_file(bytes, size);
        ew_free(bytes);
    }
    closedir(folder);
    CHECK(count > 0);
}
