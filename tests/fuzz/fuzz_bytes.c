/* SPDX-License-Identifier: MIT */
/*
 * The input is a program for the cursor followed by the data that the cursor reads. After every
 * step: the position is within the data, it moves backwards only by a seek, and an error is kept.
 */
#include <stdint.h>

#include "base/bytes.h"
#include "fuzz.h"

static unsigned step(struct ew_bytes *in, unsigned op, unsigned arg)
{
    struct ew_bytes sub;
    struct ew_span span;
    const uint8_t *taken;
    switch (op % 16) {
    case 0:
        return ew_bytes_u8(in);
    case 1:
        return ew_bytes_u16(in);
    case 2:
        return ew_bytes_u32(in);
    case 3:
        return (unsigned)ew_bytes_u64(in);
    case 4:
        return (unsigned)ew_bytes_dec_u64(in);
    case 5:
        return (unsigned)ew_bytes_dec_i64(in);
    case 6:
        return (unsigned)ew_bytes_hex_u64(in);
    case 7:
        taken = ew_bytes_take(in, arg);
        return taken ? touch(taken, arg) : 0;
    case 8:
        ew_bytes_sub(in, arg, &sub);
        span = ew_bytes_until_last(&sub, ')');
        return touch(span.text, span.len) + ew_bytes_u16(&sub);
    case 9:
        span = ew_bytes_until(in, (char)arg);
        return touch(span.text, span.len);
    case 10:
        span = ew_bytes_until_last(in, (char)arg);
        return touch(span.text, span.len);
    case 11:
        return ew_bytes_line(in, &span) ? touch(span.text, span.len) : 0;
    case 12:
        ew_bytes_skip_spaces(in);
        return 0;
    case 13:
        ew_bytes_skip_fields(in, arg % 8);
        return 0;
    case 14:
        ew_bytes_align(in, (size_t)1 << (arg % 8));
        return 0;
    default:
        ew_bytes_expect(in, arg % 2 ? "kB" : "x");
        return 0;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size - 1 < 2u * data[0])
        return 0;
    size_t step_count = data[0], start = 1 + 2 * step_count;
    volatile unsigned sum = 0;
    struct ew_bytes in;
    ew_bytes_init(&in, data + start, size - start);
    for (size_t i = 0; i < step_count; i++) {
        struct ew_bytes before = in;
        sum += step(&in, data[1 + 2 * i], data[2 + 2 * i]);
        require(in.pos <= in.size, "within the data");
        require(in.pos >= before.pos, "never back");
        require(!before.error || (in.error == before.error && in.pos == before.pos &&
                                  in.error_offset == before.error_offset),
                "the first error stays");
        require(!in.error || in.error_offset <= in.size, "the error lies within the data");
    }
    (void)sum; /* only to keep every read */
    return 0;
}
