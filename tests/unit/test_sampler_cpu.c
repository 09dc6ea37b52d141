/* SPDX-License-Identifier: MIT */
/* Attribution of counts: to which interval, how a run is split, what is known in which interval. */
#include "metric_kit.h"
#include "sampler_kit.h"

#define CPU(s) ((s)->cpu_ns / NS_PER_MS)
#define OPEN EW_READING_OPEN
#define SPAN EW_READING_SPAN
#define AT EW_READING_AT
#define FINAL EW_READING_FINAL

TEST(a_delta_belongs_to_the_interval_that_was_open)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    kit_read(OPEN, 1, 1, MS(2), 100 * NS_PER_MS, 50);  /* baseline */
    kit_read(OPEN, 1, 1, MS(25), 103 * NS_PER_MS, 57); /* 3 ms, 7 switches in [0, 10) */
    kit_read(AT, 1, 1, MS(40), 104 * NS_PER_MS, 58);   /* 1 ms, 1 switch in [20, 30) */
    CHECK_EQ_INT(kit_cut(MS(40)), 3);
    CHECK_EQ_STR(kit_story(), "S1 s1 s1");
    const struct etwatch_sample *s = kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0);
    CHECK_EQ_UINT(s->t_ns, UNIX_MS(10));
    CHECK_EQ_UINT(s->dt_ns, 10 * NS_PER_MS);
    CHECK_EQ_UINT(s->cpu_ns, 3 * NS_PER_MS);
    CHECK_EQ_UINT(s->switches_voluntary, 7);
    CHECK_NEAR(s->cpu_percent, 30, 1e-9);
    CHECK_METRICS(s->has, ETWATCH_M_cpu_percent, ETWATCH_M_cpu_ns, ETWATCH_M_switches_voluntary);
    CHECK_EQ_UINT(s->source, ETWATCH_SOURCE_EBPF);
    CHECK((s->flags & ETWATCH_SAMPLE_COMPLETE) != 0);
    s = kit_nth(ETWATCH_TYPE_SAMPLE, 1, 1);
    CHECK_EQ_UINT(s->t_ns, UNIX_MS(30));
    CHECK_EQ_UINT(s->cpu_ns, NS_PER_MS);
    kit_close();
}

TEST(a_run_is_split_exactly_at_each_interval_end)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    kit_read(OPEN, 1, 1, MS(7), 0, 0);
    kit_ran(SPAN, 1, 1, MS(7), 0, MS(31.5), 24500000, 1);
    CHECK_EQ_INT(kit_cut(MS(40)), 5);
    static const uint64_t want[] = {3000000, 10000000, 10000000, 1500000};
    for (size_t i = 0; i < 4; i++)
        CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 1, i)->cpu_ns, want[i]);
    kit_close();
}

TEST(cpu_before_the_run_belongs_to_the_open_interval)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    kit_read(OPEN, 1, 1, MS(1), 0, 0);
    /* 2 ms in earlier runs of [0, 10), then a run from 18 to 22. */
    kit_ran(SPAN, 1, 1, MS(18), 2 * NS_PER_MS, MS(22), 6 * NS_PER_MS, 9);
    (void)kit_cut(MS(30));
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)), 2);
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 1)), 2);
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 2)), 2);
    kit_close();
}

TEST(stolen_time_is_distributed_over_the_run_and_the_sum_is_exact)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    kit_read(OPEN, 1, 1, MS(5), 0, 0);
    /* 25 ms on the CPU, during which the hypervisor granted 10000001 ns. */
    kit_ran(SPAN, 1, 1, MS(5), 0, MS(30), 10000001, 1);
    (void)kit_cut(MS(40));
    uint64_t a = kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)->cpu_ns;
    uint64_t b = kit_nth(ETWATCH_TYPE_SAMPLE, 1, 1)->cpu_ns;
    uint64_t c = kit_nth(ETWATCH_TYPE_SAMPLE, 1, 2)->cpu_ns;
    CHECK_EQ_UINT(a + b + c, 10000001);
    CHECK_NEAR(a, 2000000.2, 1);
    CHECK_NEAR(b, 4000000.4, 1);
    CHECK_NEAR(c, 4000000.4, 1);
    kit_close();
}

