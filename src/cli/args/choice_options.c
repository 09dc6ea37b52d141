/* SPDX-License-Identifier: MIT */
/* Options that say what of all that is watched is told: what is left out, the busiest, alerts. */
#include "cli/args/choice_options.h"

#include <etwatch/etwatch.h>
#include <etwatch/metrics.h>

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/args/value.h"
#include "sampler/alert.h"
#include "sampler/sparse_histogram.h"

enum { KEEP_MAX = 10000000 };

/* The message points at what is wrong in it: conditions are short, so it fits in a line. */
int ew_option_alert(struct ew_parser *p, const char *shown, const char *value)
{
    struct ew_alert_rule rule;
    struct ew_error why = {0};
    if (ew_alert_parse(value, &rule, &why) < 0)
        return ew_parser_fail(p, "%s \"%.*s>>>%.80s\": %s; %s", shown, (int)why.offset, value,
                              value + why.offset, why.message, why.fix);
    if (p->options->alerts.count == EW_ALERT_RULES_MAX)
        return ew_parser_fail(p, "%s may be given %d times at most", shown, EW_ALERT_RULES_MAX);
    return ew_list_add_word(&p->options->alerts, value) < 0 ? ew_parser_fail(p, "out of memory")
                                                            : 0;
}

int ew_option_exclude_pids(struct ew_parser *p, const char *shown, const char *value)
{
    return ew_read_pids(p, shown, value, &p->options->exclude_pids, &p->options->exclude_pid_count);
}

int ew_option_exclude_uids(struct ew_parser *p, const char *shown, const char *value)
{
    return ew_read_uids(p, shown, value, &p->options->exclude_uids, &p->options->exclude_uid_count);
}

int ew_option_exclude_names(struct ew_parser *p, const char *shown, const char *value)
{
    return ew_list_add_words(p, shown, value, "a name or a list of names (such as python,kworker*)",
                             &p->options->exclude_names);
}

int ew_option_exclude_cgroups(struct ew_parser *p, const char *shown, const char *value)
{
    return ew_list_add_words(p, shown, value,
                             "a path below the cgroup v2 root (such as system.slice)",
                             &p->options->exclude_cgroups);
}

/* As docker and podman write it: the id or its beginning. */
int ew_option_containers(struct ew_parser *p, const char *shown, const char *value)
{
    struct ew_list ids = {0};
    int rc =
        ew_list_add_words(p, shown, value, "the id of a container (such as 3f2a9c41d07b)", &ids);
    for (uint32_t i = 0; i < ids.count && rc == 0; i++) {
        char wanted[128];
        size_t len = strlen(ids.words[i]);
        if (len < 4 || len > 64 || strspn(ids.words[i], "0123456789abcdef") != len)
            rc = ew_parser_fail(p,
                                "%s needs the id of a container, 4 to 64 hexadecimal digits as "
                                "'docker ps' shows them, not \"%s\"",
                                shown, ids.words[i]);
        (void)snprintf(wanted, sizeof wanted, "container:%.64s", ids.words[i]);
        if (rc == 0)
            rc = ew_list_add_words(p, shown, wanted, "the id of a container", &p->options->cgroups);
    }
    ew_list_done(&ids);
    return rc;
}

int ew_option_not_measured(struct ew_parser *p, const char *shown, const char *name)
{
    return ew_parser_fail(p, "%s: no source measures \"%s\" yet; see 'etwatch metrics'", shown,
                          name);
}

