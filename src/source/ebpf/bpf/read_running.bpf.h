/* SPDX-License-Identifier: MIT */
/*
 * The program that the reader runs to read threads with counters newer than their last entry. Part
 * of watch.bpf.c; uses its maps.
 */
#ifndef EW_SOURCE_EBPF_BPF_READ_RUNNING_BPF_H
#define EW_SOURCE_EBPF_BPF_READ_RUNNING_BPF_H

/* is_watched for a task that the verifier does not trust. */
static __always_inline bool address_watched(struct task_struct *task, __u32 pid)
{
    if (config.all)
        return config.kernel_threads || !(BPF_CORE_READ(task, flags) & EW_PF_KTHREAD);
    __u64 *start_ns = bpf_map_lookup_elem(&watched, &pid);
    return start_ns &&
           is_generation(pid, *start_ns, BPF_CORE_READ(task, group_leader, start_boottime));
}

/*
 * The kernel may skip the program at a switch. cpu_state is then out of date, and the run queue has
 * the current thread. When that was scheduled is unknown, but it was after the last switch in
 * cpu_state.
 */
static __always_inline __u64 scheduled_on(struct cpu_state *state, __u64 task)
{
    struct rq *rq = (struct rq *)state->rq;
    __u64 current = rq ? (__u64)BPF_CORE_READ(rq, curr) : task;
    struct task_struct *seen = (struct task_struct *)task;
    /* During a switch, before the program has run, both are on the CPU. */
    if (current != task && BPF_CORE_READ(seen, on_cpu) && task_cpu(seen) == state->cpu)
        return task;
    return current;
}

static __always_inline __u64 updated_at(__u64 task)
{
    return BPF_CORE_READ((struct task_struct *)task, se.exec_start);
}

/* exec_start as raw time; see updated_ns. */
static __always_inline __u64 raw_of_update(struct cpu_state *state, __u64 exec_start)
{
    struct rq *rq = (struct rq *)state->rq;
    __u64 behind_ns = 0;
    if (bpf_core_field_exists(rq->clock_task))
        behind_ns = BPF_CORE_READ(rq, clock) - BPF_CORE_READ(rq, clock_task);
    return exec_start + behind_ns + state->offset_ns;
}

/*
 * read_cpu, read_request and clear_cell are not static: the verifier checks a global function once,
 * separately. In the loops below it would check a static one in every round and exceed its limit.
 */

/* 0: the thread was switched out or updated while it was read. */
__noinline int read_cpu(__u32 cpu)
{
    struct cpu_state *state = state_of(cpu);
    struct ew_k_running *out = bpf_map_lookup_elem(&running, &cpu);
    if (!state || !out)
        return 1;
    __u64 version = *(volatile __u64 *)&state->version;
    BARRIER();
    __u64 in_ns = *(volatile __u64 *)&state->in_ns;
    __u64 in_cpu_ns = *(volatile __u64 *)&state->in_cpu_ns;
    __u64 task = *(volatile __u64 *)&state->task;
    BARRIER();
    out->switches = version / 2;
    out->thread.entry.kind = 0;
    out->as_of_ns = 0;
    if (task == 0)
        return 1;
    if (version & 1)
        return 0;
    __u64 current = scheduled_on(state, task), exec_start = 0;
    if (current != task) {
        task = current;
        in_cpu_ns = 0;
        exec_start = updated_at(task);
        out->as_of_ns = raw_of_update(state, exec_start);
    }
    __u32 tid = (__u32)BPF_CORE_READ((struct task_struct *)task, pid);
    if (tid == 0 || !read_task(&out->thread, task, tid))
        return 1;
    if (config.optional)
        copy_optional(&out->thread.optional, tid, out->thread.entry.start_ns);
    out->thread.entry.in_ns = in_ns;
    out->thread.entry.in_cpu_ns = in_cpu_ns;
    BARRIER();
    bool changed =
        *(volatile __u64 *)&state->version != version ||
        (exec_start != 0 && (updated_at(task) != exec_start || scheduled_on(state, task) != task));
    if (changed || !address_watched((struct task_struct *)task, out->thread.entry.tgid))
        out->thread.entry.kind = 0;
    return !changed;
}

