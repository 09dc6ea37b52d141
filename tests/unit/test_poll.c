/* SPDX-License-Identifier: MIT */
/* The poll source on recorded trees: values, starts and exits, and unusable files. */
#include "poll_rounds.h"

#define TICK_NS UINT64_C(10000000)

/*
 * /proc does not attribute network bytes to processes, counts only reads and writes, and has no
 * hardware counters.
 */
static const uint32_t all_counters =
    ((1u << EW_COUNTER_COUNT) - 1) &
    ~(EW_HAS_C(net_received_bytes) | EW_HAS_C(net_sent_bytes) | EW_HAS_C(io_other_bytes) |
      EW_HAS_C(io_other_ops) | EW_HAS_C(cycles) | EW_HAS_C(instructions) | EW_HAS_C(cache_misses));

static const uint32_t all_gauges = EW_HAS_G(rss_bytes) | EW_HAS_G(rss_peak_bytes) |
                                   EW_HAS_G(private_bytes) | EW_HAS_G(virtual_bytes) |
                                   EW_HAS_G(threads) | EW_HAS_G(priority) | EW_HAS_G(affinity);

TEST(the_first_round_reports_preexisting_processes_with_all_values)
{
    struct rounds rounds;
    rounds_open(&rounds, "normal", &everything, false, 100);
    drain_again(&rounds);
    CHECK_EQ_INT(rounds.process_count, 3);
    CHECK_EQ_INT(rounds.reading_count, 0);
    const struct ew_process_fact *fact = process_fact(&rounds, 100, EW_PROCESS_SEEN);
    CHECK(fact != NULL);
    CHECK_EQ_UINT(fact->t_ns, rounds.now_ns);
    CHECK_EQ_UINT(fact->start_ns, 4200 * TICK_NS);
    CHECK_EQ_UINT(fact->has, EW_HAS_NAME | EW_HAS_PPID | EW_HAS_SESSION | EW_HAS_UID);
    CHECK_EQ_STR(fact->name, "worker");
    CHECK_EQ_UINT(fact->ppid, 1);
    CHECK_EQ_UINT(fact->session_id, 42);
    CHECK_EQ_UINT(fact->uid, 1000);
    CHECK(!fact->kernel_thread);
    CHECK_EQ_UINT(fact->counter_has, all_counters);
    CHECK_EQ_UINT(fact->counter[EW_C_cpu_ns], 10 * TICK_NS);
    CHECK_EQ_UINT(fact->counter[EW_C_cpu_user_ns], 7 * TICK_NS);
    CHECK_EQ_UINT(fact->counter[EW_C_cpu_kernel_ns], 3 * TICK_NS);
    CHECK_EQ_UINT(fact->counter[EW_C_switches_voluntary], 77);
    CHECK_EQ_UINT(fact->counter[EW_C_switches_involuntary], 8);
    CHECK_EQ_UINT(fact->counter[EW_C_runq_wait_ns], 1234567);
    CHECK_EQ_UINT(fact->counter[EW_C_faults_minor], 1234);
    CHECK_EQ_UINT(fact->counter[EW_C_faults_major], 5);
    CHECK_EQ_UINT(fact->counter[EW_C_io_read_bytes], 1000);
    CHECK_EQ_UINT(fact->counter[EW_C_io_write_bytes], 2000);
    CHECK_EQ_UINT(fact->counter[EW_C_io_read_ops], 10);
    CHECK_EQ_UINT(fact->counter[EW_C_io_write_ops], 20);
    CHECK_EQ_UINT(fact->counter[EW_C_disk_read_bytes], 4096);
    CHECK_EQ_UINT(fact->counter[EW_C_disk_write_bytes], 8192);
    CHECK_EQ_UINT(fact->gauge_has, all_gauges);
    CHECK_EQ_UINT(fact->gauge[EW_G_rss_bytes], 1000 * 1024);
    CHECK_EQ_UINT(fact->gauge[EW_G_rss_peak_bytes], 1200 * 1024);
    CHECK_EQ_UINT(fact->gauge[EW_G_private_bytes], 700 * 1024);
    CHECK_EQ_UINT(fact->gauge[EW_G_virtual_bytes], 4000 * 1024);
    CHECK_EQ_UINT(fact->gauge[EW_G_threads], 1);
    CHECK_EQ_UINT(fact->gauge[EW_G_priority], 39);
    CHECK_EQ_UINT(fact->gauge[EW_G_affinity], UINT64_C(0xff00000003));
    CHECK_EQ_UINT(undecoded(&rounds), 0);
    rounds_done(&rounds);
}

