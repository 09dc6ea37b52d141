/* SPDX-License-Identifier: MIT */
/*
 * Reads the command line. getopt_long is not used: it prints by itself, abbreviates names (so a new
 * option could change the meaning of an old script) and does not report the right form.
 *
 * A configuration file is applied first, wherever --config stands, so that the command line wins.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/args/args.h"

static const struct {
    enum ew_command command;
    const char *name;
} commands[] = {
    {EW_CMD_RUN, "run"},         {EW_CMD_STAT, "stat"},       {EW_CMD_TOP, "top"},
    {EW_CMD_RECORD, "record"},   {EW_CMD_REPORT, "report"},   {EW_CMD_EVENTS, "events"},
    {EW_CMD_EXPORT, "export"},   {EW_CMD_WAITS, "waits"},     {EW_CMD_SESSIONS, "sessions"},
    {EW_CMD_METRICS, "metrics"}, {EW_CMD_CONFIG, "config"},   {EW_CMD_DOCTOR, "doctor"},
    {EW_CMD_SERVE, "serve"},     {EW_CMD_COMPARE, "compare"}, {EW_CMD_ONNX, "onnx"},
    {EW_CMD_SPANS, "spans"},     {EW_CMD_SERVICE, "service"},
};

const char *ew_command_name(enum ew_command command)
{
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (commands[i].command == command)
            return commands[i].name;
    return NULL;
}

static enum ew_command find_command(const char *name)
{
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(commands[i].name, name) == 0)
            return commands[i].command;
    return EW_CMD_NONE;
}

int ew_parser_fail(struct ew_parser *parser, const char *format, ...)
{
    va_list args;
    int used = snprintf(parser->message, EW_MESSAGE_SIZE, "%s", parser->where);
    if (used < 0 || used >= EW_MESSAGE_SIZE)
        used = 0;
    va_start(args, format);
    (void)vsnprintf(parser->message + used, (size_t)(EW_MESSAGE_SIZE - used), format, args);
    va_end(args);
    return EW_EXIT_USAGE;
}

/* -------------------------------------------------------------- the command line */

struct arguments {
    int count;
    char **words;
    int at;
};

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Levenshtein distance of short words; anything long is far from everything. */
static size_t distance(const char *a, size_t a_len, const char *b)
{
    size_t row[32], b_len = strlen(b);
    if (a_len >= 32 || b_len >= 32)
        return 32;
    for (size_t j = 0; j <= b_len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t above = row[j];
            row[j] = smaller(smaller(above, row[j - 1]) + 1, corner + (a[i - 1] != b[j - 1]));
            corner = above;
        }
    }
    return row[b_len];
}

static int fail_renamed(struct ew_parser *p, const char *shown, const char *now)
{
    return ew_parser_fail(p, "unknown option %s: it is called --%s now", shown, now);
}

static int fail_unknown(struct ew_parser *p, const char *word, const char *name, size_t len)
{
    const char *command = ew_command_name(p->options->command), *nearest = NULL;
    const char *now = name == NULL ? NULL : ew_option_renamed(name, len, p->options->command);
    const struct ew_option *option;
    size_t best = 3;
    if (now != NULL)
        return fail_renamed(p, word, now);
    for (size_t i = 0; (option = ew_option_at(i)) != NULL; i++) {
        size_t far = name == NULL ? best : distance(name, len, option->name);
        if (far < best && (option->commands & p->options->command) != 0) {
            best = far;
            nearest = option->name;
        }
    }
    const char *space = command == NULL ? "" : " ";
    command = command == NULL ? "" : command;
    if (nearest != NULL)
        return ew_parser_fail(p, "unknown option %s; did you mean --%s? see 'etwatch%s%s --help'",
                              word, nearest, space, command);
    return ew_parser_fail(p, "unknown option %s; see 'etwatch%s%s --help'", word, space, command);
}

static int check_belongs(struct ew_parser *p, const struct ew_option *option, const char *shown)
{
    char takers[128] = "";
    size_t used = 0;
    if ((option->commands & p->options->command) != 0 || p->options->command == EW_CMD_CONFIG)
        return 0;
    const char *now = ew_option_renamed(option->name, strlen(option->name), p->options->command);
    if (now != NULL)
        return fail_renamed(p, shown, now);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if ((option->commands & commands[i].command) == 0)
            continue;
        int len = snprintf(takers + used, sizeof takers - used, "%s%s", used == 0 ? "" : ", ",
                           commands[i].name);
        used += len > 0 ? (size_t)len : 0;
    }
    return ew_parser_fail(p, "%s is not an option of 'etwatch %s'; commands that have it: %s",
                          shown, ew_command_name(p->options->command), takers);
}

