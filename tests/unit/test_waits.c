/* SPDX-License-Identifier: MIT */
/* The times of a thread add up, and a wait is attributed to the thread that ended it. */
#include "sampler/waits.h"
#include "test.h"

static struct etwatch_waits *open_waits(void)
{
    struct etwatch_waits *waits;
    CHECK_EQ_INT(etwatch_waits_new(&waits), 0);
    return waits;
}

static const struct ew_waits_edge *edge(const struct etwatch_waits *waits, uint32_t tid,
                                        uint32_t waker)
{
    const struct ew_waits_edge *found;
    for (uint32_t i = 0; (found = ew_waits_edge_at(waits, i)) != NULL; i++)
        if (found->tid == tid && found->waker_tid == waker)
            return found;
    FAIL("no such edge");
    return NULL;
}

TEST(a_wait_is_attributed_to_the_waker)
{
    struct etwatch_waits *waits = open_waits();
    ew_waits_switch(waits, 0, 0, EW_WAIT_READY, 2);
    ew_waits_switch(waits, 10, 2, EW_WAIT_SLEEP, 1); /* 2 ran for 10 */
    ew_waits_wake(waits, 35, 2, 1);                  /* waited 25 for 1 */
    ew_waits_switch(waits, 40, 1, EW_WAIT_READY, 2); /* was ready for 5 */
    ew_waits_switch(waits, 60, 2, EW_WAIT_BLOCKED, 1);
    ew_waits_wake(waits, 63, 2, 0); /* an interrupt: the disk */
    ew_waits_end(waits, 70);
    const struct ew_waits_thread *two = ew_waits_find(waits, 2), *one = ew_waits_find(waits, 1);
    CHECK_EQ_UINT(two->run_ns, 30);
    CHECK_EQ_UINT(two->sleep_ns, 25);
    CHECK_EQ_UINT(two->blocked_ns, 3);
    CHECK_EQ_UINT(two->ready_ns, 5 + 7);
    CHECK_EQ_UINT(two->wait_max_ns, 25);
    CHECK_EQ_UINT(two->sleeps, 1);
    CHECK_EQ_UINT(two->blocks, 1);
    CHECK_EQ_UINT(one->run_ns, 30 + 10);
    CHECK_EQ_UINT(one->ready_ns, 20);
    CHECK_EQ_UINT(one->preempted, 1);
    CHECK_EQ_UINT(edge(waits, 2, 1)->count, 1);
    CHECK_EQ_UINT(edge(waits, 2, 1)->wait_ns, 25);
    CHECK_EQ_UINT(edge(waits, 2, 1)->ready_ns, 5);
    CHECK_EQ_UINT(edge(waits, 2, 1)->blocked_ns, 0);
    CHECK_EQ_UINT(edge(waits, 2, 0)->blocked_ns, 3);
    etwatch_waits_free(waits);
}

TEST(waking_a_running_thread_is_not_a_wake_up)
{
    struct etwatch_waits *waits = open_waits();
    ew_waits_switch(waits, 0, 0, EW_WAIT_READY, 2);
    ew_waits_wake(waits, 5, 2, 1);
    ew_waits_end(waits, 9);
    CHECK(ew_waits_edge_at(waits, 0) == NULL);
    CHECK_EQ_UINT(ew_waits_find(waits, 2)->run_ns, 9);
    etwatch_waits_free(waits);
}

TEST(time_across_a_loss_is_not_attributed)
{
    struct etwatch_waits *waits = open_waits();
    ew_waits_switch(waits, 0, 0, EW_WAIT_READY, 2);
    ew_waits_gap(waits);
    ew_waits_switch(waits, 100, 2, EW_WAIT_SLEEP, 0);
    ew_waits_switch(waits, 130, 0, EW_WAIT_READY, 2); /* its wake-up was lost */
    ew_waits_end(waits, 140);
    CHECK_EQ_UINT(ew_waits_find(waits, 2)->run_ns, 10);
    CHECK_EQ_UINT(ew_waits_find(waits, 2)->sleep_ns, 30);
    CHECK(ew_waits_edge_at(waits, 0) == NULL);
    etwatch_waits_free(waits);
}

