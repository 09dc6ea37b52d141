/* SPDX-License-Identifier: MIT */
/*
 * The threads. An id belongs to one thread at a time: the index holds the thread that has the id
 * now. A thread leaves the index at its last switch (state "terminated"), not at its end event: it
 * emits that while it still runs, and may even wait after it.
 *
 * The counts of an ended thread are added to its process at once, so millions of short threads need
 * no memory; entries of ended threads are kept only if thread totals are requested.
 */
#include "base/alloc.h"
#include "tally/internal.h"

/* Two providers may report the same start. */
#define TWICE_NS UINT64_C(1000000000)

int ew_tids_set(struct ew_tally_tids *tids, uint32_t tid, struct ew_tally_thread *thread)
{
    uint32_t page = tid >> (2 + EW_TID_PAGE_BITS);
    if (page >= EW_TID_ROOT || (tid & 3) != 0 ||
        (tids->root[page] == NULL && tids->pages >= EW_TID_PAGES_MAX)) {
        if (thread != NULL)
            return ew_tally_map_put(&tids->others, tid, thread);
        ew_tally_map_remove(&tids->others, tid);
        return 0;
    }
    if (tids->root[page] == NULL) {
        tids->root[page] = ew_calloc((size_t)1 << EW_TID_PAGE_BITS, sizeof *tids->root[page]);
        if (tids->root[page] == NULL)
            return ETWATCH_ENOMEM;
        tids->pages++;
    }
    tids->root[page][tid >> 2 & ((1u << EW_TID_PAGE_BITS) - 1)] = thread;
    return 0;
}

void ew_tids_done(struct ew_tally_tids *tids)
{
    for (uint32_t i = 0; i < EW_TID_ROOT; i++)
        ew_free(tids->root[i]);
    ew_tally_map_done(&tids->others);
}

/* ------------------------------------------------------------------------ lists */

static struct ew_tally_thread **head_of(struct ew_tally *tally, struct ew_tally_process *process)
{
    return process != NULL ? &process->threads : &tally->unowned;
}

static void link_thread(struct ew_tally *tally, struct ew_tally_thread *thread)
{
    struct ew_tally_thread **head = head_of(tally, thread->process);
    thread->cold->prev = NULL;
    thread->cold->next = *head;
    if (*head != NULL)
        (*head)->cold->prev = thread;
    *head = thread;
}

static void unlink_thread(struct ew_tally *tally, struct ew_tally_thread *thread)
{
    struct ew_tally_thread_cold *cold = thread->cold;
    if (cold->prev != NULL)
        cold->prev->cold->next = cold->next;
    else
        *head_of(tally, thread->process) = cold->next;
    if (cold->next != NULL)
        cold->next->cold->prev = cold->prev;
}

static void keep_ended(struct ew_tally *tally, struct ew_tally_thread *thread)
{
    thread->flags |= EW_TT_ENDED;
    thread->cold->older = tally->newest_ended;
    thread->cold->newer = NULL;
    if (tally->newest_ended != NULL)
        tally->newest_ended->cold->newer = thread;
    else
        tally->oldest_ended = thread;
    tally->newest_ended = thread;
}

static void drop_ended(struct ew_tally *tally, struct ew_tally_thread *thread)
{
    struct ew_tally_thread_cold *cold = thread->cold;
    if (cold->older != NULL)
        cold->older->cold->newer = cold->newer;
    else
        tally->oldest_ended = cold->newer;
    if (cold->newer != NULL)
        cold->newer->cold->older = cold->older;
    else
        tally->newest_ended = cold->older;
    unlink_thread(tally, thread);
    ew_tally_pool_give(&tally->cold, cold);
    ew_tally_pool_give(&tally->threads, thread);
}

void ew_threads_drop_kept(struct ew_tally *tally, struct ew_tally_process *process)
{
    struct ew_tally_thread *next;
    for (struct ew_tally_thread *thread = process->threads; thread != NULL; thread = next) {
        next = thread->cold->next;
        if ((thread->flags & EW_TT_ENDED) != 0)
            drop_ended(tally, thread);
    }
}

/* ---------------------------------------------------------------------- making */

