/* SPDX-License-Identifier: MIT */
/*
 * Every process of a stream with its totals and distributions; memory is bounded, and dropped
 * processes are counted.
 */
#include <stdio.h>
#include <string.h>

#include <etwatch/summary.h>

#include "batches.h"
#include "metric_kit.h"
#include "sampler/aggregate.h"
#include "sampler/sparse_histogram.h"
#include "test.h"

#define MS UINT64_C(1000000)

struct reported {
    uint32_t count;
    struct etwatch_summary_process process[8];
    struct etwatch_sample sample[8];
    struct etwatch_aggregate metrics[8][ETWATCH_METRIC_COUNT];
    struct etwatch_aggregate sums[8][ETWATCH_SUM_COUNT];
    char name[8][32];
};

static void on_process(void *ctx, const struct etwatch_summary_process *process)
{
    struct reported *reported = ctx;
    uint32_t i = reported->count++;
    if (i >= 8)
        return;
    reported->process[i] = *process;
    reported->sample[i] = *process->sample;
    memcpy(reported->metrics[i], process->metrics, sizeof reported->metrics[i]);
    memcpy(reported->sums[i], process->sums, sizeof reported->sums[i]);
    (void)snprintf(reported->name[i], sizeof reported->name[i], "%s",
                   process->sample->name == NULL ? "" : process->sample->name);
}

static struct reported *read_all(struct etwatch_summary *summary, uint32_t pid)
{
    static struct reported reported;
    memset(&reported, 0, sizeof reported);
    int count = etwatch_summary_for_each(summary, pid, on_process, &reported);
    CHECK_EQ_INT(count, reported.count);
    return &reported;
}

static struct etwatch_sample make(uint32_t type, uint32_t pid, uint64_t t_ns, uint64_t dt_ns)
{
    return (struct etwatch_sample){.size = sizeof(struct etwatch_sample),
                                   .type = type,
                                   .source = ETWATCH_SOURCE_EBPF,
                                   .flags = ETWATCH_SAMPLE_COMPLETE,
                                   .pid = pid,
                                   .start_ns = pid * 1000 * MS,
                                   .t_ns = t_ns,
                                   .dt_ns = dt_ns,
                                   .name = "one"};
}

static struct etwatch_sample busy(uint32_t pid, uint64_t t_ns, double percent)
{
    struct etwatch_sample sample = make(ETWATCH_TYPE_SAMPLE, pid, t_ns, 10 * MS);
    sample.has = EW_METRICS(ETWATCH_M_cpu_percent, ETWATCH_M_cpu_ns, ETWATCH_M_rss_bytes);
    sample.cpu_percent = percent;
    sample.cpu_ns = (uint64_t)(percent * 100000);
    sample.rss_bytes = 4096;
    return sample;
}

static void add(struct etwatch_summary *summary, struct etwatch_sample sample)
{
    summary_add(summary, &sample, 1);
}

TEST(the_statistics_of_a_sum_are_those_of_the_sums_of_its_intervals)
{
    struct etwatch_summary *summary = NULL;
    CHECK_EQ_INT(etwatch_summary_new(NULL, &summary), 0);
    static const uint64_t waits[] = {9, 0, 1}, preempted[] = {0, 9, 1};
    for (uint32_t i = 0; i < 3; i++) {
        struct etwatch_sample sample = busy(1, 1000 * MS + i * 10 * MS, 50);
        etwatch_metric_set_add(&sample.has, ETWATCH_M_switches_voluntary);
        sample.switches_voluntary = waits[i];
        if (i < 2) /* unknown in the last */
            etwatch_metric_set_add(&sample.has, ETWATCH_M_switches_involuntary);
        sample.switches_involuntary = preempted[i];
        struct etwatch_samples batch = etwatch_samples_of(&sample, 1);
        etwatch_summary_add(summary, &batch);
    }
    struct reported *reported = read_all(summary, 1);
    const struct etwatch_aggregate *sum = &reported->sums[0][ETWATCH_SUM_SWITCHES];
    CHECK_EQ_UINT(reported->process[0].sum_count, ETWATCH_SUM_COUNT);
    CHECK_EQ_UINT(sum->count, 2);
    CHECK_NEAR(sum->avg, 9, 1e-9);
    CHECK_NEAR(sum->max, 9, 1e-9); /* not 18 */
    CHECK_EQ_UINT(reported->sums[0][ETWATCH_SUM_FAULTS].count, 0);
    etwatch_summary_free(summary);
}

