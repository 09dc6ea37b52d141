/* SPDX-License-Identifier: MIT */
/*
 * Creates and ends processes. Invariant: every process in the table is or was in a list of STARTs,
 * or is announced before anything else of it is delivered. A process that ends gets a final cell,
 * which from then on takes everything that still arrives for it, and leaves the table with its
 * EXIT.
 *
 * Lifecycle facts and readings arrive through different channels of a source, so either may be
 * first: a reading of an unknown process creates it, and an exit waits for the last readings. Late
 * data of a process that has already left, or that exited while the table was full, is recognized
 * by the list of recent exits; otherwise it would create a process that never ends.
 */
#include "sampler/internal.h"

void ew_lifecycle_refuse(struct ew_sampler *sampler, int code, uint64_t t_ns)
{
    if (code == ETWATCH_ENOMEM)
        sampler->failure = code;
    struct etwatch_loss *refused = &sampler->refused;
    if (refused->count++ == 0)
        refused->from_ns = refused->to_ns = t_ns;
    if (t_ns < refused->from_ns)
        refused->from_ns = t_ns;
    if (t_ns > refused->to_ns)
        refused->to_ns = t_ns;
}

/* Whether this belongs to a process that has left the table. start_ns: of the process if exact,
 * else of a thread, which then started before the process exited. */
static bool is_recent(const struct ew_sampler *sampler, uint32_t pid, uint64_t start_ns, bool exact,
                      uint64_t t_ns)
{
    for (uint32_t i = 0; i < EW_RECENT_EXITS; i++) {
        const struct ew_recent_exit *recent = &sampler->recent[i];
        if (recent->pid != pid || recent->exit_ns == 0)
            continue;
        bool same = exact ? start_ns == recent->start_ns : start_ns <= recent->exit_ns;
        if (start_ns != 0 ? same : t_ns <= recent->exit_ns)
            return true;
    }
    return false;
}

static bool has_left(struct ew_sampler *sampler, uint32_t pid, uint64_t start_ns, bool exact,
                     uint64_t t_ns)
{
    bool left = is_recent(sampler, pid, start_ns, exact, t_ns);
    sampler->counts.late += left;
    return left;
}

void ew_lifecycle_note_left(struct ew_sampler *sampler, uint32_t pid, uint64_t start_ns,
                            uint64_t exit_ns)
{
    sampler->recent[sampler->recent_next] =
        (struct ew_recent_exit){.pid = pid, .start_ns = start_ns, .exit_ns = exit_ns};
    sampler->recent_next = (sampler->recent_next + 1) % EW_RECENT_EXITS;
}

static void set_text(struct ew_sampler *sampler, const char **slot, const char *text)
{
    if (ew_ledger_set_text(&sampler->ledger, slot, text) < 0)
        sampler->failure = ETWATCH_ENOMEM;
}

static void set_gauges(struct ew_sampler *sampler, struct ew_process *process,
                       const struct ew_process_fact *fact)
{
    if (fact->gauge_has == 0)
        return;
    /* Gauges of an exit are valid at its end, which may still change. */
    uint64_t read_ns = fact->kind == EW_PROCESS_EXIT ? UINT64_MAX - 1 : fact->t_ns;
    ew_gauges_take(sampler, process, fact->gauge_has, fact->gauge, read_ns);
}

static void set_facts(struct ew_sampler *sampler, struct ew_process *process,
                      const struct ew_process_fact *fact)
{
    if ((fact->has & EW_HAS_PPID) != 0) {
        process->ppid = fact->ppid;
        process->flags |= EW_P_HAS_PPID;
    }
    if ((fact->has & EW_HAS_SESSION) != 0) {
        process->session_id = fact->session_id;
        process->flags |= EW_P_HAS_SESSION;
    }
    if ((fact->has & EW_HAS_UID) != 0)
        process->uid = fact->uid;
    if ((fact->has & EW_HAS_CGROUP) != 0)
        process->cgroup_id = fact->cgroup_id;
    if ((fact->has & EW_HAS_NAME) != 0)
        set_text(sampler, &process->name, fact->name);
    /* Its name is looked up when the process is described. */
    if (fact->sid != NULL && (process->flags & EW_P_DESCRIBED) == 0)
        set_text(sampler, &process->user, fact->sid);
    set_gauges(sampler, process, fact);
}