TEST(a_run_that_ends_at_an_interval_end_leaves_nothing_after_it)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    kit_read(OPEN, 1, 1, MS(4), 0, 0);
    kit_ran(SPAN, 1, 1, MS(4), 0, MS(20), 16 * NS_PER_MS, 1);
    CHECK_EQ_INT(kit_cut(MS(40)), 3);
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)), 6);
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 1)), 10);
    kit_close();
}

TEST(a_run_seen_at_a_drain_is_not_counted_again_when_it_ends)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    kit_read(OPEN, 1, 1, MS(4), 0, 0);
    kit_ran(SPAN, 1, 1, MS(4), 0, MS(15), 11 * NS_PER_MS, 0);
    (void)kit_cut(MS(10));
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)), 6);
    kit_ran(SPAN, 1, 1, MS(4), 0, MS(33), 29 * NS_PER_MS, 1);
    (void)kit_cut(MS(40));
    CHECK_EQ_STR(kit_story(), "s1 s1 s1");
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)), 10);
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 1)), 10);
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 2)), 3);
    kit_close();
}

TEST(other_counts_of_a_run_go_to_its_largest_part_and_are_unknown_elsewhere)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    struct ew_reading r = {.kind = OPEN, .pid = 1, .tid = 1, .t_ns = MS(8)};
    r.counter_has = EW_HAS_C(cpu_ns) | EW_HAS_C(faults_minor);
    kit_reading(r);
    r.kind = SPAN;
    r.ran_from_ns = MS(8);
    r.t_ns = MS(23);
    r.counter[EW_C_cpu_ns] = 15 * NS_PER_MS;
    r.counter[EW_C_faults_minor] = 5;
    kit_reading(r);
    (void)kit_cut(MS(30));
    CHECK(!kit_has(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0), ETWATCH_M_faults_minor));
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 1)->faults_minor, 5);
    CHECK(kit_has(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 1), ETWATCH_M_faults_minor));
    CHECK(!kit_has(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 2), ETWATCH_M_faults_minor));
    CHECK(kit_has(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0), ETWATCH_M_cpu_ns));
    kit_close();
}

/* Switches are known in every interval of a run: none happens during it. */
static void check_switches(enum ew_left left, uint64_t waited, uint64_t preempted,
                           const uint64_t want_waited[3], const uint64_t want_preempted[3])
{
    kit_open(kit_config());
    kit_seen(1, "a");
    struct ew_reading r = kit_values(OPEN, 1, 1, MS(2), 0, 0);
    r.counter_has |= EW_HAS_C(switches_involuntary);
    kit_reading(r);
    kit_left(left, 1, 1, MS(8), MS(23), 15 * NS_PER_MS, waited, preempted);
    (void)kit_cut(MS(30));
    for (size_t i = 0; i < 3; i++) {
        const struct etwatch_sample *s = kit_nth(ETWATCH_TYPE_SAMPLE, 1, i);
        CHECK(kit_has(s, ETWATCH_M_switches_voluntary));
        CHECK(kit_has(s, ETWATCH_M_switches_involuntary));
        CHECK(kit_has(s, ETWATCH_M_cpu_ns));
        CHECK_EQ_UINT(s->switches_voluntary, want_waited[i]);
        CHECK_EQ_UINT(s->switches_involuntary, want_preempted[i]);
    }
    kit_close();
}

TEST(switches_before_a_run_count_in_the_open_interval_and_the_one_that_ends_it_at_its_end)
{
    static const uint64_t none[3] = {0}, end[3] = {0, 0, 1}, four[3] = {4}, both[3] = {4, 0, 1};
    check_switches(EW_LEFT_PREEMPTED, 0, 1, none, end);
    check_switches(EW_LEFT_WAITING, 1, 0, end, none);
    check_switches(EW_LEFT_PREEMPTED, 4, 5, four, both);
    check_switches(EW_LEFT_WAITING, 5, 4, both, four);
    check_switches(EW_LEFT_PREEMPTED, 1, 0, end, none); /* counted as voluntary: a signal came */
    check_switches(EW_LEFT_NOT, 4, 4, four, four);      /* still on the CPU */
}