TEST(counters_are_added_gauges_are_the_latest)
{
    struct etwatch_summary *summary;
    CHECK_EQ_INT(etwatch_summary_new(NULL, &summary), 0);
    add(summary, make(ETWATCH_TYPE_START, 7, 1000 * MS, 0));
    add(summary, busy(7, 1010 * MS, 50));
    struct etwatch_sample second = busy(7, 1020 * MS, 100);
    second.rss_bytes = 8192;
    second.name = "two";
    add(summary, second);
    struct reported *reported = read_all(summary, 0);
    CHECK_EQ_UINT(reported->count, 1);
    CHECK_EQ_UINT(reported->sample[0].cpu_ns, 15000000);
    CHECK_EQ_UINT(reported->sample[0].rss_bytes, 8192);
    CHECK_METRICS(reported->sample[0].has, ETWATCH_M_cpu_percent, ETWATCH_M_cpu_ns,
                  ETWATCH_M_rss_bytes);
    CHECK_EQ_STR(reported->name[0], "two");
    CHECK_EQ_UINT(reported->process[0].samples, 2);
    CHECK_EQ_UINT(reported->process[0].flags, 0);
    CHECK_EQ_UINT(reported->process[0].first_ns, 1000 * MS);
    CHECK_EQ_UINT(reported->process[0].last_ns, 1020 * MS);
    CHECK_NEAR(reported->metrics[0][ETWATCH_M_cpu_percent].avg, 75, 1e-9);
    CHECK_NEAR(reported->metrics[0][ETWATCH_M_cpu_percent].max, 100, 0);
    CHECK_EQ_UINT(reported->metrics[0][ETWATCH_M_io_read_bytes].count, 0);
    etwatch_summary_free(summary);
}

/*
 * Values are buffered: whenever the summary is read, none may be missing and none may count twice.
 */
TEST(a_distribution_is_complete_at_any_moment)
{
    struct etwatch_summary *summary;
    struct ew_aggregate want[2];
    struct etwatch_aggregate result;
    CHECK_EQ_INT(etwatch_summary_new(NULL, &summary), 0);
    ew_aggregate_init(&want[0]);
    ew_aggregate_init(&want[1]);
    for (uint32_t i = 0; i < 40; i++) {
        struct etwatch_sample sample = busy(7, (i + 1) * 10 * MS, i % 3 * 25.0);
        sample.rss_bytes = i / 5 * 4096;
        if (i % 4 == 0)
            etwatch_metric_set_remove(&sample.has, ETWATCH_M_rss_bytes);
        else
            CHECK_EQ_INT(ew_aggregate_add(&want[1], (double)sample.rss_bytes), 0);
        CHECK_EQ_INT(ew_aggregate_add(&want[0], sample.cpu_percent), 0);
        add(summary, sample);
        if (i == 39)
            add(summary, make(ETWATCH_TYPE_EXIT, 7, 400 * MS, 400 * MS));
        if (i % 3 != 0 && i != 39)
            continue; /* several are buffered at that point */
        struct reported *reported = read_all(summary, 7);
        ew_aggregate_result(&want[0], &result);
        CHECK_EQ_MEM(&reported->metrics[0][ETWATCH_M_cpu_percent], &result, sizeof result);
        ew_aggregate_result(&want[1], &result);
        CHECK_EQ_MEM(&reported->metrics[0][ETWATCH_M_rss_bytes], &result, sizeof result);
    }
    ew_aggregate_done(&want[0]);
    ew_aggregate_done(&want[1]);
    etwatch_summary_free(summary);
}

TEST(intervals_without_a_sample_count_as_zero_for_cpu_and_not_for_memory)
{
    struct etwatch_summary *summary;
    CHECK_EQ_INT(etwatch_summary_new(NULL, &summary), 0);
    add(summary, make(ETWATCH_TYPE_START, 7, 0, 0));
    add(summary, busy(7, 10 * MS, 80));
    add(summary, busy(8, 1000 * MS, 10)); /* another process: the stream goes on */
    struct reported *reported = read_all(summary, 7);
    CHECK_EQ_UINT(reported->count, 1);
    CHECK_EQ_UINT(reported->process[0].last_ns, 1000 * MS);
    CHECK_EQ_UINT(reported->metrics[0][ETWATCH_M_cpu_percent].count, 100);
    CHECK_NEAR(reported->metrics[0][ETWATCH_M_cpu_percent].avg, 0.8, 1e-9);
    CHECK_NEAR(reported->metrics[0][ETWATCH_M_cpu_percent].p99, 0, 0);
    CHECK_EQ_UINT(reported->metrics[0][ETWATCH_M_rss_bytes].count, 1);
    CHECK_NEAR(reported->metrics[0][ETWATCH_M_rss_bytes].avg, 4096, 0);
    etwatch_summary_free(summary);
}

