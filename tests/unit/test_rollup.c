/* SPDX-License-Identifier: MIT */
/* Sums for display: identity, totals at exit, blocks, the maximum, and that nothing is lost. */
#include "sample_maker.h"
#include "sink/rollup.h"
#include "test.h"

static void add(struct ew_rollup *rollup, const struct etwatch_sample *sample)
{
    CHECK_EQ_INT(ew_rollup_add(rollup, sample), 0);
}

static struct etwatch_sample busy(uint32_t pid, uint64_t at_ms, uint64_t cpu_ns)
{
    struct etwatch_sample sample = make_sample(ETWATCH_TYPE_SAMPLE, pid, "busy", at_ms);
    set_cpu(&sample, cpu_ns);
    return sample;
}

TEST(counters_add_up_and_gauges_are_the_latest)
{
    struct ew_rollup rollup;
    ew_rollup_init(&rollup, 16, false);
    struct etwatch_sample sample = busy(1, 100, 1000);
    set_memory(&sample, 500);
    add(&rollup, &sample);
    sample = busy(1, 200, 2000);
    set_memory(&sample, 400);
    add(&rollup, &sample);
    CHECK_EQ_UINT(rollup.count, 1);
    CHECK_EQ_UINT(rollup.rows[0].sum.cpu_ns, 3000);
    CHECK_EQ_UINT(rollup.rows[0].sum.rss_bytes, 400);
    CHECK_EQ_UINT(rollup.rows[0].sum.faults_minor, 82);
    CHECK_NEAR(ew_rollup_percent(&rollup.rows[0], 30000), 10.0, 1e-9);
    ew_rollup_done(&rollup);
}

TEST(a_reused_pid_is_another_row)
{
    struct ew_rollup rollup;
    ew_rollup_init(&rollup, 16, false);
    struct etwatch_sample sample = busy(1, 100, 1000);
    add(&rollup, &sample);
    sample.start_ns++;
    add(&rollup, &sample);
    CHECK_EQ_UINT(rollup.count, 2);
    CHECK_EQ_UINT(rollup.rows[0].sum.cpu_ns, 1000);
    ew_rollup_done(&rollup);
}

TEST(a_value_that_was_not_measured_stays_unknown)
{
    struct ew_rollup rollup;
    ew_rollup_init(&rollup, 16, false);
    struct etwatch_sample sample = make_sample(ETWATCH_TYPE_SAMPLE, 1, "a", 100);
    add(&rollup, &sample);
    CHECK(etwatch_metric_set_is_empty(&rollup.rows[0].sum.has));
    CHECK(ew_rollup_percent(&rollup.rows[0], 1000) < 0);
    ew_rollup_done(&rollup);
}

TEST(totals_at_exit_replace_the_sums_only_if_requested)
{
    for (int totals = 0; totals < 2; totals++) {
        struct ew_rollup rollup;
        ew_rollup_init(&rollup, 16, totals != 0);
        struct etwatch_sample sample = busy(1, 100, 1000);
        add(&rollup, &sample);
        sample = make_sample(ETWATCH_TYPE_EXIT, 1, "busy", 200);
        sample.dt_ns = 5 * SECOND_NS;
        set_cpu(&sample, 7777);
        sample.exit_code = 4;
        etwatch_metric_set_add(&sample.has, ETWATCH_M_exit_code);
        add(&rollup, &sample);
        CHECK_EQ_UINT(rollup.rows[0].sum.cpu_ns, totals ? 7777 : 1000);
        CHECK_EQ_UINT(rollup.rows[0].sum.dt_ns, totals ? 5 * SECOND_NS : 100000000);
        CHECK_EQ_INT(rollup.rows[0].sum.exit_code, 4);
        CHECK(rollup.rows[0].exited);
        ew_rollup_done(&rollup);
    }
}

TEST(the_counters_in_a_start_are_not_added)
{
    struct ew_rollup rollup;
    ew_rollup_init(&rollup, 16, false);
    struct etwatch_sample sample = make_sample(ETWATCH_TYPE_START, 1, "old", 0);
    set_cpu(&sample, 99999);
    set_memory(&sample, 500);
    add(&rollup, &sample);
    CHECK(!etwatch_sample_has(&rollup.rows[0].sum, ETWATCH_M_cpu_ns));
    CHECK_EQ_UINT(rollup.rows[0].sum.rss_bytes, 500);
    CHECK(!rollup.rows[0].active);
    ew_rollup_done(&rollup);
}

