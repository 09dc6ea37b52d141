/* SPDX-License-Identifier: MIT */
/*
 * Decompression of plain LZ77 of MS-XCA. Most of the time of reading a compressed recording is
 * spent here.
 *
 * The stream: 32 flags in a word, first flag in the top bit; flag 0 is a literal byte, flag 1 a
 * match of two bytes (length below 7 in 3 bits, distance in 13), followed by longer lengths in
 * nibbles (two matches share a byte), bytes and words.
 *
 * Two loops share the same state. The fast one runs while a whole step (a run of literals and a
 * match) cannot leave either buffer, so it checks once per step and copies in blocks of 16 bytes
 * that may write garbage beyond their end; the next step overwrites it. The exact one handles the
 * rest byte by byte with every read and write checked.
 */
#include "source/etl/xpress.h"

#include <stdbool.h>
#include <string.h>

#include <etwatch/etwatch.h>

#include "base/bytes.h"

enum {
    BLOCK = 16,
    MIN_MATCH = 3,
    /* Bytes that one fast step may read: 32 literals in two blocks, a match with every extension
     * (2 + 1 + 1 + 2 + 4 bytes), the next flags. */
    IN_MARGIN = 32 + 10 + 4,
    /* Bytes that it may write without another check: 32 literals, then blocks of a match: two,
     * or the four that expand a short distance and one more. */
    OUT_MARGIN = 32 + 6 * BLOCK,
    /* A match up to this length needs no further check. */
    SHORT_MATCH = 2 * BLOCK,
};

/* Set in the flags below the last real one: when only it is left, the next word must be read. */
#define SENTINEL ((uint64_t)1 << 31)
#define NO_FLAGS ((uint64_t)1 << 63)

struct state {
    const uint8_t *in, *in_end;
    uint8_t *out, *out_begin, *out_end;
    const uint8_t *half; /* a length byte with an unused upper nibble, or NULL */
    uint64_t flags;      /* next flag in the top bit */
};

static inline void copy_block(uint8_t *to, const uint8_t *from)
{
    /* Through a temporary: the two may overlap. */
    uint8_t block[BLOCK];
    memcpy(block, from, BLOCK);
    memcpy(to, block, BLOCK);
}

static inline unsigned leading_zeros(uint64_t value)
{
#if defined(__GNUC__)
    return (unsigned)__builtin_clzll(value);
#else
    unsigned zeros = 0;
    for (; (value >> 63) == 0; value <<= 1)
        zeros++;
    return zeros;
#endif
}

/*
 * The 16- and 32-bit forms hold the whole length, so they could encode less than the shorter forms,
 * which is invalid. Returns a length that fits no buffer for that case and for overflow.
 */
static inline size_t wide_length(size_t len)
{
    return len < 7 + 15 || len > INT32_MAX ? SIZE_MAX / 2 : len;
}

/* ------------------------------------------------------------------- exact */

/* Reads the length after a match with all three length bits set. False: the input ends first. */
static bool read_long_length(struct state *s, size_t *ret_len)
{
    size_t len;
    if (s->half) {
        len = *s->half >> 4;
        s->half = NULL;
    } else {
        if (s->in == s->in_end)
            return false;
        s->half = s->in;
        len = *s->in++ & 15u;
    }
    *ret_len = len + 7;
    if (len < 15)
        return true;
    if (s->in == s->in_end)
        return false;
    len = *s->in++;
    *ret_len = len + 15 + 7;
    if (len < 255)
        return true;
    if (s->in_end - s->in < 2)
        return false;
    len = ew_load_u16(s->in);
    s->in += 2;
    if (len == 0) {
        if (s->in_end - s->in < 4)
            return false;
        len = ew_load_u32(s->in);
        s->in += 4;
    }
    *ret_len = wide_length(len);
    return true;
}

/* Byte by byte, because a match may read what it has just written. */
static int copy_exact(struct state *s, size_t distance, size_t len)
{
    if (distance > (size_t)(s->out - s->out_begin) || len > (size_t)(s->out_end - s->out))
        return ETWATCH_EFORMAT;
    for (uint8_t *end = s->out + len; s->out < end; s->out++)
        *s->out = *(s->out - distance);
    return 0;
}

