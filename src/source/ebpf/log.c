/* SPDX-License-Identifier: MIT */
/*
 * Reads the logs of the CPUs, and the threads with later counters than the logs have.
 *
 * An entry has a thread's counters at the moment when it was first scheduled in an interval, or
 * when it was switched out after the end of an interval. What it did after its last entry is in no
 * log. For those threads, and for those on a CPU now, the program ew_read_tasks reads the counters
 * from the kernel. This order keeps the result exact while everything runs on:
 *
 *   1. deliver all entries;
 *   2. read the threads that have entries since the last drain, and the thread on each CPU;
 *   3. deliver the entries written meanwhile. They precede the readings of step 2, so a thread that
 * began a new interval before it was read has its old interval closed first;
 *   4. deliver CPU time of running threads up to the horizon, unless an entry of step 3 ends that
 * run;
 *   5. deliver the readings of the other threads.
 *
 * A thread with an entry in step 3 is read in the next round of 2 to 5.
 *
 * A thread that executes a program becomes the leader: its later entries carry another tid. The
 * exec record comes some time after that. To keep the two threads apart, an exec is delivered in
 * its place among the entries, and entries with the tid of an exited leader are not delivered
 * before it. Nothing is lost by that: readings are absolute.
 */
#include <string.h>

#include "base/alloc.h"
#include "source/ebpf/ebpf.h"

enum { ROUNDS_MAX = 64 };

/* When the interval that t_ns falls in began. */
static uint64_t interval_begin(const struct ew_ebpf_source *source, uint64_t t_ns)
{
    const struct ew_k_clock *clock = source->object.clock;
    const struct ew_k_era *era = t_ns >= clock->at_ns ? &clock->era[1] : &clock->era[0];
    if (t_ns < era->base_ns || era->interval_ns == 0)
        return 0;
    return t_ns - (t_ns - era->base_ns) % era->interval_ns;
}

/* ------------------------------------------------------------- threads that ran */

static uint32_t *find_cell(struct ew_ebpf_source *source, uint32_t tid)
{
    uint32_t at = (tid * 2654435761u) & source->active_index_mask;
    while (source->active_index[at] != 0 && source->active[source->active_index[at] - 1].tid != tid)
        at = (at + 1) & source->active_index_mask;
    return &source->active_index[at];
}

static struct ew_ebpf_active *find_active(struct ew_ebpf_source *source, uint32_t tid)
{
    if (source->active_count == 0)
        return NULL;
    uint32_t position = *find_cell(source, tid);
    return position == 0 ? NULL : &source->active[position - 1];
}

static void index_active(struct ew_ebpf_source *source)
{
    memset(source->active_index, 0,
           ((size_t)source->active_index_mask + 1) * sizeof *source->active_index);
    for (uint32_t i = 0; i < source->active_count; i++)
        *find_cell(source, source->active[i].tid) = i + 1;
}

static int grow_active(struct ew_ebpf_source *source)
{
    uint32_t size = source->active_size == 0 ? 256 : source->active_size * 2;
    struct ew_ebpf_active *active = ew_realloc_array(source->active, size, sizeof *active);
    if (active == NULL)
        return ETWATCH_ENOMEM;
    source->active = active;
    uint32_t *index = ew_calloc((size_t)size * 2, sizeof *index);
    if (index == NULL)
        return ETWATCH_ENOMEM;
    ew_free(source->active_index);
    source->active_index = index;
    source->active_index_mask = size * 2 - 1;
    source->active_size = size;
    index_active(source);
    return 0;
}

/* NULL: no memory. */
static struct ew_ebpf_active *add_active(struct ew_ebpf_source *source, uint32_t tid)
{
    if (source->active_count == source->active_size && grow_active(source) != 0)
        return find_active(source, tid);
    uint32_t *cell = find_cell(source, tid);
    if (*cell == 0) {
        source->active[source->active_count] = (struct ew_ebpf_active){.tid = tid};
        *cell = ++source->active_count;
    }
    return &source->active[*cell - 1];
}

/*
 * A thread with an entry in the current interval may run on without another entry: it is read
 * again in the next drain. The others are dropped.
 */
