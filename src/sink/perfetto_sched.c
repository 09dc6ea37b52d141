/* SPDX-License-Identifier: MIT */
/*
 * Scheduler events in a Perfetto trace: one bundle per CPU, as ftrace delivers them.
 *
 * If the outgoing thread of a switch is the one that the last switch on its CPU switched in, the
 * switch uses the compact form: columns of numbers that contain only the incoming thread. Any other
 * switch (the first one, and the first after a loss) is written in full. So every switch can be
 * restored exactly, and most take a few bytes. Columns are collected per CPU in fixed memory and
 * become a packet when they are full or at a flush. The hot path allocates nothing.
 */
#include <string.h>

#include "base/alloc.h"
#include "sink/perfetto.h"

/* Two bits per process: the trace describes it; its name was written by put_name. */
enum process_mark { DESCRIBED, NAMED };

enum {
    EVENTS_BYTES = 32 * 1024,
    BATCH = 1024,
    NAMES_MAX = 256,
    NAME_CELLS = 512,
    NAME_SIZE = 16,
    THREAD_CELLS = 1 << 14,
    PROCESS_BYTES = 1 << 17
};

/* One packed column. Numbers in it take at most five bytes; a new bundle starts before times take
 * more.
 */
struct column {
    uint32_t len;
    char bytes[BATCH * 5 + 16];
};

struct ew_pf_cpu {
    uint32_t next_tid; /* the running thread, by the last switch */
    bool known;
    uint64_t seen_ns; /* when it was last seen to run */
    uint32_t switches, wakings;
    uint64_t switch_ns, waking_ns; /* of the last event in the bundle */
    struct column switch_time, prev_state, next_pid, next_prio, next_comm;
    struct column waking_time, waking_pid, waking_cpu, waking_prio, waking_comm;
    uint32_t name_count;
    char names[NAMES_MAX][NAME_SIZE];
    uint16_t cells[NAME_CELLS]; /* hash of a name: its index + 1 */
    struct ew_buf events;       /* events without a compact form */
};

static inline void put(struct column *column, uint64_t value)
{
    column->len = (uint32_t)(ew_proto_raw(column->bytes + column->len, value) - column->bytes);
}

/* -------------------------------------------------------------------- names */

static uint32_t hash_name(const char name[NAME_SIZE])
{
    uint64_t a, b;
    memcpy(&a, name, 8);
    memcpy(&b, name + 8, 8);
    uint64_t h = (a ^ (b << 1 | b >> 63)) * UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(h >> 55) % NAME_CELLS;
}

/* The index of a name in the bundle's table; the table must have room for one more. */
static uint32_t intern(struct ew_pf_cpu *cpu, const char *text)
{
    char name[NAME_SIZE] = {0};
    size_t len = text != NULL ? strnlen(text, NAME_SIZE - 1) : 0;
    if (len > 0)
        memcpy(name, text, len);
    uint32_t i = hash_name(name);
    for (; cpu->cells[i] != 0; i = (i + 1) % NAME_CELLS)
        if (memcmp(cpu->names[cpu->cells[i] - 1], name, NAME_SIZE) == 0)
            return cpu->cells[i] - 1u;
    memcpy(cpu->names[cpu->name_count], name, NAME_SIZE);
    cpu->cells[i] = (uint16_t)++cpu->name_count;
    return cpu->name_count - 1;
}

/* ------------------------------------------------------------------- bundles */

static void put_column(struct ew_buf *out, uint32_t field, struct column *column)
{
    if (column->len > 0)
        ew_proto_bytes(out, field, column->bytes, column->len);
    column->len = 0;
}

static void put_compact(struct ew_buf *out, struct ew_pf_cpu *cpu)
{
    if (cpu->switches == 0 && cpu->wakings == 0)
        return;
    size_t mark = ew_proto_begin(out, EW_PF_BUNDLE_COMPACT);
    for (uint32_t i = 0; i < cpu->name_count; i++)
        ew_proto_text(out, EW_PF_INTERN_TABLE, cpu->names[i]);
    put_column(out, EW_PF_SWITCH_TIME, &cpu->switch_time);
    put_column(out, EW_PF_SWITCH_PREV_STATE, &cpu->prev_state);
    put_column(out, EW_PF_SWITCH_NEXT_PID, &cpu->next_pid);
    put_column(out, EW_PF_SWITCH_NEXT_PRIO, &cpu->next_prio);
    put_column(out, EW_PF_SWITCH_NEXT_COMM, &cpu->next_comm);
    put_column(out, EW_PF_WAKING_TIME, &cpu->waking_time);
    put_column(out, EW_PF_WAKING_PID, &cpu->waking_pid);
    put_column(out, EW_PF_WAKING_CPU, &cpu->waking_cpu);
    put_column(out, EW_PF_WAKING_PRIO, &cpu->waking_prio);
    put_column(out, EW_PF_WAKING_COMM, &cpu->waking_comm);
    ew_proto_end(out, mark);
}