TEST(per_thread_values_are_unknown_for_a_process_with_several_threads)
{
    struct rounds rounds;
    uint32_t per_thread =
        EW_HAS_C(switches_voluntary) | EW_HAS_C(switches_involuntary) | EW_HAS_C(runq_wait_ns);
    rounds_open(&rounds, "normal", &everything, false, 100);
    drain_again(&rounds);
    const struct ew_process_fact *fact = process_fact(&rounds, 101, EW_PROCESS_SEEN);
    CHECK(fact != NULL);
    CHECK_EQ_UINT(fact->counter_has & per_thread, 0);
    CHECK_EQ_UINT(fact->counter[EW_C_cpu_ns], 24 * TICK_NS);
    rounds_done(&rounds);
}

TEST(a_process_that_had_several_threads_never_regains_those_totals)
{
    struct rounds rounds;
    uint32_t per_thread =
        EW_HAS_C(switches_voluntary) | EW_HAS_C(switches_involuntary) | EW_HAS_C(runq_wait_ns);
    rounds_open(&rounds, "grows/1", &everything, false, 100);
    drain_again(&rounds);
    CHECK_EQ_UINT(rounds.processes[0].counter_has & per_thread, per_thread);
    drain_tree(&rounds, "grows/2");
    CHECK_EQ_UINT(reading_of(&rounds, 100, 0)->counter_has & per_thread, 0);
    drain_tree(&rounds, "grows/3");
    CHECK_EQ_UINT(reading_of(&rounds, 100, 0)->counter_has & per_thread, 0);
    CHECK(!reading_of(&rounds, 100, 0)->incomplete);
    rounds_done(&rounds);
}

TEST(kernel_threads_are_excluded_unless_selected)
{
    struct rounds rounds;
    rounds_open(&rounds, "kernel_threads", &everything, false, 100);
    drain_again(&rounds);
    CHECK_EQ_INT(rounds.process_count, 1);
    CHECK_EQ_UINT(rounds.processes[0].pid, 100);
    rounds_done(&rounds);

    struct ew_filter with = {.all = true, .kernel_threads = true};
    rounds_open(&rounds, "kernel_threads", &with, false, 100);
    drain_again(&rounds);
    CHECK_EQ_INT(rounds.process_count, 3);
    const struct ew_process_fact *fact = process_fact(&rounds, 3, EW_PROCESS_SEEN);
    CHECK(fact != NULL && fact->kernel_thread);
    CHECK_EQ_STR(fact->name, "kworker/0:1-events");
    CHECK_EQ_UINT(fact->gauge_has & (EW_HAS_G(rss_bytes) | EW_HAS_G(virtual_bytes)), 0);
    rounds_done(&rounds);
}

TEST(names_are_reported_unchanged)
{
    static const char *const names[] = {"a b",      "(sd-pam)", "x) R 1 (y", "two\nlines",
                                        "\xff\xfe", "",         "tab\there", "123456789012345"};
    struct rounds rounds;
    rounds_open(&rounds, "weird_names", &everything, false, 100);
    drain_again(&rounds);
    CHECK_EQ_INT(rounds.process_count, 8);
    for (uint32_t i = 0; i < 8; i++) {
        CHECK_EQ_UINT(rounds.processes[i].pid, 100 + i);
        CHECK_EQ_STR(rounds.processes[i].name, names[i]);
        CHECK_EQ_UINT(rounds.processes[i].counter[EW_C_cpu_user_ns], i * TICK_NS);
    }
    CHECK_EQ_UINT(undecoded(&rounds), 0);
    rounds_done(&rounds);
}

