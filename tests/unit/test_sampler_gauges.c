/* SPDX-License-Identifier: MIT */
/* Which sample a gauge belongs to, rows for idle processes, and aggregates. */
#include "metric_kit.h"
#include "sampler_kit.h"

#define OPEN EW_READING_OPEN
#define SPAN EW_READING_SPAN
#define AT EW_READING_AT
#define RSS ETWATCH_M_rss_bytes

static void read_rss(uint32_t pid, uint64_t t_ns, uint64_t cpu_ns, uint64_t rss)
{
    struct ew_reading r = kit_values(AT, pid, pid, t_ns, cpu_ns, 0);
    r.gauge_has = EW_HAS_G(rss_bytes);
    r.gauge[EW_G_rss_bytes] = rss;
    kit_reading(r);
}

TEST(a_gauge_is_on_the_last_sample_that_ended_before_it_was_read)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    kit_read(OPEN, 1, 1, MS(1), 0, 0);
    kit_read(OPEN, 1, 1, MS(11), NS_PER_MS, 0);
    kit_read(OPEN, 1, 1, MS(31), 2 * NS_PER_MS, 0);
    read_rss(1, MS(35), 3 * NS_PER_MS, 4096); /* in the middle of [30, 40) */
    (void)kit_cut(MS(35));
    CHECK_EQ_STR(kit_story(), "S1 s1 s1");
    CHECK(!kit_has(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0), RSS));
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)->rss_bytes, 0);
    CHECK(kit_has(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 1), RSS));
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 1)->rss_bytes, 4096);
    kit_close();
}

static void note_rss(enum ew_reading_kind kind, uint64_t from_ns, uint64_t t_ns, uint64_t cpu_ns,
                     uint64_t rss)
{
    struct ew_reading r = kit_values(kind, 1, 1, t_ns, cpu_ns, 0);
    r.ran_from_ns = from_ns;
    r.ran_from_cpu_ns = cpu_ns - (t_ns - from_ns);
    r.gauge_has = EW_HAS_G(rss_bytes);
    r.gauge[EW_G_rss_bytes] = rss;
    kit_reading(r);
}

/*
 * Intervals of 10 ms; a value recorded at a switch is valid for the last interval that had ended by
 * then.
 */
TEST(memory_recorded_at_switches_is_on_every_sample_of_a_cut)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    note_rss(OPEN, MS(1), MS(1), 0, 1000);
    note_rss(OPEN, MS(11), MS(11), NS_PER_MS, 2000);
    note_rss(OPEN, MS(31), MS(31), 2 * NS_PER_MS, 3000);
    note_rss(SPAN, MS(31), MS(55), 26 * NS_PER_MS, 4000);
    note_rss(OPEN, MS(57), MS(57), 26 * NS_PER_MS, 5000);
    (void)kit_cut(MS(50));
    CHECK_EQ_STR(kit_story(), "S1 s1 s1 s1 s1");
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)->rss_bytes, 2000);
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 1)->rss_bytes, 3000);
    /* [30, 40) ended in the middle of a run: no value was read. */
    CHECK(!kit_has(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 2), RSS));
    CHECK(kit_has(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 3), RSS));
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 3)->rss_bytes, 4000);
    kit_close();
}

TEST(a_gauge_read_before_the_end_is_valid_if_the_process_has_not_run_since)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    kit_read(OPEN, 1, 1, MS(1), 0, 0);
    read_rss(1, MS(5), NS_PER_MS, 4096); /* off the CPU, and not scheduled again */
    (void)kit_cut(MS(10));
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)->rss_bytes, 4096);
    CHECK(kit_has(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0), RSS));
    kit_close();
}

TEST(a_gauge_is_unknown_if_the_process_has_run_since)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    kit_read(OPEN, 1, 1, MS(1), 0, 0);
    read_rss(1, MS(5), NS_PER_MS, 4096);
    kit_read(AT, 1, 1, MS(8), 2 * NS_PER_MS, 0);
    (void)kit_cut(MS(10));
    CHECK(!kit_has(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0), RSS));
    kit_read(OPEN, 1, 1, MS(15), 2 * NS_PER_MS, 0);
    kit_read(AT, 1, 1, MS(20), 3 * NS_PER_MS, 0);
    (void)kit_cut(MS(20));
    CHECK(!kit_has(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0), RSS));
    kit_close();
}

TEST(a_gauge_read_before_the_counts_of_its_drain_is_on_the_same_sample)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    struct ew_reading r = {.kind = AT, .pid = 1, .tid = 0, .t_ns = MS(20.5)};
    r.gauge_has = EW_HAS_G(handles);
    r.gauge[EW_G_handles] = 17;
    kit_reading(r);
    kit_read(OPEN, 1, 1, MS(12), 0, 0);
    kit_read(AT, 1, 1, MS(20), NS_PER_MS, 0);
    (void)kit_cut(MS(20));
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)->handles, 17);
    kit_close();
}