static void flush_cpu(struct ew_pf_sink *sink, uint32_t number)
{
    struct ew_pf_cpu *cpu = sink->cpus[number];
    struct ew_buf *out = &sink->packets;
    if (cpu == NULL || (cpu->switches == 0 && cpu->wakings == 0 && cpu->events.len == 0))
        return;
    size_t packet = ew_proto_begin(out, EW_PF_TRACE_PACKET);
    ew_proto_u64(out, EW_PF_SEQUENCE_ID, EW_PF_SEQUENCE + 1 + number);
    size_t bundle = ew_proto_begin(out, sink->etw ? EW_PF_ETW_EVENTS : EW_PF_FTRACE_EVENTS);
    ew_proto_u64(out, EW_PF_BUNDLE_CPU, number);
    if (sink->stream_lost && !sink->etw)
        ew_proto_u64(out, EW_PF_BUNDLE_LOST, 1);
    ew_buf_bytes(out, cpu->events.data, cpu->events.len);
    put_compact(out, cpu);
    ew_proto_end(out, bundle);
    ew_proto_end(out, packet);
    cpu->switches = cpu->wakings = cpu->name_count = 0;
    memset(cpu->cells, 0, sizeof cpu->cells);
    if (cpu->events.error != 0 && sink->base.out.error == 0)
        sink->base.out.error = cpu->events.error;
    cpu->events.len = 0;
    ew_pf_pack(sink, false);
}

void ew_pf_sched_flush(struct ew_pf_sink *sink)
{
    for (uint32_t i = 0; i < sink->cpu_count; i++)
        flush_cpu(sink, i);
    sink->stream_lost = false;
}

void ew_pf_sched_done(struct ew_pf_sink *sink)
{
    for (uint32_t i = 0; i < sink->cpu_count; i++) {
        if (sink->cpus[i] != NULL)
            ew_buf_done(&sink->cpus[i]->events);
        ew_free(sink->cpus[i]);
        sink->cpus[i] = NULL;
    }
    sink->cpu_count = 0;
    ew_free(sink->threads);
    ew_free(sink->processes);
    sink->threads = NULL;
    sink->processes = NULL;
}

static struct ew_pf_cpu *cpu_of(struct ew_pf_sink *sink, uint32_t number)
{
    if (number >= EW_PF_CPUS_MAX)
        return NULL;
    if (sink->cpus[number] != NULL)
        return sink->cpus[number];
    struct ew_pf_cpu *cpu = ew_calloc(1, sizeof *cpu);
    if (cpu == NULL) {
        sink->base.out.error = ETWATCH_ENOMEM;
        return NULL;
    }
    ew_buf_init(&cpu->events, 0, NULL, NULL);
    sink->cpus[number] = cpu;
    if (sink->cpu_count <= number)
        sink->cpu_count = number + 1;
    return cpu;
}

struct ew_buf *ew_pf_etw_events(struct ew_pf_sink *sink, uint32_t number)
{
    struct ew_pf_cpu *cpu = cpu_of(sink, number);
    sink->etw = true;
    if (cpu != NULL && cpu->events.len > EVENTS_BYTES)
        flush_cpu(sink, number);
    return cpu == NULL ? NULL : &cpu->events;
}

/* ------------------------------------------------------------------- threads */

static inline struct ew_pf_thread *cell_of(const struct ew_pf_sink *sink, uint32_t tid)
{
    return &sink->threads[(tid * 2654435761u) >> 18];
}

