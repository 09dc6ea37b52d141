/* SPDX-License-Identifier: MIT */
/*
 * Losses are reported, counted and marked; limits hold; running out of memory is handled, and in a
 * steady state nothing is allocated.
 */
#include "sampler_kit.h"

#define OPEN EW_READING_OPEN
#define SPAN EW_READING_SPAN
#define AT EW_READING_AT

static void lose(uint32_t stage, uint64_t count, uint64_t from_ns, uint64_t to_ns)
{
    struct etwatch_loss loss = {
        .size = sizeof loss, .stage = stage, .count = count, .from_ns = from_ns, .to_ns = to_ns};
    kit.facts.loss(kit.facts.ctx, &loss);
}

static bool complete(uint32_t pid, size_t n)
{
    return (kit_nth(ETWATCH_TYPE_SAMPLE, pid, n)->flags & ETWATCH_SAMPLE_COMPLETE) != 0;
}

TEST(a_loss_marks_every_sample_that_it_overlaps)
{
    static const uint32_t stages[] = {ETWATCH_LOSS_KERNEL_LOG, ETWATCH_LOSS_LIFECYCLE};
    for (size_t i = 0; i < 2; i++) {
        kit_open(kit_config());
        for (uint32_t pid = 1; pid <= 2; pid++) {
            kit_seen(pid, "a");
            kit_read(OPEN, pid, pid, MS(1), 0, 0);
            kit_ran(SPAN, pid, pid, MS(1), 0, MS(50), 49 * NS_PER_MS, 0);
        }
        lose(stages[i], 7, MS(12), MS(25));
        (void)kit_cut(MS(50));
        static const bool want[] = {true, false, false, true, true};
        for (size_t n = 0; n < 5; n++) {
            CHECK_EQ_INT(complete(1, n), want[n]);
            CHECK_EQ_INT(complete(2, n), want[n]);
        }
        CHECK_EQ_UINT(kit_counts().lost, 7);
        CHECK_EQ_UINT(kit.loss_count, 1);
        CHECK_EQ_UINT(kit.loss[0].from_ns, UNIX_MS(12));
        CHECK_EQ_UINT(kit.loss[0].to_ns, UNIX_MS(25));
        CHECK_EQ_UINT(kit.loss[0].stage, stages[i]);
        kit_close();
    }
}

TEST(a_loss_of_the_event_stream_marks_no_sample)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    kit_read(OPEN, 1, 1, MS(1), 0, 0);
    kit_read(AT, 1, 1, MS(10), 5, 0);
    lose(ETWATCH_LOSS_STREAM, 7, MS(1), MS(9));
    (void)kit_cut(MS(10));
    CHECK(complete(1, 0));
    CHECK_EQ_UINT(kit_counts().lost, 7);
    kit_close();
}

TEST(a_loss_reported_after_its_samples_marks_the_next_ones)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    kit_read(OPEN, 1, 1, MS(1), 0, 0);
    (void)kit_cut(MS(20));
    lose(ETWATCH_LOSS_KERNEL_LOG, 1, MS(3), MS(4));
    kit_ran(SPAN, 1, 1, MS(21), 0, MS(40), 19 * NS_PER_MS, 0);
    (void)kit_cut(MS(40));
    CHECK(!complete(1, 0));
    CHECK(complete(1, 1));
    kit_close();
}

TEST(an_incomplete_reading_marks_only_its_process)
{
    kit_open(kit_config());
    for (uint32_t pid = 1; pid <= 2; pid++) {
        kit_seen(pid, "a");
        kit_read(OPEN, pid, pid, MS(1), 0, 0);
        struct ew_reading r = kit_values(AT, pid, pid, MS(10), 5, 0);
        r.incomplete = pid == 1;
        kit_reading(r);
    }
    (void)kit_cut(MS(10));
    CHECK(!complete(1, 0));
    CHECK(complete(2, 0));
    kit_close();
}

