/* SPDX-License-Identifier: MIT */
/*
 * Every option once: its names, who takes it, its help, and what it sets. The command line, the
 * configuration file and --help all walk this table, so they cannot disagree.
 */
#include "cli/args/parser.h"

#include <stdio.h>
#include <string.h>

#include <etwatch/export.h>
#include <etwatch/metrics.h>

#include "base/alloc.h"
#include "cli/args/choice_options.h"
#include "cli/args/value.h"
#include "os/os.h"

enum {
    WATCH = EW_CMD_RUN | EW_CMD_STAT | EW_CMD_TOP,
    STREAM = EW_CMD_RUN | EW_CMD_STAT,
    SELECT = EW_CMD_STAT | EW_CMD_TOP,
    TRACE = EW_CMD_REPORT | EW_CMD_EVENTS | EW_CMD_EXPORT,
    WALK = EW_CMD_EVENTS | EW_CMD_EXPORT,
    SESSION = WATCH | EW_CMD_RECORD, /* that make an ETW session */
    EVERY = EW_CMD_CONFIG | EW_CMD_WAITS | WATCH | EW_CMD_DOCTOR | TRACE | EW_CMD_RECORD |
            EW_CMD_SESSIONS | EW_CMD_METRICS,
};

struct option {
    struct ew_option_info info;
    /* One of the two: a bit of config_flags, or a function. */
    uint32_t flag;
    int (*set)(struct ew_parser *parser, const char *shown, const char *value);
};

static int set_number(struct ew_parser *parser, const char *shown, const char *value, double min,
                      double max, const char *form, double *ret_number)
{
    double number;
    if (!ew_value_number(value, &number) || number < min || number > max)
        return ew_parser_fail(parser, "%s needs %s, not \"%s\"", shown, form, value);
    *ret_number = number;
    return 0;
}

static int set_hz(struct ew_parser *p, const char *shown, const char *value)
{
    return set_number(p, shown, value, 0.1, 1000,
                      "a number from 0.1 to 1000 (samples a second, such as 100)", &p->options->hz);
}

static int set_latency(struct ew_parser *p, const char *shown, const char *value)
{
    double ms = 0;
    int rc = set_number(p, shown, value, 1, 60000,
                        "a number of milliseconds from 1 to 60000 (such as 20)", &ms);
    p->options->latency_ms = (uint32_t)ms;
    return rc;
}

static int set_duration(struct ew_parser *p, const char *shown, const char *value)
{
    return set_number(p, shown, value, 0.001, 1e9, "a number of seconds above 0 (such as 10)",
                      &p->options->duration_s);
}

static int set_window(struct ew_parser *p, const char *shown, const char *value)
{
    return set_number(p, shown, value, 0.01, 86400,
                      "a number of seconds from 0.01 to 86400 (such as 60)", &p->options->window_s);
}

static int set_budget(struct ew_parser *p, const char *shown, const char *value)
{
    p->options->budget_off = strcmp(value, "off") == 0;
    if (p->options->budget_off)
        return 0;
    return set_number(p, shown, value, 0.01, 100,
                      "a number from 0.01 to 100 (per cent of one core, such as 2) or \"off\"",
                      &p->options->budget_percent);
}

static int set_profile(struct ew_parser *p, const char *shown, const char *value)
{
    static const struct {
        const char *name;
        double percent;
    } profiles[] = {
        {"development", 50}, {"testing", 20}, {"staging", 10}, {"production", 5}, {"critical", 2},
    };
    for (size_t i = 0; i < sizeof profiles / sizeof profiles[0]; i++) {
        if (strcmp(profiles[i].name, value) == 0) {
            p->options->profile_percent = profiles[i].percent;
            return 0;
        }
    }
    return ew_parser_fail(p,
                          "%s needs one of development, testing, staging, production, critical, "
                          "not \"%s\"",
                          shown, value);
}

