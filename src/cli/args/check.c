/* SPDX-License-Identifier: MIT */
/*
 * Whether the options of a command fit together, after all of them were read. Sets what follows
 * from them: the source of a recording, the format of an export.
 */
#include <string.h>

#include <etwatch/export.h>

#include "cli/args/args.h"

bool ew_options_select(const struct ew_options *o)
{
    return o->pids.count > 0 || o->names.count > 0 || o->users.count > 0 || o->cgroups.count > 0 ||
           (o->config_flags & ETWATCH_CONFIG_ALL) != 0;
}

bool ew_options_only_pids(const struct ew_options *o)
{
    return o->pids.count > 0 && o->names.count == 0 && o->users.count == 0 &&
           o->cgroups.count == 0 && (o->config_flags & ETWATCH_CONFIG_ALL) == 0;
}

static bool uses_users_or_cgroups(const struct ew_options *o)
{
    return o->users.count > 0 || o->cgroups.count > 0 || o->exclude_users.count > 0 ||
           o->exclude_cgroups.count > 0;
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);
    if (len <= end_len)
        return false;
    for (size_t i = 0; i < end_len; i++) {
        char c = text[len - end_len + i];
        if ((c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c) != end[i])
            return false;
    }
    return true;
}

/* ------------------------------------------------------------------- the commands */

static int check_run(struct ew_parser *p)
{
    if (p->options->child == NULL || p->options->child[0] == NULL)
        return ew_parser_fail(p, "run needs a command: etwatch run [options] -- CMD [ARG...]");
    return 0;
}

/* stat and others of a recording. It ends by itself and has neither users nor cgroups. */
static int check_stat_recording(struct ew_parser *p)
{
    struct ew_options *o = p->options;
    for (uint32_t i = 0; i < o->files.count && o->source != ETWATCH_SOURCE_ETL; i++)
        if (!ends_with(o->files.words[i], ".etl"))
            return ew_fail_unexpected(p, o->files.words[i]);
    if (o->source != ETWATCH_SOURCE_AUTO && o->source != ETWATCH_SOURCE_ETL)
        return ew_parser_fail(p, "--source %s cannot read the recording %s: remove --source",
                              etwatch_source_name(o->source), o->files.words[0]);
    if (uses_users_or_cgroups(o))
        return ew_parser_fail(p, "a recording has no users and no cgroups: use -p or -n");
    if ((o->config_flags & ETWATCH_CONFIG_EVENTS) != 0)
        return ew_parser_fail(p,
                              "--events is for live watching; for a recording use: etwatch "
                              "events %s",
                              o->files.words[0]);
    o->source = ETWATCH_SOURCE_ETL;
    if (!ew_options_select(o))
        o->config_flags |= ETWATCH_CONFIG_ALL;
    return 0;
}

static int check_stat(struct ew_parser *p)
{
    const struct ew_options *o = p->options;
    int rc = o->files.count > 0 ? check_stat_recording(p) : 0;
    if (rc != 0)
        return rc;
    if (o->source == ETWATCH_SOURCE_ETL && o->files.count == 0)
        return ew_parser_fail(p, "--source etl needs a recording: etwatch stat FILE.etl");
    for (uint32_t i = 0; i < o->pids.count && o->source != ETWATCH_SOURCE_ETL; i++)
        if (o->pids.ids[i] == 0)
            return ew_parser_fail(
                p, "-p needs a process id or a list of them (such as 12,345), not \"0\"");
    if (!ew_options_select(o))
        return ew_parser_fail(p, "stat needs a selection of processes: -p PID, -n NAME, -u USER, "
                                 "--cgroup PATH, or -a for all");
    if (o->columns.count > 0 && o->json)
        return ew_parser_fail(p, "--columns is for the table and --csv; --json always has every "
                                 "name");
    if (o->window_ns > 0 &&
        (o->config_flags & (ETWATCH_CONFIG_THREADS | ETWATCH_CONFIG_EVENTS)) != 0)
        return ew_parser_fail(p, "--window aggregates processes: remove --threads and --events");
    if (o->window_ns == 0 && o->aggregate_given)
        return ew_parser_fail(p, "--aggregate needs windows: add --window TIME");
    if (o->window_ns > 0 && o->columns.count > 0)
        return ew_parser_fail(p, "--window has its own columns: remove --columns");
    return 0;
}

