/* SPDX-License-Identifier: MIT */
/*
 * Processes over their lifetime: when they are announced, how they end, and in which order
 * everything is reported.
 */
#include "metric_kit.h"
#include "sampler_kit.h"

#define CPU(s) ((s)->cpu_ns / NS_PER_MS)
#define OPEN EW_READING_OPEN
#define SPAN EW_READING_SPAN
#define AT EW_READING_AT
#define FINAL EW_READING_FINAL

TEST(a_process_that_lived_a_millisecond_has_start_sample_and_exit)
{
    kit_open(kit_config());
    kit_start(5, MS(12), "quick");
    struct ew_reading r = kit_values(FINAL, 5, 5, MS(13), 800000, 1);
    r.start_ns = MS(12);
    r.ran_from_ns = MS(12.2);
    kit_reading(r);
    kit_exit(5, MS(12), MS(13), 3);
    CHECK_EQ_INT(kit_cut(MS(20)), 3);
    CHECK_EQ_STR(kit_story(), "S5 s5 X5");
    const struct etwatch_sample *s = kit_nth(ETWATCH_TYPE_START, 5, 0);
    CHECK_EQ_UINT(s->t_ns, UNIX_MS(12));
    CHECK_EQ_UINT(s->start_ns, UNIX_MS(12));
    CHECK_EQ_UINT(s->dt_ns, 0);
    CHECK_EQ_STR(s->name, "quick");
    CHECK_EQ_UINT(s->flags, ETWATCH_SAMPLE_COMPLETE);
    s = kit_nth(ETWATCH_TYPE_SAMPLE, 5, 0);
    CHECK_EQ_UINT(s->t_ns, UNIX_MS(13));
    CHECK_EQ_UINT(s->dt_ns, NS_PER_MS);
    CHECK_EQ_UINT(s->cpu_ns, 800000);
    CHECK_NEAR(s->cpu_percent, 80, 1e-9);
    s = kit_nth(ETWATCH_TYPE_EXIT, 5, 0);
    CHECK_EQ_UINT(s->t_ns, UNIX_MS(13));
    CHECK_EQ_UINT(s->dt_ns, NS_PER_MS);
    CHECK_EQ_UINT(s->cpu_ns, 800000);
    CHECK_NEAR(s->cpu_percent, 80, 1e-9);
    CHECK_EQ_UINT(s->exit_ns, UNIX_MS(13));
    CHECK_EQ_INT(s->exit_code, 3);
    CHECK_EQ_INT(s->exit_signal, 0);
    CHECK(kit_has(s, ETWATCH_M_exit_ns) && kit_has(s, ETWATCH_M_exit_code) &&
          kit_has(s, ETWATCH_M_exit_signal));
    CHECK_EQ_UINT(kit_counts().processes, 0);
    kit_close();
}

TEST(a_process_never_seen_running_still_has_start_sample_and_exit)
{
    kit_open(kit_config());
    kit_start(5, MS(12), "ghost");
    kit_exit(5, MS(12), MS(13), 0);
    (void)kit_cut(MS(20));
    CHECK_EQ_STR(kit_story(), "S5 s5 X5");
    CHECK(!kit_has(kit_nth(ETWATCH_TYPE_SAMPLE, 5, 0), ETWATCH_M_cpu_ns));
    CHECK(!kit_has(kit_nth(ETWATCH_TYPE_EXIT, 5, 0), ETWATCH_M_cpu_ns));
    kit_close();
}

static void exit_with_totals(uint32_t pid, uint64_t start_ns, uint64_t t_ns, uint64_t cpu_ns)
{
    struct ew_process_fact fact = {.kind = EW_PROCESS_EXIT,
                                   .has = EW_HAS_EXIT_STATUS,
                                   .pid = pid,
                                   .start_ns = start_ns,
                                   .t_ns = t_ns,
                                   .exit_signal = 9,
                                   .counter_has = EW_HAS_C(cpu_ns),
                                   .gauge_has = EW_HAS_G(rss_peak_bytes)};
    fact.counter[EW_C_cpu_ns] = cpu_ns;
    fact.gauge[EW_G_rss_peak_bytes] = 4096;
    kit.facts.process(kit.facts.ctx, &fact);
}