TEST(a_wait_for_a_cpu_counts_where_the_run_begins)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    struct ew_reading r = {.kind = OPEN, .pid = 1, .tid = 1, .t_ns = MS(8)};
    r.counter_has = EW_HAS_C(cpu_ns) | EW_HAS_C(runq_wait_ns);
    kit_reading(r);
    r.kind = SPAN;
    r.ran_from_ns = MS(8);
    r.t_ns = MS(23);
    r.counter[EW_C_cpu_ns] = 15 * NS_PER_MS;
    r.counter[EW_C_runq_wait_ns] = 700;
    kit_reading(r);
    (void)kit_cut(MS(30));
    static const uint64_t want[] = {700, 0, 0};
    for (size_t i = 0; i < 3; i++) {
        CHECK(kit_has(kit_nth(ETWATCH_TYPE_SAMPLE, 1, i), ETWATCH_M_runq_wait_ns));
        CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 1, i)->runq_wait_ns, want[i]);
    }
    kit_close();
}

TEST(counters_unchanged_by_a_run_are_0_in_all_its_intervals)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    kit_read(OPEN, 1, 1, MS(8), 0, 4);
    kit_ran(SPAN, 1, 1, MS(8), 0, MS(23), 15 * NS_PER_MS, 4);
    (void)kit_cut(MS(30));
    for (size_t i = 0; i < 3; i++) {
        CHECK(kit_has(kit_nth(ETWATCH_TYPE_SAMPLE, 1, i), ETWATCH_M_switches_voluntary));
        CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 1, i)->switches_voluntary, 0);
    }
    kit_close();
}

TEST(another_thread_supplies_counts_that_a_long_run_leaves_unknown)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    struct ew_reading r = {.kind = OPEN, .pid = 1, .tid = 1, .t_ns = MS(0)};
    r.counter_has = EW_HAS_C(cpu_ns) | EW_HAS_C(faults_minor);
    kit_reading(r);
    r.kind = SPAN;
    r.ran_from_ns = MS(0);
    r.t_ns = MS(25);
    r.counter[EW_C_cpu_ns] = 25 * NS_PER_MS;
    r.counter[EW_C_faults_minor] = 5;
    kit_reading(r);
    struct ew_reading other = {.kind = OPEN, .pid = 1, .tid = 2, .t_ns = MS(12)};
    other.counter_has = r.counter_has;
    other.counter[EW_C_faults_minor] = 10;
    kit_reading(other);
    other.kind = AT;
    other.t_ns = MS(30);
    other.counter[EW_C_cpu_ns] = NS_PER_MS;
    other.counter[EW_C_faults_minor] = 13;
    kit_reading(other);
    (void)kit_cut(MS(30));
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)->faults_minor, 5);
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 1)->faults_minor, 3);
    CHECK(kit_has(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 1), ETWATCH_M_faults_minor));
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 1)), 11);
    kit_close();
}

TEST(user_and_kernel_time_follow_the_cpu_time_of_a_run)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    struct ew_reading r = {.kind = OPEN, .pid = 1, .tid = 1, .t_ns = MS(5)};
    r.counter_has = EW_HAS_C(cpu_ns) | EW_HAS_C(cpu_user_ns) | EW_HAS_C(cpu_kernel_ns);
    kit_reading(r);
    r.kind = SPAN;
    r.ran_from_ns = MS(5);
    r.t_ns = MS(25);
    r.counter[EW_C_cpu_ns] = 20 * NS_PER_MS;
    r.counter[EW_C_cpu_user_ns] = 15 * NS_PER_MS + 1;
    r.counter[EW_C_cpu_kernel_ns] = 5 * NS_PER_MS - 1;
    kit_reading(r);
    (void)kit_cut(MS(30));
    uint64_t user = 0, kernel = 0;
    static const double share[] = {0.25, 0.5, 0.25};
    for (size_t i = 0; i < 3; i++) {
        const struct etwatch_sample *s = kit_nth(ETWATCH_TYPE_SAMPLE, 1, i);
        CHECK_NEAR(s->cpu_user_ns, share[i] * 15000001, 1);
        CHECK_NEAR(s->cpu_kernel_ns, share[i] * 4999999, 1);
        user += s->cpu_user_ns;
        kernel += s->cpu_kernel_ns;
    }
    CHECK_EQ_UINT(user, 15 * NS_PER_MS + 1);
    CHECK_EQ_UINT(kernel, 5 * NS_PER_MS - 1);
    kit_close();
}

