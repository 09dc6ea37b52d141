/* SPDX-License-Identifier: MIT */
/*
 * The keys of a configuration file. The name of an option is the key of that option; a key of a
 * section is another spelling of an option (memory.rate = 2 is --rate memory=2), except for the few
 * that only a file has (backend and aggregation of a group).
 */

#include <stdio.h>
#include <string.h>

#include <etwatch/metrics.h>
#include <etwatch/window.h>

#include "cli/args/args.h"

#define RING_SAMPLES "10000" /* the default size of a ring */

/* Keys of sections. */
static const char *const names[] = {
    "GROUP.rate",      "GROUP.backend",           "GROUP.aggregation",
    "storage.type",    "storage.samples",         "storage.max-samples",
    "storage.persist", "storage.persist-to-disk", "overhead-limit",
};

/* The metrics of a section: a group or one metric. The reader of the file has replaced '_' by '-'.
 */
static int metrics_of(const char *section, struct etwatch_metric_set *ret_metrics)
{
    char name[EW_CONFIG_KEY_SIZE];
    (void)snprintf(name, sizeof name, "%s", section);
    for (char *at = name; *at != '\0'; at++)
        *at = *at == '-' ? '_' : *at;
    *ret_metrics = (struct etwatch_metric_set){{0}};
    return etwatch_metrics_named(name, ret_metrics);
}

bool ew_args_config_section_known(const char *section)
{
    struct etwatch_metric_set metrics;
    return strcmp(section, "storage") == 0 ||
           (strcmp(section, "all") != 0 && strcmp(section, "default") != 0 &&
            metrics_of(section, &metrics) != ETWATCH_EINVAL);
}

/* Splits "memory.rate" into its group and "GROUP.rate"; false if it has no group. */
static bool split_group(const char *key, char *group, size_t group_size, char *name, size_t size)
{
    const char *dot = strchr(key, '.');
    if (dot == NULL || (size_t)(dot - key) >= group_size)
        return false;
    memcpy(group, key, (size_t)(dot - key));
    group[dot - key] = '\0';
    (void)snprintf(name, size, "GROUP%s", dot);
    return strcmp(group, "storage") != 0 && ew_args_config_section_known(group);
}

static bool is_own_key(const char *key)
{
    char group[EW_CONFIG_KEY_SIZE], name[EW_CONFIG_KEY_SIZE + 8];
    const char *wanted = split_group(key, group, sizeof group, name, sizeof name) ? name : key;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], wanted) == 0)
            return true;
    return false;
}

static const struct ew_option *option_of(const struct ew_parser *p, const char *key)
{
    const struct ew_option *option = ew_option_find(key, strlen(key), p->options->command);
    return option == NULL || option->no_key ? NULL : option;
}

int ew_args_config_key_check(struct ew_parser *p, const char *key)
{
    if (is_own_key(key) || option_of(p, key) != NULL)
        return 0;
    if (strchr(key, '.') != NULL)
        return ew_parser_fail(p,
                              "unknown key \"%s\"; a group of metrics has rate, backend and "
                              "aggregation, storage has type, samples and persist",
                              key);
    const char *now = ew_option_renamed(key, strlen(key), p->options->command);
    if (now != NULL)
        return ew_parser_fail(p, "unknown option \"%s\": it is called \"%s\" now", key, now);
    return ew_parser_fail(p,
                          "unknown option \"%s\"; use the long names of options, such as "
                          "\"hz = 100\"",
                          key);
}

/* -------------------------------------------------------------------- options */

static int apply_switch(struct ew_parser *p, const struct ew_option *option, const char *value)
{
    static const char *const yes[] = {"true", "yes", "on", "1"};
    static const char *const no[] = {"false", "no", "off", "0"};
    for (size_t i = 0; i < 4; i++) {
        if (strcmp(value, yes[i]) == 0)
            return ew_option_apply(p, option, option->name, NULL);
        if (strcmp(value, no[i]) == 0)
            return ew_option_apply(p, option, option->name, "false");
    }
    return ew_parser_fail(p, "%s needs true or false, not \"%s\"", option->name, value);
}

/* shown: the key in the file. */
static int apply_option(struct ew_parser *p, const char *name, const char *shown, const char *value)
{
    const struct ew_option *option = option_of(p, name);
    if (option == NULL)
        return ew_args_config_key_check(p, name);
    if (value[0] == '\0')
        return ew_parser_fail(p, "%s needs a value: %s = %s", shown, shown,
                              option->value != NULL ? option->value : "true");
    bool belongs = (option->commands & p->options->command) != 0;
    if (!belongs && p->options->command != EW_CMD_CONFIG)
        return 0;
    return option->value == NULL ? apply_switch(p, option, value)
                                 : ew_option_apply(p, option, shown, value);
}

/* -------------------------------------------------------------------- sections */

static int apply_rate(struct ew_parser *p, const char *key, const char *group, const char *value)
{
    char rate[128];
    double hz = 0;
    if (!ew_value_number(value, &hz) || hz < 0.01 || hz > 1000)
        return ew_parser_fail(p, "%s needs a number from 0.01 to 1000 (per second), not \"%s\"",
                              key, value);
    if (strcmp(group, "cpu") == 0)
        return apply_option(p, "hz", key, value);
    (void)snprintf(rate, sizeof rate, "%s=%.60s", group, value);
    for (char *at = rate; *at != '='; at++)
        *at = *at == '-' ? '_' : *at;
    return apply_option(p, "rate", key, rate);
}

/*
 * Counters have one source, so all groups must name the same one. Gauges of memory, threads and
 * handles may be polled next to it.
 */
