/* SPDX-License-Identifier: MIT */
/*
 * The entry point: converts the arguments from UTF-16 to UTF-8, switches the outputs to binary, so
 * that line ends are not changed, and the console to UTF-8. The console is shared with other
 * programs, so its code page is restored at the end. A process that --elevate started first moves
 * to the console and the folder of the process that started it.
 */
#include <fcntl.h>
#include <io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* The C library has the handles of before. Read access too: the mode of a console needs it. */
static void use_console(const wchar_t *name, DWORD which, FILE *stream)
{
    SECURITY_ATTRIBUTES inherited = {.nLength = sizeof inherited, .bInheritHandle = TRUE};
    HANDLE handle =
        CreateFileW(name, GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE,
                    &inherited, OPEN_EXISTING, 0, NULL);
    int fd = handle == INVALID_HANDLE_VALUE ? -1 : _open_osfhandle((intptr_t)handle, 0);
    if (fd < 0)
        return;
    (void)_dup2(fd, _fileno(stream));
    (void)_close(fd);
    (void)SetStdHandle(which, (HANDLE)_get_osfhandle(_fileno(stream)));
}

/* where: "PID:FOLDER". If that console is gone it gets a new one. False: the folder is out of
 * reach. */
static bool move_to(const char *where)
{
    char *folder;
    unsigned long pid = strtoul(where, &folder, 10);
    if (pid != 0 && FreeConsole()) {
        if (!AttachConsole(pid))
            (void)AllocConsole();
        use_console(L"CONIN$", STD_INPUT_HANDLE, stdin);
        use_console(L"CONOUT$", STD_OUTPUT_HANDLE, stdout);
        use_console(L"CONOUT$", STD_ERROR_HANDLE, stderr);
    }
    wchar_t *path = *folder == ':' && folder[1] != '\0' ? ew_wide_from_utf8(folder + 1) : NULL;
    bool reached = path == NULL || SetCurrentDirectoryW(path);
    ew_free(path);
    return reached;
}

static void say(const char *text)
{
    ew_print_error("%s", text);
}

int wmain(int argc, wchar_t **wide)
{
    static const char from[] = EW_ELEVATED_FROM;
    const char *where = NULL;
    if (argc == 2 && wcscmp(wide[1], EW_SERVER_WORD) == 0) {
        prepare_output();
        return ew_server_run(say);
    }
    /* Never freed: they are used until the end. */
    char **argv = convert(argc, wide);
    if (!argv) {
        (void)fputs("etwatch: out of memory\n", stderr);
        return EW_EXIT_FAILED;
    }
    if (argc > 1 && strncmp(argv[1], from, sizeof from - 1) == 0) {
        where = argv[1] + sizeof from - 1;
        argv[1] = argv[0];
        argv++;
        argc--;
    }
    bool reached = where == NULL || move_to(where);
    prepare_output();
    if (!reached) {
        ew_print_error("the folder %s cannot be reached with the rights of an administrator; use "
                       "whole paths in another folder",
                       strchr(where, ':') + 1);
        return EW_EXIT_FAILED;
    }
    if (where != NULL)
        ew_elevate_arrived();
    return ew_main(argc, argv);
}
