/* SPDX-License-Identifier: MIT */
/*
 * Every key is applied as an option: the names of options are their own, those of sections are
 * other words for one (memory.rate = 2 is --rate memory=2), except what only a file says.
 */
#include "cli/args/config_keys.h"

#include <stdio.h>
#include <string.h>

#include <etwatch/metrics.h>

#include "cli/args/choice_options.h"
#include "cli/args/value.h"
#include "sampler/sparse_histogram.h"

#define RING_SAMPLES "10000" /* of a ring that does not say */

/* Keys of sections. */
static const char *const names[] = {
    "GROUP.rate",      "GROUP.backend",           "GROUP.aggregation",
    "storage.type",    "storage.samples",         "storage.max-samples",
    "storage.persist", "storage.persist-to-disk", "overhead-limit",
};

const char *ew_config_key_name(size_t i)
{
    return i < sizeof names / sizeof names[0] ? names[i] : NULL;
}

/* Of a section: a group or a metric, whose '_' the file's reader has made a '-'. */
static int metrics_of(const char *section, struct etwatch_metric_set *ret_metrics)
{
    char name[EW_CONFIG_KEY_SIZE];
    (void)snprintf(name, sizeof name, "%s", section);
    for (char *at = name; *at != '\0'; at++)
        *at = *at == '-' ? '_' : *at;
    *ret_metrics = (struct etwatch_metric_set){{0}};
    return etwatch_metrics_named(name, ret_metrics);
}

bool ew_config_section_known(const char *section)
{
    struct etwatch_metric_set metrics;
    return strcmp(section, "storage") == 0 ||
           (strcmp(section, "all") != 0 && strcmp(section, "default") != 0 &&
            metrics_of(section, &metrics) != ETWATCH_EINVAL);
}

