/* SPDX-License-Identifier: MIT */
/*
 * Readable recorded events: one line each, in aligned columns, then the fields as name=value. All
 * text from a recording is made safe for a terminal.
 */
#include "sink/sink.h"

#include <string.h>

#include "base/event_state.h"
#include "base/real.h"
#include "base/units.h"

enum { PROCESS_WIDTH = 16, EVENT_WIDTH = 30, TEXT_SHOWN = 200, BYTES_SHOWN = 32, LINE_MAX = 65536 };

static const char plain[] = "\033[0m", dim[] = "\033[2m", bold[] = "\033[1m", cyan[] = "\033[36m";

static void style(struct etwatch_sink *sink, const char *code)
{
    if ((sink->flags & ETWATCH_SINK_COLOR) != 0)
        ew_buf_text(&sink->out, code);
}

static void put_padded(struct ew_buf *out, const char *text, size_t width)
{
    size_t used = ew_buf_screen(out, text, strlen(text), TEXT_SHOWN);
    ew_buf_repeat(out, ' ', (used < width ? width - used : 0) + 1);
}

static void put_right(struct ew_buf *out, bool known, uint64_t value, size_t width)
{
    char digits[EW_U64_DIGITS];
    size_t len = known ? (size_t)(ew_raw_u64(digits, value) - digits) : 1;
    ew_buf_repeat(out, ' ', len < width ? width - len : 0);
    ew_buf_bytes(out, known ? digits : "-", len);
    ew_buf_char(out, ' ');
}

/* 12.345678901: seconds since the start of the recording. */
static void put_relative(struct ew_buf *out, uint64_t t_ns)
{
    char digits[EW_U64_DIGITS];
    put_right(out, true, t_ns / 1000000000, 6);
    out->len--; /* removes the trailing space */
    (void)ew_raw_u64(digits, 1000000000 + t_ns % 1000000000);
    digits[0] = '.';
    ew_buf_bytes(out, digits, 10);
    ew_buf_char(out, ' ');
}

static void put_hex_bytes(struct ew_buf *out, const uint8_t *bytes, size_t len, size_t most)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < len && i < most; i++) {
        ew_buf_char(out, digits[bytes[i] >> 4]);
        ew_buf_char(out, digits[bytes[i] & 15]);
    }
    if (len <= most)
        return;
    ew_buf_text(out, "+(");
    ew_buf_u64(out, len);
    ew_buf_text(out, " bytes)");
}

static void put_hex_number(struct ew_buf *out, uint64_t value)
{
    static const char digits[] = "0123456789abcdef";
    int shift = 60;
    while (shift > 0 && value >> shift == 0)
        shift -= 4;
    ew_buf_text(out, "0x");
    for (; shift >= 0; shift -= 4)
        ew_buf_char(out, digits[value >> shift & 15]);
}

static bool needs_quotes(const char *text, size_t len)
{
    return len == 0 || memchr(text, ' ', len) != NULL || memchr(text, '=', len) != NULL;
}

static void put_text(struct ew_buf *out, const char *text, size_t len)
{
    bool quotes = needs_quotes(text, len);
    if (quotes)
        ew_buf_char(out, '"');
    (void)ew_buf_screen(out, text, len, TEXT_SHOWN);
    if (quotes)
        ew_buf_char(out, '"');
}

static void put_real(struct ew_buf *out, const struct etwatch_field *field)
{
    char text[EW_REAL_LEN];
    bool single = field->type == ETWATCH_FIELD_FLOAT;
    ew_buf_text(out, ew_raw_real(text, field->v.d, single) != NULL ? text : "-");
}

