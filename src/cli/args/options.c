/* SPDX-License-Identifier: MIT */
/*
 * Reads the command line. getopt_long is not used: it prints by itself, abbreviates names (so a new
 * option could change the meaning of an old script) and cannot say what the right form would be.
 *
 * A configuration file is applied first, wherever --config stands, so that the command line wins.
 */
#include "cli/args/options.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"
#include "cli/args/etw_options.h"
#include "cli/args/parser.h"
#include "cli/args/value.h"

static const struct {
    enum ew_command command;
    const char *name;
} commands[] = {
    {EW_CMD_RUN, "run"},       {EW_CMD_STAT, "stat"},         {EW_CMD_TOP, "top"},
    {EW_CMD_RECORD, "record"}, {EW_CMD_REPORT, "report"},     {EW_CMD_EVENTS, "events"},
    {EW_CMD_DOCTOR, "doctor"}, {EW_CMD_SESSIONS, "sessions"}, {EW_CMD_METRICS, "metrics"},
    {EW_CMD_EXPORT, "export"}, {EW_CMD_CONFIG, "config"},     {EW_CMD_WAITS, "waits"},
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

static int fail_unknown(struct ew_parser *p, const char *word, const char *name, size_t len)
{
    const char *command = ew_command_name(p->options->command), *nearest = NULL;
    size_t best = 3;
    for (size_t i = 0; ew_option_info(i) != NULL; i++) {
        size_t far = name == NULL ? best : distance(name, len, ew_option_info(i)->name);
        if (far < best && (ew_option_info(i)->commands & p->options->command) != 0) {
            best = far;
            nearest = ew_option_info(i)->name;
        }
    }
    const char *space = command == NULL ? "" : " ";
    command = command == NULL ? "" : command;
    if (nearest != NULL)
        return ew_parser_fail(p, "unknown option %s; did you mean --%s? see 'etwatch%s%s --help'",
                              word, nearest, space, command);
    return ew_parser_fail(p, "unknown option %s; see 'etwatch%s%s --help'", word, space, command);
}

static int check_belongs(struct ew_parser *p, const struct ew_option_info *info, const char *shown)
{
    char takers[64] = "";
    size_t used = 0;
    if ((info->commands & p->options->command) != 0 || p->options->command == EW_CMD_CONFIG)
        return 0;
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if ((info->commands & commands[i].command) == 0)
            continue;
        int len = snprintf(takers + used, sizeof takers - used, "%s%s", used == 0 ? "" : ", ",
                           commands[i].name);
        used += len > 0 ? (size_t)len : 0;
    }
    return ew_parser_fail(p, "%s is not an option of 'etwatch %s' (but of: %s)", shown,
                          ew_command_name(p->options->command), takers);
}

/* The value of an option: behind '=' or glued to the letter (inside), else the next word. */
static int take_value(struct ew_parser *p, struct arguments *args,
                      const struct ew_option_info *info, const char *shown, const char *inside,
                      const char **ret_value)
{
    *ret_value = NULL;
    if (info->value == NULL) {
        bool off = inside != NULL && strcmp(inside, "false") == 0; /* a file may have it on */
        if (inside != NULL && !off && strcmp(inside, "true") != 0)
            return ew_parser_fail(p, "%s takes no value, or true or false", shown);
        *ret_value = off ? "false" : NULL;
        return 0;
    }
    *ret_value = inside;
    if (inside == NULL && args->at < args->count)
        *ret_value = args->words[args->at++];
    if (*ret_value == NULL)
        return ew_parser_fail(p, "%s needs a value: %s %s", shown, shown, info->value);
    return 0;
}

static int take_long(struct ew_parser *p, struct arguments *args, const char *word)
{
    char shown[64];
    const char *name = word + 2, *value;
    size_t len = strcspn(name, "=");
    const struct ew_option_info *info = ew_option_find(name, len, p->options->command);
    if (info == NULL)
        return fail_unknown(p, word, name, len);
    (void)snprintf(shown, sizeof shown, "--%s", info->name);
    int rc = check_belongs(p, info, shown);
    if (rc == 0)
        rc = take_value(p, args, info, shown, name[len] == '=' ? name + len + 1 : NULL, &value);
    return rc == 0 ? ew_option_apply(p, info, shown, value) : rc;
}

