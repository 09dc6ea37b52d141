/* SPDX-License-Identifier: MIT */
/*
 * Owns the signal dispositions. Handlers only set flags; they are installed without SA_RESTART, so
 * that a sleeping or writing main loop is interrupted and checks them.
 *
 * A signal that arrives just before the loop sleeps does not wake it: so the loop never sleeps
 * longer than a quarter of a second.
 */
#include "cli/cli.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static const int endings[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
enum { ENDING_COUNT = sizeof endings / sizeof endings[0] };

static volatile sig_atomic_t ending, ending_count;
static volatile sig_atomic_t forward[ENDING_COUNT];
static volatile sig_atomic_t resized, suspending, user_signal;
static struct sigaction before[ENDING_COUNT], before_pipe;

static void on_ending(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (ending == 0)
        ending = number;
    if (ending_count < 2)
        ending_count = ending_count + 1;
    for (size_t i = 0; i < ENDING_COUNT; i++)
        if (endings[i] == number && info->si_code != SI_KERNEL)
            forward[i] = 1;
}

static void on_child(int number)
{
    (void)number; /* interrupting the sleep is enough */
}

static void on_resize(int number)
{
    (void)number;
    resized = 1;
}

static void on_suspend(int number)
{
    (void)number;
    suspending = 1;
}

static void on_user(int number)
{
    (void)number;
    user_signal = 1;
}

static void handle(int number, void (*handler)(int))
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(number, &action, NULL);
}

void ew_signals_init(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_ending;
    action.sa_flags = SA_SIGINFO;
    (void)sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < ENDING_COUNT; i++) {
        (void)sigaction(endings[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN)
            (void)sigaction(endings[i], &action, NULL);
    }
    (void)sigaction(SIGPIPE, NULL, &before_pipe);
    handle(SIGPIPE, SIG_IGN);
}

void ew_signals_watch_child(void)
{
    handle(SIGCHLD, on_child);
}

void ew_signals_watch_screen(void)
{
    handle(SIGWINCH, on_resize);
    handle(SIGTSTP, on_suspend);
}

void ew_signals_watch_user(void)
{
    handle(SIGUSR1, on_user);
}

bool ew_signals_take_user(void)
{
    bool was = user_signal != 0;
    user_signal = 0;
    return was;
}

void ew_signals_restore(void)
{
    for (size_t i = 0; i < ENDING_COUNT; i++)
        (void)sigaction(endings[i], &before[i], NULL);
    (void)sigaction(SIGPIPE, &before_pipe, NULL);
    handle(SIGCHLD, SIG_DFL);
    handle(SIGUSR1, SIG_DFL);
}

int ew_signals_ending(void)
{
    return ending;
}

bool ew_signals_insisting(void)
{
    return ending_count > 1;
}

int ew_signals_take_forward(void)
{
    for (size_t i = 0; i < ENDING_COUNT; i++) {
        if (forward[i] != 0) {
            forward[i] = 0;
            return endings[i];
        }
    }
    return 0;
}

bool ew_signals_take_resize(void)
{
    bool was = resized != 0;
    resized = 0;
    return was;
}

bool ew_signals_take_suspend(void)
{
    bool was = suspending != 0;
    suspending = 0;
    return was;
}

void ew_signals_suspend(void)
{
    (void)raise(SIGSTOP);
}

const char *ew_signals_name(int number)
{
    static char text[32];
    const char *name = sigabbrev_np(number);
    if (name != NULL)
        (void)snprintf(text, sizeof text, "SIG%s", name);
    else
        (void)snprintf(text, sizeof text, "signal %d", number);
    return text;
}