TEST(a_value_that_falls_back_counts_nothing_until_it_has_caught_up)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    kit_read(OPEN, 1, 1, MS(1), 0, 0);
    kit_ran(SPAN, 1, 1, MS(1), 0, MS(10), 9 * NS_PER_MS, 0); /* extrapolated at a drain */
    (void)kit_cut(MS(10));
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)), 9);
    kit_ran(SPAN, 1, 1, MS(1), 0, MS(12), 7 * NS_PER_MS, 1); /* 4 of 11 ms were stolen */
    kit_read(OPEN, 1, 1, MS(25), 7 * NS_PER_MS, 1);
    kit_read(AT, 1, 1, MS(30), 12 * NS_PER_MS, 2);
    (void)kit_cut(MS(30));
    uint64_t sum = 0;
    for (size_t i = 0; i < kit.count; i++)
        sum += kit.object[i].s.cpu_ns;
    CHECK_EQ_UINT(sum, 3 * NS_PER_MS); /* 12 in all */
    kit_close();
}

TEST(a_first_open_is_only_a_baseline)
{
    kit_open(kit_config());
    kit_start(1, MS(1), "a");
    kit_read(OPEN, 1, 1, MS(5), 900 * NS_PER_MS,
             50); /* evicted and reported again, as far as the sampler knows */
    kit_read(AT, 1, 1, MS(10), 901 * NS_PER_MS, 51);
    (void)kit_cut(MS(10));
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)), 1);
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)->switches_voluntary, 1);
    kit_close();
}

TEST(the_wait_of_a_new_thread_before_its_first_run_counts)
{
    kit_open(kit_config());
    kit_start(1, MS(1), "a");
    struct ew_reading r = {.kind = OPEN, .pid = 1, .tid = 1, .start_ns = MS(1), .t_ns = MS(3)};
    r.counter_has = EW_HAS_C(cpu_ns) | EW_HAS_C(runq_wait_ns);
    r.counter[EW_C_runq_wait_ns] = 1234567;
    kit_reading(r);
    (void)kit_cut(MS(10));
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)->runq_wait_ns, 1234567);
    kit_close();
}

TEST(a_wait_that_ends_with_an_open_belongs_to_its_interval_and_is_not_late)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    struct ew_reading r = kit_values(OPEN, 1, 1, MS(3), 0, 0);
    r.counter_has |= EW_HAS_C(runq_wait_ns);
    kit_reading(r);
    r.kind = AT;
    r.t_ns = MS(20);
    r.counter[EW_C_cpu_ns] = NS_PER_MS;
    kit_reading(r);
    (void)kit_cut(MS(20));
    r.kind = OPEN;
    r.t_ns = MS(37);
    r.counter[EW_C_runq_wait_ns] = 500;
    kit_reading(r);
    r.kind = AT;
    r.t_ns = MS(40);
    r.counter[EW_C_cpu_ns] = 2 * NS_PER_MS;
    kit_reading(r);
    (void)kit_cut(MS(40));
    CHECK_EQ_STR(kit_story(), "s1");
    CHECK_EQ_UINT(kit.object[0].s.t_ns, UNIX_MS(40));
    CHECK_EQ_UINT(kit.object[0].s.runq_wait_ns, 500);
    CHECK_EQ_UINT(kit_counts().late, 0);
    kit_close();
}

TEST(the_first_reading_of_a_thread_started_while_watched_counts_from_0)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    struct ew_reading r = kit_values(AT, 1, 2, MS(10), 3 * NS_PER_MS, 4);
    r.start_ns = MS(2);
    kit_reading(r);
    (void)kit_cut(MS(20));
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)), 3);
    kit_close();
}

TEST(the_first_reading_of_an_older_thread_is_only_a_baseline)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    struct ew_reading r = kit_values(AT, 1, 2, MS(10), 3 * NS_PER_MS, 4);
    r.start_ns = EPOCH - 1;
    kit_reading(r);
    CHECK_EQ_INT(kit_cut(MS(20)), 1);
    CHECK_EQ_STR(kit_story(), "S1");
    kit_close();
}

TEST(a_process_watched_later_counts_only_from_then_on)
{
    kit_open(kit_config());
    (void)kit_cut(MS(100));
    kit_process(EW_PROCESS_SEEN, 1, MS(20), MS(100), "a"); /* started after the epoch */
    struct ew_reading r = kit_values(AT, 1, 1, MS(110), 50 * NS_PER_MS, 4);
    r.start_ns = MS(20);
    kit_reading(r);
    CHECK_EQ_INT(kit_cut(MS(110)), 1);
    kit_close();
}

