/* SPDX-License-Identifier: MIT */
/*
 * ExportMetricsServiceResponse: foreign bytes of a collector. Of JSON only the two members of
 * partialSuccess are looked for, at any depth: nothing else in the answer has these names.
 */
#include <string.h>

#include "base/proto.h"
#include "serve/otlp_encode.h"

static void copy_text(char *to, size_t size, const uint8_t *bytes, size_t len)
{
    if (size == 0)
        return;
    if (len >= size)
        len = size - 1;
    memcpy(to, bytes, len);
    to[len] = '\0';
}

static void read_partial(struct ew_bytes *body, uint64_t *ret_rejected, char *message, size_t size)
{
    struct ew_proto_field field;
    while (ew_proto_next(body, &field)) {
        if (field.number == 1 && field.wire == EW_PROTO_VARINT)
            *ret_rejected = field.u;
        else if (field.number == 2 && field.wire == EW_PROTO_LEN)
            copy_text(message, size, field.body.data, field.body.size);
    }
}

/* ----------------------------------------------------------------------------- JSON */

static void skip_space(struct ew_bytes *bytes)
{
    int c = ew_bytes_peek(bytes);
    while (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        ew_bytes_skip(bytes, 1);
        c = ew_bytes_peek(bytes);
    }
}

/* The text of a string without its quotes; escapes stay as they are. False: there is none. */
static bool read_string(struct ew_bytes *bytes, struct ew_span *ret_text)
{
    if (ew_bytes_peek(bytes) != '"')
        return false;
    ew_bytes_skip(bytes, 1);
    size_t begin = bytes->pos;
    for (int c = ew_bytes_peek(bytes); c != '"'; c = ew_bytes_peek(bytes)) {
        if (c < 0)
            return false;
        ew_bytes_skip(bytes, c == '\\' ? 2 : 1);
    }
    *ret_text = (struct ew_span){(const char *)bytes->data + begin, bytes->pos - begin};
    ew_bytes_skip(bytes, 1);
    return true;
}

static bool is_text(const struct ew_span *span, const char *text)
{
    return span->len == strlen(text) && memcmp(span->text, text, span->len) == 0;
}

/* A 64-bit number is a text or, from some receivers, a number. */
static void read_number(struct ew_bytes *bytes, uint64_t *ret_number)
{
    struct ew_bytes attempt = *bytes;
    if (ew_bytes_peek(&attempt) == '"')
        ew_bytes_skip(&attempt, 1);
    uint64_t number = ew_bytes_dec_u64(&attempt);
    if (ew_bytes_ok(&attempt))
        *ret_number = number;
}

static void read_json(struct ew_bytes *bytes, uint64_t *ret_rejected, char *message, size_t size)
{
    struct ew_span name, text;
    while (ew_bytes_left(bytes) > 0) {
        if (ew_bytes_peek(bytes) != '"') {
            ew_bytes_skip(bytes, 1);
            continue;
        }
        if (!read_string(bytes, &name))
            return;
        skip_space(bytes);
        if (ew_bytes_peek(bytes) != ':')
            continue;
        ew_bytes_skip(bytes, 1);
        skip_space(bytes);
        if (is_text(&name, "rejectedDataPoints"))
            read_number(bytes, ret_rejected);
        else if (is_text(&name, "errorMessage") && read_string(bytes, &text))
            copy_text(message, size, (const uint8_t *)text.text, text.len);
    }
}

void ew_otlp_read_answer(bool json, const void *bytes, size_t len, uint64_t *ret_rejected,
                         char *ret_message, size_t message_size)
{
    struct ew_bytes body;
    struct ew_proto_field field;
    *ret_rejected = 0;
    if (message_size > 0)
        ret_message[0] = '\0';
    ew_bytes_init(&body, bytes, len);
    if (json) {
        read_json(&body, ret_rejected, ret_message, message_size);
        return;
    }
    while (ew_proto_next(&body, &field))
        if (field.number == 1 && field.wire == EW_PROTO_LEN)
            read_partial(&field.body, ret_rejected, ret_message, message_size);
}
