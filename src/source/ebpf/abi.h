/* SPDX-License-Identifier: MIT */
/*
 * The layout of every map that the BPF programs and the reader in user space share. Included by
 * both sides: only fixed-width types, natural alignment, explicit padding.
 */
#ifndef EW_SOURCE_EBPF_ABI_H
#define EW_SOURCE_EBPF_ABI_H

#ifdef __bpf__
typedef __u8 ew_u8;
typedef __u16 ew_u16;
typedef __s16 ew_s16;
typedef __u32 ew_u32;
typedef __s32 ew_s32;
typedef __u64 ew_u64;
#else
#include <stdint.h>
typedef uint8_t ew_u8;
typedef uint16_t ew_u16;
typedef int16_t ew_s16;
typedef uint32_t ew_u32;
typedef int32_t ew_s32;
typedef uint64_t ew_u64;
#endif

enum {
    EW_K_NAME_SIZE = 16,     /* the kernel's TASK_COMM_LEN */
    EW_K_FILTERS_MAX = 16,   /* of names, of uids and of cgroups */
    EW_K_REQUESTS_MAX = 256, /* threads read in one call */
    EW_K_CPUS_MAX = 1024,
    EW_K_STREAM_STEP = 256 * 1024,            /* unread bytes of the stream between two wake-ups */
    EW_K_NOTED_MARGIN_NS = 50 * 1000,         /* CPUs disagree by less about an interval's end */
    EW_K_ANCHOR_PERIOD_NS = 50 * 1000 * 1000, /* a CPU compares its clocks at least this often */
    EW_K_ANCHOR_STEP_NS = 5 * 1000,           /* per period: twice the drift between the clocks */
    /* Entries carry memory only if intervals are at least this long: it lies in three cache lines
     * that a switch does not touch. At higher rates only the threads that are read on demand carry
     * it. */
    EW_K_RSS_INTERVAL_NS = 5 * 1000 * 1000,
    EW_K_CELL_COUNT = 4096, /* 4 bytes each: small enough for the slab, which uses large pages */
    EW_K_CELL_INDEX_BITS = 12,
    EW_K_FAULTS_GAP_NS = 20 * 1000,    /* faults further apart are two events of the stream, */
    EW_K_FAULTS_LONG_NS = 1000 * 1000, /* and so are faults over this time */
    EW_K_FAULTS_THREADS = 8192,
    EW_K_FORMER_MAX = 1024, /* processes with a reused pid and a switch to come */
    EW_K_SEQ_BITS = 22,     /* of a cell: part of the interval's number; the rest is the tid */
};

/* Constant from loading on (.rodata): the verifier removes the branches that are disabled. */
struct ew_k_config {
    ew_u32 all;
    ew_u32 kernel_threads;
    ew_u32 name_count, uid_count, cgroup_count;
    ew_u32 log_mask;      /* entries per CPU - 1 */
    ew_u32 log_wake;      /* unread entries of a CPU that wake the reader */
    ew_u32 life_wake;     /* unread bytes of lifecycle records that do */
    ew_u32 stream_wake;   /* unread bytes of the stream that do */
    ew_u32 stream_all;    /* the stream covers every thread, not only the watched ones */
    ew_u32 with_rss;      /* entries carry memory even in short intervals */
    ew_u32 memory;        /* memory gauges are selected */
    ew_u32 optional;      /* any counter of struct ew_k_optional is selected */
    ew_u32 pmu;           /* enum ew_k_pmu: the available counters */
    ew_u64 rss_period_ns; /* least time between two readings of memory */
    ew_u32 excludes;      /* the map `excluded` is in use */
    ew_u32 want;          /* enum ew_k_want: counters copied in addition to CPU time */
    ew_u32 causes;        /* the stream has the times of page faults, and knows interrupts */
    ew_u32 pad;
    ew_u32 uids[EW_K_FILTERS_MAX];
    /* For a name with '*' or '?', else 0. `names` then has the other bytes; bit n is byte n of it.
     */
    ew_u32 glob_any[EW_K_FILTERS_MAX];   /* '?' */
    ew_u32 glob_stars[EW_K_FILTERS_MAX]; /* '*' before it */
    ew_u32 glob_end[EW_K_FILTERS_MAX];   /* one bit: after the last byte */
    ew_u64 cgroups[EW_K_FILTERS_MAX];
    char names[EW_K_FILTERS_MAX][EW_K_NAME_SIZE];
};