static void read_split(uint64_t t_ns, uint64_t cpu_ns, uint64_t user_ns)
{
    struct ew_reading r = {.kind = AT, .pid = 1, .tid = 1, .t_ns = t_ns};
    r.counter_has = EW_HAS_C(cpu_ns) | EW_HAS_C(cpu_user_ns) | EW_HAS_C(cpu_kernel_ns);
    r.counter[EW_C_cpu_ns] = cpu_ns;
    r.counter[EW_C_cpu_user_ns] = user_ns;
    r.counter[EW_C_cpu_kernel_ns] = cpu_ns - user_ns;
    kit_reading(r);
}

TEST(user_and_kernel_time_add_up_to_the_cpu_time_although_their_split_varies)
{
    kit_open(kit_config());
    kit_start(1, MS(0), "a");
    static const uint64_t user[] = {500, 100, 2900, 2000, 2000};
    for (size_t i = 0; i < 5; i++) {
        read_split(MS(i * 10 + 5), (i + 1) * 1000, user[i]);
        (void)kit_cut(MS(i * 10 + 10));
        const struct etwatch_sample *s = kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0);
        CHECK_EQ_UINT(s->cpu_ns, 1000);
        CHECK_EQ_UINT(s->cpu_user_ns + s->cpu_kernel_ns, 1000);
    }
    read_split(MS(55), 5000, 4000); /* another split of the same sum is not activity */
    (void)kit_cut(MS(60));
    CHECK_EQ_STR(kit_story(), "");
    kit_close();
}

TEST(unknown_counters_of_a_reading_are_not_zero)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    kit_read(OPEN, 1, 1, MS(1), 0, 500);
    struct ew_reading r = kit_values(OPEN, 1, 1, MS(11), NS_PER_MS, 0);
    r.counter_has = EW_HAS_C(cpu_ns);
    kit_reading(r);
    kit_read(AT, 1, 1, MS(20), 2 * NS_PER_MS, 503);
    (void)kit_cut(MS(20));
    CHECK(!kit_has(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0), ETWATCH_M_switches_voluntary));
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 1)->switches_voluntary, 3);
    kit_close();
}

TEST(readings_of_the_process_itself_are_not_added_to_its_threads)
{
    kit_open(kit_config());
    kit_start(1, MS(0), "a");
    struct ew_reading r = {.kind = AT, .pid = 1, .tid = 0, .start_ns = MS(0), .t_ns = MS(1)};
    r.counter_has = EW_HAS_C(io_read_bytes);
    kit_reading(r);
    r = kit_values(OPEN, 1, 1, MS(2), 0, 0);
    r.counter_has |= EW_HAS_C(io_read_bytes);
    kit_reading(r);
    r = kit_values(AT, 1, 1, MS(10), NS_PER_MS, 1);
    r.counter_has |= EW_HAS_C(io_read_bytes);
    r.counter[EW_C_io_read_bytes] = 4000;
    kit_reading(r);
    r = (struct ew_reading){.kind = AT, .pid = 1, .tid = 0, .start_ns = MS(0), .t_ns = MS(10)};
    r.counter_has = EW_HAS_C(io_read_bytes);
    r.counter[EW_C_io_read_bytes] = 4000;
    kit_reading(r);
    (void)kit_cut(MS(10));
    CHECK_EQ_STR(kit_story(), "S1 s1");
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)->io_read_bytes, 4000);
    kit_close();
}

TEST(thread_samples_follow_their_process_and_add_up_to_it)
{
    struct ew_sampler_config config = kit_config();
    config.threads = true;
    kit_open(config);
    kit_seen(1, "a");
    kit_seen(9, "b");
    struct ew_reading r = kit_values(OPEN, 1, 11, MS(1), 0, 0);
    r.thread_name = "worker";
    kit_reading(r);
    kit_read(OPEN, 1, 12, MS(2), 0, 0);
    kit_read(OPEN, 9, 9, MS(3), 0, 0);
    kit_ran(SPAN, 1, 11, MS(6), 2 * NS_PER_MS, MS(14), 10 * NS_PER_MS, 1);
    kit_read(AT, 1, 12, MS(20), 3 * NS_PER_MS, 1);
    r = kit_values(AT, 9, 9, MS(20), NS_PER_MS, 1);
    r.gauge_has = EW_HAS_G(priority);
    r.gauge[EW_G_priority] = (uint64_t)-5;
    kit_reading(r);
    (void)kit_cut(MS(20));
    CHECK_EQ_STR(kit_story(), "S1 S9 s1 t12 t11 s9 t9 s1 t11");
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)), 9);
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_THREAD, 1, 0)), 3);
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_THREAD, 1, 1)), 6);
    CHECK_EQ_STR(kit_nth(ETWATCH_TYPE_THREAD, 1, 1)->thread_name, "worker");
    CHECK_EQ_STR(kit_nth(ETWATCH_TYPE_THREAD, 1, 1)->name, "a");
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_THREAD, 1, 2)), 4);
    CHECK_EQ_INT(kit_nth(ETWATCH_TYPE_THREAD, 9, 0)->priority, -5);
    CHECK(kit_has(kit_nth(ETWATCH_TYPE_THREAD, 9, 0), ETWATCH_M_priority));
    kit_close();
}

