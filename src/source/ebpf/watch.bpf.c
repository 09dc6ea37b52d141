/* SPDX-License-Identifier: MIT */
/*
 * The programs that run in the kernel.
 *
 * The kernel already adds up what a thread does (sum_exec_runtime, nvcsw, min_flt, ioac, …), so we
 * add up nothing: we only note those counters at the instants that matter. A thread that gets the
 * CPU for the first time in an interval is noted (OPEN): its counters are still what they were when
 * its last interval ended. A thread that was on the CPU when an interval ended is noted when it
 * leaves (SPAN), with the time it came, so the reader can split its CPU time at the boundary. A
 * thread's last switch is noted (FINAL). Everything else, which is nearly every switch, stores five
 * words into one cache line and returns.
 *
 * No clock is read per switch: the scheduler has just done so (rq->clock); each CPU keeps the
 * difference to the raw clock and renews it when an interval ends. Whether a thread was noted in
 * this interval already is answered by the scheduler's own record of when it last got a CPU. Notes
 * are absolute readings: one too many does no harm.
 *
 * Notes go to a log per CPU that user space maps. Only sched_switch writes there, with interrupts
 * off, so it needs no lock. Lifecycle records come from process context and use a ring buffer.
 */
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "abi.h"
#include "compat.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

const volatile struct ew_k_config config SEC(".rodata") = {};

/* Per CPU. The first line is all that an ordinary switch touches. */
struct cpu_state {
    __u64 offset_ns;     /* raw clock - scheduler clock */
    __u64 end_ns;        /* end of the interval this CPU is in */
    __u64 in_ns;         /* since when the current task is on the CPU */
    __u64 in_cpu_ns;     /* its CPU time then */
    __u64 task;          /* which it is */
    __u64 version;       /* odd while they change; half of it counts the switches */
    __u64 noted_from_ns; /* scheduler clock: who got a CPU after it is noted already */
    __u32 seq;           /* number of the interval */
    __u32 cpu;
    /* Second line: only when something is noted. */
    __u64 now_ns;
    __u64 span_from_ns;
    __u64 span_from_cpu_ns;
    __u64 anchored_ns; /* scheduler clock when offset_ns was last measured */
    __u64 larger;      /* how often in a row it came out larger, and the smallest of those */
    __u64 larger_offset_ns;
    __u64 pad[2];
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, EW_K_CPUS_MAX);
    __type(key, __u32);
    __type(value, struct cpu_state);
} cpus SEC(".maps");

/*
 * For kernels without sched_info: the interval in which a thread was last noted, by tid. A cache,
 * not a table: two threads that share a cell only cause a note too many.
 */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, EW_K_CELL_COUNT);
    __type(key, __u32);
    __type(value, __u32);
} cells SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct ew_k_clock);
} clock SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, EW_K_CPUS_MAX);
    __type(key, __u32);
    __type(value, struct ew_k_head);
} heads SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct ew_k_entry);
} entries SEC(".maps");

/* The task behind each entry of the log; kernel addresses stay in the kernel. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} entry_tasks SEC(".maps");

/* Processes to watch, by pid; the value is the start time, so that a reused pid does not match. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} watched SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 18);
} life SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, EW_K_CPUS_MAX);
    __type(key, __u32);
    __type(value, struct ew_k_lost);
} losses SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, EW_K_SETTLE_MAX);
    __type(key, __u32);
    __type(value, __u64); /* an array map pads its values to 8 bytes anyway */
} requests SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, EW_K_SETTLE_MAX);
    __type(key, __u32);
    __type(value, struct ew_k_settled);
} settled SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, EW_K_CPUS_MAX);
    __type(key, __u32);
    __type(value, struct ew_k_running);
} running SEC(".maps");

#define BARRIER() asm volatile("" ::: "memory")
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

static __always_inline struct ew_k_lost *my_losses(void)
{
    __u32 cpu = bpf_get_smp_processor_id();
    return bpf_map_lookup_elem(&losses, &cpu);
}

/* ------------------------------------------------------------ who is watched */

static __always_inline bool is_watched(struct task_struct *task)
{
    if (config.all)
        return config.kernel_threads || !(task->flags & EW_PF_KTHREAD);
    __u32 pid = (__u32)task->tgid;
    __u64 *start_ns = bpf_map_lookup_elem(&watched, &pid);
    /* 0: put there by the user, who knows the pid only. */
    return start_ns && (*start_ns == 0 || *start_ns == task->group_leader->start_boottime);
}

