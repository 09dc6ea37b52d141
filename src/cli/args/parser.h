/* SPDX-License-Identifier: MIT */
/* What the parts of the option parser share. */
#ifndef EW_CLI_ARGS_PARSER_H
#define EW_CLI_ARGS_PARSER_H

#include "base/error.h"
#include "cli/args/options.h"

struct ew_parser {
    struct ew_options *options;
    char *message;   /* EW_MESSAGE_SIZE bytes */
    char where[256]; /* "" or "FILE:LINE: " */
    /* What a file said of its storage so far: a stream, how many samples. */
    bool storage_streams, storage_samples;
};

/* Writes the message and returns EW_EXIT_USAGE. */
int ew_parser_fail(struct ew_parser *parser, const char *format, ...) EW_PRINTF(2, 3);

/* The option with this long name (len bytes) or letter; NULL if there is none. A name may mean
 * something else for another command: that of the command comes first. */
const struct ew_option_info *ew_option_find(const char *name, size_t len, enum ew_command command);
const struct ew_option_info *ew_option_find_letter(char letter);
/* Applies one option. shown is how the user wrote it ("-p"). A switch has no value (NULL), or
 * "false": it is off again. */
int ew_option_apply(struct ew_parser *parser, const struct ew_option_info *info, const char *shown,
                    const char *value);

/* value.c: a copy of a text, which must not be empty, in the place of the one before. */
int ew_keep_text(struct ew_parser *p, const char *shown, const char *value, const char *what,
                 char **ret_text);

/* etw_options.c */
int ew_set_session(struct ew_parser *p, const char *shown, const char *value);
int ew_set_session_name(struct ew_parser *p, const char *shown, const char *value);
int ew_set_kernel(struct ew_parser *p, const char *shown, const char *value);
int ew_set_stacks(struct ew_parser *p, const char *shown, const char *value);
int ew_set_profile_hz(struct ew_parser *p, const char *shown, const char *value);
int ew_add_etw_provider(struct ew_parser *p, const char *shown, const char *value);
int ew_set_buffer_kb(struct ew_parser *p, const char *shown, const char *value);
int ew_set_min_buffers(struct ew_parser *p, const char *shown, const char *value);
int ew_set_max_buffers(struct ew_parser *p, const char *shown, const char *value);
int ew_set_buffer_memory(struct ew_parser *p, const char *shown, const char *value);
int ew_set_flush(struct ew_parser *p, const char *shown, const char *value);
void ew_etw_options_done(struct ew_etw_options *etw);

/* Whether the options of export fit together; finds the format by the name of the output. */
int ew_check_export(struct ew_parser *parser);

/* Reads a file of `name = value` lines. */
int ew_config_file_read(struct ew_parser *parser, const char *path);
/* The same from memory, for tests. */
int ew_config_file_parse(struct ew_parser *parser, const char *path, const void *text, size_t size);

#endif
