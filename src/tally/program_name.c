/* SPDX-License-Identifier: MIT */
/* Pure; the work is bounded by the longest name times the number of places where it may end. */
#include "tally/program_name.h"

#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"
#include "base/utf16.h"

enum {
    NAME_MAX_UNITS = 256, /* file names of Windows have at most 255 */
    ENDS_MAX = 8,         /* an unquoted path may contain spaces */
    TRAIL_MIN = 0x40,     /* the second byte of a letter, in every code page of Windows */
};
static const char exe[] = ".exe";

struct units {
    const uint8_t *bytes;
    size_t count;
};

static uint16_t unit(struct units text, size_t i)
{
    return ew_load_u16(text.bytes + 2 * i);
}

static uint8_t lower(uint32_t c)
{
    return (uint8_t)(c >= 'A' && c <= 'Z' ? c + 32 : c);
}

static bool is_high_surrogate(uint16_t value)
{
    return value >= 0xD800 && value < 0xDC00;
}

/* Marks the places of the name that a letter of n units leads to. */
static void advance(const uint8_t *name, size_t len, const bool *from, uint16_t letter,
                    bool *ret_to)
{
    memset(ret_to, 0, (len + 1) * sizeof *ret_to);
    for (size_t at = 0; at < len; at++) {
        if (!from[at])
            continue;
        if (letter < 0x80) {
            ret_to[at + 1] |= lower(name[at]) == lower(letter);
            continue;
        }
        ret_to[at + 1] = true;
        /* A pair of surrogates may have become two replacements. */
        bool two = name[at] >= 0x80 ? at + 1 < len && name[at + 1] >= TRAIL_MIN
                                    : is_high_surrogate(letter) && name[at] == '?';
        if (two && at + 2 <= len)
            ret_to[at + 2] = true;
    }
}

/* Whether the candidate is the name; extended: the name without its extension. */
static bool matches(const uint8_t *name, size_t len, struct units candidate, bool extended)
{
    bool places[2][NAME_MAX_UNITS * 2 + 1] = {{true}};
    size_t extra = extended ? sizeof exe - 1 : 0;
    int now = 0;
    if (len < extra)
        return false;
    for (size_t i = 0; i < extra; i++)
        if (lower(name[len - extra + i]) != (uint8_t)exe[i])
            return false;
    for (size_t i = 0; i < candidate.count; i++) {
        uint16_t letter = unit(candidate, i);
        if (letter >= 0xDC00 && letter < 0xE000)
            continue; /* the second half of the last one */
        advance(name, len, places[now], letter, places[!now]);
        now = !now;
    }
    return places[now][len - extra];
}

/* The part behind the last backslash or slash. */
static struct units base_of(struct units path)
{
    size_t from = 0;
    for (size_t i = 0; i < path.count; i++)
        if (unit(path, i) == '\\' || unit(path, i) == '/')
            from = i + 1;
    return (struct units){path.bytes + 2 * from, path.count - from};
}

static bool is_ascii(struct units text)
{
    for (size_t i = 0; i < text.count; i++)
        if (unit(text, i) >= 0x80)
            return false;
    return true;
}

static size_t take(const uint8_t *name, size_t len, struct units path, bool extended, char *buffer,
                   size_t size)
{
    struct units base = base_of(path);
    if (base.count == 0 || base.count > NAME_MAX_UNITS || is_ascii(base) ||
        !matches(name, len, base, extended))
        return 0;
    size_t used = ew_utf16_to_utf8(base.bytes, 2 * base.count, buffer, size);
    if (extended && used + sizeof exe <= size) {
        memcpy(buffer + used, exe, sizeof exe);
        used += sizeof exe - 1;
    }
    return used;
}

size_t ew_program_name(const struct ew_event_text *image, const struct ew_event_text *command_line,
                       char *buffer, size_t size)
{
    struct units line = {command_line->bytes,
                         ew_utf16_len(command_line->bytes, command_line->len) / 2};
    const uint8_t *end = image->len > 0 ? memchr(image->bytes, 0, image->len) : NULL;
    size_t len = end != NULL ? (size_t)(end - image->bytes) : image->len;
    if (image->wide || !command_line->wide || len == 0 || len > NAME_MAX_UNITS * 2 ||
        line.count == 0)
        return 0;
    bool quoted = unit(line, 0) == '"';
    struct units rest = {line.bytes + 2 * quoted, line.count - quoted};
    size_t used = 0;
    /* A whole name is a better match than one to which the extension was added. */
    for (int extended = 0; extended < 2 && used == 0; extended++)
        for (size_t to = 0, ends = 0; to <= rest.count && ends < ENDS_MAX && used == 0; to++) {
            if (to < rest.count && unit(rest, to) != (quoted ? '"' : ' '))
                continue;
            used = take(image->bytes, len, (struct units){rest.bytes, to}, extended != 0, buffer,
                        size);
            ends = quoted ? ENDS_MAX : ends + 1;
        }
    return used;
}
