/* SPDX-License-Identifier: MIT */
/* The poll source for Windows: values that not every list and not every Windows version has. */
#include "metric_kit.h"
#include "winpoll_kit.h"

/* ------------------------------------------------------------------- additional values */

TEST(pools_other_io_and_thread_states_are_reported)
{
    struct row a = {.pid = 8,
                    .name = "a.exe",
                    .threads = 6,
                    .pools = 8192,
                    .rss_private = 12288,
                    .read_bytes = 10,
                    .other_bytes = 500,
                    .states = {2, 1, 3, 7}};
    struct machine *m = new_machine(ROWS(idle, a));
    struct ew_source *source = open_on(m, &all, false, 100);
    static const struct etwatch_metric_set expected = EW_METRIC_SET(
        ETWATCH_M_pool_paged_bytes, ETWATCH_M_pool_nonpaged_bytes, ETWATCH_M_rss_private_bytes,
        ETWATCH_M_io_other_bytes, ETWATCH_M_io_other_ops, ETWATCH_M_threads_running,
        ETWATCH_M_threads_suspended, ETWATCH_M_gdi_objects);
    CHECK(includes(&source->ops->available, &expected));
    CHECK_EQ_STR(round_of(m, source, 10 * MS), "seen 8");
    const struct ew_process_fact *fact = &m->facts[0];
    CHECK_EQ_UINT(fact->gauge[EW_G_pool_paged_bytes], 8192);
    CHECK_EQ_UINT(fact->gauge[EW_G_pool_nonpaged_bytes], 4096);
    CHECK_EQ_UINT(fact->gauge[EW_G_rss_private_bytes], 12288);
    CHECK_EQ_UINT(fact->gauge[EW_G_threads_running], 1);
    CHECK_EQ_UINT(fact->gauge[EW_G_threads_ready], 3);
    CHECK_EQ_UINT(fact->gauge[EW_G_threads_waiting], 2);
    CHECK_EQ_UINT(fact->gauge[EW_G_threads_suspended], 0);
    CHECK_EQ_UINT(fact->counter[EW_C_io_other_bytes], 500);
    CHECK_EQ_UINT(fact->counter[EW_C_io_other_ops], 50);
    a.wait_reason = 5;
    a.states[0] = 1;
    RELIST(m, idle, a);
    CHECK_EQ_STR(round_of(m, source, 20 * MS), "read 8");
    CHECK_EQ_UINT(m->readings[0].gauge[EW_G_threads_running], 0);
    CHECK_EQ_UINT(m->readings[0].gauge[EW_G_threads_suspended], 2);
    CHECK((m->readings[0].gauge_has & EW_HAS_G(threads_running)) != 0);
    close_on(m, source);
}

TEST(if_no_thread_runs_states_are_unknown)
{
    struct row a = {.pid = 8, .name = "a.exe", .threads = 2};
    struct machine *m = new_machine(ROWS(idle, a));
    struct ew_source *source = open_on(m, &all, false, 100);
    CHECK(!etwatch_metric_set_has(&source->ops->available, ETWATCH_M_threads_waiting));
    CHECK(!etwatch_metric_set_has(&source->ops->available, ETWATCH_M_pool_paged_bytes));
    CHECK(!etwatch_metric_set_has(&source->ops->available, ETWATCH_M_rss_private_bytes));
    (void)round_of(m, source, 10 * MS);
    CHECK_EQ_UINT(m->facts[0].gauge_has & (EW_HAS_G(threads_waiting) | EW_HAS_G(pool_paged_bytes)),
                  0);
    close_on(m, source);
}

TEST(cycles_are_exact)
{
    struct row a = {.pid = 8, .name = "a.exe", .cycles = 1000}, b = {.pid = 12, .name = "b.exe"};
    struct machine *m = new_machine(ROWS(idle, a, b));
    struct ew_source *source = open_on(m, &all, false, 100);
    CHECK(etwatch_metric_set_has(&source->ops->available, ETWATCH_M_cycles));
    CHECK_EQ_STR(round_of(m, source, 10 * MS), "seen 8, seen 12");
    CHECK_EQ_UINT(m->facts[0].counter[EW_C_cycles], 1000);
    CHECK((m->facts[1].counter_has & EW_HAS_C(cycles)) != 0); /* it never ran */
    CHECK_EQ_UINT(m->facts[1].counter[EW_C_cycles], 0);
    /* Less than a tick: no other value shows that it ran. */
    a.cycles = 1500;
    RELIST(m, idle, a, b);
    CHECK_EQ_STR(round_of(m, source, 20 * MS), "read 8");
    CHECK_EQ_UINT(m->readings[0].counter[EW_C_cycles], 1500);
    m->last = (struct ew_winpoll_last){.cycles = 1700};
    m->last_known = true;
    RELIST(m, idle, b);
    CHECK_EQ_STR(round_of(m, source, 30 * MS), "read 8, exit 8");
    CHECK_EQ_UINT(m->readings[0].counter[EW_C_cycles], 1700);
    CHECK(!m->readings[0].incomplete);
    m->last.cycles = 0; /* unknown: the value in the list is not the final one */
    RELIST(m, idle);
    CHECK_EQ_STR(round_of(m, source, 40 * MS), "read 12, exit 12");
    CHECK(m->readings[0].incomplete);
    close_on(m, source);
}

