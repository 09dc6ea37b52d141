/* SPDX-License-Identifier: MIT */
/* Polling: a cut closes one interval of any length; readings are of whole processes. */
#include "model/metric.h"
#include "sampler_kit.h"

#define AT EW_READING_AT

static void open_rounds(bool dense, bool threads)
{
    struct ew_sampler_config config = kit_config();
    config.source = ETWATCH_SOURCE_POLL;
    config.rounds = true;
    config.dense = dense;
    config.threads = threads;
    config.available = EW_METRICS(ETWATCH_M_cpu_ns, ETWATCH_M_switches_voluntary);
    kit_open(config);
}

static void seen_with_cpu(uint32_t pid, uint64_t cpu_ns)
{
    struct ew_process_fact fact = {.kind = EW_PROCESS_SEEN,
                                   .pid = pid,
                                   .start_ns = 5000,
                                   .t_ns = MS(0.1),
                                   .counter_has = EW_HAS_C(cpu_ns)};
    fact.counter[EW_C_cpu_ns] = cpu_ns;
    kit.facts.process(kit.facts.ctx, &fact);
}

static void poll(uint32_t pid, uint32_t tid, uint64_t start_ns, uint64_t t_ns, uint64_t cpu_ns)
{
    struct ew_reading r = kit_values(AT, pid, tid, t_ns, cpu_ns, 0);
    r.start_ns = start_ns;
    r.counter_has = EW_HAS_C(cpu_ns);
    kit_reading(r);
}

TEST(a_cut_closes_exactly_one_interval_since_the_last)
{
    open_rounds(false, false);
    seen_with_cpu(1, 70 * NS_PER_MS);
    (void)kit_cut(MS(0.1));
    CHECK_EQ_STR(kit_story(), "S1");
    poll(1, 0, 5000, MS(103), 75 * NS_PER_MS);
    (void)kit_cut(MS(103));
    CHECK_EQ_STR(kit_story(), "s1");
    const struct etwatch_sample *s = &kit.object[0].s;
    CHECK_EQ_UINT(s->source, ETWATCH_SOURCE_POLL);
    CHECK_EQ_UINT(s->t_ns, UNIX_MS(103));
    CHECK_EQ_UINT(s->dt_ns, 102900000);
    CHECK_EQ_UINT(s->cpu_ns, 5 * NS_PER_MS);
    poll(1, 0, 5000, MS(250), 76 * NS_PER_MS);
    (void)kit_cut(MS(250));
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)->dt_ns, 147 * NS_PER_MS);
    CHECK_EQ_UINT(kit_counts().intervals, 3);
    CHECK_EQ_UINT(kit_counts().late, 0);
    kit_close();
}

TEST(a_round_without_change_gives_no_sample)
{
    open_rounds(false, false);
    seen_with_cpu(1, 70);
    poll(1, 0, 5000, MS(10), 70);
    (void)kit_cut(MS(10));
    CHECK_EQ_STR(kit_story(), "S1");
    kit_close();
}

TEST(a_process_found_new_counts_from_0)
{
    open_rounds(false, false);
    kit_process(EW_PROCESS_START, 1, MS(4), MS(10), "a");
    poll(1, 0, MS(4), MS(10), 3 * NS_PER_MS);
    (void)kit_cut(MS(10));
    CHECK_EQ_STR(kit_story(), "S1 s1");
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)->cpu_ns, 3 * NS_PER_MS);
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)->dt_ns, 6 * NS_PER_MS);
    CHECK_NEAR(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)->cpu_percent, 50, 1e-9);
    kit_close();
}

TEST(threads_are_reported_next_to_the_process_and_not_added_to_it)
{
    open_rounds(false, true);
    kit_process(EW_PROCESS_START, 1, MS(4), MS(10), "a");
    poll(1, 1, MS(4), MS(10), 2 * NS_PER_MS);
    poll(1, 2, MS(5), MS(10), NS_PER_MS);
    poll(1, 0, MS(4), MS(10), 4 * NS_PER_MS); /* includes a thread that started and exited */
    (void)kit_cut(MS(10));
    CHECK_EQ_STR(kit_story(), "S1 s1 t2 t1");
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)->cpu_ns, 4 * NS_PER_MS);
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_THREAD, 1, 0)->cpu_ns, NS_PER_MS);
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_THREAD, 1, 1)->cpu_ns, 2 * NS_PER_MS);
    kit_close();
}

TEST(an_exit_does_not_wait_for_threads)
{
    open_rounds(false, true);
    kit_process(EW_PROCESS_START, 1, MS(4), MS(10), "a");
    poll(1, 1, MS(4), MS(10), 2 * NS_PER_MS);
    poll(1, 0, MS(4), MS(10), 2 * NS_PER_MS);
    (void)kit_cut(MS(10));
    kit_process(EW_PROCESS_EXIT, 1, MS(4), MS(20), NULL);
    (void)kit_cut(MS(20));
    CHECK_EQ_STR(kit_story(), "s1 X1");
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_EXIT, 1, 0)->cpu_ns, 2 * NS_PER_MS);
    CHECK(!kit_has(kit_nth(ETWATCH_TYPE_EXIT, 1, 0), ETWATCH_M_exit_code));
    CHECK_EQ_UINT(kit_counts().threads, 0);
    kit_close();
}