static __always_inline void watch(struct task_struct *task)
{
    __u32 pid = (__u32)task->tgid;
    __u64 start_ns = task->group_leader->start_boottime;
    if (bpf_map_update_elem(&watched, &pid, &start_ns, BPF_ANY) != 0) {
        struct ew_k_lost *lost = my_losses();
        if (lost)
            lost->watch++;
    }
}

/* "python" matches python, python3.11, python-dbg; not pythonista. See model/name.c. */
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

/* Do the user's rules (names, uids, cgroups; not pids) name this task? */
static __noinline int rules_match(struct task_struct *task)
{
    if (config.name_count) {
        char name[EW_K_NAME_SIZE];
        BPF_CORE_READ_STR_INTO(&name, task, comm);
        for (__u32 i = 0; i < EW_K_FILTERS_MAX && i < config.name_count; i++)
            if (name_matches(name, i))
                return 1;
    }
    if (config.uid_count) {
        __u32 uid = task->cred->uid.val;
        for (__u32 i = 0; i < EW_K_FILTERS_MAX && i < config.uid_count; i++)
            if (config.uids[i] == uid)
                return 1;
    }
    if (config.cgroup_count)
        return in_cgroup(task->cgroups->dfl_cgrp);
    return 0;
}

/* ------------------------------------------------------------------- reading */

/* From a pointer that the verifier trusts: plain loads. */
static __always_inline void read_counters(struct ew_k_entry *entry, struct task_struct *task)
{
    entry->tid = (__u32)task->pid;
    entry->tgid = (__u32)task->tgid;
    entry->start_ns = task->start_boottime;
    entry->cpu_ns = task->se.sum_exec_runtime;
    entry->utime_ns = task->utime;
    entry->stime_ns = task->stime;
    entry->switches_voluntary = task->nvcsw;
    entry->switches_involuntary = task->nivcsw;
    entry->runq_wait_ns =
        bpf_core_field_exists(task->sched_info.run_delay) ? task->sched_info.run_delay : 0;
    entry->faults_minor = task->min_flt;
    entry->faults_major = task->maj_flt;
    if (bpf_core_field_exists(task->ioac.rchar)) {
        entry->io_read_bytes = task->ioac.rchar;
        entry->io_write_bytes = task->ioac.wchar;
        entry->io_read_ops = task->ioac.syscr;
        entry->io_write_ops = task->ioac.syscw;
    }
    if (bpf_core_field_exists(task->ioac.read_bytes)) {
        entry->disk_read_bytes = task->ioac.read_bytes;
        entry->disk_write_bytes = task->ioac.write_bytes;
    }
}

/*
 * From a bare address: through the helper that survives anything. Each call of it costs more than
 * the bytes it copies, so what lies together in the task is taken in one piece and picked apart by
 * the distances that CO-RE supplies.
 */
#define TASK_OFFSET(field) \
    __builtin_preserve_field_info(((struct task_struct *)0)->field, BPF_FIELD_BYTE_OFFSET)

/* The word of `field` in a piece that was copied from `first` on; 0 if it lies outside. */
#define PICK(piece, first, field)                                                              \
    ({                                                                                         \
        __u32 distance_ = TASK_OFFSET(field) - TASK_OFFSET(first);                             \
        distance_ <= sizeof piece - sizeof(__u64) ? *(__u64 *)((char *)piece + distance_) : 0; \
    })

static __always_inline void settle_times(struct ew_k_entry *entry, struct task_struct *task)
{
    __u64 piece[20]; /* utime, stime, …, nvcsw, nivcsw, …, start_boottime, min_flt, maj_flt */
    if (bpf_probe_read_kernel(piece, sizeof piece, (char *)task + TASK_OFFSET(utime)) != 0)
        return;
    entry->utime_ns = PICK(piece, utime, utime);
    entry->stime_ns = PICK(piece, utime, stime);
    entry->switches_voluntary = PICK(piece, utime, nvcsw);
    entry->switches_involuntary = PICK(piece, utime, nivcsw);
    entry->start_ns = PICK(piece, utime, start_boottime);
    entry->faults_minor = PICK(piece, utime, min_flt);
    entry->faults_major = PICK(piece, utime, maj_flt);
}

