/* SPDX-License-Identifier: MIT */
/*
 * Owns output that is waiting to be written. Invariant: the write function receives only whole
 * lines, because it is called from ew_buf_end_line and ew_buf_flush alone; so a reader of the
 * output finds complete lines, even if this process is killed between two writes.
 *
 * One growing block instead of stdio: a batch of samples becomes one write, numbers need no format
 * string, and the locale has no effect.
 */
#include "base/buf.h"

#include <string.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"
#include "base/utf8.h"

enum { FIRST_SIZE = 4096, DEFAULT_MAX = 1 << 20 };

void ew_buf_init(struct ew_buf *buf, size_t max, ew_buf_write write, void *ctx)
{
    *buf = (struct ew_buf){
        .max = max == 0 ? DEFAULT_MAX : max,
        .write = write,
        .ctx = ctx,
    };
    buf->flush_at = buf->max / 2;
}

void ew_buf_done(struct ew_buf *buf)
{
    ew_free(buf->data);
    *buf = (struct ew_buf){0};
}

bool ew_buf_reserve(struct ew_buf *buf, size_t extra)
{
    if (buf->error != 0)
        return false;
    if (extra <= buf->size - buf->len)
        return true;
    if (extra > buf->max - buf->len) {
        buf->error = ETWATCH_ELIMIT;
        return false;
    }
    size_t size = buf->size == 0 ? FIRST_SIZE : buf->size;
    while (size < buf->len + extra)
        size *= 2;
    if (size > buf->max)
        size = buf->max;
    char *data = ew_realloc_array(buf->data, size, 1);
    if (data == NULL) {
        buf->error = ETWATCH_ENOMEM;
        return false;
    }
    buf->data = data;
    buf->size = size;
    return true;
}

int ew_buf_flush(struct ew_buf *buf)
{
    if (buf->error == 0 && buf->len > 0 && buf->write != NULL) {
        int rc = buf->write(buf->ctx, buf->data, buf->len);
        if (rc < 0)
            buf->error = rc;
        buf->len = 0;
    }
    return buf->error;
}

void ew_buf_end_line(struct ew_buf *buf)
{
    if (buf->len >= buf->flush_at && buf->write != NULL)
        (void)ew_buf_flush(buf);
}

void ew_buf_bytes(struct ew_buf *buf, const void *bytes, size_t len)
{
    if (len > 0 && ew_buf_reserve(buf, len)) {
        memcpy(buf->data + buf->len, bytes, len);
        buf->len += len;
    }
}

void ew_buf_text(struct ew_buf *buf, const char *text)
{
    ew_buf_bytes(buf, text, strlen(text));
}

void ew_buf_char(struct ew_buf *buf, char c)
{
    if (ew_buf_reserve(buf, 1))
        buf->data[buf->len++] = c;
}

void ew_buf_repeat(struct ew_buf *buf, char c, size_t count)
{
    if (count > 0 && ew_buf_reserve(buf, count)) {
        memset(buf->data + buf->len, c, count);
        buf->len += count;
    }
}

static const char digit_pairs[] = "00010203040506070809"
                                  "10111213141516171819"
                                  "20212223242526272829"
                                  "30313233343536373839"
                                  "40414243444546474849"
                                  "50515253545556575859"
                                  "60616263646566676869"
                                  "70717273747576777879"
                                  "80818283848586878889"
                                  "90919293949596979899";

static unsigned count_digits(uint64_t value)
{
    static const uint64_t powers[] = {
        0,
        10,
        100,
        1000,
        10000,
        100000,
        1000000,
        10000000,
        100000000,
        1000000000,
        10000000000,
        100000000000,
        1000000000000,
        10000000000000,
        100000000000000,
        1000000000000000,
        10000000000000000,
        100000000000000000,
        1000000000000000000,
        10000000000000000000u,
    };
    /* 1233 / 4096 is a little more than log10(2): the guess is right or one too many. */
    unsigned bits = 64 - (unsigned)__builtin_clzll(value | 1);
    unsigned guess = bits * 1233 >> 12;
    return guess + (value >= powers[guess] || guess == 0);
}

char *ew_raw_u64(char *at, uint64_t value)
{
    char *end = at + count_digits(value);
    char *to = end;
    while (value >= 100) {
        to -= 2;
        memcpy(to, digit_pairs + 2 * (value % 100), 2);
        value /= 100;
    }
    if (value >= 10)
        memcpy(to - 2, digit_pairs + 2 * value, 2);
    else
        to[-1] = (char)('0' + value);
    return end;
}

void ew_buf_u64(struct ew_buf *buf, uint64_t value)
{
    if (ew_buf_reserve(buf, EW_U64_DIGITS))
        ew_buf_take(buf, ew_raw_u64(ew_buf_end(buf), value));
}