TEST(states_of_linux_are_distinguished)
{
    struct etwatch_waits *waits = open_waits();
    static const struct {
        const char *remark;
        uint32_t state;
        uint64_t ready, sleep, blocked;
    } rows[] = {
        {"preempted", 0, 10, 0, 0},
        {"interruptible", 1, 0, 10, 0},
        {"uninterruptible", 2, 0, 0, 10},
        {"killable", 0x102, 0, 0, 10},
        {"an idle worker", 0x402, 0, 10, 0},
        {"stopped", 4, 0, 10, 0},
        {"dead", 0x80, 0, 0, 0},
    };
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct etwatch_event event = {.size = sizeof event,
                                      .kind = ETWATCH_EVENT_SWITCH,
                                      .t_ns = 100,
                                      .pid = 7,
                                      .tid = 10 + i,
                                      .state = rows[i].state};
        (void)etwatch_waits_add(waits, &event);
    }
    ew_waits_end(waits, 110);
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct ew_waits_thread *thread = ew_waits_find(waits, 10 + i);
        test_row(rows[i].remark);
        CHECK_EQ_UINT(thread->ready_ns, rows[i].ready);
        CHECK_EQ_UINT(thread->sleep_ns, rows[i].sleep);
        CHECK_EQ_UINT(thread->blocked_ns, rows[i].blocked);
    }
    etwatch_waits_free(waits);
}

static int everything(void *ctx)
{
    struct etwatch_waits *waits;
    (void)ctx;
    int rc = etwatch_waits_new(&waits);
    if (rc < 0)
        return rc;
    ew_waits_switch(waits, 0, 1, EW_WAIT_SLEEP, 2);
    ew_waits_wake(waits, 5, 1, 2);
    struct etwatch_waits_info info = {.size = sizeof info};
    CHECK_EQ_INT(etwatch_waits_info(waits, &info), 0);
    rc = info.dropped > 0 ? ETWATCH_ENOMEM : 0;
    ew_waits_end(waits, 10);
    etwatch_waits_free(waits);
    return rc;
}

TEST(without_memory_the_loss_is_counted)
{
    TORTURE(everything, NULL);
}

static void leave_cpu(struct etwatch_waits *waits, uint64_t t_ns, uint32_t state, uint32_t io_wait,
                      uint32_t hard_faults)
{
    struct etwatch_event event = {.size = sizeof event,
                                  .kind = ETWATCH_EVENT_SWITCH,
                                  .t_ns = t_ns,
                                  .pid = 1,
                                  .tid = 2,
                                  .state = state,
                                  .io_wait = io_wait,
                                  .hard_faults = hard_faults};
    (void)etwatch_waits_add(waits, &event);
}

static void take_cpu(struct etwatch_waits *waits, uint64_t t_ns)
{
    struct etwatch_event event = {.size = sizeof event,
                                  .kind = ETWATCH_EVENT_SWITCH,
                                  .t_ns = t_ns,
                                  .next_pid = 1,
                                  .next_tid = 2};
    (void)etwatch_waits_add(waits, &event);
}

