/* SPDX-License-Identifier: MIT */
/* What the names in a configuration file mean. */
#ifndef EW_CLI_ARGS_CONFIG_KEYS_H
#define EW_CLI_ARGS_CONFIG_KEYS_H

#include "cli/args/parser.h"

enum { EW_CONFIG_KEY_SIZE = 64 };

/* A group of metrics, or "storage". */
bool ew_config_section_known(const char *section);
/* Both: 0, or EW_EXIT_USAGE with a message. key: "hz", "memory.rate". */
int ew_config_key_check(struct ew_parser *parser, const char *key);
int ew_config_key_apply(struct ew_parser *parser, const char *key, const char *value);

/* Key i of those that only a file has, for the manual and its test: "cpu.aggregation"; NULL after
 * the last. GROUP stands for any group of metrics. */
const char *ew_config_key_name(size_t i);

#endif
