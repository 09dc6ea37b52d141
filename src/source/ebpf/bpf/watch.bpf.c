/* SPDX-License-Identifier: MIT */
/*
 * The BPF programs.
 *
 * The kernel already keeps the counters of a thread (sum_exec_runtime, nvcsw, min_flt, ioac, …), so
 * the programs add up nothing: they copy these counters to a log at certain instants. A thread that
 * is scheduled for the first time in an interval gets an entry (OPEN): its counters are still those
 * of the end of its last interval. A thread that was on the CPU when an interval ended gets one
 * when it is switched out (SPAN), with the time it was scheduled, so that the reader can divide its
 * CPU time at the boundary. The last switch of a thread writes an entry (FINAL). All other
 * switches, nearly all, store five words into one cache line and return.
 *
 * No clock is read per switch: the scheduler has just read one (rq->clock); each CPU keeps its
 * difference to the raw clock and measures it again when an interval ends. Whether a thread has an
 * entry in this interval is known from the time at which the scheduler last gave it a CPU. Entries
 * are absolute readings: an unnecessary one does no harm.
 *
 * Each CPU has a log, which user space maps. Only sched_switch writes to it, with interrupts
 * disabled, so it needs no lock. Lifecycle records come from process context and use a ring buffer.
 */
#include "kernel_types.bpf.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "../abi.h"
#include "compat.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

const volatile struct ew_k_config config SEC(".rodata") = {};

/* Per CPU. An ordinary switch touches the first cache line only, an entry also the second. */
struct cpu_state {
    __u64 offset_ns; /* raw clock - scheduler clock */
    __u64 end_ns;    /* end of the interval this CPU is in */
    __u64 in_ns;     /* when the current task was scheduled */
    __u64 in_cpu_ns; /* its CPU time at that moment */
    __u64 task;      /* the current task */
    __u64 version;   /* odd while the three above change; half of it is the number of switches */
    __u64 noted_from_ns; /* scheduler clock: a task scheduled after it has an entry already */
    __u64 rq;            /* address of the run queue; 0: unknown */
    /* Second cache line. */
    __u64 now_ns;
    __u64 span_from_ns;
    __u64 span_from_cpu_ns;
    __u32 head;        /* of this CPU's log */
    __u32 tail;        /* a lower bound of the reader's position; updated when the log seems full */
    __u64 rss_ns;      /* entries of the interval with this time carry resident memory */
    __u64 steady_ns;   /* until then intervals follow each other without a change, */
    __u32 step_ns;     /* and are this long */
    __u32 seq;         /* number of the interval */
    __u64 anchored_ns; /* scheduler clock when offset_ns was last measured */
    /* Third cache line: only when the offset is measured. */
    __u64 cpu;
    __u64 larger; /* measurements in a row with a larger offset, and the smallest of them */
    __u64 larger_offset_ns;
    __u64 pad[5];
};

/* Room to align the state to a cache line: the values of an array map are not aligned. */
struct cpu_cell {
    __u8 room[sizeof(struct cpu_state) + 64];
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, EW_K_CPUS_MAX);
    __type(key, __u32);
    __type(value, struct cpu_cell);
} cpus SEC(".maps");

/*
 * For kernels without sched_info: the interval in which a thread last got an entry, by tid. A
 * cache: two threads that share a cell only cause unnecessary entries.
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

/* The task of each log entry. Not mapped: kernel addresses stay in the kernel. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} entry_tasks SEC(".maps");

/* Watched processes by pid. The value is the start time, so that a reused pid does not match. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} watched SEC(".maps");

/*
 * Watched processes with a pid that was reused before their last switch: the parent may reap a
 * process and fork again while the process still has to leave its CPU, and its last entry follows.
 */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, EW_K_FORMER_MAX);
    __type(key, struct ew_k_former);
    __type(value, __u32);
} former SEC(".maps");

