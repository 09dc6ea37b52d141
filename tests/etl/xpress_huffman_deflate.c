/* SPDX-License-Identifier: MIT */
/*
 * LZ77+Huffman of MS-XCA, compression: for each 64 KiB of input the matches are found and counted,
 * the code is computed, and then they are written. Matches end with their block, so that every
 * reader finds the next table.
 *
 * Two words are always reserved in the output, because every reader has read them before it looks
 * for a length byte; see xpress_huffman.c.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"
#include "source/etl/xpress.h"
#include "xpress_deflate.h"
#include "xpress_match.h"

enum {
    SYMBOLS = 512,
    END_SYMBOL = 256,
    MAX_BITS = 15,
    BLOCK_BYTES = 65536,
    WINDOW = 65536,
};

/* distance 0: a literal, stored in len. */
struct token {
    uint16_t distance;
    uint16_t len; /* match length minus EW_XPRESS_MIN_MATCH */
};

struct symbol {
    uint32_t weight;
    uint16_t value;
};

struct work {
    struct ew_xpress_finder finder;
    struct token tokens[BLOCK_BYTES];
    size_t token_count;
    uint32_t weights[SYMBOLS];
    uint8_t lengths[SYMBOLS];
    uint16_t codes[SYMBOLS];
    uint8_t *words[2]; /* reserved for the next words */
    uint8_t *at;
    uint32_t word;
    unsigned free_bits; /* bits used of word's 16 */
};

static unsigned distance_bits(unsigned distance)
{
    unsigned bits = 0;
    while (distance >> (bits + 1))
        bits++;
    return bits;
}

static unsigned token_symbol(struct token token)
{
    if (token.distance == 0)
        return token.len;
    return 256 + (distance_bits(token.distance) << 4) + (token.len < 15 ? token.len : 15u);
}

static void find_tokens(struct work *w, const uint8_t *in, size_t pos, size_t end)
{
    memset(w->weights, 0, sizeof w->weights);
    w->token_count = 0;
    while (pos < end) {
        struct ew_xpress_match match = ew_xpress_find(&w->finder, pos, end);
        struct token token = {0, in[pos]};
        if (match.len != 0 && match.distance < WINDOW)
            token = (struct token){(uint16_t)match.distance,
                                   (uint16_t)(match.len - EW_XPRESS_MIN_MATCH)};
        w->weights[token_symbol(token)]++;
        w->tokens[w->token_count++] = token;
        pos += token.distance ? match.len : 1;
    }
}

/* -------------------------------------------------------------------- code */

static int by_weight(const void *left, const void *right)
{
    const struct symbol *a = left, *b = right;
    if (a->weight != b->weight)
        return a->weight < b->weight ? -1 : 1;
    return a->value < b->value ? -1 : 1;
}

/*
 * Depths of a Huffman tree over count >= 2 symbols sorted by weight: leaves and inner nodes are two
 * queues that are already sorted, so the two lightest are always at their fronts.
 */
static void tree_depths(const struct symbol *sorted, unsigned count, uint16_t *depths)
{
    uint32_t weight[2 * SYMBOLS];
    uint16_t parent[2 * SYMBOLS];
    for (unsigned i = 0; i < count; i++)
        weight[i] = sorted[i].weight;
    unsigned leaf = 0, inner = count;
    for (unsigned node = count; node < 2 * count - 1; node++) {
        weight[node] = 0;
        for (int i = 0; i < 2; i++) {
            bool take_leaf = leaf < count && (inner >= node || weight[leaf] <= weight[inner]);
            unsigned taken = take_leaf ? leaf++ : inner++;
            weight[node] += weight[taken];
            parent[taken] = (uint16_t)node;
        }
    }
    depths[2 * count - 2] = 0;
    for (unsigned node = 2 * count - 2; node-- > 0;)
        depths[node] = (uint16_t)(depths[parent[node]] + 1);
}

/*
 * Depths that are too large are set to the maximum; the excess is compensated by the deepest
 * symbols that can still go down, which are the lightest.
 */
static void limit_depths(uint16_t *depths, unsigned count)
{
    uint32_t used = 0, all = 1u << MAX_BITS;
    for (unsigned i = 0; i < count; i++) {
        if (depths[i] > MAX_BITS)
            depths[i] = MAX_BITS;
        used += all >> depths[i];
    }
    for (unsigned i = 0; used > all; i = (i + 1) % count) {
        if (depths[i] < MAX_BITS) {
            used -= all >> (depths[i] + 1);
            depths[i]++;
        }
    }
    /* Undo the overcompensation of the last step: the heaviest first. */
    for (unsigned i = count; i-- > 0;) {
        while (depths[i] > 1 && used + (all >> depths[i]) <= all) {
            used += all >> depths[i];
            depths[i]--;
        }
    }
}

