/* SPDX-License-Identifier: MIT */
/* Conversion of GUIDs to text and back. */
#include "decode/guid.h"

/* Maps each pair of digits to its byte on disk. */
static const uint8_t byte_order[16] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};

static bool dash_before(unsigned byte)
{
    return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

void ew_guid_text(const uint8_t guid[16], char ret_text[EW_GUID_TEXT])
{
    static const char digits[] = "0123456789abcdef";
    char *at = ret_text;
    for (unsigned i = 0; i < 16; i++) {
        uint8_t byte = guid[byte_order[i]];
        if (dash_before(i))
            *at++ = '-';
        *at++ = digits[byte >> 4];
        *at++ = digits[byte & 15];
    }
    *at = '\0';
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

bool ew_guid_parse(const char *text, size_t len, uint8_t ret_guid[16])
{
    if (len == EW_GUID_TEXT + 1 && text[0] == '{' && text[len - 1] == '}') {
        text++;
        len -= 2;
    }
    if (len != EW_GUID_TEXT - 1)
        return false;
    for (unsigned i = 0; i < 16; i++) {
        if (dash_before(i) && *text++ != '-')
            return false;
        int high = digit(text[0]), low = digit(text[1]);
        if (high < 0 || low < 0)
            return false;
        ret_guid[byte_order[i]] = (uint8_t)(high << 4 | low);
        text += 2;
    }
    return true;
}
