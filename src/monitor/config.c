/* SPDX-License-Identifier: MIT */
/*
 * Checks a configuration and makes a deep copy, so that the caller's may go out of scope. Every
 * error names the field and its range.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "monitor/monitor.h"

static const double hz_min = 0.1, hz_max = 1000.0, rate_min = 0.01;

enum {
    DEFAULT_LATENCY_MS = 400,
    MAX_LATENCY_MS = 60000,
    DEFAULT_PROCESSES = 65536,
    DEFAULT_THREADS = 131072,
    DEFAULT_QUEUE = 10000,
    MAX_TOP_N = 65536,
    KNOWN_FLAGS = ETWATCH_CONFIG_ALL | ETWATCH_CONFIG_THREADS | ETWATCH_CONFIG_DENSE |
                  ETWATCH_CONFIG_EVENTS | ETWATCH_CONFIG_CMDLINE | ETWATCH_CONFIG_NO_FALLBACK |
                  ETWATCH_CONFIG_NO_BUDGET | ETWATCH_CONFIG_KERNEL_THREADS |
                  ETWATCH_CONFIG_AGGREGATE | ETWATCH_CONFIG_QUEUE | ETWATCH_CONFIG_NO_SYSTEM |
                  ETWATCH_CONFIG_EVENTS_ALL | ETWATCH_CONFIG_EVENTS_CAUSES,
};

static int check_recording(const struct etwatch_config *config, struct ew_error *reterr)
{
    if (config->source != ETWATCH_SOURCE_ETL)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0, "traces are only for the source etl");
    if (config->trace_count == 0)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0, "the source etl needs traces");
    if (config->uid_count > 0 || config->cgroup_count > 0 || config->exclude_uid_count > 0 ||
        config->exclude_cgroup_count > 0)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0,
                            "a recording has no users and no cgroups: use pids or names");
    return 0;
}

static int check_metrics(const struct etwatch_config *config, struct ew_error *reterr)
{
    struct etwatch_metric_set pollable, polled = config->polled_metrics;
    uint32_t unknown = etwatch_metric_set_next(&config->metrics, ETWATCH_METRIC_COUNT);
    if (unknown < ETWATCH_METRIC_DEFAULT)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0, "metrics has an unknown member, %u",
                            unknown);
    etwatch_metrics_pollable(&pollable);
    etwatch_metric_set_subtract(&polled, &pollable);
    if (!etwatch_metric_set_is_empty(&polled))
        return ew_error_set(reterr, ETWATCH_EINVAL, 0,
                            "polled_metrics may only have gauges of memory, threads and handles");
    if (config->rate_count > 0 && config->rates == NULL)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0, "a count is set, but its list is NULL");
    struct etwatch_metric_set rated = ew_metrics_rated();
    for (uint32_t i = 0; i < config->rate_count; i++) {
        const struct etwatch_rate *rate = &config->rates[i];
        if (!(rate->hz >= rate_min && rate->hz <= hz_max))
            return ew_error_set(reterr, ETWATCH_EINVAL, 0, "a rate must be between 0.01 and 1000");
        /* A group may contain metrics of every sample, but not only those. */
        if (!ew_metric_set_intersects(&rate->metrics, &rated))
            return ew_error_set(reterr, ETWATCH_EINVAL, 0,
                                "a rate is only possible for metrics that are polled");
    }
    return 0;
}

/* Windows: users are selected by the process filter out of all processes; there are no cgroups. */
static int check_users(const struct etwatch_config *config, struct ew_error *reterr)
{
    if (config->source == ETWATCH_SOURCE_ETL || ew_os_has_uids())
        return 0;
    if (config->cgroup_count > 0 || config->exclude_cgroup_count > 0)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0, "Windows has no cgroups");
    if (config->uid_count > 0 && config->pid_count + config->name_count > 0)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0,
                            "on Windows uids cannot be combined with pids or names");
    return 0;
}

