/* SPDX-License-Identifier: MIT */
/* The rate follows the cost of the monitor; the expected value of each step is known. */
#include "sampler/budget.h"
#include "test.h"

#define SECOND UINT64_C(1000000000)
#define PERCENT(x) ((uint64_t)((x)*10000000.0))

TEST(over_the_budget_the_rate_falls_by_a_fifth_at_once)
{
    struct ew_budget budget;
    ew_budget_init(&budget, 100, 2);
    CHECK_NEAR(ew_budget_feed(&budget, PERCENT(2.5), SECOND), 80, 1e-9);
    CHECK_NEAR(ew_budget_feed(&budget, PERCENT(2.5), SECOND), 64, 1e-9);
}

TEST(at_the_budget_and_down_to_two_fifths_nothing_changes)
{
    struct ew_budget budget;
    ew_budget_init(&budget, 100, 2);
    (void)ew_budget_feed(&budget, PERCENT(3), SECOND);
    for (int i = 0; i < 10; i++) {
        CHECK_NEAR(ew_budget_feed(&budget, PERCENT(2), SECOND), 80, 1e-9);
        CHECK_NEAR(ew_budget_feed(&budget, PERCENT(0.8), SECOND), 80, 1e-9);
    }
}

TEST(well_under_the_budget_twice_in_a_row_the_rate_rises)
{
    struct ew_budget budget;
    ew_budget_init(&budget, 1000, 2);
    for (int i = 0; i < 4; i++)
        (void)ew_budget_feed(&budget, PERCENT(9), SECOND);
    double low = budget.hz;
    CHECK_NEAR(ew_budget_feed(&budget, PERCENT(0.1), SECOND), low, 1e-9);
    CHECK_NEAR(ew_budget_feed(&budget, PERCENT(0.1), SECOND), low * 1.2, 1e-9);
    CHECK_NEAR(ew_budget_feed(&budget, PERCENT(0.1), SECOND), low * 1.2, 1e-9);
    CHECK_NEAR(ew_budget_feed(&budget, PERCENT(0.1), SECOND), low * 1.44, 1e-9);
}

TEST(one_calm_second_between_busy_ones_does_not_raise_the_rate)
{
    struct ew_budget budget;
    ew_budget_init(&budget, 100, 2);
    (void)ew_budget_feed(&budget, PERCENT(3), SECOND);
    for (int i = 0; i < 10; i++) {
        CHECK_NEAR(ew_budget_feed(&budget, PERCENT(0.1), SECOND), 80, 1e-9);
        CHECK_NEAR(ew_budget_feed(&budget, PERCENT(1.5), SECOND), 80, 1e-9);
    }
}

TEST(the_rate_never_exceeds_the_requested_rate)
{
    struct ew_budget budget;
    ew_budget_init(&budget, 10, 2);
    (void)ew_budget_feed(&budget, PERCENT(3), SECOND);
    for (int i = 0; i < 20; i++)
        (void)ew_budget_feed(&budget, 0, SECOND);
    CHECK_NEAR(budget.hz, 10, 1e-9);
}

TEST(the_rate_is_never_below_a_tenth_of_a_hertz)
{
    struct ew_budget budget;
    ew_budget_init(&budget, 1000, 2);
    for (int i = 0; i < 200; i++)
        (void)ew_budget_feed(&budget, PERCENT(50), SECOND);
    CHECK_NEAR(budget.hz, 0.1, 1e-12);
}

TEST(without_elapsed_time_the_rate_is_unchanged)
{
    struct ew_budget budget;
    ew_budget_init(&budget, 100, 2);
    CHECK_NEAR(ew_budget_feed(&budget, SECOND, 0), 100, 1e-9);
}

/*
 * The cost is proportional to the rate and starts far above the budget: the rate settles and stays.
 */
TEST(a_cost_that_follows_the_rate_settles_without_flapping)
{
    struct ew_budget budget;
    ew_budget_init(&budget, 1000, 2);
    for (int i = 0; i < 30; i++)
        (void)ew_budget_feed(&budget, PERCENT(budget.hz * 0.013), SECOND);
    double settled = budget.hz;
    CHECK(settled * 0.013 <= 2);
    for (int i = 0; i < 100; i++)
        CHECK_NEAR(ew_budget_feed(&budget, PERCENT(budget.hz * 0.013), SECOND), settled, 1e-9);
}
