/* SPDX-License-Identifier: MIT */
/*
 * Owns the process and thread entries and their indexes. Invariants: an entry is in its index from
 * add to retire or drop, exactly once; a thread is in its process's list for the same time; an
 * entry never moves. Limits are counts of entries, so memory is always bounded.
 *
 * Processes are never evicted, because that would lose their totals. Threads are: see ledger.h.
 */
#include "ledger/ledger.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

/* 10,000 idle processes must fit in 5.3 MB with their index and strings. */
static_assert(sizeof(struct ew_process) <= 496, "a process entry is small");
static_assert(sizeof(struct ew_thread) <= 272, "a thread entry is small");

void ew_ledger_init(struct ew_ledger *ledger, uint32_t max_processes, uint32_t max_threads)
{
    *ledger = (struct ew_ledger){.max_processes = max_processes, .max_threads = max_threads};
    ew_pool_init(&ledger->processes, sizeof(struct ew_process));
    ew_pool_init(&ledger->threads, sizeof(struct ew_thread));
    ew_index_init(&ledger->pids);
    ew_index_init(&ledger->tids);
    ew_intern_init(&ledger->strings);
}

void ew_ledger_done(struct ew_ledger *ledger)
{
    for (uint32_t i = 1; i <= ew_pool_last(&ledger->processes); i++) {
        struct ew_process *process = ew_pool_at(&ledger->processes, i);
        if (process->self != 0)
            ew_free(process->more);
    }
    ew_intern_done(&ledger->strings);
    ew_index_done(&ledger->tids);
    ew_index_done(&ledger->pids);
    ew_pool_done(&ledger->threads);
    ew_pool_done(&ledger->processes);
}

/* Prefers a process that still runs, else the one that started last. */
static bool newer(const struct ew_process *process, const struct ew_process *other)
{
    bool ended = (process->flags & EW_P_EXITING) != 0;
    bool other_ended = (other->flags & EW_P_EXITING) != 0;
    return ended != other_ended ? other_ended : process->start_ns > other->start_ns;
}

struct ew_process *ew_ledger_find_process(const struct ew_ledger *ledger, uint32_t pid,
                                          uint64_t start_ns)
{
    struct ew_process *found = NULL;
    uint32_t cursor = ew_index_home(&ledger->pids, pid);
    uint32_t ref;
    while ((ref = ew_index_next(&ledger->pids, pid, &cursor)) != 0) {
        struct ew_process *process = ew_pool_at(&ledger->processes, ref);
        if (start_ns != 0 && process->start_ns != start_ns)
            continue;
        if (found == NULL || newer(process, found))
            found = process;
    }
    return found;
}

struct ew_process *ew_ledger_find_process_at(const struct ew_ledger *ledger, uint32_t pid,
                                             uint64_t t_ns)
{
    struct ew_process *found = NULL;
    uint32_t cursor = ew_index_home(&ledger->pids, pid);
    uint32_t ref;
    while ((ref = ew_index_next(&ledger->pids, pid, &cursor)) != 0) {
        struct ew_process *process = ew_pool_at(&ledger->processes, ref);
        bool later = found == NULL || process->start_ns > found->start_ns;
        if (process->start_ns <= t_ns && later)
            found = process;
    }
    return found;
}

/* Near the memory limit a table is full at its current size; the rest is for what it already has.
 */
static bool may_not_grow(const struct ew_pool *pool)
{
    return ew_pool_is_full(pool) && ew_alloc_limit_near();
}

int ew_ledger_add_process(struct ew_ledger *ledger, uint32_t pid, uint64_t start_ns,
                          struct ew_process **ret_process)
{
    if (ledger->processes.used >= ledger->max_processes || may_not_grow(&ledger->processes))
        return ETWATCH_ELIMIT;
    uint32_t ref;
    struct ew_process *process = ew_pool_take(&ledger->processes, &ref);
    if (process == NULL)
        return ETWATCH_ENOMEM;
    if (ew_index_add(&ledger->pids, pid, ref) < 0) {
        ew_pool_give(&ledger->processes, ref);
        return ETWATCH_ENOMEM;
    }
    process->self = ref;
    process->pid = pid;
    process->uid = UINT32_MAX; /* unknown; must not default to 0 (root) */
    process->start_ns = start_ns;
    *ret_process = process;
    return 0;
}

