/* SPDX-License-Identifier: MIT */
/*
 * Owns the two tables. A thread is in one state at a time; each event ends one and begins another,
 * so the times of a thread add up to the time in which it was observed. A wait is attributed to the
 * thread that ended it, so it is counted at the wake-up. A thread that runs again without a wake-up
 * (the event was lost) has waited too, but the wait is attributed to no thread.
 */
#include "sampler/waits.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/sized.h"
#include "ledger/index.h"
#include "ledger/pool.h"

enum { UNKNOWN, RUNNING, READY, SLEEPING, BLOCKED };

/* Bits of the Linux task state. */
enum { LINUX_UNINTERRUPTIBLE = 0x2, LINUX_DEAD = 0x80 | 0x10 | 0x20, LINUX_NOLOAD = 0x400 };

struct etwatch_waits {
    struct ew_pool threads, edges;
    struct ew_index by_tid, by_pair;
    uint64_t events, dropped;
    uint64_t last_ns;
    bool knows_faults, knows_disks;
};

int etwatch_waits_new(struct etwatch_waits **ret_waits)
{
    struct etwatch_waits *waits = ret_waits == NULL ? NULL : ew_calloc(1, sizeof *waits);
    if (ret_waits == NULL)
        return ETWATCH_EINVAL;
    if (waits == NULL)
        return ETWATCH_ENOMEM;
    ew_pool_init(&waits->threads, sizeof(struct ew_waits_thread));
    ew_pool_init(&waits->edges, sizeof(struct ew_waits_edge));
    ew_index_init(&waits->by_tid);
    ew_index_init(&waits->by_pair);
    *ret_waits = waits;
    return 0;
}

void etwatch_waits_free(struct etwatch_waits *waits)
{
    if (waits == NULL)
        return;
    ew_pool_done(&waits->threads);
    ew_pool_done(&waits->edges);
    ew_index_done(&waits->by_tid);
    ew_index_done(&waits->by_pair);
    ew_free(waits);
}

/* -------------------------------------------------------------------- the tables */

static struct ew_waits_thread *find(const struct etwatch_waits *waits, uint32_t tid)
{
    uint32_t cursor = ew_index_home(&waits->by_tid, tid);
    uint32_t ref = ew_index_next(&waits->by_tid, tid, &cursor);
    return ref == 0 ? NULL : ew_pool_at(&waits->threads, ref);
}

const struct ew_waits_thread *ew_waits_find(const struct etwatch_waits *waits, uint32_t tid)
{
    return find(waits, tid);
}

/* All idle threads have the id 0: they never wait, and no thread waits for them. */
static struct ew_waits_thread *thread_of(struct etwatch_waits *waits, uint32_t tid)
{
    uint32_t ref = 0;
    struct ew_waits_thread *thread = tid == 0 ? NULL : find(waits, tid);
    if (thread != NULL || tid == 0)
        return thread;
    if (waits->threads.used < EW_WAITS_THREADS_MAX)
        thread = ew_pool_take(&waits->threads, &ref);
    if (thread != NULL && ew_index_add(&waits->by_tid, tid, ref) < 0) {
        ew_pool_give(&waits->threads, ref);
        thread = NULL;
    }
    if (thread == NULL) {
        waits->dropped++;
        return NULL;
    }
    thread->self = ref;
    thread->tid = tid;
    thread->pid = UINT32_MAX;
    return thread;
}

static struct ew_waits_edge *edge_of(struct etwatch_waits *waits,
                                     const struct ew_waits_thread *thread, uint32_t waker_tid)
{
    uint64_t pair = (uint64_t)thread->tid << 32 | waker_tid;
    uint32_t key = (uint32_t)(ew_hash_mix(ew_hash_seed(), pair) >> 16), ref = 0;
    uint32_t cursor = ew_index_home(&waits->by_pair, key);
    while ((ref = ew_index_next(&waits->by_pair, key, &cursor)) != 0) {
        struct ew_waits_edge *edge = ew_pool_at(&waits->edges, ref);
        if (edge->tid == thread->tid && edge->waker_tid == waker_tid)
            return edge;
    }
    struct ew_waits_edge *edge =
        waits->edges.used < EW_WAITS_EDGES_MAX ? ew_pool_take(&waits->edges, &ref) : NULL;
    if (edge != NULL && ew_index_add(&waits->by_pair, key, ref) < 0) {
        ew_pool_give(&waits->edges, ref);
        edge = NULL;
    }
    if (edge == NULL) {
        waits->dropped++;
        return NULL;
    }
    edge->self = ref;
    edge->tid = thread->tid;
    edge->waker_tid = waker_tid;
    return edge;
}

