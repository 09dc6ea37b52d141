/* SPDX-License-Identifier: MIT */
/*
 * The table of options. The command line, the configuration file, --help and `config --show` walk
 * it, so they cannot disagree. Most options are a value type and a member of struct ew_options; the
 * few with a grammar of their own have a setter.
 */
#include <stdio.h>
#include <string.h>

#include <etwatch/export.h>
#include <etwatch/metrics.h>
#include <etwatch/window.h>

#include "base/alloc.h"
#include "cli/args/args.h"
#include "os/os.h"

enum {
    WATCH = EW_CMD_RUN | EW_CMD_STAT | EW_CMD_TOP | EW_CMD_SERVE,
    STREAM = EW_CMD_RUN | EW_CMD_STAT,
    TRACE = EW_CMD_REPORT | EW_CMD_EVENTS | EW_CMD_EXPORT,
    WALK = EW_CMD_EVENTS | EW_CMD_EXPORT,
    SELECT = EW_CMD_STAT | EW_CMD_TOP | EW_CMD_RECORD | EW_CMD_WAITS | EW_CMD_SERVE | EW_CMD_ONNX,
    SESSION = WATCH | EW_CMD_RECORD, /* commands that start an ETW session */
    READS_FILE = WATCH | TRACE | EW_CMD_RECORD | EW_CMD_WAITS | EW_CMD_ONNX | EW_CMD_CONFIG,
    EVERY = READS_FILE | EW_CMD_COMPARE | EW_CMD_DOCTOR | EW_CMD_SESSIONS | EW_CMD_METRICS |
            EW_CMD_SERVICE,
};

/* ------------------------------------------------------------------- value types */

static void *member_of(struct ew_parser *p, const struct ew_option *option)
{
    return (char *)p->options + option->offset;
}

static int fail_form(struct ew_parser *p, const struct ew_option *option, const char *shown,
                     const char *value)
{
    return ew_parser_fail(p, "%s needs %s, not \"%s\"", shown, option->form, value);
}

static int set_number(struct ew_parser *p, const struct ew_option *option, const char *shown,
                      const char *value)
{
    double number;
    if (!ew_value_number(value, &number) || number < option->min || number > option->max)
        return fail_form(p, option, shown, value);
    *(double *)member_of(p, option) = number;
    return 0;
}

static int set_count(struct ew_parser *p, const struct ew_option *option, const char *shown,
                     const char *value)
{
    uint32_t number;
    if (!ew_value_u32(value, &number) || number < option->min || number > option->max)
        return fail_form(p, option, shown, value);
    *(uint32_t *)member_of(p, option) = number;
    return 0;
}

/* BIG, DURATION and SIZE: the same member, three ways to write it. */
static int set_u64(struct ew_parser *p, const struct ew_option *option, const char *shown,
                   const char *value)
{
    uint64_t number;
    bool known = option->type == EW_OPTION_DURATION
                     ? ew_value_duration(value, option->unit, &number)
                 : option->type == EW_OPTION_SIZE ? ew_value_size(value, option->unit, &number)
                                                  : ew_value_u64(value, &number);
    if (!known || (double)number < option->min || (double)number > option->max)
        return fail_form(p, option, shown, value);
    *(uint64_t *)member_of(p, option) = number;
    return 0;
}

static int set_text(struct ew_parser *p, const char *shown, const char *value, const char *form,
                    char **member)
{
    if (value[0] == '\0')
        return ew_parser_fail(p, "%s needs %s", shown, form);
    char *copy = ew_strdup(value);
    if (copy == NULL)
        return ew_parser_fail(p, "out of memory");
    ew_free(*member);
    *member = copy;
    return 0;
}

static int add_words(struct ew_parser *p, const char *shown, const char *value, const char *form,
                     struct ew_list *list)
{
    int rc = ew_args_list_add(list, value);
    if (rc == ETWATCH_EINVAL)
        return ew_parser_fail(p, "%s needs %s, not \"%s\"", shown, form, value);
    return rc < 0 ? ew_parser_fail(p, "out of memory") : 0;
}

static int add_pids(struct ew_parser *p, const struct ew_option *option, const char *shown,
                    const char *value)
{
    struct ew_list words = {0};
    int rc = add_words(p, shown, value, option->form, &words);
    for (uint32_t i = 0; i < words.count && rc == 0; i++) {
        uint32_t pid = 0;
        /* In a recording of Windows, 0 is the Idle process. */
        bool recorded = (p->options->command & (TRACE | EW_CMD_STAT | EW_CMD_SERVE)) != 0;
        if (!ew_value_u32(words.words[i], &pid) || (pid == 0 && !recorded) || pid > INT32_MAX)
            rc = ew_parser_fail(p, "%s needs %s, not \"%s\"; to select by name use -n", shown,
                                option->form, words.words[i]);
        else if (ew_ids_add(member_of(p, option), pid) < 0)
            rc = ew_parser_fail(p, "out of memory");
    }
    ew_args_list_done(&words);
    return rc;
}

static int add_users(struct ew_parser *p, const struct ew_option *option, const char *shown,
                     const char *value)
{
    struct ew_list words = {0};
    int rc = add_words(p, shown, value, option->form, &words);
    for (uint32_t i = 0; i < words.count && rc == 0; i++) {
        uint32_t uid = 0;
        bool number = ew_value_u32(words.words[i], &uid);
        p->options->user_numbers |= number;
        if (!number && !ew_os_user_id(words.words[i], &uid))
            rc = ew_parser_fail(p, "%s: there is no user \"%s\" on this machine", shown,
                                words.words[i]);
        else if (ew_ids_add(member_of(p, option), uid) < 0)
            rc = ew_parser_fail(p, "out of memory");
    }
    ew_args_list_done(&words);
    return rc;
}

/* ------------------------------------------------------ options with their own grammar */

static int set_budget(struct ew_parser *p, const char *shown, const char *value)
{
    double percent = 0;
    p->options->budget_off = strcmp(value, "off") == 0;
    if (p->options->budget_off)
        return 0;
    if (!ew_value_number(value, &percent) || percent < 0.01 || percent > 100)
        return ew_parser_fail(
            p,
            "%s needs a percentage of one core from 0.01 to 100 (such as 2) or \"off\", not \"%s\"",
            shown, value);
    p->options->budget_percent = percent;
    return 0;
}

