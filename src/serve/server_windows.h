/* SPDX-License-Identifier: MIT */
/* How the program becomes the serving process on Windows, which has no fork. */
#ifndef EW_SERVE_SERVER_WINDOWS_H
#define EW_SERVE_SERVER_WINDOWS_H

/* The only argument of the serving process. It is no command: without the pipes of the collecting
 * process it ends at once. */
#define EW_SERVER_WORD L"--serving-process"

/* Runs it to its end, and returns the exit status. say: one line for people. */
int ew_server_run(void (*say)(const char *text));

#endif
