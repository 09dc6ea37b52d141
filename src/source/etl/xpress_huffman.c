/* SPDX-License-Identifier: MIT */
/*
 * Decompression of LZ77+Huffman of MS-XCA. Each 64 KiB of output starts with the code lengths of
 * 512 symbols, 4 bits each; then codes follow in 16-bit words, first bit at the top, and between
 * the words single bytes with the lengths of long matches. The position of these bytes depends on
 * how far the words have been read, so read-ahead must match the format exactly: there are always
 * between 16 and 32 bits available.
 *
 * The symbols: 0 to 255 are literals; above, the lower 4 bits are the length of a match and the
 * upper ones the number of bits of its distance.
 */
#include <stdbool.h>
#include <string.h>

#include <etwatch/etwatch.h>

#include "base/bytes.h"
#include "source/etl/xpress.h"

enum {
    SYMBOLS = 512,
    TABLE_BYTES = SYMBOLS / 2,
    MAX_BITS = 15,
    QUICK_BITS = 10, /* codes up to this length are found by one table lookup */
    BLOCK_BYTES = 65536,
    MIN_MATCH = 3,
};

struct code {
    uint16_t quick[1 << QUICK_BITS]; /* symbol << 4 | length; 0: longer or not a code */
    uint16_t by_code[SYMBOLS];       /* symbols in code order */
    uint32_t first[MAX_BITS + 1];    /* the first code of each length … */
    uint16_t index[MAX_BITS + 1];    /* … its index in by_code … */
    uint16_t count[MAX_BITS + 1];    /* … and the number of codes */
};

struct bits {
    const uint8_t *in, *end;
    uint32_t next; /* next bits, from the top */
    int extra;     /* available bits beyond 16 */
    int real;      /* bits of next that come from the input */
};

/* Appends the next word of the input. Beyond the end it appends zeros, which must not be
 * consumed. */
static void refill(struct bits *b)
{
    if (b->end - b->in >= 2) {
        b->next |= (uint32_t)ew_load_u16(b->in) << -b->extra;
        b->in += 2;
        b->real += 16;
    } else {
        b->in = b->end;
    }
    b->extra += 16;
}

static void begin_bits(struct bits *b)
{
    b->next = 0;
    b->real = 0;
    b->extra = -16;
    refill(b);
    refill(b);
}

/* False: these bits are beyond the end. count <= 16. */
static bool consume(struct bits *b, int count)
{
    b->next = count < 32 ? b->next << count : 0;
    b->real -= count;
    b->extra -= count;
    if (b->extra < 0)
        refill(b);
    return b->real >= 0;
}

static int read_code(const uint8_t *table, struct code *code)
{
    uint8_t lengths[SYMBOLS];
    memset(code, 0, sizeof *code);
    for (unsigned i = 0; i < TABLE_BYTES; i++) {
        lengths[2 * i] = table[i] & 15;
        lengths[2 * i + 1] = table[i] >> 4;
        code->count[table[i] & 15]++;
        code->count[table[i] >> 4]++;
    }
    code->count[0] = 0;
    uint32_t next = 0;
    for (unsigned len = 1, index = 0; len <= MAX_BITS; len++) {
        next <<= 1;
        code->first[len] = next;
        code->index[len] = (uint16_t)index;
        index += code->count[len];
        next += code->count[len];
        if (next > 1u << len)
            return ETWATCH_EFORMAT;
    }
    uint16_t used[MAX_BITS + 1] = {0};
    for (unsigned symbol = 0; symbol < SYMBOLS; symbol++) {
        unsigned len = lengths[symbol];
        if (len == 0)
            continue;
        unsigned nth = used[len]++;
        code->by_code[code->index[len] + nth] = (uint16_t)symbol;
        if (len > QUICK_BITS)
            continue;
        unsigned shift = QUICK_BITS - len, from = (code->first[len] + nth) << shift;
        for (unsigned i = 0; i < 1u << shift; i++)
            code->quick[from + i] = (uint16_t)(symbol << 4 | len);
    }
    return 0;
}