static int set_budget_profile(struct ew_parser *p, const char *shown, const char *value)
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

int ew_fail_not_measured(struct ew_parser *p, const char *shown, const char *name)
{
    return ew_parser_fail(p, "%s: no source measures \"%s\" yet; see 'etwatch metrics'", shown,
                          name);
}

static int set_metrics(struct ew_parser *p, const char *shown, const char *value)
{
    static const char form[] = "groups or names of metrics (such as cpu,memory,handles or all)";
    struct ew_list words = {0};
    int rc = add_words(p, shown, value, form, &words);
    p->options->metrics = (struct etwatch_metric_set){{0}};
    for (uint32_t i = 0; i < words.count && rc == 0; i++) {
        struct etwatch_metric_set metrics = {{0}};
        int named = etwatch_metrics_named(words.words[i], &metrics);
        if (named == ETWATCH_ENOTSUP)
            rc = ew_fail_not_measured(p, shown, words.words[i]);
        else if (named != 0)
            rc = ew_parser_fail(p, "%s needs %s: there is no \"%s\"; see 'etwatch metrics'", shown,
                                form, words.words[i]);
        etwatch_metric_set_union(&p->options->metrics, &metrics);
    }
    ew_args_list_done(&words);
    return rc;
}

/* Whether any of these metrics is read at a rate of its own. */
static bool any_rated(const struct etwatch_metric_set *metrics)
{
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++) {
        struct etwatch_metric_info info = {.size = sizeof info};
        if (etwatch_metric_set_has(metrics, i) && etwatch_metric_info(i, &info) == 0 &&
            info.default_hz > 0)
            return true;
    }
    return false;
}

static int add_rate(struct ew_parser *p, const char *shown, char *word)
{
    static const double min_hz = 0.01, max_hz = 1000;
    char *equals = strchr(word, '=');
    double hz = 0;
    if (equals != NULL)
        *equals = '\0';
    struct etwatch_metric_set metrics = {{0}};
    int named = equals == NULL ? ETWATCH_EINVAL : etwatch_metrics_named(word, &metrics);
    bool known = equals != NULL && ew_value_number(equals + 1, &hz);
    if (named == ETWATCH_ENOTSUP)
        return ew_fail_not_measured(p, shown, word);
    etwatch_metric_set_remove(&metrics, ETWATCH_METRIC_DEFAULT);
    bool none = etwatch_metric_set_is_empty(&metrics);
    if (!none && !any_rated(&metrics))
        return ew_parser_fail(p, "%s: %s comes with every sample; its rate is that of --hz", shown,
                              word);
    if (equals != NULL)
        *equals = '='; /* the whole word, for the message */
    if (none || !known || hz < min_hz || hz > max_hz)
        return ew_parser_fail(p,
                              "%s needs NAME=HZ with the name of a metric or group and 0.01 to "
                              "1000 reads per second (such as memory=2,handles=0.5), not \"%s\"",
                              shown, word);
    if (p->options->rate_count == EW_RATES_MAX)
        return ew_parser_fail(p, "%s takes at most %d rates", shown, EW_RATES_MAX);
    p->options->rates[p->options->rate_count++] = (struct etwatch_rate){metrics, hz};
    return 0;
}

static int add_rates(struct ew_parser *p, const char *shown, const char *value)
{
    struct ew_list words = {0};
    int rc = add_words(p, shown, value, "rates (such as memory=2,handles=0.5)", &words);
    for (uint32_t i = 0; i < words.count && rc == 0; i++)
        rc = add_rate(p, shown, words.words[i]);
    ew_args_list_done(&words);
    return rc;
}

/* A container is a cgroup with this id in its path, as docker and podman print it. */
static int add_containers(struct ew_parser *p, const char *shown, const char *value)
{
    struct ew_list ids = {0};
    int rc = add_words(p, shown, value, "the id of a container (such as 3f2a9c41d07b)", &ids);
    for (uint32_t i = 0; i < ids.count && rc == 0; i++) {
        char cgroup[128];
        size_t len = strlen(ids.words[i]);
        if (len < 4 || len > 64 || strspn(ids.words[i], "0123456789abcdef") != len)
            rc = ew_parser_fail(p,
                                "%s needs the id of a container, 4 to 64 hexadecimal digits as "
                                "'docker ps' prints them, not \"%s\"",
                                shown, ids.words[i]);
        (void)snprintf(cgroup, sizeof cgroup, "container:%.64s", ids.words[i]);
        if (rc == 0)
            rc = add_words(p, shown, cgroup, "the id of a container", &p->options->cgroups);
    }
    ew_args_list_done(&ids);
    return rc;
}

static int set_top_by(struct ew_parser *p, const char *shown, const char *value)
{
    struct etwatch_metric_set metrics = {{0}};
    int named = etwatch_metrics_named(value, &metrics);
    uint32_t metric = etwatch_metric_set_next(&metrics, 0);
    if (named == ETWATCH_ENOTSUP)
        return ew_fail_not_measured(p, shown, value);
    if (etwatch_metric_set_count(&metrics) != 1 || metric >= ETWATCH_METRIC_COUNT)
        return ew_parser_fail(p,
                              "%s needs the name of one metric (such as cpu_percent or "
                              "io_write_bytes), not \"%s\"; see 'etwatch metrics'",
                              shown, value);
    p->options->top_n_metric = metric;
    p->options->top_by_given = true;
    return 0;
}

/* The message marks the byte that is wrong; a condition is short enough to be repeated. */
static int add_alert(struct ew_parser *p, const char *shown, const char *value)
{
    struct etwatch_error_info error = {.size = sizeof error};
    if (etwatch_alert_check(value, NULL, &error) < 0)
        return ew_parser_fail(p, "%s \"%.*s>>>%.80s\": %s; %s", shown, (int)error.offset, value,
                              value + error.offset, error.message, error.fix);
    if (p->options->alerts.count == ETWATCH_ALERTS_MAX)
        return ew_parser_fail(p, "%s may be given at most %d times", shown, ETWATCH_ALERTS_MAX);
    return ew_args_list_add_word(&p->options->alerts, value) < 0
               ? ew_parser_fail(p, "out of memory")
               : 0;
}