__noinline int read_request(__u32 i)
{
    __u64 *index = bpf_map_lookup_elem(&requests, &i);
    struct ew_k_thread *out = bpf_map_lookup_elem(&threads, &i);
    if (!index || !out)
        return 0;
    out->entry.kind = 0;
    __u32 at = (__u32)*index;
    __u64 *address = bpf_map_lookup_elem(&entry_tasks, &at);
    struct ew_k_entry *entry = bpf_map_lookup_elem(&entries, &at);
    if (!address || !entry)
        return 0;
    __u64 start_ns = entry->start_ns;
    if (read_task(out, *address, entry->tid) && out->entry.start_ns != start_ns)
        out->entry.kind = 0;
    if (config.optional && out->entry.kind != 0)
        copy_optional(&out->optional, out->entry.tid, start_ns);
    return 1;
}

__noinline int clear_cell(__u32 i)
{
    __u32 *cell = bpf_map_lookup_elem(&cells, &i);
    if (cell)
        *cell = 0;
    return 0;
}

static __always_inline void report_features(void)
{
    __u32 zero = 0;
    struct ew_k_clock *cut = bpf_map_lookup_elem(&clock, &zero);
    if (!cut)
        return;
    struct task_struct *task = 0;
    cut->features = (bpf_core_field_exists(task->sched_info.run_delay) ? EW_K_HAS_RUNQ_WAIT : 0) |
                    (bpf_core_field_exists(task->ioac.rchar) ? EW_K_HAS_IO_BYTES : 0) |
                    (bpf_core_field_exists(task->ioac.read_bytes) ? EW_K_HAS_DISK_BYTES : 0) |
                    (bpf_core_type_exists(struct mm_rss_stat___before_6_2) ? 0 : EW_K_RSS_LAGS);
}

/* If three attempts fail, the CPU switches often, and its log has the current state. */
static __always_inline void read_cpu_in_three(__u32 cpu)
{
    if (!read_cpu(cpu) && !read_cpu(cpu))
        read_cpu(cpu);
}

/*
 * Calls function(0 .. count - 1), at most `max` times. The verifier simulates every round of a
 * plain loop, 30 ms for these three; the body of bpf_loop (from 5.17) it checks only a few times.
 */
#ifdef EW_TYPED
static long (*bpf_loop_)(__u32 count, void *body, void *ctx, __u64 flags) = (void *)181;
#define LOOP_BODY(function)                         \
    static long function##_body(__u32 i, void *ctx) \
    {                                               \
        function(i);                                \
        return 0;                                   \
    }
LOOP_BODY(read_request)
LOOP_BODY(read_cpu_in_three)
LOOP_BODY(clear_cell)
#define REPEAT(count, max, function) \
    bpf_loop_((__u32)((count) < (max) ? (count) : (max)), function##_body, 0, 0)
#else
#define REPEAT(count, max, function)                     \
    for (__u32 i_ = 0; i_ < (max) && i_ < (count); i_++) \
    function(i_)
#endif

/*
 * Run by the reader: reads the tasks of the requested log entries and those on the CPUs. It runs
 * under RCU: a task that was in the log may have exited, but its memory is still a task; pid and
 * start time are checked.
 */
SEC("raw_tp/sys_enter")
int ew_read_tasks(__u64 *args)
{
    __u64 request_count = args[0], cpu_count = args[1], flags = args[2];
    report_features();
    REPEAT(request_count, EW_K_REQUESTS_MAX, read_request);
    REPEAT(cpu_count, EW_K_CPUS_MAX, read_cpu_in_three);
    if (!HAS_LAST_ARRIVAL && (flags & EW_K_READ_CLEAR_CELLS))
        REPEAT(EW_K_CELL_COUNT, EW_K_CELL_COUNT, clear_cell);
    return 0;
}

#endif