void ew_waits_name(struct etwatch_waits *waits, uint32_t pid, uint32_t tid, const char *name)
{
    struct ew_waits_thread *thread = thread_of(waits, tid);
    if (thread == NULL)
        return;
    if (pid != UINT32_MAX)
        thread->pid = pid;
    if (name != NULL)
        (void)snprintf(thread->name, sizeof thread->name, "%s", name);
}

void ew_waits_owner(struct etwatch_waits *waits, uint32_t pid, uint32_t tid, const char *name,
                    uint64_t t_ns)
{
    struct ew_waits_thread *thread = thread_of(waits, tid);
    if (thread == NULL || t_ns < thread->named_ns)
        return;
    thread->named_ns = t_ns;
    ew_waits_name(waits, pid, tid, name);
}

/* -------------------------------------------------------------------- the states */

/* Ends the current state at t_ns and returns its duration. */
static uint64_t leave(struct ew_waits_thread *thread, uint64_t t_ns)
{
    uint64_t length_ns = t_ns > thread->since_ns ? t_ns - thread->since_ns : 0;
    switch (thread->state) {
    case RUNNING:
        thread->run_ns += length_ns;
        break;
    case READY:
        thread->ready_ns += length_ns;
        break;
    case SLEEPING:
        thread->sleep_ns += length_ns;
        break;
    case BLOCKED:
        thread->blocked_ns += length_ns;
        break;
    default:
        length_ns = 0;
    }
    bool waited = thread->state == SLEEPING || thread->state == BLOCKED;
    if (waited && thread->in_io) {
        thread->disk_ns += length_ns;
        thread->io_wait_ns = length_ns;
    }
    if (waited && length_ns > thread->wait_max_ns)
        thread->wait_max_ns = length_ns;
    thread->since_ns = t_ns;
    return length_ns;
}

void ew_waits_switch(struct etwatch_waits *waits, uint64_t t_ns, uint32_t tid,
                     enum ew_wait_reason reason, uint32_t next_tid)
{
    static const uint32_t after[] = {READY, SLEEPING, BLOCKED, UNKNOWN};
    waits->events++;
    struct ew_waits_thread *thread = thread_of(waits, tid);
    if (thread != NULL) {
        (void)leave(thread, t_ns);
        thread->since_ns = t_ns;
        thread->state = after[reason];
        thread->edge = 0;
        thread->preempted += reason == EW_WAIT_READY;
        thread->sleeps += reason == EW_WAIT_SLEEP;
        thread->blocks += reason == EW_WAIT_BLOCKED;
    }
    struct ew_waits_thread *next = thread_of(waits, next_tid);
    if (next == NULL)
        return;
    uint32_t was = next->state;
    uint64_t length_ns = leave(next, t_ns);
    if (was == READY && next->edge != 0) {
        struct ew_waits_edge *edge = ew_pool_at(&waits->edges, next->edge);
        edge->ready_ns += length_ns;
    }
    next->edge = 0;
    next->switches++;
    next->state = RUNNING;
    next->since_ns = t_ns;
}

void ew_waits_wake(struct etwatch_waits *waits, uint64_t t_ns, uint32_t tid, uint32_t waker_tid)
{
    waits->events++;
    struct ew_waits_thread *thread = thread_of(waits, tid);
    if (thread == NULL)
        return;
    uint32_t was = thread->state;
    if (was == RUNNING || was == READY)
        return; /* the wake-up prevented it from sleeping */
    uint64_t length_ns = leave(thread, t_ns);
    thread->state = READY;
    thread->since_ns = t_ns;
    if (was == UNKNOWN)
        return;
    struct ew_waits_edge *edge = edge_of(waits, thread, waker_tid);
    if (edge == NULL)
        return;
    thread->edge = edge->self;
    edge->count++;
    edge->wait_ns += length_ns;
    edge->blocked_ns += was == BLOCKED ? length_ns : 0;
    edge->wait_max_ns = length_ns > edge->wait_max_ns ? length_ns : edge->wait_max_ns;
}

void ew_waits_fault(struct etwatch_waits *waits, uint32_t tid, uint64_t wait_ns)
{
    struct ew_waits_thread *thread = thread_of(waits, tid);
    if (thread != NULL)
        thread->fault_ns += wait_ns;
}