TEST(if_no_process_has_cycles_they_are_unavailable_with_a_reason)
{
    struct row busy_idle = {.pid = 0, .name = "", .cycles = 99};
    struct machine *m = new_machine(ROWS(busy_idle, {.pid = 8, .name = "a.exe", .user = 5}));
    struct ew_source *source = open_on(m, &all, false, 100);
    CHECK(!etwatch_metric_set_has(&source->ops->available, ETWATCH_M_cycles));
    CHECK(strstr(source->ops->unavailable_reason(source, ETWATCH_M_cycles), "CycleTime") != NULL);
    CHECK(source->ops->unavailable_reason(source, ETWATCH_M_cpu_ns) == NULL);
    (void)round_of(m, source, 10 * MS);
    CHECK_EQ_UINT(m->facts[0].counter_has & EW_HAS_C(cycles), 0);
    close_on(m, source);
}

TEST(threads_of_selected_processes_are_opened_for_their_cycles)
{
    static const uint32_t wanted = 8;
    struct ew_filter filter = {.pids = &wanted, .pid_count = 1};
    struct row a = {.pid = 8, .name = "a.exe", .created = ZERO, .cycles = 10, .threads = 2};
    struct machine *m = new_machine(ROWS(idle, a));
    m->thread_cycles = 700;
    struct ew_source *source = open_on(m, &filter, true, 100);
    CHECK_EQ_STR(round_of(m, source, MS), "seen 8, thread 108, thread 112");
    CHECK_EQ_UINT(m->readings[0].counter[EW_C_cycles], 700);
    CHECK_EQ_STR(round_of(m, source, 2 * MS), "");
    m->thread_cycles = 800; /* ran for less than a tick */
    CHECK_EQ_STR(round_of(m, source, 3 * MS), "thread 108, thread 112");
    CHECK_EQ_UINT(m->readings[1].counter[EW_C_cycles], 800);
    m->thread_cycles = 900; /* its work before its exit */
    a.threads = 1;
    RELIST(m, idle, a);
    CHECK_EQ_STR(round_of(m, source, 4 * MS), "read 8, thread 108, final 112");
    CHECK_EQ_UINT(m->readings[2].counter[EW_C_cycles], 900);
    CHECK_EQ_UINT(m->thread_queries, 2);
    close_on(m, source);
}

TEST(threads_without_a_handle_have_no_cycles)
{
    static const uint32_t wanted = 8;
    struct ew_filter filter = {.pids = &wanted, .pid_count = 1};
    struct row a = {.pid = 8, .name = "a.exe", .created = ZERO, .cycles = 10, .threads = 2};
    struct machine *m = new_machine(ROWS(idle, a));
    m->thread_cycles = 700;
    struct ew_source *source = open_on(m, &all, true, 100);
    CHECK_EQ_STR(round_of(m, source, MS), "seen 8, thread 108, thread 112");
    CHECK_EQ_UINT(m->readings[0].counter_has & EW_HAS_C(cycles), 0);
    CHECK_EQ_UINT(m->thread_queries, 0);
    close_on(m, source);
    m = new_machine(ROWS(idle, a));
    source = open_on(m, &filter, true, 100);
    CHECK_EQ_STR(round_of(m, source, MS), "seen 8, thread 108, thread 112");
    CHECK_EQ_UINT(m->readings[0].counter_has & EW_HAS_C(cycles), 0);
    CHECK_EQ_UINT(m->thread_queries, 2);
    close_on(m, source);
}

TEST(gauges_that_need_a_call_are_read_only_for_processes_that_ran)
{
    struct row a = {.pid = 8, .name = "a.exe", .user = 5}, b = {.pid = 12, .name = "b.exe"};
    struct machine *m = new_machine(ROWS(idle, a, b));
    struct ew_source *source = open_on(m, &all, false, 100);
    CHECK_EQ_STR(round_of(m, source, 10 * MS), "seen 8, seen 12");
    CHECK_EQ_UINT(m->gauge_queries, 2);
    CHECK_EQ_UINT(m->facts[0].gauge[EW_G_gdi_objects], 10);
    CHECK_EQ_STR(round_of(m, source, 20 * MS), "");
    CHECK_EQ_UINT(m->gauge_queries, 2);
    a.user = 6;
    RELIST(m, idle, a, b);
    CHECK_EQ_STR(round_of(m, source, 30 * MS), "read 8");
    CHECK_EQ_UINT(m->gauge_queries, 3);
    CHECK_EQ_UINT(m->readings[0].gauge[EW_G_gdi_objects], 12);
    CHECK_EQ_UINT(m->readings[0].gauge[EW_G_affinity], 3);
    close_on(m, source);
}
