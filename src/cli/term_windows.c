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

static int code_of(const KEY_EVENT_RECORD *key)
{
    switch (key->wVirtualKeyCode) {
    case VK_UP:
        return EW_KEY_UP;
    case VK_DOWN:
        return EW_KEY_DOWN;
    case VK_LEFT:
        return EW_KEY_LEFT;
    case VK_RIGHT:
        return EW_KEY_RIGHT;
    case VK_PRIOR:
        return EW_KEY_PAGE_UP;
    case VK_NEXT:
        return EW_KEY_PAGE_DOWN;
    case VK_HOME:
        return EW_KEY_HOME;
    case VK_END:
        return EW_KEY_END;
    case VK_ESCAPE:
        return EW_KEY_ESCAPE;
    default:
        return key->uChar.UnicodeChar < 128 ? key->uChar.UnicodeChar : 0;
    }
}

/* The console reports positions in its whole buffer; the screen is a window of it. */
static void take_mouse(const MOUSE_EVENT_RECORD *mouse, struct ew_key *key)
{
    CONSOLE_SCREEN_BUFFER_INFO info;
    bool down = (mouse->dwButtonState & FROM_LEFT_1ST_BUTTON_PRESSED) != 0;
    if (!GetConsoleScreenBufferInfo(handle_of(EW_TERM_OUT), &info))
        return;
    int column = mouse->dwMousePosition.X - info.srWindow.Left;
    int row = mouse->dwMousePosition.Y - info.srWindow.Top;
    if (column < 0 || row < 0)
        return;
    key->column = (uint32_t)column;
    key->row = (uint32_t)row;
    if (mouse->dwEventFlags == 0 && down)
        key->code = EW_KEY_CLICK;
    else if (mouse->dwEventFlags == MOUSE_WHEELED)
        key->code = (int32_t)mouse->dwButtonState < 0 ? EW_KEY_WHEEL_DOWN : EW_KEY_WHEEL_UP;
}

/* Peeks before reading: Wine listens to the keyboard only then. */
bool ew_term_key(struct ew_key *ret_key)
{
    HANDLE input = GetStdHandle(STD_INPUT_HANDLE);
    INPUT_RECORD record;
    DWORD count = 0;
    *ret_key = (struct ew_key){0};
    while (raw && PeekConsoleInputW(input, &record, 1, &count) && count > 0) {
        if (!ReadConsoleInputW(input, &record, 1, &count) || count != 1)
            return false;
        if (record.EventType == KEY_EVENT && record.Event.KeyEvent.bKeyDown)
            ret_key->code = code_of(&record.Event.KeyEvent);
        else if (record.EventType == MOUSE_EVENT)
            take_mouse(&record.Event.MouseEvent, ret_key);
        if (ret_key->code != 0)
            return true;
    }
    return false;
}

bool ew_term_is_utf8(void)
{
    return GetConsoleOutputCP() == CP_UTF8;
}

/* Without the mode "quick edit" the console delivers the mouse instead of selecting text. */
void ew_term_mouse(bool on)
{
    HANDLE input = GetStdHandle(STD_INPUT_HANDLE);
    DWORD mode;
    if (!on || !raw || !GetConsoleMode(input, &mode))
        return; /* ew_term_restore sets the mode of before */
    mode &= ~(DWORD)ENABLE_QUICK_EDIT_MODE;
    (void)SetConsoleMode(input, mode | ENABLE_EXTENDED_FLAGS | ENABLE_MOUSE_INPUT);
}