/* A trigger is an alert that also writes the ring. */
static int add_trigger(struct ew_parser *p, const char *shown, const char *value)
{
    uint32_t index = p->options->alerts.count;
    int rc = add_alert(p, shown, value);
    if (rc == 0)
        p->options->triggers |= 1u << index;
    return rc;
}

static int add_aggregates(struct ew_parser *p, const char *shown, const char *value)
{
    static const char form[] = "groups or names of metrics (such as io,handles)";
    struct ew_list words = {0};
    int rc = add_words(p, shown, value, form, &words);
    p->options->aggregate_given |= p->where[0] == '\0';
    for (uint32_t i = 0; i < words.count && rc == 0; i++) {
        struct etwatch_metric_set metrics = {{0}};
        int named = etwatch_metrics_named(words.words[i], &metrics);
        bool any = false;
        for (uint32_t metric = 0; metric < ETWATCH_METRIC_COUNT; metric++) {
            struct etwatch_metric_info info = {.size = sizeof info};
            if (!etwatch_metric_set_has(&metrics, metric) ||
                etwatch_metric_info(metric, &info) < 0 || info.has_average == 0)
                continue;
            any = true;
            p->options->aggregation[metric] =
                ETWATCH_WINDOW_AVG | ETWATCH_WINDOW_MAX | ETWATCH_WINDOW_P95 | ETWATCH_WINDOW_P99;
        }
        if (named == ETWATCH_ENOTSUP)
            rc = ew_fail_not_measured(p, shown, words.words[i]);
        else if (!any)
            rc = ew_parser_fail(p, "%s needs %s; \"%s\" has no average", shown, form,
                                words.words[i]);
    }
    ew_args_list_done(&words);
    return rc;
}

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

