/* SPDX-License-Identifier: MIT */
/*
 * Names of programs that the event has in a code page and the command line in UTF-16. The bytes of
 * the names are those that Windows writes with the named code page.
 */
#include "test.h"

#include <string.h>

#include "base/utf8.h"
#include "tally/program_name.h"

/* UTF-8 as UTF-16LE, terminated; returns its size in bytes. */
static uint32_t widen(const char *text, uint8_t wide[1024])
{
    size_t len = strlen(text), at = 0;
    for (size_t i = 0; i < len;) {
        uint32_t code;
        i += ew_utf8_decode(text + i, len - i, &code);
        uint16_t units[2] = {(uint16_t)code, 0};
        if (code >= 0x10000) {
            units[0] = (uint16_t)(0xD800 + ((code - 0x10000) >> 10));
            units[1] = (uint16_t)(0xDC00 + ((code - 0x10000) & 0x3FF));
        }
        for (int k = 0; k < (code >= 0x10000 ? 2 : 1); k++) {
            wide[at++] = (uint8_t)units[k];
            wide[at++] = (uint8_t)(units[k] >> 8);
        }
    }
    wide[at] = wide[at + 1] = 0;
    at += 2;
    return (uint32_t)at;
}

static size_t name_of(const char *image, const char *command_line, char *buffer, size_t size)
{
    static uint8_t wide[1024];
    struct ew_event_text name = {.bytes = (const uint8_t *)image, .len = (uint32_t)strlen(image)};
    struct ew_event_text line = {.bytes = wide, .len = widen(command_line, wide), .wide = true};
    return ew_program_name(&name, &line, buffer, size);
}

TEST(the_name_is_that_of_the_command_line_if_it_is_the_same_program)
{
    static const struct {
        const char *remark, *image, *command_line, *name;
    } rows[] = {
        {"1252", "caf\xE9.exe", "caf\u00E9.exe", "caf\u00E9.exe"},
        {"1252, a path", "na\xEFve.exe", "C:\\t\\na\u00EFve.exe -x", "na\u00EFve.exe"},
        {"quoted", "na\xEFve.exe", "\"C:\\a b\\na\u00EFve.exe\" -x", "na\u00EFve.exe"},
        {"unquoted, with spaces", "\xFC z.exe", "C:\\a b\\\u00FC z.exe 1 2", "\u00FC z.exe"},
        {"the path has letters, too", "\xFC.exe", "C:\\\u00E9 x\\\u00FC.exe", "\u00FC.exe"},
        {"slashes", "\xFC.exe", "C:/t/\u00FC.exe", "\u00FC.exe"},
        {"932", "\x83\x65\x83\x58\x83\x67.exe", "\"C:\\\u30C6\u30B9\u30C8.exe\"",
         "\u30C6\u30B9\u30C8.exe"},
        {"932, a backslash in a letter", "\x95\x5C.exe", "\u8868.exe", "\u8868.exe"},
        {"932, half width", "\xC3\xBD\xC4.exe", "\uFF83\uFF7D\uFF84.exe", "\uFF83\uFF7D\uFF84.exe"},
        {"936", "\xB2\xE2\xCA\xD4.exe", "\u6D4B\u8BD5.exe", "\u6D4B\u8BD5.exe"},
        {"replaced", "????.exe", "\u0442\u0435\u0441\u0442.exe", "\u0442\u0435\u0441\u0442.exe"},
        {"similar letters", "test.exe", "t\u00E9st.exe", "t\u00E9st.exe"},
        {"a pair of surrogates", "a??.exe", "a\U0001F600.exe", "a\U0001F600.exe"},
        {"a pair, one replacement", "a?.exe", "a\U0001F600.exe", "a\U0001F600.exe"},
        {"other case", "CAF\xC9.EXE", "caf\u00C9.exe", "caf\u00C9.exe"},
        {"without extension", "caf\xE9.exe", "caf\u00E9 -x", "caf\u00E9.exe"},
        /* The name of the event stays. */
        {"plain", "test.exe", "test.exe", ""},
        {"another program", "caf\xE9.exe", "caf\u00E9s.exe", ""},
        {"another letter", "caf\xE9.exe", "kaf\u00E9.exe", ""},
        {"the name goes on", "\xFC 1.exe", "\u00FC", ""},
        {"the name goes on with digits",
         "\xFC"
         "1.exe",
         "\u00FC", ""},
        {"too short", "caf\xE9.exe", "\u00E9.exe", ""},
        {"a script", "cmd.exe", "\u00E9.cmd", ""},
        {"no command line", "caf\xE9.exe", "", ""},
        {"no name", "", "caf\u00E9.exe", ""},
        {"only quotes", "caf\xE9.exe", "\"\"", ""},
        {"an open quote", "caf\xE9.exe", "\"caf\u00E9.exe", "caf\u00E9.exe"},
        {"a folder", "caf\xE9.exe", "C:\\caf\u00E9.exe\\", ""},
        {"many spaces", "\xE9.exe", "          \u00E9.exe", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char buffer[256] = "";
        test_row(rows[i].remark);
        size_t len = name_of(rows[i].image, rows[i].command_line, buffer, sizeof buffer);
        CHECK_EQ_UINT(len, strlen(rows[i].name));
        CHECK_EQ_STR(len > 0 ? buffer : "", rows[i].name);
    }
}

TEST(a_small_buffer_gets_a_part_of_the_name)
{
    char buffer[6] = "xxxxx";
    CHECK_EQ_UINT(name_of("caf\xE9", "caf\u00E9", buffer, sizeof buffer), 5);
    CHECK_EQ_UINT(name_of("caf\xE9.exe", "caf\u00E9", buffer, sizeof buffer), 5);
    CHECK_EQ_STR(buffer, "caf\u00E9");
}

/* Hostile lengths: longer than any name, and an odd number of bytes. */
TEST(lengths_are_bounded)
{
    static uint8_t name[4096], line[8192];
    char buffer[64];
    memset(name, 0xE9, sizeof name);
    for (size_t i = 0; i < sizeof line; i++)
        line[i] = i % 2 == 0 ? 0xE9 : 0;
    struct ew_event_text image = {.bytes = name, .len = sizeof name};
    struct ew_event_text text = {.bytes = line, .len = sizeof line - 1, .wide = true};
    CHECK_EQ_UINT(ew_program_name(&image, &text, buffer, sizeof buffer), 0);
    image.len = 512;
    CHECK_EQ_UINT(ew_program_name(&image, &text, buffer, sizeof buffer), 0);
    text.len = 512;
    CHECK(ew_program_name(&image, &text, buffer, sizeof buffer) > 0);
    image.len = 0;
    CHECK_EQ_UINT(ew_program_name(&image, &text, buffer, sizeof buffer), 0);
}