/* Watched processes without entries, likewise. Written by user space, which evaluates the filter.
 */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} excluded SEC(".maps");

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
    __uint(max_entries, EW_K_REQUESTS_MAX);
    __type(key, __u32);
    __type(value, __u64); /* array maps pad values to 8 bytes */
} requests SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, EW_K_REQUESTS_MAX);
    __type(key, __u32);
    __type(value, struct ew_k_thread);
} threads SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, EW_K_CPUS_MAX);
    __type(key, __u32);
    __type(value, struct ew_k_running);
} running SEC(".maps");

#define HAS_LAST_ARRIVAL bpf_core_field_exists(((struct task_struct *)0)->sched_info.last_arrival)
#define BARRIER() asm volatile("" ::: "memory")
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

static __always_inline struct cpu_state *state_of(__u32 cpu)
{
    struct cpu_cell *cell = bpf_map_lookup_elem(&cpus, &cpu);
    __u32 begins =
        __builtin_preserve_field_info(((struct bpf_array *)0)->value, BPF_FIELD_BYTE_OFFSET);
    /* A multiple of 8: a verifier that does not know the number can still see the alignment. */
    return cell ? (struct cpu_state *)(cell->room + (-begins & 56)) : 0;
}

static __always_inline struct ew_k_lost *my_losses(void)
{
    __u32 cpu = bpf_get_smp_processor_id();
    return bpf_map_lookup_elem(&losses, &cpu);
}

#include "filter.bpf.h"
#include "optional_counters.bpf.h"
#include "read_task.bpf.h"

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

/*
 * Is there room for an entry? The reader's position is in another CPU's cache: it is read
 * only if the log seems half full without it.
 */
static __always_inline bool has_room(struct cpu_state *state, struct ew_k_head *head)
{
    if (LIKELY(state->head - state->tail < config.log_wake))
        return true;
    state->tail = head->tail;
    __u32 unread = state->head - state->tail;
    if (unread == config.log_wake)
        wake_reader();
    if (unread > config.log_mask)
        head->lost++;
    return unread <= config.log_mask;
}

/* Appends the counters of task to this CPU's log. */
static __noinline int note(struct cpu_state *state, struct task_struct *task, __u32 kind)
{
    if (!state || !task || !is_watched(task) || is_excluded(task))
        return 0;
    __u32 cpu = bpf_get_smp_processor_id();
    struct ew_k_head *head = bpf_map_lookup_elem(&heads, &cpu);
    if (!head || !has_room(state, head))
        return 0;
    __u32 index = cpu * (config.log_mask + 1) + (state->head & config.log_mask);
    struct ew_k_entry *entry = bpf_map_lookup_elem(&entries, &index);
    __u64 *address = bpf_map_lookup_elem(&entry_tasks, &index);
    if (!entry || !address)
        return 0;
    *address = (__u64)task;
    entry->kind = kind;
    entry->rss_pages = state->rss_ns <= state->end_ns ? noted_rss(task) : 0;
    entry->t_ns = state->now_ns;
    entry->in_ns = state->span_from_ns;
    entry->in_cpu_ns = state->span_from_cpu_ns;
    read_counters(entry, task);
    /* A leader that exits because another thread executes a program has swapped tids with it. */
    if (kind == EW_K_FINAL && task->pid != task->tgid &&
        task->start_boottime == walkable(task)->group_leader->start_boottime)
        entry->tid = entry->tgid;
    if (config.optional)
        note_optional(index, task, kind == EW_K_FINAL);
    BARRIER();
    head->head = ++state->head;
    return 1;
}