TEST(without_schedstat_the_wait_is_unknown_and_the_rest_is_there)
{
    struct rounds rounds;
    rounds_open(&rounds, "no_schedstat", &everything, false, 100);
    drain_again(&rounds);
    CHECK_EQ_INT(rounds.process_count, 2);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ_UINT(rounds.processes[i].counter_has & EW_HAS_C(runq_wait_ns), 0);
        CHECK_EQ_UINT(rounds.processes[i].counter[EW_C_cpu_ns], 11 * TICK_NS);
    }
    CHECK_EQ_UINT(undecoded(&rounds), 0);
    rounds_done(&rounds);
}

TEST(an_unreadable_file_makes_only_its_own_values_unknown)
{
    const uint32_t io = EW_HAS_C(io_read_bytes) | EW_HAS_C(io_write_bytes) | EW_HAS_C(io_read_ops) |
                        EW_HAS_C(io_write_ops) | EW_HAS_C(disk_read_bytes) |
                        EW_HAS_C(disk_write_bytes);
    struct rounds rounds;
    rounds_open(&rounds, "unreadable", &everything, false, 100);
    drain_again(&rounds);
    CHECK_EQ_INT(rounds.process_count, 3);
    const struct ew_process_fact *fact = process_fact(&rounds, 100, EW_PROCESS_SEEN);
    CHECK(fact != NULL);
    CHECK_EQ_UINT(fact->counter_has, all_counters & ~io);
    fact = process_fact(&rounds, 101, EW_PROCESS_SEEN);
    CHECK(fact != NULL);
    CHECK_EQ_UINT(fact->counter_has & io, io);
    CHECK_EQ_UINT(fact->has & EW_HAS_UID, 0);
    /* stat has these two as well. */
    CHECK_EQ_UINT(fact->gauge[EW_G_rss_bytes], 250 * 4096);
    CHECK_EQ_UINT(fact->gauge[EW_G_virtual_bytes], 4096000);
    CHECK_EQ_UINT(fact->gauge_has & EW_HAS_G(rss_peak_bytes), 0);
    CHECK(process_fact(&rounds, 103, EW_PROCESS_SEEN) != NULL);
    rounds_done(&rounds);
}

TEST(a_truncated_file_is_counted_and_makes_only_its_own_values_unknown)
{
    struct rounds rounds;
    rounds_open(&rounds, "truncated", &everything, false, 100);
    drain_again(&rounds);
    CHECK_EQ_INT(rounds.process_count, 4);
    CHECK(process_fact(&rounds, 100, EW_PROCESS_SEEN) == NULL);
    CHECK(process_fact(&rounds, 104, EW_PROCESS_SEEN) == NULL);
    const struct ew_process_fact *fact = process_fact(&rounds, 101, EW_PROCESS_SEEN);
    CHECK(fact != NULL && (fact->counter_has & EW_HAS_C(io_read_bytes)) == 0);
    fact = process_fact(&rounds, 102, EW_PROCESS_SEEN);
    CHECK(fact != NULL && (fact->counter_has & EW_HAS_C(switches_voluntary)) == 0);
    CHECK(fact->counter_has & EW_HAS_C(io_read_bytes));
    fact = process_fact(&rounds, 105, EW_PROCESS_SEEN);
    CHECK(fact != NULL && (fact->counter_has & EW_HAS_C(runq_wait_ns)) == 0);
    CHECK_EQ_UINT(undecoded(&rounds), 5);
    rounds_done(&rounds);
}

