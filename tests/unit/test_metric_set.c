/* SPDX-License-Identifier: MIT */
/* Sets of metrics: members in every word, iteration, and operations on two sets. */
#include <stdio.h>

#include "metric_kit.h"
#include "monitor/monitor.h"
#include "test.h"

/* The first and the last member of every word, and one that crosses none. */
static const uint32_t members[] = {0, 1, 63, 64, 100, 127, 128, 191, 192, 254, 255};
enum { MEMBER_COUNT = sizeof members / sizeof members[0] };

static struct etwatch_metric_set set_of_members(void)
{
    struct etwatch_metric_set set = {{0}};
    for (uint32_t i = 0; i < MEMBER_COUNT; i++)
        etwatch_metric_set_add(&set, members[i]);
    return set;
}

static bool is_member(uint32_t metric)
{
    for (uint32_t i = 0; i < MEMBER_COUNT; i++)
        if (members[i] == metric)
            return true;
    return false;
}

TEST(a_set_has_the_members_that_were_added)
{
    struct etwatch_metric_set set = set_of_members();
    for (uint32_t i = 0; i < 400; i++)
        CHECK_EQ_INT(etwatch_metric_set_has(&set, i), is_member(i));
    CHECK_EQ_INT(etwatch_metric_set_has(&set, UINT32_MAX), 0);
    CHECK_EQ_UINT(etwatch_metric_set_count(&set), MEMBER_COUNT);
    CHECK_EQ_UINT(sizeof set, 32);
}

TEST(each_member_is_the_bit_that_the_header_states)
{
    for (uint32_t i = 0; i < MEMBER_COUNT; i++) {
        struct etwatch_metric_set set = {{0}}, want = {{0}};
        want.words[members[i] / 64] = UINT64_C(1) << members[i] % 64;
        etwatch_metric_set_add(&set, members[i]);
        CHECK(etwatch_metric_set_equal(&set, &want));
        CHECK(!etwatch_metric_set_is_empty(&set));
        CHECK_EQ_UINT(etwatch_metric_set_next(&set, 0), members[i]);
        etwatch_metric_set_remove(&set, members[i]);
        CHECK(etwatch_metric_set_is_empty(&set));
    }
}

TEST(an_index_beyond_the_last_member_changes_nothing)
{
    struct etwatch_metric_set set = set_of_members(), before = set;
    etwatch_metric_set_add(&set, 256);
    etwatch_metric_set_remove(&set, 256 + 63);
    etwatch_metric_set_add(&set, UINT32_MAX);
    CHECK(etwatch_metric_set_equal(&set, &before));
}

TEST(iteration_visits_every_member_once_in_order)
{
    struct etwatch_metric_set set = set_of_members(), none = {{0}};
    uint32_t seen = 0;
    for (uint32_t m = etwatch_metric_set_next(&set, 0); m != ETWATCH_METRIC_SET_END;
         m = etwatch_metric_set_next(&set, m + 1)) {
        CHECK(seen < MEMBER_COUNT);
        CHECK_EQ_UINT(m, members[seen]);
        seen++;
    }
    CHECK_EQ_UINT(seen, MEMBER_COUNT);
    CHECK_EQ_UINT(etwatch_metric_set_next(&set, 65), 100);
    CHECK_EQ_UINT(etwatch_metric_set_next(&set, 256), ETWATCH_METRIC_SET_END);
    CHECK_EQ_UINT(etwatch_metric_set_next(&set, ETWATCH_METRIC_SET_END), ETWATCH_METRIC_SET_END);
    CHECK_EQ_UINT(etwatch_metric_set_next(&none, 0), ETWATCH_METRIC_SET_END);
}

TEST(the_macro_visits_metrics_only)
{
    struct etwatch_metric_set set = set_of_members();
    uint32_t seen = 0;
    EW_METRIC_SET_EACH (m, &set) {
        CHECK_EQ_UINT(m, members[seen]);
        CHECK(m < ETWATCH_METRIC_COUNT);
        seen++;
    }
    CHECK_EQ_UINT(seen, 2);
}

