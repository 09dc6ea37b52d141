/* SPDX-License-Identifier: MIT */
/*
 * Owns the modes of the console: ew_term_raw and ew_term_color change them, ew_term_restore and the
 * exit of the program restore them, because the console outlives the program.
 */
#include "cli/cli.h"

#include <stdlib.h>
#include <windows.h>

static DWORD input_before, output_before[3];
static bool raw, changed[3];

static HANDLE handle_of(int which)
{
    return GetStdHandle(which == EW_TERM_ERR ? STD_ERROR_HANDLE : STD_OUTPUT_HANDLE);
}

bool ew_term_is(int which)
{
    DWORD mode;
    return GetConsoleMode(handle_of(which), &mode) != 0;
}

static void restore_output(void)
{
    for (int which = EW_TERM_OUT; which <= EW_TERM_ERR; which++)
        if (changed[which])
            (void)SetConsoleMode(handle_of(which), output_before[which]);
}

/* Consoles of Windows 10 and newer understand escape sequences once this mode is set. */
static bool enable_sequences(int which)
{
    const DWORD needed = ENABLE_PROCESSED_OUTPUT | ENABLE_VIRTUAL_TERMINAL_PROCESSING;
    DWORD mode;
    if (!GetConsoleMode(handle_of(which), &mode))
        return false;
    if ((mode & needed) == needed)
        return true;
    if (!SetConsoleMode(handle_of(which), mode | needed))
        return false;
    output_before[which] = mode;
    changed[which] = true;
    (void)atexit(restore_output);
    return true;
}

bool ew_term_color(int which)
{
    const char *no_color = getenv("NO_COLOR");
    return enable_sequences(which) && (no_color == NULL || no_color[0] == '\0');
}

void ew_term_size(uint32_t *ret_columns, uint32_t *ret_rows)
{
    CONSOLE_SCREEN_BUFFER_INFO info;
    *ret_columns = 80;
    *ret_rows = 24;
    if (!GetConsoleScreenBufferInfo(handle_of(EW_TERM_OUT), &info))
        return;
    int columns = info.srWindow.Right - info.srWindow.Left + 1;
    int rows = info.srWindow.Bottom - info.srWindow.Top + 1;
    if (columns > 0 && rows > 0) {
        *ret_columns = (uint32_t)columns;
        *ret_rows = (uint32_t)rows;
    }
}

bool ew_term_raw(void)
{
    HANDLE input = GetStdHandle(STD_INPUT_HANDLE);
    if (!GetConsoleMode(input, &input_before))
        return false;
    DWORD mode = input_before & ~(DWORD)(ENABLE_LINE_INPUT | ENABLE_ECHO_INPUT);
    raw = SetConsoleMode(input, mode) != 0;
    return raw;
}

void ew_term_restore(void)
{
    if (raw)
        (void)SetConsoleMode(GetStdHandle(STD_INPUT_HANDLE), input_before);
    raw = false;
}

/* Events of the mouse, of windows and of released keys are removed and ignored. Peeks before
 * reading: Wine listens to the keyboard only then. */
int ew_term_key(void)
{
    HANDLE input = GetStdHandle(STD_INPUT_HANDLE);
    INPUT_RECORD record;
    DWORD count = 0;
    while (raw && PeekConsoleInputW(input, &record, 1, &count) && count > 0) {
        if (!ReadConsoleInputW(input, &record, 1, &count) || count != 1)
            return 0;
        WCHAR key = record.Event.KeyEvent.uChar.UnicodeChar;
        if (record.EventType == KEY_EVENT && record.Event.KeyEvent.bKeyDown && key > 0 && key < 128)
            return key;
    }
    return 0;
}