TEST(an_incomplete_reading_without_counts_marks_the_next_sample_and_the_exit)
{
    kit_open(kit_config());
    kit_start(1, MS(0), "a");
    struct ew_reading r = kit_values(OPEN, 1, 1, MS(1), 0, 0);
    r.incomplete = true;
    kit_reading(r);
    kit_ran(EW_READING_FINAL, 1, 1, MS(12), 0, MS(14), 2 * NS_PER_MS, 0);
    kit_exit(1, MS(0), MS(14), 0);
    (void)kit_cut(MS(20));
    CHECK_EQ_STR(kit_story(), "S1 s1 X1");
    CHECK(!complete(1, 0));
    CHECK((kit_nth(ETWATCH_TYPE_EXIT, 1, 0)->flags & ETWATCH_SAMPLE_COMPLETE) == 0);
    kit_close();
}

TEST(an_exit_is_complete_only_if_nothing_was_lost_during_its_lifetime)
{
    kit_open(kit_config());
    kit_start(1, MS(1), "before");
    lose(ETWATCH_LOSS_LIFECYCLE, 1, MS(2), MS(3));
    kit_start(2, MS(5), "after");
    kit_exit(1, MS(1), MS(15), 0);
    kit_exit(2, MS(5), MS(15), 0);
    (void)kit_cut(MS(20));
    CHECK((kit_nth(ETWATCH_TYPE_EXIT, 1, 0)->flags & ETWATCH_SAMPLE_COMPLETE) == 0);
    CHECK((kit_nth(ETWATCH_TYPE_EXIT, 2, 0)->flags & ETWATCH_SAMPLE_COMPLETE) != 0);
    kit_close();
}

TEST(losses_beyond_the_limit_are_merged_and_mark_more_samples)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    kit_read(OPEN, 1, 1, MS(0), 0, 0);
    kit_ran(SPAN, 1, 1, MS(0), 0, MS(400), 400 * NS_PER_MS, 0);
    for (int i = 0; i < 40; i += 2)
        lose(ETWATCH_LOSS_KERNEL_LOG, 1, MS(i * 10 + 2), MS(i * 10 + 3));
    (void)kit_cut(MS(400));
    for (size_t n = 0; n < 40; n += 2)
        CHECK(!complete(1, n));
    CHECK(complete(1, 1));
    CHECK_EQ_UINT(kit_counts().lost, 20);
    kit_close();
}

TEST(a_full_process_table_refuses_and_counts_what_it_refuses)
{
    struct ew_sampler_config config = kit_config();
    config.max_processes = 3;
    kit_open(config);
    for (uint32_t pid = 1; pid <= 5; pid++)
        kit_start(pid, MS(pid), "a");
    kit_read(AT, 5, 5, MS(7), NS_PER_MS, 1);
    kit_read(AT, 2, 2, MS(8), NS_PER_MS, 1);
    (void)kit_cut(MS(10));
    CHECK_EQ_STR(kit_story(), "S1 S2 S3 s2");
    CHECK_EQ_UINT(kit_counts().processes, 3);
    CHECK_EQ_UINT(kit_counts().lost, 3); /* two processes and a reading */
    CHECK_EQ_UINT(kit.loss_count, 1);
    CHECK_EQ_UINT(kit.loss[0].stage, ETWATCH_LOSS_TABLE);
    CHECK_EQ_UINT(kit.loss[0].count, 3);
    CHECK_EQ_UINT(kit.loss[0].from_ns, UNIX_MS(4));
    CHECK_EQ_UINT(kit.loss[0].to_ns, UNIX_MS(7));
    CHECK(complete(2, 0));
    kit_exit(1, MS(1), MS(12), 0);
    (void)kit_cut(MS(20));
    kit_start(9, MS(21), "b");
    (void)kit_cut(MS(30));
    CHECK_EQ_STR(kit_story(), "S9");
    kit_close();
}