TEST(exit_totals_fill_the_last_sample_of_a_process_without_readings)
{
    kit_open(kit_config());
    kit_start(5, MS(12), "ghost");
    exit_with_totals(5, MS(12), MS(14), NS_PER_MS);
    (void)kit_cut(MS(20));
    CHECK_EQ_STR(kit_story(), "S5 s5 X5");
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 5, 0)), 1);
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_EXIT, 5, 0)), 1);
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_EXIT, 5, 0)->rss_peak_bytes, 4096);
    CHECK_EQ_INT(kit_nth(ETWATCH_TYPE_EXIT, 5, 0)->exit_signal, 9);
    kit_close();
}

TEST(readings_after_the_exit_override_its_totals)
{
    kit_open(kit_config());
    kit_start(5, MS(8), "a");
    exit_with_totals(5, MS(8), MS(14), 6 * NS_PER_MS);
    struct ew_reading r = kit_values(FINAL, 5, 5, MS(14), 6 * NS_PER_MS, 1);
    r.ran_from_ns = MS(8);
    kit_reading(r);
    (void)kit_cut(MS(20));
    CHECK_EQ_STR(kit_story(), "S5 s5 s5 X5");
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 5, 0)), 2);
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 5, 1)), 4);
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_EXIT, 5, 0)), 6);
    kit_close();
}

TEST(exit_totals_override_the_sum_of_readings)
{
    kit_open(kit_config());
    kit_start(5, MS(1), "a");
    struct ew_reading r = kit_values(FINAL, 5, 5, MS(9), 4 * NS_PER_MS, 1);
    r.ran_from_ns = MS(5);
    kit_reading(r);
    exit_with_totals(5, MS(1), MS(9), 5 * NS_PER_MS);
    (void)kit_cut(MS(10));
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 5, 0)), 4);
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_EXIT, 5, 0)), 5);
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_EXIT, 5, 0)->switches_voluntary, 1);
    kit_close();
}

TEST(totals_of_a_preexisting_process_include_its_earlier_counts)
{
    kit_open(kit_config());
    struct ew_process_fact fact = {.kind = EW_PROCESS_SEEN,
                                   .pid = 5,
                                   .start_ns = EPOCH - 100 * NS_PER_MS,
                                   .t_ns = EPOCH,
                                   .counter_has = EW_HAS_C(cpu_ns)};
    fact.counter[EW_C_cpu_ns] = 40 * NS_PER_MS;
    kit.facts.process(kit.facts.ctx, &fact);
    kit_read(OPEN, 5, 5, MS(3), 40 * NS_PER_MS, 8);
    kit_ran(FINAL, 5, 5, MS(3), 40 * NS_PER_MS, MS(5), 42 * NS_PER_MS, 9);
    kit_exit(5, fact.start_ns, MS(5), 0);
    (void)kit_cut(MS(10));
    const struct etwatch_sample *s = kit_nth(ETWATCH_TYPE_EXIT, 5, 0);
    CHECK_EQ_UINT(CPU(s), 42);
    CHECK_EQ_UINT(s->dt_ns, 105 * NS_PER_MS);
    CHECK_NEAR(s->cpu_percent, 40, 1e-9);
    /* The number of earlier switches is unknown, so the total is unknown too. */
    CHECK(!kit_has(s, ETWATCH_M_switches_voluntary));
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 5, 0)), 2);
    kit_close();
}

