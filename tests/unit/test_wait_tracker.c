/* SPDX-License-Identifier: MIT */
/*
 * A switch reports how long the incoming thread had waited, how much of that it was ready, and
 * which thread woke it.
 */
#include "sampler/wait_tracker.h"
#include "test.h"

#define UNKNOWN_NS UINT64_MAX
#define NOBODY UINT32_MAX

static struct ew_wait_tracker *wait_tracker;

static struct etwatch_event send_event(uint32_t kind, uint64_t t_ns, uint32_t tid, uint32_t other,
                                       uint32_t state)
{
    struct etwatch_event event = {.size = sizeof event,
                                  .kind = kind,
                                  .t_ns = t_ns,
                                  .pid = 1000 + tid,
                                  .tid = tid,
                                  .next_pid = 1000 + other,
                                  .next_tid = other,
                                  .state = state};
    ew_wait_tracker_event(wait_tracker, &event);
    return event;
}

#define SWITCH(t, from, to, state) send_event(ETWATCH_EVENT_SWITCH, t, from, to, state)
#define WAKE(t, thread, by) send_event(ETWATCH_EVENT_WAKEUP, t, thread, by, 0)

static void check_wait(struct etwatch_event event, uint64_t wait_ns, uint64_t ready_ns,
                       uint32_t waker_tid)
{
    CHECK_EQ_UINT(event.wait_ns, wait_ns);
    CHECK_EQ_UINT(event.ready_ns, ready_ns);
    CHECK_EQ_UINT(event.waker_tid, waker_tid);
    CHECK_EQ_UINT(event.waker_pid, waker_tid == NOBODY ? NOBODY : 1000 + waker_tid);
}

TEST(a_switch_reports_the_wait_of_the_incoming_thread)
{
    CHECK_EQ_INT(ew_wait_tracker_new(&wait_tracker), 0);
    check_wait(SWITCH(100, 0, 1, 0), UNKNOWN_NS, UNKNOWN_NS,
               NOBODY); /* waiting since an unknown time */
    check_wait(SWITCH(200, 1, 2, 1), UNKNOWN_NS, UNKNOWN_NS, NOBODY); /* 1 sleeps */
    check_wait(WAKE(250, 1, 2), UNKNOWN_NS, UNKNOWN_NS, NOBODY);
    (void)WAKE(260, 1, 3);                        /* it is awake already */
    check_wait(SWITCH(300, 2, 1, 0), 100, 50, 2); /* 2 is preempted */
    check_wait(SWITCH(420, 1, 2, 2), 120, 120, NOBODY);
    /* It runs again without a logged wake-up: it waited nevertheless. */
    check_wait(SWITCH(500, 2, 1, 1), 80, UNKNOWN_NS, NOBODY);
    ew_wait_tracker_free(wait_tracker);
}

TEST(a_new_thread_waits_from_its_start)
{
    CHECK_EQ_INT(ew_wait_tracker_new(&wait_tracker), 0);
    (void)send_event(ETWATCH_EVENT_FORK, 10, 1, 5, 0);
    (void)WAKE(15, 5, 1);
    check_wait(SWITCH(40, 1, 5, 1), 30, 25, 1);
    ew_wait_tracker_free(wait_tracker);
}

TEST(a_reused_id_is_another_thread)
{
    CHECK_EQ_INT(ew_wait_tracker_new(&wait_tracker), 0);
    (void)SWITCH(10, 7, 0, 0x80); /* it has exited */
    check_wait(SWITCH(50, 0, 7, 0), UNKNOWN_NS, UNKNOWN_NS, NOBODY);
    ew_wait_tracker_free(wait_tracker);
}

TEST(after_a_loss_nothing_is_known)
{
    CHECK_EQ_INT(ew_wait_tracker_new(&wait_tracker), 0);
    (void)SWITCH(10, 7, 8, 1);
    ew_wait_tracker_gap(wait_tracker);
    (void)WAKE(20, 7, 8);
    check_wait(SWITCH(50, 8, 7, 1), UNKNOWN_NS, UNKNOWN_NS, NOBODY);
    check_wait(SWITCH(70, 7, 8, 1), 20, UNKNOWN_NS, NOBODY);
    ew_wait_tracker_free(wait_tracker);
}

/* The second pass finds all threads that fit, and nothing grows as threads start and exit. */
TEST(the_table_is_bounded)
{
    CHECK_EQ_INT(ew_wait_tracker_new(&wait_tracker), 0);
    for (uint32_t tid = 1; tid <= EW_WAIT_TRACKER_THREADS_MAX + 10; tid++)
        (void)SWITCH(tid, tid, 0, 1);
    check_wait(SWITCH(100000, 0, 1, 0), 99999, UNKNOWN_NS, NOBODY);
    check_wait(SWITCH(100000, 0, EW_WAIT_TRACKER_THREADS_MAX + 5, 0), UNKNOWN_NS, UNKNOWN_NS,
               NOBODY);
    ew_wait_tracker_free(wait_tracker);
}
