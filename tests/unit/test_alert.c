/* SPDX-License-Identifier: MIT */
/*
 * Conditions are parsed strictly; an alert is reported with the interval in which its condition
 * held.
 */
#include <stdio.h>
#include <string.h>

#include "model/metric.h"
#include "sampler/alert.h"
#include "test.h"

#define MS UINT64_C(1000000)

/* -------------------------------------------------------------------- conditions */

struct good {
    const char *remark, *text;
    uint32_t metric;
    enum ew_alert_op op;
    double threshold;
    uint64_t for_ns;
};

static const struct good goods[] = {
    {"the usual", "cpu_percent>80 for 20ms", ETWATCH_M_cpu_percent, EW_ALERT_ABOVE, 80, 20 * MS},
    {"a unit of the metric", "cpu_percent >= 80% for 1s", ETWATCH_M_cpu_percent, EW_ALERT_AT_LEAST,
     80, 1000 * MS},
    {"no time", "rss_bytes>1.5GiB", ETWATCH_M_rss_bytes, EW_ALERT_ABOVE, 1.5 * 1073741824.0, 0},
    {"a rate", "io_write_bytes>10MB/s for 2s", ETWATCH_M_io_write_bytes, EW_ALERT_ABOVE, 10e6,
     2000 * MS},
    {"downwards", " threads <= 3 ", ETWATCH_M_threads, EW_ALERT_AT_MOST, 3, 0},
    {"times", "runq_wait_ns>50ms/s for 0.5s", ETWATCH_M_runq_wait_ns, EW_ALERT_ABOVE, 50e6,
     500 * MS},
    {"counts", "faults_minor<2k for 1min", ETWATCH_M_faults_minor, EW_ALERT_BELOW, 2000,
     60000 * MS},
};

TEST(a_condition_is_parsed_with_its_units)
{
    for (size_t i = 0; i < sizeof goods / sizeof goods[0]; i++) {
        struct ew_alert_rule rule;
        struct ew_error err = {0};
        test_row(goods[i].remark);
        CHECK_EQ_INT(ew_alert_parse(goods[i].text, &rule, &err), 0);
        CHECK_EQ_UINT(rule.metric, goods[i].metric);
        CHECK_EQ_INT(rule.op, goods[i].op);
        CHECK_NEAR(rule.threshold, goods[i].threshold, 1e-6);
        CHECK_EQ_UINT(rule.for_ns, goods[i].for_ns);
        CHECK_EQ_STR(rule.text, goods[i].text);
    }
}

struct bad {
    const char *remark, *text;
    uint64_t offset;
    const char *says;
};

static const struct bad bads[] = {
    {"nothing", "", 0, "the name of a metric"},
    {"no such metric", "cpu>80", 0, "not \"cpu\""},
    {"the wrong operator", "cpu_percent=80", 11, "> >= < <="},
    {"no number", "cpu_percent>x", 12, "a number is needed, not \"x\""},
    {"no number at all", "cpu_percent>", 12, "a number is needed"},
    {"a unit of something else", "cpu_percent>80MB", 14, "only % or nothing"},
    {"percent of memory", "rss_bytes>80%", 12, "a unit of memory"},
    {"a gauge per second", "rss_bytes>80MB/s", 14, "a gauge has no rate"},
    {"no time after for", "cpu_percent>80 for", 18, "a time is needed"},
    {"a time without unit", "cpu_percent>80 for 20", 21, "a unit of time"},
    {"too short", "cpu_percent>80 for 10us", 21, "between 1ms and one day"},
    {"another word follows", "cpu_percent>80 or 3", 15, "not \"or\""},
    {"a word too many", "cpu_percent>80 for 20ms x", 24, "nothing may follow"},
    {"two points", "cpu_percent>8.0.1", 15, "\"for TIME\" or nothing"},
    {"no use in watching", "exit_code>0", 0, "goes up and down"},
};

TEST(a_wrong_condition_is_refused_with_the_position)
{
    for (size_t i = 0; i < sizeof bads / sizeof bads[0]; i++) {
        struct ew_alert_rule rule;
        struct ew_error err = {0};
        test_row(bads[i].remark);
        CHECK_EQ_INT(ew_alert_parse(bads[i].text, &rule, &err), ETWATCH_EINVAL);
        CHECK_CONTAINS(err.message, bads[i].says);
        CHECK_EQ_UINT(err.offset, bads[i].offset);
        CHECK_CONTAINS(err.fix, "cpu_percent>80 for 20ms");
    }
}

/* ------------------------------------------------------------------ the windows */

struct reported {
    struct etwatch_alert alert[16];
    struct etwatch_alert_thread thread[16];
    char name[16][32];
    uint32_t count;
};