TEST(preexisting_processes_are_announced_first_and_marked)
{
    kit_open(kit_config());
    struct ew_process_fact fact = {.kind = EW_PROCESS_SEEN,
                                   .has = EW_HAS_PPID | EW_HAS_SESSION | EW_HAS_NAME,
                                   .pid = 5,
                                   .ppid = 1,
                                   .session_id = 77,
                                   .start_ns = 1000,
                                   .t_ns = EPOCH,
                                   .gauge_has = EW_HAS_G(rss_bytes),
                                   .name = "old"};
    fact.gauge[EW_G_rss_bytes] = 123;
    kit.facts.process(kit.facts.ctx, &fact);
    (void)kit_cut(MS(5));
    CHECK_EQ_UINT(kit.count, 0); /* its interval is not over */
    (void)kit_cut(MS(10));
    CHECK_EQ_STR(kit_story(), "S5");
    const struct etwatch_sample *s = &kit.object[0].s;
    CHECK_EQ_UINT(s->flags, ETWATCH_SAMPLE_COMPLETE | ETWATCH_SAMPLE_PREEXISTING |
                                ETWATCH_SAMPLE_HAS_PPID | ETWATCH_SAMPLE_HAS_SESSION);
    CHECK_EQ_UINT(s->ppid, 1);
    CHECK_EQ_UINT(s->session_id, 77);
    CHECK_EQ_UINT(s->rss_bytes, 123);
    CHECK_METRICS(s->has, ETWATCH_M_rss_bytes);
    kit_close();
}

TEST(within_an_interval_starts_precede_samples_and_samples_precede_exits)
{
    kit_open(kit_config());
    kit_start(1, MS(1), "a");
    kit_read(OPEN, 1, 1, MS(2), 0, 0);
    kit_ran(SPAN, 1, 1, MS(2), 0, MS(18), 16 * NS_PER_MS, 0);
    kit_start(2, MS(13), "b");
    kit_read(OPEN, 2, 2, MS(14), 0, 0);
    kit_ran(FINAL, 2, 2, MS(14), 0, MS(15), NS_PER_MS, 1);
    kit_exit(2, MS(13), MS(15), 0);
    kit_start(3, MS(16), "c");
    kit_exit(3, MS(16), MS(17), 0);
    kit_start(4, MS(25), "d");
    (void)kit_cut(MS(30));
    CHECK_EQ_STR(kit_story(), "S1 s1 S2 S3 s1 s2 s3 X2 X3 S4");
    kit_close();
}

TEST(an_exit_waits_for_the_last_reading_of_a_known_thread)
{
    kit_open(kit_config());
    kit_start(1, MS(1), "a");
    kit_read(OPEN, 1, 1, MS(2), 0, 0);
    kit_exit(1, MS(1), MS(6), 0);
    (void)kit_cut(MS(10));
    CHECK_EQ_STR(kit_story(), "S1");
    kit_ran(FINAL, 1, 1, MS(2), 0, MS(6), 4 * NS_PER_MS, 1);
    (void)kit_cut(MS(20));
    CHECK_EQ_STR(kit_story(), "s1 X1");
    const struct etwatch_sample *s = kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0);
    CHECK_EQ_UINT(CPU(s), 4);
    CHECK_EQ_UINT(s->t_ns, UNIX_MS(6)); /* still belongs to the interval in which it ended */
    CHECK_EQ_UINT(s->dt_ns, 5 * NS_PER_MS);
    CHECK_EQ_UINT(kit_counts().late, 0);
    kit_close();
}

TEST(an_exit_waits_two_seconds_for_the_last_reading_and_is_then_incomplete)
{
    kit_open(kit_config());
    kit_start(1, MS(1), "a");
    kit_read(OPEN, 1, 1, MS(2), 0, 0);
    kit_exit(1, MS(1), MS(6), 0);
    (void)kit_cut(MS(10));
    CHECK_EQ_STR(kit_story(), "S1");
    for (int i = 2; i <= 200; i++) {
        (void)kit_cut(MS(10 * i));
        CHECK_EQ_STR(kit_story(), "");
    }
    (void)kit_cut(MS(2010));
    (void)kit_cut(MS(2020));
    CHECK_EQ_STR(kit_story(), "s1 X1");
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_EXIT, 1, 0)->flags & ETWATCH_SAMPLE_COMPLETE, 0);
    CHECK_EQ_UINT(kit_counts().processes, 0);
    CHECK_EQ_UINT(kit_counts().threads, 0);
    kit_close();
}