static int set_source(struct ew_parser *p, const char *shown, const char *value)
{
    static const uint32_t sources[] = {ETWATCH_SOURCE_AUTO, ETWATCH_SOURCE_EBPF, ETWATCH_SOURCE_ETW,
                                       ETWATCH_SOURCE_POLL, ETWATCH_SOURCE_ETL};
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        if (strcmp(etwatch_source_name(sources[i]), value) == 0) {
            p->options->source = sources[i];
            return 0;
        }
    }
    return ew_parser_fail(p, "%s needs one of auto, ebpf, etw, poll, etl, not \"%s\"", shown,
                          value);
}

static int set_output(struct ew_parser *p, const char *shown, const char *value)
{
    return ew_keep_text(p, shown, value, "the name of a file", &p->options->output_path);
}

static int set_proc_root(struct ew_parser *p, const char *shown, const char *value)
{
    return ew_keep_text(p, shown, value, "a folder", &p->options->proc_root);
}

static int set_config(struct ew_parser *p, const char *shown, const char *value)
{
    return ew_keep_text(p, shown, value, "the name of a file", &p->options->config_path);
}

int ew_list_add_words(struct ew_parser *p, const char *shown, const char *value, const char *form,
                      struct ew_list *list)
{
    int rc = ew_list_add(list, value);
    if (rc == ETWATCH_EINVAL)
        return ew_parser_fail(p, "%s needs %s, not \"%s\"", shown, form, value);
    return rc < 0 ? ew_parser_fail(p, "out of memory") : 0;
}

static int add_names(struct ew_parser *p, const char *shown, const char *value)
{
    return ew_list_add_words(p, shown, value, "a name or a list of names (such as python,nginx)",
                             &p->options->names);
}

static int add_cgroups(struct ew_parser *p, const char *shown, const char *value)
{
    return ew_list_add_words(p, shown, value,
                             "a path below the cgroup v2 root (such as system.slice)",
                             &p->options->cgroups);
}

static int add_columns(struct ew_parser *p, const char *shown, const char *value)
{
    return ew_list_add_words(p, shown, value, "a list of names (such as pid,name,cpu_percent)",
                             &p->options->columns);
}

static int add_providers(struct ew_parser *p, const char *shown, const char *value)
{
    return ew_list_add_words(
        p, shown, value, "the name or GUID of a provider, or a part of it (such as Kernel-Process)",
        &p->options->providers);
}

static int add_events(struct ew_parser *p, const char *shown, const char *value)
{
    return ew_list_add_words(p, shown, value,
                             "the name of an event, or a part of it (such as CSwitch)",
                             &p->options->events);
}

static int set_time(struct ew_parser *p, const char *shown, const char *value, uint64_t *ret_ns)
{
    if (!ew_value_time(value, ret_ns))
        return ew_parser_fail(
            p, "%s needs a time since the recording began, such as 2, 1.5s or 200ms, not \"%s\"",
            shown, value);
    return 0;
}

static int set_from(struct ew_parser *p, const char *shown, const char *value)
{
    return set_time(p, shown, value, &p->options->from_ns);
}

static int set_to(struct ew_parser *p, const char *shown, const char *value)
{
    int rc = set_time(p, shown, value, &p->options->until_ns);
    if (rc == 0 && p->options->until_ns == 0)
        rc = ew_parser_fail(p, "%s needs a time above 0", shown);
    return rc;
}

static int add_trigger(struct ew_parser *p, const char *shown, const char *value)
{
    uint32_t index = p->options->alerts.count;
    int rc = ew_option_alert(p, shown, value);
    if (rc == 0)
        p->options->triggers |= 1u << index;
    return rc;
}

