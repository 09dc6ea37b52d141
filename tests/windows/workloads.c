/* SPDX-License-Identifier: MIT */
/*
 * Watched by the tests of the program for Windows: a program that knows what it did.
 *
 * burn MS: computes until it has used MS of CPU time, sleeps, and prints how much it was.
 * work CODE: burns a little and exits with this code.
 * args ARG…: prints its arguments in UTF-8, one per line.
 * tree MS: starts itself to burn, waits for it.
 * orphan MS: starts itself to start itself to burn, and exits at once, as the next does.
 * leave MS: starts itself to sleep, and exits at once.
 * here MS: prints its ID, and works now and then for MS.
 * exit CODE, sleep MS [CODE].
 * mark FILE: sleeps and appends a byte to the file every tenth of a second.
 * touch FILE: creates it. alone FILE: exits with 0 if no other process has it open.
 */
#include <fcntl.h>
#include <io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <windows.h>

int wmain(int argc, wchar_t **argv);

static unsigned long long used_ms(void)
{
    FILETIME created, ended, kernel, user;
    (void)GetProcessTimes(GetCurrentProcess(), &created, &ended, &kernel, &user);
    unsigned long long units =
        ((unsigned long long)kernel.dwHighDateTime << 32 | kernel.dwLowDateTime) +
        ((unsigned long long)user.dwHighDateTime << 32 | user.dwLowDateTime);
    return units / 10000;
}

/* The sleep is longer than an interval of the monitor, so that the monitor sees all of it. */
static int burn(unsigned long long ms)
{
    while (used_ms() < ms)
        for (volatile unsigned i = 0; i < 200000; i++)
            continue;
    Sleep(300);
    printf("%llu\n", used_ms());
    return 0;
}

/* A minute: the test kills this process earlier. */
static int mark(const wchar_t *path)
{
    for (int i = 0; i < 600; i++) {
        FILE *file = _wfopen(path, L"ab");
        if (!file)
            return 1;
        (void)fputc('.', file);
        (void)fclose(file);
        Sleep(100);
    }
    return 0;
}

static int here(unsigned long long ms)
{
    printf("%lu\n", GetCurrentProcessId());
    (void)fflush(stdout);
    for (unsigned long long i = 0; i < ms; i += 20) {
        for (volatile unsigned j = 0; j < 2000000; j++)
            continue;
        Sleep(20);
    }
    return 0;
}

static int open_file(const wchar_t *path, DWORD access, DWORD disposition)
{
    HANDLE file = CreateFileW(path, access, 0, NULL, disposition, FILE_ATTRIBUTE_NORMAL, NULL);
    if (file == INVALID_HANDLE_VALUE)
        return 1;
    (void)CloseHandle(file);
    return 0;
}

static int write_arguments(int argc, wchar_t **argv)
{
    char text[4096];
    for (int i = 2; i < argc; i++) {
        if (WideCharToMultiByte(CP_UTF8, 0, argv[i], -1, text, sizeof text, NULL, NULL) == 0)
            return 1;
        printf("%s\n", text);
    }
    return 0;
}

static int start_self(const wchar_t *act, const wchar_t *ms, int wait)
{
    wchar_t program[MAX_PATH], line[MAX_PATH + 64];
    STARTUPINFOW startup = {.cb = sizeof startup};
    PROCESS_INFORMATION made;
    if (GetModuleFileNameW(NULL, program, MAX_PATH) == 0)
        return 1;
    (void)swprintf(line, sizeof line / sizeof line[0], L"\"%ls\" %ls %ls", program, act, ms);
    if (!CreateProcessW(program, line, NULL, NULL, TRUE, 0, NULL, NULL, &startup, &made))
        return 1;
    if (wait)
        (void)WaitForSingleObject(made.hProcess, INFINITE);
    return 0;
}

int wmain(int argc, wchar_t **argv)
{
    const wchar_t *act = argc > 1 ? argv[1] : L"";
    const wchar_t *value = argc > 2 ? argv[2] : L"0";
    (void)_setmode(_fileno(stdout), _O_BINARY);
    if (wcscmp(act, L"burn") == 0)
        return burn(wcstoul(value, NULL, 10));
    if (wcscmp(act, L"work") == 0)
        return burn(300), (int)wcstoul(value, NULL, 0);
    if (wcscmp(act, L"mark") == 0)
        return mark(value);
    if (wcscmp(act, L"args") == 0)
        return write_arguments(argc, argv);
    if (wcscmp(act, L"tree") == 0)
        return start_self(L"burn", value, 1);
    if (wcscmp(act, L"orphan") == 0)
        return start_self(L"between", value, 0);
    if (wcscmp(act, L"between") == 0)
        return start_self(L"burn", value, 0);
    if (wcscmp(act, L"leave") == 0)
        return start_self(L"sleep", value, 0);
    if (wcscmp(act, L"here") == 0)
        return here(wcstoul(value, NULL, 10));
    if (wcscmp(act, L"touch") == 0)
        return open_file(value, GENERIC_WRITE, CREATE_ALWAYS);
    if (wcscmp(act, L"alone") == 0)
        return open_file(value, GENERIC_READ | DELETE, OPEN_EXISTING);
    if (wcscmp(act, L"exit") == 0)
        return (int)wcstoul(value, NULL, 0);
    if (wcscmp(act, L"sleep") == 0)
        Sleep(wcstoul(value, NULL, 10));
    return argc > 3 ? (int)wcstoul(argv[3], NULL, 0) : 0;
}