static void forget_active(struct ew_ebpf_source *source, uint64_t horizon_ns)
{
    if (source->active_count == 0)
        return;
    uint64_t begin_ns = interval_begin(source, horizon_ns);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < source->active_count; i++)
        if (!source->active[i].over && source->active[i].noted_ns >= begin_ns)
            source->active[kept++] = source->active[i];
    source->active_count = kept;
    index_active(source);
}

/* --------------------------------------------------------------------- entries */

static void deliver_entry(struct ew_ebpf_source *source, const struct ew_k_entry *entry)
{
    /* Reused: clearing it took longer than filling it. All other fields stay zero. */
    struct ew_reading *reading = &source->entry_reading;
    reading->pid = entry->tgid;
    reading->tid = entry->tid;
    reading->start_ns = ew_ebpf_start(entry->start_ns);
    reading->t_ns = entry->t_ns;
    switch (entry->kind) {
    case EW_K_OPEN:
        reading->kind = EW_READING_OPEN;
        reading->ran_from_ns = 0;
        reading->ran_from_cpu_ns = 0;
        reading->left = EW_LEFT_NOT;
        break;
    case EW_K_SPAN:
    case EW_K_SPAN_WAITS:
    case EW_K_FINAL:
        /* A run with an unknown start (the first switch of a CPU) is a plain reading. */
        reading->kind = entry->kind == EW_K_FINAL ? EW_READING_FINAL
                        : entry->in_ns == 0       ? EW_READING_AT
                                                  : EW_READING_SPAN;
        reading->ran_from_ns = entry->in_ns == 0 ? entry->t_ns : entry->in_ns;
        reading->ran_from_cpu_ns = entry->in_ns == 0 ? entry->cpu_ns : entry->in_cpu_ns;
        reading->left = entry->kind == EW_K_SPAN ? EW_LEFT_PREEMPTED : EW_LEFT_WAITING;
        break;
    default:
        source->undecoded++;
        return;
    }
    ew_ebpf_counters(&source->units, entry, entry->cpu_ns, &reading->counter_has, reading->counter);
    if (source->optional)
        reading->counter_has |= ew_ebpf_optional_counters(
            &source->object.optional,
            &source->object.entry_optionals[entry - source->object.entries], reading->counter);
    reading->gauge_has = entry->rss_pages != 0 ? EW_HAS_G(rss_bytes) : 0;
    reading->gauge[EW_G_rss_bytes] = entry->rss_pages * source->units.page_bytes;
    source->facts->reading(source->facts->ctx, reading);
}

/* Does this entry have the tid of an exited leader, before the exec that reuses it? */
static bool leader_gone(const struct ew_ebpf_source *source, const struct ew_k_entry *entry)
{
    uint32_t cell = entry->tgid % EW_EBPF_GONE_CELLS;
    return entry->tid == entry->tgid && source->gone[cell].pid == entry->tgid &&
           source->gone[cell].start_ns == entry->start_ns;
}

/*
 * Was the last entry of this thread read before? The logs are read one after another: a thread that
 * moves from a CPU with a log that is already read to one with a log that is not, and exits there,
 * has an older entry that comes with the next reading. Its counters are part of the last entry;
 * delivered, it would be a new thread, and all that it did would be counted twice.
 */
static bool has_ended(const struct ew_ebpf_source *source, const struct ew_k_entry *entry)
{
    uint32_t cell = entry->tid % EW_EBPF_ENDED_CELLS;
    return entry->tid != entry->tgid && source->ended[cell].tid == entry->tid &&
           source->ended[cell].start_ns == entry->start_ns;
}

/* A later thread may get the tid; a leader may get one by an exec with the same start time. */
static void note_end(struct ew_ebpf_source *source, const struct ew_k_entry *entry)
{
    uint32_t cell = entry->tid % EW_EBPF_ENDED_CELLS, gone = entry->tgid % EW_EBPF_GONE_CELLS;
    if (entry->tid == entry->tgid) {
        source->gone[gone].pid = entry->tgid;
        source->gone[gone].start_ns = entry->start_ns;
    } else {
        source->ended[cell].tid = entry->tid;
        source->ended[cell].start_ns = entry->start_ns;
    }
}

