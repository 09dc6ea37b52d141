/* SPDX-License-Identifier: MIT */
/*
 * The bounded cursor: the only way untrusted bytes (/proc text, event payloads, files) are read.
 *
 * A cursor walks over memory it does not own and never reads past its end. The first failure is
 * sticky: it is kept with the byte offset at which the failing item starts, the cursor stays there,
 * and every later read returns zero. So code can read a whole layout without checks in between and
 * test for an error once at the end. ETRUNC means that the input ended too early, EFORMAT that the
 * bytes are invalid. Multi-byte integers are little-endian and need no alignment.
 */
#ifndef EW_BASE_BYTES_H
#define EW_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ew_bytes {
    const uint8_t *data;
    size_t size;
    size_t pos;            /* <= size */
    uint64_t base;         /* offset of data[0] in the whole input */
    int error;             /* 0 or ETWATCH_ETRUNC, ETWATCH_EFORMAT */
    uint64_t error_offset; /* in the whole input; valid if error */
};

/* A piece of the input, not terminated. */
struct ew_span {
    const char *text;
    size_t len;
};

/* data may be NULL if size is 0. It must outlive the cursor and everything taken from it. */
void ew_bytes_init(struct ew_bytes *bytes, const void *data, size_t size);

/* Records the first error at the current position; later ones are ignored. */
void ew_bytes_fail(struct ew_bytes *bytes, int error);

static inline bool ew_bytes_ok(const struct ew_bytes *bytes)
{
    return bytes->error == 0;
}

/* Number of unread bytes; 0 after an error. */
static inline size_t ew_bytes_left(const struct ew_bytes *bytes)
{
    return bytes->error ? 0 : bytes->size - bytes->pos;
}

/* The cursor's position in the whole input. */
static inline uint64_t ew_bytes_offset(const struct ew_bytes *bytes)
{
    return bytes->base + bytes->pos;
}

/* Consumes the next size bytes; NULL and ETRUNC if there are fewer. */
const uint8_t *ew_bytes_take(struct ew_bytes *bytes, size_t size);

static inline void ew_bytes_skip(struct ew_bytes *bytes, size_t size)
{
    (void)ew_bytes_take(bytes, size);
}

/* Skips to a multiple of alignment (a power of two) from the cursor's start. */
void ew_bytes_align(struct ew_bytes *bytes, size_t alignment);

/* Moves to a position relative to the cursor's start; ETRUNC if it is past the end. */
void ew_bytes_seek(struct ew_bytes *bytes, size_t pos);

/* Consumes the next size bytes and returns a cursor over them. Offsets in its errors are those of
 * the whole input. On failure *ret_sub is empty and carries the same error. */
void ew_bytes_sub(struct ew_bytes *bytes, size_t size, struct ew_bytes *ret_sub);

static inline uint8_t ew_bytes_u8(struct ew_bytes *bytes)
{
    const uint8_t *p = ew_bytes_take(bytes, 1);
    return p ? p[0] : (uint8_t)0;
}

static inline uint16_t ew_bytes_u16(struct ew_bytes *bytes)
{
    const uint8_t *p = ew_bytes_take(bytes, 2);
    if (!p)
        return 0;
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t ew_bytes_u32(struct ew_bytes *bytes)
{
    const uint8_t *p = ew_bytes_take(bytes, 4);
    if (!p)
        return 0;
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t ew_bytes_u64(struct ew_bytes *bytes)
{
    const uint8_t *p = ew_bytes_take(bytes, 8);
    uint64_t value = 0;
    for (int i = 0; p && i < 8; i++)
        value |= (uint64_t)p[i] << (8 * i);
    return value;
}

/* ---------------------------------------------------------- unchecked loads */

/*
 * For hot loops that have checked the bounds of all their loads: one check, then loads at fixed
 * offsets. On little-endian systems each compiles to one instruction.
 */
static inline uint16_t ew_load_u16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t ew_load_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t ew_load_u64(const uint8_t *p)
{
    return (uint64_t)ew_load_u32(p) | (uint64_t)ew_load_u32(p + 4) << 32;
}

/* ------------------------------------------------------------------- text */

/* The next byte without consuming it, or -1 at the end or after an error. */
static inline int ew_bytes_peek(const struct ew_bytes *bytes)
{
    return ew_bytes_left(bytes) ? bytes->data[bytes->pos] : -1;
}

/* A number starts at the cursor and ends before the first non-digit. No digit or a value too large
 * for the type: EFORMAT (ETRUNC if there is no byte at all). */
uint64_t ew_bytes_dec_u64(struct ew_bytes *bytes);
int64_t ew_bytes_dec_i64(struct ew_bytes *bytes);  /* a leading '-' is allowed */
uint64_t ew_bytes_hex_u64(struct ew_bytes *bytes); /* either case, no 0x */

/* Skips spaces and tabs, not line ends. */
void ew_bytes_skip_spaces(struct ew_bytes *bytes);
/* Skips count fields separated by spaces, and the spaces around them. ETRUNC if the line or the
 * input ends first. */
void ew_bytes_skip_fields(struct ew_bytes *bytes, unsigned count);
/* Skips text if it comes next and returns whether it did; no error otherwise. */
bool ew_bytes_accept(struct ew_bytes *bytes, const char *text);
/* Like accept, but otherwise fails with EFORMAT (ETRUNC if the remaining bytes are a prefix). */
void ew_bytes_expect(struct ew_bytes *bytes, const char *text);
/* Everything before the next stop, which is skipped. If there is none: ETRUNC, empty span. */
struct ew_span ew_bytes_until(struct ew_bytes *bytes, char stop);
/* Like until, but up to the last stop in the input. */
struct ew_span ew_bytes_until_last(struct ew_bytes *bytes, char stop);
/* The rest of the line; its end is skipped and not included. The last line may have no end. False
 * at the end of the input. */
bool ew_bytes_line(struct ew_bytes *bytes, struct ew_span *ret_line);

bool ew_span_equals(struct ew_span span, const char *text);
bool ew_span_starts(struct ew_span span, const char *text);
/* Copies as much as fits and terminates; size > 0. Returns the length copied. */
size_t ew_span_copy(struct ew_span span, char *buffer, size_t size);

#endif