/* Monitored since t_ns: START is delivered with that interval, or with the next one if it is too
 * late. */
static void list_start(struct ew_sampler *sampler, struct ew_process *process, uint64_t t_ns)
{
    bool late = sampler->late;
    process->watched_ns = t_ns;
    process->first_index = ew_pending_clamp(sampler, ew_pending_index(sampler, t_ns));
    sampler->late = late; /* only readings are counted as late */
    process->flags |= EW_P_LISTED;
    struct ew_bucket *bucket = NULL;
    if (process->first_index > sampler->first)
        bucket = ew_pending_bucket(sampler, process->first_index);
    if (bucket == NULL)
        ew_list_push_start(sampler, &sampler->due_starts, process);
    else
        ew_list_push_start(sampler, &bucket->starts, process);
}

static struct ew_process *add(struct ew_sampler *sampler, uint32_t pid, uint64_t start_ns,
                              uint64_t watched_ns, uint32_t flags)
{
    struct ew_process *process;
    int r = ew_ledger_add_process(&sampler->ledger, pid, start_ns, &process);
    if (r < 0) {
        ew_lifecycle_refuse(sampler, r, watched_ns);
        return NULL;
    }
    process->flags = flags;
    process->seen_ns = watched_ns;
    list_start(sampler, process, watched_ns);
    return process;
}

/* Mentioned before its START, which may still arrive or was lost. */
static struct ew_process *add_unknown(struct ew_sampler *sampler, uint32_t pid, uint64_t start_ns,
                                      uint64_t t_ns)
{
    uint64_t since_ns = start_ns >= sampler->config.epoch_ns ? start_ns : t_ns;
    return add(sampler, pid, start_ns, since_ns, EW_P_UNKNOWN);
}

/* SEEN counters are the values so far; readings add to them. */
static void set_base(struct ew_process *process, const struct ew_process_fact *fact)
{
    for (uint32_t i = 0; i < EW_COUNTER_COUNT; i++) {
        if ((fact->counter_has >> i & 1) != 0 && fact->counter[i] > process->value[i])
            process->value[i] = fact->counter[i];
    }
    process->total_has |= fact->counter_has;
    process->round_has = fact->counter_has;
}

/* Whether two start times may belong to one process; 0 is unknown. */
static bool same_process(const struct ew_process *process, uint64_t start_ns)
{
    if (process->start_ns == start_ns)
        return true;
    if (start_ns == 0)
        return (process->flags & EW_P_EXITING) == 0;
    /* Known only by a thread: matches a process that started before the thread was seen. */
    return process->start_ns == 0 && start_ns <= process->watched_ns;
}