/*
 * Measures the difference between the scheduler clock and the raw clock. They drift apart by some
 * parts per million, so this is done now and then. The scheduler has read its clock a moment ago;
 * if it then searched for work, or the hypervisor stopped the CPU, the difference is measured too
 * large, never too small. So a smaller one is taken at once, a larger one in small steps, and as a
 * whole if it stays large (a suspend).
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

/* When entries next carry memory, after begin_ns; the largest value means never. */
static __always_inline __u64 next_rss_ns(__u64 begin_ns, __u64 interval_ns)
{
    if (!config.memory || (!config.with_rss && interval_ns < EW_K_RSS_INTERVAL_NS))
        return ~0ULL;
    return (begin_ns / config.rss_period_ns + 1) * config.rss_period_ns;
}

/* Sets this CPU's interval to the one that contains the current time. */
static __noinline int find_interval(struct cpu_state *state, __u64 scheduler_ns)
{
    __u32 zero = 0;
    struct ew_k_clock *cut = bpf_map_lookup_elem(&clock, &zero);
    if (!state || !cut)
        return 0;
    bool first = state->anchored_ns == 0;
    if (first || scheduler_ns - state->anchored_ns > EW_K_ANCHOR_PERIOD_NS)
        anchor(state, scheduler_ns, first);
    __u64 now_ns = scheduler_ns + state->offset_ns;
    __u64 cut_ns = cut->at_ns;
    struct ew_k_era *era = now_ns >= cut_ns ? &cut->era[1] : &cut->era[0];
    __u64 interval_ns = era->interval_ns;
    if (interval_ns == 0 || now_ns < era->base_ns)
        return 0;
    __u64 count = (now_ns - era->base_ns) / interval_ns;
    __u64 begin_ns = era->base_ns + count * interval_ns;
    __u64 end_ns = begin_ns + interval_ns;
    if (now_ns < cut_ns && end_ns > cut_ns)
        end_ns = cut_ns;
    state->seq = (__u32)(era->base_seq + count);
    state->end_ns = end_ns;
    state->rss_ns = next_rss_ns(begin_ns, interval_ns);
    __u64 margin_ns = interval_ns / 64;
    if (margin_ns < EW_K_NOTED_MARGIN_NS)
        margin_ns = EW_K_NOTED_MARGIN_NS;
    /* In the interval in which the programs were attached, no thread has an earlier entry. */
    state->noted_from_ns = first ? scheduler_ns : begin_ns - state->offset_ns + margin_ns;
    bool steady = !first && now_ns >= cut_ns && interval_ns < EW_K_ANCHOR_PERIOD_NS;
    state->steady_ns = steady ? now_ns + EW_K_ANCHOR_PERIOD_NS : 0;
    state->step_ns = (__u32)interval_ns;
    return 0;
}

/*
 * An interval has ended. Usually the next one has begun, and no division or lookup is
 * needed. A change of the interval is announced further ahead than steady_ns reaches: see source.h.
 */
static __always_inline void enter_interval(struct cpu_state *state, __u64 scheduler_ns)
{
    __u64 now_ns = scheduler_ns + state->offset_ns, step_ns = state->step_ns;
    if (now_ns >= state->steady_ns) {
        find_interval(state, scheduler_ns);
        return;
    }
    __u64 past_ns = now_ns - state->end_ns;
    __u64 skipped = UNLIKELY(past_ns >= step_ns) ? past_ns / step_ns : 0;
    __u64 begin_ns = state->end_ns + skipped * step_ns;
    if (UNLIKELY(state->rss_ns <= begin_ns))
        state->rss_ns = next_rss_ns(begin_ns, step_ns);
    state->end_ns = begin_ns + step_ns;
    state->noted_from_ns += (skipped + 1) * step_ns;
    state->seq += skipped + 1;
}

static __always_inline __u64 run_queue_of(struct task_struct *task)
{
    if (bpf_core_field_exists(task->se.cfs_rq) && bpf_core_field_exists(((struct cfs_rq *)0)->rq))
        return (__u64)walkable(task)->se.cfs_rq->rq;
    return 0;
}

/*
 * The scheduler clock, as the scheduler has just read it. Reaching it through the idle task costs
 * two cache lines that are otherwise unused, so the address of the run queue is remembered where a
 * bare address can be read.
 */
