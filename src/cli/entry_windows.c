/* SPDX-License-Identifier: MIT */
/*
 * The entry point: converts the arguments from UTF-16 to UTF-8, switches the outputs to binary, so
 * that line ends are not changed, and the console to UTF-8. The console is shared with other
 * programs, so its code page is restored at the end.
 */
#include <fcntl.h>
#include <io.h>
#include <stdio.h>
#include <stdlib.h>
#include <windows.h>

#include "base/alloc.h"
#include "base/utf16.h"
#include "cli/cli.h"
#include "os/windows/text.h"
#include "serve/server_windows.h"

/* Keeps the C library from expanding *.etl and patterns of names: 0 turns that off. */
int _dowildcard = 0;

int wmain(int argc, wchar_t **wide);

static UINT code_page_before;

static void restore_console(void)
{
    (void)SetConsoleOutputCP(code_page_before);
}

static void prepare_output(void)
{
    (void)_setmode(_fileno(stdout), _O_BINARY);
    (void)_setmode(_fileno(stderr), _O_BINARY);
    code_page_before = GetConsoleOutputCP();
    if (code_page_before != 0 && code_page_before != CP_UTF8 && SetConsoleOutputCP(CP_UTF8))
        (void)atexit(restore_console);
}

static char **convert(int argc, wchar_t **wide)
{
    char **argv = ew_calloc((size_t)argc + 1, sizeof *argv);
    for (int i = 0; argv && i < argc; i++) {
        size_t units = wcslen(wide[i]), size = EW_UTF16_UTF8_MAX(units * sizeof(wchar_t)) + 1;
        argv[i] = ew_calloc(size, 1);
        if (!argv[i])
            return NULL;
        (void)ew_wide_to_utf8(wide[i], units, argv[i], size);
    }
    return argv;
}

static void say(const char *text)
{
    ew_print_error("%s", text);
}

int wmain(int argc, wchar_t **wide)
{
    prepare_output();
    if (argc == 2 && wcscmp(wide[1], EW_SERVER_WORD) == 0)
        return ew_server_run(say);
    /* Never freed: they are used until the end. */
    char **argv = convert(argc, wide);
    if (!argv) {
        (void)fputs("etwatch: out of memory\n", stderr);
        return EW_EXIT_FAILED;
    }
    return ew_main(argc, argv);
}
