/* SPDX-License-Identifier: MIT */
/*
 * The full stream: every switch, wake-up, fork, exec and exit, one record each, through a ring
 * buffer. Loaded only when asked for: samples do not need it, and it costs a clock read and a
 * reservation per event. The reader comes by timer; waking it per event would slow the watched
 * threads by a factor. Part of watch.bpf.c, whose maps it shares.
 */
#ifndef EW_EBPF_STREAM_H
#define EW_EBPF_STREAM_H

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 12);
} stream SEC(".maps");

static __always_inline struct ew_k_event *stream_begin(__u32 kind, struct task_struct *task)
{
    struct ew_k_event *event = bpf_ringbuf_reserve(&stream, sizeof *event, 0);
    if (!event) {
        struct ew_k_lost *lost = my_losses();
        if (lost)
            __sync_fetch_and_add(&lost->stream, 1);
        return 0;
    }
    event->t_ns = bpf_ktime_get_boot_ns();
    event->kind = kind;
    event->cpu = bpf_get_smp_processor_id();
    event->pid = (__u32)task->tgid;
    event->tid = (__u32)task->pid;
    event->other_pid = 0;
    event->other_tid = 0;
    event->state = 0;
    event->priority = task->prio - EW_MAX_RT_PRIO;
    event->exit_status = 0;
    event->pad = 0;
    BPF_CORE_READ_STR_INTO(&event->name, task, comm);
    return event;
}

static __always_inline void stream_end(struct ew_k_event *event)
{
    bpf_ringbuf_submit(event, bpf_ringbuf_query(&stream, BPF_RB_AVAIL_DATA) > config.stream_wake
                                  ? BPF_RB_FORCE_WAKEUP
                                  : BPF_RB_NO_WAKEUP);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(ew_stream_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
    if (!is_watched(prev) && !is_watched(next))
        return 0;
    struct ew_k_event *event = stream_begin(1 /* ETWATCH_EVENT_SWITCH */, prev);
    if (!event)
        return 0;
    event->other_pid = (__u32)next->tgid;
    event->other_tid = (__u32)next->pid;
    event->state = preempt ? 0 : prev->__state;
    stream_end(event);
    return 0;
}

static __always_inline int stream_wakeup(struct task_struct *task)
{
    if (!is_watched(task))
        return 0;
    struct ew_k_event *event = stream_begin(2 /* ETWATCH_EVENT_WAKEUP */, task);
    if (!event)
        return 0;
    __u64 waker = bpf_get_current_pid_tgid();
    event->other_pid = (__u32)(waker >> 32);
    event->other_tid = (__u32)waker;
    stream_end(event);
    return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(ew_stream_wakeup, struct task_struct *task)
{
    return stream_wakeup(task);
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(ew_stream_wakeup_new, struct task_struct *task)
{
    return stream_wakeup(task);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(ew_stream_fork, struct task_struct *parent, struct task_struct *child)
{
    if (!is_watched(parent) && !is_watched(child))
        return 0;
    struct ew_k_event *event = stream_begin(3 /* ETWATCH_EVENT_FORK */, parent);
    if (!event)
        return 0;
    event->other_pid = (__u32)child->tgid;
    event->other_tid = (__u32)child->pid;
    stream_end(event);
    return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(ew_stream_exec, struct task_struct *task)
{
    if (!is_watched(task))
        return 0;
    struct ew_k_event *event = stream_begin(4 /* ETWATCH_EVENT_EXEC */, task);
    if (event)
        stream_end(event);
    return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(ew_stream_exit, struct task_struct *task)
{
    if (!is_watched(task))
        return 0;
    struct ew_k_event *event = stream_begin(5 /* ETWATCH_EVENT_EXIT */, task);
    if (!event)
        return 0;
    event->exit_status = task->exit_code;
    stream_end(event);
    return 0;
}

#endif