/* Delivers the execs up to t_ns. */
static void deliver_moves(struct ew_ebpf_source *source, uint64_t t_ns)
{
    uint32_t count = 0;
    while (count < source->moves.count && source->moves.facts[count].t_ns <= t_ns)
        count++;
    if (count > 0)
        ew_ebpf_flush_moves(source, count);
}

static void take_entry(struct ew_ebpf_source *source, uint32_t index)
{
    const struct ew_k_entry *entry = &source->object.entries[index];
    if (source->moves.count > 0)
        deliver_moves(source, entry->t_ns);
    if (has_ended(source, entry))
        return;
    struct ew_ebpf_active *active = add_active(source, entry->tid);
    /* Without memory the thread is not read in this drain: what it did since comes with its next
     * entry, possibly in a later interval. */
    if (active == NULL && entry->kind != EW_K_FINAL)
        source->refused++;
    source->entry_reading.incomplete = active == NULL && entry->kind != EW_K_FINAL;
    if (active != NULL) {
        active->index = index;
        active->noted_ns = entry->t_ns;
        active->over = entry->kind == EW_K_FINAL;
        if (entry->kind != EW_K_OPEN)
            active->run_from_ns = entry->in_ns;
    }
    source->events++;
    if (leader_gone(source, entry))
        return;
    deliver_entry(source, entry);
    if (entry->kind == EW_K_FINAL)
        note_end(source, entry);
}

/*
 * The logs are merged by time: a thread that moved to another CPU is in two logs, and its readings
 * must be delivered in order. The heap has the logs that are not empty, the one with the oldest
 * entry on top.
 */
struct cursor {
    uint64_t t_ns;
    uint32_t cpu, at, until;
};

static uint32_t entry_index(const struct ew_ebpf_object *object, const struct cursor *cursor)
{
    return cursor->cpu * object->log_entries + (cursor->at & (object->log_entries - 1));
}

static void sift_down(struct cursor *heap, uint32_t count, uint32_t at)
{
    struct cursor moved = heap[at];
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= count)
            break;
        if (child + 1 < count && heap[child + 1].t_ns < heap[child].t_ns)
            child++;
        if (heap[child].t_ns >= moved.t_ns)
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
}

enum { FETCH_AHEAD = 6 };

/* Entries are in other CPUs' caches; fetching takes longer than processing, so they are prefetched.
 */
static void fetch_entry(const struct ew_ebpf_object *object, struct cursor cursor, uint32_t ahead)
{
    if (cursor.until - cursor.at <= ahead)
        return;
    cursor.at += ahead;
    const char *entry = (const char *)&object->entries[entry_index(object, &cursor)];
    for (size_t at = 0; at < sizeof(struct ew_k_entry); at += 64)
        __builtin_prefetch(entry + at);
}

/* The receiver can prefetch its state of these threads. */
static void announce(const struct ew_ebpf_source *source, const struct cursor *heap, uint32_t count)
{
    enum { ANNOUNCED_MAX = 64 };
    uint32_t tids[ANNOUNCED_MAX], tid_count = 0;
    if (source->facts->expect == NULL)
        return;
    tids[0] = 0; /* otherwise compilers warn about the call without any */
    for (uint32_t i = 0; i < count; i++) {
        struct cursor cursor = heap[i];
        for (; cursor.at != cursor.until && tid_count < ANNOUNCED_MAX; cursor.at++)
            tids[tid_count++] = source->object.entries[entry_index(&source->object, &cursor)].tid;
    }
    source->facts->expect(source->facts->ctx, tids, tid_count);
}