int ew_option_aggregate(struct ew_parser *p, const char *shown, const char *value)
{
    static const char form[] = "groups or names of metrics (such as io,handles)";
    struct ew_list words = {0};
    int rc = ew_list_add_words(p, shown, value, form, &words);
    p->options->aggregates |= p->where[0] == '\0';
    for (uint32_t i = 0; i < words.count && rc == 0; i++) {
        struct etwatch_metric_set metrics = {{0}};
        int named = etwatch_metrics_named(words.words[i], &metrics);
        etwatch_metric_set_subtract(&metrics, &ew_sparse_histogram_excluded);
        if (named == ETWATCH_ENOTSUP)
            rc = ew_option_not_measured(p, shown, words.words[i]);
        else if (etwatch_metric_set_next(&metrics, 0) >= ETWATCH_METRIC_COUNT)
            rc = ew_parser_fail(p, "%s needs %s: there is none of \"%s\" to be averaged", shown,
                                form, words.words[i]);
        for (uint32_t at = 0; at < ETWATCH_METRIC_COUNT; at++)
            if (etwatch_metric_set_has(&metrics, at))
                p->options->aggregation[at] =
                    EW_AGGREGATE_AVG | EW_AGGREGATE_MAX | EW_AGGREGATE_P95 | EW_AGGREGATE_P99;
    }
    ew_list_done(&words);
    return rc;
}

int ew_option_busiest(struct ew_parser *p, const char *shown, const char *value)
{
    if (!ew_value_u32(value, &p->options->top_n) || p->options->top_n == 0 ||
        p->options->top_n > 65536)
        return ew_parser_fail(p, "%s needs a number of processes from 1 to 65536, not \"%s\"",
                              shown, value);
    return 0;
}

int ew_option_busiest_by(struct ew_parser *p, const char *shown, const char *value)
{
    struct etwatch_metric_set metrics = {{0}};
    int named = etwatch_metrics_named(value, &metrics);
    uint32_t metric = etwatch_metric_set_next(&metrics, 0);
    if (named == ETWATCH_ENOTSUP)
        return ew_option_not_measured(p, shown, value);
    if (etwatch_metric_set_count(&metrics) != 1 || metric >= ETWATCH_METRIC_COUNT)
        return ew_parser_fail(p,
                              "%s needs the name of one metric (such as cpu_percent or "
                              "io_write_bytes), not \"%s\"; see 'etwatch metrics'",
                              shown, value);
    p->options->top_n_metric = metric;
    p->options->busiest_by = true;
    return 0;
}

int ew_option_keep(struct ew_parser *p, const char *shown, const char *value)
{
    if (!ew_value_u32(value, &p->options->keep) || p->options->keep == 0 ||
        p->options->keep > KEEP_MAX)
        return ew_parser_fail(p, "%s needs a number of samples from 1 to %d, not \"%s\"", shown,
                              KEEP_MAX, value);
    return 0;
}

/* -------------------------------------------------------------------------- config */

int ew_option_check(struct ew_parser *p, const char *shown, const char *value)
{
    if (value[0] == '\0')
        return ew_parser_fail(p, "%s needs the name of a file", shown);
    char *copy = ew_strdup(value);
    if (copy == NULL)
        return ew_parser_fail(p, "out of memory");
    ew_free(p->options->config_path);
    p->options->config_path = copy;
    p->options->check = true;
    return 0;
}

int ew_option_show(struct ew_parser *p, const char *shown, const char *value)
{
    (void)shown;
    (void)value;
    p->options->show = true;
    return 0;
}

int ew_origin_add(struct ew_parser *parser, const struct ew_option_info *info, const char *value)
{
    struct ew_options *o = parser->options;
    struct ew_origin *grown =
        ew_realloc_array(o->origins, (size_t)o->origin_count + 1, sizeof *grown);
    if (grown == NULL)
        return ETWATCH_ENOMEM;
    o->origins = grown;
    struct ew_origin *origin = &grown[o->origin_count];
    *origin = (struct ew_origin){.option = info->name, .value = NULL};
    origin->value = ew_strdup(value == NULL ? "true" : value);
    origin->where = ew_strdup(parser->where);
    if (origin->value == NULL || origin->where == NULL) {
        ew_free(origin->value);
        ew_free(origin->where);
        return ETWATCH_ENOMEM;
    }
    o->origin_count++;
    return 0;
}