void ew_buf_i64(struct ew_buf *buf, int64_t value)
{
    if (value < 0)
        ew_buf_char(buf, '-');
    ew_buf_u64(buf, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

/* |value| * power, rounded; false if it is not a number or too large. */
static bool scale(double value, uint64_t power, uint64_t *ret_scaled)
{
    double scaled = (value < 0 ? -value : value) * (double)power;
    if (!(scaled < 9.2e18)) /* also rejects NaN */
        return false;
    uint64_t whole = (uint64_t)scaled;
    *ret_scaled = whole + (scaled - (double)whole >= 0.5);
    return true;
}

bool ew_buf_fixed(struct ew_buf *buf, double value, unsigned decimals)
{
    static const uint64_t powers[] = {1,      10,      100,      1000,      10000,
                                      100000, 1000000, 10000000, 100000000, 1000000000};
    uint64_t scaled;
    if (decimals >= sizeof powers / sizeof powers[0] || !scale(value, powers[decimals], &scaled))
        return false;
    if (value < 0 && scaled != 0)
        ew_buf_char(buf, '-');
    ew_buf_u64(buf, scaled / powers[decimals]);
    if (decimals == 0)
        return true;
    char fraction[EW_U64_DIGITS];
    /* A one in front keeps the leading zeros. */
    char *end = ew_raw_u64(fraction, powers[decimals] + scaled % powers[decimals]);
    fraction[0] = '.';
    ew_buf_bytes(buf, fraction, (size_t)(end - fraction));
    return true;
}

char *ew_raw_fixed3(char *at, double value)
{
    uint64_t scaled;
    if (!scale(value, 1000, &scaled))
        return NULL;
    if (value < 0 && scaled != 0)
        *at++ = '-';
    at = ew_raw_u64(at, scaled / 1000);
    char *end = ew_raw_u64(at, 1000 + scaled % 1000);
    *at = '.';
    return end;
}

/* -------------------------------------------------------------------- text */

static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */

static bool plain_json(unsigned char c)
{
    return c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
}

#define EACH(byte) ((uint64_t)0x0101010101010101u * (byte))

/* True if all eight bytes are plain: no high bit, not below 0x20, not 0x7F, a quote or `special`. A
 * borrow between bytes may reject a plain block, but never accept a mixed one. */
static inline bool plain_block(const char *text, unsigned char special)
{
    uint64_t block, quote, other;
    memcpy(&block, text, sizeof block);
    quote = block ^ EACH('"');
    other = block ^ EACH(special);
    uint64_t odd =
        block | (block + EACH(1)) | (block - EACH(0x20)) | (quote - EACH(1)) | (other - EACH(1));
    return (odd & EACH(0x80)) == 0;
}

static char *json_escape(char *at, uint32_t code)
{
    static const char hex[] = "0123456789abcdef";
    static const char letters[0x20] = {
        ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    *at++ = '\\';
    if (code == '"' || code == '\\') {
        *at++ = (char)code;
    } else if (code < 0x20 && letters[code] != 0) {
        *at++ = letters[code];
    } else {
        *at++ = 'u';
        for (int shift = 12; shift >= 0; shift -= 4)
            *at++ = hex[code >> shift & 15];
    }
    return at;
}

/*
 * Characters that a terminal may interpret instead of showing: controls (C0, DEL, C1), line
 * separators (some readers of JSON Lines take them for line ends too), marks that change the
 * direction of text.
 */
bool ew_buf_acts_on_terminal(uint32_t code)
{
    return code < 0x20 || (code >= 0x7F && code < 0xA0) || (code >= 0x2028 && code <= 0x202E) ||
           (code >= 0x2066 && code <= 0x2069) || code == 0x200E || code == 0x200F ||
           code == 0x061C || code == EW_UTF8_INVALID;
}

char *ew_raw_json_string(char *at, const char *text, size_t len)
{
    *at++ = '"';
    for (size_t i = 0; i < len;) {
        while (len - i >= 8 && plain_block(text + i, '\\')) {
            memcpy(at, text + i, 8);
            at += 8;
            i += 8;
        }
        while (i < len && plain_json((unsigned char)text[i]))
            *at++ = text[i++];
        if (i == len)
            break;
        uint32_t code;
        size_t taken = ew_utf8_decode(text + i, len - i, &code);
        bool bad = code == EW_UTF8_INVALID;
        if (!bad && (code < 0x80 || ew_buf_acts_on_terminal(code))) {
            at = json_escape(at, code);
        } else {
            memcpy(at, bad ? replacement : text + i, bad ? sizeof replacement - 1 : taken);
            at += bad ? sizeof replacement - 1 : taken;
        }
        i += taken;
    }
    *at++ = '"';
    return at;
}

void ew_buf_json_string(struct ew_buf *buf, const char *text, size_t len)
{
    if (len > buf->max || !ew_buf_reserve(buf, EW_JSON_LEN(len)))
        buf->error = buf->error != 0 ? buf->error : ETWATCH_ELIMIT;
    else
        ew_buf_take(buf, ew_raw_json_string(ew_buf_end(buf), text, len));
}

enum { CSV_PLAIN, CSV_CHECKED, CSV_QUOTED };

static int csv_class(const char *text, size_t len)
{
    int class = CSV_PLAIN;
    if (len == 0)
        return CSV_QUOTED; /* "" is an empty text; an empty field is an unknown value */
    if (text[0] == ' ' || text[len - 1] == ' ')
        return CSV_QUOTED;
    size_t plain = 0;
    while (len - plain >= 8 && plain_block(text + plain, ','))
        plain += 8;
    if (len >= 8 && plain_block(text + len - 8, ',') && len - plain <= 8)
        return CSV_PLAIN;
    for (size_t i = plain; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 'a' && c <= 'z')
            continue;
        if (c == ',' || c == '"' || c == '\n' || c == '\r')
            return CSV_QUOTED;
        if (c >= 0x7F || c < 0x20)
            class = CSV_CHECKED;
    }
    return class;
}

/* -5, +3.25: a number that a text column holds. */
static bool is_number(const char *text, size_t len)
{
    size_t digits = 0, points = 0;
    for (size_t i = 1; i < len; i++) {
        digits += text[i] >= '0' && text[i] <= '9';
        points += text[i] == '.';
    }
    return (text[0] == '-' || text[0] == '+') && digits > 0 && points <= 1 &&
           digits + points + 1 == len && text[len - 1] != '.' && text[1] != '.';
}

/* A spreadsheet takes a cell that begins like this for a formula, which can start programs. */
static bool is_formula(const char *text, size_t len)
{
    if (len < 2)
        return false;
    switch (text[0]) {
    case '=':
    case '+':
    case '-':
    case '@':
    case '\t':
    case '\r':
        return !is_number(text, len);
    default:
        return false;
    }
}

static void csv_escape(struct ew_buf *buf, uint32_t code)
{
    static const char digits[] = "0123456789abcdef";
    char text[] = "\\u0000";
    if (code < 0x100)
        memcpy(text + 1, "x00", 4);
    size_t len = strlen(text);
    for (size_t i = len - 1; i > 1; i--, code >>= 4)
        text[i] = digits[code & 15];
    ew_buf_bytes(buf, text, len);
}

void ew_buf_csv_field(struct ew_buf *buf, const char *text, size_t len)
{
    int class = csv_class(text, len);
    bool formula = !buf->csv_raw && is_formula(text, len);
    if (class == CSV_QUOTED)
        ew_buf_char(buf, '"');
    if (formula)
        ew_buf_char(buf, '\'');
    if (class == CSV_PLAIN) {
        ew_buf_bytes(buf, text, len);
        return;
    }
    for (size_t i = 0; i < len;) {
        uint32_t code;
        size_t taken = ew_utf8_decode(text + i, len - i, &code);
        bool escaped =
            !buf->csv_raw && ew_buf_acts_on_terminal(code) && code != '\n' && code != '\t';
        if (code == EW_UTF8_INVALID)
            ew_buf_bytes(buf, replacement, sizeof replacement - 1);
        else if (escaped)
            csv_escape(buf, code);
        else
            ew_buf_bytes(buf, text + i, taken);
        if (code == '"')
            ew_buf_char(buf, '"');
        i += taken;
    }
    if (class == CSV_QUOTED)
        ew_buf_char(buf, '"');
}

/* Length of the printable ASCII at the beginning of a text: one column per byte. */
static size_t printable_len(const char *text, size_t len)
{
    size_t i = 0;
    while (i < len && text[i] >= 0x20 && text[i] < 0x7F)
        i++;
    return i;
}

size_t ew_buf_screen(struct ew_buf *buf, const char *text, size_t len, size_t columns)
{
    size_t used = 0;
    for (size_t i = 0; i < len;) {
        size_t run = printable_len(text + i, len - i);
        /* A run that does not fit with room for the mark of a cut goes character by character. */
        if (run > 0 && used + run < columns + (i + run == len)) {
            ew_buf_bytes(buf, text + i, run);
            used += run;
            i += run;
            continue;
        }
        uint32_t code;
        size_t taken = ew_utf8_decode(text + i, len - i, &code);
        bool bad = ew_buf_acts_on_terminal(code);
        size_t wide = bad ? 1 : ew_utf8_columns(code);
        bool last = i + taken == len;
        if (used + wide > columns || (used + wide == columns && !last)) {
            if (used < columns) {
                ew_buf_char(buf, '+');
                used++;
            }
            break;
        }
        if (bad)
            ew_buf_char(buf, '?');
        else
            ew_buf_bytes(buf, text + i, taken);
        used += wide;
        i += taken;
    }
    return used;
}
