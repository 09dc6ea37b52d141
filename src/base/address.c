/* SPDX-License-Identifier: MIT */
/* Formats addresses without system functions, which differ between systems. */
#include "base/address.h"

#include <stdbool.h>
#include <stdio.h>

size_t ew_ipv4_text(const uint8_t address[4], char ret_text[EW_IPV4_TEXT])
{
    int len = snprintf(ret_text, EW_IPV4_TEXT, "%u.%u.%u.%u", address[0], address[1], address[2],
                       address[3]);
    return len > 0 ? (size_t)len : 0;
}

static bool is_zero(const uint8_t address[16], unsigned group)
{
    return address[2 * group] == 0 && address[2 * group + 1] == 0;
}

/* Start of the longest run of zero groups (the first of several); its length is 0 if no run has
 * two.
 */
static unsigned longest_zeros(const uint8_t address[16], unsigned *ret_len)
{
    unsigned best = 0, best_len = 1;
    for (unsigned i = 0, run = 0; i < 8; i++) {
        run = is_zero(address, i) ? run + 1 : 0;
        if (run > best_len) {
            best_len = run;
            best = i + 1 - run;
        }
    }
    *ret_len = best_len > 1 ? best_len : 0;
    return best;
}

static size_t put_group(unsigned value, char *to)
{
    static const char digits[] = "0123456789abcdef";
    size_t len = 0;
    for (int shift = 12; shift >= 0; shift -= 4)
        if (len || value >> shift || shift == 0)
            to[len++] = digits[value >> shift & 15];
    return len;
}

size_t ew_ipv6_text(const uint8_t address[16], char ret_text[EW_IPV6_TEXT])
{
    unsigned zeros_len, zeros = longest_zeros(address, &zeros_len);
    size_t len = 0;
    for (unsigned i = 0; i < 8;) {
        if (zeros_len && i == zeros) {
            ret_text[len++] = ':';
            ret_text[len++] = ':';
            i += zeros_len;
            continue;
        }
        if (len && ret_text[len - 1] != ':')
            ret_text[len++] = ':';
        len += put_group((unsigned)(address[2 * i] << 8 | address[2 * i + 1]), ret_text + len);
        i++;
    }
    ret_text[len] = '\0';
    return len;
}