static void begin(struct ew_sampler *sampler, const struct ew_process_fact *fact)
{
    bool started = fact->kind == EW_PROCESS_START;
    struct ew_process *process = ew_ledger_find_process(&sampler->ledger, fact->pid, 0);
    bool same = process != NULL && same_process(process, fact->start_ns);
    if (same && started && fact->start_ns == 0 && (process->flags & EW_P_UNKNOWN) == 0)
        same = false;
    if (same && (process->flags & EW_P_FORGOTTEN) != 0)
        same = false; /* monitored again before the old entry was removed */
    if (process != NULL && !same) {
        if (fact->start_ns != 0 && fact->start_ns < process->start_ns) {
            sampler->counts.late++;
            return;
        }
        if ((process->flags & EW_P_EXITING) == 0)
            ew_lifecycle_end(sampler, process, fact->t_ns, EW_P_REPLACED);
        process = NULL;
    }
    uint32_t kind = started ? EW_P_STARTED : EW_P_SEEN;
    if (process == NULL) {
        process = add(sampler, fact->pid, fact->start_ns, fact->t_ns, kind);
        if (process == NULL)
            return;
        if (!started)
            set_base(process, fact);
    } else if ((process->flags & (EW_P_UNKNOWN | EW_P_ANNOUNCED)) == EW_P_UNKNOWN) {
        /* Its readings arrived first, in the same drain: nothing is missing. */
        process->flags = (process->flags & ~(uint32_t)EW_P_UNKNOWN) | kind;
        process->start_ns = fact->start_ns != 0 ? fact->start_ns : process->start_ns;
        process->watched_ns = fact->t_ns;
        if (!started)
            set_base(process, fact);
    }
    if (fact->t_ns > process->seen_ns)
        process->seen_ns = fact->t_ns;
    set_facts(sampler, process, fact);
}

/* The process of an exec, rename or exit, created if unknown. */
static struct ew_process *of_fact(struct ew_sampler *sampler, const struct ew_process_fact *fact)
{
    struct ew_process *process =
        ew_ledger_find_process(&sampler->ledger, fact->pid, fact->start_ns);
    if (process != NULL)
        return process;
    process = ew_ledger_find_process(&sampler->ledger, fact->pid, 0);
    if (process != NULL) {
        if (same_process(process, fact->start_ns))
            return process;
        if (fact->start_ns < process->start_ns) {
            sampler->counts.late++;
            return NULL;
        }
        if ((process->flags & EW_P_EXITING) == 0)
            ew_lifecycle_end(sampler, process, fact->t_ns, EW_P_REPLACED);
    }
    if (has_left(sampler, fact->pid, fact->start_ns, true, fact->t_ns))
        return NULL;
    return add_unknown(sampler, fact->pid, fact->start_ns, fact->t_ns);
}

/* A thread other than the leader took over the leader's id; the leader has ended. */
static void move_thread(struct ew_sampler *sampler, struct ew_process *process, uint32_t old_tid)
{
    struct ew_ledger *ledger = &sampler->ledger;
    struct ew_thread *leader = ew_ledger_find_thread(ledger, process->pid, process->pid, 0);
    if (leader != NULL && leader->process == process) {
        ew_ledger_retire_thread(ledger, leader);
        if (leader->cells == NULL)
            ew_ledger_free_thread(ledger, leader);
    }
    struct ew_thread *thread = ew_ledger_find_thread(ledger, process->pid, old_tid, 0);
    if (thread != NULL && thread->process == process &&
        ew_ledger_move_thread(ledger, thread, process->pid, process->start_ns) < 0)
        sampler->failure = ETWATCH_ENOMEM;
    /* Readings from before the exec may still arrive under the old id: they must not count again.
     */
    process->flags |= EW_P_REBASE;
}

static void exec(struct ew_sampler *sampler, const struct ew_process_fact *fact)
{
    struct ew_process *process = of_fact(sampler, fact);
    if (process == NULL)
        return;
    if (fact->old_tid != 0 && fact->old_tid != fact->pid)
        move_thread(sampler, process, fact->old_tid);
    process->flags &= ~(uint32_t)EW_P_DESCRIBED;
    set_facts(sampler, process, fact);
}

static void merge_cells(struct ew_sampler *sampler, struct ew_cell *into, struct ew_cell *from)
{
    for (uint32_t i = 0; i < EW_COUNTER_COUNT; i++)
        into->counter[i] += from->counter[i];
    into->has |= from->has;
    into->flags |= from->flags & EW_CELL_INCOMPLETE;
    while (from->children != NULL) {
        struct ew_cell *child = from->children;
        from->children = child->follower;
        struct ew_cell *same = child->prev;
        if (same != NULL && same->parent == into) {
            merge_cells(sampler, same, child);
            ew_pending_drop(sampler, child);
            continue;
        }
        child->parent = into;
        child->index = into->index;
        child->follower = into->children;
        into->children = child;
    }
}