TEST(after_a_loss_an_exit_waits_no_longer_than_two_cuts)
{
    kit_open(kit_config());
    kit_start(1, MS(1), "a");
    kit_read(OPEN, 1, 1, MS(2), 0, 0);
    struct etwatch_loss loss = {
        .stage = ETWATCH_LOSS_KERNEL_LOG, .count = 1, .from_ns = MS(3), .to_ns = MS(4)};
    kit.facts.loss(kit.facts.ctx, &loss);
    kit_exit(1, MS(1), MS(6), 0);
    (void)kit_cut(MS(10));
    CHECK_EQ_STR(kit_story(), "S1");
    (void)kit_cut(MS(20));
    CHECK_EQ_STR(kit_story(), "");
    (void)kit_cut(MS(30));
    CHECK_EQ_STR(kit_story(), "s1 X1");
    CHECK_EQ_UINT(kit_counts().processes, 0);
    CHECK_EQ_UINT(kit_counts().threads, 0);
    kit_close();
}

TEST(a_process_ends_when_it_leaves_the_cpu_for_the_last_time)
{
    kit_open(kit_config());
    kit_start(1, MS(1), "a");
    kit_read(OPEN, 1, 1, MS(2), 0, 0);
    kit_ran(FINAL, 1, 1, MS(2), 0, MS(11), 9 * NS_PER_MS, 1); /* it leaves the CPU later ... */
    kit_exit(1, MS(1), MS(9.9), 0);                           /* ... than its exit was reported */
    (void)kit_cut(MS(20));
    CHECK_EQ_STR(kit_story(), "S1 s1 s1 X1");
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)), 8);
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 1)), 1);
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 1)->t_ns, UNIX_MS(11));
    CHECK_NEAR(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 1)->cpu_percent, 100, 1e-9);
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_EXIT, 1, 0)->exit_ns, UNIX_MS(11));
    kit_close();
}

TEST(a_process_that_exited_before_it_was_watched_is_dropped)
{
    kit_open(kit_config());
    kit_ran(FINAL, 1, 1, MS(2), 5 * NS_PER_MS, MS(3), 6 * NS_PER_MS,
            1); /* neither start nor exit */
    (void)kit_cut(MS(10));
    CHECK_EQ_STR(kit_story(), "S1 s1 X1");
    const struct etwatch_sample *e = kit_nth(ETWATCH_TYPE_EXIT, 1, 0);
    CHECK_EQ_UINT(e->flags & ETWATCH_SAMPLE_COMPLETE, 0);
    CHECK(!etwatch_sample_has(e, ETWATCH_M_exit_code));
    CHECK_EQ_UINT(kit_counts().processes, 0);
    kit_close();
}

TEST(a_concluded_exit_takes_its_status_when_it_is_reported)
{
    kit_open(kit_config());
    kit_ran(FINAL, 1, 1, MS(2), 5 * NS_PER_MS, MS(3), 6 * NS_PER_MS, 1);
    kit_exit(1, MS(1), MS(2.9), 7);
    (void)kit_cut(MS(10));
    CHECK_EQ_STR(kit_story(), "S1 s1 X1");
    const struct etwatch_sample *e = kit_nth(ETWATCH_TYPE_EXIT, 1, 0);
    CHECK(etwatch_sample_has(e, ETWATCH_M_exit_code));
    CHECK_EQ_INT(e->exit_code, 7);
    kit_close();
}

TEST(a_last_reading_after_the_exit_extends_the_last_sample)
{
    kit_open(kit_config());
    kit_start(1, MS(1), "a");
    kit_read(OPEN, 1, 1, MS(2), 0, 0);
    kit_exit(1, MS(1), MS(9.9), 0);
    kit_ran(FINAL, 1, 1, MS(2), 0, MS(11), 9 * NS_PER_MS, 1);
    (void)kit_cut(MS(20));
    CHECK_EQ_STR(kit_story(), "S1 s1 X1");
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)), 9);
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)->t_ns, UNIX_MS(11));
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)->dt_ns, 10 * NS_PER_MS);
    kit_close();
}

