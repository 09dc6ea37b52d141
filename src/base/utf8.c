/* SPDX-License-Identifier: MIT */
/*
 * Decodes UTF-8 by the table of well-formed sequences of the Unicode standard (table 3-7): the
 * second byte alone excludes overlong forms, surrogates and values beyond the code space, so
 * decoded values need no further check.
 */
#include "base/utf8.h"

static int continues(unsigned char c)
{
    return (c & 0xC0u) == 0x80u;
}

/* Length of a sequence with these first two bytes, 0 if invalid. */
static size_t sequence_len(unsigned char first, unsigned char second)
{
    if (first >= 0xC2 && first <= 0xDF)
        return continues(second) ? 2 : 0;
    if (first >= 0xE0 && first <= 0xEF) {
        unsigned char low = first == 0xE0 ? 0xA0 : 0x80;
        unsigned char high = first == 0xED ? 0x9F : 0xBF;
        return second >= low && second <= high ? 3 : 0;
    }
    if (first >= 0xF0 && first <= 0xF4) {
        unsigned char low = first == 0xF0 ? 0x90 : 0x80;
        unsigned char high = first == 0xF4 ? 0x8F : 0xBF;
        return second >= low && second <= high ? 4 : 0;
    }
    return 0;
}

size_t ew_utf8_decode(const char *text, size_t len, uint32_t *ret_code)
{
    const unsigned char *byte = (const unsigned char *)text;

    if (byte[0] < 0x80) {
        *ret_code = byte[0];
        return 1;
    }
    size_t need = len < 2 ? 0 : sequence_len(byte[0], byte[1]);
    *ret_code = EW_UTF8_INVALID;
    if (need == 0 || need > len)
        return 1;
    uint32_t code = byte[0] & (0x7Fu >> need);
    for (size_t i = 1; i < need; i++) {
        if (!continues(byte[i]))
            return 1;
        code = code << 6 | (byte[i] & 0x3Fu);
    }
    *ret_code = code;
    return need;
}

bool ew_utf8_is_valid(const char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        uint32_t code;
        i += ew_utf8_decode(text + i, len - i, &code);
        if (code == EW_UTF8_INVALID)
            return false;
    }
    return true;
}

struct range {
    uint32_t first, last;
};

static int within(const struct range *ranges, size_t count, uint32_t code)
{
    for (size_t i = 0; i < count; i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return 1;
    return 0;
}

unsigned ew_utf8_columns(uint32_t code)
{
    /* Whole blocks, not the full property tables: a name that is one column off in a rare script
     * does less harm than a table of 100 KB. */
    static const struct range zero[] = {
        {0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x064B, 0x065F},
        {0x200B, 0x200F}, {0x202A, 0x202E}, {0x2060, 0x206F}, {0x20D0, 0x20FF},
        {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF},
    };
    static const struct range wide[] = {
        {0x1100, 0x115F}, {0x2E80, 0x303E},   {0x3041, 0xA4CF},   {0xA960, 0xA97F},
        {0xAC00, 0xD7A3}, {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},
        {0xFFE0, 0xFFE6}, {0x1F300, 0x1F64F}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD},
    };
    if (code < 0x300)
        return 1;
    if (within(zero, sizeof zero / sizeof zero[0], code))
        return 0;
    return within(wide, sizeof wide / sizeof wide[0], code) ? 2 : 1;
}
