/* SPDX-License-Identifier: MIT */
/*
 * Owns a table of the reported processes: excluded or not. The filter exists only if processes can
 * be excluded.
 */
#include "monitor/monitor.h"

#include <string.h>

#include "model/cgroup.h"
#include "model/name.h"
#include "os/os.h"

struct ew_process_filter_process {
    uint32_t pool_word;
    uint32_t self;
    uint32_t pid;
    bool out;
    bool began; /* while watched: everything it did can be reported */
    uint64_t start_ns;
};

bool ew_process_filter_needed(const struct ew_process_filter_rules *rules)
{
    return rules->pid_count > 0 || rules->name_count > 0 || rules->uid_count > 0 ||
           rules->cgroup_count > 0 || rules->only_uid_count > 0 || rules->system;
}

/* -------------------------------------------------------------------------- rules */

static bool is_system(const struct ew_process_filter *filter, const struct ew_process_fact *fact)
{
    if (!filter->rules.windows)
        return fact->kernel_thread;
    return ew_name_is_windows_system(fact->pid, (fact->has & EW_HAS_NAME) != 0 ? fact->name : NULL);
}

static bool in_cgroups(struct ew_process_filter *filter, const struct ew_process_fact *fact)
{
    const char *user, *cgroup, *cmdline;
    if (filter->describe == NULL)
        return false;
    uint64_t id = (fact->has & EW_HAS_CGROUP) != 0 ? fact->cgroup_id : 0;
    ew_describe_process(filter->describe, fact->pid, UINT32_MAX, NULL, id, &user, &cgroup,
                        &cmdline);
    for (uint32_t i = 0; cgroup != NULL && i < filter->rules.cgroup_count; i++)
        if (ew_cgroup_matches((struct ew_span){cgroup, strlen(cgroup)}, filter->rules.cgroups[i]))
            return true;
    return false;
}

static bool is_one_of(uint32_t uid, const uint32_t *uids, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (uids[i] == uid)
            return true;
    return false;
}

/* The owner is unknown if the process exited before it was queried. */
static bool wrong_user(const struct ew_process_filter *filter, const struct ew_process_fact *fact)
{
    const struct ew_process_filter_rules *rules = &filter->rules;
    uint64_t key = 0;
    bool known = (fact->has & EW_HAS_UID) != 0;
    uint32_t uid = fact->uid;
    bool by_sid = !known && fact->sid != NULL && ew_os_sid_user(fact->sid, &key, NULL, 0);
    if (by_sid ||
        (!known && filter->describe != NULL && ew_os_process_user(fact->pid, &key, NULL, 0))) {
        known = true;
        uid = (uint32_t)key;
    }
    if (rules->only_uid_count > 0 &&
        !(known && is_one_of(uid, rules->only_uids, rules->only_uid_count)))
        return true;
    return known && is_one_of(uid, rules->uids, rules->uid_count);
}

static bool is_excluded(struct ew_process_filter *filter, const struct ew_process_fact *fact)
{
    const struct ew_process_filter_rules *rules = &filter->rules;
    if (rules->system && is_system(filter, fact))
        return true;
    for (uint32_t i = 0; i < rules->pid_count; i++)
        if (rules->pids[i] == fact->pid)
            return true;
    for (uint32_t i = 0; i < rules->name_count && (fact->has & EW_HAS_NAME) != 0; i++)
        if (ew_name_matches(rules->names[i], fact->name))
            return true;
    if (rules->uid_count + rules->only_uid_count > 0 && wrong_user(filter, fact))
        return true;
    return rules->cgroup_count > 0 && in_cgroups(filter, fact);
}

/* -------------------------------------------------------------------------- table */

static struct ew_process_filter_process *find(const struct ew_process_filter *filter, uint32_t pid)
{
    uint32_t cursor = ew_index_home(&filter->by_pid, pid);
    uint32_t ref = ew_index_next(&filter->by_pid, pid, &cursor);
    return ref == 0 ? NULL : ew_pool_at(&filter->processes, ref);
}

static struct ew_process_filter_process *make(struct ew_process_filter *filter, uint32_t pid)
{
    uint32_t ref = 0;
    struct ew_process_filter_process *process = filter->processes.used >= EW_FILTER_PROCESSES_MAX
                                                    ? NULL
                                                    : ew_pool_take(&filter->processes, &ref);
    if (process != NULL && ew_index_add(&filter->by_pid, pid, ref) < 0) {
        ew_pool_give(&filter->processes, ref);
        process = NULL;
    }
    if (process == NULL) {
        filter->lost++;
        return NULL;
    }
    process->self = ref;
    process->pid = pid;
    return process;
}

static void set_out(struct ew_process_filter *filter, struct ew_process_filter_process *process,
                    uint64_t start_ns, bool out)
{
    if (process->out != out && filter->set_excluded != NULL)
        filter->set_excluded(filter->ctx, process->pid, out ? start_ns : process->start_ns, out);
    process->out = out;
    process->start_ns = start_ns;
}

static bool is_out(const struct ew_process_filter *filter, uint32_t pid)
{
    const struct ew_process_filter_process *process = find(filter, pid);
    return process == NULL || process->out;
}

/* ------------------------------------------------------------------------- facts */

static void end(struct ew_process_filter *filter, struct ew_process_filter_process *process,
                const struct ew_process_fact *fact)
{
    if (process == NULL || !process->out)
        filter->next.process(filter->next.ctx, fact);
    if (process == NULL)
        return;
    set_out(filter, process, process->start_ns, false);
    ew_index_remove(&filter->by_pid, process->pid, process->self);
    ew_pool_give(&filter->processes, process->self);
}