static void make_code(struct work *w)
{
    struct symbol sorted[SYMBOLS];
    uint16_t depths[2 * SYMBOLS];
    unsigned count = 0;
    for (unsigned i = 0; i < SYMBOLS; i++) {
        if (w->weights[i] != 0)
            sorted[count++] = (struct symbol){w->weights[i], (uint16_t)i};
    }
    /* A code with a single symbol would leave half of all codes undefined. */
    if (count == 1) {
        sorted[1] = (struct symbol){0, (uint16_t)(sorted[0].value == 0 ? 1 : 0)};
        count = 2;
    }
    qsort(sorted, count, sizeof sorted[0], by_weight);
    tree_depths(sorted, count, depths);
    limit_depths(depths, count);
    memset(w->lengths, 0, sizeof w->lengths);
    for (unsigned i = 0; i < count; i++)
        w->lengths[sorted[i].value] = (uint8_t)depths[i];
    unsigned code = 0;
    for (unsigned len = 1; len <= MAX_BITS; len++) {
        code <<= 1;
        for (unsigned i = 0; i < SYMBOLS; i++) {
            if (w->lengths[i] == len)
                w->codes[i] = (uint16_t)code++;
        }
    }
}

/* ------------------------------------------------------------------ output */

static void write_word(uint8_t *at, uint32_t word)
{
    at[0] = (uint8_t)word;
    at[1] = (uint8_t)(word >> 8);
}

static void begin_bits(struct work *w)
{
    w->words[0] = w->at;
    w->words[1] = w->at + 2;
    w->at += 4;
    w->word = 0;
    w->free_bits = 16;
}

static void put_bits(struct work *w, uint32_t bits, unsigned count)
{
    if (count <= w->free_bits) {
        w->free_bits -= count;
        w->word = w->word << count | bits;
        return;
    }
    unsigned rest = count - w->free_bits;
    write_word(w->words[0], w->word << w->free_bits | bits >> rest);
    w->words[0] = w->words[1];
    w->words[1] = w->at;
    w->at += 2;
    w->free_bits = 16 - rest;
    w->word = bits & ((1u << rest) - 1);
}

static void end_bits(struct work *w)
{
    write_word(w->words[0], w->word << w->free_bits);
    write_word(w->words[1], 0);
}

static void put_token(struct work *w, struct token token)
{
    unsigned symbol = token_symbol(token), len = token.len;
    put_bits(w, w->codes[symbol], w->lengths[symbol]);
    if (token.distance == 0)
        return;
    if (len >= 15 + 255) {
        w->at[0] = 255;
        write_word(w->at + 1, len);
        w->at += 3;
    } else if (len >= 15) {
        *w->at++ = (uint8_t)(len - 15);
    }
    unsigned bits = distance_bits(token.distance);
    put_bits(w, token.distance - (1u << bits), bits);
}

static void put_block(struct work *w, bool last)
{
    if (last)
        w->weights[END_SYMBOL]++;
    make_code(w);
    for (unsigned i = 0; i < SYMBOLS / 2; i++)
        *w->at++ = (uint8_t)(w->lengths[2 * i] | w->lengths[2 * i + 1] << 4);
    begin_bits(w);
    for (size_t i = 0; i < w->token_count; i++)
        put_token(w, w->tokens[i]);
    if (last)
        put_bits(w, w->codes[END_SYMBOL], w->lengths[END_SYMBOL]);
    end_bits(w);
}

int64_t ew_xpress_huffman_deflate(const uint8_t *in, size_t in_size, uint8_t *out)
{
    struct work *w = ew_calloc(1, sizeof *w);
    if (!w)
        return ETWATCH_ENOMEM;
    int rc = ew_xpress_finder_init(&w->finder, in, in_size, WINDOW);
    w->at = out;
    size_t pos = 0;
    bool last = false;
    while (rc == 0 && !last) {
        size_t end = in_size - pos > BLOCK_BYTES ? pos + BLOCK_BYTES : in_size;
        find_tokens(w, in, pos, end);
        last = end == in_size;
        put_block(w, last);
        pos = end;
    }
    int64_t size = rc == 0 ? w->at - out : rc;
    ew_xpress_finder_done(&w->finder);
    ew_free(w);
    return size;
}
