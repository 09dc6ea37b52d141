/* SPDX-License-Identifier: MIT */
/*
 * Any bytes through the three text writers. The oracles are independent of the writers: the JSON
 * string must be one closed string of printable, valid UTF-8 on one line; the CSV field must be
 * read back as one field; the screen text must have no control character and no more columns than
 * requested.
 */
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "fuzz.h"

static void check_valid_utf8(const struct ew_buf *buf, int control_allowed)
{
    for (size_t i = 0; i < buf->len;) {
        uint32_t code;
        i += ew_utf8_decode(buf->data + i, buf->len - i, &code);
        require(code != EW_UTF8_INVALID, "output is UTF-8");
        require(control_allowed || (code >= 0x20 && code != 0x7F), "no control character");
    }
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
    check_valid_utf8(buf, 0);
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
    for (size_t i = 0; i < buf->len; i++)
        require((unsigned char)buf->data[i] >= 0x20 || buf->data[i] == '\n' || buf->data[i] == '\t',
                "no control character");
    require(buf->len < 2 || strchr("=@\t", buf->data[0]) == NULL, "no formula");
    check_valid_utf8(buf, 1);
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
    check_valid_utf8(&buf, 0);
    ew_buf_done(&buf);
    return 0;
}