void ew_waits_disk(struct etwatch_waits *waits, uint32_t tid, uint64_t length_ns)
{
    struct ew_waits_thread *thread = thread_of(waits, tid);
    if (thread != NULL)
        thread->disk_ns += length_ns;
}

void ew_waits_gap(struct etwatch_waits *waits)
{
    for (uint32_t ref = 1; ref <= ew_pool_last(&waits->threads); ref++) {
        struct ew_waits_thread *thread = ew_pool_at(&waits->threads, ref);
        thread->state = UNKNOWN;
    }
}

void ew_waits_end(struct etwatch_waits *waits, uint64_t t_ns)
{
    for (uint32_t ref = 1; ref <= ew_pool_last(&waits->threads); ref++) {
        struct ew_waits_thread *thread = ew_pool_at(&waits->threads, ref);
        if (thread->self == 0)
            continue;
        (void)leave(thread, t_ns);
        thread->state = UNKNOWN;
    }
    for (uint32_t ref = 1; ref <= ew_pool_last(&waits->edges); ref++) {
        struct ew_waits_edge *edge = ew_pool_at(&waits->edges, ref);
        if (edge->self == 0)
            continue;
        const struct ew_waits_thread *thread = find(waits, edge->tid);
        const struct ew_waits_thread *waker = find(waits, edge->waker_tid);
        edge->pid = thread == NULL ? UINT32_MAX : thread->pid;
        edge->waker_pid = waker == NULL ? UINT32_MAX : waker->pid;
    }
}

static enum ew_wait_reason reason_of(uint32_t state)
{
    if (state == 0)
        return EW_WAIT_READY;
    if ((state & LINUX_DEAD) != 0)
        return EW_WAIT_OVER;
    bool blocked = (state & LINUX_UNINTERRUPTIBLE) != 0 && (state & LINUX_NOLOAD) == 0;
    return blocked ? EW_WAIT_BLOCKED : EW_WAIT_SLEEP;
}

/*
 * A live source reports for the outgoing thread whether it waits for a disk, and the number of its
 * hard faults. The kernel counts a fault when it is over: if there is one more than when the thread
 * last left the CPU, it waited for that fault in between.
 */
static void note_io(struct etwatch_waits *waits, const struct etwatch_event *event, bool preempted)
{
    struct ew_waits_thread *thread = event->io_wait == 0 ? NULL : thread_of(waits, event->tid);
    if (thread == NULL)
        return;
    bool more = thread->faults_known && thread->hard_faults != event->hard_faults;
    if (more)
        thread->fault_ns += thread->io_wait_ns;
    if (more || !preempted) /* else the kernel may not have counted the fault yet */
        thread->io_wait_ns = 0;
    thread->hard_faults = event->hard_faults;
    thread->faults_known = waits->knows_faults = waits->knows_disks = true;
}

static void switch_event(struct etwatch_waits *waits, const struct etwatch_event *event)
{
    enum ew_wait_reason reason = reason_of(event->state);
    note_io(waits, event, reason == EW_WAIT_READY);
    ew_waits_switch(waits, event->t_ns, event->tid, reason, event->next_tid);
    struct ew_waits_thread *thread = event->io_wait == 0 ? NULL : thread_of(waits, event->tid);
    if (thread != NULL)
        thread->in_io = event->io_wait == 2;
}

bool ew_waits_knows_io(const struct etwatch_waits *waits)
{
    return waits->knows_faults && waits->knows_disks;
}

void ew_waits_know_faults(struct etwatch_waits *waits)
{
    waits->knows_faults = true;
}

void ew_waits_know_disks(struct etwatch_waits *waits)
{
    waits->knows_disks = true;
}

void ew_waits_time(struct etwatch_waits *waits, uint64_t t_ns)
{
    waits->last_ns = t_ns;
}

int etwatch_waits_add(struct etwatch_waits *waits, const struct etwatch_event *given)
{
    struct etwatch_event copy;
    const struct etwatch_event *event =
        waits == NULL || given == NULL ? NULL : ew_sized_or_null(given, &copy, sizeof copy);
    if (event == NULL)
        return ew_sized_error(given, sizeof copy);
    waits->last_ns = event->t_ns;
    if (event->kind == ETWATCH_EVENT_SWITCH) {
        ew_waits_name(waits, event->pid, event->tid, event->name);
        ew_waits_name(waits, event->next_pid, event->next_tid, event->next_name);
        switch_event(waits, event);
    } else if (event->kind == ETWATCH_EVENT_WAKEUP) {
        ew_waits_name(waits, event->pid, event->tid, event->name);
        ew_waits_name(waits, event->next_pid, event->next_tid, NULL);
        ew_waits_wake(waits, event->t_ns, event->tid, event->next_tid);
    }
    return 0;
}