/* The last cell, of the interval in which the process exited; later cells are merged into it. */
static struct ew_cell *make_final(struct ew_sampler *sampler, struct ew_process *process,
                                  uint64_t index)
{
    struct ew_cell *final = ew_pending_cell(sampler, process, NULL, index);
    if (final == NULL)
        final = ew_pending_newest(process); /* out of memory: use an existing cell */
    if (final == NULL)
        return NULL;
    process->cells = final;
    while (final->next != NULL) {
        struct ew_cell *later = final->next;
        merge_cells(sampler, final, later);
        final->next = later->next;
        if (later->next != NULL)
            later->next->prev = final;
        later->prev = later->next = NULL;
        later->process = NULL;
        later->flags = EW_CELL_VOID; /* freed by its bucket */
    }
    final->flags |= EW_CELL_FINAL;
    final->begin_ns = ew_pending_start_ns(sampler, final->index);
    return final;
}

void ew_lifecycle_end(struct ew_sampler *sampler, struct ew_process *process, uint64_t t_ns,
                      uint32_t flags)
{
    bool late = sampler->late; /* of the current reading, if it caused this call */
    /* The exit event precedes the end: a process ends when it leaves the CPU for the last time. */
    if (process->exit_ns > t_ns)
        t_ns = process->exit_ns;
    uint64_t index = ew_pending_clamp(sampler, ew_pending_index(sampler, t_ns));
    if (index < process->first_index)
        index = process->first_index;
    struct ew_cell *final = make_final(sampler, process, index);
    if (final == NULL)
        flags |= EW_P_LOSSY;
    else if (final->index > index || sampler->failure < 0)
        index = final->index; /* its bucket exists */
    sampler->late = late;
    process->flags |= EW_P_EXITING | flags;
    process->exit_ns = t_ns > process->start_ns ? t_ns : process->start_ns;
    process->exit_cut = sampler->cuts;
    struct ew_bucket *bucket = ew_pending_bucket(sampler, index);
    ew_list_push_exit(sampler, bucket != NULL ? &bucket->exits : &sampler->waiting, process);
}

/* Totals for which the source has better values than the sum of readings. If there was no reading
 * at all they also fill the last sample. */
static void set_exit_totals(struct ew_process *process, const struct ew_process_fact *fact)
{
    struct ew_cell *final = ew_pending_newest(process);
    bool fill = final != NULL && (process->flags & EW_P_READ) == 0;
    bool whole = (process->flags & EW_P_STARTED) != 0;
    for (uint32_t i = 0; i < EW_COUNTER_COUNT; i++) {
        if ((fact->counter_has >> i & 1) == 0)
            continue;
        uint64_t before = process->value[i];
        bool known = whole || (process->total_has >> i & 1) != 0;
        if (fill && known) {
            final->counter[i] = fact->counter[i] > before ? fact->counter[i] - before : 0;
            final->has |= 1u << i;
            final->flags |= EW_CELL_TENTATIVE;
        }
        process->value[i] = fact->counter[i];
    }
    process->exit_has = fact->counter_has;
}

static void end(struct ew_sampler *sampler, const struct ew_process_fact *fact)
{
    struct ew_process *process = of_fact(sampler, fact);
    if (process == NULL) {
        /* Refused by a full table. Its last readings may find room, and must not create it. */
        if (!is_recent(sampler, fact->pid, fact->start_ns, true, fact->t_ns))
            ew_lifecycle_note_left(sampler, fact->pid, fact->start_ns, fact->t_ns);
        return;
    }
    bool ended = (process->flags & EW_P_EXITING) != 0;
    if (ended && (process->flags & EW_P_REPLACED) == 0)
        return;
    set_facts(sampler, process, fact);
    if (ended)
        process->flags &=
            ~(uint32_t)EW_P_REPLACED; /* the exit was inferred before, now it is reported */
    else
        ew_lifecycle_end(sampler, process, fact->t_ns, 0);
    if ((fact->has & EW_HAS_EXIT_STATUS) != 0) {
        process->exit_code = fact->exit_code;
        process->exit_signal = fact->exit_signal;
        process->flags |= EW_P_EXIT_STATUS;
    }
    set_exit_totals(process, fact);
}