/* Whether the process (or its name, by put_name) was already written; sets the bit. */
static bool mark_process(struct ew_pf_sink *sink, uint32_t pid, enum process_mark mark)
{
    uint32_t at = pid % (PROCESS_BYTES * 4) * 2 + mark;
    uint8_t *byte = &sink->processes[at / 8], bit = (uint8_t)(1u << at % 8);
    bool known = (*byte & bit) != 0;
    *byte |= bit;
    return known;
}

static bool make_tables(struct ew_pf_sink *sink)
{
    if (sink->threads == NULL)
        sink->threads = ew_calloc(THREAD_CELLS, sizeof *sink->threads);
    if (sink->processes == NULL)
        sink->processes = ew_calloc(PROCESS_BYTES, 1);
    if (sink->threads == NULL || sink->processes == NULL)
        sink->base.out.error = ETWATCH_ENOMEM;
    return sink->threads != NULL && sink->processes != NULL;
}

static uint64_t name_track(uint32_t pid)
{
    return EW_PF_NAME_TRACK + pid * UINT64_C(32);
}

uint64_t ew_pf_take_uuid(struct ew_pf_sink *sink, uint32_t pid, uint32_t tid, bool preexisting)
{
    /* Perfetto treats two tracks with the same pid as two processes. */
    if (preexisting && tid == 0 && sink->processes != NULL && mark_process(sink, pid, DESCRIBED) &&
        mark_process(sink, pid, NAMED))
        return name_track(pid);
    uint64_t uuid = sink->next_uuid;
    sink->next_uuid += 32;
    return uuid;
}

/* The name of a process that is not monitored. Not written to the process tree: without its parent
 * it would be a different process there. */
static void put_name(struct ew_pf_sink *sink, uint32_t pid, const char *name, uint64_t t_ns)
{
    struct ew_buf *out = &sink->packets;
    (void)mark_process(sink, pid, NAMED);
    size_t packet = ew_pf_packet(sink, t_ns);
    size_t track = ew_proto_begin(out, EW_PF_TRACK_DESCRIPTOR);
    ew_proto_u64(out, EW_PF_TRACK_UUID, name_track(pid));
    size_t process = ew_proto_begin(out, EW_PF_TRACK_PROCESS);
    ew_proto_u64(out, 1, pid);
    ew_proto_text(out, 6, name);
    ew_proto_end(out, process);
    ew_proto_end(out, track);
    ew_proto_end(out, packet);
}

static void put_thread(struct ew_pf_sink *sink, uint32_t pid, uint32_t tid, const char *name,
                       uint64_t t_ns)
{
    struct ew_buf *out = &sink->packets;
    size_t packet = ew_proto_begin(out, EW_PF_TRACE_PACKET);
    ew_proto_u64(out, EW_PF_TIMESTAMP, t_ns - sink->unix_minus_boot_ns);
    size_t tree = ew_proto_begin(out, EW_PF_PROCESS_TREE);
    size_t thread = ew_proto_begin(out, 2);
    ew_proto_u64(out, 1, tid);
    if (name != NULL)
        ew_proto_text(out, 2, name);
    ew_proto_u64(out, 3, pid);
    ew_proto_end(out, thread);
    ew_proto_end(out, tree);
    ew_proto_end(out, packet);
}

/* A hash collision only costs a repeated packet. names_follow: later events have the name of the
 * thread. Then it is not written here, because a reader would keep it when the thread changes it.
 */
static inline void describe_thread(struct ew_pf_sink *sink, uint32_t pid, uint32_t tid,
                                   const char *name, bool names_follow, uint64_t t_ns)
{
    if (tid == 0)
        return;
    struct ew_pf_thread *cell = cell_of(sink, tid);
    bool same = cell->tid == tid && cell->pid == pid;
    if (same && (cell->named || name == NULL))
        return;
    /* The tid has a new owner: waiting events belong to the old one and must precede. */
    if (cell->tid == tid && !same)
        ew_pf_sched_flush(sink);
    cell->tid = tid;
    cell->pid = pid;
    cell->named = name != NULL;
    if (pid == tid && name != NULL && !mark_process(sink, pid, DESCRIBED))
        put_name(sink, pid, name, t_ns);
    put_thread(sink, pid, tid, names_follow && pid != tid ? NULL : name, t_ns);
}
_Static_assert((int)THREAD_CELLS == 1 << (32 - 18), "the hash fits the table");