/* Digits and K, M or G, in powers of 1024. */
static int set_max_size(struct ew_parser *p, const char *shown, const char *value)
{
    char digits[24];
    size_t len = strspn(value, "0123456789");
    const char *unit = value + len;
    uint64_t factor = unit[0] == '\0'                    ? 1
                      : unit[0] == 'K' || unit[0] == 'k' ? 1024
                      : unit[0] == 'M' || unit[0] == 'm' ? 1024 * 1024
                      : unit[0] == 'G' || unit[0] == 'g' ? 1024 * 1024 * 1024
                                                         : 0;
    uint64_t number = 0;
    (void)snprintf(digits, sizeof digits, "%.*s", (int)(len < 20 ? len : 20), value);
    if (factor == 0 || (unit[0] != '\0' && unit[1] != '\0') || !ew_value_u64(digits, &number) ||
        number > UINT64_C(1) << 30 || number * factor < 64 * 1024)
        return ew_parser_fail(p, "%s needs a size of at least 64K, such as 100M or 2G, not \"%s\"",
                              shown, value);
    p->options->max_bytes = number * factor;
    return 0;
}

static int set_rotate(struct ew_parser *p, const char *shown, const char *value)
{
    if (!ew_value_u32(value, &p->options->rotate) || p->options->rotate == 0 ||
        p->options->rotate > 10000)
        return ew_parser_fail(p, "%s needs a number of files from 1 to 10000, not \"%s\"", shown,
                              value);
    return 0;
}

static int set_ring(struct ew_parser *p, const char *shown, const char *value)
{
    if (!ew_value_time(value, &p->options->ring_ns) || p->options->ring_ns < 1000000000u)
        return ew_parser_fail(p, "%s needs a time of at least 1s, such as 60s or 5min, not \"%s\"",
                              shown, value);
    return 0;
}

static int set_limit(struct ew_parser *p, const char *shown, const char *value)
{
    if (!ew_value_u64(value, &p->options->limit) || p->options->limit == 0)
        return ew_parser_fail(p, "%s needs a number of events above 0, not \"%s\"", shown, value);
    return 0;
}

static int set_workers(struct ew_parser *p, const char *shown, const char *value)
{
    if (!ew_value_u32(value, &p->options->workers) || p->options->workers == 0 ||
        p->options->workers > 64)
        return ew_parser_fail(p, "%s needs a number of threads from 1 to 64, not \"%s\"", shown,
                              value);
    return 0;
}

/* The number of a name; 0: nothing is called so. */
static uint32_t find_name(const char *(*name_of)(uint32_t), const char *value)
{
    for (uint32_t i = 1; name_of(i) != NULL; i++)
        if (strcmp(name_of(i), value) == 0)
            return i;
    return 0;
}

static int set_format(struct ew_parser *p, const char *shown, const char *value)
{
    p->options->export.format = find_name(etwatch_export_name, value);
    if (p->options->export.format == 0)
        return ew_parser_fail(p,
                              "%s needs one of perfetto, arrow, csv, jsonl, folded, speedscope, "
                              "chrome, not \"%s\"",
                              shown, value);
    return 0;
}

static int set_table(struct ew_parser *p, const char *shown, const char *value)
{
    p->options->export.table = find_name(etwatch_table_name, value);
    if (p->options->export.table == 0)
        return ew_parser_fail(p,
                              "%s needs one of events, samples, thread_samples, processes, "
                              "threads, classes, images, not \"%s\"",
                              shown, value);
    return 0;
}

int ew_read_pids(struct ew_parser *p, const char *shown, const char *value, uint32_t **pids,
                 uint32_t *count)
{
    struct ew_list words = {0};
    int rc = ew_list_add_words(p, shown, value, "a process id or a list of them (such as 12,345)",
                               &words);
    for (uint32_t i = 0; i < words.count && rc == 0; i++) {
        uint32_t pid = 0;
        bool recorded = (p->options->command & (TRACE | EW_CMD_STAT)) != 0; /* 0 is Idle there */
        if (!ew_value_u32(words.words[i], &pid) || (pid == 0 && !recorded) || pid > INT32_MAX)
            rc = ew_parser_fail(p,
                                "%s needs a process id or a list of them (such as 12,345), not "
                                "\"%s\"; for a name use -n",
                                shown, words.words[i]);
        else if (ew_u32_add(pids, count, pid) < 0)
            rc = ew_parser_fail(p, "out of memory");
    }
    ew_list_done(&words);
    return rc;
}