TEST(two_sets_are_united_intersected_and_subtracted_in_every_word)
{
    const struct etwatch_metric_set a = EW_METRIC_SET(1, 65, 129, 193, 5, 255);
    const struct etwatch_metric_set b = EW_METRIC_SET(2, 65, 130, 193, 5);
    struct etwatch_metric_set set = a;
    etwatch_metric_set_union(&set, &b);
    CHECK_METRICS(set, 1, 2, 5, 65, 129, 130, 193, 255);
    set = a;
    etwatch_metric_set_intersect(&set, &b);
    CHECK_METRICS(set, 5, 65, 193);
    set = a;
    etwatch_metric_set_subtract(&set, &b);
    CHECK_METRICS(set, 1, 129, 255);
    CHECK(!etwatch_metric_set_equal(&a, &b));
    CHECK(ew_metric_set_intersects(&a, &b));
    CHECK(!ew_metric_set_intersects(&set, &b));
}

TEST(the_default_is_the_last_member_and_no_metric)
{
    struct etwatch_metric_set set = {{0}};
    etwatch_metric_set_add(&set, ETWATCH_METRIC_DEFAULT);
    CHECK_METRICS(set, 255);
    CHECK_EQ_UINT(set.words[3], UINT64_C(1) << 63);
    CHECK(ETWATCH_METRIC_COUNT <= ETWATCH_METRIC_DEFAULT);
}

TEST(a_constant_set_has_up_to_sixteen_members)
{
    static const struct etwatch_metric_set set =
        EW_METRIC_SET(0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240);
    CHECK_EQ_UINT(etwatch_metric_set_count(&set), 16);
    for (uint32_t i = 0; i < 16; i++)
        CHECK(etwatch_metric_set_has(&set, i * 16));
}

TEST(a_sample_knows_what_its_set_has)
{
    struct etwatch_sample sample = {.size = sizeof sample,
                                    .has = EW_METRIC_SET(ETWATCH_M_cpu_ns, 64, 200)};
    CHECK(etwatch_sample_has(&sample, ETWATCH_M_cpu_ns));
    CHECK(!etwatch_sample_has(&sample, ETWATCH_M_cpu_percent));
    CHECK(etwatch_sample_has(&sample, 64) && etwatch_sample_has(&sample, 200));
    CHECK(!etwatch_sample_has(&sample, 65));
}

/* ------------------------------------------------------------- in a configuration */

TEST(a_configuration_keeps_members_of_every_word)
{
    const struct etwatch_rate rates[] = {{EW_METRIC_SET(ETWATCH_M_handles, 70, 130, 254), 2}};
    struct etwatch_config config = {
        .size = sizeof config,
        .source = ETWATCH_SOURCE_POLL,
        .flags = ETWATCH_CONFIG_ALL,
        .metrics = EW_METRIC_SET(ETWATCH_METRIC_DEFAULT, ETWATCH_M_handles),
        .polled_metrics = EW_METRIC_SET(ETWATCH_M_rss_bytes),
        .rates = rates,
        .rate_count = 1,
    };
    struct etwatch_monitor *monitor = NULL;
    CHECK_EQ_INT(etwatch_monitor_new(&config, &monitor, NULL), 0);
    CHECK_METRICS(monitor->config.metrics, ETWATCH_METRIC_DEFAULT, ETWATCH_M_handles);
    CHECK_METRICS(monitor->config.polled_metrics, ETWATCH_M_rss_bytes);
    CHECK(monitor->config.rates != rates);
    CHECK_METRICS(monitor->config.rates[0].metrics, ETWATCH_M_handles, 70, 130, 254);
    etwatch_monitor_free(monitor);
}

TEST(a_member_that_is_no_metric_is_refused_by_its_number)
{
    static const uint32_t unknown[] = {ETWATCH_METRIC_COUNT, 64, 127, 128, 254};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        struct etwatch_config config = {
            .size = sizeof config, .flags = ETWATCH_CONFIG_ALL, .metrics = EW_METRIC_SET(1)};
        struct etwatch_error_info error = {.size = sizeof error};
        struct etwatch_monitor *monitor = NULL;
        char want[64];
        etwatch_metric_set_add(&config.metrics, unknown[i]);
        CHECK_EQ_INT(etwatch_monitor_new(&config, &monitor, &error), ETWATCH_EINVAL);
        (void)snprintf(want, sizeof want, "unknown member, %u", unknown[i]);
        CHECK_CONTAINS(error.message, want);
        config.metrics = EW_METRICS(1);
        etwatch_metric_set_add(&config.polled_metrics, unknown[i]);
        CHECK_EQ_INT(etwatch_monitor_new(&config, &monitor, NULL), ETWATCH_EINVAL);
    }
}