void ew_pf_thread(struct ew_pf_sink *sink, uint32_t pid, uint32_t tid, const char *name,
                  uint64_t t_ns)
{
    if (make_tables(sink))
        describe_thread(sink, pid, tid, name, false, t_ns);
}

void ew_pf_name(struct etwatch_sink *base, uint32_t pid, const char *name)
{
    struct ew_pf_sink *sink = (struct ew_pf_sink *)base;
    ew_pf_begin(sink);
    if (make_tables(sink))
        describe_thread(sink, pid, pid, name, true, sink->meta.anchor_unix_ns);
}

void ew_pf_process_described(struct ew_pf_sink *sink, uint32_t pid)
{
    if (make_tables(sink))
        (void)mark_process(sink, pid, DESCRIBED);
}

void ew_pf_thread_described(struct ew_pf_sink *sink, uint32_t pid, uint32_t tid)
{
    if (!make_tables(sink))
        return;
    cell_of(sink, tid)->tid = tid;
    cell_of(sink, tid)->pid = pid;
    cell_of(sink, tid)->named = true;
    (void)mark_process(sink, pid, DESCRIBED);
}

static void note_start(struct ew_pf_sink *sink, const struct etwatch_event *e)
{
    struct ew_pf_thread *cell = cell_of(sink, e->next_tid);
    cell->started_tid = e->next_tid;
    cell->started_ns = e->t_ns;
    if (e->next_pid == e->next_tid)
        (void)mark_process(sink, e->next_pid, DESCRIBED);
}

uint64_t ew_pf_start_of(const struct ew_pf_sink *sink, uint32_t tid, uint64_t start_ns)
{
    if (sink->threads == NULL || tid == 0)
        return start_ns;
    const struct ew_pf_thread *cell = cell_of(sink, tid);
    return cell->started_tid == tid && cell->started_ns > start_ns ? cell->started_ns : start_ns;
}

/* -------------------------------------------------------------------- events */

static uint64_t prio(int32_t priority)
{
    return (uint64_t)((int64_t)priority + EW_PF_PRIO_BASE);
}

/* The state of the outgoing thread, as encoded by ftrace. */
static uint32_t report_state(const struct etwatch_event *e)
{
    if (e->state == 0)
        return EW_PF_STATE_PREEMPTED;
    if ((e->state & EW_PF_KERNEL_DEAD) != 0)
        return e->pid == e->tid ? EW_PF_STATE_ZOMBIE : EW_PF_STATE_DEAD;
    if ((e->state & EW_PF_KERNEL_IDLE) == EW_PF_KERNEL_IDLE)
        return EW_PF_KERNEL_DEAD; /* ftrace's number for idle */
    uint32_t known = e->state & EW_PF_KERNEL_REPORTED, highest = 0x40;
    while (highest > known && highest > 0)
        highest >>= 1;
    return highest;
}

static size_t begin_event(struct ew_pf_cpu *cpu, uint64_t t_ns, uint32_t tid, uint32_t kind,
                          size_t *ret_inner)
{
    size_t mark = ew_proto_begin(&cpu->events, EW_PF_BUNDLE_EVENT);
    ew_proto_u64(&cpu->events, EW_PF_FTRACE_TIME, t_ns);
    ew_proto_u64(&cpu->events, EW_PF_FTRACE_PID, tid);
    *ret_inner = ew_proto_begin(&cpu->events, kind);
    return mark;
}

static void end_event(struct ew_pf_cpu *cpu, size_t mark, size_t inner)
{
    ew_proto_end(&cpu->events, inner);
    ew_proto_end(&cpu->events, mark);
}

static void put_text(struct ew_buf *out, uint32_t field, const char *text)
{
    if (text != NULL)
        ew_proto_text(out, field, text);
}

static void put_switch(struct ew_pf_cpu *cpu, const struct etwatch_event *e, uint64_t t_ns)
{
    struct ew_buf *out = &cpu->events;
    size_t inner, mark = begin_event(cpu, t_ns, e->tid, EW_PF_FTRACE_SWITCH, &inner);
    put_text(out, 1, e->name);
    ew_proto_u64(out, 2, e->tid);
    ew_proto_u64(out, 3, prio(e->priority));
    ew_proto_u64(out, 4, report_state(e));
    put_text(out, 5, e->next_name);
    ew_proto_u64(out, 6, e->next_tid);
    ew_proto_u64(out, 7, prio(e->next_priority));
    end_event(cpu, mark, inner);
}

