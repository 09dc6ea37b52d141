/* SPDX-License-Identifier: MIT */
/* --elevate: when the program is started again, and what its user reads if it cannot be. */
#include "test.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/elevate.c"

static char message[512];
static struct {
    bool rights, console;
    uint32_t error;
    int exit_code, restarts;
} windows;

void ew_print_error(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
}

const char *ew_command_name(enum ew_command command)
{
    return command == EW_CMD_STAT ? "stat" : "record";
}

static bool has_rights(void *ctx)
{
    (void)ctx;
    return windows.rights;
}

static bool has_console(void *ctx)
{
    (void)ctx;
    return windows.console;
}

static uint32_t restart_again(void *ctx, int argc, char *const *argv, int *ret_exit_code)
{
    (void)ctx;
    CHECK_EQ_INT(argc, 2);
    CHECK_EQ_STR(argv[1], "stat");
    windows.restarts++;
    *ret_exit_code = windows.exit_code;
    return windows.error;
}

static const struct ew_elevator elevator = {
    .has_rights = has_rights, .has_console = has_console, .restart = restart_again};

/* Whether this process is done. */
static bool elevate(enum ew_command command, const char *output, int *ret_code)
{
    static char program[] = "etwatch", word[] = "stat", path[] = "x";
    char *argv[] = {program, word, NULL};
    struct ew_options options = {.command = command, .output_path = output != NULL ? path : NULL};
    message[0] = '\0';
    return ew_elevate(&elevator, 2, argv, &options, ret_code);
}

TEST(only_a_process_without_rights_is_started_again)
{
    int code = -1;
    memset(&windows, 0, sizeof windows);
    windows.rights = true;
    CHECK(!elevate(EW_CMD_STAT, NULL, &code));
    CHECK_EQ_INT(windows.restarts, 0);
    windows.rights = false;
    windows.console = true;
    windows.exit_code = 7;
    CHECK(elevate(EW_CMD_STAT, NULL, &code));
    CHECK_EQ_INT(windows.restarts, 1);
    CHECK_EQ_INT(code, 7);
    CHECK_EQ_STR(message, "");
}

TEST(output_that_the_other_process_cannot_reach_is_refused)
{
    int code = -1;
    memset(&windows, 0, sizeof windows);
    CHECK(elevate(EW_CMD_STAT, NULL, &code));
    CHECK_EQ_INT(code, EW_EXIT_USAGE);
    CHECK(strstr(message, "add -o FILE") != NULL);
    CHECK_EQ_INT(windows.restarts, 0);
    CHECK(elevate(EW_CMD_STAT, "x", &code));
    CHECK(elevate(EW_CMD_RECORD, "x", &code));
    CHECK(elevate(EW_CMD_SERVICE, NULL, &code));
    CHECK(elevate(EW_CMD_SERVE, NULL, &code));
    CHECK_EQ_INT(windows.restarts, 4);
}

TEST(a_refusal_has_a_message_and_the_exit_code_of_missing_rights)
{
    int code = -1;
    memset(&windows, 0, sizeof windows);
    windows.console = true;
    windows.error = CANCELLED;
    CHECK(elevate(EW_CMD_STAT, NULL, &code));
    CHECK_EQ_INT(code, EW_EXIT_RIGHTS);
    CHECK(strstr(message, "were refused") != NULL);
    windows.error = 5;
    CHECK(elevate(EW_CMD_STAT, NULL, &code));
    CHECK_EQ_INT(code, EW_EXIT_RIGHTS);
    CHECK(strstr(message, "(error 5)") != NULL);
}

TEST(elsewhere_it_names_sudo)
{
    struct ew_options options = {.command = EW_CMD_STAT};
    int code = -1;
    CHECK(ew_elevate(NULL, 0, NULL, &options, &code));
    CHECK_EQ_INT(code, EW_EXIT_USAGE);
    CHECK(strstr(message, "sudo etwatch stat") != NULL);
}

/* Last: it cannot be undone. */
TEST(a_process_that_was_started_again_is_not_started_once_more)
{
    int code = -1;
    memset(&windows, 0, sizeof windows);
    ew_elevate_arrived();
    CHECK(!elevate(EW_CMD_STAT, NULL, &code));
    CHECK_EQ_INT(windows.restarts, 0);
}
