/* SPDX-License-Identifier: MIT */
/*
 * What the programs in the kernel and the reader in user space say to each other: the layout of
 * every map. Included by both sides; only fixed-width types, natural alignment, no padding that
 * the compiler would have to invent.
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
    EW_K_NAME_SIZE = 16,   /* the kernel's TASK_COMM_LEN */
    EW_K_FILTERS_MAX = 16, /* names, uids, cgroups: each */
    EW_K_SETTLE_MAX = 256, /* entries settled in one call */
    EW_K_CPUS_MAX = 1024,
    EW_K_STREAM_STEP = 256 * 1024,            /* unread bytes of the stream between two wake-ups */
    EW_K_NOTED_MARGIN_NS = 50 * 1000,         /* more than CPUs disagree about an interval's end */
    EW_K_ANCHOR_PERIOD_NS = 50 * 1000 * 1000, /* a CPU looks at the clocks at least so often */
    EW_K_ANCHOR_STEP_NS = 5 * 1000,           /* per period: twice what clocks drift apart */
    /* Memory is noted in intervals at least this long. It lies in three lines that a switch does
     * not touch; at higher rates it comes with each settling only. */
    EW_K_RSS_INTERVAL_NS = 5 * 1000 * 1000,
    EW_K_CELL_COUNT = 4096, /* 4 bytes each: small enough to come from the slab, in large pages */
    EW_K_CELL_INDEX_BITS = 12,
    EW_K_SEQ_BITS = 22, /* a cell holds this much of the interval's number, the rest is the tid */
};

/* Fixed before loading (.rodata): the verifier drops the branches that are switched off. */
struct ew_k_config {
    ew_u32 all;
    ew_u32 kernel_threads;
    ew_u32 name_count, uid_count, cgroup_count;
    ew_u32 log_mask;      /* entries per CPU - 1 */
    ew_u32 log_wake;      /* this many unread entries on a CPU wake the reader */
    ew_u32 life_wake;     /* this many unread bytes of lifecycle records do, and */
    ew_u32 stream_wake;   /* this many of the stream */
    ew_u32 stream_all;    /* the stream tells of every thread, not only of those watched */
    ew_u32 with_rss;      /* memory is noted however short the interval */
    ew_u32 memory;        /* gauges of memory are wanted, */
    ew_u32 optional;      /* anything of struct ew_k_extra is wanted */
    ew_u32 pmu;           /* enum ew_k_pmu: the counters that there are */
    ew_u64 rss_period_ns; /* noted with switches so far apart at least */
    ew_u32 excludes;      /* some processes are not noted: see the map excluded */
    ew_u32 want;          /* enum ew_k_want: what is copied beside the CPU time */
    ew_u32 uids[EW_K_FILTERS_MAX];
    /* Of a name with '*' or '?', else 0. names then has the other bytes; bits are places in it. */
    ew_u32 glob_any[EW_K_FILTERS_MAX];   /* '?' */
    ew_u32 glob_stars[EW_K_FILTERS_MAX]; /* '*' before it */
    ew_u32 glob_end[EW_K_FILTERS_MAX];   /* one bit: behind the last */
    ew_u64 cgroups[EW_K_FILTERS_MAX];
    char names[EW_K_FILTERS_MAX][EW_K_NAME_SIZE];
};

/* What lies together in a task, or is written together. What nobody wants is not even read. */
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
 * How raw time is cut into numbered intervals: era[0] until at_ns, era[1] from then on. Written by
 * user space, with at_ns in the future; read by each CPU once per interval.
 */
struct ew_k_era {
    ew_u64 base_ns;
    ew_u64 interval_ns;
    ew_u64 base_seq;
};
struct ew_k_clock {
    ew_u64 at_ns;
    struct ew_k_era era[2];
    ew_u64 features; /* enum ew_k_feature; written by the settle program */
};

/* What the running kernel keeps; CO-RE knows it only in the kernel. */
enum ew_k_feature {
    EW_K_HAS_RUNQ_WAIT = 1,
    EW_K_HAS_IO_BYTES = 2,
    EW_K_HAS_DISK_BYTES = 4,
    EW_K_RSS_LAGS = 8, /* resident pages are counted per CPU and folded in late */
};