static int check_trace(struct ew_parser *p)
{
    const struct ew_options *o = p->options;
    const char *name = ew_command_name(o->command);
    if (o->files.count == 0)
        return ew_parser_fail(p, "%s needs a recording: etwatch %s [options] FILE...", name, name);
    if (o->until_ns != 0 && o->until_ns <= o->from_ns)
        return ew_parser_fail(p, "--to must be later than --from");
    if (o->count_by_type && (o->payload || o->limit != 0))
        return ew_parser_fail(p, "--count-by-type shows no events: remove --payload and --limit");
    if (o->images && o->csv)
        return ew_parser_fail(p, "--images is not available as CSV: use --json");
    return 0;
}

static int check_record(struct ew_parser *p)
{
    const struct ew_options *o = p->options;
    if (o->output_path == NULL)
        return ew_parser_fail(p, "record needs a file: etwatch record -o FILE [options] [-- CMD]");
    if (o->child != NULL && o->child[0] == NULL)
        return ew_parser_fail(p, "there is no command after --: remove the --, or add a command");
    if (o->child != NULL && ew_options_select(o))
        return ew_parser_fail(p,
                              "record takes a command or a selection (-p, -n, -u, --cgroup, -a), "
                              "not both: choose one");
    if (o->rotate != 0 && (o->max_bytes == 0 || o->ring_ns != 0))
        return ew_parser_fail(p, "--rotate needs --max-size SIZE, and excludes --ring");
    if (o->triggers != 0 && o->ring_ns == 0)
        return ew_parser_fail(p, "--trigger writes the ring: add --ring TIME");
    if (o->ring_ns != 0 && o->json)
        return ew_parser_fail(p,
                              "--json reports on a whole run, --ring records parts of it: choose "
                              "one");
    return 0;
}

static int check_onnx(struct ew_parser *p)
{
    if (p->options->files.count > 0)
        return check_stat_recording(p);
    if (!ew_options_select(p->options))
        return ew_parser_fail(p, "onnx needs a selection of processes: -p PID, -n NAME, -u USER, "
                                 "--cgroup PATH, or -a for all; to start a command: etwatch run "
                                 "--onnx -- CMD; a recording: etwatch onnx FILE.etl");
    return 0;
}

static int check_waits(struct ew_parser *p)
{
    const struct ew_options *o = p->options;
    if (o->files.count == 0 && !ew_options_select(o))
        return ew_parser_fail(
            p, "waits needs a selection of processes: -p PID, -n NAME, -u USER, --cgroup PATH, -a "
               "for all; or a recording (FILE.etl, FILE.pftrace)");
    if (o->files.count > 0 && uses_users_or_cgroups(o))
        return ew_parser_fail(p, "a recording has no users and no cgroups: use -p or -n");
    return 0;
}

/* Every file is a .pftrace. */
static bool is_perfetto(const struct ew_options *o)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < o->files.count && o->source == ETWATCH_SOURCE_AUTO; i++)
        count += ends_with(o->files.words[i], ".pftrace") ||
                 ends_with(o->files.words[i], ".perfetto-trace");
    return count > 0 && count == o->files.count;
}

