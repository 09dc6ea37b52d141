/* SPDX-License-Identifier: MIT */
/* Count, average and maximum are exact, percentiles within 0.8 %; memory is bounded. */
#include <math.h>
#include <stdlib.h>

#include "sampler/aggregate.h"
#include "test.h"

#define ERROR_BOUND (1.0 / 128)

TEST(without_values_every_result_is_zero)
{
    struct ew_aggregate a;
    struct etwatch_aggregate r;
    ew_aggregate_init(&a);
    ew_aggregate_result(&a, &r);
    CHECK_EQ_UINT(r.size, sizeof r);
    CHECK_EQ_UINT(r.count, 0);
    CHECK_NEAR(r.avg + r.max + r.p95 + r.p99, 0, 0);
    ew_aggregate_done(&a);
}

TEST(percentiles_of_one_to_a_hundred_are_known)
{
    struct ew_aggregate a;
    struct etwatch_aggregate r;
    ew_aggregate_init(&a);
    for (int i = 100; i >= 1; i--)
        CHECK_EQ_INT(ew_aggregate_add(&a, i), 0);
    ew_aggregate_result(&a, &r);
    CHECK_EQ_UINT(r.count, 100);
    CHECK_NEAR(r.avg, 50.5, 1e-9);
    CHECK_NEAR(r.max, 100, 0);
    CHECK_NEAR(r.p95, 95, 95 * ERROR_BOUND);
    CHECK_NEAR(r.p99, 99, 99 * ERROR_BOUND);
    ew_aggregate_done(&a);
}

TEST(zeros_are_counted_in_one_call)
{
    struct ew_aggregate a;
    struct etwatch_aggregate r;
    ew_aggregate_init(&a);
    for (int i = 0; i < 3; i++)
        CHECK_EQ_INT(ew_aggregate_add(&a, 80), 0);
    ew_aggregate_add_zeros(&a, UINT64_C(1000000000097));
    ew_aggregate_result(&a, &r);
    CHECK_EQ_UINT(r.count, UINT64_C(1000000000100));
    CHECK_NEAR(r.avg, 240.0 / 1000000000100.0, 1e-18);
    CHECK_NEAR(r.p99, 0, 0);
    CHECK_NEAR(r.max, 80, 0);
    ew_aggregate_done(&a);
}

TEST(if_95_percent_are_zero_the_95th_percentile_is_zero_and_the_99th_is_not)
{
    struct ew_aggregate a;
    struct etwatch_aggregate r;
    ew_aggregate_init(&a);
    ew_aggregate_add_zeros(&a, 95);
    for (int i = 0; i < 5; i++)
        CHECK_EQ_INT(ew_aggregate_add(&a, 40), 0);
    ew_aggregate_result(&a, &r);
    CHECK_NEAR(r.p95, 0, 0);
    CHECK_NEAR(r.p99, 40, 40 * ERROR_BOUND);
    ew_aggregate_done(&a);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Values over twelve powers of ten, compared with the sorted list. */
TEST(percentiles_of_any_values_are_within_the_stated_error)
{
    enum { COUNT = 5000 };
    static double values[COUNT];
    struct ew_aggregate a;
    struct etwatch_aggregate r;
    ew_aggregate_init(&a);
    uint64_t seed = 7;
    for (int round = 0; round < 20; round++) {
        ew_aggregate_reset(&a);
        double sum = 0;
        for (int i = 0; i < COUNT; i++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            double unit = (double)(seed >> 11) / 9007199254740992.0;
            values[i] = pow(10, unit * (round + 1) * 0.6 - 3);
            sum += values[i];
            CHECK_EQ_INT(ew_aggregate_add(&a, values[i]), 0);
        }
        qsort(values, COUNT, sizeof values[0], compare);
        ew_aggregate_result(&a, &r);
        CHECK_EQ_UINT(r.count, COUNT);
        CHECK_NEAR(r.avg, sum / COUNT, sum / COUNT * 1e-12);
        CHECK_NEAR(r.max, values[COUNT - 1], 0);
        CHECK_NEAR(r.p95, values[COUNT * 95 / 100 - 1], values[COUNT * 95 / 100 - 1] * ERROR_BOUND);
        CHECK_NEAR(r.p99, values[COUNT * 99 / 100 - 1], values[COUNT * 99 / 100 - 1] * ERROR_BOUND);
    }
    ew_aggregate_done(&a);
}

TEST(values_at_and_beyond_the_range_limits_are_handled)
{
    static const double odd[] = {0x1p-16, 0x1p-30, 0x1.fffffp47, 0x1p60, INFINITY, 5e-324};
    struct ew_aggregate a;
    struct etwatch_aggregate r;
    ew_aggregate_init(&a);
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
        CHECK_EQ_INT(ew_aggregate_add(&a, odd[i]), 0);
    CHECK_EQ_INT(ew_aggregate_add(&a, -3), 0);
    CHECK_EQ_INT(ew_aggregate_add(&a, NAN), ETWATCH_EINVAL);
    ew_aggregate_result(&a, &r);
    CHECK_EQ_UINT(r.count, 7);
    ew_aggregate_done(&a);
}

TEST(a_percentile_is_never_above_the_maximum)
{
    struct ew_aggregate a;
    struct etwatch_aggregate r;
    ew_aggregate_init(&a);
    CHECK_EQ_INT(ew_aggregate_add(&a, 64), 0);
    ew_aggregate_result(&a, &r);
    CHECK_NEAR(r.p95, 64, 0);
    ew_aggregate_done(&a);
}

static void fill_window(void *ctx)
{
    struct ew_aggregate *a = ctx;
    ew_aggregate_reset(a);
    for (int i = 1; i < 2000; i++)
        (void)ew_aggregate_add(a, i * 0.05);
}

TEST(a_window_of_values_seen_before_needs_no_memory)
{
    struct ew_aggregate a;
    struct etwatch_aggregate r;
    ew_aggregate_init(&a);
    fill_window(&a);
    CHECK_EQ_UINT(test_count_allocations(fill_window, &a), 0);
    ew_aggregate_result(&a, &r);
    CHECK_EQ_UINT(r.count, 1999);
    ew_aggregate_done(&a);
}

static int add_some(void *ctx)
{
    (void)ctx;
    struct ew_aggregate a;
    ew_aggregate_init(&a);
    int r = 0;
    for (int i = 1; r == 0 && i < 100; i++)
        r = ew_aggregate_add(&a, i);
    ew_aggregate_done(&a);
    return r;
}

TEST(every_failed_allocation_is_handled)
{
    TORTURE(add_some, NULL);
}