TEST(the_last_reading_of_a_process_whose_exit_was_refused_creates_nothing)
{
    struct ew_sampler_config config = kit_config();
    config.max_processes = 1;
    kit_open(config);
    kit_start(1, MS(1), "a");
    kit_start(2, MS(2), "b"); /* no room: neither its start nor its exit is taken */
    kit_exit(2, MS(2), MS(5), 0);
    kit_exit(1, MS(1), MS(6), 0);
    (void)kit_cut(MS(10));
    CHECK_EQ_STR(kit_story(), "S1 s1 X1");
    CHECK_EQ_UINT(kit_counts().processes, 0);
    /* The leader has ended; another thread leaves the CPU after the exit was reported. */
    struct ew_reading last = kit_values(EW_READING_FINAL, 2, 3, MS(12), 5 * NS_PER_MS, 1);
    last.start_ns = MS(3);
    kit_reading(last);
    (void)kit_cut(MS(20));
    CHECK_EQ_UINT(kit_counts().processes, 0);
    CHECK_EQ_STR(kit_story(), "");
    CHECK_EQ_UINT(kit_counts().late, 1);
    kit_start(2, MS(21), "c"); /* the id is used again */
    (void)kit_cut(MS(30));
    CHECK_EQ_STR(kit_story(), "S2");
    kit_close();
}

TEST(a_thread_table_full_of_busy_threads_marks_the_process)
{
    struct ew_sampler_config config = kit_config();
    config.max_threads = 2;
    kit_open(config);
    kit_seen(1, "a");
    for (uint32_t tid = 1; tid <= 3; tid++)
        kit_read(OPEN, 1, tid, MS(1), 0, 0);
    for (uint32_t tid = 1; tid <= 3; tid++)
        kit_read(AT, 1, tid, MS(10), NS_PER_MS, 0);
    (void)kit_cut(MS(10));
    CHECK_EQ_STR(kit_story(), "S1 s1");
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)->cpu_ns, 2 * NS_PER_MS);
    CHECK(!complete(1, 0));
    CHECK_EQ_UINT(kit_counts().lost, 2);
    CHECK_EQ_UINT(kit_counts().threads, 2);
    kit_close();
}

TEST(idle_threads_are_evicted_and_return_without_loss)
{
    struct ew_sampler_config config = kit_config();
    config.max_threads = 2;
    kit_open(config);
    kit_seen(1, "a");
    uint64_t cpu_ns[6] = {0}, sum = 0;
    for (uint32_t i = 0; i < 60; i++) {
        uint32_t tid = i % 6; /* each is idle for five intervals between its runs */
        kit_read(OPEN, 1, 10 + tid, MS(i * 10 + 1), cpu_ns[tid], 0);
        cpu_ns[tid] += NS_PER_MS;
        kit_read(AT, 1, 10 + tid, MS(i * 10 + 10), cpu_ns[tid], 0);
        (void)kit_cut(MS(i * 10 + 10));
        sum += kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)->cpu_ns;
        CHECK(complete(1, 0));
        CHECK(kit_counts().threads <= 2);
    }
    CHECK_EQ_UINT(sum, 60 * NS_PER_MS);
    CHECK_EQ_UINT(kit_counts().lost, 0);
    kit_close();
}

TEST(threads_that_are_idle_for_long_are_dropped)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    for (uint32_t tid = 1; tid <= 100; tid++)
        kit_read(OPEN, 1, tid, MS(1), 0, 0);
    for (int i = 1; i <= 400; i++)
        (void)kit_cut(MS(i * 10));
    CHECK_EQ_UINT(kit_counts().threads, 0);
    kit_close();
}

