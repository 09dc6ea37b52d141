/* SPDX-License-Identifier: MIT */
/*
 * Records starts, execs, renames and exits of processes in a ring buffer. Part of watch.bpf.c; uses
 * its maps.
 */
#ifndef EW_SOURCE_EBPF_BPF_LIFECYCLE_BPF_H
#define EW_SOURCE_EBPF_BPF_LIFECYCLE_BPF_H

static __always_inline void describe(struct ew_k_life *record, __u32 kind, struct task_struct *task)
{
    struct task_struct *from = walkable(task);
    record->kind = kind;
    record->pid = (__u32)task->tgid;
    record->tid = (__u32)task->pid;
    record->ppid = (__u32)from->real_parent->tgid;
    record->uid = from->cred->uid.val;
    record->session_id = (__u32)BPF_CORE_READ(task, signal, pids[EW_PIDTYPE_SID], numbers[0].nr);
    record->old_tid = 0;
    record->exit_status = 0;
    record->t_ns = bpf_ktime_get_boot_ns();
    record->start_ns = from->group_leader->start_boottime;
    record->cgroup_id = 0;
    if (bpf_core_field_exists(task->cgroups))
        record->cgroup_id = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
    record->rss_peak_pages = 0;
    record->affinity = task->cpus_mask.bits[0];
    record->priority = task->prio - EW_MAX_RT_PRIO;
    record->kernel_thread = (task->flags & EW_PF_KTHREAD) != 0;
    /* The last thread that exits need not be the first one, which names the process. */
    BPF_CORE_READ_STR_INTO(&record->name, task, group_leader, comm);
}

static __always_inline __u64 life_flags(void)
{
    return bpf_ringbuf_query(&life, BPF_RB_AVAIL_DATA) > config.life_wake ? BPF_RB_FORCE_WAKEUP
                                                                          : BPF_RB_NO_WAKEUP;
}

static __always_inline struct ew_k_life *life_begin(__u32 kind, struct task_struct *task)
{
    struct ew_k_life *record = bpf_ringbuf_reserve(&life, sizeof *record, 0);
    if (!record) {
        struct ew_k_lost *lost = my_losses();
        if (lost)
            __sync_fetch_and_add(&lost->life, 1);
        return 0;
    }
    describe(record, kind, task);
    return record;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(ew_fork, struct task_struct *parent, struct task_struct *child)
{
    if (child->pid != child->tgid)
        return 0;
    if (!config.all) {
        /* All descendants are watched; other processes if a filter selects them. */
        if (!is_watched(parent) && !rules_match(child))
            return 0;
        watch(child);
    } else if (!is_watched(child)) {
        return 0;
    }
    struct ew_k_life *record = life_begin(EW_K_LIFE_FORK, child);
    if (record)
        bpf_ringbuf_submit(record, life_flags());
    return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(ew_exec, struct task_struct *task, int old_pid)
{
    __u32 kind = EW_K_LIFE_EXEC;
    if (!is_watched(task)) {
        if (config.all || !rules_match(task))
            return 0;
        watch(task);
        kind = EW_K_LIFE_SEEN;
    }
    struct ew_k_life *record = life_begin(kind, task);
    if (!record)
        return 0;
    record->old_tid = old_pid != task->pid ? (__u32)old_pid : 0;
    bpf_ringbuf_submit(record, life_flags());
    return 0;
}

SEC("tp_btf/task_rename")
int BPF_PROG(ew_rename, struct task_struct *task, const char *name)
{
    /* Names of threads are read by ew_read_tasks. An exec renames too, and has a record of its own.
     */
    if (task->pid != task->tgid || !is_watched(task))
        return 0;
    struct ew_k_life *record = life_begin(EW_K_LIFE_RENAME, task);
    if (!record)
        return 0;
    bpf_probe_read_kernel_str(record->name, sizeof record->name, name);
    bpf_ringbuf_submit(record, life_flags());
    return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(ew_exit, struct task_struct *task)
{
    struct signal_struct *signal = walkable(task)->signal;
    if (signal->live.counter != 0 || !is_watched(task))
        return 0;
    struct ew_k_life *record = life_begin(EW_K_LIFE_EXIT, task);
    if (!record)
        return 0;
    record->exit_status = signal->flags & EW_SIGNAL_GROUP_EXIT
                              ? signal->group_exit_code
                              : walkable(task)->group_leader->exit_code;
    record->rss_peak_pages = signal->maxrss;
    bpf_ringbuf_submit(record, life_flags());
    return 0;
}

/*
 * Not at the exit: releasing the memory takes CPU time after it, which must be counted. The pid may
 * have been reused by now; the start time distinguishes the processes.
 */
SEC("tp_btf/sched_process_free")
int BPF_PROG(ew_free, struct task_struct *task)
{
    __u32 pid = (__u32)task->tgid;
    if (task->pid != task->tgid || config.all)
        return 0;
    __u64 *start_ns = bpf_map_lookup_elem(&watched, &pid);
    if (start_ns && *start_ns == task->start_boottime) {
        bpf_map_delete_elem(&watched, &pid);
    } else {
        struct ew_k_former key = {.start_ns = task->start_boottime, .pid = pid};
        bpf_map_delete_elem(&former, &key);
    }
    return 0;
}

SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(ew_cgroup_attach, struct cgroup *group, const char *path, struct task_struct *task)
{
    if (config.all || is_watched(task) || !in_cgroup(group))
        return 0;
    watch(task);
    struct ew_k_life *record = life_begin(EW_K_LIFE_SEEN, task);
    if (record)
        bpf_ringbuf_submit(record, life_flags());
    return 0;
}

#endif