static int add_pids(struct ew_parser *p, const char *shown, const char *value)
{
    return ew_read_pids(p, shown, value, &p->options->pids, &p->options->pid_count);
}

int ew_read_uids(struct ew_parser *p, const char *shown, const char *value, uint32_t **uids,
                 uint32_t *count)
{
    struct ew_list words = {0};
    int rc = ew_list_add_words(p, shown, value, "a user name or number, or a list of them", &words);
    for (uint32_t i = 0; i < words.count && rc == 0; i++) {
        uint32_t uid = 0;
        bool number = ew_value_u32(words.words[i], &uid);
        p->options->uid_numbers |= number;
        if (!number && !ew_os_user_id(words.words[i], &uid))
            rc = ew_parser_fail(p, "%s needs a user name or number: there is no user \"%s\"", shown,
                                words.words[i]);
        else if (ew_u32_add(uids, count, uid) < 0)
            rc = ew_parser_fail(p, "out of memory");
    }
    ew_list_done(&words);
    return rc;
}

static int set_metrics(struct ew_parser *p, const char *shown, const char *value)
{
    struct ew_list words = {0};
    int rc = ew_list_add_words(p, shown, value,
                               "groups or names (such as cpu,memory,handles or all)", &words);
    p->options->metrics = (struct etwatch_metric_set){{0}};
    for (uint32_t i = 0; i < words.count && rc == 0; i++) {
        struct etwatch_metric_set metrics = {{0}};
        int named = etwatch_metrics_named(words.words[i], &metrics);
        if (named == ETWATCH_ENOTSUP)
            rc = ew_option_not_measured(p, shown, words.words[i]);
        else if (named != 0)
            rc = ew_parser_fail(p,
                                "%s needs groups or names (such as cpu,memory,handles or all): "
                                "there is no \"%s\"; see 'etwatch metrics'",
                                shown, words.words[i]);
        etwatch_metric_set_union(&p->options->metrics, &metrics);
    }
    ew_list_done(&words);
    return rc;
}

/* Whether one of them is read at a rate of its own. */
static bool any_has_rate(const struct etwatch_metric_set *metrics)
{
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++) {
        struct etwatch_metric_info info = {.size = sizeof info};
        if (etwatch_metric_set_has(metrics, i) && etwatch_metric_info(i, &info) == 0 &&
            info.default_hz > 0)
            return true;
    }
    return false;
}

static int set_one_rate(struct ew_parser *p, const char *shown, char *word)
{
    static const double least = 0.01, most = 1000;
    char *equals = strchr(word, '=');
    double hz = 0;
    if (equals != NULL)
        *equals = '\0';
    struct etwatch_metric_set metrics = {{0}};
    int named = equals == NULL ? ETWATCH_EINVAL : etwatch_metrics_named(word, &metrics);
    bool known = equals != NULL && ew_value_number(equals + 1, &hz);
    if (named == ETWATCH_ENOTSUP)
        return ew_option_not_measured(p, shown, word);
    etwatch_metric_set_remove(&metrics, ETWATCH_METRIC_DEFAULT);
    bool none = etwatch_metric_set_is_empty(&metrics);
    if (!none && !any_has_rate(&metrics))
        return ew_parser_fail(p, "%s: %s comes with every sample, its rate is that of --hz", shown,
                              word);
    if (equals != NULL)
        *equals = '='; /* whole, for the message */
    if (none || !known || hz < least || hz > most)
        return ew_parser_fail(p,
                              "%s needs NAME=HZ with the name of a metric or group and 0.01 to "
                              "1000 a second (such as memory=2,handles=0.5), not \"%s\"",
                              shown, word);
    if (p->options->rate_count == EW_RATES_MAX)
        return ew_parser_fail(p, "%s: at most %d rates", shown, EW_RATES_MAX);
    p->options->rates[p->options->rate_count++] = (struct etwatch_rate){metrics, hz};
    return 0;
}

