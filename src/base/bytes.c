/* SPDX-License-Identifier: MIT */
/*
 * Owns the checks of the bounded cursor. Invariant: pos <= size, and the cursor does not move once
 * error is set, so an error's offset always names the item that could not be read, not a later one.
 *
 * Sizes are compared by subtraction (size <= left), never by adding to a position that came from
 * the input: the sum could overflow.
 */
#include "base/bytes.h"

#include <assert.h>
#include <string.h>

#include <etwatch/etwatch.h>

void ew_bytes_init(struct ew_bytes *bytes, const void *data, size_t size)
{
    assert(data || size == 0);
    *bytes = (struct ew_bytes){.data = data, .size = size};
}

void ew_bytes_fail(struct ew_bytes *bytes, int error)
{
    if (bytes->error)
        return;
    bytes->error = error;
    bytes->error_offset = ew_bytes_offset(bytes);
}

const uint8_t *ew_bytes_take(struct ew_bytes *bytes, size_t size)
{
    /* Non-NULL even for 0 bytes of an empty cursor, so that NULL always means failure. */
    static const uint8_t nothing;
    if (bytes->error)
        return NULL;
    if (size > bytes->size - bytes->pos) {
        ew_bytes_fail(bytes, ETWATCH_ETRUNC);
        return NULL;
    }
    const uint8_t *taken = bytes->data ? bytes->data + bytes->pos : &nothing;
    bytes->pos += size;
    return taken;
}

void ew_bytes_align(struct ew_bytes *bytes, size_t alignment)
{
    assert(alignment != 0 && (alignment & (alignment - 1)) == 0);
    ew_bytes_skip(bytes, (alignment - (bytes->pos & (alignment - 1))) & (alignment - 1));
}

void ew_bytes_seek(struct ew_bytes *bytes, size_t pos)
{
    if (bytes->error)
        return;
    if (pos > bytes->size)
        ew_bytes_fail(bytes, ETWATCH_ETRUNC);
    else
        bytes->pos = pos;
}

void ew_bytes_sub(struct ew_bytes *bytes, size_t size, struct ew_bytes *ret_sub)
{
    uint64_t offset = ew_bytes_offset(bytes);
    const uint8_t *data = ew_bytes_take(bytes, size);
    *ret_sub = (struct ew_bytes){.data = data,
                                 .size = data ? size : 0,
                                 .base = offset,
                                 .error = bytes->error,
                                 .error_offset = bytes->error_offset};
}

/* The value of a digit, or 16 for anything else. */
static unsigned digit_value(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    if (c >= 'a' && c <= 'f')
        return (unsigned)(c - 'a') + 10;
    if (c >= 'A' && c <= 'F')
        return (unsigned)(c - 'A') + 10;
    return 16;
}

/* Reads digits from *pos on; false if there is none or the value does not fit. */
static bool read_digits(const struct ew_bytes *bytes, size_t *pos, unsigned radix,
                        uint64_t *ret_value)
{
    uint64_t value = 0;
    size_t at = *pos;
    for (; at < bytes->size; at++) {
        unsigned digit = digit_value(bytes->data[at]);
        if (digit >= radix)
            break;
        if (value > (UINT64_MAX - digit) / radix)
            return false;
        value = value * radix + digit;
    }
    if (at == *pos)
        return false;
    *pos = at;
    *ret_value = value;
    return true;
}

static uint64_t read_unsigned(struct ew_bytes *bytes, unsigned radix)
{
    uint64_t value = 0;
    size_t pos = bytes->pos;
    if (bytes->error)
        return 0;
    if (read_digits(bytes, &pos, radix, &value))
        bytes->pos = pos;
    else
        ew_bytes_fail(bytes, pos == bytes->size ? ETWATCH_ETRUNC : ETWATCH_EFORMAT);
    return value;
}

uint64_t ew_bytes_dec_u64(struct ew_bytes *bytes)
{
    return read_unsigned(bytes, 10);
}

uint64_t ew_bytes_hex_u64(struct ew_bytes *bytes)
{
    return read_unsigned(bytes, 16);
}