static __always_inline void settle_io(struct ew_k_entry *entry, struct task_struct *task)
{
    __u64 piece[8];
    if (!bpf_core_field_exists(task->ioac) ||
        bpf_probe_read_kernel(piece, sizeof piece, (char *)task + TASK_OFFSET(ioac)) != 0)
        return;
    if (bpf_core_field_exists(task->ioac.rchar)) {
        entry->io_read_bytes = PICK(piece, ioac, ioac.rchar);
        entry->io_write_bytes = PICK(piece, ioac, ioac.wchar);
        entry->io_read_ops = PICK(piece, ioac, ioac.syscr);
        entry->io_write_ops = PICK(piece, ioac, ioac.syscw);
    }
    if (bpf_core_field_exists(task->ioac.read_bytes)) {
        entry->disk_read_bytes = PICK(piece, ioac, ioac.read_bytes);
        entry->disk_write_bytes = PICK(piece, ioac, ioac.write_bytes);
    }
}

/* 0 if the address is another task's by now. */
static __noinline int settle_task(struct ew_k_settled *out, __u64 address, __u32 tid)
{
    struct task_struct *task = (void *)address;
    struct {
        __u32 pid, tgid; /* neighbours in every kernel */
    } ids;
    if (!out)
        return 0;
    struct ew_k_entry *entry = &out->entry;
    entry->kind = 0;
    if (!task || bpf_probe_read_kernel(&ids, sizeof ids, (char *)task + TASK_OFFSET(pid)) != 0 ||
        ids.pid != tid)
        return 0;
    entry->tid = tid;
    entry->tgid = ids.tgid;
    entry->cpu_ns = BPF_CORE_READ(task, se.sum_exec_runtime);
    settle_times(entry, task);
    settle_io(entry, task);
    if (bpf_core_field_exists(task->sched_info.run_delay))
        entry->runq_wait_ns = BPF_CORE_READ(task, sched_info.run_delay);
    out->priority = BPF_CORE_READ(task, prio) - EW_MAX_RT_PRIO;
    out->affinity = BPF_CORE_READ(task, cpus_mask.bits[0]);
    out->threads = (__u32)BPF_CORE_READ(task, signal, nr_threads);
    bpf_probe_read_kernel(out->name, sizeof out->name, (char *)task + TASK_OFFSET(comm));
    struct mm_struct *mm = BPF_CORE_READ(task, mm);
    out->rss_pages = 0;
    out->rss_peak_pages = 0;
    out->virtual_pages = 0;
    if (mm) {
        out->rss_pages = resident_pages(mm);
        out->rss_peak_pages = BPF_CORE_READ(mm, hiwater_rss);
        out->virtual_pages = BPF_CORE_READ(mm, total_vm);
    }
    entry->kind = EW_K_AT;
    return 1;
}

/* -------------------------------------------------------------- the switch log */

static __always_inline __u32 cell_value(__u32 seq, __u32 tid)
{
    return (seq << (32 - EW_K_SEQ_BITS)) | (tid >> EW_K_CELL_INDEX_BITS);
}

static __always_inline __u32 *cell_of(__u32 tid)
{
    __u32 index = tid & (EW_K_CELL_COUNT - 1);
    return bpf_map_lookup_elem(&cells, &index);
}

static __always_inline void wake_reader(void)
{
    __u32 *record = bpf_ringbuf_reserve(&life, sizeof *record, 0);
    if (record) {
        *record = EW_K_LIFE_WAKE;
        bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
    }
}

/* Appends the counters of task to this CPU's log. */
static __noinline int note(struct cpu_state *state, struct task_struct *task, __u32 kind)
{
    if (!state || !task || task->pid == 0 || !is_watched(task))
        return 0;
    __u32 cpu = state->cpu;
    struct ew_k_head *head = bpf_map_lookup_elem(&heads, &cpu);
    if (!head)
        return 0;
    __u32 unread = head->head - head->tail;
    if (unread > config.log_mask) {
        head->lost++;
        return 0;
    }
    if (unread == config.log_wake)
        wake_reader();
    __u32 index = cpu * (config.log_mask + 1) + (head->head & config.log_mask);
    struct ew_k_entry *entry = bpf_map_lookup_elem(&entries, &index);
    __u64 *address = bpf_map_lookup_elem(&entry_tasks, &index);
    if (!entry || !address)
        return 0;
    *address = (__u64)task;
    entry->kind = kind;
    entry->seq = state->seq;
    entry->t_ns = state->now_ns;
    entry->in_ns = state->span_from_ns;
    entry->in_cpu_ns = state->span_from_cpu_ns;
    read_counters(entry, task);
    BARRIER();
    head->head++;
    return 1;
}