static int set_rate(struct ew_parser *p, const char *shown, const char *value)
{
    struct ew_list words = {0};
    int rc = ew_list_add_words(p, shown, value, "rates (such as memory=2,handles=0.5)", &words);
    for (uint32_t i = 0; i < words.count && rc == 0; i++)
        rc = set_one_rate(p, shown, words.words[i]);
    ew_list_done(&words);
    return rc;
}

static int add_uids(struct ew_parser *p, const char *shown, const char *value)
{
    return ew_read_uids(p, shown, value, &p->options->uids, &p->options->uid_count);
}

#define SWITCH(function, member)                                                   \
    static int function(struct ew_parser *p, const char *shown, const char *value) \
    {                                                                              \
        (void)shown;                                                               \
        p->options->member = value == NULL;                                        \
        return 0;                                                                  \
    }
SWITCH(set_json, json)
SWITCH(set_csv, csv)
SWITCH(set_quiet, quiet)
SWITCH(set_wait_all, wait_all)
SWITCH(set_show_metrics, show_metrics)
SWITCH(set_system, system)
SWITCH(set_images, images)
SWITCH(set_count, count)
SWITCH(set_raw, raw)
SWITCH(set_cleanup, cleanup)
SWITCH(set_waits, waits)
SWITCH(set_fields, export.fields)
SWITCH(set_typed, export.typed)
SWITCH(set_timestamps, export.timestamps)
SWITCH(set_help, help)
SWITCH(set_version, version)
#undef SWITCH

