/* SPDX-License-Identifier: MIT */
/*
 * The full stream: one record per switch, wake-up, fork, exec and exit, in a ring buffer. Loaded
 * only on request: samples do not need it, and it costs a clock read and a reservation per event.
 * The reader uses a timer; waking it per event would slow the watched threads down several times.
 * Part of watch.bpf.c; uses its maps.
 */
#ifndef EW_SOURCE_EBPF_BPF_SCHED_STREAM_BPF_H
#define EW_SOURCE_EBPF_BPF_SCHED_STREAM_BPF_H

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 12);
} stream SEC(".maps");

/* One name is enough: the reader knows the outgoing thread's name from when it was incoming. */
static __always_inline struct ew_k_event *stream_begin(__u16 kind, struct task_struct *task,
                                                       struct task_struct *named)
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
    event->cpu = (__u16)bpf_get_smp_processor_id();
    event->pid = (__u32)task->tgid;
    event->tid = (__u32)task->pid;
    event->other_pid = 0;
    event->other_tid = 0;
    event->state = 0;
    event->priority = (__s16)(task->prio - EW_MAX_RT_PRIO);
    event->other_priority = 0;
    event->detail = 0;
    bpf_probe_read_kernel(event->name, sizeof event->name, named->comm);
    return event;
}

/* Wakes the reader if it falls behind, then once for every EW_K_STREAM_STEP bytes. Through the
 * lifecycle ring: a wait on this one would end with every event. */
static __always_inline void stream_end(struct ew_k_event *event)
{
    __u64 unread = bpf_ringbuf_query(&stream, BPF_RB_AVAIL_DATA);
    bool wake =
        unread > config.stream_wake && (unread & (EW_K_STREAM_STEP - 1)) < 4 * (sizeof *event + 8);
    bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
    if (wake)
        wake_reader();
}

/* Without bandwidth control the kernel has no such field, and no thread is throttled. */
static __always_inline __u32 throttled(struct task_struct *task)
{
    if (!bpf_core_field_exists(((struct cfs_rq *)0)->throttle_count) ||
        !bpf_core_field_exists(task->se.cfs_rq))
        return 0;
    return BPF_CORE_READ(task, se.cfs_rq, throttle_count) > 0 ? EW_K_STATE_THROTTLED : 0;
}

#include "causes.bpf.h"

SEC("tp_btf/sched_switch")
int BPF_PROG(ew_stream_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
    if (!config.stream_all && !is_watched(prev) && !is_watched(next))
        return 0;
    __u32 in_fault = 0;
    if (config.causes) {
        find_unthrottled(my_interrupts(), prev);
        find_missing_switch(my_interrupts(), prev);
        note_incoming(my_interrupts(), next);
        in_fault = pause_fault(prev);
        resume_fault(next);
    }
    struct ew_k_event *event = stream_begin(1 /* ETWATCH_EVENT_SWITCH */, prev, next);
    if (!event)
        return 0;
    event->other_pid = (__u32)next->tgid;
    event->other_tid = (__u32)next->pid;
    event->other_priority = (__s16)(next->prio - EW_MAX_RT_PRIO);
    event->state = (preempt ? 0 : prev->__state) | in_fault;
    if (event->state == 0)
        event->state = throttled(prev);
    if (config.causes && (event->state & EW_K_STATE_THROTTLED))
        note_throttled(prev);
    event->detail = (__u32)prev->maj_flt << 1 | (__u32)BPF_CORE_READ_BITFIELD(prev, in_iowait);
    stream_end(event);
    return 0;
}

static __always_inline int stream_wakeup(struct task_struct *task)
{
    if (!config.stream_all && !is_watched(task))
        return 0;
    struct ew_k_event *event = stream_begin(2 /* ETWATCH_EVENT_WAKEUP */, task, task);
    if (!event)
        return 0;
    __u64 waker = config.causes && in_interrupt() ? 0 : bpf_get_current_pid_tgid();
    event->other_pid = (__u32)(waker >> 32);
    event->other_tid = (__u32)waker;
    event->detail = task_cpu(task);
    event->state = throttled(task);
    stream_end(event);
    return 0;
}

/* Not sched_wakeup: it may run on the CPU of the woken thread, where the waker is not current. */
SEC("tp_btf/sched_waking")
int BPF_PROG(ew_stream_waking, struct task_struct *task)
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
    if (!config.stream_all && !is_watched(parent) && !is_watched(child))
        return 0;
    struct ew_k_event *event = stream_begin(3 /* ETWATCH_EVENT_FORK */, parent, child);
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
    if (!config.stream_all && !is_watched(task))
        return 0;
    struct ew_k_event *event = stream_begin(4 /* ETWATCH_EVENT_EXEC */, task, task);
    if (event)
        stream_end(event);
    return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(ew_stream_exit, struct task_struct *task)
{
    if (config.causes)
        forget_faults(task);
    if (!config.stream_all && !is_watched(task))
        return 0;
    struct ew_k_event *event = stream_begin(5 /* ETWATCH_EVENT_EXIT */, task, task);
    if (!event)
        return 0;
    event->detail = (__u32)task->exit_code;
    stream_end(event);
    return 0;
}

#endif