TEST(an_exit_sets_the_totals_of_the_lifetime)
{
    struct etwatch_summary *summary;
    CHECK_EQ_INT(etwatch_summary_new(NULL, &summary), 0);
    add(summary, busy(7, 10 * MS, 50));
    struct etwatch_sample end = make(ETWATCH_TYPE_EXIT, 7, 20 * MS, 500 * MS);
    end.has = EW_METRICS(ETWATCH_M_cpu_ns, ETWATCH_M_exit_ns, ETWATCH_M_exit_code);
    end.cpu_ns = 99 * MS;
    end.exit_ns = 20 * MS;
    end.exit_code = 3;
    add(summary, end);
    add(summary, busy(8, 1000 * MS, 50));
    struct reported *reported = read_all(summary, 7);
    CHECK_EQ_UINT(reported->process[0].flags, ETWATCH_SUMMARY_ENDED);
    CHECK_EQ_UINT(reported->process[0].last_ns, 20 * MS);
    CHECK_EQ_UINT(reported->sample[0].type, ETWATCH_TYPE_EXIT);
    CHECK_EQ_UINT(reported->sample[0].cpu_ns, 99 * MS);
    CHECK_EQ_INT(reported->sample[0].exit_code, 3);
    CHECK_EQ_UINT(reported->metrics[0][ETWATCH_M_cpu_percent].count, 2);
    etwatch_summary_free(summary);
}

static void count_them(void *ctx, const struct etwatch_samples *batch)
{
    size_t *sum = ctx;
    *sum += batch->count * etwatch_sample_at(batch, 0)->pid;
}

TEST(another_consumer_may_receive_the_same_samples)
{
    size_t sum = 0;
    struct etwatch_summary_options options = {
        .size = sizeof options, .on_samples = count_them, .ctx = &sum};
    struct etwatch_summary *summary;
    CHECK_EQ_INT(etwatch_summary_new(&options, &summary), 0);
    struct etwatch_sample two[] = {busy(7, 10 * MS, 50), busy(7, 20 * MS, 50)};
    summary_add(summary, two, 2);
    CHECK_EQ_UINT(sum, 14);
    etwatch_summary_free(summary);
}

TEST(a_reused_pid_is_another_process)
{
    struct etwatch_summary *summary;
    CHECK_EQ_INT(etwatch_summary_new(NULL, &summary), 0);
    add(summary, busy(7, 10 * MS, 50));
    struct etwatch_sample other = busy(7, 20 * MS, 60);
    other.start_ns++;
    add(summary, other);
    CHECK_EQ_UINT(read_all(summary, 7)->count, 2);
    CHECK_EQ_UINT(read_all(summary, 9)->count, 0);
    etwatch_summary_free(summary);
}

TEST(a_full_summary_drops_the_first_exited_and_counts_them)
{
    struct etwatch_summary_options options = {.size = sizeof options, .max_processes = 3};
    struct etwatch_summary *summary;
    CHECK_EQ_INT(etwatch_summary_new(&options, &summary), 0);
    for (uint32_t pid = 1; pid <= 3; pid++)
        add(summary, busy(pid, pid * 10 * MS, 50));
    add(summary, make(ETWATCH_TYPE_EXIT, 2, 40 * MS, 10 * MS));
    add(summary, busy(4, 50 * MS, 50)); /* 2 has exited: it is dropped */
    struct reported *reported = read_all(summary, 0);
    CHECK_EQ_UINT(reported->count, 3);
    CHECK_EQ_UINT(reported->sample[0].pid, 1);
    CHECK_EQ_UINT(reported->sample[1].pid, 3);
    CHECK_EQ_UINT(reported->sample[2].pid, 4);
    add(summary, busy(5, 60 * MS, 50)); /* none has exited: the first one seen is dropped */
    reported = read_all(summary, 0);
    CHECK_EQ_UINT(reported->count, 3);
    CHECK_EQ_UINT(reported->sample[0].pid, 3);
    CHECK_EQ_UINT(etwatch_summary_dropped(summary), 2);
    etwatch_summary_free(summary);
}