static int check(struct etwatch_config *config, struct ew_error *reterr)
{
    if (config->hz == 0)
        config->hz = 10;
    if (!(config->hz >= hz_min && config->hz <= hz_max))
        return ew_error_set(reterr, ETWATCH_EINVAL, 0, "hz must be between 0.1 and 1000");
    if (config->budget_percent == 0)
        config->budget_percent = 2;
    if (!(config->budget_percent > 0 && config->budget_percent <= 1000))
        return ew_error_set(reterr, ETWATCH_EINVAL, 0,
                            "budget_percent must be above 0, at most 1000");
    if (config->latency_ms == 0)
        config->latency_ms = DEFAULT_LATENCY_MS;
    if (config->latency_ms > MAX_LATENCY_MS)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0, "latency_ms must be at most %d",
                            MAX_LATENCY_MS);
    if (config->trace_count > 0 && config->source == ETWATCH_SOURCE_AUTO)
        config->source = ETWATCH_SOURCE_ETL;
    if (config->session != NULL && config->source != ETWATCH_SOURCE_AUTO &&
        config->source != ETWATCH_SOURCE_ETW)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0, "session is only for the source etw");
    if (config->session_options != NULL && config->source != ETWATCH_SOURCE_AUTO &&
        config->source != ETWATCH_SOURCE_ETW)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0,
                            "session_options are only for the source etw");
    if (config->session_options != NULL && config->session != NULL)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0,
                            "session is read as it is: it cannot have session_options");
    if (config->source == ETWATCH_SOURCE_ETL || config->trace_count > 0) {
        int error = check_recording(config, reterr);
        if (error != 0)
            return error;
    } else if (config->source != ETWATCH_SOURCE_AUTO && config->source != ew_source_native()->id &&
               config->source != ETWATCH_SOURCE_POLL) {
        return ew_error_set(reterr, ETWATCH_ENOTSUP, 0,
                            "source must be auto, %s, poll or etl on this system",
                            etwatch_source_name(ew_source_native()->id));
    }
    int error = check_users(config, reterr);
    if (error != 0)
        return error;
    error = check_metrics(config, reterr);
    if (error != 0)
        return error;
    if (config->top_n_metric >= ETWATCH_METRIC_COUNT || config->top_n > MAX_TOP_N)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0,
                            "top_n must be at most %d, top_n_metric a metric", MAX_TOP_N);
    if ((config->flags & ~(uint32_t)KNOWN_FLAGS) != 0)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0, "flags has an unknown bit");
    if (config->max_processes == 0)
        config->max_processes = DEFAULT_PROCESSES;
    if (config->max_threads == 0)
        config->max_threads = DEFAULT_THREADS;
    if (config->queue_samples == 0)
        config->queue_samples = DEFAULT_QUEUE;
    if ((config->pid_count > 0 && config->pids == NULL) ||
        (config->name_count > 0 && config->names == NULL) ||
        (config->uid_count > 0 && config->uids == NULL) ||
        (config->cgroup_count > 0 && config->cgroups == NULL) ||
        (config->alert_count > 0 && config->alerts == NULL) ||
        (config->exclude_pid_count > 0 && config->exclude_pids == NULL) ||
        (config->exclude_name_count > 0 && config->exclude_names == NULL) ||
        (config->exclude_uid_count > 0 && config->exclude_uids == NULL) ||
        (config->exclude_cgroup_count > 0 && config->exclude_cgroups == NULL) ||
        (config->trace_count > 0 && config->traces == NULL))
        return ew_error_set(reterr, ETWATCH_EINVAL, 0, "a count is set, but its list is NULL");
    return 0;
}

static int copy_ids(const uint32_t **list, uint32_t count)
{
    const uint32_t *from = *list;
    *list = NULL;
    if (count == 0)
        return 0;
    uint32_t *copy = ew_calloc(count, sizeof *copy);
    if (copy == NULL)
        return ETWATCH_ENOMEM;
    memcpy(copy, from, count * sizeof *copy);
    *list = copy;
    return 0;
}

static int copy_texts(const char *const **list, uint32_t count)
{
    const char *const *from = *list;
    *list = NULL;
    if (count == 0)
        return 0;
    char **copy = ew_calloc(count, sizeof *copy);
    if (copy == NULL)
        return ETWATCH_ENOMEM;
    *list = (const char *const *)copy;
    for (uint32_t i = 0; i < count; i++) {
        copy[i] = from[i] == NULL ? NULL : ew_strdup(from[i]);
        if (copy[i] == NULL)
            return from[i] == NULL ? ETWATCH_EINVAL : ETWATCH_ENOMEM;
    }
    return 0;
}

/* Each list is copied before the next is set, so that only own copies are ever freed. */
static int copy_excludes(struct etwatch_config *to, const struct etwatch_config *given)
{
    to->exclude_pids = given->exclude_pids;
    int error = copy_ids(&to->exclude_pids, given->exclude_pid_count);
    if (error == 0) {
        to->exclude_uids = given->exclude_uids;
        error = copy_ids(&to->exclude_uids, given->exclude_uid_count);
    }
    if (error == 0) {
        to->exclude_names = given->exclude_names;
        error = copy_texts(&to->exclude_names, given->exclude_name_count);
    }
    if (error == 0) {
        to->exclude_cgroups = given->exclude_cgroups;
        error = copy_texts(&to->exclude_cgroups, given->exclude_cgroup_count);
    }
    return error;
}