/* Octal, as chmod takes it. */
static int set_mode(struct ew_parser *p, const char *shown, const char *value)
{
    uint32_t mode = 0;
    size_t len = strlen(value);
    bool octal = len >= 3 && len <= 4;
    for (size_t i = 0; i < len && octal; i++) {
        octal = value[i] >= '0' && value[i] <= '7';
        mode = mode * 8 + (uint32_t)(value[i] - '0');
    }
    /* etwatch itself must be able to write, and a file of data is no program. */
    if (!octal || (mode & 0200) == 0 || (mode & ~0666u) != 0)
        return ew_parser_fail(p, "%s needs octal access rights such as 640 or 0644, not \"%s\"",
                              shown, value);
    p->options->mode = mode;
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

static bool is_kernel_event(const char *word)
{
    for (uint32_t i = 0; etwatch_session_kernel_name(i) != NULL; i++)
        if (strcmp(etwatch_session_kernel_name(i), word) == 0)
            return true;
    return strncmp(word, "EVENT_TRACE_FLAG_", 17) == 0; /* checked by the library */
}

static int check_kernel_events(struct ew_parser *p, const char *shown, const char *value)
{
    struct ew_list words = {0};
    char all[400] = "";
    size_t used = 0;
    int rc =
        ew_args_list_add(&words, value) < 0 && value[0] != '\0'
            ? ew_parser_fail(p, "%s needs a list without empty entries, not \"%s\"", shown, value)
            : 0;
    for (uint32_t i = 0; etwatch_session_kernel_name(i) != NULL && used < sizeof all; i++)
        used +=
            (size_t)snprintf(all + used, sizeof all - used, " %s", etwatch_session_kernel_name(i));
    for (uint32_t i = 0; rc == 0 && i < words.count; i++)
        if (!is_kernel_event(words.words[i]))
            rc = ew_parser_fail(p, "%s: \"%s\" is not a kind of kernel event; use one of:%s", shown,
                                words.words[i], all);
    ew_args_list_done(&words);
    return rc;
}

static int set_kernel(struct ew_parser *p, const char *shown, const char *value)
{
    int rc = check_kernel_events(p, shown, value);
    return rc != 0
               ? rc
               : set_text(p, shown, value, "kinds of kernel events, such as process,thread,cswitch",
                          &p->options->etw.kernel);
}

static int set_stacks(struct ew_parser *p, const char *shown, const char *value)
{
    int rc = check_kernel_events(p, shown, value);
    return rc != 0 ? rc
                   : set_text(p, shown, value, "kinds of kernel events, such as profile,cswitch",
                              &p->options->etw.stacks);
}

static int add_enabled_provider(struct ew_parser *p, const char *shown, const char *value)
{
    struct ew_provider parsed;
    const char *wrong = ew_args_provider_parse(value, &parsed);
    if (wrong == NULL && p->options->etw.providers.count == EW_PROVIDERS_MAX)
        wrong = "at most 16 providers";
    if (wrong != NULL)
        return ew_parser_fail(p,
                              "%s needs NAME[:LEVEL[:KEYWORDS]][:pid=LIST][:id=LIST], not \"%s\": "
                              "%s",
                              shown, value, wrong);
    return ew_args_list_add_word(&p->options->etw.providers, value) < 0
               ? ew_parser_fail(p, "out of memory")
               : 0;
}

static int set_check(struct ew_parser *p, const char *shown, const char *value)
{
    int rc = set_text(p, shown, value, "the name of a file", &p->options->config_path);
    p->options->check = rc == 0;
    return rc;
}

/* ---------------------------------------------------------------------- the table */

#define MS 1e6
#define SECOND 1e9
#define KIB 1024.0
#define MIB (1024.0 * 1024.0)

#define AT(member) .offset = offsetof(struct ew_options, member)
#define SWITCH(member) .type = EW_OPTION_SWITCH, AT(member)
#define FLAG(bit) .type = EW_OPTION_FLAG, .flag = (bit)
#define NUMBER(member, lo, hi) .type = EW_OPTION_NUMBER, AT(member), .min = (lo), .max = (hi)
#define COUNT(member, lo, hi) .type = EW_OPTION_COUNT, AT(member), .min = (lo), .max = (hi)
#define BIG(member, lo, hi) .type = EW_OPTION_BIG, AT(member), .min = (lo), .max = (hi)
#define DURATION(member, bare, lo, hi) \
    .type = EW_OPTION_DURATION, AT(member), .unit = (bare), .min = (lo), .max = (hi)
#define SIZE(member, bare, lo, hi) \
    .type = EW_OPTION_SIZE, AT(member), .unit = (bare), .min = (lo), .max = (hi)
#define TEXT(member) .type = EW_OPTION_TEXT, AT(member)
#define LIST(member) .type = EW_OPTION_LIST, AT(member)
#define PIDS(member) .type = EW_OPTION_PIDS, AT(member)
#define USERS(member) .type = EW_OPTION_USERS, AT(member)
#define OTHER(function) .type = EW_OPTION_OTHER, .set = (function)

#define A_PID "a process id or a list of them (such as 12,345)"
#define A_NAME "a name or a list of names (such as python,nginx)"
#define A_USER "a user name or number, or a list of them"
#define A_CGROUP "a path below the cgroup v2 root (such as system.slice)"
#define A_FILE "the name of a file"
#define A_TIME "a time since the start of the recording, such as 2, 1.5s or 200ms"

/* clang-format off */
static const struct ew_option table[] = {
    /* which processes */
    {"pid", 'p', "PID", "this process and its descendants; a list, may be repeated", SELECT | TRACE, EW_SECTION_PROCESSES, PIDS(pids), .form = A_PID},
    {"name", 'n', "NAME", "processes with this name; python also matches python3.11, py* is a glob", SELECT | TRACE, EW_SECTION_PROCESSES, LIST(names), .form = A_NAME},
    {"user", 'u', "USER", "the processes of a user, by name or number", SELECT, EW_SECTION_PROCESSES, USERS(users), .form = A_USER},
    {"cgroup", 0, "PATH", "the processes of a cgroup (v2) and of the cgroups below it", SELECT, EW_SECTION_PROCESSES, LIST(cgroups), .form = A_CGROUP, .only = EW_ON_LINUX},
    {"container", 0, "ID", "the processes of a container, by its id or the start of it", SELECT, EW_SECTION_PROCESSES, OTHER(add_containers), .grows = true, .only = EW_ON_LINUX},
    {"all", 'a', NULL, "every process", SELECT, EW_SECTION_PROCESSES, FLAG(ETWATCH_CONFIG_ALL)},
    {"kernel-threads", 0, NULL, "with -a: include kernel threads", EW_CMD_STAT | EW_CMD_TOP, EW_SECTION_PROCESSES, FLAG(ETWATCH_CONFIG_KERNEL_THREADS), .only = EW_ON_LINUX},
    {"exclude-pid", 0, "PID", "exclude this process, but not its descendants", WATCH | SELECT | TRACE, EW_SECTION_PROCESSES, PIDS(exclude_pids), .form = A_PID},
    {"exclude-name", 0, "NAME", "exclude processes with this name, by the rules of -n", WATCH | SELECT | TRACE, EW_SECTION_PROCESSES, LIST(exclude_names), .form = A_NAME},
    {"exclude-user", 0, "USER", "exclude the processes of a user", WATCH | SELECT, EW_SECTION_PROCESSES, USERS(exclude_users), .form = A_USER},
    {"exclude-cgroup", 0, "PATH", "exclude the processes of a cgroup and of the cgroups below it", WATCH | SELECT, EW_SECTION_PROCESSES, LIST(exclude_cgroups), .form = A_CGROUP, .only = EW_ON_LINUX},
    {"exclude-system", 0, NULL, "exclude System, Idle and Registry; on Linux kernel threads", WATCH | SELECT | TRACE, EW_SECTION_PROCESSES, FLAG(ETWATCH_CONFIG_NO_SYSTEM)},

    /* which part of a recording */
    {"from", 0, "TIME", "from this time of the recording: 2, 1.5s, 200ms, 2m", TRACE | EW_CMD_WAITS, EW_SECTION_PART, DURATION(from_ns, SECOND, 0, 9e18), .form = A_TIME},
    {"to", 0, "TIME", "up to this time of the recording", TRACE | EW_CMD_WAITS, EW_SECTION_PART, DURATION(until_ns, SECOND, 1, 9e18), .form = A_TIME ", and above 0"},
    {"provider", 0, "NAME", "events of this provider: its name or a glob of it, or its GUID", WALK, EW_SECTION_PART, LIST(providers), .form = "the name or GUID of a provider, or a glob (such as *Kernel-Process)"},
    {"event", 0, "NAME", "events with this name, or a glob of it", WALK, EW_SECTION_PART, LIST(events), .form = "the name of an event or one side of its slash (such as CSwitch), or a glob"},
    {"limit", 0, "N", "stop after N events", EW_CMD_EVENTS, EW_SECTION_PART, BIG(limit, 1, 1e18), .form = "a number of events above 0"},
    {"workers", 0, "N", "threads that read (default: one per CPU, at most 8)", TRACE | EW_CMD_WAITS, EW_SECTION_PART, COUNT(workers, 1, 64), .form = "a number of threads from 1 to 64"},

    /* what to measure */
    {"hz", 0, "N", "samples per second, 0.1 to 1000 (default 10)", WATCH | EW_CMD_EXPORT | EW_CMD_RECORD, EW_SECTION_MEASURE, NUMBER(hz, 0.1, 1000), .form = "a number from 0.1 to 1000 (samples per second, such as 100)", .standard = "10"},
    {"duration", 0, "TIME", "stop after this time: 10, 10s, 200ms, 2m", WATCH | EW_CMD_RECORD | EW_CMD_WAITS | EW_CMD_ONNX, EW_SECTION_MEASURE, DURATION(duration_ns, SECOND, MS, 1e18), .form = "a duration above 0 (such as 10, 10s, 200ms or 2m)"},
    {"metrics", 0, "LIST", "the metrics to measure: groups and names of 'etwatch metrics', or all", WATCH | EW_CMD_RECORD, EW_SECTION_MEASURE, OTHER(set_metrics), .standard = "default"},
    {"metrics", 0, NULL, "the metrics of this machine: which source has them, how exact, or why not", EW_CMD_DOCTOR, EW_SECTION_MEASURE, SWITCH(show_metrics)},
    {"rate", 0, "LIST", "limit how often gauges are read: memory=2,handles=0.5 (per second)", WATCH | EW_CMD_RECORD, EW_SECTION_MEASURE, OTHER(add_rates), .grows = true},
    {"threads", 0, NULL, "also every thread", WATCH | EW_CMD_REPORT | EW_CMD_RECORD, EW_SECTION_MEASURE, FLAG(ETWATCH_CONFIG_THREADS)},
    {"gpu", 0, NULL, "also GPUs: time and memory per process, and each device", WATCH | EW_CMD_RECORD, EW_SECTION_MEASURE, SWITCH(gpu)},
    {"gpu-trace", 0, NULL, "also every kernel and copy of CUDA programs, exactly, with the thread that launched it (Linux)", EW_CMD_RUN | EW_CMD_RECORD, EW_SECTION_MEASURE, SWITCH(gpu_trace), .only = EW_ON_LINUX},
    {"npu", 0, NULL, "also NPUs: time per process, and each device", WATCH | EW_CMD_RECORD, EW_SECTION_MEASURE, SWITCH(npu)},
    {"energy", 0, NULL, "also energy: of each meter, and an estimate per process", WATCH | EW_CMD_RECORD, EW_SECTION_MEASURE, SWITCH(energy)},
    {"dense", 0, NULL, "a sample for every interval, also of idle processes", STREAM | EW_CMD_EXPORT, EW_SECTION_MEASURE, FLAG(ETWATCH_CONFIG_DENSE)},
    {"alert", 0, "CONDITION", "report when a condition holds: 'cpu_percent>80 for 20ms'; may be repeated", WATCH | EW_CMD_RECORD, EW_SECTION_MEASURE, OTHER(add_alert), .grows = true},
    {"waits", 0, NULL, "also which thread waited for which (records every switch and wake-up)", EW_CMD_RUN, EW_SECTION_MEASURE, SWITCH(waits)},
    {"spans", 0, NULL, "also why marked stretches of work were slow (etwatch.span, etwatch/span.h)", EW_CMD_RUN | EW_CMD_SERVE, EW_SECTION_MEASURE, SWITCH(spans), .only = EW_ON_LINUX},
    {"onnx", 0, NULL, "the same for every inference of ONNX Runtime, without a change", EW_CMD_RUN | EW_CMD_SERVE, EW_SECTION_MEASURE, SWITCH(onnx)},
    {"operators", 0, NULL, "with --onnx: also each operator, by the profiling of ONNX Runtime (slows inferences down)", EW_CMD_RUN, EW_SECTION_MEASURE, SWITCH(operators), .only = EW_ON_LINUX},
    {"py-spy", 0, "FILE", "with --onnx: also sample stacks with py-spy, by inference and state of the thread, folded", EW_CMD_RUN, EW_SECTION_MEASURE, TEXT(py_spy_path), .form = A_FILE, .only = EW_ON_LINUX},
    {"wait-all", 0, NULL, "continue until the last descendant has exited", EW_CMD_RUN, EW_SECTION_MEASURE, SWITCH(wait_all)},
    {"latency", 0, "TIME", "how long samples may be held back: 20ms, 1s (default 400ms; a number without a unit is in ms)", WATCH | EW_CMD_RECORD, EW_SECTION_MEASURE, DURATION(latency_ns, MS, MS, 60 * SECOND), .form = "a duration from 1ms to 60s (such as 20ms; a number without a unit is in milliseconds)", .standard = "400ms"},
    {"source", 0, "NAME", "auto, ebpf (Linux), etw (Windows), poll, or etl for a recording (default auto)", WATCH | EW_CMD_RECORD, EW_SECTION_MEASURE, OTHER(set_source), .standard = "auto"},
    {"no-fallback", 0, NULL, "fail with exit status 3 instead of polling", WATCH | EW_CMD_RECORD, EW_SECTION_MEASURE, FLAG(ETWATCH_CONFIG_NO_FALLBACK)},
    {"budget", 0, "PERCENT", "the most of one core that etwatch may use, in per cent, or off (default 2)", WATCH | EW_CMD_RECORD, EW_SECTION_MEASURE, OTHER(set_budget), .standard = "2"},
    {"budget-profile", 0, "NAME", "a budget by name: development 50, testing 20, staging 10, production 5, critical 2 per cent", WATCH | EW_CMD_RECORD, EW_SECTION_MEASURE, OTHER(set_budget_profile)},

    /* recording */
    {"max-size", 0, "SIZE", "stop when the file has this size: 64K, 100M, 1GiB; with --ring: its memory", EW_CMD_RECORD, EW_SECTION_RECORD, SIZE(max_bytes, 1, 64 * KIB, 1e18), .form = "a size of at least 64K, such as 100M or 2GiB"},
    {"rotate", 0, "N", "with --max-size: continue in a new file, and keep the last N files", EW_CMD_RECORD, EW_SECTION_RECORD, COUNT(rotate, 1, 10000), .form = "a number of files from 1 to 10000"},
    {"ring", 0, "TIME", "keep the last TIME in memory; written at --trigger or SIGUSR1", EW_CMD_RECORD, EW_SECTION_RECORD, DURATION(ring_ns, SECOND, SECOND, 9e18), .form = "a duration of at least 1s, such as 60s or 5m"},
    {"trigger", 0, "CONDITION", "with --ring: write it when this holds, such as 'cpu_percent>90 for 1s'", EW_CMD_RECORD, EW_SECTION_RECORD, OTHER(add_trigger), .grows = true},

    /* serving */
    {"listen", 0, "ADDRESS[:PORT]", "listen here (default 127.0.0.1:9797); another address than loopback needs a token", EW_CMD_SERVE, EW_SECTION_SERVE, TEXT(serve.listen), .form = "an address, such as 127.0.0.1:9797 or [::1]:9797", .standard = "127.0.0.1:9797"},
    {"token-file", 0, "FILE", "clients need the token in this file (or in ETWATCH_TOKEN), 16 characters or more", EW_CMD_SERVE, EW_SECTION_SERVE, TEXT(serve.token_file), .form = A_FILE},
    {"cert", 0, "FILE", "with --key: serve HTTPS with this certificate (PEM)", EW_CMD_SERVE, EW_SECTION_SERVE, TEXT(serve.cert), .form = A_FILE},
    {"key", 0, "FILE", "the key of the certificate (PEM)", EW_CMD_SERVE, EW_SECTION_SERVE, TEXT(serve.key), .form = A_FILE},
    {"allow-host", 0, "NAME", "a name of this machine that clients may use; a list, may be repeated", EW_CMD_SERVE, EW_SECTION_SERVE, LIST(serve.hosts), .form = "a host name or a list of them"},
    {"prom-top", 0, "N", "the groups of processes in /metrics, in addition to \"other\" (default 30)", EW_CMD_SERVE, EW_SECTION_SERVE, COUNT(serve.prom_top, 1, 1000), .form = "a number of groups from 1 to 1000", .standard = "30"},
    {"prom-pid-label", 0, NULL, "one group per process, with the label pid, instead of one per name", EW_CMD_SERVE, EW_SECTION_SERVE, SWITCH(serve.pid_label)},
    {"no-details", 0, NULL, "no process that keeps its rights to show scheduling on demand", EW_CMD_SERVE, EW_SECTION_SERVE, SWITCH(serve.no_details)},
    {"history-size", 0, "SIZE", "memory for the history (default 96M)", EW_CMD_SERVE, EW_SECTION_SERVE, SIZE(serve.history_bytes, MIB, 4 * MIB, 65536 * MIB), .form = "a size from 4M to 64G (such as 96M; a number without a unit is in MB)", .standard = "96M"},
    {"otlp", 0, "URL", "push to this OpenTelemetry collector, such as http://127.0.0.1:4318 (also OTEL_EXPORTER_OTLP_ENDPOINT)", EW_CMD_SERVE, EW_SECTION_SERVE, TEXT(serve.otlp), .form = "an address, such as http://127.0.0.1:4318"},
    {"otlp-interval", 0, "TIME", "push every TIME, 1s to 60s (default 10s)", EW_CMD_SERVE, EW_SECTION_SERVE, DURATION(serve.otlp_interval_ns, SECOND, SECOND, 60 * SECOND), .form = "a duration from 1s to 60s", .standard = "10s"},
    {"otlp-queue", 0, "SIZE", "memory for exports that wait for the collector (default 16M)", EW_CMD_SERVE, EW_SECTION_SERVE, SIZE(serve.otlp_queue_bytes, MIB, 65536, 4096 * MIB), .form = "a size from 64K to 4G (a number without a unit is in MB)", .standard = "16M"},
    {"store", 0, "DIR", "keep the history of days in a database in this folder", EW_CMD_SERVE, EW_SECTION_SERVE, TEXT(serve.store), .form = "a folder"},
    {"store-keep", 0, "TIME", "how long, such as 720h (default 30 days; 10 s detail for 2 days)", EW_CMD_SERVE, EW_SECTION_SERVE, DURATION(serve.store_keep_ns, SECOND, 3600 * SECOND, 1e18), .form = "a duration of at least 1h, such as 720h", .standard = "720h"},
    {"store-size", 0, "SIZE", "the largest size of the database (default 1024M)", EW_CMD_SERVE, EW_SECTION_SERVE, SIZE(serve.store_bytes, MIB, 4 * MIB, 1048576 * MIB), .form = "a size from 4M to 1024G (a number without a unit is in MB)", .standard = "1024M"},

    /* output */
    {"output", 'o', "FILE", "write the data to FILE instead of standard output", STREAM | TRACE | EW_CMD_RECORD | EW_CMD_SESSIONS | EW_CMD_WAITS | EW_CMD_ONNX | EW_CMD_COMPARE, EW_SECTION_OUTPUT, TEXT(output_path), .form = A_FILE},
    {"max-memory", 0, "SIZE", "the most memory that etwatch may use (default 1GiB): 64M, 2GiB", WATCH | TRACE | EW_CMD_RECORD | EW_CMD_WAITS | EW_CMD_ONNX, EW_SECTION_MEASURE, SIZE(max_memory, 1, 1024 * KIB, 1e18), .form = "a size of at least 1M, such as 64M or 2GiB", .standard = "1GiB"},
    {"mode", 0, "MODE", "access rights of new files, in octal (default 600); Linux", STREAM | TRACE | EW_CMD_RECORD | EW_CMD_SESSIONS | EW_CMD_WAITS | EW_CMD_ONNX | EW_CMD_COMPARE, EW_SECTION_OUTPUT, OTHER(set_mode), .standard = "600", .only = EW_ON_LINUX},
    {"json", 0, NULL, "JSON Lines", STREAM | EW_CMD_RECORD | EW_CMD_DOCTOR | EW_CMD_REPORT | EW_CMD_EVENTS | EW_CMD_SESSIONS | EW_CMD_METRICS | EW_CMD_WAITS | EW_CMD_ONNX | EW_CMD_COMPARE, EW_SECTION_OUTPUT, SWITCH(json)},
    {"csv", 0, NULL, "CSV with one header line", STREAM | EW_CMD_ONNX | EW_CMD_REPORT | EW_CMD_SESSIONS | EW_CMD_METRICS, EW_SECTION_OUTPUT, SWITCH(csv)},
    {"csv-raw", 0, NULL, "CSV: texts unchanged, even if a terminal or a spreadsheet would act on them", STREAM | EW_CMD_REPORT | EW_CMD_EXPORT, EW_SECTION_OUTPUT, SWITCH(csv_raw)},
    {"format", 'f', "FORMAT", "perfetto, arrow, csv, jsonl, folded, speedscope or chrome", EW_CMD_EXPORT, EW_SECTION_OUTPUT, OTHER(set_format)},
    {"table", 0, "NAME", "csv, jsonl, arrow: events (default), samples, thread_samples, processes, threads, classes, images", EW_CMD_EXPORT, EW_SECTION_OUTPUT, OTHER(set_table)},
    {"fields", 0, NULL, "csv, arrow: the fields of events as JSON in one column", EW_CMD_EXPORT, EW_SECTION_OUTPUT, SWITCH(export.fields)},
    {"typed", 0, NULL, "csv, jsonl, arrow: one column per field of the events; for few kinds of events", EW_CMD_EXPORT, EW_SECTION_OUTPUT, SWITCH(export.typed)},
    {"timestamps", 0, NULL, "arrow: times as timestamps instead of numbers", EW_CMD_EXPORT, EW_SECTION_OUTPUT, SWITCH(export.timestamps)},
    {"columns", 0, "LIST", "table, csv: only these columns", EW_CMD_STAT, EW_SECTION_OUTPUT, LIST(columns), .form = "a list of names (such as pid,name,cpu_percent)"},
    {"top", 0, "N", "per interval only the N processes with the most CPU; the others as one sum", STREAM, EW_SECTION_OUTPUT, COUNT(top_n, 1, 65536), .form = "a number of processes from 1 to 65536"},
    {"top-by", 0, "METRIC", "the metric that --top compares (default cpu_percent)", STREAM, EW_SECTION_OUTPUT, OTHER(set_top_by), .standard = "cpu_percent"},
    {"window", 0, "TIME", "instead of samples: average, maximum, p95 and p99 over windows of 10s, 2m, …", EW_CMD_STAT, EW_SECTION_OUTPUT, DURATION(window_ns, SECOND, 10 * MS, 86400 * SECOND), .form = "a duration from 10ms to one day (such as 10, 10s or 2m)"},
    {"aggregate", 0, "LIST", "with --window: also of these metrics (groups and names)", EW_CMD_STAT, EW_SECTION_OUTPUT, OTHER(add_aggregates), .grows = true},
    {"last-samples", 0, "N", "only the last N samples, written at the end", EW_CMD_STAT, EW_SECTION_OUTPUT, COUNT(last_samples, 1, 10000000), .form = "a number of samples from 1 to 10000000"},
    {"events", 0, NULL, "json: also every switch, wake-up, fork, exec and exit", STREAM, EW_SECTION_OUTPUT, FLAG(ETWATCH_CONFIG_EVENTS)},
    {"system-stats", 0, NULL, "json: also the whole machine, once per second", EW_CMD_STAT, EW_SECTION_OUTPUT, SWITCH(system_stats)},
    {"count-by-type", 0, NULL, "the number of events of each type instead of the events", EW_CMD_EVENTS, EW_SECTION_OUTPUT, SWITCH(count_by_type)},
    {"payload", 0, NULL, "also the payload in hexadecimal", WALK, EW_SECTION_OUTPUT, SWITCH(payload)},
    {"images", 0, NULL, "also program files and libraries", EW_CMD_REPORT, EW_SECTION_OUTPUT, SWITCH(images)},
    {"cmdline", 0, NULL, "also command lines; common secrets are masked", STREAM | TRACE | EW_CMD_RECORD | EW_CMD_SERVE, EW_SECTION_OUTPUT, FLAG(ETWATCH_CONFIG_CMDLINE)},

    /* ETW sessions */
    {"session", 0, "NAME", "read this existing session and change nothing", WATCH, EW_SECTION_ETW, TEXT(etw.session), .form = "the name of a session (see: etwatch sessions)", .only = EW_ON_WINDOWS},
    {"session-name", 0, "NAME", "the name of the session to create: etwatch-NAME", SESSION, EW_SECTION_ETW, TEXT(etw.name), .form = "a name, such as inference", .only = EW_ON_WINDOWS},
    {"kernel", 0, "LIST", "kinds of kernel events: process,thread,image,cswitch,disk,…", SESSION, EW_SECTION_ETW, OTHER(set_kernel), .only = EW_ON_WINDOWS},
    {"stacks", 0, "LIST", "the kinds of kernel events that have a stack", SESSION, EW_SECTION_ETW, OTHER(set_stacks), .only = EW_ON_WINDOWS},
    {"cpu-sample-hz", 0, "N", "also CPU samples, N per second", SESSION, EW_SECTION_ETW, COUNT(etw.cpu_sample_hz, 1, 8000), .form = "a number of samples per second from 1 to 8000", .only = EW_ON_WINDOWS},
    {"enable-provider", 0, "SPEC", "also events of NAME|GUID[:LEVEL[:KEYWORDS]][:pid=LIST][:id=LIST]", SESSION, EW_SECTION_ETW, OTHER(add_enabled_provider), .grows = true, .only = EW_ON_WINDOWS},
    {"buffer-size", 0, "SIZE", "the size of a buffer, 4K to 16M (default 64K; a number without a unit is in KB)", SESSION, EW_SECTION_ETW, SIZE(etw.buffer_bytes, KIB, 4 * KIB, 16 * MIB), .form = "a size from 4K to 16M (such as 64K; a number without a unit is in KB)", .only = EW_ON_WINDOWS},
    {"min-buffers", 0, "N", "the number of buffers at the start (default: eight per CPU)", SESSION, EW_SECTION_ETW, COUNT(etw.min_buffers, 2, 65536), .form = "a number of buffers from 2 to 65536", .only = EW_ON_WINDOWS},
    {"max-buffers", 0, "N", "the largest number of buffers (default: sixteen per CPU, at least 64)", SESSION, EW_SECTION_ETW, COUNT(etw.max_buffers, 2, 65536), .form = "a number of buffers from 2 to 65536", .only = EW_ON_WINDOWS},
    {"buffer-memory", 0, "SIZE", "the memory of the default buffers (default 64M; a number without a unit is in MB)", SESSION, EW_SECTION_ETW, SIZE(etw.memory_bytes, MIB, MIB, 65536 * MIB), .form = "a size from 1M to 64G (such as 64M; a number without a unit is in MB)", .only = EW_ON_WINDOWS},
    {"flush-interval", 0, "TIME", "how long events may stay in a buffer (default 100ms; a number without a unit is in ms)", WATCH, EW_SECTION_ETW, DURATION(etw.flush_ns, MS, MS, 60 * SECOND), .form = "a duration from 1ms to 60s (such as 100ms; a number without a unit is in milliseconds)", .only = EW_ON_WINDOWS},
    {"elevate", 0, NULL, "request the rights of an administrator first (a command of run or record gets them too)", SESSION | EW_CMD_WAITS | EW_CMD_SESSIONS | EW_CMD_SERVICE | EW_CMD_DOCTOR, EW_SECTION_ETW, SWITCH(elevate), .no_key = true, .only = EW_ON_WINDOWS},
    {"cleanup", 0, NULL, "stop the sessions that etwatch left behind", EW_CMD_SESSIONS, EW_SECTION_ETW, SWITCH(cleanup), .no_key = true, .only = EW_ON_WINDOWS},

    /* general */
    {"check", 0, "FILE", "check a configuration file: print the first error with its place", EW_CMD_CONFIG, EW_SECTION_GENERAL, OTHER(set_check), .no_key = true},
    {"show", 0, NULL, "print the effective configuration, and where each value comes from", EW_CMD_CONFIG, EW_SECTION_GENERAL, SWITCH(show), .no_key = true},
    {"config", 0, "FILE", "read options from FILE: lines of `name = value`", READS_FILE, EW_SECTION_GENERAL, TEXT(config_path), .form = A_FILE, .no_key = true},
    {"proc-root", 0, "DIR", "read this directory instead of /proc (for tests)", WATCH | EW_CMD_DOCTOR | EW_CMD_RECORD, EW_SECTION_GENERAL, TEXT(proc_root), .form = "a directory", .only = EW_ON_LINUX},
    {"sys-root", 0, "DIR", "read this directory instead of /sys (for tests)", WATCH | EW_CMD_DOCTOR | EW_CMD_RECORD, EW_SECTION_GENERAL, TEXT(sys_root), .form = "a directory", .only = EW_ON_LINUX},
    {"nvml-library", 0, "FILE", "the library of the NVIDIA driver (default: where the driver installs it)", WATCH | EW_CMD_DOCTOR | EW_CMD_RECORD, EW_SECTION_GENERAL, TEXT(nvml_library), .form = A_FILE},
    {"amdsmi-library", 0, "FILE", "with --energy: also the energy counters of AMD GPUs, through this library of ROCm (libamd_smi.so)", WATCH | EW_CMD_DOCTOR | EW_CMD_RECORD, EW_SECTION_GENERAL, TEXT(amdsmi_library), .form = A_FILE, .only = EW_ON_LINUX},
    {"quiet", 'q', NULL, "only errors on standard error", EVERY, EW_SECTION_GENERAL, SWITCH(quiet)},
    {"help", 'h', NULL, "show this text", EVERY, EW_SECTION_GENERAL, SWITCH(help), .no_key = true},
    {"version", 0, NULL, "show the version", EVERY, EW_SECTION_GENERAL, SWITCH(version), .no_key = true},
};

/* Options that had another name before 0.1.0. */
static const struct {
    const char *old, *name;
    uint32_t commands; /* where it was renamed */
} renamed[] = {
    {"max-processes", "top", EVERY},
    {"by", "top-by", EVERY},
    {"system", "system-stats", EVERY},
    {"no-system", "exclude-system", EVERY},
    {"profile", "budget-profile", EVERY},
    {"profile-hz", "cpu-sample-hz", EVERY},
    {"provider", "enable-provider", SESSION},
    {"uid", "user", EVERY},
    {"exclude-uid", "exclude-user", EVERY},
    {"keep", "last-samples", EVERY},
    {"raw", "payload", EVERY},
    {"count", "count-by-type", EVERY},
    {"flush", "flush-interval", EVERY},
};
/* clang-format on */

const struct ew_option *ew_option_at(size_t i)
{
    return i < sizeof table / sizeof table[0] ? &table[i] : NULL;
}

static bool is_name(const char *name, const char *text, size_t len)
{
    return strlen(name) == len && memcmp(name, text, len) == 0;
}

const struct ew_option *ew_option_find(const char *name, size_t len, enum ew_command command)
{
    const struct ew_option *found = NULL;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (!is_name(table[i].name, name, len))
            continue;
        if ((table[i].commands & command) != 0)
            return &table[i];
        if (found == NULL)
            found = &table[i];
    }
    return found;
}