int etwatch_waits_add_loss(struct etwatch_waits *waits, uint32_t source,
                           const struct etwatch_loss *given)
{
    struct etwatch_loss copy;
    const struct etwatch_loss *loss =
        waits == NULL ? NULL : ew_sized_or_null(given, &copy, sizeof copy);
    if (loss == NULL)
        return ew_sized_error(given, sizeof copy);
    /* ETW has one stream for all events. */
    if (loss->stage == ETWATCH_LOSS_STREAM || source == ETWATCH_SOURCE_ETW)
        ew_waits_gap(waits);
    return 0;
}

int etwatch_waits_end(struct etwatch_waits *waits)
{
    if (waits == NULL)
        return ETWATCH_EINVAL;
    ew_waits_end(waits, waits->last_ns);
    return 0;
}

/* ----------------------------------------------------------------------- results */

/* Entries are never freed, so the numbers have no holes. */
const struct ew_waits_thread *ew_waits_thread_at(const struct etwatch_waits *waits, uint32_t i)
{
    return i < waits->threads.used ? ew_pool_at(&waits->threads, i + 1) : NULL;
}

const struct ew_waits_edge *ew_waits_edge_at(const struct etwatch_waits *waits, uint32_t i)
{
    return i < waits->edges.used ? ew_pool_at(&waits->edges, i + 1) : NULL;
}

int etwatch_waits_info(const struct etwatch_waits *waits, struct etwatch_waits_info *ret_info)
{
    if (waits == NULL || ret_info == NULL)
        return ETWATCH_EINVAL;
    struct etwatch_waits_info info = {
        .thread_count = waits->threads.used,
        .edge_count = waits->edges.used,
        .events = waits->events,
        .dropped = waits->dropped,
    };
    return ew_sized_out(ret_info, &info, sizeof info);
}

static const char *name_of(const struct ew_waits_thread *thread)
{
    return thread == NULL || thread->name[0] == '\0' ? NULL : thread->name;
}

int etwatch_waits_thread(const struct etwatch_waits *waits, uint32_t i,
                         struct etwatch_waits_thread *ret_thread)
{
    const struct ew_waits_thread *thread = waits == NULL ? NULL : ew_waits_thread_at(waits, i);
    if (thread == NULL || ret_thread == NULL)
        return ETWATCH_EINVAL;
    struct etwatch_waits_thread out = {
        .pid = thread->pid,
        .tid = thread->tid,
        .name = name_of(thread),
        .run_ns = thread->run_ns,
        .ready_ns = thread->ready_ns,
        .sleep_ns = thread->sleep_ns,
        .blocked_ns = thread->blocked_ns,
        .fault_ns = waits->knows_faults ? thread->fault_ns : UINT64_MAX,
        .disk_ns = waits->knows_disks ? thread->disk_ns : UINT64_MAX,
        .sleeps = thread->sleeps,
        .blocks = thread->blocks,
        .wait_max_ns = thread->wait_max_ns,
        .switches = thread->switches,
        .preempted = thread->preempted,
    };
    return ew_sized_out(ret_thread, &out, sizeof out);
}

int etwatch_waits_edge(const struct etwatch_waits *waits, uint32_t i,
                       struct etwatch_waits_edge *ret_edge)
{
    const struct ew_waits_edge *edge = waits == NULL ? NULL : ew_waits_edge_at(waits, i);
    if (edge == NULL || ret_edge == NULL)
        return ETWATCH_EINVAL;
    struct etwatch_waits_edge out = {
        .pid = edge->pid,
        .tid = edge->tid,
        .waker_pid = edge->waker_pid,
        .waker_tid = edge->waker_tid,
        .name = name_of(find(waits, edge->tid)),
        .waker_name = name_of(find(waits, edge->waker_tid)),
        .count = edge->count,
        .wait_ns = edge->wait_ns,
        .wait_max_ns = edge->wait_max_ns,
        .blocked_ns = edge->blocked_ns,
        .ready_ns = edge->ready_ns,
    };
    return ew_sized_out(ret_edge, &out, sizeof out);
}
