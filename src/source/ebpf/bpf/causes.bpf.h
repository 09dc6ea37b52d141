/* SPDX-License-Identifier: MIT */
/*
 * What spans need in addition to the stream: which wake-ups come from an interrupt, where the
 * current thread is not the waker, and how long watched threads spend in page faults. An event per
 * fault would cost more than the fault, so faults that follow each other closely become one event:
 * it is written when the next fault comes later, or when the thread is switched out. The time off
 * the CPU within a fault is not part of the sum: the switch carries EW_K_STATE_IN_FAULT instead.
 * Part of watch.bpf.c.
 */
#ifndef EW_SOURCE_EBPF_BPF_CAUSES_BPF_H
#define EW_SOURCE_EBPF_BPF_CAUSES_BPF_H

/* Per CPU. */
struct interrupts {
    __u32 depth;
    __u32 pad0;
    __u64 throttled; /* run queue of a group that was throttled when its thread left; 0: none */
    __u64 incoming;  /* pid and tid of the last switch */
    __u32 switched;  /* 0: none yet */
    __u32 pad1;
    __u64 pad2[4];
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct interrupts);
} interrupts SEC(".maps");

static __always_inline struct interrupts *my_interrupts(void)
{
    __u32 cpu = bpf_get_smp_processor_id();
    return bpf_map_lookup_elem(&interrupts, &cpu);
}

static __always_inline bool in_interrupt(void)
{
    struct interrupts *mine = my_interrupts();
    return mine && mine->depth > 0;
}

static __always_inline int leave_interrupt(void)
{
    struct interrupts *mine = my_interrupts();
    if (mine && mine->depth > 0)
        mine->depth--;
    return 0;
}

static __always_inline int enter_interrupt(void)
{
    struct interrupts *mine = my_interrupts();
    if (mine)
        mine->depth++;
    return 0;
}

/*
 * The kernel has no event for the end of throttling: each switch and timer looks whether the group
 * of the thread that was throttled on this CPU has bandwidth again.
 */
static __noinline int find_unthrottled(struct interrupts *mine, struct task_struct *task)
{
    if (!mine || !task || !mine->throttled)
        return 0;
    struct cfs_rq *group = (struct cfs_rq *)mine->throttled;
    if (BPF_CORE_READ(group, throttle_count) > 0)
        return 0;
    mine->throttled = 0;
    struct ew_k_event *event = stream_begin(7 /* ETWATCH_EVENT_UNTHROTTLE */, task, task);
    if (event)
        stream_end(event);
    return 0;
}

/*
 * Some kernels do not report every switch: those of 6.18 in Firecracker lack the ones away from the
 * threads of its agent. The thread that is switched out is then not the one that was switched in.
 * The kernel still accounts how long it has run, so the missing switch is added, late but with its
 * true time: without it the thread would have waited for this CPU all the time.
 */
static __noinline int find_missing_switch(struct interrupts *mine, struct task_struct *task)
{
    if (!mine || !task)
        return 0;
    if (mine->switched == 0 || (__u32)mine->incoming == (__u32)task->pid)
        return 0;
    /* Of the idle thread and of real-time threads the kernel does not know it. */
    __u64 ran_ns = task->prio < EW_MAX_RT_PRIO || task->pid == 0
                       ? 0
                       : task->se.sum_exec_runtime - task->se.prev_sum_exec_runtime;
    struct ew_k_event *event = stream_begin(1 /* ETWATCH_EVENT_SWITCH */, task, task);
    if (!event)
        return 0;
    event->t_ns -= ran_ns;
    event->pid = (__u32)(mine->incoming >> 32);
    event->tid = (__u32)mine->incoming;
    event->other_pid = (__u32)task->tgid;
    event->other_tid = (__u32)task->pid;
    event->priority = 0;
    event->other_priority = (__s16)(task->prio - EW_MAX_RT_PRIO);
    event->state = EW_TASK_INTERRUPTIBLE;
    stream_end(event);
    return 0;
}

static __always_inline void note_incoming(struct interrupts *mine, struct task_struct *task)
{
    if (!mine)
        return;
    mine->incoming = (__u64)(__u32)task->tgid << 32 | (__u32)task->pid;
    mine->switched = 1;
}

static __always_inline void note_throttled(struct task_struct *task)
{
    struct interrupts *mine = my_interrupts();
    if (mine)
        mine->throttled = (__u64)BPF_CORE_READ(task, se.cfs_rq);
}

