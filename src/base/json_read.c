/* SPDX-License-Identifier: MIT */
/*
 * A value that is skipped is checked like one that is read: what follows it must be right. Depth is
 * a table of closing brackets, so that hostile input cannot exhaust the stack.
 */
#include "base/json_read.h"

#include <string.h>

#include <etwatch/etwatch.h>

static int next_byte(struct ew_bytes *in)
{
    while (ew_bytes_left(in) > 0) {
        int c = ew_bytes_peek(in);
        if (c != ' ' && c != '\t' && c != '\n' && c != '\r')
            return c;
        ew_bytes_skip(in, 1);
    }
    return -1;
}

static void unexpected(struct ew_bytes *in)
{
    ew_bytes_fail(in, ew_bytes_left(in) == 0 ? ETWATCH_ETRUNC : ETWATCH_EFORMAT);
}

char ew_jsonin_peek(struct ew_bytes *in)
{
    int c = next_byte(in);
    return c < 0 ? 0 : (char)c;
}

static bool take(struct ew_bytes *in, char wanted)
{
    if (ew_jsonin_peek(in) != wanted || !ew_bytes_ok(in)) {
        unexpected(in);
        return false;
    }
    ew_bytes_skip(in, 1);
    return true;
}

bool ew_jsonin_first(struct ew_bytes *in, char open)
{
    char close = open == '{' ? '}' : ']';
    if (!take(in, open))
        return false;
    if (ew_jsonin_peek(in) != close)
        return ew_bytes_ok(in);
    ew_bytes_skip(in, 1);
    return false;
}

bool ew_jsonin_next(struct ew_bytes *in, char close)
{
    char c = ew_jsonin_peek(in);
    if (c != ',' && c != close) {
        unexpected(in);
        return false;
    }
    ew_bytes_skip(in, 1);
    return c == ',';
}

/* --------------------------------------------------------------------------- strings */

static uint32_t hex4(struct ew_bytes *in)
{
    uint32_t value = 0;
    const uint8_t *digits = ew_bytes_take(in, 4);
    for (int i = 0; digits != NULL && i < 4; i++) {
        uint8_t c = digits[i];
        bool letter = (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
        if (!letter && (c < '0' || c > '9')) {
            ew_bytes_fail(in, ETWATCH_EFORMAT);
            return 0;
        }
        value = value << 4 | (letter ? (uint32_t)(c | 0x20) - 'a' + 10 : (uint32_t)c - '0');
    }
    return value;
}

/* \uXXXX, and the second half of a pair; a lone half becomes U+FFFD. */
static uint32_t escaped_code(struct ew_bytes *in)
{
    uint32_t code = hex4(in);
    if (code < 0xd800 || code > 0xdfff)
        return code;
    struct ew_bytes ahead = *in;
    if (code <= 0xdbff && ew_bytes_accept(&ahead, "\\u")) {
        uint32_t low = hex4(&ahead);
        if (ew_bytes_ok(&ahead) && low >= 0xdc00 && low <= 0xdfff) {
            *in = ahead;
            return 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        }
    }
    return 0xfffd;
}

static size_t encode(uint32_t code, char *to)
{
    if (code < 0x80) {
        to[0] = code == 0 ? '?' : (char)code;
        return 1;
    }
    size_t len = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const uint8_t heads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = len; i-- > 1; code >>= 6)
        to[i] = (char)(0x80 | (code & 0x3f));
    to[0] = (char)(heads[len] | code);
    return len;
}