/* Where the log of one CPU stands. The two halves are written by different sides. */
struct ew_k_head {
    ew_u32 head; /* kernel: entries ever written, mod 2^32 */
    ew_u32 pad0;
    ew_u64 lost; /* kernel: entries that found the log full */
    ew_u64 pad1[6];
    ew_u32 tail; /* user: entries taken */
    ew_u32 pad2;
    ew_u64 pad3[7];
};

enum ew_k_entry_kind { EW_K_OPEN = 1, EW_K_SPAN = 2, EW_K_FINAL = 3, EW_K_AT = 4 };

/* The counters of one thread at one instant, copied from what the kernel keeps anyway. */
struct ew_k_entry {
    ew_u32 tid, tgid;
    ew_u32 kind;      /* enum ew_k_entry_kind */
    ew_u32 rss_pages; /* of its process; 0: not read */
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

/* What is added up only if asked for, by thread. */
struct ew_k_extra {
    ew_u64 start_ns; /* of the thread */
    ew_u64 net_received_bytes, net_sent_bytes;
    ew_u64 cycles, instructions, cache_misses;
};

/* An entry read on demand, with the gauges of its process. */
struct ew_k_settled {
    struct ew_k_entry entry;                         /* kind 0: the thread is gone */
    ew_u64 rss_pages, rss_peak_pages, virtual_pages; /* all 0: no memory of its own */
    ew_u64 private_pages;                            /* anonymous, in memory or swapped out */
    ew_u64 affinity;
    ew_u32 threads;
    ew_s32 priority;
    char name[EW_K_NAME_SIZE];
    struct ew_k_extra optional;
};

/* Who is on a CPU, as of the settle call. tid 0: nobody, or not known. */
struct ew_k_running {
    ew_u64 switches;             /* ever seen on that CPU */
    struct ew_k_settled settled; /* in_ns, in_cpu_ns: since when */
    /* 0, or the switch to it was skipped: it came after in_ns, and its cpu_ns is as of this. */
    ew_u64 as_of_ns;
};

enum ew_k_settle_flag { EW_K_SETTLE_CLEAR_CELLS = 1 };

/* Argument of the settle program: how many of the requests, which CPUs. */
struct ew_k_settle_args {
    ew_u64 request_count;
    ew_u64 cpu_count;
    ew_u64 flags;
};

enum ew_k_life_kind {
    EW_K_LIFE_FORK = 1,
    EW_K_LIFE_EXEC = 2,
    EW_K_LIFE_EXIT = 3,
    EW_K_LIFE_RENAME = 4,
    EW_K_LIFE_SEEN = 5, /* from the seed iterator */
    EW_K_LIFE_WAKE = 6, /* carries nothing: the log of a CPU is filling up */
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

/* One task as the seed iterator found it. */
struct ew_k_seed {
    struct ew_k_life life;
    struct ew_k_settled settled; /* of this thread */
    ew_u32 on_cpu;
    ew_u32 pad;
    /* Of the threads of this process that have ended; only in the leader's record. */
    struct ew_k_entry dead;
};

/* The full stream: one record an event; with the ring's own header it fills one line of cache. */
struct ew_k_event {
    ew_u64 t_ns;
    ew_u16 kind; /* enum etwatch_event_kind */
    ew_u16 cpu;
    ew_u32 pid, tid;
    ew_u32 other_pid, other_tid;
    ew_u32 state;
    ew_s16 priority, other_priority;
    ew_u32 detail;             /* EXIT: status as wait() encodes it; WAKEUP: where it last ran;
                                * SWITCH: hard faults so far, above a bit: it waits for a disk */
    char name[EW_K_NAME_SIZE]; /* of who comes (SWITCH), of the child (FORK), else of tid */
};

/* Losses that happen outside of the per-CPU logs; one record per CPU, added up by the reader. */
struct ew_k_lost {
    ew_u64 life;   /* lifecycle records */
    ew_u64 stream; /* events of the full stream */
    ew_u64 watch;  /* processes that should be watched but found the set full */
    ew_u64 pad[5];
};

#endif
