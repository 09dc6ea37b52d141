/* SPDX-License-Identifier: MIT */
/*
 * The poll source for Windows with synthetic lists: the layout, and processes that start, exit,
 * fork, have their ID reused or stay unreadable. It runs on every system.
 */
#include "test.h"

#include <string.h>

#include "base/alloc.h"
#include "winpoll_kit.h"

/* --------------------------------------------------------------------- the layout */

TEST(a_list_is_read_to_its_end)
{
    struct listed {
        struct ew_listing listing;
        struct ew_listed_process process;
        struct ew_listed_thread thread;
    } l;
    char name[16];
    struct machine *m = new_machine(ROWS(idle, {.pid = 8,
                                                .ppid = 4,
                                                .name = "a.exe",
                                                .created = ZERO + 5,
                                                .user = 30,
                                                .kernel = 40,
                                                .threads = 2,
                                                .faults = 7,
                                                .hard = 3,
                                                .rss = 4096,
                                                .read_bytes = 50}));
    ew_listing_init(&l.listing, m->list.bytes, m->list.size, ADDRESS);
    CHECK_EQ_INT(ew_listing_next(&l.listing, &l.process), 1);
    CHECK_EQ_UINT(l.process.pid, 0);
    ew_listed_name(&l.process, name, sizeof name);
    CHECK_EQ_STR(name, "");
    CHECK_EQ_INT(ew_listing_next(&l.listing, &l.process), 1);
    ew_listed_name(&l.process, name, sizeof name);
    CHECK_EQ_STR(name, "a.exe");
    CHECK_EQ_UINT(l.process.pid, 8);
    CHECK_EQ_UINT(l.process.ppid, 4);
    CHECK_EQ_UINT(l.process.user, 30);
    CHECK_EQ_UINT(l.process.kernel, 40);
    CHECK_EQ_UINT(l.process.created, ZERO + 5);
    CHECK_EQ_UINT(l.process.faults, 7);
    CHECK_EQ_UINT(l.process.faults_hard, 3);
    CHECK_EQ_UINT(l.process.handles, 33);
    CHECK_EQ_UINT(l.process.rss_bytes, 4096);
    CHECK_EQ_UINT(l.process.read_bytes, 50);
    CHECK_EQ_UINT(l.process.thread_count, 2);
    ew_listed_thread(&l.process, 1, &l.thread);
    CHECK_EQ_UINT(l.thread.tid, 112);
    CHECK_EQ_UINT(l.thread.user, 15);
    CHECK_EQ_INT(l.thread.priority, 9);
    CHECK_EQ_INT(ew_listing_next(&l.listing, &l.process), 0);
    CHECK_EQ_INT(ew_listing_next(&l.listing, &l.process), 0);
}

/* In a block of exactly its size, so that the address sanitizer detects a read past the end. */
TEST(a_list_truncated_anywhere_is_refused_and_not_read_past)
{
    struct machine *m = new_machine(
        ROWS(idle, {.pid = 8, .name = "a.exe", .threads = 2}, {.pid = 12, .name = "b.exe"}));
    for (size_t size = 0; size < m->list.size; size++) {
        struct ew_listing listing;
        struct ew_listed_process process;
        uint8_t *cut = ew_calloc(size > 0 ? size : 1, 1);
        int rc;
        memcpy(cut, m->list.bytes, size);
        ew_listing_init(&listing, cut, size, ADDRESS);
        while ((rc = ew_listing_next(&listing, &process)) > 0) {
            char name[16];
            struct ew_listed_thread thread;
            ew_listed_name(&process, name, sizeof name);
            for (uint32_t i = 0; i < process.thread_count; i++)
                ew_listed_thread(&process, i, &thread);
        }
        ew_free(cut);
        /* The last name is padded: without the padding the list is still complete. */
        CHECK(rc < 0 || size >= m->list.size - 2 * NAME_UNITS);
    }
}

/* -------------------------------------------------------------------------- rounds */

