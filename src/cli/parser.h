/* SPDX-License-Identifier: MIT */
/* What the parts of the option parser share. */
#ifndef EW_CLI_PARSER_H
#define EW_CLI_PARSER_H

#include "base/error.h"
#include "cli/options.h"

struct ew_parser {
    struct ew_options *options;
    char *message;   /* EW_MESSAGE_SIZE bytes */
    char where[256]; /* "" or "FILE:LINE: " */
};

/* Writes the message and returns EW_EXIT_USAGE. */
int ew_parser_fail(struct ew_parser *parser, const char *format, ...) EW_PRINTF(2, 3);

/* The option with this long name (len bytes) or letter; NULL if there is none. */
const struct ew_option_info *ew_option_find(const char *name, size_t len);
const struct ew_option_info *ew_option_find_letter(char letter);
/* Applies one option; value is NULL for a switch. shown is how the user wrote it ("-p"). */
int ew_option_apply(struct ew_parser *parser, const struct ew_option_info *info, const char *shown,
                    const char *value);

/* Reads a file of `name = value` lines. */
int ew_config_file_read(struct ew_parser *parser, const char *path);
/* The same from memory, for tests. */
int ew_config_file_parse(struct ew_parser *parser, const char *path, const void *text, size_t size);

#endif