static void on_process(void *ctx, const struct ew_process_fact *fact)
{
    struct ew_process_filter *filter = ctx;
    struct ew_process_filter_process *process = find(filter, fact->pid);
    bool begins = fact->kind == EW_PROCESS_START || fact->kind == EW_PROCESS_SEEN;
    if (fact->kind == EW_PROCESS_EXIT) {
        end(filter, process, fact);
        return;
    }
    bool was_in = process != NULL && !process->out, now_out = is_excluded(filter, fact);
    if (process == NULL)
        process = make(filter, fact->pid);
    if (process == NULL)
        return;
    if (begins)
        process->began = fact->kind == EW_PROCESS_START;
    if (now_out && was_in)
        filter->forget(filter->ctx, fact->pid);
    set_out(filter, process, fact->start_ns, now_out);
    if (now_out)
        return;
    struct ew_process_fact passed = *fact;
    if (!was_in && !begins)
        passed.kind = process->began ? EW_PROCESS_START : EW_PROCESS_SEEN;
    filter->next.process(filter->next.ctx, &passed);
}

/* Readings of a process that was not reported yet are dropped: it may be excluded. Readings are
 * absolute, so the next one contains them. */
static void on_reading(void *ctx, const struct ew_reading *reading)
{
    struct ew_process_filter *filter = ctx;
    if (!is_out(filter, reading->pid))
        filter->next.reading(filter->next.ctx, reading);
}

static void on_expect(void *ctx, const uint32_t *tids, uint32_t count)
{
    struct ew_process_filter *filter = ctx;
    if (filter->next.expect != NULL)
        filter->next.expect(filter->next.ctx, tids, count);
}

/* A switch belongs to two processes: it passes if either is included. */
static void on_event(void *ctx, const struct etwatch_event *event)
{
    struct ew_process_filter *filter = ctx;
    bool other = event->kind == ETWATCH_EVENT_SWITCH && !is_out(filter, event->next_pid);
    if (filter->next.event != NULL && (other || !is_out(filter, event->pid)))
        filter->next.event(filter->next.ctx, event);
}

static void on_loss(void *ctx, const struct etwatch_loss *loss)
{
    struct ew_process_filter *filter = ctx;
    filter->next.loss(filter->next.ctx, loss);
}

static void on_all_seen(void *ctx, uint64_t since_ns)
{
    struct ew_process_filter *filter = ctx;
    filter->next.all_seen(filter->next.ctx, since_ns);
}

static void on_over(void *ctx, uint64_t end_ns)
{
    struct ew_process_filter *filter = ctx;
    filter->next.over(filter->next.ctx, end_ns);
}

static void on_use(void *ctx, const struct ew_device_use *use)
{
    struct ew_process_filter *filter = ctx;
    if (filter->next.use != NULL && !is_out(filter, use->process.pid))
        filter->next.use(filter->next.ctx, use);
}

void ew_process_filter_open(struct ew_process_filter *filter, struct ew_facts *facts)
{
    filter->next = *facts;
    filter->lost = 0;
    ew_pool_init(&filter->processes, sizeof(struct ew_process_filter_process));
    ew_index_init(&filter->by_pid);
    *facts = (struct ew_facts){
        .ctx = filter,
        .process = on_process,
        .reading = on_reading,
        .expect = on_expect,
        .event = on_event,
        .loss = on_loss,
        .all_seen = on_all_seen,
        .over = on_over,
        .use = on_use,
    };
}

void ew_process_filter_close(struct ew_process_filter *filter)
{
    ew_pool_done(&filter->processes);
    ew_index_done(&filter->by_pid);
}

/* ------------------------------------------------------------------ in a monitor */

static void on_forget(void *ctx, uint32_t pid)
{
    struct etwatch_monitor *monitor = ctx;
    (void)ew_sampler_forget(monitor->sampler, pid);
    if (monitor->alerts.sampler != NULL)
        (void)ew_sampler_forget(monitor->alerts.sampler, pid);
}

static void on_excluded(void *ctx, uint32_t pid, uint64_t start_ns, bool excluded)
{
    struct etwatch_monitor *monitor = ctx;
    if (monitor->source->ops->exclude != NULL)
        monitor->source->ops->exclude(monitor->source, pid, start_ns, excluded);
}

struct ew_process_filter_rules ew_monitor_filter_rules(const struct etwatch_monitor *monitor)
{
    const struct etwatch_config *config = &monitor->config;
    bool numbers = ew_os_has_uids();
    return (struct ew_process_filter_rules){
        .only_uids = numbers ? NULL : config->uids,
        .only_uid_count = numbers ? 0 : config->uid_count,
        .pids = config->exclude_pids,
        .names = config->exclude_names,
        .uids = config->exclude_uids,
        .cgroups = config->exclude_cgroups,
        .pid_count = config->exclude_pid_count,
        .name_count = config->exclude_name_count,
        .uid_count = config->exclude_uid_count,
        .cgroup_count = config->exclude_cgroup_count,
        .system = (config->flags & ETWATCH_CONFIG_NO_SYSTEM) != 0,
        .windows = monitor->source != NULL &&
                   (ew_monitor_replays(monitor) || ew_source_native()->id == ETWATCH_SOURCE_ETW),
    };
}

void ew_monitor_open_filter(struct etwatch_monitor *monitor)
{
    struct ew_process_filter_rules rules = ew_monitor_filter_rules(monitor);
    if (!ew_process_filter_needed(&rules))
        return;
    monitor->process_filter.rules = rules;
    monitor->process_filter.describe = ew_monitor_replays(monitor) ? NULL : &monitor->describe;
    monitor->process_filter.ctx = monitor;
    monitor->process_filter.forget = on_forget;
    monitor->process_filter.set_excluded = on_excluded;
    ew_process_filter_open(&monitor->process_filter, &monitor->facts);
}