TEST(a_process_with_a_malformed_stat_is_unknown_for_the_round_and_not_ended)
{
    struct rounds rounds;
    rounds_open(&rounds, "falls/1", &everything, false, 100);
    drain_again(&rounds);
    CHECK_EQ_INT(rounds.process_count, 1);
    drain_tree(&rounds, "truncated");
    CHECK(process_fact(&rounds, 100, EW_PROCESS_EXIT) == NULL);
    const struct ew_reading *reading = reading_of(&rounds, 100, 0);
    CHECK(reading != NULL && reading->incomplete);
    CHECK_EQ_UINT(reading->counter_has, 0);
    drain_tree(&rounds, "falls/3");
    reading = reading_of(&rounds, 100, 0);
    CHECK(reading != NULL && !reading->incomplete);
    CHECK_EQ_UINT(reading->counter[EW_C_cpu_user_ns], 60 * TICK_NS);
    rounds_done(&rounds);
}

TEST(a_process_with_an_unreadable_stat_is_unknown_for_the_round_and_not_ended)
{
    struct rounds rounds;
    rounds_open(&rounds, "truncated", &everything, false, 100);
    drain_again(&rounds);
    CHECK(process_fact(&rounds, 102, EW_PROCESS_SEEN) != NULL);
    drain_tree(&rounds, "unreadable");
    CHECK(process_fact(&rounds, 102, EW_PROCESS_EXIT) == NULL);
    const struct ew_reading *reading = reading_of(&rounds, 102, 0);
    CHECK(reading != NULL && reading->incomplete);
    CHECK_EQ_UINT(reading->counter_has, 0);
    rounds_done(&rounds);
}

TEST(the_largest_values_saturate_and_larger_ones_are_refused)
{
    struct rounds rounds;
    rounds_open(&rounds, "huge", &everything, false, 100);
    drain_again(&rounds);
    CHECK_EQ_INT(rounds.process_count, 2);
    const struct ew_process_fact *fact = process_fact(&rounds, 100, EW_PROCESS_SEEN);
    CHECK(fact != NULL);
    CHECK_EQ_UINT(fact->counter[EW_C_cpu_ns], UINT64_MAX);
    CHECK_EQ_UINT(fact->counter[EW_C_cpu_user_ns], UINT64_MAX);
    CHECK_EQ_UINT(fact->counter[EW_C_io_read_bytes], UINT64_MAX);
    CHECK_EQ_UINT(fact->gauge[EW_G_rss_bytes], UINT64_MAX - 1023);
    CHECK_EQ_UINT(fact->gauge[EW_G_affinity], UINT64_MAX);
    CHECK_EQ_INT((int64_t)fact->gauge[EW_G_priority], INT64_MIN);
    CHECK(process_fact(&rounds, 101, EW_PROCESS_SEEN) == NULL);
    fact = process_fact(&rounds, 102, EW_PROCESS_SEEN);
    CHECK(fact != NULL && (fact->gauge_has & EW_HAS_G(affinity)) == 0);
    CHECK_EQ_UINT(undecoded(&rounds), 1);
    rounds_done(&rounds);
}