TEST(preexisting_processes_are_seen_and_later_ones_start)
{
    struct row a = {
        .pid = 8, .name = "a.exe", .created = ZERO + 7 * MS_UNITS, .user = MS_UNITS, .rss = 4096};
    struct row b = {.pid = 12, .ppid = 8, .name = "b.exe", .created = ZERO + 9 * MS_UNITS};
    struct machine *m = new_machine(ROWS(idle, a));
    struct ew_source *source = open_on(m, &all, false, 100);
    CHECK_EQ_STR(round_of(m, source, 10 * MS), "seen 8");
    CHECK_EQ_UINT(m->facts[0].start_ns, 7 * MS);
    CHECK_EQ_STR(m->facts[0].name, "a.exe");
    CHECK_EQ_UINT(m->facts[0].counter[EW_C_cpu_ns], MS);
    CHECK_EQ_UINT(m->facts[0].gauge[EW_G_rss_bytes], 4096);
    CHECK_EQ_STR(round_of(m, source, 20 * MS), "");
    RELIST(m, idle, a, b);
    CHECK_EQ_STR(round_of(m, source, 30 * MS), "start 12, read 12");
    CHECK_EQ_UINT(m->facts[0].ppid, 8);
    a.kernel = 2 * MS_UNITS;
    RELIST(m, idle, a, b);
    CHECK_EQ_STR(round_of(m, source, 40 * MS), "read 8");
    CHECK_EQ_UINT(m->readings[0].counter[EW_C_cpu_ns], 3 * MS);
    CHECK_EQ_UINT(m->readings[0].counter[EW_C_cpu_kernel_ns], 2 * MS);
    CHECK(!m->readings[0].incomplete);
    close_on(m, source);
}

/* The two clocks drift apart by more than a second within a day. */
TEST(a_later_start_time_follows_the_drift_of_the_clocks)
{
    struct row a = {.pid = 8, .name = "a.exe", .created = ZERO + 7 * MS_UNITS};
    struct row b = {.pid = 12, .name = "b.exe", .created = ZERO + 3019 * MS_UNITS};
    struct machine *m = new_machine(ROWS(idle, a));
    struct ew_source *source = open_on(m, &all, false, 100);
    CHECK_EQ_STR(round_of(m, source, 10 * MS), "seen 8");
    CHECK_EQ_UINT(m->facts[0].start_ns, 7 * MS);
    m->zero = ZERO + 3000 * MS_UNITS; /* the system clock is 3 s ahead by now */
    RELIST(m, idle, a, b);
    CHECK_EQ_STR(round_of(m, source, 20 * MS), "start 12, read 12");
    CHECK_EQ_UINT(m->facts[0].start_ns, 19 * MS);
    RELIST(m, idle, b);
    CHECK_EQ_STR(round_of(m, source, 30 * MS), "read 8, exit 8");
    CHECK_EQ_UINT(m->facts[0].start_ns, 7 * MS); /* the identity stays */
    close_on(m, source);
}

TEST(the_system_process_has_no_counts_of_other_processes)
{
    struct row a = {.pid = 8, .name = "a.exe", .created = ZERO, .user = MS_UNITS};
    struct machine *m = new_machine(ROWS(idle, a));
    struct ew_source *source = open_on(m, &all, false, 100);
    CHECK(!etwatch_metric_set_has(&source->ops->available, ETWATCH_M_io_read_bytes));
    CHECK(!etwatch_metric_set_has(&source->ops->available, ETWATCH_M_faults_minor));
    CHECK(!etwatch_metric_set_has(&source->ops->available, ETWATCH_M_private_bytes));
    (void)round_of(m, source, MS);
    CHECK((m->facts[0].counter_has & (EW_HAS_C(io_read_bytes) | EW_HAS_C(faults_minor))) == 0);
    CHECK((m->facts[0].gauge_has & EW_HAS_G(rss_bytes)) == 0);
    close_on(m, source);
    a.read_bytes = 10;
    a.faults = 1;
    m = new_machine(ROWS(idle, a));
    source = open_on(m, &all, false, 100);
    CHECK(etwatch_metric_set_has(&source->ops->available, ETWATCH_M_io_read_bytes));
    CHECK(etwatch_metric_set_has(&source->ops->available, ETWATCH_M_faults_minor));
    close_on(m, source);
}