static void on_alert(void *ctx, const struct etwatch_alert *alert)
{
    struct reported *reported = ctx;
    CHECK(reported->count < 16);
    reported->alert[reported->count] = *alert;
    if (alert->thread_entries > 0)
        reported->thread[reported->count] = alert->threads[0];
    (void)snprintf(reported->name[reported->count], sizeof reported->name[0], "%s",
                   alert->name == NULL ? "(null)" : alert->name);
    reported->count++;
}

static struct ew_alerts *open_alerts(struct reported *reported, const char *text, bool edges)
{
    struct ew_alert_rule rule;
    struct ew_alerts *alerts;
    memset(reported, 0, sizeof *reported);
    CHECK_EQ_INT(ew_alert_parse(text, &rule, NULL), 0);
    struct ew_alerts_config config = {
        .rules = &rule,
        .rule_count = 1,
        .classes = EW_ALERT_FINE | EW_ALERT_COARSE,
        .edges = edges,
        .ctx = reported,
        .alert = on_alert,
    };
    CHECK_EQ_INT(ew_alerts_new(&config, &alerts), 0);
    return alerts;
}

/* A window of 1 ms that ends at t ms, in which pid 7 ran for cpu_us. */
static void feed(struct ew_alerts *alerts, uint64_t t_ms, uint64_t cpu_us)
{
    struct etwatch_sample samples[2] = {{0}};
    samples[0] = (struct etwatch_sample){
        .size = sizeof samples[0],
        .type = ETWATCH_TYPE_SAMPLE,
        .source = ETWATCH_SOURCE_EBPF,
        .flags = ETWATCH_SAMPLE_COMPLETE,
        .pid = 7,
        .start_ns = 5,
        .t_ns = t_ms * MS,
        .dt_ns = MS,
        .name = "burner",
        .has = EW_METRIC_SET(ETWATCH_M_cpu_ns, ETWATCH_M_cpu_percent),
        .cpu_ns = cpu_us * 1000,
        .cpu_percent = (double)cpu_us / 10,
    };
    samples[1] = samples[0];
    samples[1].type = ETWATCH_TYPE_THREAD;
    samples[1].tid = 8;
    samples[1].thread_name = "worker";
    ew_alerts_feed(alerts, samples, 2);
}

TEST(a_burst_is_trimmed_to_where_it_begins_and_ends_inside_its_windows)
{
    struct reported reported;
    struct ew_alerts *alerts = open_alerts(&reported, "cpu_percent>80 for 4ms", true);
    /* 5.4 ms from 102.7 to 108.1. */
    feed(alerts, 103, 300);
    for (uint64_t t = 104; t <= 108; t++)
        feed(alerts, t, 1000);
    feed(alerts, 109, 100);
    ew_alerts_advance(alerts, 400 * MS);
    ew_alerts_advance(alerts, 800 * MS);
    CHECK_EQ_UINT(reported.count, 1);
    CHECK_EQ_UINT(reported.alert[0].from_ns, 102700 * MS / 1000);
    CHECK_EQ_UINT(reported.alert[0].to_ns, 108100 * MS / 1000);
    CHECK_NEAR(reported.alert[0].value, 100, 1e-6);
    CHECK_NEAR(reported.alert[0].peak, 100, 1e-6);
    CHECK_EQ_UINT(reported.alert[0].flags,
                  ETWATCH_ALERT_COMPLETE | ETWATCH_ALERT_ENDED | ETWATCH_ALERT_EXACT);
    CHECK_EQ_UINT(reported.alert[0].window_ns, MS);
    CHECK_EQ_UINT(reported.alert[0].thread_count, 1);
    CHECK_EQ_UINT(reported.thread[0].tid, 8);
    CHECK_EQ_UINT(reported.thread[0].cpu_ns, 5400 * 1000);
    CHECK_EQ_STR(reported.name[0], "burner");
    ew_alerts_free(alerts);
}

TEST(a_burst_shorter_than_the_duration_is_not_reported)
{
    struct reported reported;
    struct ew_alerts *alerts = open_alerts(&reported, "cpu_percent>80 for 4ms", true);
    feed(alerts, 103, 500);
    for (uint64_t t = 104; t <= 106; t++)
        feed(alerts, t, 1000);
    feed(alerts, 107, 400); /* 3.9 ms */
    ew_alerts_advance(alerts, 400 * MS);
    ew_alerts_finish(alerts);
    CHECK_EQ_UINT(reported.count, 0);
    ew_alerts_free(alerts);
}

TEST(without_edges_whole_windows_are_reported)
{
    struct reported reported;
    struct ew_alerts *alerts = open_alerts(&reported, "cpu_percent>80 for 4ms", false);
    feed(alerts, 103, 300);
    for (uint64_t t = 104; t <= 108; t++)
        feed(alerts, t, 1000);
    feed(alerts, 109, 100);
    ew_alerts_advance(alerts, 400 * MS);
    ew_alerts_finish(alerts);
    CHECK_EQ_UINT(reported.count, 1);
    CHECK_EQ_UINT(reported.alert[0].from_ns, 103 * MS);
    CHECK_EQ_UINT(reported.alert[0].to_ns, 108 * MS);
    CHECK_EQ_UINT(reported.alert[0].flags, ETWATCH_ALERT_COMPLETE | ETWATCH_ALERT_ENDED);
    ew_alerts_free(alerts);
}