TEST(gauges_read_at_different_times_are_valid_independently)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    struct ew_reading r = kit_values(OPEN, 1, 1, MS(1), 0, 0);
    r.gauge_has = EW_HAS_G(priority);
    r.gauge[EW_G_priority] = (uint64_t)-7;
    kit_reading(r);
    read_rss(1, MS(12), NS_PER_MS, 4096);
    (void)kit_cut(MS(10));
    const struct etwatch_sample *s = kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0);
    CHECK(kit_has(s, RSS));
    CHECK(!kit_has(s, ETWATCH_M_priority));
    kit_close();
}

TEST(the_priority_of_a_process_is_its_leaders)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    struct ew_reading r = kit_values(OPEN, 1, 1, MS(1), 0, 0);
    kit_reading(r);
    r = kit_values(AT, 1, 1, MS(10), NS_PER_MS, 0);
    r.gauge_has = EW_HAS_G(priority);
    r.gauge[EW_G_priority] = (uint64_t)-7;
    kit_reading(r);
    r = kit_values(AT, 1, 2, MS(10), 5, 0);
    r.gauge_has = EW_HAS_G(priority);
    r.gauge[EW_G_priority] = 99;
    kit_reading(r);
    (void)kit_cut(MS(10));
    CHECK_EQ_INT(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)->priority, -7);
    kit_close();
}

TEST(exit_gauges_are_on_the_last_sample_and_the_exit)
{
    kit_open(kit_config());
    kit_start(1, MS(1), "a");
    struct ew_process_fact fact = {.kind = EW_PROCESS_EXIT,
                                   .pid = 1,
                                   .start_ns = MS(1),
                                   .t_ns = MS(5),
                                   .gauge_has = EW_HAS_G(rss_peak_bytes)};
    fact.gauge[EW_G_rss_peak_bytes] = 9000;
    kit_read(OPEN, 1, 1, MS(2), 0, 0);
    kit_ran(EW_READING_FINAL, 1, 1, MS(2), 0, MS(5.1), 3 * NS_PER_MS, 1);
    kit.facts.process(kit.facts.ctx, &fact);
    (void)kit_cut(MS(10));
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)->rss_peak_bytes, 9000);
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_EXIT, 1, 0)->rss_peak_bytes, 9000);
    kit_close();
}

TEST(sparse_output_has_no_sample_where_nothing_was_counted)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    kit_read(OPEN, 1, 1, MS(1), 5, 5);
    kit_read(AT, 1, 1, MS(100), 5, 5);
    CHECK_EQ_INT(kit_cut(MS(100)), 1);
    CHECK_EQ_STR(kit_story(), "S1");
    CHECK_EQ_UINT(kit_counts().intervals, 10);
    kit_close();
}

static struct ew_sampler_config dense_config(void)
{
    struct ew_sampler_config config = kit_config();
    config.dense = true;
    config.available = EW_METRICS(ETWATCH_M_cpu_ns, ETWATCH_M_switches_voluntary, RSS);
    return config;
}

TEST(dense_output_has_every_interval_of_every_process)
{
    kit_open(dense_config());
    kit_seen(1, "a");
    kit_seen(2, "b");
    kit_start(3, MS(15), "c");
    kit_read(OPEN, 1, 1, MS(11), 0, 0);
    kit_read(AT, 1, 1, MS(40), NS_PER_MS, 2);
    kit_exit(2, EPOCH - 1000 * NS_PER_MS, MS(22), 0);
    (void)kit_cut(MS(40));
    CHECK_EQ_STR(kit_story(), "S1 S2 s1 s2 S3 s1 s2 s3 s1 s3 s2 X2 s1 s3");
    const struct etwatch_sample *s = kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0);
    CHECK_METRICS(s->has, ETWATCH_M_cpu_ns, ETWATCH_M_cpu_percent, ETWATCH_M_switches_voluntary);
    CHECK_EQ_UINT(s->cpu_ns, 0);
    CHECK_EQ_UINT(s->t_ns, UNIX_MS(10));
    CHECK_EQ_UINT(s->dt_ns, 10 * NS_PER_MS);
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 1)->cpu_ns, NS_PER_MS);
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 3, 0)->dt_ns, 5 * NS_PER_MS);
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 2, 2)->t_ns, UNIX_MS(22));
    kit_close();
}

