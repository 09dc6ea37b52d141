/* SPDX-License-Identifier: MIT */
/*
 * Any bytes through the three text writers. The oracles are independent of the writers: the JSON
 * string must be one closed string on one line; the CSV field must be read back as one field that
 * no spreadsheet takes for a formula; the screen text must have no more columns than requested. All
 * of them must be valid UTF-8 without a character that a terminal interprets.
 */
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "fuzz.h"

/* Ranges of characters that a terminal interprets: controls, separators, marks of direction. */
static const uint32_t refused[][2] = {{0x00, 0x1F},     {0x7F, 0x9F},     {0x61C, 0x61C},
                                      {0x200E, 0x200F}, {0x2028, 0x202E}, {0x2066, 0x2069}};

static void check_shown_as_it_is(const struct ew_buf *buf, const char *allowed)
{
    for (size_t i = 0; i < buf->len;) {
        uint32_t code;
        i += ew_utf8_decode(buf->data + i, buf->len - i, &code);
        require(code != EW_UTF8_INVALID, "output is UTF-8");
        if (code != 0 && code < 0x80 && strchr(allowed, (int)code) != NULL)
            continue;
        for (size_t k = 0; k < sizeof refused / sizeof refused[0]; k++)
            require(code < refused[k][0] || code > refused[k][1],
                    "no character that a terminal interprets");
    }
}

/* A cell that a spreadsheet computes: it begins with one of these and is no plain number. */
static int is_formula(const char *text, size_t len)
{
    size_t points = 0, i = text[0] == '+' || text[0] == '-';
    if (len < 2 || text[0] == '\0' || strchr("=+-@\t\r", text[0]) == NULL)
        return 0;
    if (i == 0 || text[1] == '.' || text[len - 1] == '.')
        return 1;
    for (; i < len; i++) {
        points += text[i] == '.';
        if ((text[i] < '0' || text[i] > '9') && (text[i] != '.' || points > 1))
            return 1;
    }
    return 0;
}

static void check_json(const struct ew_buf *buf)
{
    size_t i = 1;
    require(buf->len >= 2 && buf->data[0] == '"', "a JSON string is opened");
    while (i < buf->len && buf->data[i] != '"') {
        if (buf->data[i] == '\\') {
            require(i + 1 < buf->len && strchr("\"\\bfnrtu", buf->data[i + 1]) != NULL,
                    "a known escape");
            size_t hex = buf->data[i + 1] == 'u' ? 4 : 0;
            require(i + 2 + hex <= buf->len, "a whole escape");
            for (size_t k = 0; k < hex; k++)
                require(strchr("0123456789abcdef", buf->data[i + 2 + k]) != NULL, "hex digits");
            i += 1 + hex;
        }
        i++;
    }
    require(i == buf->len - 1, "the JSON string ends where the output ends");
    check_shown_as_it_is(buf, "");
}

static void check_csv(const struct ew_buf *buf)
{
    int inside = 0;
    require(buf->len > 0, "a field is never empty");
    for (size_t i = 0; i < buf->len; i++) {
        if (buf->data[i] == '"')
            inside = !inside;
        else if (!inside)
            require(strchr(",\r\n", buf->data[i]) == NULL || buf->data[i] == '\0', "one field");
    }
    require(!inside, "quotes are closed");
    size_t quote = buf->data[0] == '"';
    require(!is_formula(buf->data + quote, buf->len - 2 * quote), "no formula");
    check_shown_as_it_is(buf, "\n\t");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct ew_buf buf;
    if (size > 65536)
        return 0;
    ew_buf_init(&buf, 0, NULL, NULL);
    ew_buf_json_string(&buf, text, size);
    check_json(&buf);
    buf.len = 0;
    ew_buf_csv_field(&buf, text, size);
    check_csv(&buf);
    buf.len = 0;
    size_t columns = size == 0 ? 8 : data[0];
    require(ew_buf_screen(&buf, text, size, columns) <= columns, "the text fits");
    check_shown_as_it_is(&buf, "");
    ew_buf_done(&buf);
    return 0;
}