TEST(the_next_block_begins_at_zero_without_what_exited)
{
    struct ew_rollup rollup;
    ew_rollup_init(&rollup, 16, false);
    struct etwatch_sample sample = busy(1, 100, 1000);
    set_memory(&sample, 500);
    add(&rollup, &sample);
    sample = busy(2, 100, 2000);
    add(&rollup, &sample);
    sample.type = ETWATCH_TYPE_EXIT;
    add(&rollup, &sample);
    ew_rollup_next(&rollup);
    CHECK_EQ_UINT(rollup.count, 1);
    CHECK_EQ_UINT(rollup.rows[0].sum.cpu_ns, 0);
    CHECK_EQ_UINT(rollup.rows[0].sum.rss_bytes, 500);
    CHECK_EQ_UINT(ew_rollup_sort(&rollup, ETWATCH_M_cpu_ns, true), 0);
    CHECK_EQ_UINT(ew_rollup_sort(&rollup, ETWATCH_M_cpu_ns, false), 1);
    ew_rollup_done(&rollup);
}

TEST(the_busiest_process_is_first_followed_by_its_threads)
{
    struct ew_rollup rollup;
    ew_rollup_init(&rollup, 16, false);
    struct etwatch_sample sample = busy(1, 100, 10);
    add(&rollup, &sample);
    sample = busy(2, 100, 90);
    add(&rollup, &sample);
    sample.type = ETWATCH_TYPE_THREAD;
    sample.tid = 21;
    sample.cpu_ns = 30;
    add(&rollup, &sample);
    sample.tid = 22;
    sample.cpu_ns = 60;
    add(&rollup, &sample);
    CHECK_EQ_UINT(ew_rollup_sort(&rollup, ETWATCH_M_cpu_ns, true), 4);
    CHECK_EQ_UINT(ew_rollup_sorted(&rollup, 0)->sum.pid, 2);
    CHECK_EQ_UINT(ew_rollup_sorted(&rollup, 1)->sum.tid, 22);
    CHECK_EQ_UINT(ew_rollup_sorted(&rollup, 2)->sum.tid, 21);
    CHECK_EQ_UINT(ew_rollup_sorted(&rollup, 3)->sum.pid, 1);
    ew_rollup_done(&rollup);
}

TEST(ten_thousand_short_processes_fit_and_none_of_their_time_is_lost)
{
    struct ew_rollup rollup;
    uint64_t sum = 0;
    ew_rollup_init(&rollup, 256, true);
    for (uint32_t pid = 1; pid <= 10000; pid++) {
        struct etwatch_sample sample = busy(pid, pid, pid * 10);
        add(&rollup, &sample);
        sample.type = ETWATCH_TYPE_EXIT;
        add(&rollup, &sample);
    }
    CHECK(rollup.count <= 256);
    for (uint32_t i = 0; i < rollup.count; i++)
        sum += rollup.rows[i].sum.cpu_ns;
    CHECK_EQ_UINT(rollup.count + rollup.rest_count, 10000);
    CHECK_EQ_UINT(sum + rollup.rest.cpu_ns, (uint64_t)10000 * 10001 / 2 * 10);
    CHECK_EQ_UINT(ew_rollup_sort(&rollup, ETWATCH_M_cpu_ns, false), rollup.count);
    CHECK_EQ_UINT(ew_rollup_sorted(&rollup, 0)->sum.pid, 10000);
    ew_rollup_done(&rollup);
}

