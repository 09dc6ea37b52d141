/* SPDX-License-Identifier: MIT */
/*
 * The bounded cursor: the only way foreign bytes (/proc text, event payloads, files) are read.
 *
 * A cursor walks over memory it does not own and never reads past its end. The first failure
 * sticks: it is kept with the byte offset where the failing item began, the cursor stays there, and
 * every later read gives zero. Code may therefore read a whole layout without a check in between
 * and ask once at the end. ETRUNC means that the input ended too early, EFORMAT that the bytes are
 * not what they should be. Multi-byte integers are little-endian and need no alignment.
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

/* Records the first error at the present position; later ones are ignored. */
void ew_bytes_fail(struct ew_bytes *bytes, int error);

static inline bool ew_bytes_ok(const struct ew_bytes *bytes)
{
    return bytes->error == 0;
}

/* Bytes not read yet; 0 after an error. */
static inline size_t ew_bytes_left(const struct ew_bytes *bytes)
{
    return bytes->error ? 0 : bytes->size - bytes->pos;
}

/* Where the cursor is, in the whole input. */
static inline uint64_t ew_bytes_offset(const struct ew_bytes *bytes)
{
    return bytes->base + bytes->pos;
}

/* The next size bytes, which are passed over; NULL and ETRUNC if there are fewer. */
const uint8_t *ew_bytes_take(struct ew_bytes *bytes, size_t size);

static inline void ew_bytes_skip(struct ew_bytes *bytes, size_t size)
{
    (void)ew_bytes_take(bytes, size);
}

/* Passes over the bytes up to a multiple of alignment (a power of two) from the cursor's start. */
void ew_bytes_align(struct ew_bytes *bytes, size_t alignment);

/* Goes to a position counted from the cursor's start; ETRUNC if it lies behind the end. */
void ew_bytes_seek(struct ew_bytes *bytes, size_t pos);

/* A cursor over the next size bytes alone, which are passed over here. Offsets in its errors are
 * those of the whole input. On failure *ret_sub is empty and carries the same error. */
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

/* ---------------------------------------------------------- in proven loops */

/*
 * For hot loops that have checked the bounds of everything they load themselves: one check, then
 * loads at fixed offsets. The compiler makes one instruction of each where the system is
 * little-endian.
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

/* The next byte without passing over it, or -1 at the end or after an error. */
static inline int ew_bytes_peek(const struct ew_bytes *bytes)
{
    return ew_bytes_left(bytes) ? bytes->data[bytes->pos] : -1;
}

/* Numbers start right at the cursor and end before the first byte that is no digit. No digit or a
 * value too large for the type: EFORMAT (ETRUNC if there is no byte at all). */
uint64_t ew_bytes_dec_u64(struct ew_bytes *bytes);
int64_t ew_bytes_dec_i64(struct ew_bytes *bytes);  /* a leading '-' is allowed */
uint64_t ew_bytes_hex_u64(struct ew_bytes *bytes); /* either case, no 0x */

/* Passes over blanks and tabs, not line ends. */
void ew_bytes_skip_spaces(struct ew_bytes *bytes);
/* Passes over count fields that blanks separate, with the blanks around them. ETRUNC if the line or
 * the input ends first. */
void ew_bytes_skip_fields(struct ew_bytes *bytes, unsigned count);
/* Passes over text if it comes next, and says whether it did. Not an error if it does not. */
bool ew_bytes_accept(struct ew_bytes *bytes, const char *text);
/* As accept, but EFORMAT (or ETRUNC, if all that is there agrees) if it does not come. */
void ew_bytes_expect(struct ew_bytes *bytes, const char *text);
/* Everything before the next stop, which is passed over too. Without one: ETRUNC, empty span. */
struct ew_span ew_bytes_until(struct ew_bytes *bytes, char stop);
/* As until, but up to the last stop in the input. */
struct ew_span ew_bytes_until_last(struct ew_bytes *bytes, char stop);
/* The rest of the line, without its end, which is passed over. The last line may lack one.
 * False at the end of the input. */
bool ew_bytes_line(struct ew_bytes *bytes, struct ew_span *ret_line);

bool ew_span_equals(struct ew_span span, const char *text);
bool ew_span_starts(struct ew_span span, const char *text);
/* Copies as much as fits and terminates; size > 0. Returns the length copied. */
size_t ew_span_copy(struct ew_span span, char *buffer, size_t size);

#endif
