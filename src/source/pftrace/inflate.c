/* SPDX-License-Identifier: MIT */
/*
 * zlib decompression. It is implemented here because the Windows ARM64 build has no zlib package,
 * and because foreign bytes must be read with bounds checks. Owns only the tables of one call.
 * Invariants: every read of the input is checked against its end, every copy against the output so
 * far, and the output never exceeds its maximum, so a decompression bomb ends with ELIMIT.
 *
 * Codes of up to FAST_BITS bits are found by one lookup, longer ones by counting through the
 * lengths.
 */
#include "source/pftrace/inflate.h"

#include <stdbool.h>
#include <string.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"

enum {
    CODE_BITS_MAX = 15,
    FAST_BITS = 10,
    SYMBOLS_MAX = 288,
    LENGTH_SYMBOLS = 19,
    DISTANCE_SYMBOLS = 30,
    END_OF_BLOCK = 256,
};

struct huffman {
    uint16_t count[CODE_BITS_MAX + 1];
    uint16_t symbol[SYMBOLS_MAX];
    uint16_t fast[1 << FAST_BITS]; /* symbol << 4 | length; 0: longer, or no code */
};

struct state {
    const uint8_t *bytes;
    size_t size, at;
    uint64_t bits;
    unsigned bit_count;
    int error;
    struct ew_inflated *out;
    struct huffman literals, distances; /* of the current dynamic block */
    struct huffman fixed_literals, fixed_distances;
    bool fixed_built; /* once per call: blocks may be empty and as short as ten bits */
    const struct huffman *literal_code, *distance_code; /* of the current block */
};

static void fail(struct state *s, int error)
{
    if (s->error == 0)
        s->error = error;
}

static inline void refill(struct state *s)
{
    while (s->bit_count <= 56 && s->at < s->size) {
        s->bits |= (uint64_t)s->bytes[s->at++] << s->bit_count;
        s->bit_count += 8;
    }
}

static uint32_t take_bits(struct state *s, unsigned count)
{
    refill(s);
    if (s->bit_count < count) {
        fail(s, ETWATCH_ETRUNC);
        return 0;
    }
    uint32_t value = (uint32_t)(s->bits & ((UINT64_C(1) << count) - 1));
    s->bits >>= count;
    s->bit_count -= count;
    return value;
}

static unsigned reverse(unsigned code, unsigned length)
{
    unsigned result = 0;
    for (; length > 0; length--, code >>= 1)
        result = result << 1 | (code & 1);
    return result;
}

/* False: oversubscribed. An incomplete code is allowed; using a missing entry fails. */
static bool build(struct huffman *huffman, const uint8_t *lengths, unsigned count)
{
    uint16_t offset[CODE_BITS_MAX + 2], code[CODE_BITS_MAX + 2];
    int left = 1;
    memset(huffman, 0, sizeof *huffman);
    for (unsigned i = 0; i < count; i++)
        huffman->count[lengths[i]]++;
    huffman->count[0] = 0;
    offset[1] = code[1] = 0;
    for (unsigned length = 1; length <= CODE_BITS_MAX; length++) {
        left = left * 2 - huffman->count[length];
        if (left < 0)
            return false;
        offset[length + 1] = (uint16_t)(offset[length] + huffman->count[length]);
        code[length + 1] = (uint16_t)((code[length] + huffman->count[length]) << 1);
    }
    for (unsigned i = 0; i < count; i++) {
        unsigned length = lengths[i];
        if (length == 0)
            continue;
        huffman->symbol[offset[length]++] = (uint16_t)i;
        unsigned own_code = code[length]++;
        if (length > FAST_BITS)
            continue;
        for (unsigned at = reverse(own_code, length); at < 1u << FAST_BITS; at += 1u << length)
            huffman->fast[at] = (uint16_t)(i << 4 | length);
    }
    return true;
}

static unsigned decode_slow(struct state *s, const struct huffman *huffman)
{
    int code = 0, first = 0, index = 0;
    for (unsigned length = 1; length <= CODE_BITS_MAX; length++) {
        if (s->bit_count < length) {
            fail(s, ETWATCH_ETRUNC);
            return 0;
        }
        code |= (int)(s->bits >> (length - 1) & 1);
        int count = huffman->count[length];
        if (code - count < first) {
            s->bits >>= length;
            s->bit_count -= length;
            return huffman->symbol[index + (code - first)];
        }
        index += count;
        first = (first + count) << 1;
        code <<= 1;
    }
    fail(s, ETWATCH_EFORMAT);
    return 0;
}