int ew_config_copy(struct etwatch_config *to, const struct etwatch_config *from,
                   struct ew_error *reterr)
{
    memset(to, 0, sizeof *to);
    int error = ew_sized_in(to, sizeof *to, from, "config", reterr);
    if (error == 0)
        error = check(to, reterr);
    /* None of the pointers may be freed until they are own copies. */
    struct etwatch_config given = *to;
    to->pids = to->uids = NULL;
    to->names = to->cgroups = to->traces = to->alerts = NULL;
    to->exclude_pids = to->exclude_uids = NULL;
    to->exclude_names = to->exclude_cgroups = NULL;
    to->proc_root = to->session = NULL;
    to->session_options = NULL; /* monitor.c copies them */
    to->rates = NULL;
    to->sys_root = to->nvml_library = to->amdsmi_library = NULL;
    if (error != 0)
        return error;
    to->pids = given.pids;
    error = copy_ids(&to->pids, given.pid_count);
    if (error == 0) {
        to->uids = given.uids;
        error = copy_ids(&to->uids, given.uid_count);
    }
    if (error == 0) {
        to->names = given.names;
        error = copy_texts(&to->names, given.name_count);
    }
    if (error == 0) {
        to->cgroups = given.cgroups;
        error = copy_texts(&to->cgroups, given.cgroup_count);
    }
    if (error == 0) {
        to->traces = given.traces;
        error = copy_texts(&to->traces, given.trace_count);
    }
    if (error == 0 && given.rate_count > 0) {
        struct etwatch_rate *rates = ew_calloc(given.rate_count, sizeof *rates);
        error = rates == NULL ? ETWATCH_ENOMEM : 0;
        if (rates != NULL)
            memcpy(rates, given.rates, given.rate_count * sizeof *rates);
        to->rates = rates;
    }
    if (error == 0) {
        to->alerts = given.alerts;
        error = copy_texts(&to->alerts, given.alert_count);
    }
    if (error == 0)
        error = copy_excludes(to, &given);
    if (error == 0) {
        to->proc_root = ew_strdup(given.proc_root == NULL ? "/proc" : given.proc_root);
        error = to->proc_root == NULL ? ETWATCH_ENOMEM : 0;
    }
    if (error == 0) {
        to->sys_root = ew_strdup(given.sys_root == NULL ? "/sys" : given.sys_root);
        error = to->sys_root == NULL ? ETWATCH_ENOMEM : 0;
    }
    if (error == 0 && given.nvml_library != NULL) {
        to->nvml_library = ew_strdup(given.nvml_library);
        error = to->nvml_library == NULL ? ETWATCH_ENOMEM : 0;
    }
    if (error == 0 && given.amdsmi_library != NULL) {
        to->amdsmi_library = ew_strdup(given.amdsmi_library);
        error = to->amdsmi_library == NULL ? ETWATCH_ENOMEM : 0;
    }
    if (error == 0 && given.session != NULL) {
        to->session = ew_strdup(given.session);
        error = to->session == NULL ? ETWATCH_ENOMEM : 0;
    }
    if (error != 0) {
        ew_config_done(to);
        return ew_error_set(reterr, error, 0,
                            error == ETWATCH_EINVAL ? "a name, cgroup, trace or alert is NULL"
                                                    : "out of memory");
    }
    return 0;
}

static void free_texts(const char *const *list, uint32_t count)
{
    for (uint32_t i = 0; list != NULL && i < count; i++)
        ew_free((void *)(uintptr_t)list[i]);
    ew_free((void *)(uintptr_t)list);
}

void ew_config_done(struct etwatch_config *config)
{
    ew_free((void *)(uintptr_t)config->pids);
    ew_free((void *)(uintptr_t)config->uids);
    free_texts(config->names, config->name_count);
    free_texts(config->cgroups, config->cgroup_count);
    free_texts(config->traces, config->trace_count);
    free_texts(config->alerts, config->alert_count);
    ew_free((void *)(uintptr_t)config->exclude_pids);
    ew_free((void *)(uintptr_t)config->exclude_uids);
    free_texts(config->exclude_names, config->exclude_name_count);
    free_texts(config->exclude_cgroups, config->exclude_cgroup_count);
    ew_free((void *)(uintptr_t)config->proc_root);
    ew_free((void *)(uintptr_t)config->session);
    ew_free((void *)(uintptr_t)config->sys_root);
    ew_free((void *)(uintptr_t)config->nvml_library);
    ew_free((void *)(uintptr_t)config->amdsmi_library);
    ew_free((void *)(uintptr_t)config->rates);
    memset(config, 0, sizeof *config);
}

int ew_config_add_pid(struct etwatch_config *config, uint32_t pid)
{
    uint32_t *pids = ew_realloc_array((void *)(uintptr_t)config->pids,
                                      (size_t)config->pid_count + 1, sizeof *pids);
    if (pids == NULL)
        return ETWATCH_ENOMEM;
    pids[config->pid_count++] = pid;
    config->pids = pids;
    return 0;
}

int ew_config_remove_pid(struct etwatch_config *config, uint32_t pid)
{
    uint32_t *pids = (uint32_t *)(uintptr_t)config->pids;
    for (uint32_t i = 0; i < config->pid_count; i++) {
        if (pids[i] != pid)
            continue;
        memmove(pids + i, pids + i + 1, (config->pid_count - i - 1) * sizeof *pids);
        config->pid_count--;
        return 0;
    }
    return ETWATCH_ENOENT;
}