/* Without a selection every process is served. Threads are needed for the band of a process. */
static int check_serve(struct ew_parser *p)
{
    struct ew_options *o = p->options;
    if ((o->serve.cert == NULL) != (o->serve.key == NULL))
        return ew_parser_fail(p, "--cert and --key belong together: give both");
    if (o->files.count > 0 && (o->spans || o->onnx))
        return ew_parser_fail(p, "--spans and --onnx watch running programs: remove the recording");
    if (is_perfetto(o)) {
        if (uses_users_or_cgroups(o))
            return ew_parser_fail(p, "a recording has no users and no cgroups: use -p or -n");
    } else if (o->files.count > 0) {
        int rc = check_stat_recording(p);
        if (rc != 0)
            return rc;
    } else if (o->source == ETWATCH_SOURCE_ETL) {
        return ew_parser_fail(p, "--source etl needs a recording: etwatch serve FILE.etl");
    }
    if (!ew_options_select(o))
        o->config_flags |= ETWATCH_CONFIG_ALL;
    o->config_flags |= ETWATCH_CONFIG_THREADS;
    if (o->hz <= 0)
        o->hz = 100;
    return 0;
}

static int check_service(struct ew_parser *p)
{
    const struct ew_list *words = &p->options->files;
    const char *action = words->count > 0 ? words->words[0] : "";
    bool takes_file = strcmp(action, "install") == 0 || strcmp(action, "run") == 0;
    if (!takes_file && strcmp(action, "remove") != 0)
        return ew_parser_fail(p, "service needs an action: etwatch service install FILE, remove, "
                                 "or run FILE");
    if (words->count != (takes_file ? 2 : 1))
        return ew_parser_fail(p,
                              takes_file ? "service %s needs one file with the options of record: "
                                           "etwatch service %s FILE"
                                         : "service %s takes no file: etwatch service %s",
                              action, action);
    return 0;
}

/* An existing session is read as it is. */
static int check_etw(struct ew_parser *p)
{
    struct ew_session_options session;
    const struct ew_options *o = p->options;
    bool described = ew_args_session_options(o, &session);
    if (o->etw.session == NULL && !described)
        return 0;
    if (o->etw.session != NULL && described)
        return ew_parser_fail(p, "--session reads an existing session as it is: remove the options "
                                 "that describe a new one");
    if (o->source != ETWATCH_SOURCE_AUTO && o->source != ETWATCH_SOURCE_ETW)
        return ew_parser_fail(p, "options of an ETW session need --source etw, not %s",
                              etwatch_source_name(o->source));
    if (o->etw.max_buffers != 0 && o->etw.min_buffers > o->etw.max_buffers)
        return ew_parser_fail(p, "--min-buffers %u is more than --max-buffers %u",
                              o->etw.min_buffers, o->etw.max_buffers);
    return 0;
}

/* ------------------------------------------------------------------------- export */

static uint32_t format_of_name(const char *path)
{
    static const struct {
        const char *end;
        uint32_t format;
    } known[] = {
        {".pftrace", ETWATCH_EXPORT_PERFETTO},  {".perfetto-trace", ETWATCH_EXPORT_PERFETTO},
        {".arrow", ETWATCH_EXPORT_ARROW},       {".feather", ETWATCH_EXPORT_ARROW},
        {".ipc", ETWATCH_EXPORT_ARROW},         {".csv", ETWATCH_EXPORT_CSV},
        {".jsonl", ETWATCH_EXPORT_JSONL},       {".folded", ETWATCH_EXPORT_FOLDED},
        {".collapsed", ETWATCH_EXPORT_FOLDED},  {".speedscope.json", ETWATCH_EXPORT_SPEEDSCOPE},
        {".trace.json", ETWATCH_EXPORT_CHROME},
    };
    for (size_t i = 0; path != NULL && i < sizeof known / sizeof known[0]; i++)
        if (ends_with(path, known[i].end))
            return known[i].format;
    return 0;
}

static bool is_table(uint32_t format)
{
    return format == ETWATCH_EXPORT_ARROW || format == ETWATCH_EXPORT_CSV ||
           format == ETWATCH_EXPORT_JSONL;
}

