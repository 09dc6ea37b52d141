/* SPDX-License-Identifier: MIT */
/*
 * The rules, from Microsoft's documentation of C startup code: blanks and tabs separate arguments
 * outside of quotes; a quote is written \"; backslashes are literal, except right before a quote,
 * where each is doubled.
 */
#include "cli/cli.h"

#include <string.h>

void ew_quote_argument(struct ew_buf *out, const char *argument)
{
    if (argument[0] != '\0' && strpbrk(argument, " \t\n\v\"") == NULL) {
        ew_buf_text(out, argument);
        return;
    }
    ew_buf_char(out, '"');
    for (const char *at = argument;; at++) {
        size_t slashes = strspn(at, "\\");
        at += slashes;
        if (*at == '\0') { /* right before the closing quote */
            ew_buf_repeat(out, '\\', 2 * slashes);
            break;
        }
        ew_buf_repeat(out, '\\', *at == '"' ? 2 * slashes + 1 : slashes);
        ew_buf_char(out, *at);
    }
    ew_buf_char(out, '"');
}

bool ew_quote_program(struct ew_buf *out, const char *program)
{
    if (strchr(program, '"') != NULL)
        return false;
    ew_buf_char(out, '"');
    ew_buf_text(out, program);
    ew_buf_char(out, '"');
    return true;
}

/* Windows ignores trailing dots and blanks of a file name. */
bool ew_quote_is_batch(const char *program)
{
    size_t len = strlen(program);
    while (len > 0 && (program[len - 1] == '.' || program[len - 1] == ' '))
        len--;
    if (len < 4)
        return false;
    char end[5];
    for (size_t i = 0; i < 4; i++) {
        char c = program[len - 4 + i];
        end[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    end[4] = '\0';
    return strcmp(end, ".bat") == 0 || strcmp(end, ".cmd") == 0;
}