/* "memory.rate" as its group and "GROUP.rate"; false if it is of no group. */
static bool split_group(const char *key, char *group, size_t group_size, char *name, size_t size)
{
    const char *dot = strchr(key, '.');
    if (dot == NULL || (size_t)(dot - key) >= group_size)
        return false;
    memcpy(group, key, (size_t)(dot - key));
    group[dot - key] = '\0';
    (void)snprintf(name, size, "GROUP%s", dot);
    return strcmp(group, "storage") != 0 && ew_config_section_known(group);
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

static const struct ew_option_info *option_of(const struct ew_parser *p, const char *key)
{
    static const char *const meaningless[] = {"config", "help", "version", "check", "show"};
    for (size_t i = 0; i < sizeof meaningless / sizeof meaningless[0]; i++)
        if (strcmp(meaningless[i], key) == 0)
            return NULL;
    return ew_option_find(key, strlen(key), p->options->command);
}

int ew_config_key_check(struct ew_parser *p, const char *key)
{
    if (is_own_key(key) || option_of(p, key) != NULL)
        return 0;
    if (strchr(key, '.') != NULL)
        return ew_parser_fail(p,
                              "unknown key \"%s\"; a group of metrics has rate, backend and "
                              "aggregation, storage has type, samples and persist",
                              key);
    return ew_parser_fail(p,
                          "unknown option \"%s\"; use the long names of options, such as "
                          "\"hz = 100\"",
                          key);
}

/* ------------------------------------------------------------------ as options */

static int apply_switch(struct ew_parser *p, const struct ew_option_info *info, const char *value)
{
    static const char *const yes[] = {"true", "yes", "on", "1"};
    static const char *const no[] = {"false", "no", "off", "0"};
    for (size_t i = 0; i < 4; i++) {
        if (strcmp(value, yes[i]) == 0)
            return ew_option_apply(p, info, info->name, NULL);
        if (strcmp(value, no[i]) == 0)
            return ew_option_apply(p, info, info->name, "false");
    }
    return ew_parser_fail(p, "%s needs true or false, not \"%s\"", info->name, value);
}

/* shown: how the file calls it. */
static int apply_option(struct ew_parser *p, const char *option, const char *shown,
                        const char *value)
{
    const struct ew_option_info *info = option_of(p, option);
    if (info == NULL)
        return ew_config_key_check(p, option);
    if (value[0] == '\0')
        return ew_parser_fail(p, "%s needs a value: %s = %s", shown, shown,
                              info->value != NULL ? info->value : "true");
    bool belongs = (info->commands & p->options->command) != 0;
    if (!belongs && p->options->command != EW_CMD_CONFIG)
        return 0;
    return info->value == NULL ? apply_switch(p, info, value)
                               : ew_option_apply(p, info, shown, value);
}

/* ---------------------------------------------------------------- of a section */

static int apply_rate(struct ew_parser *p, const char *key, const char *group, const char *value)
{
    char rate[128];
    double hz = 0;
    if (!ew_value_number(value, &hz) || hz < 0.01 || hz > 1000)
        return ew_parser_fail(p, "%s needs a number from 0.01 to 1000 (a second), not \"%s\"", key,
                              value);
    if (strcmp(group, "cpu") == 0)
        return apply_option(p, "hz", key, value);
    (void)snprintf(rate, sizeof rate, "%s=%.60s", group, value);
    for (char *at = rate; *at != '='; at++)
        *at = *at == '-' ? '_' : *at;
    return apply_option(p, "rate", key, rate);
}

/*
 * What adds up has one source: what a group says must be what the others say. Gauges of memory,
 * threads and handles may be polled beside it.
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
        rc = ew_parser_fail(p,
                            "%s comes from the same source as the rest, which is %s already: only "
                            "memory, threads and handles can be polled beside it",
                            group, etwatch_source_name(before));
    return rc;
}

static int read_aggregation(struct ew_parser *p, const char *key, const char *value,
                            uint32_t *ret_wanted)
{
    static const char *const words[] = {"avg", "max", "p95", "p99"};
    uint32_t wanted = 0;
    for (const char *at = value;;) {
        size_t len = strcspn(at, ","), i = 0, blanks = strspn(at, " ");
        size_t word = len > blanks ? len - blanks : 0;
        while (i < 4 && !(word == 3 && memcmp(at + blanks, words[i], 3) == 0))
            i++;
        if (i == 4)
            return ew_parser_fail(p, "%s needs a list of avg, max, p95 and p99, not \"%s\"", key,
                                  value);
        wanted |= 1u << i;
        if (at[len] == '\0')
            break;
        at += len + 1;
    }
    *ret_wanted = wanted;
    return 0;
}

static int apply_aggregation(struct ew_parser *p, const char *key, const char *group,
                             const char *value)
{
    struct etwatch_metric_set metrics;
    uint32_t wanted = 0;
    if (metrics_of(group, &metrics) == ETWATCH_ENOTSUP)
        return ew_option_not_measured(p, key, group);
    etwatch_metric_set_subtract(&metrics, &ew_sparse_histogram_excluded);
    if (strcmp(group, "cpu") == 0)
        (void)metrics_of("cpu_percent", &metrics);
    if (strcmp(group, "memory") == 0)
        (void)metrics_of("rss_bytes", &metrics);
    if (etwatch_metric_set_is_empty(&metrics))
        return ew_parser_fail(p, "an average of %s says nothing: leave out %s", group, key);
    int rc = read_aggregation(p, key, value, &wanted);
    for (uint32_t i = 0; rc == 0 && i < ETWATCH_METRIC_COUNT; i++)
        if (etwatch_metric_set_has(&metrics, i))
            p->options->aggregation[i] = (uint8_t)wanted;
    return rc;
}

/* A ring has a size, a stream has none. */
static int apply_storage_type(struct ew_parser *p, const char *key, const char *value)
{
    bool ring = strcmp(value, "ring") == 0 || strcmp(value, "circular-buffer") == 0 ||
                strcmp(value, "circular_buffer") == 0;
    if (!ring && strcmp(value, "stream") != 0)
        return ew_parser_fail(p, "%s needs ring or stream, not \"%s\"", key, value);
    if (!ring && p->storage_samples)
        return ew_parser_fail(p, "a stream keeps nothing: leave out storage.samples, or %s = ring",
                              key);
    p->storage_streams = !ring;
    return ring && !p->storage_samples ? apply_option(p, "keep", key, RING_SAMPLES) : 0;
}

static int apply_storage(struct ew_parser *p, const char *key, const char *name, const char *value)
{
    bool yes = strcmp(value, "true") == 0 || strcmp(value, "yes") == 0;
    bool no = strcmp(value, "false") == 0 || strcmp(value, "no") == 0;
    if (strcmp(name, "type") == 0)
        return apply_storage_type(p, key, value);
    if (strcmp(name, "samples") == 0 || strcmp(name, "max-samples") == 0) {
        if (p->storage_streams)
            return ew_parser_fail(p, "%s is for storage.type = ring: a stream keeps nothing", key);
        p->storage_samples = true;
        return apply_option(p, "keep", key, value);
    }
    if (no)
        return 0;
    if (yes)
        return ew_parser_fail(p, "%s needs the name of the file, or false", key);
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

int ew_config_key_apply(struct ew_parser *p, const char *key, const char *value)
{
    int rc = apply_key(p, key, value);
    p->options->settings += rc == 0;
    return rc;
}
