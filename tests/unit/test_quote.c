/* SPDX-License-Identifier: MIT */
/* Command lines of Windows: quoted arguments must be parsed back unchanged by Microsoft's rules. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "cli/quote.c"

static const char *quoted(const char *argument)
{
    static struct ew_buf out;
    ew_buf_done(&out);
    ew_buf_init(&out, 0, NULL, NULL);
    ew_quote_argument(&out, argument);
    ew_buf_char(&out, '\0');
    CHECK_EQ_INT(out.error, 0);
    return out.data;
}

TEST(arguments_are_quoted_by_microsofts_rules)
{
    static const struct {
        const char *argument, *want, *remark;
    } rows[] = {
        {"plain", "plain", "nothing to do"},
        {"", "\"\"", "an empty one would vanish"},
        {"two words", "\"two words\"", "a blank"},
        {"tab\there", "\"tab\there\"", "a tab"},
        {"C:\\dir\\file", "C:\\dir\\file", "backslashes are plain"},
        {"C:\\a dir\\", "\"C:\\a dir\\\\\"", "doubled before the closing quote"},
        {"say \"hi\"", "\"say \\\"hi\\\"\"", "quotes"},
        {"a\\\"b", "\"a\\\\\\\"b\"", "a backslash before a quote"},
        {"a\\\\b c", "\"a\\\\b c\"", "backslashes elsewhere in quotes"},
        {"\\", "\\", "only a backslash"},
        {"\xc3\xa4 \xe2\x82\xac", "\"\xc3\xa4 \xe2\x82\xac\"", "not ASCII"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].remark);
        CHECK_EQ_STR(quoted(rows[i].argument), rows[i].want);
    }
}

/* The rules in reverse, as the C library of a program applies them to one argument. */
static void read_back(const char *line, char *ret_argument)
{
    bool inside = false;
    while (*line != '\0') {
        size_t slashes = strspn(line, "\\");
        line += slashes;
        if (*line == '"') {
            memset(ret_argument, '\\', slashes / 2);
            ret_argument += slashes / 2;
            if (slashes % 2 != 0)
                *ret_argument++ = '"';
            else
                inside = !inside;
            line++;
            continue;
        }
        memset(ret_argument, '\\', slashes);
        ret_argument += slashes;
        CHECK(inside || (*line != ' ' && *line != '\t'));
        if (*line != '\0')
            *ret_argument++ = *line++;
    }
    CHECK(!inside);
    *ret_argument = '\0';
}

static const char *batch(const char *program, const char *argument)
{
    static struct ew_buf out;
    char first[64];
    (void)snprintf(first, sizeof first, "%s", argument);
    char *arguments[] = {first, NULL};
    ew_buf_done(&out);
    ew_buf_init(&out, 0, NULL, NULL);
    if (!ew_quote_batch(&out, "C:\\cmd.exe", program, arguments))
        return NULL;
    ew_buf_char(&out, '\0');
    return out.data;
}

TEST(no_argument_of_a_batch_file_is_a_command)
{
#define HEAD "\"C:\\cmd.exe\" /e:on /v:off /d /s /c \"\"C:\\x.cmd\" "
    static const struct {
        const char *argument, *want, *remark;
    } rows[] = {
        {"plain-1.txt", HEAD "plain-1.txt\"", "nothing to do"},
        {"", HEAD "\"\"\"", "an empty one would vanish"},
        {"a&calc", HEAD "\"a&calc\"\"", "an operator"},
        {"a^b|c>d", HEAD "\"a^b|c>d\"\"", "others"},
        {"%PATH%", HEAD "\"%%cd:~,%PATH%%cd:~,%\"\"", "a variable"},
        {"\"&calc", HEAD "\"\"\"&calc\"\"", "a quote that would end the quotes"},
        {"a\\\"b", HEAD "\"a\\\\\"\"b\"\"", "backslashes before a quote"},
        {"C:\\a dir\\", HEAD "\"C:\\a dir\\\\\"\"", "and before the closing one"},
        {"!x!", HEAD "\"!x!\"\"", "delayed expansion is off"},
    };
#undef HEAD
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].remark);
        CHECK_EQ_STR(batch("C:\\x.cmd", rows[i].argument), rows[i].want);
    }
    CHECK(batch("C:\\x.cmd", "two\nlines") == NULL);
    CHECK(batch("C:\\x.cmd", "two\rlines") == NULL);
    CHECK(batch("C:\\\"x.cmd", "a") == NULL);
    CHECK_EQ_STR(batch("C:\\%a%.cmd", "a"), "\"C:\\cmd.exe\" /e:on /v:off /d /s /c "
                                            "\"\"C:\\%%cd:~,%a%%cd:~,%.cmd\" a\"");
}

TEST(every_short_argument_is_parsed_back_unchanged)
{
    static const char letters[] = {'a', ' ', '"', '\\', '\t'};
    enum { LETTERS = sizeof letters, LEN = 6 };
    size_t count = 1;
    for (int len = 0; len <= LEN; len++, count *= LETTERS) {
        for (size_t number = 0; number < count; number++) {
            char argument[LEN + 1] = "", back[4 * LEN];
            size_t rest = number;
            for (int i = 0; i < len; i++, rest /= LETTERS)
                argument[i] = letters[rest % LETTERS];
            read_back(quoted(argument), back);
            CHECK_EQ_STR(back, argument);
        }
    }
}

TEST(a_program_with_a_quote_in_its_name_is_refused)
{
    struct ew_buf out;
    ew_buf_init(&out, 0, NULL, NULL);
    CHECK(ew_quote_program(&out, "C:\\a b\\c.exe"));
    ew_buf_char(&out, '\0');
    CHECK_EQ_STR(out.data, "\"C:\\a b\\c.exe\"");
    CHECK(!ew_quote_program(&out, "a\" b"));
    ew_buf_done(&out);
}

TEST(batch_files_are_recognized_by_their_extension)
{
    CHECK(ew_quote_is_batch("x.bat"));
    CHECK(ew_quote_is_batch("C:\\x.CMD"));
    CHECK(ew_quote_is_batch("x.bat. ."));
    CHECK(!ew_quote_is_batch("bat"));
    CHECK(!ew_quote_is_batch("x.bat.exe"));
    CHECK(!ew_quote_is_batch(""));
}