TEST(counts_attributed_after_the_end_move_to_the_last_sample)
{
    kit_open(kit_config());
    kit_start(1, MS(1), "a");
    kit_read(OPEN, 1, 1, MS(2), 0, 0);
    kit_read(OPEN, 1, 1, MS(12), 3 * NS_PER_MS, 1);
    kit_read(OPEN, 1, 1, MS(22), 5 * NS_PER_MS, 1);
    kit_read(AT, 1, 1, MS(30), 6 * NS_PER_MS, 1);
    kit_exit(1, MS(1), MS(9), 0); /* so a clock is wrong */
    kit.count = 0;
    (void)ew_sampler_finish(kit.sampler, MS(40));
    CHECK_EQ_STR(kit_story(), "S1 s1 X1");
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)), 6);
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_EXIT, 1, 0)), 6);
    kit_close();
}

TEST(a_late_exit_of_a_delivered_interval_adds_no_empty_sample)
{
    kit_open(kit_config());
    kit_start(1, MS(1), "a");
    kit_read(OPEN, 1, 1, MS(2), 0, 0);
    kit_ran(FINAL, 1, 1, MS(2), 0, MS(6), 4 * NS_PER_MS, 1);
    (void)kit_cut(MS(20));
    CHECK_EQ_STR(kit_story(), "S1 s1");
    kit_exit(1, MS(1), MS(6), 0);
    (void)kit_cut(MS(30));
    CHECK_EQ_STR(kit_story(), "X1");
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_EXIT, 1, 0)->t_ns, UNIX_MS(6));
    kit_close();
}

static void describe(void *ctx, uint32_t pid, uint32_t uid, const char *sid, uint64_t cgroup_id,
                     const char **ret_user, const char **ret_cgroup, const char **ret_cmdline)
{
    static char user[32], cgroup[32], cmdline[32];
    (void)ctx;
    (void)sid;
    kit.described++;
    (void)snprintf(user, sizeof user, "u%u", uid);
    (void)snprintf(cgroup, sizeof cgroup, "/c%u", (unsigned)cgroup_id);
    (void)snprintf(cmdline, sizeof cmdline, "prog %u #%u", pid, (unsigned)kit.described);
    *ret_user = user;
    *ret_cgroup = cgroup;
    *ret_cmdline = cmdline;
}

TEST(strings_are_read_once_per_process_and_once_per_exec)
{
    struct ew_sampler_config config = kit_config();
    config.describe = describe;
    kit_open(config);
    for (uint32_t pid = 1; pid <= 200; pid++) {
        struct ew_process_fact fact = {.kind = EW_PROCESS_START,
                                       .has = EW_HAS_UID | EW_HAS_CGROUP,
                                       .pid = pid,
                                       .uid = pid % 3,
                                       .cgroup_id = pid % 5,
                                       .start_ns = MS(1),
                                       .t_ns = MS(1)};
        kit.facts.process(kit.facts.ctx, &fact);
        kit_read(AT, pid, pid, MS(5), NS_PER_MS, 1);
    }
    CHECK_EQ_UINT(kit.described, 0);
    (void)kit_cut(MS(10));
    CHECK_EQ_UINT(kit.described, 200);
    const struct etwatch_sample *s = kit_nth(ETWATCH_TYPE_SAMPLE, 104, 0);
    CHECK_EQ_STR(s->user, "u2");
    CHECK_EQ_STR(s->cgroup, "/c4");
    CHECK_EQ_STR(s->cmdline, "prog 104 #104");
    CHECK(kit.batches <= 51); /* 400 objects, eight at a time */
    kit_process(EW_PROCESS_EXEC, 104, MS(1), MS(11), "x");
    kit_read(FINAL, 104, 104, MS(15), 2 * NS_PER_MS, 1);
    kit_exit(104, MS(1), MS(16), 0);
    (void)kit_cut(MS(40));
    CHECK_EQ_STR(kit_story(), "s104 X104");
    CHECK_EQ_UINT(kit.described, 201);
    CHECK_EQ_STR(kit_nth(ETWATCH_TYPE_EXIT, 104, 0)->cmdline, "prog 104 #201");
    kit_close();
}