TEST(starts_and_exits_are_found_by_comparing_rounds)
{
    struct rounds rounds;
    rounds_open(&rounds, "rounds/1", &everything, false, 100);
    drain_again(&rounds);
    CHECK_EQ_INT(rounds.process_count, 3); /* a preexisting zombie is not reported */
    CHECK(process_fact(&rounds, 103, EW_PROCESS_SEEN) == NULL);

    drain_tree(&rounds, "rounds/2");
    CHECK_EQ_INT(rounds.process_count, 3);
    const struct ew_process_fact *start = process_fact(&rounds, 200, EW_PROCESS_START);
    CHECK(start != NULL && process_fact(&rounds, 201, EW_PROCESS_START) != NULL);
    CHECK_EQ_UINT(start->start_ns, 1100 * TICK_NS);
    CHECK_EQ_UINT(start->counter_has, 0);
    /* Its counts since its start are reported as a reading. */
    CHECK_EQ_UINT(reading_of(&rounds, 200, 0)->counter[EW_C_cpu_ns], 3 * TICK_NS);
    CHECK(!reading_of(&rounds, 200, 0)->incomplete);
    /* The work of the vanished process since the last round is unknown, and so is its exit status.
     */
    const struct ew_process_fact *gone = process_fact(&rounds, 101, EW_PROCESS_EXIT);
    CHECK(gone != NULL);
    CHECK_EQ_UINT(gone->has & EW_HAS_EXIT_STATUS, 0);
    CHECK_EQ_UINT(gone->start_ns, 1001 * TICK_NS);
    CHECK(reading_of(&rounds, 101, 0)->incomplete);
    CHECK_EQ_UINT(reading_of(&rounds, 101, 0)->counter[EW_C_cpu_ns], 2 * TICK_NS);
    CHECK_EQ_UINT(reading_of(&rounds, 100, 0)->counter[EW_C_cpu_ns], 11 * TICK_NS);
    CHECK(reading_of(&rounds, 102, 0) == NULL); /* it did nothing */
    rounds_done(&rounds);
}

TEST(a_zombie_ends_with_its_status_and_final_counts_once)
{
    struct rounds rounds;
    rounds_open(&rounds, "rounds/1", &everything, false, 100);
    drain_again(&rounds);
    drain_tree(&rounds, "rounds/2");
    drain_tree(&rounds, "rounds/3");
    const struct ew_process_fact *end = process_fact(&rounds, 200, EW_PROCESS_EXIT);
    CHECK(end != NULL && (end->has & EW_HAS_EXIT_STATUS));
    CHECK_EQ_INT(end->exit_code, 3);
    CHECK_EQ_INT(end->exit_signal, 0);
    CHECK_EQ_UINT(reading_of(&rounds, 200, 0)->counter[EW_C_cpu_ns], 9 * TICK_NS);
    CHECK(!reading_of(&rounds, 200, 0)->incomplete);
    CHECK_EQ_UINT(reading_of(&rounds, 200, 0)->gauge_has, 0);
    /* A process that started and exited between two rounds. */
    CHECK(process_fact(&rounds, 300, EW_PROCESS_START) != NULL);
    end = process_fact(&rounds, 300, EW_PROCESS_EXIT);
    CHECK(end != NULL && (end->has & EW_HAS_EXIT_STATUS));
    CHECK_EQ_INT(end->exit_signal, 9);
    CHECK_EQ_INT(end->exit_code, 0);
    CHECK_EQ_UINT(reading_of(&rounds, 300, 0)->counter[EW_C_cpu_ns], 4 * TICK_NS);

    drain_again(&rounds);
    CHECK_EQ_INT(rounds.process_count, 0);
    CHECK_EQ_INT(rounds.reading_count, 0);
    rounds_done(&rounds);
}

TEST(the_pid_of_a_reaped_zombie_may_be_reused)
{
    struct rounds rounds;
    rounds_open(&rounds, "rounds/2", &everything, false, 100);
    drain_again(&rounds);
    drain_tree(&rounds, "rounds/3");
    CHECK(process_fact(&rounds, 200, EW_PROCESS_EXIT) != NULL);
    drain_tree(&rounds, "rounds/4");
    CHECK_EQ_INT(rounds.process_count, 2);
    CHECK(process_fact(&rounds, 202, EW_PROCESS_EXIT) != NULL);
    const struct ew_process_fact *start = process_fact(&rounds, 200, EW_PROCESS_START);
    CHECK(start != NULL);
    CHECK_EQ_STR(start->name, "next");
    CHECK_EQ_UINT(start->start_ns, 1200 * TICK_NS);
    rounds_done(&rounds);
}

