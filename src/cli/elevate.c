/* SPDX-License-Identifier: MIT */
/*
 * --elevate: when this process lacks the rights of an administrator, the program is started again
 * with them, if the user agrees. That process gets no handle of this one: it writes to the same
 * console, or to the file of -o, never to a pipe.
 */
#include "cli/cli.h"

enum { CANCELLED = 1223 };

static bool arrived;

void ew_elevate_arrived(void)
{
    arrived = true;
}

/* These write their result to a file, or have none. */
static bool needs_output(const struct ew_options *options)
{
    return options->output_path == NULL && options->command != EW_CMD_RECORD &&
           options->command != EW_CMD_SERVICE && options->command != EW_CMD_SERVE;
}

static int restart(const struct ew_elevator *elevator, int argc, char *const *argv)
{
    int code = EW_EXIT_FAILED;
    uint32_t error = elevator->restart(elevator->ctx, argc, argv, &code);
    if (error == 0)
        return code;
    if (error == CANCELLED)
        ew_print_error("the rights of an administrator were refused: the question of Windows was "
                       "answered with no");
    else
        ew_print_error("--elevate: Windows cannot start etwatch with the rights of an "
                       "administrator (error %u)",
                       (unsigned)error);
    return EW_EXIT_RIGHTS;
}

bool ew_elevate(const struct ew_elevator *elevator, int argc, char *const *argv,
                const struct ew_options *options, int *ret_code)
{
    *ret_code = EW_EXIT_USAGE;
    if (elevator == NULL) {
        ew_print_error("--elevate exists on Windows only; here use: sudo etwatch %s",
                       ew_command_name(options->command));
        return true;
    }
    /* With the rights or without them: it is not restarted a second time. */
    if (arrived || elevator->has_rights(elevator->ctx))
        return false;
    if (needs_output(options) && !elevator->has_console(elevator->ctx)) {
        ew_print_error("--elevate: a program with more rights cannot write to this pipe or file; "
                       "add -o FILE, or run it in an elevated terminal");
        return true;
    }
    *ret_code = restart(elevator, argc, argv);
    return true;
}