TEST(an_ended_thread_is_in_the_samples_of_its_last_interval)
{
    struct ew_sampler_config config = kit_config();
    config.threads = true;
    kit_open(config);
    kit_seen(1, "a");
    struct ew_reading r = kit_values(FINAL, 1, 11, MS(15), 4 * NS_PER_MS, 1);
    r.start_ns = MS(11);
    r.ran_from_ns = MS(11);
    r.thread_name = "short";
    kit_reading(r);
    CHECK_EQ_UINT(kit_counts().threads, 1);
    (void)kit_cut(MS(20));
    CHECK_EQ_STR(kit_story(), "S1 s1 t11");
    const struct etwatch_sample *s = kit_nth(ETWATCH_TYPE_THREAD, 1, 0);
    CHECK_EQ_STR(s->thread_name, "short");
    CHECK_EQ_UINT(s->dt_ns, 9 * NS_PER_MS); /* from its start on */
    CHECK_EQ_UINT(kit_counts().threads, 0);
    kit_close();
}

TEST(samples_follow_a_new_interval_length)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    kit_read(OPEN, 1, 1, MS(1), 0, 0);
    CHECK_EQ_INT(ew_sampler_set_interval(kit.sampler, MS(25), 20 * NS_PER_MS), ETWATCH_EINVAL);
    CHECK_EQ_INT(ew_sampler_set_interval(kit.sampler, MS(20), 999), ETWATCH_EINVAL);
    CHECK_EQ_INT(ew_sampler_set_interval(kit.sampler, MS(20), 20 * NS_PER_MS), 0);
    kit_ran(SPAN, 1, 1, MS(1), 0, MS(50), 49 * NS_PER_MS, 1);
    (void)kit_cut(MS(50));
    static const struct {
        double t_ms;
        uint64_t dt_ms, cpu_ms;
    } rows[] = {{10, 10, 9}, {20, 10, 10}, {40, 20, 20}};
    CHECK_EQ_STR(kit_story(), "S1 s1 s1 s1");
    for (size_t i = 0; i < 3; i++) {
        const struct etwatch_sample *s = kit_nth(ETWATCH_TYPE_SAMPLE, 1, i);
        CHECK_EQ_UINT(s->t_ns, UNIX_MS(rows[i].t_ms));
        CHECK_EQ_UINT(s->dt_ns, rows[i].dt_ms * NS_PER_MS);
        CHECK_EQ_UINT(CPU(s), rows[i].cpu_ms);
    }
    CHECK_EQ_INT(ew_sampler_set_interval(kit.sampler, MS(40), NS_PER_MS), ETWATCH_ESTATE);
    CHECK_EQ_UINT(kit_counts().intervals, 3);
    kit_close();
}

TEST(a_run_of_hours_is_folded_and_not_split_into_millions)
{
    struct ew_sampler_config config = kit_config();
    config.interval_ns = NS_PER_MS;
    kit_open(config);
    kit_seen(1, "a");
    kit_read(OPEN, 1, 1, MS(0), 0, 0);
    uint64_t hours = UINT64_C(8) * 3600 * 1000000000;
    kit_ran(SPAN, 1, 1, MS(0), 0, EPOCH + hours, hours / 2, 7);
    CHECK(kit_cut(EPOCH + hours) > 0);
    struct ew_sampler_counts counts = kit_counts();
    CHECK_EQ_UINT(counts.intervals, hours / NS_PER_MS);
    CHECK(counts.samples <= 20000);
    struct etwatch_sample total;
    CHECK_EQ_INT(ew_sampler_snapshot(kit.sampler, 1, &total, NULL, 0), 0);
    kit_close();
}