static struct ew_tally_thread *make(struct ew_tally *tally, uint32_t tid)
{
    if (tally->threads.used >= tally->config.max_threads) {
        if (tally->oldest_ended == NULL) {
            tally->refused++;
            return NULL;
        }
        drop_ended(tally, tally->oldest_ended);
        tally->refused++;
    }
    struct ew_tally_thread *thread = ew_tally_pool_take(&tally->threads);
    if (thread != NULL)
        thread->cold = ew_tally_pool_take(&tally->cold);
    if (thread == NULL || thread->cold == NULL) {
        if (thread != NULL)
            ew_tally_pool_give(&tally->threads, thread);
        ew_tally_short_of_memory(tally);
        return NULL;
    }
    thread->cold->tid = tid;
    thread->cold->name = "";
    thread->cold->made_epoch = tally->epoch;
    thread->epoch = tally->interval_ns != 0 ? tally->epoch - 1 : tally->epoch;
    thread->cpu = UINT16_MAX;
    return thread;
}

static void leave_cpu(struct ew_tally *tally, struct ew_tally_thread *thread)
{
    if (!ew_threads_running(tally, thread))
        return;
    /* Its last switch is missing, so the thread that runs there now is unknown. */
    struct ew_tally_cpu *cpu = &tally->cpus[thread->cpu];
    ew_run_blind(tally, cpu, cpu->last_ns);
}

struct ew_tally_thread *ew_threads_add(struct ew_tally *tally, struct ew_tally_process *process,
                                       uint32_t tid)
{
    struct ew_tally_thread *before = ew_threads_find(tally, tid);
    if (before != NULL)
        ew_threads_end(tally, before, tally->now_ns);
    struct ew_tally_thread *thread = make(tally, tid);
    if (thread == NULL)
        return NULL;
    if (ew_tids_set(&tally->tids, tid, thread) < 0) {
        ew_tally_pool_give(&tally->cold, thread->cold);
        ew_tally_pool_give(&tally->threads, thread);
        ew_tally_short_of_memory(tally);
        return NULL;
    }
    thread->process = process;
    link_thread(tally, thread);
    if (process != NULL) {
        process->live_threads++;
        process->thread_count++;
    }
    return thread;
}

struct ew_tally_thread *ew_threads_get(struct ew_tally *tally, uint32_t tid)
{
    struct ew_tally_thread *thread = ew_threads_find(tally, tid);
    return thread != NULL ? thread : ew_threads_add(tally, NULL, tid);
}

void ew_threads_adopt(struct ew_tally *tally, struct ew_tally_thread *thread,
                      struct ew_tally_process *process)
{
    unlink_thread(tally, thread);
    thread->process = process;
    thread->cold->orphans = 0;
    link_thread(tally, thread);
    process->live_threads++;
    process->thread_count++;
    if (thread->epoch == tally->epoch && tally->interval_ns != 0)
        ew_facts_join(tally, thread);
}

struct ew_tally_thread *ew_threads_own(struct ew_tally *tally, struct ew_tally_process *process)
{
    if (process->own != NULL)
        return process->own;
    struct ew_tally_thread *own = make(tally, process->pid);
    if (own == NULL)
        return NULL;
    own->flags = EW_TT_OWN;
    own->process = process;
    own->cold->start_ns = process->start_ns;
    process->own = own;
    return own;
}

/* ---------------------------------------------------------------------- ending */

void ew_threads_end(struct ew_tally *tally, struct ew_tally_thread *thread, uint64_t t_ns)
{
    struct ew_tally_process *process = thread->process;
    struct ew_tally_thread_cold *cold = thread->cold;
    leave_cpu(tally, thread);
    ew_facts_final(tally, thread, t_ns);
    struct ew_tally_sums sums;
    ew_totals_of_thread(thread, &sums);
    if ((thread->flags & EW_TT_OWN) != 0) {
        ew_totals_add(&process->ended, &sums);
        process->own = NULL;
        ew_tally_pool_give(&tally->cold, cold);
        ew_tally_pool_give(&tally->threads, thread);
        return;
    }
    if (ew_threads_find(tally, cold->tid) == thread)
        (void)ew_tids_set(&tally->tids, cold->tid, NULL);
    if (process == NULL) {
        ew_totals_add(&tally->lost_threads, &sums);
        tally->unattributed += cold->orphans;
    } else {
        ew_work_remember_gone(tally, thread);
        ew_totals_add(&process->ended, &sums);
        process->live_threads--;
        process->ending_threads -= (thread->flags & EW_TT_ENDING) != 0;
        if (cold->end_ns == 0)
            cold->end_ns = t_ns;
        if (tally->config.threads) {
            keep_ended(tally, thread);
            return;
        }
    }
    unlink_thread(tally, thread);
    ew_tally_pool_give(&tally->cold, cold);
    ew_tally_pool_give(&tally->threads, thread);
}

void ew_threads_ending(struct ew_tally_thread *thread, uint64_t t_ns)
{
    thread->flags |= EW_TT_ENDING;
    thread->cold->end_ns = t_ns;
    thread->process->ending_threads++;
}