/* The next symbol, or ETWATCH_EFORMAT (no such code), ETWATCH_ETRUNC. */
static int read_symbol(struct bits *b, const struct code *code)
{
    unsigned quick = code->quick[b->next >> (32 - QUICK_BITS)];
    if (quick != 0)
        return consume(b, (int)(quick & 15)) ? (int)(quick >> 4) : ETWATCH_ETRUNC;
    for (unsigned len = QUICK_BITS + 1; len <= MAX_BITS; len++) {
        uint32_t nth = (b->next >> (32 - len)) - code->first[len];
        if (nth < code->count[len])
            return consume(b, (int)len) ? code->by_code[code->index[len] + nth] : ETWATCH_ETRUNC;
    }
    return b->real < MAX_BITS ? ETWATCH_ETRUNC : ETWATCH_EFORMAT;
}

/* The length of a match that does not fit into its symbol, minus MIN_MATCH. */
static int read_length(struct bits *b, size_t *ret_len)
{
    if (b->in == b->end)
        return ETWATCH_ETRUNC;
    size_t len = *b->in++;
    if (len < 255) {
        *ret_len = len + 15;
        return 0;
    }
    if (b->end - b->in < 2)
        return ETWATCH_ETRUNC;
    len = ew_load_u16(b->in);
    b->in += 2;
    if (len == 0) {
        if (b->end - b->in < 4)
            return ETWATCH_ETRUNC;
        len = ew_load_u32(b->in);
        b->in += 4;
    }
    *ret_len = len;
    return len < 15 || len > INT32_MAX ? ETWATCH_EFORMAT : 0;
}

struct output {
    uint8_t *at, *begin, *end;
};

static int read_match(struct bits *b, unsigned symbol, struct output *out)
{
    size_t len = symbol & 15;
    int distance_bits = (int)(symbol - 256) >> 4;
    if (len == 15) {
        int rc = read_length(b, &len);
        if (rc < 0)
            return rc;
    }
    len += MIN_MATCH;
    size_t distance = (size_t)1 << distance_bits;
    if (distance_bits > 0)
        distance += b->next >> (32 - distance_bits);
    if (!consume(b, distance_bits))
        return ETWATCH_ETRUNC;
    if (distance > (size_t)(out->at - out->begin) || len > (size_t)(out->end - out->at))
        return ETWATCH_EFORMAT;
    for (uint8_t *stop = out->at + len; out->at < stop; out->at++)
        *out->at = *(out->at - distance);
    return 0;
}

static int read_block(struct bits *b, struct output *out)
{
    struct code code;
    if (b->end - b->in < TABLE_BYTES)
        return ETWATCH_ETRUNC;
    int rc = read_code(b->in, &code);
    b->in += TABLE_BYTES;
    begin_bits(b);
    size_t left = (size_t)(out->end - out->at);
    const uint8_t *stop = left > BLOCK_BYTES ? out->at + BLOCK_BYTES : out->end;
    while (rc >= 0 && out->at < stop) {
        rc = read_symbol(b, &code);
        if (rc >= 256)
            rc = read_match(b, (unsigned)rc, out);
        else if (rc >= 0)
            *out->at++ = (uint8_t)rc;
    }
    return rc;
}

int ew_xpress_huffman_inflate(const uint8_t *in, size_t in_size, uint8_t *out_bytes,
                              size_t out_size, size_t *ret_written)
{
    *ret_written = 0;
    if (out_size == 0)
        return 0;
    if (in_size == 0)
        return ETWATCH_ETRUNC;
    struct bits bits = {.in = in, .end = in + in_size};
    struct output out = {out_bytes, out_bytes, out_bytes + out_size};
    int rc = 0;
    while (rc >= 0 && out.at < out.end)
        rc = read_block(&bits, &out);
    *ret_written = (size_t)(out.at - out.begin);
    return rc < 0 ? rc : 0;
}