/*
 * Measures how far the scheduler's clock is from the raw clock. They drift apart by some
 * millionths, so this is renewed now and then, not each time. The scheduler read its clock a moment
 * ago; if it then looked for work, or the hypervisor took the CPU away, the moment was long and the
 * difference comes out too large, never too small. So a smaller one is taken at once, a larger one
 * only step by step, and whole if it stays large (a suspend).
 */
static __always_inline void anchor(struct cpu_state *state, __u64 scheduler_ns, bool first)
{
    __u64 offset_ns = bpf_ktime_get_boot_ns() - scheduler_ns;
    __s64 longer_ns = (__s64)(offset_ns - state->offset_ns);
    state->anchored_ns = scheduler_ns;
    state->cpu = bpf_get_smp_processor_id();
    state->larger = longer_ns > EW_K_ANCHOR_STEP_NS ? state->larger + 1 : 0;
    if (state->larger <= 1 || offset_ns < state->larger_offset_ns)
        state->larger_offset_ns = offset_ns;
    if (first || longer_ns <= EW_K_ANCHOR_STEP_NS)
        state->offset_ns = offset_ns;
    else if (state->larger < 16)
        state->offset_ns += EW_K_ANCHOR_STEP_NS;
    else
        state->offset_ns = state->larger_offset_ns;
}

/* The interval that raw time falls in becomes this CPU's interval. */
static __noinline int enter_interval(struct cpu_state *state, __u64 scheduler_ns)
{
    __u32 zero = 0;
    struct ew_k_clock *cut = bpf_map_lookup_elem(&clock, &zero);
    if (!state || !cut)
        return 0;
    bool first = state->anchored_ns == 0;
    if (first || scheduler_ns - state->anchored_ns > 50 * 1000 * 1000ULL)
        anchor(state, scheduler_ns, first);
    __u64 now_ns = scheduler_ns + state->offset_ns;
    struct ew_k_era *era = now_ns >= cut->at_ns ? &cut->era[1] : &cut->era[0];
    __u64 interval_ns = era->interval_ns;
    if (interval_ns == 0 || now_ns < era->base_ns)
        return 0;
    __u64 count = (now_ns - era->base_ns) / interval_ns;
    __u64 end_ns = era->base_ns + (count + 1) * interval_ns;
    if (now_ns < cut->at_ns && end_ns > cut->at_ns)
        end_ns = cut->at_ns;
    state->seq = (__u32)(era->base_seq + count);
    state->end_ns = end_ns;
    __u64 margin_ns = interval_ns / 64;
    if (margin_ns < EW_K_NOTED_MARGIN_NS)
        margin_ns = EW_K_NOTED_MARGIN_NS;
    /* In the interval in which we came, nobody was noted before us. */
    state->noted_from_ns =
        first ? scheduler_ns : era->base_ns + count * interval_ns - state->offset_ns + margin_ns;
    return 0;
}

static __always_inline __u64 scheduler_clock(struct task_struct *task)
{
    if (bpf_core_field_exists(task->se.cfs_rq) && bpf_core_field_exists(((struct cfs_rq *)0)->rq))
        return task->se.cfs_rq->rq->clock;
    return bpf_ktime_get_boot_ns();
}

/*
 * Was this task noted in this CPU's interval already, before it gets the CPU? The scheduler keeps
 * when a task last got one (last_arrival), in a line it is about to write anyway. CPUs disagree by
 * some µs about when an interval ended, and a task noted by none of them would stay unnoted for a
 * whole interval; so arrivals right after an end are taken for unknown: a note too many does no
 * harm. Kernels without that field have the cells.
 */
static __always_inline bool noted_already(struct cpu_state *state, struct task_struct *task)
{
    if (bpf_core_field_exists(task->sched_info.last_arrival))
        return task->sched_info.last_arrival > state->noted_from_ns;
    __u32 tid = (__u32)task->pid;
    __u32 *cell = cell_of(tid);
    __u32 value = cell_value(state->seq, tid);
    if (!cell || *cell == value)
        return true;
    *cell = value;
    return false;
}