void ew_threads_end_ending(struct ew_tally *tally, struct ew_tally_process *process, uint64_t t_ns)
{
    struct ew_tally_thread *next;
    for (struct ew_tally_thread *thread = process->threads; thread != NULL; thread = next) {
        next = thread->cold->next;
        if ((thread->flags & (EW_TT_ENDING | EW_TT_ENDED)) == EW_TT_ENDING &&
            !ew_threads_running(tally, thread))
            ew_threads_end(tally, thread, t_ns);
    }
}

void ew_threads_end_all(struct ew_tally *tally, struct ew_tally_process *process, uint64_t t_ns)
{
    struct ew_tally_thread *next;
    for (struct ew_tally_thread *thread = process->threads; thread != NULL; thread = next) {
        next = thread->cold->next;
        if ((thread->flags & (EW_TT_ENDED | EW_TT_ENDING)) != 0)
            continue;
        if (ew_threads_running(tally, thread))
            ew_threads_ending(thread, t_ns);
        else
            ew_threads_end(tally, thread, t_ns);
    }
    if (process->own != NULL)
        ew_threads_end(tally, process->own, t_ns);
}

/* ---------------------------------------------------------------------- events */

static void describe(struct ew_tally *tally, struct ew_tally_thread *thread,
                     const struct ew_event *event)
{
    struct ew_tally_thread_cold *cold = thread->cold;
    if (event->u.thread.has_priority) {
        thread->priority = event->u.thread.base_priority;
        cold->has_priority = true;
    }
    if (event->u.thread.has_affinity) {
        cold->affinity = event->u.thread.affinity;
        cold->has_affinity = true;
    }
    if (event->u.thread.name.len > 0)
        cold->name = ew_processes_text(tally, &event->u.thread.name, false);
}

static void start(struct ew_tally *tally, const struct ew_event *event)
{
    struct ew_tally_process *process = ew_processes_get(tally, event->pid, event->t_ns);
    if (process == NULL)
        return;
    struct ew_tally_thread *thread = ew_threads_find(tally, event->tid);
    bool twice = thread != NULL && thread->process == process &&
                 (thread->flags & (EW_TT_STARTED | EW_TT_ENDING)) == EW_TT_STARTED &&
                 event->t_ns - thread->cold->start_ns < TWICE_NS;
    if (!twice) {
        thread = ew_threads_add(tally, process, event->tid);
        if (thread == NULL)
            return;
        thread->flags |= EW_TT_STARTED;
        thread->cold->start_ns = event->t_ns;
    }
    describe(tally, thread, event);
}

/* The thread of the event, assigned to the event's process. */
static struct ew_tally_thread *thread_of_event(struct ew_tally *tally, const struct ew_event *event)
{
    struct ew_tally_thread *thread = ew_threads_find(tally, event->tid);
    if (thread != NULL && thread->process != NULL && thread->process->pid == event->pid)
        return thread;
    struct ew_tally_process *process = ew_processes_get(tally, event->pid, event->t_ns);
    if (process == NULL)
        return NULL;
    if (thread != NULL && thread->process == NULL) {
        ew_threads_adopt(tally, thread, process);
        return thread;
    }
    return ew_threads_add(tally, process, event->tid);
}

static void end(struct ew_tally *tally, struct ew_tally_thread *thread, uint64_t t_ns)
{
    if ((thread->flags & EW_TT_ENDING) != 0)
        return;
    if ((tally->classes & EW_TALLY_SWITCHES) != 0 && thread->cpu != UINT16_MAX)
        ew_threads_ending(thread, t_ns);
    else
        ew_threads_end(tally, thread, t_ns);
}

void ew_threads_event(struct ew_tally *tally, const struct ew_event *event)
{
    ew_tally_saw(tally, EW_TALLY_THREADS);
    if (event->tid == 0 || event->pid == 0 || event->tid == EW_NO_ID || event->pid == EW_NO_ID)
        return; /* idle threads: one per CPU, all with id 0 */
    if (event->kind == EW_EVENT_THREAD_START) {
        start(tally, event);
        return;
    }
    struct ew_tally_thread *thread = thread_of_event(tally, event);
    if (thread == NULL)
        return;
    describe(tally, thread, event);
    if (event->kind == EW_EVENT_THREAD_THERE || event->kind == EW_EVENT_THREAD_STILL)
        thread->process->flags |= EW_TP_ALL_THREADS;
    else if (event->kind == EW_EVENT_THREAD_END)
        end(tally, thread, event->t_ns);
}