TEST(the_threads_of_two_bursts_in_a_row_are_kept_apart)
{
    struct reported reported;
    struct ew_alerts *alerts = open_alerts(&reported, "cpu_percent>80 for 4ms", true);
    for (uint64_t t = 1; t <= 20; t++)
        feed(alerts, t, t == 10 ? 200 : 1000);
    ew_alerts_advance(alerts, 400 * MS);
    ew_alerts_advance(alerts, 800 * MS);
    CHECK_EQ_UINT(reported.count, 2);
    CHECK_EQ_UINT(reported.alert[0].from_ns, 0);
    CHECK_EQ_UINT(reported.alert[0].to_ns, 9100 * MS / 1000);
    CHECK_EQ_UINT(reported.thread[0].cpu_ns,
                  9200 * 1000); /* the shared window belongs to the first burst */
    CHECK_EQ_UINT(reported.alert[1].from_ns, 9900 * MS / 1000);
    CHECK_EQ_UINT(reported.alert[1].to_ns, 20 * MS);
    CHECK_EQ_UINT(reported.thread[1].cpu_ns, 10000 * 1000);
    ew_alerts_free(alerts);
}

TEST(a_long_alert_is_reported_when_it_fires_and_when_it_ends)
{
    struct reported reported;
    struct ew_alerts *alerts = open_alerts(&reported, "cpu_percent>80 for 4ms", true);
    for (uint64_t t = 1; t <= 400; t++)
        feed(alerts, t, 1000);
    ew_alerts_advance(alerts, 400 * MS);
    CHECK_EQ_UINT(reported.count, 1);
    CHECK_EQ_UINT(reported.alert[0].flags & ETWATCH_ALERT_ENDED, 0);
    for (uint64_t t = 401; t <= 450; t++)
        feed(alerts, t, 1000);
    ew_alerts_advance(alerts, 800 * MS);
    ew_alerts_advance(alerts, 1200 * MS);
    CHECK_EQ_UINT(reported.count, 2);
    CHECK_EQ_UINT(reported.alert[1].from_ns, reported.alert[0].from_ns);
    CHECK_EQ_UINT(reported.alert[1].to_ns, 450 * MS);
    CHECK_EQ_UINT(reported.alert[1].flags & ETWATCH_ALERT_ENDED, ETWATCH_ALERT_ENDED);
    ew_alerts_free(alerts);
}

TEST(short_pauses_do_not_end_an_alert_with_a_long_duration)
{
    struct reported reported;
    struct ew_alerts *alerts = open_alerts(&reported, "cpu_percent>80 for 80ms", true);
    for (uint64_t t = 1; t <= 200; t++)
        feed(alerts, t, t % 10 == 0 ? 0 : 1000);
    ew_alerts_advance(alerts, 400 * MS);
    ew_alerts_advance(alerts, 800 * MS);
    CHECK_EQ_UINT(reported.count, 1);
    CHECK_NEAR(reported.alert[0].value, 90, 0.6);
    CHECK_EQ_UINT(reported.alert[0].from_ns, 0);
    ew_alerts_free(alerts);
}

TEST(the_exit_of_the_process_ends_its_alert)
{
    struct reported reported;
    struct ew_alerts *alerts = open_alerts(&reported, "cpu_percent>80 for 4ms", true);
    for (uint64_t t = 1; t <= 6; t++)
        feed(alerts, t, 1000);
    struct etwatch_sample over = {.size = sizeof over,
                                  .type = ETWATCH_TYPE_EXIT,
                                  .pid = 7,
                                  .start_ns = 5,
                                  .t_ns = 6 * MS,
                                  .has = EW_METRIC_SET(ETWATCH_M_cpu_ns)};
    ew_alerts_feed(alerts, &over, 1);
    CHECK_EQ_UINT(reported.count, 1);
    CHECK_EQ_UINT(reported.alert[0].to_ns, 6 * MS);
    CHECK(reported.alert[0].flags & ETWATCH_ALERT_ENDED);
    ew_alerts_free(alerts);
}