TEST(the_last_sample_of_a_vanished_process_has_no_values)
{
    open_rounds(false, false);
    seen_with_cpu(1, 70);
    poll(1, 0, 5000, MS(10), 80);
    (void)kit_cut(MS(10));
    struct ew_reading r = kit_values(AT, 1, 0, MS(20), 80, 0);
    r.start_ns = 5000;
    r.counter_has = EW_HAS_C(cpu_ns);
    r.incomplete = true; /* the work after the last round is unknown */
    kit_reading(r);
    kit_process(EW_PROCESS_EXIT, 1, 5000, MS(20), NULL);
    (void)kit_cut(MS(20));
    CHECK_EQ_STR(kit_story(), "s1 X1");
    CHECK(etwatch_metric_set_is_empty(&kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)->has));
    CHECK((kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)->flags & ETWATCH_SAMPLE_COMPLETE) == 0);
    CHECK((kit_nth(ETWATCH_TYPE_EXIT, 1, 0)->flags & ETWATCH_SAMPLE_COMPLETE) == 0);
    kit_close();
}

TEST(dense_rows_are_0_for_idle_processes_and_unknown_for_unreadable_ones)
{
    open_rounds(true, false);
    seen_with_cpu(1, 70);
    seen_with_cpu(2, 70);
    struct ew_reading r = {
        .kind = AT, .pid = 2, .tid = 0, .start_ns = 5000, .t_ns = MS(10), .incomplete = true};
    kit_reading(r);
    (void)kit_cut(MS(10));
    CHECK_EQ_STR(kit_story(), "S1 S2 s1 s2");
    CHECK(kit_has(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0), ETWATCH_M_cpu_ns));
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)->cpu_ns, 0);
    CHECK(!kit_has(kit_nth(ETWATCH_TYPE_SAMPLE, 2, 0), ETWATCH_M_cpu_ns));
    kit_close();
}

TEST(a_pid_reused_between_two_rounds_is_two_processes)
{
    open_rounds(false, false);
    kit_process(EW_PROCESS_START, 1, MS(2), MS(10), "old");
    poll(1, 0, MS(2), MS(10), 5 * NS_PER_MS);
    (void)kit_cut(MS(10));
    kit_process(EW_PROCESS_EXIT, 1, MS(2), MS(20), NULL);
    kit_process(EW_PROCESS_START, 1, MS(15), MS(20), "new");
    poll(1, 0, MS(15), MS(20), NS_PER_MS);
    (void)kit_cut(MS(20));
    CHECK_EQ_STR(kit_story(), "S1 s1 s1 X1");
    CHECK_EQ_STR(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)->name, "new");
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)->cpu_ns, NS_PER_MS);
    CHECK_EQ_STR(kit_nth(ETWATCH_TYPE_EXIT, 1, 0)->name, "old");
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_EXIT, 1, 0)->cpu_ns, 5 * NS_PER_MS);
    kit_close();
}

TEST(gauges_of_a_round_are_on_its_sample)
{
    open_rounds(false, false);
    seen_with_cpu(1, 70);
    struct ew_reading r = kit_values(AT, 1, 0, MS(10), 90, 0);
    r.start_ns = 5000;
    r.counter_has = EW_HAS_C(cpu_ns);
    r.gauge_has = EW_HAS_G(rss_bytes);
    r.gauge[EW_G_rss_bytes] = 4096;
    kit_reading(r);
    (void)kit_cut(MS(10.3)); /* the round took a moment */
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)->rss_bytes, 4096);
    CHECK(kit_has(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0), ETWATCH_M_rss_bytes));
    kit_close();
}

TEST(a_cut_without_elapsed_time_closes_nothing)
{
    open_rounds(false, false);
    seen_with_cpu(1, 70);
    CHECK_EQ_INT(kit_cut(EPOCH), 0);
    CHECK_EQ_INT(kit_cut(MS(1)), 1);
    CHECK_EQ_INT(kit_cut(MS(1)), 0);
    CHECK_EQ_UINT(kit_counts().intervals, 1);
    kit_close();
}

TEST(the_interval_length_is_determined_by_the_caller)
{
    open_rounds(false, false);
    CHECK_EQ_INT(ew_sampler_set_interval(kit.sampler, MS(3.3), 20 * NS_PER_MS), 0);
    CHECK_EQ_INT(ew_sampler_set_interval(kit.sampler, MS(3.3), 1), ETWATCH_EINVAL);
    kit_close();
}