/* The running thread was switched out without an event: Linux does not report some switches to any
 * tracer, and events can be lost. A reader needs one that ends its slice. It is written right after
 * the thread was last seen to run, because it ran at least until then, and is marked as not
 * observed (the outgoing thread has no priority), so that it counts as no event. */
static void put_gap(struct ew_pf_cpu *cpu, const struct etwatch_event *e, uint64_t t_ns)
{
    struct ew_buf *out = &cpu->events;
    uint64_t gap_ns = cpu->seen_ns < t_ns ? cpu->seen_ns + 1 : t_ns;
    size_t inner, mark = begin_event(cpu, gap_ns, cpu->next_tid, EW_PF_FTRACE_SWITCH, &inner);
    ew_proto_u64(out, 2, cpu->next_tid);
    ew_proto_u64(out, 4, 1); /* asleep: it is woken before it runs again */
    put_text(out, 5, e->name);
    ew_proto_u64(out, 6, e->tid);
    ew_proto_u64(out, 7, prio(e->priority));
    end_event(cpu, mark, inner);
}

static void add_switch(struct ew_pf_cpu *cpu, const struct etwatch_event *e, uint64_t t_ns)
{
    bool fits_column = e->next_priority >= -EW_PF_PRIO_BASE;
    if (cpu->known && cpu->next_tid != e->tid)
        put_gap(cpu, e, t_ns);
    cpu->seen_ns = t_ns;
    if (!cpu->known || cpu->next_tid != e->tid || !fits_column) {
        put_switch(cpu, e, t_ns);
        cpu->known = true;
    } else {
        put(&cpu->switch_time, cpu->switches == 0 ? t_ns : t_ns - cpu->switch_ns);
        put(&cpu->prev_state, report_state(e));
        put(&cpu->next_pid, e->next_tid);
        put(&cpu->next_prio, prio(e->next_priority));
        put(&cpu->next_comm, intern(cpu, e->next_name));
        cpu->switch_ns = t_ns;
        cpu->switches++;
    }
    cpu->next_tid = e->next_tid;
    /* The last switch of the thread: its end is written one nanosecond later. A reader that
     * processed the end first would create a new thread for the outgoing one. */
    if ((e->state & EW_PF_KERNEL_DEAD) != 0 && e->state != EW_PF_KERNEL_IDLE) {
        size_t inner, mark = begin_event(cpu, t_ns + 1, e->tid, EW_PF_FTRACE_FREE, &inner);
        put_text(&cpu->events, 1, e->name);
        ew_proto_u64(&cpu->events, 2, e->tid);
        ew_proto_u64(&cpu->events, 3, prio(e->priority));
        end_event(cpu, mark, inner);
    }
}

/* The compact form implies that the waker is the running thread, so that must be known. */
static void add_wakeup(struct ew_pf_cpu *cpu, const struct etwatch_event *e, uint64_t t_ns)
{
    bool fits_column = e->priority >= -EW_PF_PRIO_BASE;
    if (cpu->known && cpu->next_tid == e->next_tid)
        cpu->seen_ns = t_ns;
    if (!cpu->known || cpu->next_tid != e->next_tid || !fits_column) {
        size_t inner, mark = begin_event(cpu, t_ns, e->next_tid, EW_PF_FTRACE_WAKING, &inner);
        put_text(&cpu->events, 1, e->name);
        ew_proto_u64(&cpu->events, 2, e->tid);
        ew_proto_u64(&cpu->events, 3, prio(e->priority));
        ew_proto_u64(&cpu->events, 4, 1);
        if (e->target_cpu != UINT32_MAX)
            ew_proto_u64(&cpu->events, 5, e->target_cpu);
        end_event(cpu, mark, inner);
        return;
    }
    put(&cpu->waking_time, cpu->wakings == 0 ? t_ns : t_ns - cpu->waking_ns);
    put(&cpu->waking_pid, e->tid);
    put(&cpu->waking_cpu, e->target_cpu == UINT32_MAX ? e->cpu : e->target_cpu);
    put(&cpu->waking_prio, prio(e->priority));
    put(&cpu->waking_comm, intern(cpu, e->name));
    cpu->waking_ns = t_ns;
    cpu->wakings++;
}

