/* SPDX-License-Identifier: MIT */
/* The subcommands. Each returns the exit code of the program. */
#ifndef EW_CLI_COMMANDS_H
#define EW_CLI_COMMANDS_H

#include "cli/args/options.h"

/* The program, with its arguments in UTF-8. An exit code. */
int ew_main(int argc, char **argv);

int ew_cmd_waits(const struct ew_options *options);
int ew_cmd_config(const struct ew_options *options);
int ew_cmd_run(const struct ew_options *options);
int ew_cmd_stat(const struct ew_options *options);
int ew_cmd_top(const struct ew_options *options);
int ew_cmd_doctor(const struct ew_options *options);
int ew_cmd_report(const struct ew_options *options);
int ew_cmd_events(const struct ew_options *options);
int ew_cmd_export(const struct ew_options *options);
int ew_cmd_record(const struct ew_options *options);
int ew_cmd_sessions(const struct ew_options *options);
int ew_cmd_metrics(const struct ew_options *options);

#endif