TEST(finish_delivers_the_last_shorter_interval_and_pending_exits)
{
    kit_open(kit_config());
    kit_start(1, MS(1), "a");
    kit_start(2, MS(2), "b");
    kit_read(OPEN, 1, 1, MS(2), 0, 0);
    kit_read(OPEN, 2, 2, MS(2), 0, 0);
    kit_exit(2, MS(2), MS(13), 0);
    kit_ran(SPAN, 1, 1, MS(2), 0, MS(14), 12 * NS_PER_MS, 1);
    kit.count = 0;
    CHECK(ew_sampler_finish(kit.sampler, MS(14)) > 0);
    CHECK_EQ_STR(kit_story(), "S1 S2 s1 s1 s2 X2");
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)), 8);
    const struct etwatch_sample *s = kit_nth(ETWATCH_TYPE_SAMPLE, 1, 1);
    CHECK_EQ_UINT(CPU(s), 4);
    CHECK_EQ_UINT(s->t_ns, UNIX_MS(14));
    CHECK_EQ_UINT(s->dt_ns, 4 * NS_PER_MS);
    CHECK_EQ_INT(ew_sampler_deliver(kit.sampler, MS(50)), ETWATCH_ESTATE);
    CHECK_EQ_INT(ew_sampler_finish(kit.sampler, MS(50)), ETWATCH_ESTATE);
    kit_close();
}

TEST(a_snapshot_has_totals_and_latest_gauges)
{
    kit_open(kit_config());
    kit_start(1, MS(10), "a long enough name");
    kit_read(AT, 1, 1, MS(15), 2 * NS_PER_MS, 4);
    struct ew_reading r = kit_values(AT, 1, 1, MS(30), 5 * NS_PER_MS, 6);
    r.gauge_has = EW_HAS_G(rss_bytes) | EW_HAS_G(priority);
    r.gauge[EW_G_rss_bytes] = 8192;
    r.gauge[EW_G_priority] = 20;
    kit_reading(r);
    struct etwatch_sample s;
    char name[8];
    CHECK_EQ_INT(ew_sampler_snapshot(kit.sampler, 1, &s, name, sizeof name), 0);
    CHECK_EQ_UINT(s.type, ETWATCH_TYPE_SAMPLE);
    CHECK_EQ_STR(s.name, "a long ");
    CHECK_EQ_UINT(s.cpu_ns, 5 * NS_PER_MS);
    CHECK_EQ_UINT(s.switches_voluntary, 6);
    CHECK_EQ_UINT(s.rss_bytes, 8192);
    CHECK_EQ_UINT(s.dt_ns, 20 * NS_PER_MS);
    CHECK_NEAR(s.cpu_percent, 25, 1e-9);
    CHECK_EQ_INT(ew_sampler_snapshot(kit.sampler, 2, &s, NULL, 0), ETWATCH_ENOENT);
    kit_close();
}

TEST(a_configuration_that_cannot_work_is_refused)
{
    struct ew_sampler *sampler = NULL;
    for (int i = 0; i < 5; i++) {
        struct ew_sampler_config config = kit_config();
        if (i == 0)
            config.emit = NULL;
        else if (i == 1)
            config.interval_ns = NS_PER_MS - 1;
        else if (i == 2)
            config.interval_ns = 10001 * NS_PER_MS;
        else if (i == 3)
            config.max_processes = 0;
        else
            config.max_threads = 0;
        CHECK_EQ_INT(ew_sampler_new(&config, &sampler), ETWATCH_EINVAL);
    }
    CHECK(sampler == NULL);
}

TEST(events_pass_through_in_unix_time)
{
    kit_open(kit_config());
    struct etwatch_event event = {
        .size = sizeof event, .kind = ETWATCH_EVENT_SWITCH, .t_ns = MS(3), .pid = 4, .name = "x"};
    kit.facts.event(kit.facts.ctx, &event);
    CHECK_EQ_UINT(kit.event_count, 1);
    CHECK_EQ_UINT(kit.event.t_ns, UNIX_MS(3));
    CHECK_EQ_UINT(kit.event.pid, 4);
    CHECK_EQ_STR(kit.event.name, "x");
    kit_close();
}
