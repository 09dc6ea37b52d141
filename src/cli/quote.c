/* SPDX-License-Identifier: MIT */
/*
 * The rules, from Microsoft's documentation of C startup code: blanks and tabs separate arguments
 * outside of quotes; a quote is written \"; backslashes are literal, except right before a quote,
 * where each is doubled.
 */
#include "cli/cli.h"

#include <string.h>

/* What the command interpreter takes as it is, outside of quotes too. */
static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                            "#$*+-./:?@\\_";

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

void ew_quote_arguments(struct ew_buf *out, int argc, char *const *argv, int first)
{
    for (int i = first; i < argc; i++) {
        if (i > first)
            ew_buf_char(out, ' ');
        ew_quote_argument(out, argv[i]);
    }
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

/*
 * One argument for cmd.exe, in quotes, which its operators (& | < > ^) do not leave. A quote is
 * doubled for cmd.exe and for the program that the batch file passes it on to; backslashes before a
 * quote are doubled for that program. Between quotes a percent sign would still begin a variable:
 * %cd:~,% is an empty part of one that exists, and separates the sign from what follows.
 */
static void put_batch_argument(struct ew_buf *out, const char *argument)
{
    size_t slashes = 0;
    if (argument[0] != '\0' && strspn(argument, plain) == strlen(argument) &&
        argument[strlen(argument) - 1] != '\\') {
        ew_buf_text(out, argument);
        return;
    }
    ew_buf_char(out, '"');
    for (const char *at = argument; *at != '\0'; at++) {
        if (*at == '"') {
            ew_buf_repeat(out, '\\', slashes);
            ew_buf_char(out, '"');
        }
        slashes = *at == '\\' ? slashes + 1 : 0;
        if (*at == '%')
            ew_buf_text(out, "%%cd:~,");
        ew_buf_char(out, *at);
    }
    ew_buf_repeat(out, '\\', slashes);
    ew_buf_char(out, '"');
}

bool ew_quote_batch(struct ew_buf *out, const char *interpreter, const char *program,
                    char *const *arguments)
{
    /* The interpreter ends its line there, whatever the quotes. */
    for (size_t i = 0; arguments[i] != NULL; i++)
        if (strpbrk(arguments[i], "\r\n") != NULL)
            return false;
    if (strpbrk(program, "\"\r\n") != NULL || !ew_quote_program(out, interpreter))
        return false;
    /* No delayed expansion of !x!, no autorun commands; /s takes the outer quotes away. */
    ew_buf_text(out, " /e:on /v:off /d /s /c \"");
    ew_buf_char(out, '"');
    for (const char *at = program; *at != '\0'; at++) {
        if (*at == '%')
            ew_buf_text(out, "%%cd:~,");
        ew_buf_char(out, *at);
    }
    ew_buf_char(out, '"');
    for (size_t i = 0; arguments[i] != NULL; i++) {
        ew_buf_char(out, ' ');
        put_batch_argument(out, arguments[i]);
    }
    ew_buf_char(out, '"');
    return true;
}
