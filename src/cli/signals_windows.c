/* SPDX-License-Identifier: MIT */
/*
 * Owns the handler of console events: Ctrl-C, Ctrl-Break, and the end of the console, the session
 * or the machine. Windows calls it on a separate thread, where it only sets flags; the main loop
 * never sleeps longer than a quarter of a second and then checks them.
 *
 * Windows sends the event to every process of a console, including the child of `run`, so nothing
 * is forwarded.
 */
#include "cli/cli.h"
#include "cli/service.h"

#include <signal.h>
#include <stdio.h>
#include <windows.h>

/* When a console closes, Windows ends the process after this time. */
enum { CLOSE_GRACE_MS = 5000 };

static volatile LONG ending, ending_count, user_request;

static int number_of(DWORD event)
{
    switch (event) {
    case CTRL_C_EVENT:
        return SIGINT;
    case CTRL_BREAK_EVENT:
        return SIGBREAK;
    default:
        return SIGTERM;
    }
}

void ew_signals_request(int number)
{
    (void)InterlockedCompareExchange(&ending, number, 0);
    (void)InterlockedIncrement(&ending_count);
}

void ew_signals_request_user(void)
{
    (void)InterlockedExchange(&user_request, 1);
}

static BOOL WINAPI on_event(DWORD event)
{
    /* Only services see it, whenever any user logs off. */
    if (event == CTRL_LOGOFF_EVENT)
        return TRUE;
    ew_signals_request(number_of(event));
    /* Windows ends the process when this returns; the main thread exits before. */
    if (event != CTRL_C_EVENT && event != CTRL_BREAK_EVENT)
        Sleep(CLOSE_GRACE_MS);
    return TRUE;
}

void ew_signals_init(void)
{
    (void)SetConsoleCtrlHandler(on_event, TRUE);
}

void ew_signals_watch_child(void)
{
}

void ew_signals_watch_screen(void)
{
}

void ew_signals_watch_user(void)
{
}

bool ew_signals_take_user(void)
{
    return InterlockedExchange(&user_request, 0) != 0;
}

void ew_signals_restore(void)
{
    (void)SetConsoleCtrlHandler(on_event, FALSE);
}

int ew_signals_ending(void)
{
    return (int)ending;
}

bool ew_signals_insisting(void)
{
    return ending_count > 1;
}

int ew_signals_take_forward(void)
{
    return 0;
}

/* The size of the screen is read at every redraw. */
bool ew_signals_take_resize(void)
{
    return false;
}

bool ew_signals_take_suspend(void)
{
    return false;
}

void ew_signals_suspend(void)
{
}

const char *ew_signals_name(int number)
{
    static char text[32];
    switch (number) {
    case SIGINT:
        return "Ctrl-C";
    case SIGBREAK:
        return "Ctrl-Break";
    case SIGTERM:
        return "SIGTERM";
    default:
        (void)snprintf(text, sizeof text, "signal %d", number);
        return text;
    }
}
