/* SPDX-License-Identifier: MIT */
/*
 * Messages for people: one line each, on standard error. Every message passes through print(),
 * which replaces what a terminal would interpret: messages quote names of processes, files and
 * sessions, and other users choose those.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "cli/cli.h"

static void (*write_line)(void *ctx, const char *line);
static void *write_ctx;

void ew_messages_to(void (*write)(void *ctx, const char *line), void *ctx)
{
    write_line = write;
    write_ctx = ctx;
}

static void print(const char *format, va_list args)
{
    char line[1200];
    (void)vsnprintf(line, sizeof line, format, args);
    struct ew_buf safe;
    ew_buf_init(&safe, 0, NULL, NULL);
    (void)ew_buf_screen(&safe, line, strlen(line), sizeof line);
    ew_buf_char(&safe, '\0');
    const char *text = safe.error == 0 ? safe.data : "";
    if (write_line != NULL)
        write_line(write_ctx, text);
    else
        (void)fprintf(stderr, "etwatch: %s\n", text);
    ew_buf_done(&safe);
}

void ew_print_error(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print(format, args);
    va_end(args);
}

void ew_print_info(const struct ew_options *options, const char *format, ...)
{
    va_list args;
    if (options->quiet)
        return;
    va_start(args, format);
    print(format, args);
    va_end(args);
}

void ew_print_if_unconfined(int confined)
{
    if (confined < 0)
        ew_print_error("the system refuses the filter of system calls (seccomp): %s; continuing "
                       "without it",
                       strerror(-confined));
}

int ew_exit_code(int rc)
{
    switch (rc) {
    case ETWATCH_EINVAL:
        return EW_EXIT_USAGE;
    case ETWATCH_EPERM:
    case ETWATCH_ENOTSUP:
        return EW_EXIT_RIGHTS;
    default:
        return EW_EXIT_FAILED;
    }
}

int ew_print_failure(const struct etwatch_error_info *err, int rc)
{
    const char *message = err->message[0] != '\0' ? err->message : etwatch_strerror(rc);
    ew_print_error("%s%s%s", message, err->fix[0] != '\0' ? "; " : "", err->fix);
    return ew_exit_code(rc);
}

int ew_print_write_error(const char *path, int os_error)
{
    ew_print_error("cannot write to %s: %s", path != NULL ? path : "standard output",
                   os_error == ELOOP
                       ? "another user's symbolic link is on the way, in a folder that "
                         "others can write to; name the file that it points to"
                   : os_error == ENOTSUP ? "--mode is not available on this system"
                                         : strerror(os_error));
    return EW_EXIT_FAILED;
}

int ew_child_print_error(char **command, int error)
{
    ew_print_error("cannot run %s: %s", command[0],
                   error == EINVAL ? "an argument cannot be passed to it (a batch file cannot get "
                                     "a line end)"
                                   : strerror(error));
    return error == ENOENT ? EW_EXIT_NOT_FOUND : EW_EXIT_CANNOT_EXEC;
}