TEST(a_disk_wait_followed_by_a_new_hard_fault_is_a_fault_wait)
{
    struct etwatch_waits *waits = open_waits();
    CHECK(!ew_waits_knows_io(waits));
    take_cpu(waits, 0);
    leave_cpu(waits, 10, 2, 2, 7); /* reads */
    take_cpu(waits, 15);
    leave_cpu(waits, 20, 2, 2, 7); /* faults */
    take_cpu(waits, 50);
    leave_cpu(waits, 51, 0, 1, 7); /* preempted before the fault is over */
    take_cpu(waits, 52);
    leave_cpu(waits, 60, 1, 1, 8); /* sleeps */
    take_cpu(waits, 90);
    leave_cpu(waits, 95, 2, 1, 8); /* blocked by something else */
    take_cpu(waits, 99);
    leave_cpu(waits, 100, 0x80, 1, 9); /* a fault without a wait */
    ew_waits_end(waits, 100);
    const struct ew_waits_thread *thread = ew_waits_find(waits, 2);
    CHECK(ew_waits_knows_io(waits));
    CHECK_EQ_UINT(thread->disk_ns, 5 + 30);
    CHECK_EQ_UINT(thread->fault_ns, 30);
    CHECK_EQ_UINT(thread->blocked_ns, 5 + 30 + 4);
    CHECK_EQ_UINT(thread->sleep_ns, 30);
    etwatch_waits_free(waits);
}

TEST(threads_and_edges_are_read_by_number)
{
    struct etwatch_waits *waits = open_waits();
    struct etwatch_event event = {.size = sizeof event,
                                  .kind = ETWATCH_EVENT_SWITCH,
                                  .t_ns = 10,
                                  .pid = 1,
                                  .tid = 2,
                                  .name = "reader",
                                  .state = 1,
                                  .next_pid = 1,
                                  .next_tid = 3,
                                  .next_name = "writer"};
    CHECK_EQ_INT(etwatch_waits_add(waits, &event), 0);
    event = (struct etwatch_event){.size = sizeof event,
                                   .kind = ETWATCH_EVENT_WAKEUP,
                                   .t_ns = 40,
                                   .pid = 1,
                                   .tid = 2,
                                   .next_pid = 1,
                                   .next_tid = 3};
    CHECK_EQ_INT(etwatch_waits_add(waits, &event), 0);
    event.kind = ETWATCH_EVENT_EXEC; /* ignored, but its time is the end */
    event.t_ns = 50;
    CHECK_EQ_INT(etwatch_waits_add(waits, &event), 0);
    CHECK_EQ_INT(etwatch_waits_end(waits), 0);
    struct etwatch_waits_info info = {.size = sizeof info};
    struct etwatch_waits_thread thread = {.size = sizeof thread};
    struct etwatch_waits_edge edge = {.size = sizeof edge};
    CHECK_EQ_INT(etwatch_waits_info(waits, &info), 0);
    CHECK_EQ_UINT(info.thread_count, 2);
    CHECK_EQ_UINT(info.edge_count, 1);
    CHECK_EQ_UINT(info.events, 2);
    CHECK_EQ_UINT(info.dropped, 0);
    CHECK_EQ_INT(etwatch_waits_thread(waits, 0, &thread), 0);
    CHECK_EQ_STR(thread.name, "reader");
    CHECK_EQ_UINT(thread.sleep_ns, 30);
    CHECK_EQ_UINT(thread.ready_ns, 10);
    CHECK(thread.fault_ns == UINT64_MAX && thread.disk_ns == UINT64_MAX);
    CHECK_EQ_INT(etwatch_waits_edge(waits, 0, &edge), 0);
    CHECK_EQ_STR(edge.waker_name, "writer");
    CHECK_EQ_UINT(edge.wait_ns, 30);
    CHECK_EQ_UINT(edge.waker_pid, 1);
    CHECK_EQ_INT(etwatch_waits_thread(waits, 2, &thread), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_waits_edge(waits, 1, &edge), ETWATCH_EINVAL);
    thread.size = 0;
    CHECK_EQ_INT(etwatch_waits_thread(waits, 0, &thread), ETWATCH_EINVAL);
    etwatch_waits_free(waits);
    etwatch_waits_free(NULL);
    CHECK_EQ_INT(etwatch_waits_new(NULL), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_waits_read(NULL, NULL, NULL), ETWATCH_EINVAL);
}