static int apply_backend(struct ew_parser *p, const char *key, const char *group, const char *value)
{
    uint32_t before = p->options->source;
    struct etwatch_metric_set polled, pollable;
    (void)metrics_of(group, &polled);
    etwatch_metrics_pollable(&pollable);
    etwatch_metric_set_intersect(&polled, &pollable);
    if (strcmp(value, "auto") == 0)
        return 0;
    if (strcmp(value, "poll") == 0 && !etwatch_metric_set_is_empty(&polled) &&
        strcmp(group, "io") != 0) {
        etwatch_metric_set_union(&p->options->polled_metrics, &polled);
        return 0;
    }
    int rc = apply_option(p, "source", key, value);
    if (rc == 0 && before != 0 && p->options->source != before)
        rc =
            ew_parser_fail(p,
                           "%s must have the same source as the other groups, which is %s already: "
                           "only memory, threads and handles can be polled in addition",
                           group, etwatch_source_name(before));
    return rc;
}

static int read_aggregation(struct ew_parser *p, const char *key, const char *value,
                            uint32_t *ret_values)
{
    static const char *const words[] = {"avg", "max", "p95", "p99"};
    uint32_t values = 0;
    for (const char *at = value;;) {
        size_t len = strcspn(at, ","), i = 0, blanks = strspn(at, " ");
        size_t word = len > blanks ? len - blanks : 0;
        while (i < 4 && !(word == 3 && memcmp(at + blanks, words[i], 3) == 0))
            i++;
        if (i == 4)
            return ew_parser_fail(p, "%s needs a list of avg, max, p95 and p99, not \"%s\"", key,
                                  value);
        values |= 1u << i; /* enum etwatch_window_value */
        if (at[len] == '\0')
            break;
        at += len + 1;
    }
    *ret_values = values;
    return 0;
}

/* cpu and memory have one metric each that a window always has; any other group is added to it. */
static bool is_aggregated(const char *group, const struct etwatch_metric_set *metrics,
                          uint32_t metric)
{
    struct etwatch_metric_info info = {.size = sizeof info};
    if (strcmp(group, "cpu") == 0)
        return metric == ETWATCH_M_cpu_percent;
    if (strcmp(group, "memory") == 0)
        return metric == ETWATCH_M_rss_bytes;
    return etwatch_metric_set_has(metrics, metric) && etwatch_metric_info(metric, &info) == 0 &&
           info.has_average != 0;
}

static int apply_aggregation(struct ew_parser *p, const char *key, const char *group,
                             const char *value)
{
    struct etwatch_metric_set metrics;
    uint32_t values = 0, count = 0;
    if (metrics_of(group, &metrics) == ETWATCH_ENOTSUP)
        return ew_fail_not_measured(p, key, group);
    int rc = read_aggregation(p, key, value, &values);
    for (uint32_t i = 0; rc == 0 && i < ETWATCH_METRIC_COUNT; i++) {
        if (!is_aggregated(group, &metrics, i))
            continue;
        p->options->aggregation[i] = (uint8_t)values;
        count++;
    }
    return rc == 0 && count == 0
               ? ew_parser_fail(p, "an average of %s is meaningless: remove %s", group, key)
               : rc;
}

/* A ring has a number of samples, a stream has none. */
static int apply_storage_type(struct ew_parser *p, const char *key, const char *value)
{
    bool ring = strcmp(value, "ring") == 0 || strcmp(value, "circular-buffer") == 0 ||
                strcmp(value, "circular_buffer") == 0;
    if (!ring && strcmp(value, "stream") != 0)
        return ew_parser_fail(p, "%s needs ring or stream, not \"%s\"", key, value);
    if (!ring && p->storage_has_samples)
        return ew_parser_fail(
            p, "a stream keeps no samples: remove storage.samples, or set %s = ring", key);
    p->storage_is_stream = !ring;
    return ring && !p->storage_has_samples ? apply_option(p, "last-samples", key, RING_SAMPLES) : 0;
}

static int apply_storage(struct ew_parser *p, const char *key, const char *name, const char *value)
{
    bool yes = strcmp(value, "true") == 0 || strcmp(value, "yes") == 0;
    bool no = strcmp(value, "false") == 0 || strcmp(value, "no") == 0;
    if (strcmp(name, "type") == 0)
        return apply_storage_type(p, key, value);
    if (strcmp(name, "samples") == 0 || strcmp(name, "max-samples") == 0) {
        if (p->storage_is_stream)
            return ew_parser_fail(p, "%s is for storage.type = ring: a stream keeps no samples",
                                  key);
        p->storage_has_samples = true;
        return apply_option(p, "last-samples", key, value);
    }
    if (no)
        return 0;
    if (yes)
        return ew_parser_fail(p, "%s needs the name of a file, or false", key);
    return apply_option(p, "output", key, value);
}

static int apply_key(struct ew_parser *p, const char *key, const char *value)
{
    char group[EW_CONFIG_KEY_SIZE], name[EW_CONFIG_KEY_SIZE + 8];
    if (strcmp(key, "overhead-limit") == 0)
        return apply_option(p, "budget", key, value);
    if (split_group(key, group, sizeof group, name, sizeof name)) {
        if (strcmp(name, "GROUP.rate") == 0)
            return apply_rate(p, key, group, value);
        if (strcmp(name, "GROUP.backend") == 0)
            return apply_backend(p, key, group, value);
        return apply_aggregation(p, key, group, value);
    }
    if (strncmp(key, "storage.", 8) == 0)
        return apply_storage(p, key, key + 8, value);
    return apply_option(p, key, key, value);
}

int ew_args_config_key_apply(struct ew_parser *p, const char *key, const char *value)
{
    int rc = apply_key(p, key, value);
    p->options->settings += rc == 0;
    return rc;
}