/* On Linux a process has the id of its first thread. On Windows it has not, and task_newtask would
 * create a process with that id. */
static bool starts_windows_process(const struct etwatch_event *e)
{
    return e->kind == ETWATCH_EVENT_FORK && e->next_pid != e->pid && e->next_pid != e->next_tid;
}

static void put_fork(struct ew_pf_cpu *cpu, const struct etwatch_event *e, uint64_t t_ns)
{
    struct ew_buf *out = &cpu->events;
    size_t inner, mark = begin_event(cpu, t_ns, e->tid, EW_PF_FTRACE_FORK, &inner);
    put_text(out, 1, e->name);
    ew_proto_u64(out, 2, e->tid);
    put_text(out, 3, e->next_name);
    ew_proto_u64(out, 4, e->next_tid);
    end_event(cpu, mark, inner);
}

static void add_lifecycle(struct ew_pf_cpu *cpu, const struct etwatch_event *e, uint64_t t_ns)
{
    struct ew_buf *out = &cpu->events;
    size_t inner, mark;
    switch (e->kind) {
    case ETWATCH_EVENT_FORK:
        mark = begin_event(cpu, t_ns, e->tid, EW_PF_FTRACE_NEWTASK, &inner);
        ew_proto_u64(out, 1, e->next_tid);
        put_text(out, 2, e->next_name != NULL ? e->next_name : e->name);
        /* The only known flag of clone. */
        ew_proto_u64(out, 3, e->next_pid == e->pid ? EW_PF_CLONE_THREAD : 0);
        break;
    case ETWATCH_EVENT_EXEC:
        mark = begin_event(cpu, t_ns, e->tid, EW_PF_FTRACE_EXEC, &inner);
        put_text(out, 1, e->name);
        ew_proto_u64(out, 2, e->tid);
        ew_proto_u64(out, 3, e->tid);
        break;
    case ETWATCH_EVENT_EXIT:
        mark = begin_event(cpu, t_ns, e->tid, EW_PF_FTRACE_EXIT, &inner);
        put_text(out, 1, e->name);
        ew_proto_u64(out, 2, e->tid);
        ew_proto_u64(out, 3, e->pid);
        ew_proto_u64(out, 4, prio(e->priority));
        break;
    default:
        return;
    }
    end_event(cpu, mark, inner);
}

/* Columns have room for BATCH numbers, and times except the first must fit in five bytes: a step
 * back or a long pause starts a new bundle. */
static bool fits(const struct ew_pf_cpu *cpu, uint64_t t_ns)
{
    bool full = cpu->switches == BATCH || cpu->wakings == BATCH || cpu->name_count == NAMES_MAX ||
                cpu->events.len > EVENTS_BYTES;
    bool switch_far = cpu->switches > 0 && t_ns - cpu->switch_ns > UINT32_MAX;
    bool waking_far = cpu->wakings > 0 && t_ns - cpu->waking_ns > UINT32_MAX;
    return !full && !switch_far && !waking_far;
}

void ew_pf_event(struct etwatch_sink *base, const struct etwatch_event *e)
{
    struct ew_pf_sink *sink = (struct ew_pf_sink *)base;
    uint64_t t_ns = e->t_ns - sink->unix_minus_boot_ns;
    struct ew_pf_cpu *cpu = cpu_of(sink, e->cpu);
    if (cpu == NULL)
        return;
    ew_pf_begin(sink);
    if (sink->threads == NULL && !make_tables(sink))
        return;
    if (!fits(cpu, t_ns))
        flush_cpu(sink, e->cpu);
    describe_thread(sink, e->pid, e->tid, e->name, true, e->t_ns);
    if (e->kind == ETWATCH_EVENT_SWITCH) {
        describe_thread(sink, e->next_pid, e->next_tid, e->next_name, true, e->t_ns);
        add_switch(cpu, e, t_ns);
    } else if (e->kind == ETWATCH_EVENT_WAKEUP) {
        add_wakeup(cpu, e, t_ns);
    } else if (starts_windows_process(e)) {
        describe_thread(sink, e->next_pid, e->next_tid, e->next_name, true, e->t_ns);
        put_fork(cpu, e, t_ns);
    } else {
        add_lifecycle(cpu, e, t_ns);
    }
    if (e->kind == ETWATCH_EVENT_FORK)
        note_start(sink, e);
}