static uint32_t open_cursors(struct ew_ebpf_source *source, struct cursor *heap)
{
    const struct ew_ebpf_object *object = &source->object;
    uint32_t count = 0;
    for (uint32_t cpu = 0; cpu < object->cpu_count; cpu++) {
        struct cursor cursor = {
            .cpu = cpu,
            .at = object->heads[cpu].tail,
            .until = __atomic_load_n(&object->heads[cpu].head, __ATOMIC_ACQUIRE),
        };
        if (cursor.at == cursor.until)
            continue;
        heap[count++] = cursor;
        for (uint32_t ahead = 0; ahead < FETCH_AHEAD; ahead++)
            fetch_entry(object, cursor, ahead);
    }
    for (uint32_t i = 0; i < count; i++)
        heap[i].t_ns = object->entries[entry_index(object, &heap[i])].t_ns;
    for (uint32_t i = count / 2; i-- > 0;)
        sift_down(heap, count, i);
    return count;
}

/* Delivers the entries of all logs, after the lifecycle records: a thread's process must be known.
 */
static int read_entries(struct ew_ebpf_source *source)
{
    struct ew_ebpf_object *object = &source->object;
    struct cursor heap[EW_K_CPUS_MAX];
    uint32_t moves = source->moves.count; /* all entries before these are in the logs now */
    uint32_t delivered_before = source->moves_delivered;
    uint32_t count = open_cursors(source, heap);
    int error = ew_ebpf_read_life(source);
    announce(source, heap, count);
    while (error == 0 && count > 0) {
        struct cursor *top = &heap[0];
        fetch_entry(object, *top, FETCH_AHEAD);
        take_entry(source, entry_index(object, top));
        if (++top->at == top->until) {
            __atomic_store_n(&object->heads[top->cpu].tail, top->at, __ATOMIC_RELEASE);
            *top = heap[--count];
        } else {
            top->t_ns = object->entries[entry_index(object, top)].t_ns;
        }
        if (count > 1)
            sift_down(heap, count, 0);
    }
    /* Moves are sorted by time; the loop above delivered the oldest. */
    uint32_t delivered = source->moves_delivered - delivered_before;
    if (error == 0 && moves > delivered)
        ew_ebpf_flush_moves(source, moves - delivered);
    return error;
}

/* ----------------------------------------------------- threads read on demand */

/* A compact list of the running threads: is_running is called for every thread that ran. */
static void list_running(struct ew_ebpf_source *source)
{
    source->running_count = 0;
    for (uint32_t cpu = 0; cpu < source->object.cpu_count; cpu++) {
        const struct ew_k_entry *entry = &source->object.running[cpu].thread.entry;
        if (entry->kind != 0)
            source->running[source->running_count++] = (struct ew_ebpf_running){entry->tid, cpu};
    }
}

static bool is_running(const struct ew_ebpf_source *source, uint32_t tid)
{
    for (uint32_t i = 0; i < source->running_count; i++)
        if (source->running[i].tid == tid)
            return true;
    return false;
}

static void begin_reading(const struct ew_ebpf_source *source, const struct ew_k_thread *thread,
                          struct ew_reading *ret_reading)
{
    memset(ret_reading, 0, sizeof *ret_reading);
    ret_reading->kind = EW_READING_AT;
    ret_reading->pid = thread->entry.tgid;
    ret_reading->tid = thread->entry.tid;
    ret_reading->start_ns = ew_ebpf_start(thread->entry.start_ns);
    ret_reading->thread_name = thread->name;
    ew_ebpf_proc_gauges_ran(source->proc_gauges, thread->entry.tgid);
    ew_ebpf_gauges(&source->units, thread, &ret_reading->gauge_has, ret_reading->gauge);
}

/* A running thread: its CPU time up to the horizon is known before the kernel accounts it. */
static void deliver_running(struct ew_ebpf_source *source, const struct ew_k_running *running,
                            uint64_t horizon_ns, uint64_t now_ns)
{
    const struct ew_k_entry *entry = &running->thread.entry;
    const struct ew_ebpf_active *active = find_active(source, entry->tid);
    if (active != NULL && (active->over || active->run_from_ns == entry->in_ns))
        return;
    if (leader_gone(source, entry) || has_ended(source, entry))
        return;
    struct ew_reading reading;
    begin_reading(source, &running->thread, &reading);
    /* If it was scheduled after the horizon, its counters come with its next reading. */
    reading.t_ns = now_ns;
    if (entry->in_ns != 0 && entry->in_ns < horizon_ns) {
        uint64_t cpu_ns = entry->in_cpu_ns + (horizon_ns - entry->in_ns);
        if (running->as_of_ns != 0)
            cpu_ns = entry->cpu_ns + (horizon_ns - running->as_of_ns); /* may be negative: wraps */
        ew_ebpf_counters(&source->units, entry, cpu_ns, &reading.counter_has, reading.counter);
        if (source->optional)
            reading.counter_has |= ew_ebpf_optional_counters(
                &source->object.optional, &running->thread.optional, reading.counter);
        reading.kind = EW_READING_SPAN;
        reading.t_ns = horizon_ns;
        reading.ran_from_ns = entry->in_ns;
        reading.ran_from_cpu_ns = entry->in_cpu_ns;
    }
    source->facts->reading(source->facts->ctx, &reading);
}