/* One character of a string; 0: an error. */
static size_t read_char(struct ew_bytes *in, char *to)
{
    static const char escapes[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    uint8_t c = ew_bytes_u8(in);
    if (c != '\\') {
        to[0] = c == 0 ? '?' : (char)c;
        return ew_bytes_ok(in) ? 1 : 0;
    }
    c = ew_bytes_u8(in);
    if (c == 'u') {
        uint32_t code = escaped_code(in);
        return ew_bytes_ok(in) ? encode(code, to) : 0;
    }
    const char *found = c == 0 ? NULL : strchr(escapes, c);
    if (found == NULL) {
        ew_bytes_fail(in, ETWATCH_EFORMAT);
        return 0;
    }
    to[0] = values[found - escapes];
    return 1;
}

/* Without a character that was cut in the middle. */
static size_t whole(const char *text, size_t len)
{
    size_t start = len;
    while (start > 0 && ((uint8_t)text[start - 1] & 0xc0) == 0x80)
        start--;
    if (start == 0)
        return len;
    uint8_t head = (uint8_t)text[start - 1];
    size_t needed = head >= 0xf0 ? 4 : head >= 0xe0 ? 3 : head >= 0xc0 ? 2 : 1;
    return len - (start - 1) < needed ? start - 1 : len;
}

size_t ew_jsonin_text(struct ew_bytes *in, char *text, size_t size)
{
    size_t len = 0;
    bool full = false;
    if (size > 0)
        text[0] = '\0';
    if (!take(in, '"'))
        return 0;
    while (ew_bytes_ok(in) && ew_bytes_peek(in) != '"') {
        char bytes[4];
        size_t count = read_char(in, bytes);
        full = full || len + count >= size;
        if (!full && count > 0) {
            memcpy(text + len, bytes, count);
            len += count;
        }
    }
    (void)ew_bytes_u8(in);
    if (!ew_bytes_ok(in) || size == 0)
        len = 0;
    if (full && len > 0)
        len = whole(text, len);
    if (size > 0)
        text[len] = '\0';
    return len;
}

void ew_jsonin_key(struct ew_bytes *in, char *key, size_t size)
{
    (void)ew_jsonin_text(in, key, size);
    (void)take(in, ':');
}

/* --------------------------------------------------------------------------- numbers */

static bool digit_ahead(struct ew_bytes *in)
{
    int c = ew_bytes_left(in) > 0 ? ew_bytes_peek(in) : -1;
    return c >= '0' && c <= '9';
}

/* Digits are added while they fit; what does not fit counts in the exponent. */
static int read_digits(struct ew_bytes *in, uint64_t *value, int *exponent, bool fraction)
{
    int count = 0;
    for (; digit_ahead(in); count++) {
        uint64_t digit = (uint64_t)(ew_bytes_u8(in) - '0');
        if (*value < UINT64_C(100000000000000000)) {
            *value = *value * 10 + digit;
            *exponent -= fraction ? 1 : 0;
        } else {
            *exponent += fraction ? 0 : 1;
        }
    }
    if (count == 0)
        unexpected(in);
    return count;
}

/* Powers of ten up to 10^22 are exact, so ordinary numbers are rounded once. */
static double scale(double number, int exponent)
{
    for (; exponent > 22; exponent -= 22)
        number *= 1e22;
    for (; exponent < -22; exponent += 22)
        number /= 1e22;
    double power = 1;
    for (int i = exponent < 0 ? -exponent : exponent; i > 0; i--)
        power *= 10;
    return exponent < 0 ? number / power : number * power;
}

double ew_jsonin_number(struct ew_bytes *in)
{
    uint64_t value = 0, power = 0;
    int exponent = 0, unused = 0;
    (void)ew_jsonin_peek(in);
    bool negative = ew_bytes_accept(in, "-");
    (void)read_digits(in, &value, &exponent, false);
    if (ew_bytes_accept(in, "."))
        (void)read_digits(in, &value, &exponent, true);
    if (ew_bytes_accept(in, "e") || ew_bytes_accept(in, "E")) {
        bool down = ew_bytes_accept(in, "-");
        if (!down)
            (void)ew_bytes_accept(in, "+");
        (void)read_digits(in, &power, &unused, false);
        power = power > 1000 ? 1000 : power;
        exponent += down ? -(int)power : (int)power;
    }
    if (!ew_bytes_ok(in))
        return 0;
    double number = value == 0 ? 0 : scale((double)value, exponent);
    return negative ? -number : number;
}

uint64_t ew_jsonin_u64(struct ew_bytes *in)
{
    (void)ew_jsonin_peek(in);
    uint64_t value = ew_bytes_dec_u64(in);
    int c = ew_bytes_left(in) > 0 ? ew_bytes_peek(in) : -1;
    if (c == '.' || c == 'e' || c == 'E')
        ew_bytes_fail(in, ETWATCH_EFORMAT);
    return ew_bytes_ok(in) ? value : 0;
}

bool ew_jsonin_bool(struct ew_bytes *in)
{
    char c = ew_jsonin_peek(in);
    if (c == 't')
        ew_bytes_expect(in, "true");
    else
        ew_bytes_expect(in, "false");
    return ew_bytes_ok(in) && c == 't';
}

/* ---------------------------------------------------------------------------- others */

static void skip_text(struct ew_bytes *in)
{
    char none[1];
    (void)ew_jsonin_text(in, none, sizeof none);
}

static void skip_one(struct ew_bytes *in, char c)
{
    if (c == '"')
        skip_text(in);
    else if (c == 't' || c == 'f')
        (void)ew_jsonin_bool(in);
    else if (c == 'n')
        ew_bytes_expect(in, "null");
    else
        (void)ew_jsonin_number(in);
}

/* After a value: closes what ends here. Whether a value follows. */
static bool leave(struct ew_bytes *in, char *closes, unsigned *depth)
{
    while (*depth > 0 && ew_bytes_ok(in)) {
        if (ew_jsonin_next(in, closes[*depth - 1])) {
            if (closes[*depth - 1] == '}') {
                skip_text(in);
                (void)take(in, ':');
            }
            return ew_bytes_ok(in);
        }
        --*depth;
    }
    return false;
}

void ew_jsonin_skip(struct ew_bytes *in)
{
    char closes[EW_JSON_DEPTH_MAX];
    unsigned depth = 0;
    bool more = true;
    while (more && ew_bytes_ok(in)) {
        char c = ew_jsonin_peek(in);
        if (c != '{' && c != '[') {
            skip_one(in, c);
        } else if (depth == EW_JSON_DEPTH_MAX) {
            ew_bytes_fail(in, ETWATCH_EFORMAT);
        } else if (ew_jsonin_first(in, c)) {
            closes[depth++] = c == '{' ? '}' : ']';
            if (c == '{') {
                skip_text(in);
                (void)take(in, ':');
            }
            continue; /* with its first value */
        }
        more = leave(in, closes, &depth);
    }
}