static void put_value(struct ew_buf *out, const struct etwatch_field *field)
{
    switch (field->type) {
    case ETWATCH_FIELD_U64:
        ew_buf_u64(out, field->v.u);
        break;
    case ETWATCH_FIELD_I64:
        ew_buf_i64(out, field->v.i);
        break;
    case ETWATCH_FIELD_HEX:
        put_hex_number(out, field->v.u);
        break;
    case ETWATCH_FIELD_BOOL:
        ew_buf_text(out, field->v.u != 0 ? "true" : "false");
        break;
    case ETWATCH_FIELD_DOUBLE:
    case ETWATCH_FIELD_FLOAT:
        put_real(out, field);
        break;
    case ETWATCH_FIELD_TEXT:
        put_text(out, field->v.text, field->len);
        break;
    case ETWATCH_FIELD_BINARY:
        put_hex_bytes(out, field->v.bytes, field->len, BYTES_SHOWN);
        break;
    case ETWATCH_FIELD_ARRAY:
        ew_buf_char(out, '[');
        break;
    case ETWATCH_FIELD_STRUCT:
        ew_buf_char(out, '{');
        break;
    default:
        ew_buf_char(out, '-');
        break;
    }
}

/* a=1 b=[2 {c=3}]; a line that is too long to read is truncated. */
static void put_fields(struct ew_buf *out, const struct etwatch_trace_event *event)
{
    uint64_t arrays = 0;
    size_t from = out->len;
    bool space = true;
    for (uint32_t i = 0; i < event->field_count; i++) {
        const struct etwatch_field *field = &event->fields[i];
        if (out->len - from > LINE_MAX) {
            ew_buf_text(out, " +");
            break;
        }
        if (field->type == ETWATCH_FIELD_CLOSE) {
            ew_buf_char(out, (arrays & 1) != 0 ? ']' : '}');
            arrays >>= 1;
            space = true;
            continue;
        }
        if (space)
            ew_buf_char(out, ' ');
        if (field->name != NULL) {
            (void)ew_buf_screen(out, field->name, strlen(field->name), TEXT_SHOWN);
            ew_buf_char(out, '=');
        }
        put_value(out, field);
        bool array = field->type == ETWATCH_FIELD_ARRAY;
        bool opens = array || field->type == ETWATCH_FIELD_STRUCT;
        if (opens)
            arrays = arrays << 1 | array;
        space = !opens;
    }
}

void ew_text_trace_event(struct etwatch_sink *sink, const struct etwatch_trace_event *event)
{
    struct ew_buf *out = &sink->out;
    style(sink, dim);
    put_relative(out, event->t_rel_ns);
    ew_units_clock(out, event->t_ns);
    ew_buf_char(out, ' ');
    style(sink, plain);
    put_right(out, true, event->cpu, 3);
    put_right(out, (event->flags & ETWATCH_TRACE_HAS_PID) != 0, event->pid, 6);
    put_right(out, (event->flags & ETWATCH_TRACE_HAS_TID) != 0, event->tid, 6);
    style(sink, bold);
    put_padded(out, event->process != NULL ? event->process : "-", PROCESS_WIDTH);
    style(sink, plain);
    style(sink, cyan);
    size_t from = out->len;
    (void)ew_buf_screen(out, event->provider, strlen(event->provider), TEXT_SHOWN);
    ew_buf_char(out, '/');
    (void)ew_buf_screen(out, event->event, strlen(event->event), TEXT_SHOWN);
    uint32_t state = ew_event_state(event->flags);
    if (state != ETWATCH_CLASS_DECODED)
        ew_buf_text(out, state == ETWATCH_CLASS_PARTLY ? " (partly)" : " (raw)");
    size_t used = out->len - from;
    style(sink, plain);
    bool more = event->field_count > 0 || (sink->flags & ETWATCH_SINK_PAYLOAD) != 0;
    if (more)
        ew_buf_repeat(out, ' ', used < EVENT_WIDTH ? EVENT_WIDTH - used : 0);
    put_fields(out, event);
    if ((sink->flags & ETWATCH_SINK_PAYLOAD) != 0) {
        ew_buf_text(out, " | ");
        put_hex_bytes(out, event->payload, event->payload_size, SIZE_MAX);
    }
    ew_buf_char(out, '\n');
    ew_buf_end_line(out);
}