/*
 * A request names an entry of the log. If the log has wrapped since, the entry is that of another
 * thread, which may have exited and have been forgotten: its counters would count twice.
 */
static void deliver_thread(struct ew_ebpf_source *source, const struct ew_k_thread *thread,
                           uint32_t requested_tid, uint64_t now_ns)
{
    if (thread->entry.kind == 0 || thread->entry.tid != requested_tid)
        return;
    const struct ew_ebpf_active *active = find_active(source, requested_tid);
    if ((active != NULL && active->over) || leader_gone(source, &thread->entry) ||
        has_ended(source, &thread->entry) || is_running(source, requested_tid))
        return;
    struct ew_reading reading;
    begin_reading(source, thread, &reading);
    reading.t_ns = now_ns;
    ew_ebpf_counters(&source->units, &thread->entry, thread->entry.cpu_ns, &reading.counter_has,
                     reading.counter);
    if (source->optional)
        reading.counter_has |=
            ew_ebpf_optional_counters(&source->object.optional, &thread->optional, reading.counter);
    source->facts->reading(source->facts->ctx, &reading);
}

/* A cell holds the low bits of an interval's number: all are cleared before these repeat. */
static bool cells_due(struct ew_ebpf_source *source, uint64_t now_ns)
{
    const struct ew_k_era *era = &source->object.clock->era[1];
    if (now_ns < era->base_ns || era->interval_ns == 0)
        return false;
    uint32_t half = (uint32_t)((era->base_seq + (now_ns - era->base_ns) / era->interval_ns) >>
                               (EW_K_SEQ_BITS - 1));
    bool due = half != source->cleared_at;
    source->cleared_at = half;
    return due;
}

int ew_ebpf_read_logs(struct ew_ebpf_source *source, uint64_t horizon_ns, struct ew_error *reterr)
{
    struct ew_ebpf_object *object = &source->object;
    uint64_t now_ns = source->last_drain_ns;
    bool clear = cells_due(source, now_ns);
    int error = read_entries(source);
    uint32_t done = 0;
    for (int round = 0; error == 0 && round < ROUNDS_MAX; round++) {
        uint32_t count = source->active_count - done;
        if (count > EW_K_REQUESTS_MAX)
            count = EW_K_REQUESTS_MAX;
        bool first = round == 0;
        if (count == 0 && !first)
            break;
        for (uint32_t i = 0; i < count; i++)
            object->requests[i] = source->active[done + i].index;
        int os_error = ew_ebpf_object_read_tasks(object, count, first, clear && first);
        if (os_error != 0)
            return ew_error_set(reterr, ETWATCH_EOS, -os_error, "eBPF: cannot run a program: %s",
                                strerror(-os_error));
        source->units.features = object->clock->features;
        if (first)
            list_running(source);
        error = read_entries(source);
        for (uint32_t i = 0; first && error == 0 && i < source->running_count; i++)
            deliver_running(source, &object->running[source->running[i].cpu], horizon_ns, now_ns);
        for (uint32_t i = 0; error == 0 && i < count; i++)
            deliver_thread(source, &object->threads[i], source->active[done + i].tid, now_ns);
        done += count;
    }
    forget_active(source, horizon_ns);
    if (error != 0)
        return ew_error_set(reterr, error, 0, "eBPF: out of memory");
    return 0;
}
