/* SPDX-License-Identifier: MIT */
/* SHA-1 by RFC 3174: blocks of 64 bytes, mixed into five words. */
#include "base/sha1.h"

#include <string.h>

static uint32_t rotate(uint32_t value, int by)
{
    return value << by | value >> (32 - by);
}

static void mix(struct ew_sha1 *sha1)
{
    uint32_t words[80];
    for (int i = 0; i < 16; i++)
        words[i] = (uint32_t)sha1->block[4 * i] << 24 | (uint32_t)sha1->block[4 * i + 1] << 16 |
                   (uint32_t)sha1->block[4 * i + 2] << 8 | sha1->block[4 * i + 3];
    for (int i = 16; i < 80; i++)
        words[i] = rotate(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
    uint32_t a = sha1->state[0], b = sha1->state[1], c = sha1->state[2], d = sha1->state[3];
    uint32_t e = sha1->state[4];
    for (int i = 0; i < 80; i++) {
        uint32_t mixed = i < 20   ? ((b & c) | (~b & d)) + 0x5A827999
                         : i < 40 ? (b ^ c ^ d) + 0x6ED9EBA1
                         : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8F1BBCDC
                                  : (b ^ c ^ d) + 0xCA62C1D6;
        uint32_t next = rotate(a, 5) + mixed + e + words[i];
        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = next;
    }
    sha1->state[0] += a;
    sha1->state[1] += b;
    sha1->state[2] += c;
    sha1->state[3] += d;
    sha1->state[4] += e;
}

void ew_sha1_init(struct ew_sha1 *sha1)
{
    static const uint32_t first[5] = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
    memset(sha1, 0, sizeof *sha1);
    memcpy(sha1->state, first, sizeof first);
}

void ew_sha1_add(struct ew_sha1 *sha1, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < size; i++) {
        sha1->block[sha1->bytes++ % 64] = at[i];
        if (sha1->bytes % 64 == 0)
            mix(sha1);
    }
}

void ew_sha1_end(struct ew_sha1 *sha1, uint8_t ret_digest[20])
{
    uint64_t bits = 8 * sha1->bytes;
    uint8_t end = 0x80, zero = 0, length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    ew_sha1_add(sha1, &end, 1);
    while (sha1->bytes % 64 != 56)
        ew_sha1_add(sha1, &zero, 1);
    ew_sha1_add(sha1, length, sizeof length);
    for (int i = 0; i < 20; i++)
        ret_digest[i] = (uint8_t)(sha1->state[i / 4] >> (24 - 8 * (i % 4)));
}