/* Options that only some tables have. */
static int check_table(struct ew_parser *p)
{
    const struct ew_options *o = p->options;
    const struct ew_export_options *e = &o->export;
    bool events = e->table == ETWATCH_TABLE_EVENTS;
    bool samples = e->table == ETWATCH_TABLE_SAMPLES || e->table == ETWATCH_TABLE_THREAD_SAMPLES;
    if (!events &&
        (e->fields || e->typed || o->payload || o->providers.count > 0 || o->events.count > 0))
        return ew_parser_fail(p,
                              "--fields, --typed, --payload, --provider and --event are for the "
                              "table events, not for %s",
                              etwatch_table_name(e->table));
    if (!samples && (o->hz > 0 || (o->config_flags & ETWATCH_CONFIG_DENSE) != 0))
        return ew_parser_fail(p, "--hz and --dense are for samples: use --table samples");
    if (e->fields && e->typed)
        return ew_parser_fail(p, "--fields and --typed exclude each other: choose one");
    if (e->timestamps && e->format != ETWATCH_EXPORT_ARROW)
        return ew_parser_fail(p, "--timestamps needs -f arrow: in text, times are numbers");
    return 0;
}

static int check_export(struct ew_parser *p)
{
    struct ew_options *o = p->options;
    struct ew_export_options *e = &o->export;
    if (e->format == 0)
        e->format = format_of_name(o->output_path);
    if (e->format == 0)
        return ew_parser_fail(p, "export needs a format: -f perfetto, arrow, csv, jsonl, folded, "
                                 "speedscope or chrome");
    if (o->csv_raw && e->format != ETWATCH_EXPORT_CSV)
        return ew_parser_fail(p, "--csv-raw needs -f csv");
    if (is_table(e->format)) {
        e->table = e->table == 0 ? (uint32_t)ETWATCH_TABLE_EVENTS : e->table;
        return check_table(p);
    }
    /* A Perfetto trace also has samples, command lines and selected events. */
    bool perfetto_only = o->providers.count > 0 || o->events.count > 0 || o->hz > 0 ||
                         (o->config_flags & ETWATCH_CONFIG_CMDLINE) != 0;
    if (e->table != 0 || e->fields || e->typed || e->timestamps || o->payload ||
        (perfetto_only && e->format != ETWATCH_EXPORT_PERFETTO) ||
        (o->config_flags & ETWATCH_CONFIG_DENSE) != 0)
        return ew_parser_fail(p, "-f %s is not a table: use only -p, -n, --from and --to with it",
                              etwatch_export_name(e->format));
    return 0;
}

/* Spans: the name of the file selects tables or a trace instead of text. */
static int check_spans(struct ew_parser *p)
{
    struct ew_options *o = p->options;
    uint32_t format = format_of_name(o->output_path);
    bool run = o->command == EW_CMD_RUN && (o->spans || o->onnx);
    if (!run && o->command != EW_CMD_ONNX)
        return 0;
    if (o->operators && o->csv)
        return ew_parser_fail(p, "--csv has a row for each span and none for operators: use --json "
                                 "or -o FILE.arrow with --operators");
    if (format != ETWATCH_EXPORT_ARROW && format != ETWATCH_EXPORT_PERFETTO)
        return 0;
    if (o->json || o->csv)
        return ew_parser_fail(p, "%s is a file of its own format: remove --json and --csv",
                              o->output_path);
    o->spans_format = format;
    return 0;
}

/* -------------------------------------------------------------------------- entry */

