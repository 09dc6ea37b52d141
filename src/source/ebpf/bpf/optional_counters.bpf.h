/* SPDX-License-Identifier: MIT */
/*
 * Counters that the kernel does not keep per thread: network bytes and hardware counters. Added up
 * here, per thread, if requested; else these programs are not loaded, the maps are not created and
 * the verifier removes the branches in other programs. Part of watch.bpf.c.
 */
#ifndef EW_SOURCE_EBPF_BPF_OPTIONAL_COUNTERS_BPF_H
#define EW_SOURCE_EBPF_BPF_OPTIONAL_COUNTERS_BPF_H

#include "filter.bpf.h"

/* Parallel to the log: the counters as of the time of each entry. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct ew_k_optional);
} entry_optionals SEC(".maps");

/* By tid. A thread without such activity has no element. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct ew_k_optional);
} optionals SEC(".maps");

/* Only the thread itself writes here, or the switch that ends its run: no lock is needed. */
static __always_inline struct ew_k_optional *optional_of(struct task_struct *task)
{
    __u32 tid = (__u32)task->pid;
    struct ew_k_optional *optional = bpf_map_lookup_elem(&optionals, &tid);
    if (optional && optional->start_ns == task->start_boottime)
        return optional;
    struct ew_k_optional fresh = {.start_ns = task->start_boottime};
    if (bpf_map_update_elem(&optionals, &tid, &fresh, BPF_ANY) != 0) {
        struct ew_k_lost *lost = my_losses();
        if (lost)
            lost->watch++;
        return 0;
    }
    return bpf_map_lookup_elem(&optionals, &tid);
}

static __always_inline void copy_optional(struct ew_k_optional *out, __u32 tid, __u64 start_ns)
{
    struct ew_k_optional *optional = bpf_map_lookup_elem(&optionals, &tid);
    if (optional && optional->start_ns == start_ns) {
        *out = *optional;
        return;
    }
    __builtin_memset(out, 0, sizeof *out);
}

/* Part of note(). The last entry of a thread deletes its sums. */
static __always_inline void note_optional(__u32 index, struct task_struct *task, bool last)
{
    struct ew_k_optional *out = bpf_map_lookup_elem(&entry_optionals, &index);
    __u32 tid = (__u32)task->pid;
    if (!out)
        return;
    copy_optional(out, tid, task->start_boottime);
    if (last)
        bpf_map_delete_elem(&optionals, &tid);
}

/* ------------------------------------------------------------------------- network */

static __always_inline int count_net(int bytes, bool received)
{
    struct task_struct *task = bpf_get_current_task_btf();
    if (bytes <= 0 || !is_watched(task))
        return 0;
    struct ew_k_optional *optional = optional_of(task);
    if (!optional)
        return 0;
    if (received)
        optional->net_received_bytes += (__u64)bytes;
    else
        optional->net_sent_bytes += (__u64)bytes;
    return 0;
}

/* The data stays in the socket, or is no data of the peer. */
static __always_inline bool is_peek(int flags)
{
    enum { MSG_PEEK_ = 0x2, MSG_ERRQUEUE_ = 0x2000 };
    return (flags & (MSG_PEEK_ | MSG_ERRQUEUE_)) != 0;
}

/*
 * Two ways to count. Kernels from 6.3 on have tracepoints with the bytes of each socket call. On
 * older ones the programs attach to the two functions of IPv4 and the two of IPv6, where the kernel
 * allows that. The loader takes the first that works.
 */
static __always_inline bool is_internet(struct sock *sock)
{
    enum { AF_INET_ = 2, AF_INET6_ = 10 };
    __u16 family = sock->__sk_common.skc_family;
    return family == AF_INET_ || family == AF_INET6_;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(ew_net_tp_send, struct sock *sock, int bytes, int flags)
{
    return is_internet(sock) ? count_net(bytes, false) : 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(ew_net_tp_receive, struct sock *sock, int bytes, int flags)
{
    return is_internet(sock) && !is_peek(flags) ? count_net(bytes, true) : 0;
}

SEC("fexit/inet_sendmsg")
int BPF_PROG(ew_net_fn_send, struct socket *socket, struct msghdr *msg, __u64 size, int bytes)
{
    return count_net(bytes, false);
}

SEC("fexit/inet_recvmsg")
int BPF_PROG(ew_net_fn_receive, struct socket *socket, struct msghdr *msg, __u64 size, int flags,
             int bytes)
{
    return is_peek(flags) ? 0 : count_net(bytes, true);
}

SEC("fexit/inet6_sendmsg")
int BPF_PROG(ew_net_fn6_send, struct socket *socket, struct msghdr *msg, __u64 size, int bytes)
{
    return count_net(bytes, false);
}

SEC("fexit/inet6_recvmsg")
int BPF_PROG(ew_net_fn6_receive, struct socket *socket, struct msghdr *msg, __u64 size, int flags,
             int bytes)
{
    return is_peek(flags) ? 0 : count_net(bytes, true);
}

/* -------------------------------------------------------------- hardware counters */

/* One event per CPU: a program can read only that of its own CPU. */
#define COUNTER_MAP(name)                            \
    struct {                                         \
        __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY); \
        __uint(max_entries, 1);                      \
        __type(key, __u32);                          \
        __type(value, __u32);                        \
    } name SEC(".maps")
COUNTER_MAP(pmu_cycles);
COUNTER_MAP(pmu_instructions);
COUNTER_MAP(pmu_cache_misses);

/* Per CPU: the value of each counter at the last switch. */
struct pmu_state {
    __u64 seen;
    __u64 value[3];
};
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct pmu_state);
} pmu_cpus SEC(".maps");

struct bpf_perf_event_value_ {
    __u64 counter, enabled, running;
};

#define READ_COUNTER(map, out)                                                              \
    do {                                                                                    \
        struct bpf_perf_event_value_ v_;                                                    \
        if (bpf_perf_event_read_value(&map, EW_F_CURRENT_CPU, (void *)&v_, sizeof v_) == 0) \
            out = v_.counter;                                                               \
    } while (0)

SEC("tp_btf/sched_switch")
int BPF_PROG(ew_pmu, bool preempt, struct task_struct *prev, struct task_struct *next)
{
    __u32 cpu = bpf_get_smp_processor_id();
    struct pmu_state *state = bpf_map_lookup_elem(&pmu_cpus, &cpu);
    if (!state)
        return 0;
    __u64 value[3] = {state->value[0], state->value[1], state->value[2]};
    if (config.pmu & EW_K_PMU_CYCLES)
        READ_COUNTER(pmu_cycles, value[0]);
    if (config.pmu & EW_K_PMU_INSTRUCTIONS)
        READ_COUNTER(pmu_instructions, value[1]);
    if (config.pmu & EW_K_PMU_CACHE_MISSES)
        READ_COUNTER(pmu_cache_misses, value[2]);
    bool known = state->seen != 0;
    __u64 before[3] = {state->value[0], state->value[1], state->value[2]};
    state->seen = 1;
    state->value[0] = value[0];
    state->value[1] = value[1];
    state->value[2] = value[2];
    if (!known || prev->pid == 0 || !is_watched(prev))
        return 0;
    struct ew_k_optional *optional = optional_of(prev);
    if (!optional)
        return 0;
    optional->cycles += value[0] - before[0];
    optional->instructions += value[1] - before[1];
    optional->cache_misses += value[2] - before[2];
    return 0;
}

#endif