int64_t ew_bytes_dec_i64(struct ew_bytes *bytes)
{
    uint64_t value = 0;
    size_t pos = bytes->pos;
    if (bytes->error)
        return 0;
    bool negative = pos < bytes->size && bytes->data[pos] == '-';
    if (negative)
        pos++;
    uint64_t limit = (uint64_t)INT64_MAX + (negative ? 1u : 0u);
    bool at_end = pos == bytes->size;
    if (!read_digits(bytes, &pos, 10, &value) || value > limit) {
        ew_bytes_fail(bytes, at_end ? ETWATCH_ETRUNC : ETWATCH_EFORMAT);
        return 0;
    }
    bytes->pos = pos;
    if (!negative)
        return (int64_t)value;
    return value == limit ? INT64_MIN : -(int64_t)value;
}

void ew_bytes_skip_spaces(struct ew_bytes *bytes)
{
    if (bytes->error)
        return;
    while (bytes->pos < bytes->size &&
           (bytes->data[bytes->pos] == ' ' || bytes->data[bytes->pos] == '\t'))
        bytes->pos++;
}

void ew_bytes_skip_fields(struct ew_bytes *bytes, unsigned count)
{
    ew_bytes_skip_spaces(bytes);
    for (unsigned i = 0; i < count && !bytes->error; i++) {
        size_t start = bytes->pos;
        while (bytes->pos < bytes->size && bytes->data[bytes->pos] != ' ' &&
               bytes->data[bytes->pos] != '\t' && bytes->data[bytes->pos] != '\n')
            bytes->pos++;
        if (bytes->pos == start)
            ew_bytes_fail(bytes, ETWATCH_ETRUNC);
        ew_bytes_skip_spaces(bytes);
    }
}

bool ew_bytes_accept(struct ew_bytes *bytes, const char *text)
{
    size_t len = strlen(text);
    if (len == 0 || len > ew_bytes_left(bytes) || memcmp(bytes->data + bytes->pos, text, len) != 0)
        return false;
    bytes->pos += len;
    return true;
}

void ew_bytes_expect(struct ew_bytes *bytes, const char *text)
{
    size_t left = ew_bytes_left(bytes);
    size_t len = strlen(text);
    if (bytes->error || ew_bytes_accept(bytes, text))
        return;
    bool agrees = left < len && (left == 0 || memcmp(bytes->data + bytes->pos, text, left) == 0);
    ew_bytes_fail(bytes, agrees ? ETWATCH_ETRUNC : ETWATCH_EFORMAT);
}

/* Returns the bytes before stop_pos and skips the stop itself. */
static struct ew_span take_to(struct ew_bytes *bytes, size_t stop_pos)
{
    struct ew_span span = {.text = (const char *)bytes->data + bytes->pos,
                           .len = stop_pos - bytes->pos};
    bytes->pos = stop_pos + 1;
    return span;
}

struct ew_span ew_bytes_until(struct ew_bytes *bytes, char stop)
{
    size_t left = ew_bytes_left(bytes);
    const uint8_t *found = left ? memchr(bytes->data + bytes->pos, stop, left) : NULL;
    if (!found) {
        ew_bytes_fail(bytes, ETWATCH_ETRUNC);
        return (struct ew_span){.text = ""};
    }
    return take_to(bytes, (size_t)(found - bytes->data));
}

struct ew_span ew_bytes_until_last(struct ew_bytes *bytes, char stop)
{
    for (size_t at = bytes->pos + ew_bytes_left(bytes); at > bytes->pos; at--)
        if (bytes->data[at - 1] == (uint8_t)stop)
            return take_to(bytes, at - 1);
    ew_bytes_fail(bytes, ETWATCH_ETRUNC);
    return (struct ew_span){.text = ""};
}

bool ew_bytes_line(struct ew_bytes *bytes, struct ew_span *ret_line)
{
    size_t left = ew_bytes_left(bytes);
    if (left == 0)
        return false;
    const uint8_t *found = memchr(bytes->data + bytes->pos, '\n', left);
    if (found) {
        *ret_line = take_to(bytes, (size_t)(found - bytes->data));
    } else {
        ret_line->text = (const char *)bytes->data + bytes->pos;
        ret_line->len = left;
        bytes->pos = bytes->size;
    }
    return true;
}

bool ew_span_equals(struct ew_span span, const char *text)
{
    size_t len = strlen(text);
    return span.len == len && memcmp(span.text, text, len) == 0;
}

bool ew_span_starts(struct ew_span span, const char *text)
{
    size_t len = strlen(text);
    return span.len >= len && memcmp(span.text, text, len) == 0;
}

size_t ew_span_copy(struct ew_span span, char *buffer, size_t size)
{
    assert(size > 0);
    size_t len = span.len < size ? span.len : size - 1;
    memcpy(buffer, span.text, len);
    buffer[len] = '\0';
    return len;
}