/* Rules for options that several commands have. */
static int check_common(struct ew_parser *p)
{
    const struct ew_options *o = p->options;
    uint32_t flags = o->config_flags;
    if (o->last_samples > 0 && o->window_ns > 0)
        return ew_parser_fail(p, "--last-samples is for samples: remove --window");
    if (o->top_by_given && o->top_n == 0)
        return ew_parser_fail(p, "--top-by selects the metric of --top: add --top N");
    if (o->top_n > 0 && o->window_ns > 0)
        return ew_parser_fail(p, "--window aggregates every process: remove --top");
    if (o->gpu_trace && o->child == NULL)
        return ew_parser_fail(p, "--gpu-trace starts the program that it traces: add -- COMMAND");
    if (o->system_stats && !o->json)
        return ew_parser_fail(p, "--system-stats needs --json");
    if ((flags & ETWATCH_CONFIG_EVENTS) != 0 && !o->json)
        return ew_parser_fail(p, "--events needs --json");
    if (o->waits && o->source == ETWATCH_SOURCE_POLL)
        return ew_parser_fail(p, "--waits needs --source ebpf: polling sees no events");
    if ((o->spans || o->onnx) && o->source == ETWATCH_SOURCE_POLL)
        return ew_parser_fail(p, "--spans and --onnx need --source ebpf: polling sees no events");
    if (o->py_spy_path != NULL && !o->onnx)
        return ew_parser_fail(p, "--py-spy needs --onnx");
    if (o->operators && !o->onnx)
        return ew_parser_fail(p, "--operators needs --onnx");
    int rc = check_spans(p);
    if (rc != 0)
        return rc;
    if ((flags & ETWATCH_CONFIG_EVENTS) != 0 && o->source == ETWATCH_SOURCE_POLL)
        return ew_parser_fail(p, "--events needs --source ebpf or etw: polling sees no events");
    if ((flags & ETWATCH_CONFIG_CMDLINE) != 0 && !o->json && !o->csv && o->columns.count == 0 &&
        (o->command &
         (EW_CMD_REPORT | EW_CMD_EVENTS | EW_CMD_EXPORT | EW_CMD_RECORD | EW_CMD_SERVE)) == 0)
        return ew_parser_fail(p, "--cmdline needs --json or --csv: the table has no column for it");
    if ((flags & ETWATCH_CONFIG_KERNEL_THREADS) != 0 && (flags & ETWATCH_CONFIG_ALL) == 0 &&
        o->command != EW_CMD_TOP)
        return ew_parser_fail(p, "--kernel-threads needs -a");
    if (o->source == ETWATCH_SOURCE_ETL && (o->command & (EW_CMD_STAT | EW_CMD_SERVE)) == 0)
        return ew_parser_fail(p, "recordings are read by etwatch stat, report or events");
    return check_etw(p);
}

int ew_options_check(struct ew_parser *p)
{
    const struct ew_options *o = p->options;
    if (o->csv_raw && !o->csv && o->command != EW_CMD_EXPORT && o->command != EW_CMD_CONFIG)
        return ew_parser_fail(p, "--csv-raw needs --csv");
    if (o->json && o->csv)
        return ew_parser_fail(p, "--json and --csv exclude each other: choose one");
    if (o->command == EW_CMD_CONFIG)
        return o->check == o->show ? ew_parser_fail(p, "config needs either --check FILE or --show")
                                   : 0;
    int rc = check_common(p);
    if (rc != 0)
        return rc;
    switch (o->command) {
    case EW_CMD_RUN:
        return check_run(p);
    case EW_CMD_STAT:
        return check_stat(p);
    case EW_CMD_RECORD:
        return check_record(p);
    case EW_CMD_REPORT:
    case EW_CMD_EVENTS:
        return check_trace(p);
    case EW_CMD_EXPORT:
        rc = check_trace(p);
        return rc == 0 ? check_export(p) : rc;
    case EW_CMD_ONNX:
        return check_onnx(p);
    case EW_CMD_WAITS:
        return check_waits(p);
    case EW_CMD_SERVE:
        return check_serve(p);
    case EW_CMD_SERVICE:
        return check_service(p);
    case EW_CMD_COMPARE:
        if (o->files.count != 2)
            return ew_parser_fail(p, "compare needs two runs: etwatch compare A.json B.json");
        return 0;
    default:
        return 0;
    }
}
