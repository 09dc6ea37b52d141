/* SPDX-License-Identifier: MIT */
/*
 * UTF-16LE to UTF-8. One pass, no table, and a fast path for ASCII, which is nearly all text in
 * traces. Reads byte by byte, because strings in payloads are not aligned.
 */
#include "base/utf16.h"

static uint32_t unit_at(const uint8_t *bytes)
{
    return (uint32_t)(bytes[0] | bytes[1] << 8);
}

size_t ew_utf16_len(const uint8_t *bytes, size_t len)
{
    size_t end = len & ~(size_t)1;
    for (size_t i = 0; i < end; i += 2)
        if (bytes[i] == 0 && bytes[i + 1] == 0)
            return i;
    return end;
}

/* Decodes the character at `bytes` (at least one unit); returns its length in bytes. */
static size_t decode(const uint8_t *bytes, size_t len, uint32_t *ret_code)
{
    uint32_t unit = unit_at(bytes);
    *ret_code = unit;
    if (unit < 0xD800 || unit > 0xDFFF)
        return 2;
    if (unit <= 0xDBFF && len >= 4) {
        uint32_t low = unit_at(bytes + 2);
        if (low >= 0xDC00 && low <= 0xDFFF) {
            *ret_code = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
            return 4;
        }
    }
    *ret_code = 0xFFFD;
    return 2;
}

static size_t encoded_len(uint32_t code)
{
    return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

static void encode(uint32_t code, size_t len, char *at)
{
    static const uint8_t lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = len - 1; i > 0; i--) {
        at[i] = (char)(0x80 | (code & 0x3F));
        code >>= 6;
    }
    at[0] = (char)(lead[len] | code);
}

size_t ew_utf16_to_utf8(const uint8_t *bytes, size_t len, char *buffer, size_t size)
{
    size_t used = 0;
    len &= ~(size_t)1;
    for (size_t i = 0; i < len;) {
        if (bytes[i] < 0x80 && bytes[i + 1] == 0) {
            if (used + 1 >= size)
                break;
            buffer[used++] = (char)bytes[i];
            i += 2;
            continue;
        }
        uint32_t code;
        size_t taken = decode(bytes + i, len - i, &code);
        size_t need = encoded_len(code);
        if (need >= size - used)
            break;
        encode(code, need, buffer + used);
        used += need;
        i += taken;
    }
    buffer[used] = '\0';
    return used;
}