static int step_exact(struct state *s)
{
    if (s->flags == NO_FLAGS) {
        if (s->in_end - s->in < 4)
            return ETWATCH_ETRUNC;
        s->flags = (uint64_t)ew_load_u32(s->in) << 32 | SENTINEL;
        s->in += 4;
    }
    bool is_match = s->flags >> 63;
    s->flags <<= 1;
    if (!is_match) {
        if (s->in == s->in_end)
            return ETWATCH_ETRUNC;
        *s->out++ = *s->in++;
        return 0;
    }
    if (s->in_end - s->in < 2)
        return ETWATCH_ETRUNC;
    unsigned match = ew_load_u16(s->in);
    s->in += 2;
    size_t len = match & 7u;
    if (len == 7 && !read_long_length(s, &len))
        return ETWATCH_ETRUNC;
    return copy_exact(s, (size_t)(match >> 3) + 1, len + MIN_MATCH);
}

/* -------------------------------------------------------------------- fast */

/* Like read_long_length, with the margin already checked. The next nibble is unpredictable, so
 * it is computed without a branch. */
static inline size_t fast_long_length(const uint8_t **in, const uint8_t **half)
{
    const uint8_t *p = *in, *kept = *half;
    const uint8_t *at = kept ? kept : p;
    size_t len = (size_t)(*at >> (kept ? 4 : 0)) & 15u;
    *half = kept ? NULL : p;
    p += kept == NULL;
    if (len == 15) {
        len = 15u + *p++;
        if (len == 15 + 255) {
            len = ew_load_u16(p);
            p += 2;
            if (len == 0) {
                len = ew_load_u32(p);
                p += 4;
            }
            *in = p;
            return wide_length(len);
        }
    }
    *in = p;
    return len + 7;
}

/* A match that overlaps its output or is longer than the margin. False: past the end. */
static bool copy_long(uint8_t *out, uint8_t *out_end, size_t distance, size_t len)
{
    if (len > (size_t)(out_end - out))
        return false;
    uint8_t *end = out + len;
    const uint8_t *from = out - distance;
    if ((size_t)(out_end - end) < OUT_MARGIN) {
        while (out < end)
            *out++ = *from++;
        return true;
    }
    /* Each block doubles the pattern: the copied bytes are part of the next copy. */
    while ((size_t)(out - from) < BLOCK) {
        size_t gap = (size_t)(out - from);
        copy_block(out, from);
        out += gap;
    }
    for (; out < end; out += BLOCK, from += BLOCK)
        copy_block(out, from);
    return true;
}

static int run_fast(struct state *s)
{
    const uint8_t *in = s->in, *in_stop = s->in_end - IN_MARGIN, *half = s->half;
    uint8_t *out = s->out, *out_stop = s->out_end - OUT_MARGIN;
    uint64_t flags = s->flags;
    int rc = 0;
    while (in <= in_stop && out <= out_stop) {
        unsigned literals = leading_zeros(flags);
        copy_block(out, in);
        if (literals > BLOCK)
            copy_block(out + BLOCK, in + BLOCK);
        in += literals;
        out += literals;
        flags <<= literals;
        if (flags == NO_FLAGS) {
            flags = (uint64_t)ew_load_u32(in) << 32 | SENTINEL;
            in += 4;
            continue;
        }
        unsigned match = ew_load_u16(in);
        size_t len = match & 7u, distance = (size_t)(match >> 3) + 1;
        flags <<= 1;
        in += 2;
        if (len == 7)
            len = fast_long_length(&in, &half);
        len += MIN_MATCH;
        rc = distance > (size_t)(out - s->out_begin) ? ETWATCH_EFORMAT : 0;
        if (rc < 0)
            break;
        if (distance >= BLOCK && len <= SHORT_MATCH) {
            copy_block(out, out - distance);
            copy_block(out + BLOCK, out + BLOCK - distance);
        } else if (!copy_long(out, s->out_end, distance, len)) {
            rc = ETWATCH_EFORMAT;
            break;
        }
        out += len;
    }
    s->in = in;
    s->half = half;
    s->out = out;
    s->flags = flags;
    return rc;
}

int ew_xpress_inflate(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size,
                      size_t *ret_written)
{
    *ret_written = 0;
    if (out_size == 0)
        return 0;
    if (in_size == 0)
        return ETWATCH_ETRUNC;
    struct state s = {.in = in,
                      .in_end = in + in_size,
                      .out = out,
                      .out_begin = out,
                      .out_end = out + out_size,
                      .flags = NO_FLAGS};
    int rc = 0;
    if (in_size >= IN_MARGIN && out_size >= OUT_MARGIN)
        rc = run_fast(&s);
    while (rc == 0 && s.out < s.out_end)
        rc = step_exact(&s);
    *ret_written = (size_t)(s.out - out);
    return rc;
}