static __always_inline __u64 scheduler_clock(struct cpu_state *state, struct task_struct *task)
{
#ifdef EW_TYPED
    if (LIKELY(state->rq != 0)) {
        struct rq *rq = bpf_rdonly_cast((void *)state->rq, bpf_core_type_id_kernel(struct rq));
        return rq->clock;
    }
#endif
    if (bpf_core_field_exists(task->se.cfs_rq) && bpf_core_field_exists(((struct cfs_rq *)0)->rq))
        return walkable(task)->se.cfs_rq->rq->clock;
    return bpf_ktime_get_boot_ns();
}

/*
 * Does this task, which is being scheduled, have an entry in this CPU's interval? The scheduler
 * keeps the time at which a task last got a CPU (last_arrival), in a cache line that it is about to
 * write. CPUs disagree by some µs about the end of an interval, and a task that gets an entry on
 * none of them would have none for a whole interval; so a time right after an end counts as
 * unknown: an unnecessary entry does no harm. Kernels without that field use the cells.
 */
static __always_inline bool noted_already(struct cpu_state *state, struct task_struct *task)
{
    if (HAS_LAST_ARRIVAL)
        return task->sched_info.last_arrival > state->noted_from_ns;
    __u32 tid = (__u32)task->pid;
    __u32 *cell = cell_of(tid);
    __u32 value = cell_value(state->seq, tid);
    if (!cell || *cell == value)
        return true;
    *cell = value;
    return false;
}

/* The rare part of a switch: a new interval has begun, or prev has exited. */
static __noinline int note_prev(struct cpu_state *state, struct task_struct *prev, bool preempt)
{
    if (!state || !prev || (prev->flags & EW_PF_IDLE) != 0)
        return 0;
    /* The rule by which the kernel counts the switch as voluntary. */
    __u32 kind = preempt || prev->__state == 0 ? EW_K_SPAN : EW_K_SPAN_WAITS;
    note(state, prev, !preempt && prev->__state == EW_TASK_DEAD ? EW_K_FINAL : kind);
    return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(ew_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
    __u32 cpu = bpf_get_smp_processor_id();
    struct cpu_state *state = state_of(cpu);
    if (!state)
        return 0;
    __u64 scheduler_ns = scheduler_clock(state, prev);
    __u64 now_ns = scheduler_ns + state->offset_ns;
    bool crossed = now_ns >= state->end_ns;
    bool dead = prev->__state == EW_TASK_DEAD;
    bool missed = state->task != (__u64)prev;
    if (UNLIKELY(crossed || dead || missed)) {
        /*
         * If another task should be current, a switch was missed: prev was scheduled some time
         * after the last one that was seen, and its CPU time at that moment is unknown.
         */
        state->span_from_ns = state->in_ns;
        state->span_from_cpu_ns = missed ? 0 : state->in_cpu_ns;
        if (crossed) {
            enter_interval(state, scheduler_ns);
            if (state->rq == 0)
                state->rq = run_queue_of(prev);
        }
        now_ns = scheduler_ns + state->offset_ns;
        state->now_ns = now_ns;
        note_prev(state, prev, preempt);
    }
    /* The idle task never gets an entry, so its cache lines are not fetched. */
    bool idle = (next->flags & EW_PF_IDLE) != 0;
    state->version++;
    BARRIER();
    state->in_ns = now_ns;
    state->in_cpu_ns = idle ? 0 : next->se.sum_exec_runtime;
    state->task = (__u64)next;
    BARRIER();
    state->version++;
    if (idle || LIKELY(noted_already(state, next)))
        return 0;
    state->now_ns = now_ns;
    state->span_from_ns = 0;
    note(state, next, EW_K_OPEN);
    return 0;
}

#include "lifecycle.bpf.h"
#include "read_running.bpf.h"
#include "sched_stream.bpf.h"
#include "seed.bpf.h"
