/* SPDX-License-Identifier: MIT */
/*
 * Owns a table of the processes that were told of: left out, or not. There is a gate only where
 * something is to be left out.
 */
#include "monitor/process_filter.h"

#include <string.h>

#include "model/cgroup.h"
#include "model/name.h"
#include "os/os.h"

struct ew_gate_process {
    uint32_t pool_word;
    uint32_t self;
    uint32_t pid;
    bool out;
    bool began; /* while we watched: whatever it did can be told */
    uint64_t start_ns;
};

bool ew_gate_wanted(const struct ew_gate_rules *rules)
{
    return rules->pid_count > 0 || rules->name_count > 0 || rules->uid_count > 0 ||
           rules->cgroup_count > 0 || rules->only_uid_count > 0 || rules->system;
}

/* -------------------------------------------------------------------- the verdict */

static bool is_system(const struct ew_gate *gate, const struct ew_process_fact *fact)
{
    if (!gate->rules.windows)
        return fact->kernel_thread;
    return ew_name_is_windows_system(fact->pid, (fact->has & EW_HAS_NAME) != 0 ? fact->name : NULL);
}

static bool in_cgroups(struct ew_gate *gate, const struct ew_process_fact *fact)
{
    const char *user, *cgroup, *cmdline;
    if (gate->describe == NULL)
        return false;
    uint64_t id = (fact->has & EW_HAS_CGROUP) != 0 ? fact->cgroup_id : 0;
    ew_describe_process(gate->describe, fact->pid, UINT32_MAX, id, &user, &cgroup, &cmdline);
    for (uint32_t i = 0; cgroup != NULL && i < gate->rules.cgroup_count; i++)
        if (ew_cgroup_matches((struct ew_span){cgroup, strlen(cgroup)}, gate->rules.cgroups[i]))
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

/* Of nobody is known who he is, if he was gone before he was asked. */
static bool wrong_user(const struct ew_gate *gate, const struct ew_process_fact *fact)
{
    const struct ew_gate_rules *rules = &gate->rules;
    uint64_t key = 0;
    bool known = (fact->has & EW_HAS_UID) != 0;
    uint32_t uid = fact->uid;
    if (!known && gate->describe != NULL && ew_os_process_user(fact->pid, &key, NULL, 0)) {
        known = true;
        uid = (uint32_t)key;
    }
    if (rules->only_uid_count > 0 &&
        !(known && is_one_of(uid, rules->only_uids, rules->only_uid_count)))
        return true;
    return known && is_one_of(uid, rules->uids, rules->uid_count);
}

static bool excluded(struct ew_gate *gate, const struct ew_process_fact *fact)
{
    const struct ew_gate_rules *rules = &gate->rules;
    if (rules->system && is_system(gate, fact))
        return true;
    for (uint32_t i = 0; i < rules->pid_count; i++)
        if (rules->pids[i] == fact->pid)
            return true;
    for (uint32_t i = 0; i < rules->name_count && (fact->has & EW_HAS_NAME) != 0; i++)
        if (ew_name_matches(rules->names[i], fact->name))
            return true;
    if (rules->uid_count + rules->only_uid_count > 0 && wrong_user(gate, fact))
        return true;
    return rules->cgroup_count > 0 && in_cgroups(gate, fact);
}

/* ---------------------------------------------------------------------- the table */

static struct ew_gate_process *find(const struct ew_gate *gate, uint32_t pid)
{
    uint32_t cursor = ew_index_home(&gate->by_pid, pid);
    uint32_t ref = ew_index_next(&gate->by_pid, pid, &cursor);
    return ref == 0 ? NULL : ew_pool_at(&gate->processes, ref);
}

static struct ew_gate_process *make(struct ew_gate *gate, uint32_t pid)
{
    uint32_t ref = 0;
    struct ew_gate_process *process =
        gate->processes.used >= EW_GATE_PROCESSES_MAX ? NULL : ew_pool_take(&gate->processes, &ref);
    if (process != NULL && ew_index_add(&gate->by_pid, pid, ref) < 0) {
        ew_pool_give(&gate->processes, ref);
        process = NULL;
    }
    if (process == NULL) {
        gate->lost++;
        return NULL;
    }
    process->self = ref;
    process->pid = pid;
    return process;
}

static void set_out(struct ew_gate *gate, struct ew_gate_process *process, uint64_t start_ns,
                    bool out)
{
    if (process->out != out && gate->shut != NULL)
        gate->shut(gate->ctx, process->pid, out ? start_ns : process->start_ns, out);
    process->out = out;
    process->start_ns = start_ns;
}

static bool is_out(const struct ew_gate *gate, uint32_t pid)
{
    const struct ew_gate_process *process = find(gate, pid);
    return process == NULL || process->out;
}

/* ------------------------------------------------------------------------- facts */

static void end(struct ew_gate *gate, struct ew_gate_process *process,
                const struct ew_process_fact *fact)
{
    if (process == NULL || !process->out)
        gate->next.process(gate->next.ctx, fact);
    if (process == NULL)
        return;
    set_out(gate, process, process->start_ns, false);
    ew_index_remove(&gate->by_pid, process->pid, process->self);
    ew_pool_give(&gate->processes, process->self);
}

static void on_process(void *ctx, const struct ew_process_fact *fact)
{
    struct ew_gate *gate = ctx;
    struct ew_gate_process *process = find(gate, fact->pid);
    bool begins = fact->kind == EW_PROCESS_START || fact->kind == EW_PROCESS_SEEN;
    if (fact->kind == EW_PROCESS_EXIT) {
        end(gate, process, fact);
        return;
    }
    bool was_in = process != NULL && !process->out, now_out = excluded(gate, fact);
    if (process == NULL)
        process = make(gate, fact->pid);
    if (process == NULL)
        return;
    if (begins)
        process->began = fact->kind == EW_PROCESS_START;
    if (now_out && was_in)
        gate->forget(gate->ctx, fact->pid);
    set_out(gate, process, fact->start_ns, now_out);
    if (now_out)
        return;
    struct ew_process_fact told = *fact;
    if (!was_in && !begins)
        told.kind = process->began ? EW_PROCESS_START : EW_PROCESS_SEEN;
    gate->next.process(gate->next.ctx, &told);
}

/* Of whom nothing is known yet, it is not known either whether he is to be left out. Readings are
 * absolute: what is not taken now is in the next. */
static void on_reading(void *ctx, const struct ew_reading *reading)
{
    struct ew_gate *gate = ctx;
    if (!is_out(gate, reading->pid))
        gate->next.reading(gate->next.ctx, reading);
}

static void on_expect(void *ctx, const uint32_t *tids, uint32_t count)
{
    struct ew_gate *gate = ctx;
    if (gate->next.expect != NULL)
        gate->next.expect(gate->next.ctx, tids, count);
}

/* A switch is of two processes: told if either is not left out. */
static void on_event(void *ctx, const struct etwatch_event *event)
{
    struct ew_gate *gate = ctx;
    bool other = event->kind == ETWATCH_EVENT_SWITCH && !is_out(gate, event->next_pid);
    if (gate->next.event != NULL && (other || !is_out(gate, event->pid)))
        gate->next.event(gate->next.ctx, event);
}

static void on_loss(void *ctx, const struct etwatch_loss *loss)
{
    struct ew_gate *gate = ctx;
    gate->next.loss(gate->next.ctx, loss);
}

static void on_all_seen(void *ctx, uint64_t since_ns)
{
    struct ew_gate *gate = ctx;
    gate->next.all_seen(gate->next.ctx, since_ns);
}

static void on_over(void *ctx, uint64_t end_ns)
{
    struct ew_gate *gate = ctx;
    gate->next.over(gate->next.ctx, end_ns);
}

void ew_gate_open(struct ew_gate *gate, struct ew_facts *facts)
{
    gate->next = *facts;
    gate->lost = 0;
    ew_pool_init(&gate->processes, sizeof(struct ew_gate_process));
    ew_index_init(&gate->by_pid);
    *facts = (struct ew_facts){
        .ctx = gate,
        .process = on_process,
        .reading = on_reading,
        .expect = on_expect,
        .event = on_event,
        .loss = on_loss,
        .all_seen = on_all_seen,
        .over = on_over,
    };
}

void ew_gate_close(struct ew_gate *gate)
{
    ew_pool_done(&gate->processes);
    ew_index_done(&gate->by_pid);
}
