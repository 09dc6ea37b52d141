/* SPDX-License-Identifier: MIT */
/*
 * Plain LZ77 of MS-XCA, compression: greedy. The flags of 32 literals and matches precede them, so
 * space is reserved and filled once the last of them is known; the lengths of two matches share a
 * byte in the same way. The unused flags at the end are ones, as the format requires.
 */
#include <stdbool.h>

#include <etwatch/etwatch.h>

#include "source/etl/xpress.h"
#include "xpress_deflate.h"
#include "xpress_match.h"

enum { WINDOW = 8192 };

struct output {
    uint8_t *at;
    uint8_t *flags_at;
    uint8_t *half; /* length byte with a free upper nibble, or NULL */
    uint32_t flags;
    unsigned flag_count;
};

size_t ew_xpress_bound(size_t size)
{
    /* Plain: 4 bytes of flags for 32 literals. Huffman: 256 bytes for each 64 KiB, at most 15 bits
     * per literal, and the words that are always written at the end. */
    return 2 * size + (size / 65536 + 1) * 264 + 16;
}

static void put_u16(struct output *out, unsigned value)
{
    *out->at++ = (uint8_t)value;
    *out->at++ = (uint8_t)(value >> 8);
}

static void write_flags(struct output *out, uint32_t flags)
{
    for (int i = 0; i < 4; i++)
        out->flags_at[i] = (uint8_t)(flags >> (8 * i));
}

static void begin_flags(struct output *out)
{
    out->flags_at = out->at;
    out->at += 4;
    out->flags = 0;
    out->flag_count = 0;
}

static void add_flag(struct output *out, unsigned flag)
{
    out->flags = out->flags << 1 | flag;
    if (++out->flag_count == 32) {
        write_flags(out, out->flags);
        begin_flags(out);
    }
}

static void put_nibble(struct output *out, unsigned nibble)
{
    if (out->half) {
        *out->half = (uint8_t)(*out->half | nibble << 4);
        out->half = NULL;
        return;
    }
    out->half = out->at;
    *out->at++ = (uint8_t)nibble;
}

static void put_match(struct output *out, size_t distance, size_t length)
{
    uint32_t len = (uint32_t)(length - EW_XPRESS_MIN_MATCH);
    unsigned short_len = len < 7 ? len : 7;
    put_u16(out, (unsigned)(distance - 1) << 3 | short_len);
    if (len < 7)
        return;
    if (len < 7 + 15) {
        put_nibble(out, len - 7);
        return;
    }
    put_nibble(out, 15);
    if (len < 7 + 15 + 255) {
        *out->at++ = (uint8_t)(len - 7 - 15);
        return;
    }
    *out->at++ = 255;
    if (len <= UINT16_MAX) {
        put_u16(out, len);
        return;
    }
    put_u16(out, 0);
    put_u16(out, len & 0xFFFF);
    put_u16(out, len >> 16);
}

int64_t ew_xpress_deflate(const uint8_t *in, size_t in_size, uint8_t *out_bytes)
{
    struct ew_xpress_finder finder;
    int rc = ew_xpress_finder_init(&finder, in, in_size, WINDOW);
    if (rc < 0)
        return rc;
    struct output out = {.at = out_bytes};
    begin_flags(&out);
    for (size_t pos = 0; pos < in_size;) {
        struct ew_xpress_match match = ew_xpress_find(&finder, pos, in_size);
        if (match.len != 0) {
            put_match(&out, match.distance, match.len);
            pos += match.len;
        } else {
            *out.at++ = in[pos++];
        }
        /* After its bytes: the next flags may begin right after them. */
        add_flag(&out, match.len != 0);
    }
    unsigned unused = 32 - out.flag_count;
    uint64_t flags = (uint64_t)out.flags << unused | (((uint64_t)1 << unused) - 1);
    write_flags(&out, (uint32_t)flags);
    ew_xpress_finder_done(&finder);
    return out.at - out_bytes;
}
