/* SPDX-License-Identifier: MIT */
/* Which names a pattern matches. */
#include "model/name.h"
#include "test.h"

TEST(a_pattern_matches_its_name_and_versions_of_it)
{
    static const struct {
        const char *pattern, *name;
        int matches;
        const char *remark;
    } rows[] = {
        {"python", "python", 1, "the same"},
        {"python", "python3.11", 1, "a digit follows"},
        {"python", "python.exe", 1, "a dot follows"},
        {"python", "python-dbg", 1, "a dash follows"},
        {"python", "pythonista", 0, "a letter follows"},
        {"python", "python_x", 0, "an underscore follows"},
        {"python", "python ", 0, "a blank follows"},
        {"python", "Python", 0, "case counts"},
        {"python", "pytho", 0, "the name is shorter"},
        {"python", "xpython", 0, "the pattern is not at the start"},
        {"python3", "python3.11", 1, "the pattern ends in a digit"},
        {"python3", "python", 0, "the pattern is longer"},
        {"python3.11", "python3.1", 0, "a prefix of the pattern"},
        {"", "python", 0, "an empty pattern"},
        {"", "", 0, "an empty pattern matches nothing"},
        {"python", "", 0, "a process without a name"},
        {"my-very-long-program", "my-very-long-pr", 1, "Linux cut the name"},
        {"my-very-long-program", "my-very-long-p", 0, "shorter than Linux cuts"},
        {"my-very-long-program", "my-very-long-px", 0, "cut, but another one"},
        {"my-very-long-pr", "my-very-long-pr", 1, "as long as Linux keeps"},
        {"py*", "python3.11", 1, "a star at the end"},
        {"*thon*", "python3.11", 1, "stars around"},
        {"*.exe", "python.exe", 1, "a star at the start"},
        {"*.exe", "python.exe.bak", 0, "a glob is the whole name"},
        {"p?thon", "python", 1, "any one byte"},
        {"p?thon", "pthon", 0, "but not zero bytes"},
        {"python?", "python", 0, "nor at the end"},
        {"*", "anything", 1, "everything"},
        {"a*b*c", "aXXbYYbc", 1, "the last star is made longer"},
        {"a*b*c", "acb", 0, "in this order"},
        {"*a*b*c*d*e", "aaaaaaaaaaaaaaaaaaaaaaaaaaa", 0, "many stars and no end"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].remark);
        CHECK_EQ_INT(ew_name_matches(rows[i].pattern, rows[i].name), rows[i].matches);
    }
}

TEST(names_of_windows_are_compared_without_case)
{
    static const struct {
        const char *pattern, *name;
        bool matches;
    } rows[] = {
        {"notepad.exe", "Notepad.exe", true}, {"NOTEPAD", "notepad.exe", true},
        {"note*", "Notepad.EXE", true},       {"NOTE*", "notepad.exe", true},
        {"system", "System", true},           {"note", "notepad.exe", false},
        {"Python3", "python3", false}, /* Linux: case matters */
        {"PYTHON*", "python3", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].pattern);
        CHECK_EQ_INT(ew_name_matches(rows[i].pattern, rows[i].name), rows[i].matches);
    }
}