static inline unsigned decode(struct state *s, const struct huffman *huffman)
{
    refill(s);
    unsigned entry = huffman->fast[s->bits & ((1u << FAST_BITS) - 1)];
    unsigned length = entry & 15;
    if (entry == 0 || length > s->bit_count)
        return decode_slow(s, huffman);
    s->bits >>= length;
    s->bit_count -= length;
    return entry >> 4;
}

/* Space for `more` bytes of output. */
static bool make_room(struct state *s, size_t more)
{
    struct ew_inflated *out = s->out;
    if (more > out->max - out->len) {
        fail(s, ETWATCH_ELIMIT);
        return false;
    }
    if (more <= out->size - out->len)
        return true;
    size_t size = out->size < 65536 ? 65536 : out->size;
    while (size < out->len + more)
        size *= 2;
    size = size > out->max ? out->max : size;
    uint8_t *data = ew_realloc_array(out->data, size, 1);
    if (data == NULL) {
        fail(s, ETWATCH_ENOMEM);
        return false;
    }
    out->data = data;
    out->size = size;
    return true;
}

static void copy_stored(struct state *s)
{
    s->bits >>= s->bit_count & 7;
    s->bit_count &= ~7u;
    uint32_t len = take_bits(s, 16), check = take_bits(s, 16);
    if (s->error == 0 && (len ^ 0xFFFF) != check)
        fail(s, ETWATCH_EFORMAT);
    /* The bit buffer may hold whole bytes. */
    s->at -= s->bit_count / 8;
    s->bits = s->bit_count = 0;
    if (s->error == 0 && len > s->size - s->at)
        fail(s, ETWATCH_ETRUNC);
    if (s->error != 0 || len == 0 || !make_room(s, len))
        return;
    memcpy(s->out->data + s->out->len, s->bytes + s->at, len);
    s->out->len += len;
    s->at += len;
}