/* Groups of counters that lie together in a task. A group without a selected metric is not read. */
enum ew_k_want {
    EW_K_WANT_MODES = 1, /* user and kernel time */
    EW_K_WANT_SWITCHES = 2,
    EW_K_WANT_RUNQ_WAIT = 4,
    EW_K_WANT_FAULTS = 8,
    EW_K_WANT_IO = 16,
    EW_K_WANT_DISK = 32,
    EW_K_WANT_THREADS = 64,
    EW_K_WANT_SCHEDULING = 128, /* priority and affinity */
};

enum ew_k_pmu {
    EW_K_PMU_CYCLES = 1,
    EW_K_PMU_INSTRUCTIONS = 2,
    EW_K_PMU_CACHE_MISSES = 4,
};

/*
 * Divides raw time into numbered intervals: era[0] applies until at_ns, era[1] from then on.
 * Written by user space, with at_ns in the future; read by each CPU once per interval.
 */
struct ew_k_era {
    ew_u64 base_ns;
    ew_u64 interval_ns;
    ew_u64 base_seq;
};
struct ew_k_clock {
    ew_u64 at_ns;
    struct ew_k_era era[2];
    ew_u64 features; /* enum ew_k_feature; written by ew_read_tasks */
};

/* A watched process after its pid was given to another one. */
struct ew_k_former {
    ew_u64 start_ns;
    ew_u32 pid, pad;
};

/* What the running kernel keeps. Only the relocated programs know it. */
enum ew_k_feature {
    EW_K_HAS_RUNQ_WAIT = 1,
    EW_K_HAS_IO_BYTES = 2,
    EW_K_HAS_DISK_BYTES = 4,
    EW_K_RSS_LAGS = 8, /* resident pages are counted per CPU and added to the total late */
};

/* The positions in one CPU's log. The kernel writes the first cache line, user space the second. */
struct ew_k_head {
    ew_u32 head; /* kernel: entries written so far, mod 2^32 */
    ew_u32 pad0;
    ew_u64 lost; /* kernel: entries dropped because the log was full */
    ew_u64 pad1[6];
    ew_u32 tail; /* user: entries read so far */
    ew_u32 pad2;
    ew_u64 pad3[7];
};

/* SPAN_WAITS: a SPAN of a thread that left the CPU to wait, which counts as voluntary. */
enum ew_k_entry_kind {
    EW_K_OPEN = 1,
    EW_K_SPAN = 2,
    EW_K_FINAL = 3,
    EW_K_AT = 4,
    EW_K_SPAN_WAITS = 5,
};

/* The counters of one thread at one instant, copied from those that the kernel keeps. */
struct ew_k_entry {
    ew_u32 tid, tgid;
    ew_u32 kind;      /* enum ew_k_entry_kind */
    ew_u32 rss_pages; /* of the process; 0: not read */
    ew_u64 t_ns;
    ew_u64 in_ns; /* SPAN, FINAL: on the CPU since; 0 = unknown */
    ew_u64 in_cpu_ns;
    ew_u64 start_ns;
    ew_u64 cpu_ns, utime_ns, stime_ns;
    ew_u64 switches_voluntary, switches_involuntary;
    ew_u64 runq_wait_ns;
    ew_u64 faults_minor, faults_major;
    ew_u64 io_read_bytes, io_write_bytes, io_read_ops, io_write_ops;
    ew_u64 disk_read_bytes, disk_write_bytes;
};

/* Counters that the programs add up per thread, if selected. */
struct ew_k_optional {
    ew_u64 start_ns; /* of the thread */
    ew_u64 net_received_bytes, net_sent_bytes;
    ew_u64 cycles, instructions, cache_misses;
};