void ew_ledger_drop_process(struct ew_ledger *ledger, struct ew_process *process)
{
    assert(process->cells == NULL);
    while (process->threads != 0) {
        struct ew_thread *thread = ew_pool_at(&ledger->threads, process->threads);
        ew_ledger_retire_thread(ledger, thread);
        ew_ledger_free_thread(ledger, thread);
    }
    ew_intern_release(&ledger->strings, process->name);
    ew_intern_release(&ledger->strings, process->user);
    ew_intern_release(&ledger->strings, process->cgroup);
    ew_intern_release(&ledger->strings, process->cmdline);
    ew_free(process->more);
    process->more = NULL;
    ew_index_remove(&ledger->pids, process->pid, process->self);
    ew_pool_give(&ledger->processes, process->self);
}

struct ew_thread *ew_ledger_find_thread(const struct ew_ledger *ledger, uint32_t pid, uint32_t tid,
                                        uint64_t start_ns)
{
    uint32_t cursor = ew_index_home(&ledger->tids, tid);
    uint32_t ref;
    while ((ref = ew_index_next(&ledger->tids, tid, &cursor)) != 0) {
        struct ew_thread *thread = ew_pool_at(&ledger->threads, ref);
        if (thread->process->pid != pid)
            continue;
        /* An unknown start time matches any, but not a later one if the process has ended. */
        bool ended = (thread->process->flags & EW_P_EXITING) != 0;
        if (thread->start_ns == start_ns || start_ns == 0 || (thread->start_ns == 0 && !ended))
            return thread;
    }
    return NULL;
}

static void link_thread(struct ew_ledger *ledger, struct ew_process *process,
                        struct ew_thread *thread)
{
    thread->process = process;
    thread->next = process->threads;
    if (thread->next != 0) {
        struct ew_thread *next = ew_pool_at(&ledger->threads, thread->next);
        next->prev = thread->self;
    }
    process->threads = thread->self;
    process->thread_count++;
}

static void unlink_thread(struct ew_ledger *ledger, struct ew_thread *thread)
{
    if (thread->next != 0) {
        struct ew_thread *next = ew_pool_at(&ledger->threads, thread->next);
        next->prev = thread->prev;
    }
    if (thread->prev != 0) {
        struct ew_thread *prev = ew_pool_at(&ledger->threads, thread->prev);
        prev->next = thread->next;
    } else {
        thread->process->threads = thread->next;
    }
    thread->next = thread->prev = 0;
    thread->process->thread_count--;
}

void ew_ledger_retire_thread(struct ew_ledger *ledger, struct ew_thread *thread)
{
    unlink_thread(ledger, thread);
    ew_index_remove(&ledger->tids, thread->tid, thread->self);
    thread->flags |= EW_T_RETIRED;
}

void ew_ledger_free_thread(struct ew_ledger *ledger, struct ew_thread *thread)
{
    assert((thread->flags & EW_T_RETIRED) != 0);
    ew_intern_release(&ledger->strings, thread->name);
    ew_pool_give(&ledger->threads, thread->self);
}

/* Evicts a thread idle since before the cut and the interval, without undelivered cells. */
static bool evict_if_idle(struct ew_ledger *ledger, uint32_t ref, uint32_t older_than_cut,
                          uint64_t first_index)
{
    struct ew_thread *thread = ew_pool_at(&ledger->threads, ref);
    if (thread->self == 0 || (thread->flags & EW_T_RETIRED) != 0 || thread->cells != NULL)
        return false;
    if ((int32_t)(thread->active_cut - older_than_cut) >= 0)
        return false;
    /* During its open interval it may run again without another OPEN. */
    if ((thread->flags & EW_T_OPEN) == 0 || thread->open_index >= first_index)
        return false;
    thread->process->flags |= EW_P_REBASE;
    ew_ledger_retire_thread(ledger, thread);
    ew_ledger_free_thread(ledger, thread);
    return true;
}

static uint32_t advance_hand(struct ew_ledger *ledger)
{
    ledger->hand = ledger->hand >= ew_pool_last(&ledger->threads) ? 1 : ledger->hand + 1;
    return ledger->hand;
}