TEST(a_new_name_is_an_exec_of_the_same_process)
{
    struct rounds rounds;
    rounds_open(&rounds, "rounds/2", &everything, false, 100);
    drain_again(&rounds);
    drain_tree(&rounds, "rounds/3");
    const struct ew_process_fact *exec = process_fact(&rounds, 100, EW_PROCESS_EXEC);
    CHECK(exec != NULL);
    CHECK_EQ_STR(exec->name, "python3.11");
    CHECK_EQ_UINT(exec->start_ns, 1000 * TICK_NS);
    CHECK(process_fact(&rounds, 100, EW_PROCESS_EXIT) == NULL);
    rounds_done(&rounds);
}

TEST(a_reused_pid_is_an_exit_and_a_start_and_never_one_process)
{
    struct rounds rounds;
    rounds_open(&rounds, "reuse/1", &everything, false, 100);
    drain_again(&rounds);
    drain_tree(&rounds, "reuse/2");
    CHECK_EQ_INT(rounds.process_count, 2);
    CHECK_EQ_INT(rounds.processes[0].kind, EW_PROCESS_EXIT);
    CHECK_EQ_UINT(rounds.processes[0].start_ns, 1000 * TICK_NS);
    CHECK_EQ_STR(rounds.processes[0].name, "old");
    CHECK_EQ_INT(rounds.processes[1].kind, EW_PROCESS_START);
    CHECK_EQ_UINT(rounds.processes[1].start_ns, 2000 * TICK_NS);
    CHECK_EQ_STR(rounds.processes[1].name, "new");
    /* The last reading of the old process, then the first of the new one, then the other process.
     */
    CHECK_EQ_INT(rounds.reading_count, 3);
    CHECK_EQ_UINT(rounds.readings[0].start_ns, 1000 * TICK_NS);
    CHECK_EQ_UINT(rounds.readings[0].counter[EW_C_cpu_ns], 50 * TICK_NS);
    CHECK_EQ_UINT(rounds.readings[1].start_ns, 2000 * TICK_NS);
    CHECK_EQ_UINT(rounds.readings[1].counter[EW_C_cpu_ns], 1 * TICK_NS);
    CHECK_EQ_UINT(reading_of(&rounds, 101, 0)->counter[EW_C_cpu_ns], 60 * TICK_NS);
    rounds_done(&rounds);
}

TEST(a_counter_that_falls_is_held_and_marked)
{
    struct rounds rounds;
    rounds_open(&rounds, "falls/1", &everything, false, 100);
    drain_again(&rounds);
    drain_tree(&rounds, "falls/2");
    const struct ew_reading *reading = reading_of(&rounds, 100, 0);
    CHECK(reading != NULL && reading->incomplete);
    CHECK_EQ_UINT(reading->counter[EW_C_cpu_user_ns], 50 * TICK_NS);
    CHECK_EQ_UINT(reading->counter[EW_C_cpu_ns], 100 * TICK_NS);
    CHECK_EQ_UINT(reading->counter[EW_C_io_read_bytes], 1000);
    CHECK_EQ_UINT(reading->counter[EW_C_faults_minor], 110);
    drain_tree(&rounds, "falls/3");
    reading = reading_of(&rounds, 100, 0);
    CHECK(reading != NULL && !reading->incomplete);
    CHECK_EQ_UINT(reading->counter[EW_C_cpu_ns], 110 * TICK_NS);
    CHECK_EQ_UINT(reading->counter[EW_C_io_read_bytes], 1100);
    rounds_done(&rounds);
}

TEST(processes_beyond_the_limit_are_reported_as_lost_once)
{
    struct rounds rounds;
    rounds_open(&rounds, "weird_names", &everything, false, 5);
    drain_again(&rounds);
    CHECK_EQ_INT(rounds.process_count, 5);
    CHECK_EQ_UINT(rounds.lost, 3);
    drain_again(&rounds);
    CHECK_EQ_INT(rounds.process_count, 0);
    CHECK_EQ_UINT(rounds.lost, 3);
    /* Once there is room again, one of them is added. */
    CHECK_EQ_INT(ew_source_poll.remove(&rounds.poll->base.source, 102), 0);
    drain_again(&rounds);
    CHECK_EQ_INT(rounds.process_count, 1);
    CHECK(rounds.processes[0].pid >= 105);
    CHECK_EQ_UINT(rounds.poll->base.watched_count, 5);
    CHECK_EQ_UINT(rounds.lost, 3);
    rounds_done(&rounds);
}

