/* SPDX-License-Identifier: MIT */
/* The program: reads the command line and calls the command. */
#include <stdio.h>

#include "cli/cli.h"
#include "os/os.h"

static int print(const char *text, size_t len)
{
    struct ew_output output;
    ew_output_init(&output, -1, NULL);
    if (ew_output_write(&output, text, len) == 0 || ew_output_reader_gone(&output))
        return EW_EXIT_OK;
    return ew_print_write_error(NULL, output.os_error);
}

static int print_help(enum ew_command command)
{
    struct ew_buf text;
    ew_buf_init(&text, 0, NULL, NULL);
    ew_help_write(&text, command, ew_os_is_windows() ? EW_ON_WINDOWS : EW_ON_LINUX);
    int code = text.error == 0 ? print(text.data, text.len) : EW_EXIT_FAILED;
    ew_buf_done(&text);
    return code;
}

static int print_version(void)
{
    char text[64];
    int len = snprintf(text, sizeof text, "etwatch %s\n", etwatch_version());
    return len > 0 ? print(text, (size_t)len) : EW_EXIT_FAILED;
}

static int run_command(const struct ew_options *options)
{
    switch (options->command) {
    case EW_CMD_RUN:
        return ew_cmd_run(options);
    case EW_CMD_STAT:
        return ew_cmd_stat(options);
    case EW_CMD_TOP:
        return ew_cmd_top(options);
    case EW_CMD_DOCTOR:
        return ew_cmd_doctor(options);
    case EW_CMD_REPORT:
        return ew_cmd_report(options);
    case EW_CMD_EVENTS:
        return ew_cmd_events(options);
    case EW_CMD_EXPORT:
        return ew_cmd_export(options);
    case EW_CMD_RECORD:
        return ew_cmd_record(options);
    case EW_CMD_SESSIONS:
        return ew_cmd_sessions(options);
    case EW_CMD_SERVICE:
        return ew_cmd_service(options);
    case EW_CMD_WAITS:
        return ew_cmd_waits(options);
    case EW_CMD_ONNX:
        return ew_cmd_onnx(options);
    case EW_CMD_CONFIG:
        return ew_cmd_config(options);
    case EW_CMD_SERVE:
        return ew_cmd_serve(options);
    case EW_CMD_COMPARE:
        return ew_cmd_compare(options);
    case EW_CMD_METRICS:
        return ew_cmd_metrics(options);
    default:
        return EW_EXIT_USAGE;
    }
}

int ew_main(int argc, char **argv)
{
    struct ew_options options;
    char message[EW_MESSAGE_SIZE];
    int code = ew_options_parse(argc, argv, &options, message);
    if (code != 0)
        ew_print_error("%s", message);
    else if (options.help)
        code = print_help(options.command);
    else if (options.version)
        code = print_version();
    else if (!options.elevate || !ew_elevate(ew_elevator_real(), argc, argv, &options, &code))
        code = run_command(&options);
    ew_options_done(&options);
    return code;
}
