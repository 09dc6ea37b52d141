/* SPDX-License-Identifier: MIT */
/* What the table of options takes from choice_options.c, and the other way round. */
#ifndef EW_CLI_ARGS_CHOICE_OPTIONS_H
#define EW_CLI_ARGS_CHOICE_OPTIONS_H

#include "cli/args/parser.h"

int ew_option_alert(struct ew_parser *parser, const char *shown, const char *value);
int ew_option_exclude_pids(struct ew_parser *parser, const char *shown, const char *value);
int ew_option_exclude_names(struct ew_parser *parser, const char *shown, const char *value);
int ew_option_exclude_uids(struct ew_parser *parser, const char *shown, const char *value);
int ew_option_exclude_cgroups(struct ew_parser *parser, const char *shown, const char *value);
int ew_option_check(struct ew_parser *parser, const char *shown, const char *value);
int ew_option_show(struct ew_parser *parser, const char *shown, const char *value);
int ew_option_keep(struct ew_parser *parser, const char *shown, const char *value);
int ew_option_containers(struct ew_parser *parser, const char *shown, const char *value);
int ew_option_aggregate(struct ew_parser *parser, const char *shown, const char *value);
int ew_option_busiest(struct ew_parser *parser, const char *shown, const char *value);
int ew_option_busiest_by(struct ew_parser *parser, const char *shown, const char *value);

/* Fails: the metric or group exists, but no source measures it. */
int ew_option_not_measured(struct ew_parser *parser, const char *shown, const char *name);

/* Remembers that an option was given, where and with which value, for config --show. */
int ew_origin_add(struct ew_parser *parser, const struct ew_option_info *info, const char *value);

/* option_table.c: values that several options have. 0, or EW_EXIT_USAGE with the message. */
int ew_list_add_words(struct ew_parser *parser, const char *shown, const char *value,
                      const char *form, struct ew_list *list);
int ew_read_pids(struct ew_parser *parser, const char *shown, const char *value, uint32_t **pids,
                 uint32_t *count);
int ew_read_uids(struct ew_parser *parser, const char *shown, const char *value, uint32_t **uids,
                 uint32_t *count);

#endif
