/* SPDX-License-Identifier: MIT */
/*
 * Restarts the program through the verb "runas" of the shell, which lets the user agree. The new
 * process inherits nothing, so its first argument names our process, for its console, and our
 * folder (entry_windows.c reads it).
 */
#include <stdio.h>
#include <string.h>
#include <windows.h>
/* Needs windows.h before it. */
#include <shellapi.h>

#include "base/alloc.h"
#include "cli/cli.h"
#include "os/os.h"
#include "os/windows/text.h"

enum { PATH_UNITS = 4096 };

static bool has_rights(void *ctx)
{
    TOKEN_ELEVATION elevation = {0};
    DWORD size = 0;
    HANDLE token;
    (void)ctx;
    if (!OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token))
        return false;
    bool known =
        GetTokenInformation(token, TokenElevation, &elevation, sizeof elevation, &size) != 0;
    (void)CloseHandle(token);
    return known && elevation.TokenIsElevated != 0;
}

static bool has_console(void *ctx)
{
    (void)ctx;
    return ew_term_is(EW_TERM_OUT);
}

/* "--elevated-from=PID:FOLDER" and the arguments; NULL if memory is exhausted. */
static wchar_t *make_parameters(int argc, char *const *argv)
{
    wchar_t folder[PATH_UNITS];
    char first[PATH_UNITS * 3 + 64];
    wchar_t *wide = NULL;
    struct ew_buf text;
    DWORD units = GetCurrentDirectoryW(PATH_UNITS, folder);
    if (units >= PATH_UNITS)
        units = 0;
    int len = snprintf(first, sizeof first, EW_ELEVATED_FROM "%lu:", GetCurrentProcessId());
    (void)ew_wide_to_utf8(folder, units, first + len, sizeof first - (size_t)len);
    ew_buf_init(&text, 0, NULL, NULL);
    ew_quote_argument(&text, first);
    ew_buf_char(&text, ' ');
    ew_quote_arguments(&text, argc, argv, 1);
    ew_buf_char(&text, '\0');
    if (text.error == 0)
        wide = ew_wide_from_utf8(text.data);
    ew_buf_done(&text);
    return wide;
}

/* The other process is at the same console and gets Ctrl-C too; this one waits for it. */
static BOOL WINAPI ignore(DWORD event)
{
    return event == CTRL_C_EVENT || event == CTRL_BREAK_EVENT;
}

static uint32_t run(struct ew_os_library *shell, SHELLEXECUTEINFOW *info, int *ret_exit_code)
{
    BOOL(WINAPI * execute)(SHELLEXECUTEINFOW *) = NULL;
    void (*function)(void) = ew_os_library_function(shell, "ShellExecuteExW");
    DWORD code = EW_EXIT_FAILED;
    memcpy(&execute, &function, sizeof execute);
    if (execute == NULL)
        return ERROR_PROC_NOT_FOUND;
    (void)SetConsoleCtrlHandler(ignore, TRUE);
    if (!execute(info))
        return GetLastError();
    if (info->hProcess == NULL)
        return ERROR_INVALID_HANDLE;
    (void)WaitForSingleObject(info->hProcess, INFINITE);
    (void)GetExitCodeProcess(info->hProcess, &code);
    (void)CloseHandle(info->hProcess);
    *ret_exit_code = (int)code;
    return 0;
}

static uint32_t restart(void *ctx, int argc, char *const *argv, int *ret_exit_code)
{
    wchar_t program[PATH_UNITS];
    char why[128];
    DWORD units = GetModuleFileNameW(NULL, program, PATH_UNITS);
    (void)ctx;
    if (units == 0 || units >= PATH_UNITS)
        return ERROR_FILENAME_EXCED_RANGE;
    struct ew_os_library *shell = ew_os_library_open("shell32.dll", why, sizeof why);
    wchar_t *parameters = make_parameters(argc, argv);
    uint32_t error = shell == NULL ? (uint32_t)ERROR_MOD_NOT_FOUND : 0;
    if (parameters == NULL)
        error = ERROR_NOT_ENOUGH_MEMORY;
    if (error == 0) {
        SHELLEXECUTEINFOW info = {
            .cbSize = sizeof info,
            .fMask = SEE_MASK_NOCLOSEPROCESS | SEE_MASK_NOASYNC | SEE_MASK_FLAG_NO_UI,
            .lpVerb = L"runas",
            .lpFile = program,
            .lpParameters = parameters,
            .nShow = SW_SHOWNORMAL,
        };
        error = run(shell, &info, ret_exit_code);
    }
    ew_free(parameters);
    ew_os_library_close(shell);
    return error;
}

const struct ew_elevator *ew_elevator_real(void)
{
    static const struct ew_elevator elevator = {
        .has_rights = has_rights, .has_console = has_console, .restart = restart};
    return &elevator;
}