/* The value of an option: after '=' or attached to the letter (inside), else the next word. */
static int take_value(struct ew_parser *p, struct arguments *args, const struct ew_option *option,
                      const char *shown, const char *inside, const char **ret_value)
{
    *ret_value = NULL;
    if (option->value == NULL) {
        bool off = inside != NULL && strcmp(inside, "false") == 0; /* overrides a file */
        if (inside != NULL && !off && strcmp(inside, "true") != 0)
            return ew_parser_fail(p, "%s takes no value, or true or false: --json, --json=false",
                                  shown);
        *ret_value = off ? "false" : NULL;
        return 0;
    }
    *ret_value = inside;
    if (inside == NULL && args->at < args->count)
        *ret_value = args->words[args->at++];
    if (*ret_value == NULL)
        return ew_parser_fail(p, "%s needs a value: %s %s", shown, shown, option->value);
    return 0;
}

static int take_long(struct ew_parser *p, struct arguments *args, const char *word)
{
    char shown[64];
    const char *name = word + 2, *value;
    size_t len = strcspn(name, "=");
    const struct ew_option *option = ew_option_find(name, len, p->options->command);
    if (option == NULL)
        return fail_unknown(p, word, name, len);
    (void)snprintf(shown, sizeof shown, "--%s", option->name);
    int rc = check_belongs(p, option, shown);
    if (rc == 0)
        rc = take_value(p, args, option, shown, name[len] == '=' ? name + len + 1 : NULL, &value);
    return rc == 0 ? ew_option_apply(p, option, shown, value) : rc;
}

/* -a, -p 12, -p12, and switches in a row: -aq. */
static int take_short(struct ew_parser *p, struct arguments *args, const char *word)
{
    int rc = 0;
    for (const char *at = word + 1; *at != '\0' && rc == 0; at++) {
        char shown[3] = {'-', *at, '\0'};
        const struct ew_option *option = ew_option_find_letter(*at);
        const char *value;
        if (option == NULL)
            return fail_unknown(p, word, NULL, 0);
        rc = check_belongs(p, option, shown);
        if (rc != 0)
            break;
        bool glued = option->value != NULL && at[1] != '\0';
        rc = take_value(p, args, option, shown, glued ? at + 1 : NULL, &value);
        if (rc == 0)
            rc = ew_option_apply(p, option, shown, value);
        if (option->value != NULL)
            break;
    }
    return rc;
}

int ew_fail_unexpected(struct ew_parser *p, const char *word)
{
    return ew_parser_fail(p,
                          "unexpected argument \"%s\"; select processes with -p PID or "
                          "-n NAME, or run a command with 'etwatch run -- CMD'",
                          word);
}

/* A word that is not an option: a recording, if the command reads recordings. */
static int take_file(struct ew_parser *p, const char *word)
{
    if ((p->options->command &
         (EW_CMD_STAT | EW_CMD_WAITS | EW_CMD_REPORT | EW_CMD_EVENTS | EW_CMD_EXPORT |
          EW_CMD_SERVE | EW_CMD_COMPARE | EW_CMD_SERVICE | EW_CMD_ONNX)) == 0)
        return ew_fail_unexpected(p, word);
    int rc = ew_args_list_add_word(&p->options->files, word);
    if (rc == ETWATCH_EINVAL)
        return ew_parser_fail(p, "the name of a file must not be empty");
    return rc < 0 ? ew_parser_fail(p, "out of memory") : 0;
}

/* After "--" every word is a file. */
static int take_files(struct ew_parser *p, struct arguments *args)
{
    int rc = 0;
    while (rc == 0 && args->at < args->count)
        rc = take_file(p, args->words[args->at++]);
    return rc;
}