/* A thread read on demand: its counters and the gauges of its process. */
struct ew_k_thread {
    struct ew_k_entry entry;                         /* kind 0: the thread has exited */
    ew_u64 rss_pages, rss_peak_pages, virtual_pages; /* all 0: no address space */
    ew_u64 private_pages;                            /* anonymous, resident or swapped out */
    ew_u64 affinity;
    ew_u32 threads;
    ew_s32 priority;
    char name[EW_K_NAME_SIZE];
    struct ew_k_optional optional;
};

/* The thread on a CPU, as of the last run of ew_read_tasks. Kind 0: idle or unknown. */
struct ew_k_running {
    ew_u64 switches;           /* on that CPU since attaching */
    struct ew_k_thread thread; /* in_ns, in_cpu_ns: when it was scheduled */
    /* 0, or: the switch to the thread was missed. It was scheduled after in_ns; cpu_ns is as of
     * this. */
    ew_u64 as_of_ns;
};

enum ew_k_read_flag { EW_K_READ_CLEAR_CELLS = 1 };

/* Argument of ew_read_tasks. */
struct ew_k_read_args {
    ew_u64 request_count;
    ew_u64 cpu_count;
    ew_u64 flags;
};

enum ew_k_life_kind {
    EW_K_LIFE_FORK = 1,
    EW_K_LIFE_EXEC = 2,
    EW_K_LIFE_EXIT = 3,
    EW_K_LIFE_RENAME = 4,
    EW_K_LIFE_SEEN = 5, /* from the task iterator */
    EW_K_LIFE_WAKE = 6, /* no data: the log of a CPU is filling up */
};

struct ew_k_life {
    ew_u32 kind;
    ew_u32 pid, tid, ppid;
    ew_u32 uid, session_id;
    ew_u32 old_tid;
    ew_s32 exit_status; /* as wait() encodes it */
    ew_u64 t_ns;
    ew_u64 start_ns; /* of the process */
    ew_u64 cgroup_id;
    ew_u64 rss_peak_pages; /* EXIT */
    ew_u64 affinity;
    ew_s32 priority;
    ew_u32 kernel_thread;
    char name[EW_K_NAME_SIZE];
};

/* One task, from the task iterator. */
struct ew_k_seed {
    struct ew_k_life life;
    struct ew_k_thread thread; /* of this thread */
    ew_u32 on_cpu;
    ew_u32 pad;
    /* Sum of the exited threads of this process; only in the leader's record. */
    struct ew_k_entry dead;
};

/* Bits of ew_k_event.state that no task state has. */
enum ew_k_state {
    EW_K_STATE_IN_FAULT = 1 << 29,  /* the outgoing thread is handling a page fault */
    EW_K_STATE_THROTTLED = 1 << 30, /* the group of the thread has used up its CPU bandwidth */
};

/* The page faults of a thread that follow each other closely. */
struct ew_k_faults {
    ew_u64 begun_ns; /* of the fault that is being handled, or when its thread was switched in */
    ew_u64 first_ns, last_ns; /* begin of the first fault and end of the last */
    ew_u64 sum_ns;            /* in the handler and on a CPU */
    ew_u32 count;
    ew_u32 in_fault;
};

/* The full stream: one record per event. With the ring buffer's header it fills one cache line. */
struct ew_k_event {
    ew_u64 t_ns;
    ew_u16 kind; /* enum etwatch_event_kind */
    ew_u16 cpu;
    ew_u32 pid, tid;
    ew_u32 other_pid, other_tid;
    ew_u32 state; /* SWITCH, WAKEUP: enum ew_k_state too; FAULTS: ns from the first to the last */
    ew_s16 priority, other_priority;
    ew_u32 detail;             /* EXIT: status as wait() encodes it; WAKEUP: CPU it last ran on;
                                * SWITCH: major faults so far << 1 | waits for a disk;
                                * FAULTS: ns in the fault handler, on a CPU */
    char name[EW_K_NAME_SIZE]; /* of the incoming thread (SWITCH), the child (FORK), else of tid */
};

/* Losses outside of the per-CPU logs. One record per CPU; the reader adds them up. */
struct ew_k_lost {
    ew_u64 life;   /* lifecycle records */
    ew_u64 stream; /* events of the full stream */
    ew_u64 watch;  /* processes not watched because the map was full */
    ew_u64 pad[5];
};

#endif