TEST(dense_rows_carry_the_last_gauges_while_the_process_is_idle)
{
    kit_open(dense_config());
    kit_seen(1, "a");
    kit_read(OPEN, 1, 1, MS(1), 0, 0);
    read_rss(1, MS(10), NS_PER_MS, 4096);
    (void)kit_cut(MS(30));
    CHECK_EQ_STR(kit_story(), "S1 s1 s1 s1");
    for (size_t i = 0; i < 3; i++)
        CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 1, i)->rss_bytes, 4096);
    kit_read(OPEN, 1, 1, MS(35), NS_PER_MS, 0);
    kit_read(AT, 1, 1, MS(40), 2 * NS_PER_MS, 0);
    (void)kit_cut(MS(50));
    CHECK_EQ_STR(kit_story(), "s1 s1");
    CHECK(!kit_has(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0), RSS));
    CHECK(!kit_has(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 1), RSS));
    kit_close();
}

TEST(dense_rows_before_a_run_do_not_carry_gauges_read_after_it)
{
    kit_open(dense_config());
    kit_seen(1, "a");
    kit_read(OPEN, 1, 1, MS(11), 0, 0);
    read_rss(1, MS(30), NS_PER_MS, 4096);
    (void)kit_cut(MS(30));
    CHECK_EQ_STR(kit_story(), "S1 s1 s1 s1");
    CHECK(!kit_has(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0), RSS));
    CHECK(kit_has(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 1), RSS));
    CHECK(kit_has(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 2), RSS));
    kit_close();
}

TEST(a_machine_that_slept_for_hours_gives_one_long_dense_row)
{
    struct ew_sampler_config config = dense_config();
    config.interval_ns = NS_PER_MS;
    kit_open(config);
    kit_seen(1, "a");
    uint64_t hours = UINT64_C(8) * 3600 * 1000000000;
    CHECK(kit_cut(EPOCH + hours) > 0);
    struct ew_sampler_counts counts = kit_counts();
    CHECK(counts.samples < 20000);
    CHECK_EQ_UINT(counts.intervals, hours / NS_PER_MS);
    (void)kit_cut(EPOCH + hours + 2 * NS_PER_MS);
    CHECK_EQ_STR(kit_story(), "s1 s1");
    CHECK_EQ_UINT(kit.object[0].s.dt_ns, NS_PER_MS);
    kit_close();
}

static void aggregate_of(uint32_t metric, struct etwatch_aggregate *ret)
{
    CHECK_EQ_INT(ew_sampler_aggregate(kit.sampler, 1, metric, ret), 0);
}

static void run_aggregate(bool dense)
{
    struct ew_sampler_config config = dense ? dense_config() : kit_config();
    config.aggregate = true;
    kit_open(config);
    kit_seen(1, "a");
    /* 100 intervals, in every 20th 5 ms on the CPU. */
    uint64_t cpu_ns = 0;
    for (int i = 0; i < 100; i++) {
        if (i % 20 == 0) {
            kit_read(OPEN, 1, 1, MS(i * 10 + 1), cpu_ns, 0);
            cpu_ns += 5 * NS_PER_MS;
            read_rss(1, MS(i * 10 + 10), cpu_ns, 1000 + (uint64_t)i);
        }
        (void)kit_cut(MS(i * 10 + 10));
    }
    struct etwatch_aggregate a;
    aggregate_of(ETWATCH_M_cpu_percent, &a);
    CHECK_EQ_UINT(a.count, 100);
    CHECK_NEAR(a.avg, 2.5, 1e-9);
    CHECK_NEAR(a.max, 50, 1e-9);
    CHECK_NEAR(a.p95, 0, 0);
    CHECK_NEAR(a.p99, 50, 0.5);
    aggregate_of(ETWATCH_M_rss_bytes, &a);
    CHECK_EQ_UINT(a.count, dense ? 100 : 5);
    CHECK_NEAR(a.max, 1080, 0);
    CHECK_EQ_INT(ew_sampler_aggregate(kit.sampler, 1, ETWATCH_M_cpu_ns, &a), ETWATCH_EINVAL);
    CHECK_EQ_INT(ew_sampler_aggregate(kit.sampler, 2, ETWATCH_M_rss_bytes, &a), ETWATCH_ENOENT);
    kit_close();
}

TEST(idle_intervals_count_as_0_in_the_aggregate)
{
    run_aggregate(false);
}

TEST(dense_rows_do_not_change_the_aggregate)
{
    run_aggregate(true);
}

TEST(an_aggregate_that_was_not_requested_is_absent)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    struct etwatch_aggregate a;
    CHECK_EQ_INT(ew_sampler_aggregate(kit.sampler, 1, ETWATCH_M_cpu_percent, &a), ETWATCH_ESTATE);
    kit_close();
}
