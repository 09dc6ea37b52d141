/* SPDX-License-Identifier: MIT */
/* Attribution of counts when a source began late, missed a switch or took an outdated reading. */
#include "sampler_kit.h"

#define CPU(s) ((s)->cpu_ns / NS_PER_MS)
#define OPEN EW_READING_OPEN
#define SPAN EW_READING_SPAN
#define AT EW_READING_AT
#define FINAL EW_READING_FINAL

TEST(a_thread_on_the_cpu_when_watching_begins_counts_from_then_on)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    /* On the CPU since 5 ms before the epoch. */
    kit_ran(SPAN, 1, 1, EPOCH - 5 * NS_PER_MS, 70 * NS_PER_MS, MS(15), 90 * NS_PER_MS, 3);
    (void)kit_cut(MS(20));
    CHECK_EQ_STR(kit_story(), "S1 s1 s1");
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)), 10);
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 1)), 5);
    CHECK_EQ_UINT(kit_counts().late, 0);
    kit_close();
}

TEST(a_thread_read_as_it_runs_is_not_credited_before_that_reading)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    kit_read(AT, 1, 1, MS(2), 72 * NS_PER_MS, 3); /* a baseline, read while it is on the CPU */
    kit_ran(SPAN, 1, 1, EPOCH - 5 * NS_PER_MS, 65 * NS_PER_MS, MS(10), 80 * NS_PER_MS, 3);
    (void)kit_cut(MS(10));
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)), 8);
    CHECK_EQ_UINT(kit_counts().late, 0);
    kit_close();
}

TEST(a_stale_baseline_is_corrected_by_the_end_of_the_run)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    /* On the CPU for 4 s, and the kernel has not updated its counter when the baseline is read. */
    uint64_t from_ns = EPOCH - 4000 * NS_PER_MS;
    kit_read(AT, 1, 1, MS(2), 70 * NS_PER_MS, 3);
    kit_ran(SPAN, 1, 1, from_ns, 70 * NS_PER_MS, MS(1), 4071 * NS_PER_MS, 3); /* slightly older */
    kit_ran(SPAN, 1, 1, from_ns, 70 * NS_PER_MS, MS(20), 4090 * NS_PER_MS, 4);
    (void)kit_cut(MS(20));
    uint64_t sum = 0;
    for (size_t i = 0; i < 2; i++)
        sum += kit_nth(ETWATCH_TYPE_SAMPLE, 1, i)->cpu_ns;
    CHECK_EQ_UINT(sum, 19 * NS_PER_MS);
    CHECK_NEAR(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 1)->cpu_percent, 100, 6);
    CHECK_EQ_UINT(kit_counts().late, 0);
    kit_close();
}

TEST(an_impossible_first_run_is_only_a_baseline)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    kit_ran(SPAN, 1, 1, MS(4), 0, MS(5), 850 * NS_PER_MS, 3); /* 850 ms in one interval */
    kit_read(AT, 1, 1, MS(10), 852 * NS_PER_MS, 3);
    (void)kit_cut(MS(10));
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)), 2);
    kit_close();
}

TEST(more_cpu_time_than_the_open_interval_is_a_run_since_its_open)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    kit_read(OPEN, 1, 1, MS(8), 0, 0);
    kit_read(AT, 1, 1, MS(60), 25 * NS_PER_MS, 7); /* its switch-out was missed */
    (void)kit_cut(MS(60));
    CHECK_EQ_STR(kit_story(), "S1 s1 s1 s1 s1");
    static const uint64_t want[] = {2, 10, 10, 3};
    for (size_t i = 0; i < 4; i++)
        CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 1, i)), want[i]);
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 1)->switches_voluntary, 7);
    kit_close();
}

TEST(an_end_without_a_beginning_is_a_run_until_then)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    kit_read(OPEN, 1, 1, MS(2), 0, 0);
    kit_ran(FINAL, 1, 1, MS(56), 25 * NS_PER_MS, MS(56), 25 * NS_PER_MS, 1);
    (void)kit_cut(MS(60));
    static const uint64_t want[] = {9, 10, 6}; /* from 31 to 56 */
    CHECK_EQ_STR(kit_story(), "S1 s1 s1 s1");
    for (size_t i = 0; i < 3; i++)
        CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 1, i)), want[i]);
    kit_close();
}

TEST(a_run_shorter_than_its_cpu_time_leaves_the_rest_before_it)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    kit_read(OPEN, 1, 1, MS(1), 0, 0);
    kit_ran(SPAN, 1, 1, MS(18), 0, MS(22), 10 * NS_PER_MS, 1); /* 4 ms long */
    (void)kit_cut(MS(30));
    static const uint64_t want[] = {6, 2, 2};
    for (size_t i = 0; i < 3; i++)
        CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 1, i)), want[i]);
    kit_close();
}

TEST(a_baseline_counts_only_for_an_unknown_thread)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    kit_read(OPEN, 1, 1, MS(1), 0, 0);
    struct ew_reading r = kit_values(AT, 1, 1, MS(5), 3 * NS_PER_MS, 9);
    r.base_line = true;
    kit_reading(r);
    r = kit_values(AT, 1, 2, MS(5), 3 * NS_PER_MS, 9);
    r.base_line = true;
    kit_reading(r);
    kit_read(AT, 1, 1, MS(10), NS_PER_MS, 1);
    kit_read(AT, 1, 2, MS(10), 4 * NS_PER_MS, 10);
    (void)kit_cut(MS(10));
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)), 2);
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)->switches_voluntary, 2);
    kit_close();
}

TEST(counts_for_a_delivered_interval_go_to_the_oldest_open_one_and_are_late)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    kit_read(OPEN, 1, 1, MS(5), 0, 0);
    (void)kit_cut(MS(30));
    kit_read(OPEN, 1, 1, MS(45), 2 * NS_PER_MS, 3);
    (void)kit_cut(MS(50));
    CHECK_EQ_STR(kit_story(), "s1");
    const struct etwatch_sample *s = kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0);
    CHECK_EQ_UINT(s->t_ns, UNIX_MS(40));
    CHECK_EQ_UINT(CPU(s), 2);
    CHECK((s->flags & ETWATCH_SAMPLE_COMPLETE) != 0);
    CHECK_EQ_UINT(kit_counts().late, 1);
    kit_close();
}

TEST(in_a_run_from_a_delivered_interval_only_the_late_part_moves)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    kit_read(OPEN, 1, 1, MS(5), 0, 0);
    (void)kit_cut(MS(20));
    kit_ran(SPAN, 1, 1, MS(5), 0, MS(35), 30 * NS_PER_MS, 1);
    (void)kit_cut(MS(40));
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)),
                  25); /* 15 ms late and 10 ms of its own */
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 1)), 5);
    CHECK_EQ_UINT(kit_counts().late, 1);
    kit_close();
}

TEST(a_reading_older_than_the_last_one_is_ignored)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    kit_read(OPEN, 1, 1, MS(1), 0, 0);
    kit_read(OPEN, 1, 1, MS(21), 2 * NS_PER_MS, 1);
    kit_read(OPEN, 1, 1, MS(11), NS_PER_MS, 1);
    kit_read(AT, 1, 1, MS(30), 5 * NS_PER_MS, 2);
    (void)kit_cut(MS(30));
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)), 2);
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 1)->t_ns, UNIX_MS(30));
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 1)), 3);
    kit_close();
}
