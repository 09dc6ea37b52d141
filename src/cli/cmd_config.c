/* SPDX-License-Identifier: MIT */
/*
 * config: whether a file is right, and what is in force. What --show prints is itself a
 * configuration file; behind each value stands where it comes from.
 */
#include "cli/commands.h"

#include <string.h>

#include <etwatch/metrics.h>

#include "base/buf.h"
#include "cli/args/parser.h"
#include "cli/output.h"
#include "cli/watch_run.h"

/* What is so if nobody says anything; others are not set. */
static const struct {
    const char *name, *value;
} defaults[] = {
    {"hz", "10"},    {"latency", "400"},     {"source", "auto"},
    {"budget", "2"}, {"metrics", "default"}, {"by", "cpu_percent"},
};

static bool adds_up(const char *name)
{
    static const char *const lists[] = {
        "pid",         "name",         "uid",         "cgroup",       "container",      "aggregate",
        "exclude-pid", "exclude-name", "exclude-uid", "columns",      "exclude-cgroup", "alert",
        "provider",    "event",        "rate",        "etw-provider", "trigger",
    };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        if (strcmp(lists[i], name) == 0)
            return true;
    return false;
}

static bool is_setting(const struct ew_option_info *info)
{
    static const char *const others[] = {"config", "help", "version", "check", "show", "cleanup"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(others[i], info->name) == 0)
            return false;
    const uint32_t reads_files = EW_CMD_RUN | EW_CMD_STAT | EW_CMD_TOP | EW_CMD_RECORD |
                                 EW_CMD_REPORT | EW_CMD_EVENTS | EW_CMD_EXPORT | EW_CMD_WAITS;
    /* One that means something else for other commands is told once. */
    return (info->commands & reads_files) != 0 &&
           info == ew_option_find(info->name, strlen(info->name), EW_CMD_CONFIG);
}

static void put_line(struct ew_buf *out, const char *name, const char *value, const char *from,
                     const char *from_more)
{
    ew_buf_text(out, name);
    ew_buf_text(out, " = ");
    ew_buf_text(out, value);
    ew_buf_text(out, "    # ");
    ew_buf_text(out, from);
    ew_buf_text(out, from_more);
    ew_buf_char(out, '\n');
}

static void put_given(struct ew_buf *out, const struct ew_origin *origin)
{
    char where[256] = "";
    size_t len = strlen(origin->where);
    len = len < 2 ? 0 : len - 2 < sizeof where ? len - 2 : sizeof where - 1; /* without ": " */
    memcpy(where, origin->where, len);
    where[len] = '\0';
    put_line(out, origin->option, origin->value, len == 0 ? "command line" : "file ", where);
}

/* A profile is a budget; one that is given by itself wins. */
static bool put_profile(struct ew_buf *out, const struct ew_options *options)
{
    const char *profile = NULL;
    char percent[32];
    for (uint32_t i = 0; i < options->origin_count; i++) {
        if (strcmp(options->origins[i].option, "budget") == 0)
            return false;
        if (strcmp(options->origins[i].option, "profile") == 0)
            profile = options->origins[i].value;
    }
    if (profile == NULL)
        return false;
    *ew_raw_u64(percent, (uint64_t)options->profile_percent) = '\0';
    put_line(out, "budget", percent, "profile ", profile);
    return true;
}

static void put_option(struct ew_buf *out, const struct ew_options *options,
                       const struct ew_option_info *info)
{
    const struct ew_origin *last = NULL;
    for (uint32_t i = 0; i < options->origin_count; i++) {
        if (strcmp(options->origins[i].option, info->name) != 0)
            continue;
        if (adds_up(info->name))
            put_given(out, &options->origins[i]);
        last = &options->origins[i];
    }
    if (last != NULL) {
        if (!adds_up(info->name))
            put_given(out, last);
        return;
    }
    if (strcmp(info->name, "budget") == 0 && put_profile(out, options))
        return;
    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++)
        if (strcmp(defaults[i].name, info->name) == 0) {
            put_line(out, info->name, defaults[i].value, "default", "");
            return;
        }
    if (info->value == NULL) {
        put_line(out, info->name, "false", "default", "");
        return;
    }
    ew_buf_text(out, "# ");
    ew_buf_text(out, info->name);
    ew_buf_text(out, " is not set\n");
}

/* What a file says of one metric, if anything. */
static void put_section(struct ew_buf *out, const struct ew_options *options, uint32_t metric)
{
    static const char *const words[] = {"avg", "max", "p95", "p99"};
    const char *separator = "aggregation = ";
    struct etwatch_metric_info info = {.size = sizeof info};
    uint32_t wanted = options->aggregation[metric];
    bool polled = etwatch_metric_set_has(&options->polled_metrics, metric);
    if ((wanted == 0 && !polled) || etwatch_metric_info(metric, &info) != 0)
        return;
    ew_buf_text(out, "[");
    ew_buf_text(out, metric == ETWATCH_M_cpu_percent ? "cpu"
                     : metric == ETWATCH_M_rss_bytes ? "memory"
                                                     : info.name);
    ew_buf_text(out, "]\n");
    if (polled)
        ew_buf_text(out, "backend = poll    # file\n");
    if (wanted == 0)
        return;
    for (uint32_t i = 0; i < 4; i++) {
        if ((wanted >> i & 1) == 0)
            continue;
        ew_buf_text(out, separator);
        ew_buf_text(out, words[i]);
        separator = ",";
    }
    ew_buf_text(out, "    # file\n");
}

static int show(const struct ew_options *options)
{
    struct ew_output output;
    struct ew_buf out;
    (void)ew_output_open(&output, NULL);
    ew_buf_init(&out, 0, ew_output_write, &output);
    for (size_t i = 0; ew_option_info(i) != NULL; i++)
        if (is_setting(ew_option_info(i)))
            put_option(&out, options, ew_option_info(i));
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++)
        put_section(&out, options, i);
    int rc = ew_buf_flush(&out);
    ew_buf_done(&out);
    if (rc == 0 || ew_output_reader_gone(&output))
        return EW_EXIT_OK;
    ew_complain("cannot write to standard output");
    return EW_EXIT_FAILED;
}

/* A file that is wrong was refused before this. */
int ew_cmd_config(const struct ew_options *options)
{
    if (options->show)
        return show(options);
    ew_say(options, "%s: right, %u setting%s", options->config_path, options->settings,
           options->settings == 1 ? "" : "s");
    return EW_EXIT_OK;
}