static void copy_match(struct state *s, unsigned symbol)
{
    static const uint16_t length_base[29] = {3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                             15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                             67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint8_t length_extra[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                             2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    static const uint16_t distance_base[DISTANCE_SYMBOLS] = {
        1,   2,   3,   4,   5,   7,    9,    13,   17,   25,   33,   49,   65,    97,    129,
        193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
    static const uint8_t distance_extra[DISTANCE_SYMBOLS] = {0, 0, 0,  0,  1,  1,  2,  2,  3,  3,
                                                             4, 4, 5,  5,  6,  6,  7,  7,  8,  8,
                                                             9, 9, 10, 10, 11, 11, 12, 12, 13, 13};
    symbol -= 257;
    if (symbol >= 29) {
        fail(s, ETWATCH_EFORMAT);
        return;
    }
    size_t len = length_base[symbol] + take_bits(s, length_extra[symbol]);
    unsigned code = decode(s, s->distance_code);
    if (code >= DISTANCE_SYMBOLS) {
        fail(s, ETWATCH_EFORMAT);
        return;
    }
    size_t distance = distance_base[code] + take_bits(s, distance_extra[code]);
    if (s->error == 0 && distance > s->out->len)
        fail(s, ETWATCH_EFORMAT);
    if (s->error != 0 || !make_room(s, len))
        return;
    uint8_t *to = s->out->data + s->out->len;
    const uint8_t *from = to - distance;
    if (distance >= len)
        memcpy(to, from, len);
    else
        for (size_t i = 0; i < len; i++)
            to[i] = from[i];
    s->out->len += len;
}

static void copy_codes(struct state *s)
{
    while (s->error == 0) {
        unsigned symbol = decode(s, s->literal_code);
        if (s->error != 0 || symbol == END_OF_BLOCK)
            return;
        if (symbol > END_OF_BLOCK) {
            copy_match(s, symbol);
        } else if (make_room(s, 1)) {
            s->out->data[s->out->len++] = (uint8_t)symbol;
        }
    }
}

static void use_fixed(struct state *s)
{
    uint8_t lengths[SYMBOLS_MAX];
    s->literal_code = &s->fixed_literals;
    s->distance_code = &s->fixed_distances;
    if (s->fixed_built)
        return;
    s->fixed_built = true;
    for (unsigned i = 0; i < SYMBOLS_MAX; i++)
        lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    (void)build(&s->fixed_literals, lengths, SYMBOLS_MAX);
    memset(lengths, 5, DISTANCE_SYMBOLS);
    (void)build(&s->fixed_distances, lengths, DISTANCE_SYMBOLS);
}

static void read_lengths(struct state *s, uint8_t *lengths, unsigned count)
{
    unsigned at = 0;
    while (at < count && s->error == 0) {
        unsigned symbol = decode(s, &s->literals);
        uint8_t value = 0;
        unsigned times = 1;
        if (symbol < 16) {
            value = (uint8_t)symbol;
        } else if (symbol == 16) {
            if (at == 0)
                fail(s, ETWATCH_EFORMAT);
            else
                value = lengths[at - 1];
            times = 3 + take_bits(s, 2);
        } else {
            times = symbol == 17 ? 3 + take_bits(s, 3) : 11 + take_bits(s, 7);
        }
        if (times > count - at)
            fail(s, ETWATCH_EFORMAT);
        for (; times > 0 && s->error == 0; times--)
            lengths[at++] = value;
    }
}

static void use_dynamic(struct state *s)
{
    static const uint8_t order[LENGTH_SYMBOLS] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                  11, 4,  12, 3, 13, 2, 14, 1, 15};
    uint8_t lengths[SYMBOLS_MAX + 32] = {0};
    s->literal_code = &s->literals;
    s->distance_code = &s->distances;
    unsigned literals = take_bits(s, 5) + 257, distances = take_bits(s, 5) + 1;
    unsigned codes = take_bits(s, 4) + 4;
    if (literals > 286 || distances > DISTANCE_SYMBOLS)
        fail(s, ETWATCH_EFORMAT);
    for (unsigned i = 0; i < codes; i++)
        lengths[order[i]] = (uint8_t)take_bits(s, 3);
    if (s->error == 0 && !build(&s->literals, lengths, LENGTH_SYMBOLS))
        fail(s, ETWATCH_EFORMAT);
    if (s->error != 0)
        return;
    memset(lengths, 0, sizeof lengths);
    read_lengths(s, lengths, literals + distances);
    if (s->error == 0 && (!build(&s->distances, lengths + literals, distances) ||
                          !build(&s->literals, lengths, literals)))
        fail(s, ETWATCH_EFORMAT);
}

static void read_blocks(struct state *s)
{
    bool last = false;
    while (!last && s->error == 0) {
        last = take_bits(s, 1) != 0;
        unsigned kind = take_bits(s, 2);
        if (s->error != 0)
            return;
        if (kind == 0) {
            copy_stored(s);
            continue;
        }
        if (kind == 1)
            use_fixed(s);
        else if (kind == 2)
            use_dynamic(s);
        else
            fail(s, ETWATCH_EFORMAT);
        if (s->error == 0)
            copy_codes(s);
    }
}

static uint32_t adler(const uint8_t *bytes, size_t size)
{
    uint32_t a = 1, b = 0;
    while (size > 0) {
        size_t part = size < 5552 ? size : 5552; /* largest count without overflow */
        size -= part;
        for (; part > 0; part--) {
            a += *bytes++;
            b += a;
        }
        a %= 65521;
        b %= 65521;
    }
    return b << 16 | a;
}

int ew_inflate(const uint8_t *bytes, size_t size, struct ew_inflated *out, size_t *reterr_at)
{
    struct state *s = ew_calloc(1, sizeof *s);
    if (s == NULL)
        return ETWATCH_ENOMEM;
    *s = (struct state){.bytes = bytes, .size = size, .out = out};
    out->len = 0;
    unsigned method = take_bits(s, 8), flags = take_bits(s, 8);
    if (s->error == 0 && ((method & 15) != 8 || (method << 8 | flags) % 31 != 0 || (flags & 32)))
        fail(s, ETWATCH_EFORMAT);
    if (s->error == 0)
        read_blocks(s);
    s->bits >>= s->bit_count & 7;
    s->bit_count &= ~7u;
    uint32_t sum = 0;
    for (unsigned i = 0; i < 4 && s->error == 0; i++)
        sum = sum << 8 | take_bits(s, 8);
    if (s->error == 0 && sum != adler(out->data, out->len))
        fail(s, ETWATCH_EFORMAT);
    int rc = s->error;
    *reterr_at = s->at;
    ew_free(s);
    return rc;
}

void ew_inflated_done(struct ew_inflated *out)
{
    ew_free(out->data);
    *out = (struct ew_inflated){0};
}