TEST(live_processes_beyond_the_maximum_are_summed_in_the_rest)
{
    struct ew_rollup rollup;
    uint64_t sum = 0;
    ew_rollup_init(&rollup, 16, false);
    for (uint32_t pid = 1; pid <= 100; pid++) {
        struct etwatch_sample sample = make_sample(ETWATCH_TYPE_START, pid, "a", 0);
        add(&rollup, &sample);
        sample = busy(pid, 100, 10);
        add(&rollup, &sample);
    }
    CHECK_EQ_UINT(rollup.count, 16);
    CHECK_EQ_UINT(rollup.rest_count, 84);
    for (uint32_t i = 0; i < rollup.count; i++)
        sum += rollup.rows[i].sum.cpu_ns;
    CHECK_EQ_UINT(sum + rollup.rest.cpu_ns, 1000);
    ew_rollup_done(&rollup);
}

TEST(many_threads_leave_room_for_processes)
{
    struct ew_rollup rollup;
    ew_rollup_init(&rollup, 64, true);
    struct etwatch_sample sample = busy(1, 100, 10);
    add(&rollup, &sample);
    sample.type = ETWATCH_TYPE_THREAD;
    for (sample.tid = 2; sample.tid < 5000; sample.tid++)
        add(&rollup, &sample);
    CHECK(rollup.threads_unlisted);
    for (uint32_t pid = 5000; pid < 5010; pid++) {
        sample = busy(pid, 200, 10);
        add(&rollup, &sample);
    }
    CHECK_EQ_UINT(rollup.rest_count, 0);
    CHECK_EQ_UINT(rollup.count, 48 + 11);
    ew_rollup_done(&rollup);
}

static int add_many(void *ctx)
{
    struct ew_rollup rollup;
    int rc = 0;
    (void)ctx;
    ew_rollup_init(&rollup, 64, true);
    for (uint32_t pid = 1; pid <= 200 && rc == 0; pid++) {
        struct etwatch_sample sample = busy(pid, 100, 10);
        rc = ew_rollup_add(&rollup, &sample);
        sample.type = ETWATCH_TYPE_EXIT;
        if (rc == 0)
            rc = ew_rollup_add(&rollup, &sample);
    }
    if (rc == 0 && ew_rollup_sort(&rollup, ETWATCH_M_cpu_ns, false) == 0)
        rc = rollup.error;
    ew_rollup_done(&rollup);
    return rc;
}

TEST(running_out_of_memory_is_reported)
{
    TORTURE(add_many, NULL);
}

TEST(the_public_calls_show_sorted_rows_and_the_sums)
{
    struct etwatch_rollup *rollup = NULL;
    struct etwatch_rollup_row row = {.size = sizeof row};
    struct etwatch_rollup_info info = {.size = sizeof info};
    CHECK_EQ_INT(etwatch_rollup_new(NULL, &rollup), 0);
    for (uint32_t pid = 1; pid <= 3; pid++) {
        struct etwatch_sample sample = busy(pid, 100, pid * 1000);
        CHECK_EQ_INT(etwatch_rollup_add(rollup, &sample), 0);
    }
    CHECK_EQ_INT(etwatch_rollup_row(rollup, 0, &row), ETWATCH_EINVAL); /* not sorted yet */
    CHECK_EQ_INT(etwatch_rollup_sort(rollup, ETWATCH_M_cpu_ns, 0), 3);
    CHECK_EQ_INT(etwatch_rollup_row(rollup, 0, &row), 0);
    CHECK_EQ_UINT(row.sum->pid, 3);
    CHECK_EQ_UINT(row.flags, ETWATCH_ROLLUP_ACTIVE);
    CHECK_EQ_INT(etwatch_rollup_row(rollup, 3, &row), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_rollup_info(rollup, &info), 0);
    CHECK_EQ_UINT(info.cpu_ns, 6000);
    CHECK_EQ_UINT(info.active, 3);
    CHECK_EQ_INT(etwatch_rollup_next(rollup), 0);
    CHECK_EQ_INT(etwatch_rollup_sort(rollup, ETWATCH_M_cpu_ns, ETWATCH_ROLLUP_ACTIVE), 0);
    CHECK_EQ_INT(etwatch_rollup_sort(rollup, ETWATCH_M_cpu_percent, 0), ETWATCH_EINVAL);
    struct etwatch_sample unset = {0};
    CHECK_EQ_INT(etwatch_rollup_add(rollup, &unset), ETWATCH_EINVAL);
    etwatch_rollup_free(rollup);
    etwatch_rollup_free(NULL);
}