TEST(the_exit_of_a_process_with_an_open_handle_has_its_final_values)
{
    struct row a = {.pid = 8, .name = "a.exe", .created = ZERO, .user = MS_UNITS};
    struct machine *m = new_machine(ROWS(idle, a));
    struct ew_source *source = open_on(m, &all, false, 100);
    (void)round_of(m, source, MS);
    m->last = (struct ew_winpoll_last){.user = 5 * MS_UNITS, .kernel = MS_UNITS, .exit_code = 3};
    m->last_known = true;
    RELIST(m, idle);
    CHECK_EQ_STR(round_of(m, source, 2 * MS), "read 8, exit 8");
    CHECK_EQ_UINT(m->readings[0].counter[EW_C_cpu_ns], 6 * MS);
    CHECK(!m->readings[0].incomplete);
    CHECK(m->facts[0].has & EW_HAS_EXIT_STATUS);
    CHECK_EQ_INT(m->facts[0].exit_code, 3);
    CHECK_EQ_STR(round_of(m, source, 3 * MS), "");
    close_on(m, source);
}

TEST(a_refused_query_does_not_lose_the_exit_code)
{
    struct row a = {.pid = 8, .name = "a.exe", .created = ZERO, .user = MS_UNITS};
    struct machine *m = new_machine(ROWS(idle, a));
    struct ew_source *source = open_on(m, &all, false, 100);
    (void)round_of(m, source, MS);
    m->last = (struct ew_winpoll_last){.exit_code = 3, .only_exit_code = true};
    m->last_known = true;
    RELIST(m, idle);
    CHECK_EQ_STR(round_of(m, source, 2 * MS), "read 8, exit 8");
    CHECK(m->readings[0].incomplete);
    CHECK_EQ_UINT(m->readings[0].counter[EW_C_cpu_ns], MS);
    CHECK_EQ_INT(m->facts[0].exit_code, 3);
    close_on(m, source);
}

TEST(the_exit_of_a_process_without_a_handle_is_marked)
{
    struct row a = {.pid = 8, .name = "a.exe", .created = ZERO, .user = MS_UNITS};
    struct machine *m = new_machine(ROWS(idle, a));
    m->refused_pid = 8;
    m->last_known = true;
    struct ew_source *source = open_on(m, &all, false, 100);
    (void)round_of(m, source, MS);
    RELIST(m, idle);
    CHECK_EQ_STR(round_of(m, source, 2 * MS), "read 8, exit 8");
    CHECK(m->readings[0].incomplete);
    CHECK((m->facts[0].has & EW_HAS_EXIT_STATUS) == 0);
    close_on(m, source);
}

TEST(a_reused_pid_is_another_process)
{
    struct row a = {.pid = 8, .name = "a.exe", .created = ZERO + 1, .user = 9 * MS_UNITS};
    struct row b = {.pid = 8, .name = "b.exe", .created = ZERO + 2 * MS_UNITS};
    struct machine *m = new_machine(ROWS(idle, a));
    m->refused_pid = 8;
    struct ew_source *source = open_on(m, &all, false, 100);
    (void)round_of(m, source, MS);
    RELIST(m, idle, b);
    CHECK_EQ_STR(round_of(m, source, 3 * MS), "read 8, exit 8, start 8, read 8");
    CHECK_EQ_STR(m->facts[0].name, "a.exe");
    CHECK_EQ_STR(m->facts[1].name, "b.exe");
    CHECK_EQ_UINT(m->readings[1].counter[EW_C_cpu_ns], 0);
    close_on(m, source);
}