void ew_lifecycle_fact(struct ew_sampler *sampler, const struct ew_process_fact *fact)
{
    if (fact->t_ns > sampler->latest_ns)
        sampler->latest_ns = fact->t_ns;
    switch (fact->kind) {
    case EW_PROCESS_SEEN:
    case EW_PROCESS_START:
        begin(sampler, fact);
        break;
    case EW_PROCESS_EXEC:
        exec(sampler, fact);
        break;
    case EW_PROCESS_RENAME: {
        struct ew_process *process = of_fact(sampler, fact);
        if (process != NULL)
            set_facts(sampler, process, fact);
        break;
    }
    case EW_PROCESS_EXIT:
        end(sampler, fact);
        break;
    }
}

void ew_lifecycle_all_seen(struct ew_sampler *sampler, uint64_t since_ns)
{
    const struct ew_pool *pool = &sampler->ledger.processes;
    for (uint32_t ref = 1; ref <= ew_pool_last(pool); ref++) {
        struct ew_process *process = ew_pool_at(pool, ref);
        if (process->self != 0 && process->seen_ns < since_ns &&
            (process->flags & EW_P_EXITING) == 0)
            ew_lifecycle_end(sampler, process, since_ns, EW_P_REPLACED);
    }
}

/* A process that is no longer monitored gets no readings; it may have been added again. */
static struct ew_process *if_monitored(struct ew_sampler *sampler, struct ew_process *process)
{
    if ((process->flags & EW_P_FORGOTTEN) != 0)
        process = ew_ledger_find_process(&sampler->ledger, process->pid, process->start_ns);
    return (process->flags & EW_P_FORGOTTEN) != 0 ? NULL : process;
}

struct ew_process *ew_lifecycle_of_reading(struct ew_sampler *sampler,
                                           const struct ew_reading *reading)
{
    /* A leader starts with its process; another thread only proves that the process is not younger.
     */
    bool exact = reading->tid == 0 || reading->tid == reading->pid;
    struct ew_process *process = NULL;
    if (reading->start_ns != 0)
        process =
            exact ? ew_ledger_find_process(&sampler->ledger, reading->pid, reading->start_ns)
                  : ew_ledger_find_process_at(&sampler->ledger, reading->pid, reading->start_ns);
    if (process != NULL &&
        (exact || (process->flags & EW_P_EXITING) == 0 || reading->start_ns <= process->exit_ns))
        return if_monitored(sampler, process);
    process = ew_ledger_find_process(&sampler->ledger, reading->pid, 0);
    if (process != NULL) {
        bool unknown = reading->start_ns == 0 || process->start_ns == 0;
        bool after = (process->flags & EW_P_EXITING) != 0 && reading->start_ns > process->exit_ns;
        if (!after && (unknown || (!exact && reading->start_ns >= process->start_ns)))
            return if_monitored(sampler, process);
        if (reading->start_ns < process->start_ns) {
            sampler->counts.late++;
            return NULL;
        }
        if ((process->flags & EW_P_EXITING) == 0)
            ew_lifecycle_end(sampler, process, reading->start_ns, EW_P_REPLACED);
    }
    if (has_left(sampler, reading->pid, reading->start_ns, exact, reading->t_ns))
        return NULL;
    return add_unknown(sampler, reading->pid, exact ? reading->start_ns : 0, reading->t_ns);
}
