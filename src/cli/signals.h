/* SPDX-License-Identifier: MIT */
/* Signals as facts that the main loop asks for. */
#ifndef EW_CLI_SIGNALS_H
#define EW_CLI_SIGNALS_H

#include <stdbool.h>

/* From now on signals that end the program are only noted, and a closed pipe is an error of write.
 * What was ignored when the program began stays ignored. */
void ew_signals_init(void);
/* Also notes SIGCHLD (run) or window changes and stops (top). */
void ew_signals_watch_child(void);
void ew_signals_watch_screen(void);

/* Also notes the user's own signal (SIGUSR1), where there is one. */
void ew_signals_watch_user(void);
/* True once after it came. */
bool ew_signals_take_user(void);

/* The signal that asks us to end, or 0. */
int ew_signals_ending(void);
/* True if there was more than one: the user will not wait for a slow reader. */
bool ew_signals_insisting(void);
/* As ending, but each signal once, and only those meant for us alone: what a terminal sends goes to
 * the child too, so it must not be passed on a second time. */
int ew_signals_take_forward(void);
bool ew_signals_take_resize(void);
/* True if the user asked to suspend (Ctrl-Z); ew_signals_suspend then does. */
bool ew_signals_take_suspend(void);
void ew_signals_suspend(void);
/* In a child, before exec: everything as it was before ew_signals_init. */
void ew_signals_restore(void);
/* The name of a signal, such as "SIGTERM", or "signal 40". Until the next call. */
const char *ew_signals_name(int number);

#endif