/* The ends come first: programs are attached in this order, and a begin without an end would count
 * forever. */
SEC("tp_btf/hrtimer_expire_exit")
int BPF_PROG(ew_stream_cause_timer_end)
{
    struct interrupts *mine = my_interrupts();
    if (mine && mine->throttled)
        find_unthrottled(mine, bpf_get_current_task_btf());
    return leave_interrupt();
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(ew_stream_cause_softirq_end)
{
    return leave_interrupt();
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(ew_stream_cause_irq_end)
{
    return leave_interrupt();
}

SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(ew_stream_cause_timer)
{
    return enter_interrupt();
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(ew_stream_cause_softirq)
{
    return enter_interrupt();
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(ew_stream_cause_irq)
{
    return enter_interrupt();
}

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct ew_k_faults);
} faults SEC(".maps");

static __always_inline void emit_faults(struct ew_k_faults *cell, struct task_struct *task)
{
    if (cell->count == 0 && cell->sum_ns == 0)
        return;
    struct ew_k_event *event = stream_begin(6 /* ETWATCH_EVENT_FAULTS */, task, task);
    if (event) {
        event->t_ns = cell->last_ns;
        event->other_tid = cell->count;
        event->state = (__u32)(cell->last_ns - cell->first_ns);
        event->detail = (__u32)cell->sum_ns;
        stream_end(event);
    }
    cell->count = 0;
    cell->sum_ns = 0;
}

static __always_inline struct ew_k_faults *faults_of(struct task_struct *task)
{
    __u32 tid = (__u32)task->pid;
    return bpf_map_lookup_elem(&faults, &tid);
}

static __always_inline void add_fault_time(struct ew_k_faults *cell, __u64 now_ns)
{
    if (cell->count == 0 && cell->sum_ns == 0)
        cell->first_ns = cell->begun_ns;
    cell->sum_ns += now_ns - cell->begun_ns;
    cell->last_ns = now_ns;
}

/* The thread is switched out. Returns EW_K_STATE_IN_FAULT or 0. */
static __noinline __u32 pause_fault(struct task_struct *task)
{
    struct ew_k_faults *cell = task ? faults_of(task) : 0;
    if (!cell)
        return 0;
    if (task->__state & EW_TASK_INTERRUPTIBLE)
        cell->in_fault = 0; /* it ended in a signal: no fault sleeps so that a signal can end it */
    if (cell->in_fault)
        add_fault_time(cell, bpf_ktime_get_boot_ns());
    emit_faults(cell, task);
    return cell->in_fault ? EW_K_STATE_IN_FAULT : 0;
}

static __noinline int resume_fault(struct task_struct *task)
{
    struct ew_k_faults *cell = task ? faults_of(task) : 0;
    if (cell && cell->in_fault)
        cell->begun_ns = bpf_ktime_get_boot_ns();
    return 0;
}

static __always_inline void forget_faults(struct task_struct *task)
{
    __u32 tid = (__u32)task->pid;
    bpf_map_delete_elem(&faults, &tid);
}

/*
 * The begin and the end of a fault are software events of perf, which also exist where functions
 * cannot be traced. A fault that ends in a signal has no end.
 */
SEC("perf_event")
int ew_fault_begin(void *ctx)
{
    (void)ctx;
    struct task_struct *task = bpf_get_current_task_btf();
    if (!is_watched(task))
        return 0;
    __u64 now_ns = bpf_ktime_get_boot_ns();
    struct ew_k_faults *cell = faults_of(task);
    if (!cell) {
        struct ew_k_faults none = {};
        __u32 tid = (__u32)task->pid;
        bpf_map_update_elem(&faults, &tid, &none, BPF_NOEXIST);
        cell = faults_of(task);
        if (!cell)
            return 0;
    }
    if (now_ns - cell->last_ns > EW_K_FAULTS_GAP_NS ||
        now_ns - cell->first_ns > EW_K_FAULTS_LONG_NS)
        emit_faults(cell, task);
    cell->begun_ns = now_ns;
    cell->in_fault = 1;
    return 0;
}

SEC("perf_event")
int ew_fault_end(void *ctx)
{
    (void)ctx;
    struct ew_k_faults *cell = faults_of(bpf_get_current_task_btf());
    if (!cell || !cell->in_fault)
        return 0;
    add_fault_time(cell, bpf_ktime_get_boot_ns());
    cell->count++;
    cell->in_fault = 0;
    return 0;
}

#endif