TEST(times_of_a_recorded_tree_are_marked_as_estimates)
{
    struct rounds rounds;
    rounds_open(&rounds, "normal", &everything, false, 100);
    const struct ew_source_ops *ops = rounds.poll->base.source.ops;
    CHECK(etwatch_metric_set_has(&ops->estimated, ETWATCH_M_cpu_ns));
    CHECK(!etwatch_metric_set_has(&ops->available, ETWATCH_M_handles));
    CHECK(!etwatch_metric_set_has(&ew_source_poll.estimated, ETWATCH_M_cpu_ns));
    rounds_done(&rounds);
}

TEST(a_missing_root_is_an_error_with_its_path)
{
    static const struct ew_poll_units units = {.ticks_per_s = 100, .page_bytes = 4096};
    struct ew_source_config config = {.max_processes = 5, .proc_root = "/nowhere/proc"};
    struct ew_poll *poll;
    struct ew_error error;
    CHECK_EQ_INT(ew_poll_open(&config, &units, &poll, &error), ETWATCH_EOS);
    CHECK_CONTAINS(error.message, "/nowhere/proc");
    CHECK_CONTAINS(error.fix, "mount -t proc");
}

TEST(a_root_that_vanishes_is_an_error_and_may_return)
{
    struct rounds rounds;
    struct ew_error error;
    rounds_open(&rounds, "normal", &everything, false, 100);
    drain_again(&rounds);
    CHECK_EQ_INT(unlink(rounds.root), 0);
    CHECK_EQ_INT(ew_source_poll.drain(&rounds.poll->base.source, rounds.now_ns + 1, &rounds.facts,
                                      &rounds.horizon_ns, &error),
                 ETWATCH_EOS);
    CHECK_CONTAINS(error.message, rounds.root);
    drain_tree(&rounds, "normal");
    CHECK_EQ_INT(rounds.process_count, 0);
    rounds_done(&rounds);
}

static int one_round(void *ctx)
{
    static const struct ew_poll_units units = {.ticks_per_s = 100, .page_bytes = 4096};
    static const char *const names[] = {"x", "y"};
    struct rounds *rounds = ctx;
    struct ew_source_config config = {
        .filter =
            {.all = true, .names = names, .name_count = 2, .cgroups = names, .cgroup_count = 2},
        .threads = true,
        .max_processes = 100,
        .proc_root = rounds->root,
    };
    struct ew_poll *poll;
    struct ew_error error;
    rounds->process_count = rounds->reading_count = rounds->order_count = 0;
    rounds->lost = 0;
    int rc = ew_poll_open(&config, &units, &poll, &error);
    if (rc < 0)
        return rc;
    rc = ew_source_poll.drain(&poll->base.source, 1, &rounds->facts, &rounds->horizon_ns, &error);
    /* A process or thread for which there is no memory does not end the round, but is reported as
     * lost. */
    if (rc == 0 && (rounds->lost > 0))
        rc = ETWATCH_ENOMEM;
    ew_source_poll.close(&poll->base.source);
    return rc;
}

TEST(every_failed_allocation_is_handled)
{
    struct rounds rounds;
    rounds_open(&rounds, "threads/1", &everything, true, 100);
    TORTURE(one_round, &rounds);
    rounds_done(&rounds);
}

static void drain_quietly(void *ctx)
{
    drain_again(ctx);
}

TEST(a_round_without_changes_allocates_nothing)
{
    struct rounds rounds;
    rounds_open(&rounds, "threads/1", &everything, true, 100);
    drain_again(&rounds);
    drain_again(&rounds);
    CHECK_EQ_UINT(test_count_allocations(drain_quietly, &rounds), 0);
    rounds_done(&rounds);
}