/* -a, -p 12, -p12, and switches in a row: -aq. */
static int take_short(struct ew_parser *p, struct arguments *args, const char *word)
{
    int rc = 0;
    for (const char *at = word + 1; *at != '\0' && rc == 0; at++) {
        char shown[3] = {'-', *at, '\0'};
        const struct ew_option_info *info = ew_option_find_letter(*at);
        const char *value;
        if (info == NULL)
            return fail_unknown(p, word, NULL, 0);
        rc = check_belongs(p, info, shown);
        if (rc != 0)
            break;
        bool glued = info->value != NULL && at[1] != '\0';
        rc = take_value(p, args, info, shown, glued ? at + 1 : NULL, &value);
        if (rc == 0)
            rc = ew_option_apply(p, info, shown, value);
        if (info->value != NULL)
            break;
    }
    return rc;
}

static bool is_recording(const char *word)
{
    size_t len = strlen(word);
    const char *end = len < 4 ? "" : word + len - 4;
    return end[0] == '.' && (end[1] | 0x20) == 'e' && (end[2] | 0x20) == 't' &&
           (end[3] | 0x20) == 'l';
}

static int fail_unexpected(struct ew_parser *p, const char *word)
{
    return ew_parser_fail(p,
                          "unexpected argument \"%s\"; name processes with -p PID or "
                          "-n NAME, run a command with 'etwatch run -- CMD'",
                          word);
}

/* A word that is no option: a recording, where the command takes one. */
static int take_file(struct ew_parser *p, const char *word)
{
    if ((p->options->command &
         (EW_CMD_STAT | EW_CMD_WAITS | EW_CMD_REPORT | EW_CMD_EVENTS | EW_CMD_EXPORT)) == 0)
        return fail_unexpected(p, word);
    int rc = ew_list_add_word(&p->options->files, word);
    if (rc == ETWATCH_EINVAL)
        return ew_parser_fail(p, "the name of a recording is empty");
    return rc < 0 ? ew_parser_fail(p, "out of memory") : 0;
}