/* The rare half of a switch: the CPU is in a new interval, or prev will never run again. */
static __noinline int note_prev(struct cpu_state *state, struct task_struct *prev, bool dead)
{
    if (!state || !prev || prev->pid == 0)
        return 0;
    note(state, prev, dead ? EW_K_FINAL : EW_K_SPAN);
    return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(ew_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
    __u32 cpu = bpf_get_smp_processor_id();
    struct cpu_state *state = bpf_map_lookup_elem(&cpus, &cpu);
    if (!state)
        return 0;
    __u64 scheduler_ns = scheduler_clock(prev);
    __u64 now_ns = scheduler_ns + state->offset_ns;
    bool crossed = now_ns >= state->end_ns;
    bool dead = prev->__state == EW_TASK_DEAD;
    bool missed = state->task != (__u64)prev;
    if (UNLIKELY(crossed || dead || missed)) {
        /*
         * If somebody else should be here, a switch was skipped: prev came at some time after the
         * last one that was seen, and what it had used by then is not known.
         */
        state->span_from_ns = state->in_ns;
        state->span_from_cpu_ns = missed ? 0 : state->in_cpu_ns;
        if (crossed)
            enter_interval(state, scheduler_ns);
        now_ns = scheduler_ns + state->offset_ns;
        state->now_ns = now_ns;
        note_prev(state, prev, dead && !preempt);
    }
    state->version++;
    BARRIER();
    state->in_ns = now_ns;
    state->in_cpu_ns = next->se.sum_exec_runtime;
    state->task = (__u64)next;
    BARRIER();
    state->version++;
    if (LIKELY(noted_already(state, next)))
        return 0;
    state->now_ns = now_ns;
    state->span_from_ns = 0;
    note(state, next, EW_K_OPEN);
    return 0;
}

/* ---------------------------------------------------------------------- settle */

/* As is_watched, for an address that the verifier knows nothing of. */
static __always_inline bool address_watched(struct task_struct *task, __u32 pid)
{
    if (config.all)
        return config.kernel_threads || !(BPF_CORE_READ(task, flags) & EW_PF_KTHREAD);
    __u64 *start_ns = bpf_map_lookup_elem(&watched, &pid);
    return start_ns &&
           (*start_ns == 0 || *start_ns == BPF_CORE_READ(task, group_leader, start_boottime));
}

/*
 * These three are not static: a global function is verified once, by itself. As part of the loops
 * below they would be verified once per round, which is more than the verifier has patience for.
 */

__noinline int settle_cpu(__u32 cpu)
{
    struct cpu_state *state = bpf_map_lookup_elem(&cpus, &cpu);
    struct ew_k_running *out = bpf_map_lookup_elem(&running, &cpu);
    if (!state || !out)
        return 0;
    __u64 version = *(volatile __u64 *)&state->version;
    BARRIER();
    __u64 in_ns = *(volatile __u64 *)&state->in_ns;
    __u64 in_cpu_ns = *(volatile __u64 *)&state->in_cpu_ns;
    __u64 task = *(volatile __u64 *)&state->task;
    BARRIER();
    out->switches = version / 2;
    out->settled.entry.kind = 0;
    if (task == 0 || (version & 1))
        return 0;
    __u32 tid = (__u32)BPF_CORE_READ((struct task_struct *)task, pid);
    if (tid == 0 || !settle_task(&out->settled, task, tid))
        return 0;
    out->settled.entry.in_ns = in_ns;
    out->settled.entry.in_cpu_ns = in_cpu_ns;
    BARRIER();
    /* It left while we looked: whatever is to be said of it is in the log. */
    if (*(volatile __u64 *)&state->version != version ||
        !address_watched((struct task_struct *)task, out->settled.entry.tgid))
        out->settled.entry.kind = 0;
    return 1;
}

__noinline int settle_request(__u32 i)
{
    __u64 *index = bpf_map_lookup_elem(&requests, &i);
    struct ew_k_settled *out = bpf_map_lookup_elem(&settled, &i);
    if (!index || !out)
        return 0;
    out->entry.kind = 0;
    __u32 at = (__u32)*index;
    __u64 *address = bpf_map_lookup_elem(&entry_tasks, &at);
    struct ew_k_entry *entry = bpf_map_lookup_elem(&entries, &at);
    if (!address || !entry)
        return 0;
    __u64 start_ns = entry->start_ns;
    if (settle_task(out, *address, entry->tid) && out->entry.start_ns != start_ns)
        out->entry.kind = 0;
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

/*
 * Run by the reader, on demand: reads the tasks behind some entries of the log and those on the
 * CPUs now. It runs under RCU, so a task that was in the log a moment ago may be dead but is still
 * memory of its kind; pid and start time are checked.
 */
SEC("raw_tp/sys_enter")
int ew_settle(__u64 *args)
{
    __u64 request_count = args[0], cpu_count = args[1], flags = args[2];
    report_features();
    for (__u32 i = 0; i < EW_K_SETTLE_MAX && i < request_count; i++)
        settle_request(i);
    for (__u32 i = 0; i < EW_K_CPUS_MAX && i < cpu_count; i++)
        settle_cpu(i);
    if (flags & EW_K_SETTLE_CLEAR_CELLS)
        for (__u32 i = 0; i < EW_K_CELL_COUNT; i++)
            clear_cell(i);
    return 0;
}

/* ------------------------------------------------------------------- lifecycle */

static __always_inline void describe(struct ew_k_life *record, __u32 kind, struct task_struct *task)
{
    struct task_struct *leader = task->group_leader;
    record->kind = kind;
    record->pid = (__u32)task->tgid;
    record->tid = (__u32)task->pid;
    record->ppid = (__u32)task->real_parent->tgid;
    record->uid = task->cred->uid.val;
    record->session_id = (__u32)BPF_CORE_READ(task, signal, pids[EW_PIDTYPE_SID], numbers[0].nr);
    record->old_tid = 0;
    record->exit_status = 0;
    record->t_ns = bpf_ktime_get_boot_ns();
    record->start_ns = leader->start_boottime;
    record->cgroup_id = 0;
    if (bpf_core_field_exists(task->cgroups))
        record->cgroup_id = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
    record->rss_peak_pages = 0;
    record->affinity = task->cpus_mask.bits[0];
    record->priority = task->prio - EW_MAX_RT_PRIO;
    record->kernel_thread = (task->flags & EW_PF_KTHREAD) != 0;
    BPF_CORE_READ_STR_INTO(&record->name, task, comm);
}

static __always_inline __u64 life_flags(void)
{
    return bpf_ringbuf_query(&life, BPF_RB_AVAIL_DATA) > config.life_wake ? BPF_RB_FORCE_WAKEUP
                                                                          : BPF_RB_NO_WAKEUP;
}

static __always_inline struct ew_k_life *life_begin(__u32 kind, struct task_struct *task)
{
    struct ew_k_life *record = bpf_ringbuf_reserve(&life, sizeof *record, 0);
    if (!record) {
        struct ew_k_lost *lost = my_losses();
        if (lost)
            __sync_fetch_and_add(&lost->life, 1);
        return 0;
    }
    describe(record, kind, task);
    return record;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(ew_fork, struct task_struct *parent, struct task_struct *child)
{
    if (child->pid != child->tgid)
        return 0;
    if (!config.all) {
        /* Descendants are followed, however they were made; others may be named by a rule. */
        if (!is_watched(parent) && !rules_match(child))
            return 0;
        watch(child);
    } else if (!is_watched(child)) {
        return 0;
    }
    struct ew_k_life *record = life_begin(EW_K_LIFE_FORK, child);
    if (record)
        bpf_ringbuf_submit(record, life_flags());
    return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(ew_exec, struct task_struct *task, int old_pid)
{
    __u32 kind = EW_K_LIFE_EXEC;
    if (!is_watched(task)) {
        if (config.all || !rules_match(task))
            return 0;
        watch(task);
        kind = EW_K_LIFE_SEEN;
    }
    struct ew_k_life *record = life_begin(kind, task);
    if (!record)
        return 0;
    record->old_tid = old_pid != task->pid ? (__u32)old_pid : 0;
    bpf_ringbuf_submit(record, life_flags());
    return 0;
}

SEC("tp_btf/task_rename")
int BPF_PROG(ew_rename, struct task_struct *task, const char *name)
{
    /* An exec renames too, and reports itself; threads' names are read when they are settled. */
    if (task->pid != task->tgid || !is_watched(task))
        return 0;
    struct ew_k_life *record = life_begin(EW_K_LIFE_RENAME, task);
    if (!record)
        return 0;
    bpf_probe_read_kernel_str(record->name, sizeof record->name, name);
    bpf_ringbuf_submit(record, life_flags());
    return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(ew_exit, struct task_struct *task)
{
    struct signal_struct *signal = task->signal;
    if (signal->live.counter != 0 || !is_watched(task))
        return 0;
    struct ew_k_life *record = life_begin(EW_K_LIFE_EXIT, task);
    if (!record)
        return 0;
    record->exit_status = signal->flags & EW_SIGNAL_GROUP_EXIT ? signal->group_exit_code
                                                               : task->group_leader->exit_code;
    record->rss_peak_pages = signal->maxrss;
    bpf_ringbuf_submit(record, life_flags());
    return 0;
}

SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(ew_cgroup_attach, struct cgroup *group, const char *path, struct task_struct *task)
{
    if (config.all || is_watched(task) || !in_cgroup(group))
        return 0;
    watch(task);
    struct ew_k_life *record = life_begin(EW_K_LIFE_SEEN, task);
    if (record)
        bpf_ringbuf_submit(record, life_flags());
    return 0;
}

/* ------------------------------------------------------------------------ seed */

/* Is any ancestor watched? Parents may come after their children in the iteration. */
static __noinline int ancestor_watched(struct task_struct *task)
{
    struct task_struct *at = task;
    for (int depth = 0; depth < 64; depth++) {
        at = BPF_CORE_READ(at, real_parent);
        __u32 pid = at ? (__u32)BPF_CORE_READ(at, tgid) : 0;
        if (pid <= 1)
            return 0;
        if (bpf_map_lookup_elem(&watched, &pid))
            return 1;
    }
    return 0;
}

/*
 * A CPU on which nothing has switched since we attached does not know whom it runs. The raw time at
 * which the task's CPU time was last brought up to date follows from exec_start and the offset that
 * another CPU has measured; both clocks are the same everywhere on machines worth the name.
 */
static __noinline int adopt_running(struct task_struct *task)
{
    __u32 here = bpf_get_smp_processor_id(), cpu = task_cpu(task);
    struct cpu_state *mine = bpf_map_lookup_elem(&cpus, &here);
    struct cpu_state *state = bpf_map_lookup_elem(&cpus, &cpu);
    if (!mine || !state || mine->offset_ns == 0 || state->version != 0 || task->pid == 0)
        return 0;
    state->in_ns = task->se.exec_start + mine->offset_ns;
    state->in_cpu_ns = task->se.sum_exec_runtime;
    if (__sync_val_compare_and_swap(&state->version, 0, 2) == 0)
        state->task = (__u64)task;
    else
        state->in_ns = 0; /* it switched meanwhile, and we may have spoilt what it wrote: unknown */
    return 0;
}

static __always_inline void read_dead(struct ew_k_entry *dead, struct signal_struct *signal)
{
    dead->cpu_ns = signal->sum_sched_runtime;
    dead->utime_ns = signal->utime;
    dead->stime_ns = signal->stime;
    dead->switches_voluntary = signal->nvcsw;
    dead->switches_involuntary = signal->nivcsw;
    dead->faults_minor = signal->min_flt;
    dead->faults_major = signal->maj_flt;
    if (bpf_core_field_exists(signal->ioac.rchar)) {
        dead->io_read_bytes = signal->ioac.rchar;
        dead->io_write_bytes = signal->ioac.wchar;
        dead->io_read_ops = signal->ioac.syscr;
        dead->io_write_ops = signal->ioac.syscw;
    }
    if (bpf_core_field_exists(signal->ioac.read_bytes)) {
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
    if (!config.all && !is_watched(task) && (rules_match(task) || ancestor_watched(task)))
        watch(task);
    if (!is_watched(task))
        return 0;
    describe(&seed->life, EW_K_LIFE_SEEN, task);
    settle_task(&seed->settled, (__u64)task, (__u32)task->pid);
    seed->settled.entry.t_ns = seed->life.t_ns;
    seed->on_cpu = (__u32)task->on_cpu;
    if (task->pid == task->tgid)
        read_dead(&seed->dead, task->signal);
    bpf_seq_write(ctx->meta->seq, seed, sizeof *seed);
    return 0;
}

#include "stream.h"