TEST(a_process_with_an_open_handle_keeps_its_pid)
{
    struct row a = {.pid = 8, .name = "a.exe", .created = ZERO + MS_UNITS};
    struct machine *m = new_machine(ROWS(idle, a));
    struct ew_source *source = open_on(m, &all, false, 100);
    (void)round_of(m, source, MS);
    CHECK_EQ_UINT(m->facts[0].start_ns, MS);
    a.created = ZERO + 2 * MS_UNITS;
    a.user = MS_UNITS;
    RELIST(m, idle, a);
    CHECK_EQ_STR(round_of(m, source, 3 * MS), "read 8");
    CHECK_EQ_UINT(m->readings[0].start_ns, MS);
    close_on(m, source);
}

TEST(descendants_of_a_pid_are_watched_and_others_are_not)
{
    static const uint32_t wanted = 8;
    struct ew_filter filter = {.pids = &wanted, .pid_count = 1};
    struct row a = {.pid = 8, .name = "a.exe", .created = ZERO + 100};
    struct row child = {.pid = 16, .ppid = 8, .name = "c.exe", .created = ZERO + 200};
    struct row grandchild = {.pid = 20, .ppid = 16, .name = "g.exe", .created = ZERO + 300};
    struct row older = {.pid = 24, .ppid = 8, .name = "o.exe", .created = ZERO + 50};
    struct row other = {.pid = 28, .ppid = 4, .name = "x.exe", .created = ZERO + 300};
    /* A child is listed before its parent; another is older than the process that has its parent's
     * ID. */
    struct machine *m = new_machine(ROWS(idle, grandchild, child, older, other, a));
    struct ew_source *source = open_on(m, &filter, false, 100);
    CHECK_EQ_STR(round_of(m, source, MS), "seen 8, seen 16, seen 20");
    /* Its parent exits in the same round: it still belongs to the tree. */
    struct row late = {.pid = 32, .ppid = 16, .name = "l.exe", .created = ZERO + 400};
    RELIST(m, idle, grandchild, a, late);
    CHECK_EQ_STR(round_of(m, source, 2 * MS), "start 32, read 32, read 16, exit 16");
    close_on(m, source);
}

TEST(names_are_matched_without_their_extension)
{
    static const char *const wanted = "python";
    struct ew_filter filter = {.names = &wanted, .name_count = 1};
    struct machine *m = new_machine(
        ROWS(idle, {.pid = 8, .name = "python.exe"}, {.pid = 12, .name = "pythonista.exe"}));
    struct ew_source *source = open_on(m, &filter, false, 100);
    CHECK_EQ_STR(round_of(m, source, MS), "seen 8");
    close_on(m, source);
}

TEST(threads_are_reported_when_they_ran_and_when_they_exit)
{
    struct row a = {.pid = 8, .name = "a.exe", .created = ZERO, .user = 2 * MS_UNITS, .threads = 2};
    struct machine *m = new_machine(ROWS(idle, a));
    struct ew_source *source = open_on(m, &all, true, 100);
    CHECK_EQ_STR(round_of(m, source, MS), "seen 8, thread 108, thread 112");
    CHECK_EQ_UINT(m->readings[1].counter[EW_C_cpu_ns], MS);
    CHECK_EQ_STR(round_of(m, source, 2 * MS), "");
    a.threads = 1;
    RELIST(m, idle, a);
    CHECK_EQ_STR(round_of(m, source, 3 * MS), "read 8, thread 108, final 112");
    RELIST(m, idle);
    CHECK_EQ_STR(round_of(m, source, 4 * MS), "read 8, final 108, exit 8");
    close_on(m, source);
}