TEST(threads_and_invalid_values_are_excluded)
{
    struct etwatch_summary_options small = {.size = 4};
    struct etwatch_summary *summary = NULL;
    CHECK_EQ_INT(etwatch_summary_new(&small, &summary), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_summary_new(NULL, NULL), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_summary_new(NULL, &summary), 0);
    struct etwatch_sample thread = make(ETWATCH_TYPE_THREAD, 7, 10 * MS, 10 * MS);
    add(summary, thread);
    summary_add(summary, NULL, 1);
    summary_add(NULL, &thread, 1);
    CHECK_EQ_INT(etwatch_summary_for_each(summary, 0, NULL, NULL), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_summary_for_each(NULL, 0, on_process, NULL), ETWATCH_EINVAL);
    CHECK_EQ_UINT(read_all(summary, 0)->count, 0);
    CHECK_EQ_UINT(etwatch_summary_dropped(NULL), 0);
    etwatch_summary_free(summary);
    etwatch_summary_free(NULL);
}

static void add_cycles(struct etwatch_summary *summary, uint32_t tid, uint64_t cycles)
{
    struct etwatch_sample thread = make(ETWATCH_TYPE_THREAD, 7, 10 * MS, 10 * MS);
    thread.tid = tid;
    thread.cycles = cycles;
    thread.has = EW_METRICS(ETWATCH_M_cycles);
    add(summary, thread);
}

static void check_cycles(void *ctx, const struct etwatch_summary_process *process)
{
    (void)ctx;
    CHECK_EQ_UINT(process->thread_count, 3);
    CHECK_EQ_UINT(process->threads[0].tid, 7);
    CHECK_EQ_UINT(process->threads[0].cycles, 30);
    CHECK_EQ_UINT(process->threads[1].tid, 8);
    CHECK_EQ_UINT(process->threads[1].cycles, 5);
    CHECK_EQ_UINT(process->threads[2].tid, 9);
    CHECK_EQ_UINT(process->threads[2].cycles, 0);
}

TEST(cycles_are_reported_by_thread)
{
    struct etwatch_summary *summary;
    CHECK_EQ_INT(etwatch_summary_new(NULL, &summary), 0);
    add(summary, make(ETWATCH_TYPE_START, 7, 0, 0));
    add_cycles(summary, 9, 0);
    add_cycles(summary, 7, 10);
    add_cycles(summary, 8, 5);
    add_cycles(summary, 7, 20);
    CHECK_EQ_INT(etwatch_summary_for_each(summary, 7, check_cycles, NULL), 1);
    CHECK_EQ_UINT(etwatch_summary_dropped(summary), 0);
    for (uint32_t tid = 10; tid < 4110; tid++)
        add_cycles(summary, tid, 1);
    CHECK_EQ_UINT(etwatch_summary_dropped(summary), 7);
    etwatch_summary_free(summary);
}

/* The two histograms have one scale: for any values they give the same results. */
TEST(a_distribution_agrees_with_an_aggregate)
{
    struct ew_aggregate a;
    struct ew_sparse_histogram s = {0};
    struct etwatch_aggregate want, got;
    uint64_t seed = 1;
    ew_aggregate_init(&a);
    for (int i = 0; i < 5000; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        double value = i % 7 == 0 ? 0 : (double)(seed >> (11 + i % 50)) / 1000.0;
        CHECK_EQ_INT(ew_aggregate_add(&a, value), 0);
        CHECK_EQ_INT(ew_sparse_histogram_add(&s, value, 1), 0);
    }
    ew_aggregate_add_zeros(&a, 321);
    ew_aggregate_result(&a, &want);
    ew_sparse_histogram_result(&s, 321, &got);
    CHECK_EQ_MEM(&got, &want, sizeof got);
    CHECK_EQ_INT(ew_sparse_histogram_add(&s, 0.0 / 0.0, 1), ETWATCH_EINVAL);
    CHECK_EQ_INT(ew_sparse_histogram_add(&s, 1e308 * 10, 1), 0);
    ew_sparse_histogram_done(&s);
    ew_aggregate_done(&a);
}

static int keep_some(void *ctx)
{
    (void)ctx;
    struct etwatch_summary *summary;
    int error = etwatch_summary_new(NULL, &summary);
    if (error != 0)
        return error;
    for (uint32_t i = 0; i < 20; i++) {
        struct etwatch_sample sample = busy(i % 3 + 1, (i + 1) * 10 * MS, i * 5);
        sample.user = i % 2 == 0 ? "root" : "me";
        summary_add(summary, &sample, 1);
    }
    (void)read_all(summary, 0);
    error = etwatch_summary_dropped(summary) > 0 ? ETWATCH_ENOMEM : 0;
    etwatch_summary_free(summary);
    return error;
}

TEST(every_failed_allocation_is_handled)
{
    TORTURE(keep_some, NULL);
}
