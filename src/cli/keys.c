/* SPDX-License-Identifier: MIT */
/*
 * Turns the bytes of a terminal into keys and mouse events. Pure bytes, so that it can be tested
 * without a terminal: an unknown sequence is skipped whole and never read as the letters in it.
 */
#include "cli/cli.h"

#include <string.h>

enum { ESCAPE = 27, LONGEST_SEQUENCE = 32 };

/* Buttons of an SGR mouse report. */
enum { MOUSE_LEFT = 0, MOUSE_WHEEL_UP = 64, MOUSE_WHEEL_DOWN = 65 };

static const struct {
    const char *sequence; /* after ESC */
    int code;
} sequences[] = {
    {"[A", EW_KEY_UP},         {"[B", EW_KEY_DOWN}, {"OA", EW_KEY_UP},    {"OB", EW_KEY_DOWN},
    {"[C", EW_KEY_RIGHT},      {"[D", EW_KEY_LEFT}, {"OC", EW_KEY_RIGHT}, {"OD", EW_KEY_LEFT},
    {"[5~", EW_KEY_PAGE_UP},   {"[H", EW_KEY_HOME}, {"[1~", EW_KEY_HOME}, {"OH", EW_KEY_HOME},
    {"[6~", EW_KEY_PAGE_DOWN}, {"[F", EW_KEY_END},  {"[4~", EW_KEY_END},  {"OF", EW_KEY_END},
};

/* Length of the sequence behind ESC, 0 if its end has not arrived. */
static size_t sequence_len(const char *bytes, size_t len)
{
    if (bytes[0] != '[')
        return bytes[0] != 'O' ? 1 : len < 2 ? 0 : 2;
    for (size_t i = 1; i < len; i++)
        if (bytes[i] >= 0x40 && bytes[i] <= 0x7E)
            return i + 1;
    return len >= LONGEST_SEQUENCE ? len : 0;
}

static const char *take_number(const char *at, const char *end, uint32_t *ret_number)
{
    uint32_t number = 0;
    while (at < end && *at >= '0' && *at <= '9' && number < 100000)
        number = number * 10 + (uint32_t)(*at++ - '0');
    *ret_number = number;
    return at;
}

/* "[<BUTTON;COLUMN;ROW" and M (pressed) or m (released). */
static void take_mouse(const char *bytes, size_t len, struct ew_key *key)
{
    uint32_t button, column, row;
    const char *end = bytes + len, *at = take_number(bytes + 2, end, &button);
    if (at == end || *at++ != ';')
        return;
    at = take_number(at, end, &column);
    if (at == end || *at++ != ';')
        return;
    at = take_number(at, end, &row);
    if (at == end || *at != 'M' || column == 0 || row == 0)
        return;
    key->column = column - 1;
    key->row = row - 1;
    key->code = button == MOUSE_LEFT         ? EW_KEY_CLICK
                : button == MOUSE_WHEEL_UP   ? EW_KEY_WHEEL_UP
                : button == MOUSE_WHEEL_DOWN ? EW_KEY_WHEEL_DOWN
                                             : 0;
}

size_t ew_keys_parse(const char *bytes, size_t len, bool more, struct ew_key *ret_key)
{
    *ret_key = (struct ew_key){0};
    if (len == 0)
        return 0;
    if (bytes[0] != ESCAPE) {
        ret_key->code = (unsigned char)bytes[0];
        return 1;
    }
    size_t rest = len == 1 ? 0 : sequence_len(bytes + 1, len - 1);
    if (rest == 0) {
        if (more)
            return 0;
        ret_key->code = EW_KEY_ESCAPE; /* the key itself: nothing follows it */
        return 1;
    }
    if (bytes[1] != '[' && bytes[1] != 'O') { /* ESC, then another key */
        ret_key->code = EW_KEY_ESCAPE;
        return 1;
    }
    for (size_t i = 0; i < sizeof sequences / sizeof sequences[0]; i++)
        if (strlen(sequences[i].sequence) == rest &&
            memcmp(sequences[i].sequence, bytes + 1, rest) == 0)
            ret_key->code = sequences[i].code;
    if (rest > 2 && bytes[1] == '[' && bytes[2] == '<')
        take_mouse(bytes + 1, rest, ret_key);
    return rest + 1;
}
