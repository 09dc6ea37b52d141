/* SPDX-License-Identifier: MIT */
/*
 * Owns what every thread that is off the CPU waits since, and who woke it. A thread is in the table
 * from the event that takes it off the CPU (or makes it) until it runs again, so the table is as
 * large as there are threads that wait. After a gap entries are of an older generation: nothing has
 * to be walked.
 */
#include "sampler/wait_tracker.h"

#include <stdbool.h>

#include "base/alloc.h"
#include "ledger/index.h"
#include "ledger/pool.h"

/* Bits of the task state of Linux, which every source speaks: the thread has ended. */
enum { DEAD = 0x80 | 0x10 | 0x20 };

struct waiting {
    uint32_t pool_word;
    uint32_t tid, generation;
    uint32_t waker_pid, waker_tid; /* UINT32_MAX: none */
    uint64_t left_ns, ready_ns;    /* ready_ns UINT64_MAX: it is not ready */
};

struct ew_pairing {
    struct ew_pool threads;
    struct ew_index by_tid;
    uint32_t generation;
};

int ew_pairing_new(struct ew_pairing **ret_pairing)
{
    struct ew_pairing *pairing = ew_calloc(1, sizeof *pairing);
    if (pairing == NULL)
        return ETWATCH_ENOMEM;
    ew_pool_init(&pairing->threads, sizeof(struct waiting));
    ew_index_init(&pairing->by_tid);
    *ret_pairing = pairing;
    return 0;
}

void ew_pairing_free(struct ew_pairing *pairing)
{
    if (pairing == NULL)
        return;
    ew_pool_done(&pairing->threads);
    ew_index_done(&pairing->by_tid);
    ew_free(pairing);
}

void ew_pairing_gap(struct ew_pairing *pairing)
{
    pairing->generation++;
}

static struct waiting *find(const struct ew_pairing *pairing, uint32_t tid, uint32_t *ret_ref)
{
    uint32_t cursor = ew_index_home(&pairing->by_tid, tid);
    *ret_ref = ew_index_next(&pairing->by_tid, tid, &cursor);
    return *ret_ref == 0 ? NULL : ew_pool_at(&pairing->threads, *ret_ref);
}

static void forget(struct ew_pairing *pairing, uint32_t tid)
{
    uint32_t ref;
    if (find(pairing, tid, &ref) == NULL)
        return;
    ew_index_remove(&pairing->by_tid, tid, ref);
    ew_pool_give(&pairing->threads, ref);
}

/* Idle threads all have the id 0 and wait for nothing. */
static void begin(struct ew_pairing *pairing, uint32_t tid, uint64_t t_ns, bool ready)
{
    uint32_t ref = 0;
    struct waiting *thread = tid == 0 ? NULL : find(pairing, tid, &ref);
    if (thread == NULL && tid != 0 && pairing->threads.used < EW_PAIRING_THREADS_MAX) {
        thread = ew_pool_take(&pairing->threads, &ref);
        if (thread != NULL && ew_index_add(&pairing->by_tid, tid, ref) < 0) {
            ew_pool_give(&pairing->threads, ref);
            thread = NULL;
        }
    }
    if (thread == NULL)
        return;
    thread->tid = tid;
    thread->generation = pairing->generation;
    thread->left_ns = t_ns;
    thread->ready_ns = ready ? t_ns : UINT64_MAX;
    thread->waker_pid = thread->waker_tid = UINT32_MAX;
}

/* The first one counts: it may be woken again before it runs. */
static void wake(struct ew_pairing *pairing, const struct etwatch_event *event)
{
    uint32_t ref;
    struct waiting *thread = event->tid == 0 ? NULL : find(pairing, event->tid, &ref);
    if (thread == NULL || thread->generation != pairing->generation ||
        thread->waker_tid != UINT32_MAX)
        return;
    if (thread->ready_ns == UINT64_MAX)
        thread->ready_ns = event->t_ns;
    thread->waker_pid = event->next_pid;
    thread->waker_tid = event->next_tid;
}

static void run(struct ew_pairing *pairing, struct etwatch_event *event)
{
    uint32_t ref;
    const struct waiting *thread =
        event->next_tid == 0 ? NULL : find(pairing, event->next_tid, &ref);
    if (thread == NULL)
        return;
    /* Clocks of CPUs differ by microseconds. */
    if (thread->generation == pairing->generation) {
        event->wait_ns = event->t_ns > thread->left_ns ? event->t_ns - thread->left_ns : 0;
        if (thread->ready_ns != UINT64_MAX)
            event->ready_ns = event->t_ns > thread->ready_ns ? event->t_ns - thread->ready_ns : 0;
        event->waker_pid = thread->waker_pid;
        event->waker_tid = thread->waker_tid;
    }
    forget(pairing, event->next_tid);
}

void ew_pairing_event(struct ew_pairing *pairing, struct etwatch_event *event)
{
    event->wait_ns = event->ready_ns = UINT64_MAX;
    event->waker_pid = event->waker_tid = UINT32_MAX;
    switch (event->kind) {
    case ETWATCH_EVENT_SWITCH:
        if ((event->state & DEAD) != 0)
            forget(pairing, event->tid);
        else
            begin(pairing, event->tid, event->t_ns, event->state == 0);
        run(pairing, event);
        break;
    case ETWATCH_EVENT_WAKEUP:
        wake(pairing, event);
        break;
    case ETWATCH_EVENT_FORK: /* it is made ready by a wake-up of its own */
        begin(pairing, event->next_tid, event->t_ns, false);
        break;
    default:
        break;
    }
}
