/* SPDX-License-Identifier: MIT */
/*
 * The task iterator: lists the preexisting processes, with the same filters and counters as the
 * other programs. Part of watch.bpf.c; uses its maps.
 */
#ifndef EW_SOURCE_EBPF_BPF_SEED_BPF_H
#define EW_SOURCE_EBPF_BPF_SEED_BPF_H

/* Is an ancestor watched? The iterator may visit a parent after its children. */
static __noinline int ancestor_watched(struct task_struct *task)
{
    struct task_struct *at = task;
    for (int depth = 0; depth < 64; depth++) {
        at = BPF_CORE_READ(at, real_parent);
        __u32 pid = at ? (__u32)BPF_CORE_READ(at, tgid) : 0;
        if (pid == 0)
            return 0;
        if (bpf_map_lookup_elem(&watched, &pid))
            return 1;
    }
    return 0;
}

/*
 * The raw time at which the kernel last updated the CPU time of a running task, once per
 * tick: exec_start plus the clock offset of this CPU; the scheduler clocks of all CPUs are assumed
 * to agree. exec_start is by the task clock of the run queue, which does not advance in interrupts
 * and while the hypervisor runs others: the difference is added. 0: unknown.
 */
static __always_inline __u64 updated_ns(struct task_struct *task)
{
    __u32 here = bpf_get_smp_processor_id();
    struct cpu_state *mine = state_of(here);
    if (!mine || mine->offset_ns == 0 || !bpf_core_field_exists(task->se.cfs_rq) ||
        !bpf_core_field_exists(((struct cfs_rq *)0)->rq) ||
        !bpf_core_field_exists(((struct rq *)0)->clock_task))
        return 0;
    struct rq *rq = walkable(task)->se.cfs_rq->rq;
    return task->se.exec_start + (rq->clock - rq->clock_task) + mine->offset_ns;
}

/* Initializes a CPU without a switch since the programs were attached. */
static __noinline int adopt_running(struct task_struct *task)
{
    __u32 cpu = task_cpu(task);
    __u64 in_ns = updated_ns(task);
    struct cpu_state *state = state_of(cpu);
    if (!state || in_ns == 0 || state->version != 0 || task->pid == 0)
        return 0;
    state->in_ns = in_ns;
    state->in_cpu_ns = task->se.sum_exec_runtime;
    if (__sync_val_compare_and_swap(&state->version, 0, 2) == 0)
        state->task = (__u64)task;
    else
        state->in_ns = 0; /* a switch came first; this may have overwritten its in_ns: unknown */
    return 0;
}

static __always_inline void read_dead(struct ew_k_entry *dead, struct signal_struct *signal)
{
    dead->cpu_ns = signal->sum_sched_runtime;
    if (WANTS(MODES)) {
        dead->utime_ns = signal->utime;
        dead->stime_ns = signal->stime;
    }
    if (WANTS(SWITCHES)) {
        dead->switches_voluntary = signal->nvcsw;
        dead->switches_involuntary = signal->nivcsw;
    }
    if (WANTS(FAULTS)) {
        dead->faults_minor = signal->min_flt;
        dead->faults_major = signal->maj_flt;
    }
    if (WANTS(IO) && bpf_core_field_exists(signal->ioac.rchar)) {
        dead->io_read_bytes = signal->ioac.rchar;
        dead->io_write_bytes = signal->ioac.wchar;
        dead->io_read_ops = signal->ioac.syscr;
        dead->io_write_ops = signal->ioac.syscw;
    }
    if (WANTS(DISK) && bpf_core_field_exists(signal->ioac.read_bytes)) {
        dead->disk_read_bytes = signal->ioac.read_bytes;
        dead->disk_write_bytes = signal->ioac.write_bytes;
    }
}

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct ew_k_seed);
} seed_scratch SEC(".maps");

SEC("iter/task")
int ew_seed(struct bpf_iter__task *ctx)
{
    struct task_struct *task = ctx->task;
    __u32 zero = 0;
    struct ew_k_seed *seed = bpf_map_lookup_elem(&seed_scratch, &zero);
    if (!task || !seed)
        return 0;
    if (task->on_cpu)
        adopt_running(task);
    /* A zombie: its exit was recorded, or was before the programs were attached. */
    struct signal_struct *signal = walkable(task)->signal;
    if (signal->live.counter == 0)
        return 0;
    if (!config.all && !is_watched(task) && (rules_match(task) || ancestor_watched(task)))
        watch(task);
    if (!is_watched(task))
        return 0;
    /* Adds the start time, so that the requested pid matches only this process. */
    if (!config.all && task->pid == task->tgid)
        watch(task);
    describe(&seed->life, EW_K_LIFE_SEEN, task);
    read_task(&seed->thread, (__u64)task, (__u32)task->pid);
    seed->thread.entry.t_ns = seed->life.t_ns;
    seed->on_cpu = (__u32)task->on_cpu;
    __u64 as_of_ns = seed->on_cpu ? updated_ns(task) : 0;
    if (as_of_ns != 0 && as_of_ns < seed->life.t_ns)
        seed->thread.entry.t_ns = as_of_ns;
    if (task->pid == task->tgid)
        read_dead(&seed->dead, signal);
    bpf_seq_write(ctx->meta->seq, seed, sizeof *seed);
    return 0;
}

#endif