TEST(fault_counts_continue_beyond_32_bits)
{
    struct row a = {.pid = 8, .name = "a.exe", .created = ZERO, .faults = UINT32_MAX, .hard = 5};
    struct machine *m = new_machine(ROWS(idle, a));
    struct ew_source *source = open_on(m, &all, false, 100);
    (void)round_of(m, source, MS);
    CHECK_EQ_UINT(m->facts[0].counter[EW_C_faults_minor], UINT32_MAX - 5u);
    a.faults = 9; /* ten more, one of them a hard fault */
    a.hard = 6;
    RELIST(m, idle, a);
    CHECK_EQ_STR(round_of(m, source, 2 * MS), "read 8");
    CHECK_EQ_UINT(m->readings[0].counter[EW_C_faults_minor], UINT64_C(0xffffffff) - 5 + 9);
    CHECK_EQ_UINT(m->readings[0].counter[EW_C_faults_major], 6);
    close_on(m, source);
}

TEST(a_counter_that_decreases_is_corrected_and_marked)
{
    struct row a = {.pid = 8, .name = "a.exe", .created = ZERO, .user = 9 * MS_UNITS};
    struct machine *m = new_machine(ROWS(idle, a));
    struct ew_source *source = open_on(m, &all, false, 100);
    (void)round_of(m, source, MS);
    a.user = MS_UNITS;
    RELIST(m, idle, a);
    CHECK_EQ_STR(round_of(m, source, 2 * MS), "read 8");
    CHECK(m->readings[0].incomplete);
    CHECK_EQ_UINT(m->readings[0].counter[EW_C_cpu_ns], 9 * MS);
    close_on(m, source);
}

TEST(processes_beyond_the_limit_are_a_loss)
{
    struct machine *m = new_machine(ROWS(idle, {.pid = 8, .name = "a", .created = ZERO},
                                         {.pid = 12, .name = "b", .created = ZERO},
                                         {.pid = 16, .name = "c", .created = ZERO}));
    struct ew_source *source = open_on(m, &all, false, 2);
    CHECK_EQ_STR(round_of(m, source, MS), "seen 8, seen 12");
    CHECK_EQ_UINT(m->lost, 1);
    CHECK_EQ_STR(round_of(m, source, 2 * MS), "");
    CHECK_EQ_UINT(m->lost, 1);
    close_on(m, source);
}

TEST(a_removed_process_is_not_reported_and_can_be_added_again)
{
    struct row a = {.pid = 8, .name = "a.exe", .created = ZERO};
    struct machine *m = new_machine(ROWS(idle, a));
    struct ew_source *source = open_on(m, &all, false, 100);
    (void)round_of(m, source, MS);
    CHECK_EQ_INT(source->ops->remove(source, 8), 0);
    CHECK_EQ_INT(source->ops->remove(source, 8), ETWATCH_ENOENT);
    a.user = MS_UNITS;
    RELIST(m, idle, a);
    CHECK_EQ_STR(round_of(m, source, 2 * MS), "");
    CHECK_EQ_INT(source->ops->add(source, 8), 0);
    CHECK_EQ_STR(round_of(m, source, 3 * MS), "seen 8");
    close_on(m, source);
}

TEST(metrics_that_windows_lacks_cannot_be_selected)
{
    static const uint32_t uid = 0;
    struct machine *m = new_machine(ROWS(idle));
    struct ew_source_config config = {.filter = {.uids = &uid, .uid_count = 1},
                                      .max_processes = 10};
    struct ew_winpoll_system system = {.ctx = m, .list = list_processes, .close = close_list};
    struct ew_source *source = NULL;
    struct ew_error error = {0};
    CHECK_EQ_INT(ew_winpoll_open(&config, &system, &source, &error), ETWATCH_EINVAL);
    CHECK_EQ_UINT(m->closed, 1);
}

static int open_once(void *ctx)
{
    struct machine *m = ctx;
    struct ew_source_config config = {.filter = all, .max_processes = 10};
    struct ew_winpoll_system system = {.ctx = m, .list = list_processes, .close = close_list};
    struct ew_source *source = NULL;
    struct ew_error error = {0};
    int rc = ew_winpoll_open(&config, &system, &source, &error);
    if (rc == 0)
        source->ops->close(source);
    return rc;
}

TEST(every_failed_allocation_is_handled)
{
    TORTURE(open_once, new_machine(ROWS(idle)));
}
