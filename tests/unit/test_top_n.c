/* SPDX-License-Identifier: MIT */
/*
 * The N busiest processes of each interval unchanged; the others summed in one sample, nothing
 * lost.
 */
#include <string.h>

#include "metric_kit.h"
#include "monitor/monitor.h"
#include "test.h"

struct seen {
    struct etwatch_sample samples[64];
    uint32_t count;
};

static void deliver(void *ctx, const struct etwatch_sample *samples, size_t count)
{
    struct seen *seen = ctx;
    for (size_t i = 0; i < count; i++) {
        CHECK(seen->count < 64);
        seen->samples[seen->count++] = samples[i];
    }
}

static struct etwatch_sample sample_of(uint32_t type, uint32_t pid, uint64_t t_ns, uint64_t cpu_ns)
{
    return (struct etwatch_sample){
        .size = sizeof(struct etwatch_sample),
        .type = type,
        .flags = ETWATCH_SAMPLE_COMPLETE,
        .pid = pid,
        .start_ns = 1,
        .t_ns = t_ns,
        .dt_ns = 100,
        .has = EW_METRIC_SET(ETWATCH_M_cpu_ns, ETWATCH_M_cpu_percent, ETWATCH_M_faults_minor,
                             ETWATCH_M_rss_bytes),
        .cpu_ns = cpu_ns,
        .cpu_percent = (double)cpu_ns,
        .faults_minor = pid,
        .rss_bytes = 4096,
    };
}

TEST(the_busiest_are_kept_and_the_rest_is_the_sum_of_the_others)
{
    struct seen seen = {0};
    struct ew_top_n top_n = {
        .count = 2, .metric = ETWATCH_M_cpu_percent, .ctx = &seen, .deliver = deliver};
    struct etwatch_sample in[] = {
        sample_of(ETWATCH_TYPE_START, 1, 50, 0),    sample_of(ETWATCH_TYPE_SAMPLE, 1, 100, 10),
        sample_of(ETWATCH_TYPE_THREAD, 1, 100, 10), sample_of(ETWATCH_TYPE_SAMPLE, 2, 100, 30),
        sample_of(ETWATCH_TYPE_THREAD, 2, 100, 30), sample_of(ETWATCH_TYPE_SAMPLE, 3, 100, 20),
        sample_of(ETWATCH_TYPE_SAMPLE, 4, 100, 5),  sample_of(ETWATCH_TYPE_EXIT, 4, 90, 5),
        sample_of(ETWATCH_TYPE_SAMPLE, 1, 200, 1),
    };
    etwatch_metric_set_remove(&in[6].has, ETWATCH_M_faults_minor);
    ew_top_n_put(&top_n, in, sizeof in / sizeof in[0]);
    ew_top_n_flush(&top_n);
    static const struct {
        uint32_t type, pid;
    } want[] = {
        {ETWATCH_TYPE_START, 1},  {ETWATCH_TYPE_SAMPLE, 2}, {ETWATCH_TYPE_THREAD, 2},
        {ETWATCH_TYPE_SAMPLE, 3}, {ETWATCH_TYPE_EXIT, 4},   {ETWATCH_TYPE_SAMPLE, UINT32_MAX},
        {ETWATCH_TYPE_SAMPLE, 1},
    };
    CHECK_EQ_UINT(seen.count, sizeof want / sizeof want[0]);
    for (uint32_t i = 0; i < seen.count; i++) {
        CHECK_EQ_UINT(seen.samples[i].type, want[i].type);
        CHECK_EQ_UINT(seen.samples[i].pid, want[i].pid);
    }
    const struct etwatch_sample *rest = &seen.samples[5];
    CHECK_EQ_UINT(rest->flags, ETWATCH_SAMPLE_COMPLETE | ETWATCH_SAMPLE_OTHER);
    CHECK_EQ_UINT(rest->tid, 2);
    CHECK_EQ_STR(rest->name, "other");
    CHECK_EQ_UINT(rest->cpu_ns, 15);
    CHECK_NEAR(rest->cpu_percent, 15, 1e-9);
    /* The faults of one process are unknown, and no sum of memory would be correct for the rest. */
    CHECK_METRICS(rest->has, ETWATCH_M_cpu_ns, ETWATCH_M_cpu_percent);
    ew_top_n_done(&top_n);
}

TEST(processes_without_the_metric_are_last_and_a_loss_marks_the_rest)
{
    struct seen seen = {0};
    struct ew_top_n top_n = {
        .count = 1, .metric = ETWATCH_M_faults_minor, .ctx = &seen, .deliver = deliver};
    struct etwatch_sample in[] = {sample_of(ETWATCH_TYPE_SAMPLE, 9, 100, 10),
                                  sample_of(ETWATCH_TYPE_SAMPLE, 1, 100, 0)};
    etwatch_metric_set_remove(&in[0].has, ETWATCH_M_faults_minor);
    in[0].flags = 0;
    ew_top_n_put(&top_n, in, 2);
    ew_top_n_flush(&top_n);
    CHECK_EQ_UINT(seen.count, 2);
    CHECK_EQ_UINT(seen.samples[0].pid, 1);
    CHECK_EQ_UINT(seen.samples[1].flags, ETWATCH_SAMPLE_OTHER);
    ew_top_n_done(&top_n);
}

TEST(if_n_covers_all_processes_there_is_no_rest)
{
    struct seen seen = {0};
    struct ew_top_n top_n = {.count = 2, .ctx = &seen, .deliver = deliver};
    struct etwatch_sample in[] = {sample_of(ETWATCH_TYPE_SAMPLE, 1, 100, 10),
                                  sample_of(ETWATCH_TYPE_SAMPLE, 2, 100, 0)};
    ew_top_n_put(&top_n, in, 2);
    ew_top_n_flush(&top_n);
    CHECK_EQ_UINT(seen.count, 2);
    ew_top_n_done(&top_n);
}