static int take_all(struct ew_parser *p, struct arguments *args)
{
    while (args->at < args->count) {
        char *word = args->words[args->at];
        bool is_option = word[0] == '-' && word[1] != '\0';
        bool end = strcmp(word, "--") == 0;
        if (!is_option || end) {
            if ((p->options->command & (EW_CMD_RUN | EW_CMD_RECORD)) != 0) {
                p->options->child = args->words + args->at + (end ? 1 : 0);
                return 0;
            }
            if (!end) {
                int rc = take_file(p, word);
                if (rc != 0)
                    return rc;
            }
        }
        args->at++;
        if (end)
            return take_files(p, args);
        if (!is_option)
            continue;
        int rc = word[1] == '-' ? take_long(p, args, word) : take_short(p, args, word);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* With --config the command line is read again after the file, so that its values win. */
static int apply_config(struct ew_parser *p, struct arguments *args)
{
    char *path = p->options->config_path;
    enum ew_command command = p->options->command;
    p->options->config_path = NULL;
    ew_options_done(p->options);
    p->options->command = command;
    int rc = ew_args_config_file_read(p, path);
    ew_free(path);
    args->at = 2;
    return rc == 0 ? take_all(p, args) : rc;
}

/* -------------------------------------------------------------------------- entry */

/* "run, stat, top, … and sessions" */
static const char *list_commands(char *text, size_t size, const char *last)
{
    const size_t count = sizeof commands / sizeof commands[0];
    size_t used = 0;
    for (size_t i = 0; i < count && used < size; i++) {
        const char *before = i == 0 ? "" : i + 1 < count ? ", " : last;
        int len = snprintf(text + used, size - used, "%s%s", before, commands[i].name);
        used += len > 0 ? (size_t)len : 0;
    }
    return text;
}

/* spans: run --spans, so that its options need no second list. */
static int parse_spans(struct ew_parser *p, const struct arguments *args)
{
    struct ew_options *options = p->options;
    for (int i = args->at; i < args->count; i++) {
        const char *word = args->words[i];
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            options->help = true;
            return 0;
        }
        if (strcmp(word, "--") == 0) {
            options->command = EW_CMD_RUN;
            options->spans = true;
            return 0;
        }
    }
    return ew_parser_fail(p, "spans starts the program that marks them, because marks are bound to "
                             "their watcher when a program starts: etwatch spans -- COMMAND");
}

/* Without a command: etwatch --help, etwatch --version, etwatch help [COMMAND]. */
static int parse_first(struct ew_parser *p, struct arguments *args)
{
    const char *word = args->count > 1 ? args->words[1] : NULL;
    char all[240];
    args->at = 2;
    if (word == NULL)
        return ew_parser_fail(p, "a command is missing: etwatch %s; see 'etwatch --help'",
                              list_commands(all, sizeof all, " or "));
    if (strcmp(word, "--version") == 0) {
        p->options->version = true;
    } else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 ||
               strcmp(word, "help") == 0) {
        p->options->help = true;
        if (args->count > 2)
            p->options->command = find_command(args->words[2]);
    } else {
        p->options->command = find_command(word);
        if (p->options->command == EW_CMD_NONE && word[0] == '-')
            return ew_parser_fail(p, "the command comes first: etwatch %s, then options such as %s",
                                  list_commands(all, sizeof all, " or "), word);
        if (p->options->command == EW_CMD_NONE)
            return ew_parser_fail(p, "unknown command \"%s\"; the commands are %s", word,
                                  list_commands(all, sizeof all, " and "));
        if (p->options->command == EW_CMD_SPANS)
            return parse_spans(p, args);
    }
    return 0;
}

int ew_options_parse(int argc, char **argv, struct ew_options *ret_options, char *message)
{
    struct ew_parser parser = {.options = ret_options, .message = message};
    struct arguments args = {.count = argc, .words = argv};

    *ret_options = (struct ew_options){0};
    message[0] = '\0';
    int rc = parse_first(&parser, &args);
    if (rc != 0 || ret_options->help || ret_options->version)
        return rc;
    rc = take_all(&parser, &args);
    if (rc == 0 && ret_options->config_path != NULL && !ret_options->help)
        rc = apply_config(&parser, &args);
    if (rc != 0 || ret_options->help || ret_options->version)
        return rc;
    return ew_options_check(&parser);
}

void ew_options_done(struct ew_options *options)
{
    ew_args_list_done(&options->names);
    ew_args_list_done(&options->cgroups);
    ew_args_list_done(&options->columns);
    ew_args_list_done(&options->alerts);
    ew_args_list_done(&options->files);
    ew_args_list_done(&options->providers);
    ew_args_list_done(&options->events);
    ew_args_list_done(&options->exclude_names);
    ew_args_list_done(&options->exclude_cgroups);
    ew_args_list_done(&options->etw.providers);
    ew_ids_done(&options->pids);
    ew_ids_done(&options->users);
    ew_ids_done(&options->exclude_pids);
    ew_ids_done(&options->exclude_users);
    ew_args_list_done(&options->serve.hosts);
    ew_free(options->serve.listen);
    ew_free(options->serve.token_file);
    ew_free(options->serve.cert);
    ew_free(options->serve.key);
    ew_free(options->serve.otlp);
    ew_free(options->serve.store);
    ew_free(options->etw.session);
    ew_free(options->etw.name);
    ew_free(options->etw.kernel);
    ew_free(options->etw.stacks);
    for (uint32_t i = 0; i < options->origin_count; i++) {
        ew_free(options->origins[i].value);
        ew_free(options->origins[i].where);
    }
    ew_free(options->origins);
    ew_free(options->output_path);
    ew_free(options->py_spy_path);
    ew_free(options->proc_root);
    ew_free(options->sys_root);
    ew_free(options->nvml_library);
    ew_free(options->amdsmi_library);
    ew_free(options->config_path);
    *options = (struct ew_options){0};
}