TEST(an_idle_process_is_below_a_threshold)
{
    struct reported reported;
    struct ew_alerts *alerts = open_alerts(&reported, "cpu_percent<5 for 100ms", true);
    struct etwatch_sample start = {
        .size = sizeof start, .type = ETWATCH_TYPE_START, .pid = 7, .start_ns = 5, .t_ns = 50 * MS};
    ew_alerts_feed(alerts, &start, 1);
    for (uint64_t t = 376; t <= 400; t++)
        feed(alerts, t, 1000);
    ew_alerts_advance(alerts, 450 * MS);
    ew_alerts_finish(alerts);
    CHECK_EQ_UINT(reported.count, 2);
    CHECK_EQ_UINT(reported.alert[0].from_ns, 50 * MS);
    CHECK_EQ_UINT(reported.alert[1].from_ns, 50 * MS);
    CHECK_EQ_UINT(reported.alert[1].to_ns, 375 * MS);
    CHECK(reported.alert[1].flags & ETWATCH_ALERT_ENDED);
    ew_alerts_free(alerts);
}

static void read_memory(struct ew_alerts *alerts, uint64_t t_ms, bool known, uint64_t mb)
{
    struct etwatch_sample sample = {
        .size = sizeof sample,
        .type = ETWATCH_TYPE_SAMPLE,
        .flags = ETWATCH_SAMPLE_COMPLETE,
        .pid = 7,
        .start_ns = 5,
        .t_ns = t_ms * MS,
        .dt_ns = 100 * MS,
        .rss_bytes = mb * 1000000,
    };
    if (known)
        etwatch_metric_set_add(&sample.has, ETWATCH_M_rss_bytes);
    ew_alerts_feed(alerts, &sample, 1);
}

TEST(a_gauge_alert_lasts_from_the_first_to_the_last_matching_reading)
{
    struct reported reported;
    struct ew_alerts *alerts = open_alerts(&reported, "rss_bytes>100MB for 250ms", true);
    read_memory(alerts, 100, true, 50);
    read_memory(alerts, 200, true, 150);
    read_memory(alerts, 300, false, 0);
    read_memory(alerts, 400, true, 130);
    read_memory(alerts, 500, true, 60);
    CHECK_EQ_UINT(reported.count, 1);
    CHECK_EQ_UINT(reported.alert[0].from_ns, 200 * MS);
    CHECK_EQ_UINT(reported.alert[0].to_ns, 500 * MS);
    CHECK_NEAR(reported.alert[0].peak, 150e6, 1);
    CHECK_EQ_UINT(reported.alert[0].flags & ETWATCH_ALERT_EXACT, 0);
    ew_alerts_free(alerts);
}

TEST(a_gauge_alert_that_still_holds_starts_at_the_first_matching_reading)
{
    struct reported reported;
    struct ew_alerts *alerts = open_alerts(&reported, "rss_bytes<100MB for 150ms", true);
    read_memory(alerts, 1000, true, 50);
    read_memory(alerts, 1200, true, 60);
    ew_alerts_finish(alerts);
    CHECK_EQ_UINT(reported.count, 1);
    CHECK_EQ_UINT(reported.alert[0].from_ns, 1000 * MS);
    CHECK_EQ_UINT(reported.alert[0].to_ns, 1200 * MS);
    ew_alerts_free(alerts);
}

TEST(processes_beyond_the_limit_are_counted)
{
    struct reported reported;
    struct ew_alerts *alerts = open_alerts(&reported, "cpu_percent>80 for 4ms", true);
    for (uint32_t pid = 1; pid <= EW_ALERT_TRACKS_MAX + 5; pid++) {
        struct etwatch_sample sample = {
            .size = sizeof sample,
            .type = ETWATCH_TYPE_SAMPLE,
            .pid = pid,
            .start_ns = 1,
            .t_ns = MS,
            .dt_ns = MS,
            .has = EW_METRIC_SET(ETWATCH_M_cpu_percent),
            .cpu_percent = 10,
        };
        ew_alerts_feed(alerts, &sample, 1);
    }
    CHECK_EQ_UINT(ew_alerts_lost(alerts), 5);
    ew_alerts_advance(alerts, 10 * MS);
    ew_alerts_advance(alerts, 20 * MS);
    feed(alerts, 30, 1000); /* all are idle by now: there is room again */
    CHECK_EQ_UINT(ew_alerts_lost(alerts), 5);
    ew_alerts_free(alerts);
}

TEST(a_condition_is_checked_without_a_monitor)
{
    struct etwatch_error_info error = {.size = sizeof error};
    uint32_t metric = 0;
    CHECK_EQ_INT(etwatch_alert_check("rss_bytes>64M for 2m", &metric, &error), 0);
    CHECK_EQ_UINT(metric, ETWATCH_M_rss_bytes);
    CHECK_EQ_INT(etwatch_alert_check("rss_bytes>64X", &metric, &error), ETWATCH_EINVAL);
    CHECK_EQ_UINT(error.offset, 12);
    CHECK(error.message[0] != '\0' && error.fix[0] != '\0');
    CHECK_EQ_INT(etwatch_alert_check(NULL, NULL, NULL), ETWATCH_EINVAL);
}