TEST(cells_beyond_the_limit_are_folded_and_the_sum_is_exact)
{
    struct ew_sampler_config config = kit_config();
    config.interval_ns = NS_PER_MS;
    kit_open(config);
    for (uint32_t pid = 1; pid <= 8; pid++) {
        kit_seen(pid, "a");
        kit_read(OPEN, pid, pid, MS(0), 0, 0);
        kit_ran(SPAN, pid, pid, MS(0), 0, MS(9000), 9000 * NS_PER_MS, 3);
    }
    kit.count = 0;
    (void)ew_sampler_deliver(kit.sampler, MS(9000));
    CHECK(kit_counts().late > 0);
    CHECK(kit_counts().samples <= 32768 + 8);
    struct etwatch_sample total;
    kit_exit(8, EPOCH - 1000 * NS_PER_MS, MS(9000), 0);
    CHECK_EQ_INT(ew_sampler_snapshot(kit.sampler, 7, &total, NULL, 0), 0);
    kit_close();
}

/* One cut of a busy machine in a steady state: 20 processes with two threads each, at 1000 Hz. */
static uint64_t steady_ms;

static void steady_cut(void *ctx)
{
    (void)ctx;
    for (uint32_t pid = 1; pid <= 20; pid++) {
        for (uint32_t tid = pid * 100; tid < pid * 100 + 2; tid++) {
            for (uint64_t n = 0; n < 100; n++)
                kit_read(OPEN, pid, tid, MS(steady_ms + n), (steady_ms + n) * 1000, n);
            struct ew_reading r =
                kit_values(AT, pid, tid, MS(steady_ms + 100), (steady_ms + 100) * 1000, 0);
            r.gauge_has = EW_HAS_G(rss_bytes);
            r.thread_name = "worker";
            kit_reading(r);
        }
    }
    steady_ms += 100;
    (void)kit_cut(MS(steady_ms));
}

TEST(a_steady_state_allocates_nothing)
{
    struct ew_sampler_config config = kit_config();
    config.interval_ns = NS_PER_MS;
    config.threads = true;
    config.aggregate = true;
    kit_open(config);
    steady_ms = 0;
    for (uint32_t pid = 1; pid <= 1000; pid++)
        kit_seen(pid, "a");
    for (int i = 0; i < 5; i++)
        steady_cut(NULL);
    for (int i = 0; i < 20; i++)
        CHECK_EQ_UINT(test_count_allocations(steady_cut, NULL), 0);
    CHECK_EQ_UINT(kit_counts().samples, 25u * 20 * 100 * 3);
    kit_close();
}

/* Every operation once, with each allocation failing in turn. */
static int everything(void *ctx)
{
    (void)ctx;
    struct ew_sampler_config config = kit_config();
    config.threads = true;
    config.aggregate = true;
    memset(&kit, 0, sizeof kit);
    int failure = ew_sampler_new(&config, &kit.sampler);
    if (failure < 0)
        return failure;
    ew_sampler_facts(kit.sampler, &kit.facts);
    for (uint64_t i = 0; i < 12; i++) {
        for (uint32_t pid = 1; pid <= 70; pid++) {
            char name[16];
            (void)snprintf(name, sizeof name, "n%u", pid % 7);
            if (i == 0)
                kit_start(pid, MS(pid * 0.1), name);
            kit_ran(SPAN, pid, pid, MS(i * 100 + 1), i * 50 * NS_PER_MS, MS(i * 100 + 51),
                    (i + 1) * 50 * NS_PER_MS, i);
            struct ew_reading r = kit_values(OPEN, pid, pid + 100, MS(i * 100 + 60), i * 5, i);
            r.thread_name = name;
            kit_reading(r);
            if (i == 8 && pid % 3 == 0)
                kit_start(pid, MS(850), "again");
            if (i == 10 && pid % 5 == 0)
                kit_exit(pid, pid % 3 == 0 ? MS(850) : MS(pid * 0.1), MS(1080), 0);
        }
        int r = kit_cut(MS(i * 100 + 100));
        failure = r < 0 ? r : failure;
    }
    int r = ew_sampler_finish(kit.sampler, MS(1300));
    failure = r < 0 ? r : failure;
    kit_close();
    return failure;
}

TEST(every_failed_allocation_is_handled)
{
    TORTURE(everything, NULL);
}
