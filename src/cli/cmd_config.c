/* SPDX-License-Identifier: MIT */
/*
 * config: checks a configuration file, or prints the effective configuration. The output of --show
 * is itself a configuration file; a comment after each value says where it comes from.
 */
#include "cli/cli.h"

#include <string.h>

#include <etwatch/metrics.h>

static bool is_setting(const struct ew_option *option)
{
    const uint32_t reads_files = EW_CMD_RUN | EW_CMD_STAT | EW_CMD_TOP | EW_CMD_RECORD |
                                 EW_CMD_REPORT | EW_CMD_EVENTS | EW_CMD_EXPORT | EW_CMD_WAITS;
    /* Of two options with the same name only the first is a key. */
    return !option->no_key && (option->commands & reads_files) != 0 &&
           option == ew_option_find(option->name, strlen(option->name), EW_CMD_CONFIG);
}

static void put_line(struct ew_buf *out, const char *name, const char *value, const char *origin,
                     const char *detail)
{
    ew_buf_text(out, name);
    ew_buf_text(out, " = ");
    ew_buf_text(out, value);
    ew_buf_text(out, "    # ");
    ew_buf_text(out, origin);
    ew_buf_text(out, detail);
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

/* A budget profile sets the budget, unless that is given by itself. */
static bool put_profile(struct ew_buf *out, const struct ew_options *options)
{
    const char *profile = NULL;
    char percent[32];
    for (uint32_t i = 0; i < options->origin_count; i++) {
        if (strcmp(options->origins[i].option, "budget") == 0)
            return false;
        if (strcmp(options->origins[i].option, "budget-profile") == 0)
            profile = options->origins[i].value;
    }
    if (profile == NULL)
        return false;
    *ew_raw_u64(percent, (uint64_t)options->profile_percent) = '\0';
    put_line(out, "budget", percent, "budget-profile ", profile);
    return true;
}

static void put_option(struct ew_buf *out, const struct ew_options *options,
                       const struct ew_option *option)
{
    const struct ew_origin *last = NULL;
    bool grows = ew_option_grows(option);
    for (uint32_t i = 0; i < options->origin_count; i++) {
        if (strcmp(options->origins[i].option, option->name) != 0)
            continue;
        if (grows)
            put_given(out, &options->origins[i]);
        last = &options->origins[i];
    }
    if (last != NULL) {
        if (!grows)
            put_given(out, last);
        return;
    }
    if (strcmp(option->name, "budget") == 0 && put_profile(out, options))
        return;
    if (option->standard != NULL || option->value == NULL) {
        put_line(out, option->name, option->value == NULL ? "false" : option->standard, "default",
                 "");
        return;
    }
    ew_buf_text(out, "# ");
    ew_buf_text(out, option->name);
    ew_buf_text(out, " is not set\n");
}

/* The section of one metric, if a file has one. */
static void put_section(struct ew_buf *out, const struct ew_options *options, uint32_t metric)
{
    static const char *const words[] = {"avg", "max", "p95", "p99"};
    const char *separator = "aggregation = ";
    struct etwatch_metric_info info = {.size = sizeof info};
    uint32_t values = options->aggregation[metric];
    bool polled = etwatch_metric_set_has(&options->polled_metrics, metric);
    if ((values == 0 && !polled) || etwatch_metric_info(metric, &info) != 0)
        return;
    ew_buf_text(out, "[");
    ew_buf_text(out, metric == ETWATCH_M_cpu_percent ? "cpu"
                     : metric == ETWATCH_M_rss_bytes ? "memory"
                                                     : info.name);
    ew_buf_text(out, "]\n");
    if (polled)
        ew_buf_text(out, "backend = poll    # file\n");
    if (values == 0)
        return;
    for (uint32_t i = 0; i < 4; i++) {
        if ((values >> i & 1) == 0)
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
    ew_output_init(&output, -1, NULL);
    ew_buf_init(&out, 0, ew_output_write, &output);
    for (size_t i = 0; ew_option_at(i) != NULL; i++)
        if (is_setting(ew_option_at(i)))
            put_option(&out, options, ew_option_at(i));
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++)
        put_section(&out, options, i);
    int rc = ew_buf_flush(&out);
    ew_buf_done(&out);
    if (rc == 0 || ew_output_reader_gone(&output))
        return EW_EXIT_OK;
    return ew_print_write_error(NULL, output.os_error);
}

/* The parser has already rejected a file with errors. */
int ew_cmd_config(const struct ew_options *options)
{
    if (options->show)
        return show(options);
    ew_print_info(options, "%s: no errors, %u setting%s", options->config_path, options->settings,
                  options->settings == 1 ? "" : "s");
    return EW_EXIT_OK;
}
