/* SPDX-License-Identifier: MIT */
/* Selects the watched processes. Part of watch.bpf.c; uses its maps. */
#ifndef EW_SOURCE_EBPF_BPF_FILTER_BPF_H
#define EW_SOURCE_EBPF_BPF_FILTER_BPF_H

/* Is the process of this pid that started then watched, if the map has another start time? */
static __noinline int is_former(__u32 pid, __u64 start_ns)
{
    struct ew_k_former key = {.start_ns = start_ns, .pid = pid};
    return bpf_map_lookup_elem(&former, &key) != 0;
}

/* known_ns is the value of the pid; 0: added by pid, the start time is not known yet. */
static __always_inline bool is_generation(__u32 pid, __u64 known_ns, __u64 start_ns)
{
    return known_ns == 0 || known_ns == start_ns || is_former(pid, start_ns);
}

static __always_inline bool is_watched(struct task_struct *task)
{
    if (config.all)
        return config.kernel_threads || !(task->flags & EW_PF_KTHREAD);
    __u32 pid = (__u32)task->tgid;
    __u64 *start_ns = bpf_map_lookup_elem(&watched, &pid);
    return start_ns && is_generation(pid, *start_ns, walkable(task)->group_leader->start_boottime);
}

/* Start, exec and exit of an excluded process are still reported: they may change the decision. */
static __always_inline bool is_excluded(struct task_struct *task)
{
    if (!config.excludes)
        return false;
    __u32 pid = (__u32)task->tgid;
    __u64 *start_ns = bpf_map_lookup_elem(&excluded, &pid);
    return start_ns && *start_ns == walkable(task)->group_leader->start_boottime;
}

static __always_inline void watch(struct task_struct *task)
{
    __u32 pid = (__u32)task->tgid;
    __u64 start_ns = walkable(task)->group_leader->start_boottime;
    __u64 *before = bpf_map_lookup_elem(&watched, &pid);
    long error = 0;
    if (before && *before != 0 && *before != start_ns) {
        struct ew_k_former key = {.start_ns = *before, .pid = pid};
        __u32 one = 1;
        error = bpf_map_update_elem(&former, &key, &one, BPF_ANY);
    }
    if (bpf_map_update_elem(&watched, &pid, &start_ns, BPF_ANY) != 0 || error != 0) {
        struct ew_k_lost *lost = my_losses();
        if (lost)
            lost->watch++;
    }
}

/* "python" matches python, python3.11 and python-dbg, but not pythonista. See model/name.c. */
static __always_inline bool name_matches(const char *name, __u32 index)
{
    for (int i = 0; i < EW_K_NAME_SIZE; i++) {
        char want = config.names[index][i];
        char have = name[i];
        if (want == '\0')
            return have == '\0' || have == '.' || have == '-' || (have >= '0' && have <= '9');
        if (want != have)
            return false;
    }
    return true;
}

/*
 * Matches a pattern with '*' and '?'. User space has reduced it to its other bytes: in state n, n
 * of them are matched; a star allows to stay in a state. All states are computed at once, one bit
 * each, without a branch that depends on them: the verifier would follow every one. For the same
 * reason the initial value, which is always 1, is computed from a clock: the verifier must not know
 * it.
 */
static __always_inline bool glob_matches(const char *name, __u32 index)
{
    __u64 states = 1 + (bpf_ktime_get_boot_ns() >> 63);
    for (int i = 0; i < EW_K_NAME_SIZE - 1; i++) {
        __u64 have = (__u8)name[i], fits = config.glob_any[index];
        if (!have)
            break;
        for (int j = 0; j < EW_K_NAME_SIZE - 1; j++)
            fits |= ((((__u8)config.names[index][j] ^ have) - 1) >> 63) << j;
        states = (states & fits) << 1 | (states & config.glob_stars[index]);
    }
    return (states & config.glob_end[index]) != 0;
}

static __always_inline bool in_cgroup(struct cgroup *group)
{
    for (int level = 0; level < 16 && group; level++) {
        __u64 id = BPF_CORE_READ(group, kn, id);
        for (__u32 i = 0; i < EW_K_FILTERS_MAX && i < config.cgroup_count; i++)
            if (config.cgroups[i] == id)
                return true;
        struct cgroup_subsys_state *parent = BPF_CORE_READ(group, self.parent);
        if (!parent)
            break;
        group = BPF_CORE_READ(parent, cgroup);
    }
    return false;
}

/* Does a filter (name, uid or cgroup, not pid) select this task? */
static __noinline int rules_match(struct task_struct *task)
{
    if (config.name_count) {
        char name[EW_K_NAME_SIZE];
        BPF_CORE_READ_STR_INTO(&name, task, comm);
        for (__u32 i = 0; i < EW_K_FILTERS_MAX && i < config.name_count; i++)
            if (config.glob_end[i] ? glob_matches(name, i) : name_matches(name, i))
                return 1;
    }
    if (config.uid_count) {
        __u32 uid = walkable(task)->cred->uid.val;
        for (__u32 i = 0; i < EW_K_FILTERS_MAX && i < config.uid_count; i++)
            if (config.uids[i] == uid)
                return 1;
    }
    if (config.cgroup_count)
        return in_cgroup(walkable(task)->cgroups->dfl_cgrp);
    return 0;
}

#endif
