/* SPDX-License-Identifier: MIT */
/*
 * Owns, for every thread that is off the CPU, the start of its wait and the thread that woke it. A
 * thread is in the table from the event that takes it off the CPU (or creates it) until it runs
 * again, so the table has one entry per waiting thread. A gap starts a new generation, which
 * invalidates all entries without a walk.
 */
#include "sampler/wait_tracker.h"

#include <stdbool.h>

#include "base/alloc.h"
#include "ledger/index.h"
#include "ledger/pool.h"

/* Bits of the Linux task state, which all sources use: the thread has ended. */
enum { DEAD = 0x80 | 0x10 | 0x20 };

struct waiting {
    uint32_t pool_word;
    uint32_t tid, generation;
    uint32_t waker_pid, waker_tid; /* UINT32_MAX: unknown */
    uint64_t left_ns, ready_ns;    /* ready_ns UINT64_MAX: not runnable */
};

struct ew_wait_tracker {
    struct ew_pool threads;
    struct ew_index by_tid;
    uint32_t generation;
};

int ew_wait_tracker_new(struct ew_wait_tracker **ret_tracker)
{
    struct ew_wait_tracker *wait_tracker = ew_calloc(1, sizeof *wait_tracker);
    if (wait_tracker == NULL)
        return ETWATCH_ENOMEM;
    ew_pool_init(&wait_tracker->threads, sizeof(struct waiting));
    ew_index_init(&wait_tracker->by_tid);
    *ret_tracker = wait_tracker;
    return 0;
}

void ew_wait_tracker_free(struct ew_wait_tracker *wait_tracker)
{
    if (wait_tracker == NULL)
        return;
    ew_pool_done(&wait_tracker->threads);
    ew_index_done(&wait_tracker->by_tid);
    ew_free(wait_tracker);
}

void ew_wait_tracker_gap(struct ew_wait_tracker *wait_tracker)
{
    wait_tracker->generation++;
}

static struct waiting *find(const struct ew_wait_tracker *wait_tracker, uint32_t tid,
                            uint32_t *ret_ref)
{
    uint32_t cursor = ew_index_home(&wait_tracker->by_tid, tid);
    *ret_ref = ew_index_next(&wait_tracker->by_tid, tid, &cursor);
    return *ret_ref == 0 ? NULL : ew_pool_at(&wait_tracker->threads, *ret_ref);
}

static void forget(struct ew_wait_tracker *wait_tracker, uint32_t tid)
{
    uint32_t ref;
    if (find(wait_tracker, tid, &ref) == NULL)
        return;
    ew_index_remove(&wait_tracker->by_tid, tid, ref);
    ew_pool_give(&wait_tracker->threads, ref);
}

/* Idle threads all have id 0 and are not tracked. */
static void begin(struct ew_wait_tracker *wait_tracker, uint32_t tid, uint64_t t_ns, bool ready)
{
    uint32_t ref = 0;
    struct waiting *thread = tid == 0 ? NULL : find(wait_tracker, tid, &ref);
    if (thread == NULL && tid != 0 && wait_tracker->threads.used < EW_WAIT_TRACKER_THREADS_MAX) {
        thread = ew_pool_take(&wait_tracker->threads, &ref);
        if (thread != NULL && ew_index_add(&wait_tracker->by_tid, tid, ref) < 0) {
            ew_pool_give(&wait_tracker->threads, ref);
            thread = NULL;
        }
    }
    if (thread == NULL)
        return;
    thread->tid = tid;
    thread->generation = wait_tracker->generation;
    thread->left_ns = t_ns;
    thread->ready_ns = ready ? t_ns : UINT64_MAX;
    thread->waker_pid = thread->waker_tid = UINT32_MAX;
}

/* The first wake-up counts: a thread may be woken again before it runs. */
static void wake(struct ew_wait_tracker *wait_tracker, const struct etwatch_event *event)
{
    uint32_t ref;
    struct waiting *thread = event->tid == 0 ? NULL : find(wait_tracker, event->tid, &ref);
    if (thread == NULL || thread->generation != wait_tracker->generation ||
        thread->waker_tid != UINT32_MAX)
        return;
    if (thread->ready_ns == UINT64_MAX)
        thread->ready_ns = event->t_ns;
    thread->waker_pid = event->next_pid;
    thread->waker_tid = event->next_tid;
}

static void run(struct ew_wait_tracker *wait_tracker, struct etwatch_event *event)
{
    uint32_t ref;
    const struct waiting *thread =
        event->next_tid == 0 ? NULL : find(wait_tracker, event->next_tid, &ref);
    if (thread == NULL)
        return;
    /* Clocks of CPUs differ by microseconds, so differences may be negative. */
    if (thread->generation == wait_tracker->generation) {
        event->wait_ns = event->t_ns > thread->left_ns ? event->t_ns - thread->left_ns : 0;
        if (thread->ready_ns != UINT64_MAX)
            event->ready_ns = event->t_ns > thread->ready_ns ? event->t_ns - thread->ready_ns : 0;
        event->waker_pid = thread->waker_pid;
        event->waker_tid = thread->waker_tid;
    }
    forget(wait_tracker, event->next_tid);
}

void ew_wait_tracker_event(struct ew_wait_tracker *wait_tracker, struct etwatch_event *event)
{
    event->wait_ns = event->ready_ns = UINT64_MAX;
    event->waker_pid = event->waker_tid = UINT32_MAX;
    switch (event->kind) {
    case ETWATCH_EVENT_SWITCH:
        if ((event->state & DEAD) != 0)
            forget(wait_tracker, event->tid);
        else
            begin(wait_tracker, event->tid, event->t_ns, event->state == 0);
        run(wait_tracker, event);
        break;
    case ETWATCH_EVENT_WAKEUP:
        wake(wait_tracker, event);
        break;
    case ETWATCH_EVENT_FORK: /* a separate wake-up makes it runnable */
        begin(wait_tracker, event->next_tid, event->t_ns, false);
        break;
    default:
        break;
    }
}