const struct ew_option *ew_option_find_letter(char letter)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].letter != 0 && table[i].letter == letter)
            return &table[i];
    return NULL;
}

const char *ew_option_renamed(const char *name, size_t len, enum ew_command command)
{
    for (size_t i = 0; i < sizeof renamed / sizeof renamed[0]; i++)
        if (is_name(renamed[i].old, name, len) && (renamed[i].commands & command) != 0)
            return renamed[i].name;
    return NULL;
}

bool ew_option_grows(const struct ew_option *option)
{
    return option->grows || option->type == EW_OPTION_LIST || option->type == EW_OPTION_PIDS ||
           option->type == EW_OPTION_USERS;
}

static int add_origin(struct ew_parser *p, const struct ew_option *option, const char *value)
{
    struct ew_options *o = p->options;
    struct ew_origin *grown =
        ew_realloc_array(o->origins, (size_t)o->origin_count + 1, sizeof *grown);
    if (grown == NULL)
        return ETWATCH_ENOMEM;
    o->origins = grown;
    struct ew_origin *origin = &grown[o->origin_count];
    *origin = (struct ew_origin){.option = option->name, .value = NULL};
    origin->value = ew_strdup(value == NULL ? "true" : value);
    origin->where = ew_strdup(p->where);
    if (origin->value == NULL || origin->where == NULL) {
        ew_free(origin->value);
        ew_free(origin->where);
        return ETWATCH_ENOMEM;
    }
    o->origin_count++;
    return 0;
}

