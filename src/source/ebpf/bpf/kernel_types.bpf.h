/* SPDX-License-Identifier: MIT */
/*
 * The kernel types that the programs use, reduced to the fields that they read. Only names and
 * types matter: CO-RE adjusts every access to the running kernel. A field that changed its name,
 * place or type between 5.15 and 6.18 has an accessor in compat.bpf.h.
 */
#ifndef EW_SOURCE_EBPF_BPF_KERNEL_TYPES_BPF_H
#define EW_SOURCE_EBPF_BPF_KERNEL_TYPES_BPF_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
enum { false = 0, true = 1 };

enum bpf_map_type_used {
    BPF_MAP_TYPE_HASH = 1,
    BPF_MAP_TYPE_ARRAY = 2,
    BPF_MAP_TYPE_PERF_EVENT_ARRAY = 4,
    BPF_MAP_TYPE_RINGBUF = 27,
};
enum bpf_flags_used {
    BPF_ANY = 0,
    BPF_NOEXIST = 1,
    BPF_F_MMAPABLE = 1 << 10,
    BPF_RB_NO_WAKEUP = 1 << 0,
    BPF_RB_FORCE_WAKEUP = 1 << 1,
    BPF_RB_AVAIL_DATA = 0,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct task_struct;

struct rq {
    __u64 clock, clock_task;
    struct task_struct *curr;
};

struct cfs_rq {
    struct rq *rq;
    int throttle_count;
};

struct sched_entity {
    __u64 exec_start;
    __u64 sum_exec_runtime;
    __u64 prev_sum_exec_runtime;
    struct cfs_rq *cfs_rq;
};

struct sched_info {
    unsigned long long run_delay, last_arrival;
};

struct task_io_accounting {
    __u64 rchar, wchar, syscr, syscw, read_bytes, write_bytes;
};

struct upid {
    int nr;
};

struct pid {
    struct upid numbers[1];
};

typedef struct {
    int counter;
} atomic_t;

typedef struct {
    __s64 counter;
} atomic64_t;

typedef atomic64_t atomic_long_t;

struct signal_struct {
    atomic_t live;
    int nr_threads;
    int group_exit_code;
    unsigned int flags;
    struct pid *pids[4];
    __u64 utime, stime;
    unsigned long nvcsw, nivcsw, min_flt, maj_flt, maxrss;
    struct task_io_accounting ioac;
    unsigned long long sum_sched_runtime;
};

struct percpu_counter {
    __s64 count;
};

struct mm_struct {
    unsigned long hiwater_rss;
    unsigned long total_vm;
    struct percpu_counter rss_stat[4]; /* from 6.2; see compat.bpf.h */
};

typedef struct {
    unsigned int val;
} kuid_t;

struct cred {
    kuid_t uid;
};

struct kernfs_node {
    __u64 id;
};

struct cgroup;

struct cgroup_subsys_state {
    struct cgroup *cgroup;
    struct cgroup_subsys_state *parent;
};

struct cgroup {
    struct cgroup_subsys_state self;
    struct kernfs_node *kn;
};

struct css_set {
    struct cgroup *dfl_cgrp;
};

typedef struct cpumask {
    unsigned long bits[1];
} cpumask_t;

struct thread_info {
    __u32 cpu; /* from 5.16; see compat.bpf.h */
};

struct task_struct {
    struct thread_info thread_info;
    unsigned int __state;
    unsigned int flags;
    unsigned int on_cpu; /* one byte from 7.2; unsigned, so that the load may shrink */
    int prio;
    struct sched_entity se;
    cpumask_t cpus_mask;
    struct sched_info sched_info;
    struct mm_struct *mm;
    int exit_code;
    unsigned in_iowait : 1;
    int pid, tgid;
    struct task_struct *real_parent;
    struct task_struct *group_leader;
    __u64 utime, stime;
    unsigned long nvcsw, nivcsw;
    __u64 start_boottime;
    unsigned long min_flt, maj_flt;
    const struct cred *cred;
    char comm[16];
    struct signal_struct *signal;
    struct task_io_accounting ioac;
    struct css_set *cgroups;
};

struct bpf_array {
    char value[1];
};

struct sock_common {
    unsigned short skc_family;
};

struct sock {
    struct sock_common __sk_common;
};

struct seq_file;
struct socket;
struct msghdr;

struct bpf_iter_meta {
    struct seq_file *seq;
    __u64 session_id;
    __u64 seq_num;
};

struct bpf_iter__task {
    struct bpf_iter_meta *meta;
    struct task_struct *task;
};

/* Older layouts. CO-RE ignores the suffix after three underscores. */
struct mm_rss_stat___before_6_2 {
    atomic_long_t count[4];
};
struct mm_struct___before_6_2 {
    struct mm_rss_stat___before_6_2 rss_stat;
};
struct task_struct___before_5_16 {
    unsigned int cpu;
};

#pragma clang attribute pop

#endif
