/* SPDX-License-Identifier: MIT */
/*
 * An output buffer: text is appended, whole lines are passed to a write function.
 *
 * Appending reports no errors: after running out of memory, reaching its maximum or a failed write,
 * the buffer keeps the error and ignores what follows; ew_buf_flush returns it. Numbers are
 * formatted here, independent of the locale and without an exponent.
 */
#ifndef EW_BASE_BUF_H
#define EW_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes all bytes and returns 0, or returns a negative ETWATCH_E* code. */
typedef int (*ew_buf_write)(void *ctx, const void *bytes, size_t len);

struct ew_buf {
    char *data;
    size_t len;
    size_t size;
    size_t max;      /* the buffer never grows beyond this */
    size_t flush_at; /* ew_buf_end_line writes when this much is buffered */
    ew_buf_write write;
    void *ctx;
    int error;    /* sticky: 0 or ETWATCH_E* */
    bool csv_raw; /* ew_buf_csv_field writes texts unchanged */
};

/* write may be NULL: the text then stays in data. max 0 means 1 MiB. */
void ew_buf_init(struct ew_buf *buf, size_t max, ew_buf_write write, void *ctx);
void ew_buf_done(struct ew_buf *buf);
/* Makes room for extra bytes; false (and the sticky error) if it cannot. */
bool ew_buf_reserve(struct ew_buf *buf, size_t extra);
/* Writes out everything. Returns the sticky error or 0. */
int ew_buf_flush(struct ew_buf *buf);
/* Call after a complete line: writes if flush_at bytes are buffered. */
void ew_buf_end_line(struct ew_buf *buf);

void ew_buf_bytes(struct ew_buf *buf, const void *bytes, size_t len);
void ew_buf_text(struct ew_buf *buf, const char *text);
void ew_buf_char(struct ew_buf *buf, char c);
void ew_buf_repeat(struct ew_buf *buf, char c, size_t count);
void ew_buf_u64(struct ew_buf *buf, uint64_t value);
void ew_buf_i64(struct ew_buf *buf, int64_t value);
/* Fixed decimals (0 to 9), rounded half away from zero. False, and nothing appended, if value is
 * not finite or |value| * 10^decimals reaches 9.2e18, which no measurement does. */
bool ew_buf_fixed(struct ew_buf *buf, double value, unsigned decimals);

/* A JSON string with its quotes. Each invalid UTF-8 byte becomes U+FFFD; control characters and
 * everything a reader may take for a line end are escaped. */
void ew_buf_json_string(struct ew_buf *buf, const char *text, size_t len);
/* One CSV field (RFC 4180) of text: quoted only if necessary. Invalid UTF-8 becomes U+FFFD. Unless
 * csv_raw is set, control characters other than tab and line feed become \xNN or \uNNNN, as do the
 * marks that reorder text; and a text that a spreadsheet would take for a formula (it begins with
 * = + - @ or a tab, and is not a number) gets a ' in front. */
void ew_buf_csv_field(struct ew_buf *buf, const char *text, size_t len);
/* For a terminal: control characters become '?', at most `columns` screen columns are used
 * (truncated text ends with '+'). Returns the number of columns used. */
size_t ew_buf_screen(struct ew_buf *buf, const char *text, size_t len, size_t columns);

/* Whether a terminal interprets this character: a control, a line separator, a mark of direction;
 * EW_UTF8_INVALID too. */
bool ew_buf_acts_on_terminal(uint32_t code);

/*
 * The same for hot loops: the caller has reserved the space, `at` is where to write; the new end is
 * returned. Between ew_buf_reserve and ew_buf_take nothing else may use the buffer.
 */
#define EW_U64_DIGITS 20
#define EW_FIXED3_LEN 24
#define EW_JSON_LEN(len) (6 * (len) + 2 + 8) /* upper bound for a string of len bytes */
char *ew_raw_u64(char *at, uint64_t value);
/* Three decimals. NULL where ew_buf_fixed returns false. */
char *ew_raw_fixed3(char *at, double value);
char *ew_raw_json_string(char *at, const char *text, size_t len);

static inline char *ew_buf_end(const struct ew_buf *buf)
{
    return buf->data + buf->len;
}

static inline void ew_buf_take(struct ew_buf *buf, const char *end)
{
    buf->len = (size_t)(end - buf->data);
}

#endif