int ew_option_apply(struct ew_parser *p, const struct ew_option *option, const char *shown,
                    const char *value)
{
    if (p->options->command == EW_CMD_CONFIG && add_origin(p, option, value) < 0)
        return ew_parser_fail(p, "out of memory");
    switch (option->type) {
    case EW_OPTION_SWITCH:
        *(bool *)member_of(p, option) = value == NULL;
        return 0;
    case EW_OPTION_FLAG:
        if (value == NULL)
            p->options->config_flags |= option->flag;
        else
            p->options->config_flags &= ~option->flag;
        return 0;
    case EW_OPTION_NUMBER:
        return set_number(p, option, shown, value);
    case EW_OPTION_COUNT:
        return set_count(p, option, shown, value);
    case EW_OPTION_BIG:
    case EW_OPTION_DURATION:
    case EW_OPTION_SIZE:
        return set_u64(p, option, shown, value);
    case EW_OPTION_TEXT:
        return set_text(p, shown, value, option->form, member_of(p, option));
    case EW_OPTION_LIST:
        return add_words(p, shown, value, option->form, member_of(p, option));
    case EW_OPTION_PIDS:
        return add_pids(p, option, shown, value);
    case EW_OPTION_USERS:
        return add_users(p, option, shown, value);
    default:
        return option->set(p, shown, value);
    }
}