static bool make_room(struct ew_ledger *ledger, uint32_t cut, uint64_t first_index)
{
    if (ledger->barren_cut == cut + 1)
        return false;
    for (uint32_t left = ew_pool_last(&ledger->threads); left > 0; left--) {
        if (evict_if_idle(ledger, advance_hand(ledger), cut, first_index))
            return true;
    }
    /* All threads are busy; retrying before the next cut would cost a full scan per reading. */
    ledger->barren_cut = cut + 1;
    return false;
}

int ew_ledger_add_thread(struct ew_ledger *ledger, struct ew_process *process, uint32_t tid,
                         uint64_t start_ns, uint32_t cut, uint64_t first_index,
                         struct ew_thread **ret_thread)
{
    bool full = ledger->threads.used >= ledger->max_threads || may_not_grow(&ledger->threads);
    if (full && !make_room(ledger, cut, first_index))
        return ETWATCH_ELIMIT;
    uint32_t ref;
    struct ew_thread *thread = ew_pool_take(&ledger->threads, &ref);
    if (thread == NULL)
        return ETWATCH_ENOMEM;
    if (ew_index_add(&ledger->tids, tid, ref) < 0) {
        ew_pool_give(&ledger->threads, ref);
        return ETWATCH_ENOMEM;
    }
    thread->self = ref;
    thread->tid = tid;
    thread->start_ns = start_ns;
    thread->active_cut = cut;
    link_thread(ledger, process, thread);
    *ret_thread = thread;
    return 0;
}

int ew_ledger_move_thread(struct ew_ledger *ledger, struct ew_thread *thread, uint32_t tid,
                          uint64_t start_ns)
{
    if (ew_index_add(&ledger->tids, tid, thread->self) < 0)
        return ETWATCH_ENOMEM;
    ew_index_remove(&ledger->tids, thread->tid, thread->self);
    thread->tid = tid;
    thread->start_ns = start_ns;
    return 0;
}

void ew_ledger_sweep_threads(struct ew_ledger *ledger, uint32_t steps, uint32_t older_than_cut,
                             uint64_t first_index)
{
    uint32_t last = ew_pool_last(&ledger->threads);
    for (uint32_t left = steps < last ? steps : last; left > 0; left--)
        (void)evict_if_idle(ledger, advance_hand(ledger), older_than_cut, first_index);
}

int ew_ledger_set_text(struct ew_ledger *ledger, const char **slot, const char *text)
{
    if (text != NULL && *slot != NULL && strcmp(*slot, text) == 0)
        return 0;
    const char *copy = NULL;
    if (text != NULL && (copy = ew_intern_take(&ledger->strings, text)) == NULL)
        return ETWATCH_ENOMEM;
    ew_intern_release(&ledger->strings, *slot);
    *slot = copy;
    return 0;
}

static void fetch(const void *object, size_t size)
{
    for (size_t at = 0; at < size; at += 64)
        __builtin_prefetch((const char *)object + at, 1);
}

/* Each step needs what the previous one prefetched, so each loops over all threads. */
void ew_ledger_fetch(const struct ew_ledger *ledger, const uint32_t *tids, uint32_t count)
{
    const struct ew_thread *threads[EW_LEDGER_FETCH_MAX];
    uint32_t found = 0;
    if (count > EW_LEDGER_FETCH_MAX)
        count = EW_LEDGER_FETCH_MAX;
    if (ledger->tids.capacity == 0)
        return;
    for (uint32_t i = 0; i < count; i++)
        __builtin_prefetch(&ledger->tids.slots[ew_index_home(&ledger->tids, tids[i])]);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t cursor = ew_index_home(&ledger->tids, tids[i]);
        uint32_t ref = ew_index_next(&ledger->tids, tids[i], &cursor);
        if (ref == 0)
            continue;
        threads[found] = ew_pool_at(&ledger->threads, ref);
        fetch(threads[found++], sizeof(struct ew_thread));
    }
    for (uint32_t i = 0; i < found; i++)
        fetch(threads[i]->process, sizeof(struct ew_process));
    for (uint32_t i = 0; i < found; i++)
        __builtin_prefetch(threads[i]->process->name);
}