/* Behind "--" everything is one. */
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
        bool option = word[0] == '-' && word[1] != '\0';
        bool end = strcmp(word, "--") == 0;
        if (!option || end) {
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
        if (!option)
            continue;
        int rc = word[1] == '-' ? take_long(p, args, word) : take_short(p, args, word);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* With --config everything is read again behind the file: the command line has the last word. */
static int apply_config(struct ew_parser *p, struct arguments *args)
{
    char *path = p->options->config_path;
    enum ew_command command = p->options->command;
    p->options->config_path = NULL;
    ew_options_done(p->options);
    p->options->command = command;
    int rc = ew_config_file_read(p, path);
    ew_free(path);
    args->at = 2;
    return rc == 0 ? take_all(p, args) : rc;
}

/* ------------------------------------------------------------- what fits together */

static bool selects(const struct ew_options *o)
{
    return o->pid_count > 0 || o->names.count > 0 || o->uid_count > 0 || o->cgroups.count > 0 ||
           (o->config_flags & ETWATCH_CONFIG_ALL) != 0;
}

static int check_run(struct ew_parser *p)
{
    if (p->options->child == NULL || p->options->child[0] == NULL)
        return ew_parser_fail(p, "run needs a command: etwatch run [options] -- CMD [ARG...]");
    return 0;
}

/* A recording ends by itself, holds no users and no cgroups, and costs no budget. */
static int check_recording(struct ew_parser *p)
{
    struct ew_options *o = p->options;
    for (uint32_t i = 0; i < o->files.count && o->source != ETWATCH_SOURCE_ETL; i++)
        if (!is_recording(o->files.words[i]))
            return fail_unexpected(p, o->files.words[i]);
    if (o->source != ETWATCH_SOURCE_AUTO && o->source != ETWATCH_SOURCE_ETL)
        return ew_parser_fail(p, "%s is a recording: --source %s cannot read it", o->files.words[0],
                              etwatch_source_name(o->source));
    if (o->uid_count > 0 || o->cgroups.count > 0 || o->exclude_uid_count > 0 ||
        o->exclude_cgroups.count > 0)
        return ew_parser_fail(p, "a recording knows no users and no cgroups: use -p or -n");
    if ((o->config_flags & ETWATCH_CONFIG_EVENTS) != 0)
        return ew_parser_fail(p, "the events of a recording are shown by 'etwatch events %s'",
                              o->files.words[0]);
    o->source = ETWATCH_SOURCE_ETL;
    if (!selects(o))
        o->config_flags |= ETWATCH_CONFIG_ALL;
    return 0;
}

static int check_stat(struct ew_parser *p)
{
    const struct ew_options *o = p->options;
    int rc = o->files.count > 0 ? check_recording(p) : 0;
    if (rc != 0)
        return rc;
    if (o->source == ETWATCH_SOURCE_ETL && o->files.count == 0)
        return ew_parser_fail(p, "--source etl needs a recording: etwatch stat FILE.etl");
    for (uint32_t i = 0; i < o->pid_count && o->source != ETWATCH_SOURCE_ETL; i++)
        if (o->pids[i] == 0)
            return ew_parser_fail(
                p, "-p needs a process id or a list of them (such as 12,345), not \"0\"");
    if (!selects(o))
        return ew_parser_fail(p, "stat needs to know which processes: -p PID, -n NAME, -u USER, "
                                 "--cgroup PATH, or -a for all");
    if (o->columns.count > 0 && o->json)
        return ew_parser_fail(p, "--columns is for the table and --csv; --json always has every "
                                 "name");
    if (o->window_s > 0 &&
        (o->config_flags & (ETWATCH_CONFIG_THREADS | ETWATCH_CONFIG_EVENTS)) != 0)
        return ew_parser_fail(p, "--window sums up processes: leave out --threads and --events");
    if (o->window_s <= 0 && o->aggregates)
        return ew_parser_fail(p, "--aggregate is for windows: add --window SECONDS");
    if (o->window_s > 0 && o->columns.count > 0)
        return ew_parser_fail(p, "--window has columns of its own: leave out --columns");
    return 0;
}

static int check_trace(struct ew_parser *p)
{
    const struct ew_options *o = p->options;
    const char *name = ew_command_name(o->command);
    if (o->files.count == 0)
        return ew_parser_fail(p, "%s needs a recording: etwatch %s [options] FILE.etl...", name,
                              name);
    if (o->until_ns != 0 && o->until_ns <= o->from_ns)
        return ew_parser_fail(p, "--to must be later than --from");
    if (o->count && (o->raw || o->limit != 0))
        return ew_parser_fail(p, "--count shows no events: leave out --raw and --limit");
    if (o->images && o->csv)
        return ew_parser_fail(p, "--images has no place in CSV: use --json");
    return 0;
}

static int check_record(struct ew_parser *p)
{
    if (p->options->output_path == NULL)
        return ew_parser_fail(p, "record needs a file: etwatch record -o FILE [options] [-- CMD]");
    if (p->options->child != NULL && p->options->child[0] == NULL)
        return ew_parser_fail(p, "no command behind --: leave it out, or name one");
    const struct ew_options *o = p->options;
    if (o->child != NULL && selects(o))
        return ew_parser_fail(p, "record watches a command or what -p, -n or -a name: choose one");
    if (o->rotate != 0 && (o->max_bytes == 0 || o->ring_ns != 0))
        return ew_parser_fail(p, "--rotate needs --max-size SIZE, and no --ring");
    if (o->triggers != 0 && o->ring_ns == 0)
        return ew_parser_fail(p,
                              "--trigger needs --ring TIME: what is to be written when it holds");
    if (o->ring_ns != 0 && o->json)
        return ew_parser_fail(p, "--json tells of a whole run, --ring writes parts of it: choose "
                                 "one");
    return 0;
}

/* A session that is only read is as its owner made it. */
static int check_etw(struct ew_parser *p)
{
    struct ew_cli_session_options wanted;
    const struct ew_options *o = p->options;
    bool described = ew_cli_session_options(o, &wanted);
    if (o->etw.session == NULL && !described)
        return 0;
    if (o->etw.session != NULL && described)
        return ew_parser_fail(p, "--session reads a session as it is: leave out options that "
                                 "describe one of our own");
    if (o->source != ETWATCH_SOURCE_AUTO && o->source != ETWATCH_SOURCE_ETW)
        return ew_parser_fail(p, "options of an ETW session need --source etw, not %s",
                              etwatch_source_name(o->source));
    if (o->etw.max_buffers != 0 && o->etw.min_buffers > o->etw.max_buffers)
        return ew_parser_fail(p, "--min-buffers is more than --max-buffers");
    return 0;
}

static int check_waits(struct ew_parser *p)
{
    const struct ew_options *o = p->options;
    if (o->files.count == 0 && !selects(o))
        return ew_parser_fail(p,
                              "waits needs to know which processes: -p PID, -n NAME, -u USER, "
                              "--cgroup PATH, -a for all, or a recording (FILE.etl, FILE.pftrace)");
    bool users = o->uid_count > 0 || o->cgroups.count > 0 || o->exclude_uid_count > 0 ||
                 o->exclude_cgroups.count > 0;
    if (o->files.count > 0 && users)
        return ew_parser_fail(p, "a recording knows no users and no cgroups: use -p or -n");
    return 0;
}

static int check_together(struct ew_parser *p)
{
    const struct ew_options *o = p->options;
    uint32_t flags = o->config_flags;
    if (o->json && o->csv)
        return ew_parser_fail(p, "--json and --csv exclude each other: choose one");
    if (o->command == EW_CMD_CONFIG) {
        if (o->check == o->show)
            return ew_parser_fail(p, "config needs one of --check FILE and --show");
        return 0;
    }
    if (o->keep > 0 && o->window_s > 0)
        return ew_parser_fail(p, "--keep is for samples: leave out --window");
    if (o->busiest_by && o->top_n == 0)
        return ew_parser_fail(p, "--by says what --max-processes goes by: give that too");
    if (o->top_n > 0 && o->window_s > 0)
        return ew_parser_fail(p, "--window sums up each process: leave out --max-processes");
    if (o->system && !o->json)
        return ew_parser_fail(p, "--system needs --json");
    if ((flags & ETWATCH_CONFIG_EVENTS) != 0 && !o->json)
        return ew_parser_fail(p, "--events needs --json");
    if (o->waits && o->source == ETWATCH_SOURCE_POLL)
        return ew_parser_fail(p, "--waits needs --source ebpf: polling sees no events");
    if ((flags & ETWATCH_CONFIG_EVENTS) != 0 && o->source == ETWATCH_SOURCE_POLL)
        return ew_parser_fail(p, "--events needs --source ebpf, or etw: polling sees no events");
    if ((flags & ETWATCH_CONFIG_CMDLINE) != 0 && !o->json && !o->csv && o->columns.count == 0 &&
        (o->command & (EW_CMD_REPORT | EW_CMD_EXPORT)) == 0)
        return ew_parser_fail(p, "--cmdline needs --json or --csv: the table has no room for it");
    if ((flags & ETWATCH_CONFIG_KERNEL_THREADS) != 0 && (flags & ETWATCH_CONFIG_ALL) == 0 &&
        o->command != EW_CMD_TOP)
        return ew_parser_fail(p, "--kernel-threads needs -a");
    if (o->source == ETWATCH_SOURCE_ETL && o->command != EW_CMD_STAT)
        return ew_parser_fail(p, "a recording is read by etwatch stat, report or events");
    int rc = check_etw(p);
    if (rc != 0)
        return rc;
    if (o->command == EW_CMD_RUN)
        return check_run(p);
    if (o->command == EW_CMD_RECORD)
        return check_record(p);
    if ((o->command & (EW_CMD_REPORT | EW_CMD_EVENTS)) != 0)
        return check_trace(p);
    if (o->command == EW_CMD_EXPORT) {
        rc = check_trace(p);
        return rc == 0 ? ew_check_export(p) : rc;
    }
    if (o->command == EW_CMD_WAITS)
        return check_waits(p);
    return o->command == EW_CMD_STAT ? check_stat(p) : 0;
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

/* etwatch --help, etwatch --version, etwatch help [COMMAND]; nothing else goes without a command.
 */
static int parse_first(struct ew_parser *p, struct arguments *args)
{
    const char *word = args->count > 1 ? args->words[1] : NULL;
    char all[240];
    args->at = 2;
    if (word == NULL)
        return ew_parser_fail(p, "a command is needed: etwatch %s; see 'etwatch --help'",
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
    return check_together(&parser);
}

void ew_options_done(struct ew_options *options)
{
    ew_list_done(&options->names);
    ew_list_done(&options->cgroups);
    ew_list_done(&options->columns);
    ew_list_done(&options->alerts);
    ew_list_done(&options->files);
    ew_list_done(&options->providers);
    ew_list_done(&options->events);
    ew_etw_options_done(&options->etw);
    ew_free(options->pids);
    ew_free(options->uids);
    ew_list_done(&options->exclude_names);
    ew_list_done(&options->exclude_cgroups);
    ew_free(options->exclude_pids);
    ew_free(options->exclude_uids);
    for (uint32_t i = 0; i < options->origin_count; i++) {
        ew_free(options->origins[i].value);
        ew_free(options->origins[i].where);
    }
    ew_free(options->origins);
    ew_free(options->output_path);
    ew_free(options->proc_root);
    ew_free(options->config_path);
    *options = (struct ew_options){0};
}