/* clang-format off */
static const struct option table[] = {
    {{"pid", 'p', "PID", "this process and its descendants (a list, and again)", SELECT | TRACE | EW_CMD_RECORD | EW_CMD_WAITS}, 0, add_pids},
    {{"name", 'n', "NAME", "processes of this name; python also means python3.11, py* is a glob", SELECT | TRACE | EW_CMD_RECORD | EW_CMD_WAITS}, 0, add_names},
    {{"provider", 0, "NAME", "only events of this provider: its name, a part of it, or its GUID", WALK}, 0, add_providers},
    {{"event", 0, "NAME", "only events of this name, or with this in their name", WALK}, 0, add_events},
    {{"from", 0, "TIME", "only from this time of the recording on: 2, 1.5s, 200ms", TRACE | EW_CMD_WAITS}, 0, set_from},
    {{"to", 0, "TIME", "only up to this time of the recording", TRACE | EW_CMD_WAITS}, 0, set_to},
    {{"all", 'a', NULL, "watch every process", SELECT | EW_CMD_RECORD | EW_CMD_WAITS}, ETWATCH_CONFIG_ALL, NULL},
    {{"uid", 'u', "USER", "watch the processes of a user, by name or number", SELECT | EW_CMD_RECORD | EW_CMD_WAITS}, 0, add_uids},
    {{"cgroup", 0, "PATH", "watch the processes of a cgroup (v2) and those below it", SELECT | EW_CMD_RECORD | EW_CMD_WAITS}, 0, add_cgroups},
    {{"container", 0, "ID", "watch the processes of a container, by its id or the beginning of it", SELECT | EW_CMD_RECORD | EW_CMD_WAITS}, 0, ew_option_containers},
    {{"exclude-pid", 0, "PID", "leave out this process, not its descendants", WATCH | TRACE | EW_CMD_RECORD | EW_CMD_WAITS}, 0, ew_option_exclude_pids},
    {{"exclude-name", 0, "NAME", "leave out processes of this name, as with -n", WATCH | TRACE | EW_CMD_RECORD | EW_CMD_WAITS}, 0, ew_option_exclude_names},
    {{"exclude-uid", 0, "USER", "leave out the processes of a user", WATCH | EW_CMD_RECORD | EW_CMD_WAITS}, 0, ew_option_exclude_uids},
    {{"exclude-cgroup", 0, "PATH", "leave out the processes of a cgroup and those below it", WATCH | EW_CMD_RECORD | EW_CMD_WAITS}, 0, ew_option_exclude_cgroups},
    {{"no-system", 0, NULL, "leave out System, Idle and Registry; on Linux kernel threads", WATCH | TRACE | EW_CMD_RECORD | EW_CMD_WAITS}, ETWATCH_CONFIG_NO_SYSTEM, NULL},
    {{"max-processes", 0, "N", "samples of the N busiest in each interval, the rest summed up as one", STREAM}, 0, ew_option_busiest},
    {{"by", 0, "METRIC", "what --max-processes goes by (default cpu_percent)", STREAM}, 0, ew_option_busiest_by},
    {{"kernel-threads", 0, NULL, "with -a: kernel threads too", SELECT}, ETWATCH_CONFIG_KERNEL_THREADS, NULL},
    {{"hz", 0, "N", "samples a second, 0.1 to 1000 (default 10)", WATCH | EW_CMD_EXPORT | EW_CMD_RECORD}, 0, set_hz},
    {{"metrics", 0, "LIST", "what to measure: groups and names of 'etwatch metrics', or all", WATCH | EW_CMD_RECORD}, 0, set_metrics},
    {{"metrics", 0, NULL, "which metrics can be had here, how exact, and why not", EW_CMD_DOCTOR}, 0, set_show_metrics},
    {{"rate", 0, "LIST", "how often some are read at most: memory=2,handles=0.5", WATCH | EW_CMD_RECORD}, 0, set_rate},
    {{"latency", 0, "MS", "how long samples may be held back (default 400)", WATCH | EW_CMD_RECORD}, 0, set_latency},
    {{"duration", 0, "S", "stop watching after S seconds", WATCH | EW_CMD_RECORD | EW_CMD_WAITS}, 0, set_duration},
    {{"source", 0, "NAME", "auto, ebpf, etw or poll (default auto); etl: a recording", WATCH | EW_CMD_RECORD}, 0, set_source},
    {{"no-fallback", 0, NULL, "fail with exit code 3 instead of polling", WATCH | EW_CMD_RECORD}, ETWATCH_CONFIG_NO_FALLBACK, NULL},
    {{"budget", 0, "PERCENT", "most of one core that watching may cost, or off (default 2)", WATCH | EW_CMD_RECORD}, 0, set_budget},
    {{"profile", 0, "NAME", "a budget by name: development 50, testing 20, staging 10, production 5, critical 2", WATCH | EW_CMD_RECORD}, 0, set_profile},
    {{"json", 0, NULL, "JSON Lines", STREAM | EW_CMD_RECORD | EW_CMD_DOCTOR | EW_CMD_REPORT | EW_CMD_EVENTS | EW_CMD_SESSIONS | EW_CMD_METRICS | EW_CMD_WAITS}, 0, set_json},
    {{"csv", 0, NULL, "CSV with one header line", STREAM | EW_CMD_REPORT | EW_CMD_SESSIONS | EW_CMD_METRICS}, 0, set_csv},
    {{"format", 'f', "FORMAT", "perfetto, arrow, csv, jsonl, folded, speedscope or chrome", EW_CMD_EXPORT}, 0, set_format},
    {{"table", 0, "NAME", "of csv, jsonl, arrow: events (default), samples, thread_samples, processes, threads, classes, images", EW_CMD_EXPORT}, 0, set_table},
    {{"fields", 0, NULL, "csv, arrow: the fields of events too, as JSON in one column", EW_CMD_EXPORT}, 0, set_fields},
    {{"typed", 0, NULL, "csv, jsonl, arrow: a column for each field of the events; for few kinds of events", EW_CMD_EXPORT}, 0, set_typed},
    {{"timestamps", 0, NULL, "arrow: times as timestamps instead of numbers", EW_CMD_EXPORT}, 0, set_timestamps},
    {{"system", 0, NULL, "with --json: the whole machine too, once a second", EW_CMD_STAT}, 0, set_system},
    {{"columns", 0, "LIST", "only these columns, for the table and CSV", EW_CMD_STAT}, 0, add_columns},
    {{"output", 'o', "FILE", "write the data to FILE instead of standard output", STREAM | TRACE | EW_CMD_RECORD | EW_CMD_SESSIONS | EW_CMD_WAITS}, 0, set_output},
    {{"threads", 0, NULL, "every thread too", WATCH | EW_CMD_REPORT | EW_CMD_RECORD}, ETWATCH_CONFIG_THREADS, NULL},
    {{"dense", 0, NULL, "a sample for every interval, also of idle processes", STREAM | EW_CMD_EXPORT}, ETWATCH_CONFIG_DENSE, NULL},
    {{"events", 0, NULL, "with --json: every switch, wake-up, fork, exec and exit", STREAM}, ETWATCH_CONFIG_EVENTS, NULL},
    {{"cmdline", 0, NULL, "command lines too; common secrets are masked", STREAM | EW_CMD_REPORT | EW_CMD_EXPORT | EW_CMD_RECORD}, ETWATCH_CONFIG_CMDLINE, NULL},
    {{"images", 0, NULL, "program files and libraries too", EW_CMD_REPORT}, 0, set_images},
    {{"count", 0, NULL, "how often each kind of event came, instead of the events", EW_CMD_EVENTS}, 0, set_count},
    {{"raw", 0, NULL, "the payload in hexadecimal too", WALK}, 0, set_raw},
    {{"limit", 0, "N", "stop after N events", EW_CMD_EVENTS}, 0, set_limit},
    {{"workers", 0, "N", "threads to read with (default: one per CPU, at most 8)", TRACE | EW_CMD_WAITS}, 0, set_workers},
    {{"alert", 0, "CONDITION", "tell when it holds, such as 'cpu_percent>80 for 20ms' (and again)", WATCH | EW_CMD_RECORD}, 0, ew_option_alert},
    {{"window", 0, "S", "instead of samples: average, maximum, p95 and p99 over S seconds", EW_CMD_STAT}, 0, set_window},
    {{"aggregate", 0, "LIST", "with --window: of these metrics too (groups and names)", EW_CMD_STAT}, 0, ew_option_aggregate},
    {{"max-size", 0, "SIZE", "end when the file has this size (such as 100M); of a ring: its memory", EW_CMD_RECORD}, 0, set_max_size},
    {{"rotate", 0, "N", "with --max-size: go on in a new file, and keep the last N", EW_CMD_RECORD}, 0, set_rotate},
    {{"ring", 0, "TIME", "keep the last TIME in memory; written at --trigger or SIGUSR1", EW_CMD_RECORD}, 0, set_ring},
    {{"trigger", 0, "COND", "with --ring: write it when this holds, such as 'cpu_percent>90 for 1s'", EW_CMD_RECORD}, 0, add_trigger},
    {{"wait-all", 0, NULL, "go on until the last descendant has ended", EW_CMD_RUN}, 0, set_wait_all},
    {{"waits", 0, NULL, "who waited for whom too: every switch and wake-up is looked at", EW_CMD_RUN}, 0, set_waits},
    {{"session", 0, "NAME", "ETW: read this session, whosever it is, and change nothing", WATCH}, 0, ew_set_session},
    {{"session-name", 0, "NAME", "ETW: name of our own session: etwatch-NAME", SESSION}, 0, ew_set_session_name},
    {{"kernel", 0, "LIST", "ETW: kinds of kernel events: process,thread,image,cswitch,disk,…", SESSION}, 0, ew_set_kernel},
    {{"stacks", 0, "LIST", "ETW: those of them that come with a stack", SESSION}, 0, ew_set_stacks},
    {{"profile-hz", 0, "N", "ETW: CPU samples too, N a second", SESSION}, 0, ew_set_profile_hz},
    {{"provider", 0, "SPEC", "ETW: events of a provider: NAME|GUID[:LEVEL[:KEYWORDS]][:pid=LIST][:id=LIST]", SESSION}, 0, ew_add_etw_provider},
    {{"buffer-size", 0, "KB", "ETW: size of a buffer, 4 to 16384 (default 64)", SESSION}, 0, ew_set_buffer_kb},
    {{"min-buffers", 0, "N", "ETW: buffers from the beginning (default: eight a CPU)", SESSION}, 0, ew_set_min_buffers},
    {{"max-buffers", 0, "N", "ETW: buffers at most (default: sixteen a CPU, at least 64)", SESSION}, 0, ew_set_max_buffers},
    {{"buffer-memory", 0, "MB", "ETW: what the default buffers may take (default 64)", SESSION}, 0, ew_set_buffer_memory},
    {{"flush", 0, "MS", "ETW: how long events may stay in a buffer (default 100)", WATCH}, 0, ew_set_flush},
    {{"cleanup", 0, NULL, "end those that etwatch left behind", EW_CMD_SESSIONS}, 0, set_cleanup},
    {{"check", 0, "FILE", "whether a configuration file is right; else where it is wrong", EW_CMD_CONFIG}, 0, ew_option_check},
    {{"show", 0, NULL, "the configuration in force, and where each value comes from", EW_CMD_CONFIG}, 0, ew_option_show},
    {{"keep", 0, "N", "only the last N samples, written at the end", EW_CMD_STAT}, 0, ew_option_keep},
    {{"config", 0, "FILE", "read options from FILE: lines of `name = value`", WATCH | TRACE | EW_CMD_RECORD | EW_CMD_CONFIG | EW_CMD_WAITS}, 0, set_config},
    {{"proc-root", 0, "DIR", "read this instead of /proc (for tests)", WATCH | EW_CMD_DOCTOR | EW_CMD_RECORD}, 0, set_proc_root},
    {{"quiet", 'q', NULL, "no words on standard error except errors", EVERY}, 0, set_quiet},
    {{"help", 'h', NULL, "show this", EVERY}, 0, set_help},
    {{"version", 0, NULL, "show the version", EVERY}, 0, set_version},
};
/* clang-format on */

const struct ew_option_info *ew_option_info(size_t i)
{
    return i < sizeof table / sizeof table[0] ? &table[i].info : NULL;
}

const struct ew_option_info *ew_option_find(const char *name, size_t len, enum ew_command command)
{
    const struct ew_option_info *found = NULL;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const struct ew_option_info *info = &table[i].info;
        if (strlen(info->name) != len || memcmp(info->name, name, len) != 0)
            continue;
        if ((info->commands & command) != 0)
            return info;
        if (found == NULL)
            found = info;
    }
    return found;
}

const struct ew_option_info *ew_option_find_letter(char letter)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].info.letter != 0 && table[i].info.letter == letter)
            return &table[i].info;
    return NULL;
}

int ew_option_apply(struct ew_parser *parser, const struct ew_option_info *info, const char *shown,
                    const char *value)
{
    const struct option *option = (const struct option *)(const void *)info;
    if (info->value == NULL && value != NULL)
        parser->options->config_flags &= ~option->flag;
    else
        parser->options->config_flags |= option->flag;
    if (parser->options->command == EW_CMD_CONFIG && ew_origin_add(parser, info, value) < 0)
        return ew_parser_fail(parser, "out of memory");
    return option->set == NULL ? 0 : option->set(parser, shown, value);
}
