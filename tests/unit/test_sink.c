/* SPDX-License-Identifier: MIT */
/*
 * The contract of all sinks: exact text for a fixed set of facts, unknown is never 0, bad arguments
 * are refused.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "batches.h"
#include "sample_maker.h"
#include "sink/fields.h"
#include "test.h"

static struct etwatch_sink *open_sink(uint32_t format, struct ew_buf *text,
                                      const struct etwatch_sink_options *options)
{
    struct etwatch_sink *sink = NULL;
    ew_buf_init(text, 0, NULL, NULL);
    CHECK_EQ_INT(etwatch_sink_new(format, keep, text, options, &sink, NULL), 0);
    return sink;
}

static const char *close_sink(struct etwatch_sink *sink, struct ew_buf *text)
{
    CHECK_EQ_INT(etwatch_sink_flush(sink), 0);
    etwatch_sink_free(sink);
    ew_buf_char(text, '\0');
    return text->data;
}

static struct etwatch_meta some_meta(void)
{
    struct etwatch_meta meta = {
        .size = sizeof meta,
        .source = ETWATCH_SOURCE_EBPF,
        .cpu_count = 2,
        .hz_requested = 10,
        .anchor_unix_ns = T0_NS,
        .anchor_raw_ns = 123456789,
        .estimated = EW_METRIC_SET(ETWATCH_M_cpu_user_ns, ETWATCH_M_cpu_kernel_ns),
        .available =
            EW_METRIC_SET(ETWATCH_M_cpu_ns, ETWATCH_M_cpu_user_ns, ETWATCH_M_cpu_kernel_ns),
    };
    return meta;
}

static struct etwatch_stats some_stats(void)
{
    struct etwatch_stats stats = {
        .size = sizeof stats,
        .source = ETWATCH_SOURCE_EBPF,
        .hz_requested = 10,
        .hz_reached = 9.98,
        .hz_effective = 10,
        .samples = 6,
        .events = 1234,
        .wakeups = 20,
        .processes = 2,
        .threads = 3,
        .self_rss_bytes = 6 * 1024 * 1024,
        .self_rss_peak_bytes = 7 * 1024 * 1024,
        .self_cpu_percent = 0.0412,
        .self_kernel_percent = -1,
        .duration_ns = 2 * SECOND_NS,
    };
    return stats;
}

/* A start, two seconds of two processes and a thread, a loss, an exit, a hostile name. */
static void feed(struct etwatch_sink *sink)
{
    struct etwatch_meta meta = some_meta();
    struct etwatch_stats stats = some_stats();
    struct etwatch_sample samples[8];
    size_t n = 0;

    samples[n] = make_sample(ETWATCH_TYPE_START, 42, "worker", 0);
    samples[n].flags |= ETWATCH_SAMPLE_PREEXISTING;
    set_memory(&samples[n++], 5 * 1024 * 1024);
    samples[n] = make_sample(ETWATCH_TYPE_SAMPLE, 42, "worker", 100);
    set_cpu(&samples[n], 40000000);
    set_memory(&samples[n++], 6 * 1024 * 1024);
    samples[n] = make_sample(ETWATCH_TYPE_THREAD, 42, "worker", 100);
    samples[n].tid = 43;
    samples[n].thread_name = "pool, \"one\"";
    set_cpu(&samples[n++], 39000000);
    samples[n] = make_sample(ETWATCH_TYPE_SAMPLE, 99, "evil\n\x1b[2J\xff", 200);
    set_cpu(&samples[n], 90000000);
    samples[n].flags = 0;
    samples[n].user = NULL;
    samples[n++].cgroup = NULL;
    samples[n] = make_sample(ETWATCH_TYPE_SAMPLE, 42, "worker", 1500);
    set_cpu(&samples[n++], 100000000);
    samples[n] = make_sample(ETWATCH_TYPE_EXIT, 42, "worker", 1600);
    samples[n].dt_ns = 2600000000;
    set_cpu(&samples[n], 1400000000);
    samples[n].exit_ns = samples[n].t_ns;
    samples[n].exit_code = 3;
    samples[n].exit_signal = 0;
    etwatch_metric_set_union(&samples[n].has, &ew_metrics_always);
    n++;

    struct etwatch_loss loss = {.size = sizeof loss,
                                .stage = ETWATCH_LOSS_KERNEL_LOG,
                                .count = 17,
                                .from_ns = T0_NS,
                                .to_ns = T0_NS + 5};
    CHECK_EQ_INT(etwatch_sink_meta(sink, &meta), 0);
    CHECK_EQ_INT(sink_samples(sink, samples, n), 0);
    CHECK_EQ_INT(etwatch_sink_loss(sink, &loss), 0);
    CHECK_EQ_INT(etwatch_sink_stats(sink, &stats), 0);
}

static void check_golden(const char *name, const char *got)
{
    char path[128], want[65536];
    (void)snprintf(path, sizeof path, "golden/sink/%s", name);
    if (getenv("ETWATCH_UPDATE") != NULL) {
        FILE *file = fopen(test_path(path), "wb");
        CHECK(file != NULL);
        CHECK(fputs(got, file) >= 0);
        CHECK_EQ_INT(fclose(file), 0);
        return;
    }
    FILE *file = fopen(test_path(path), "rb");
    CHECK(file != NULL);
    size_t len = fread(want, 1, sizeof want - 1, file);
    fclose(file);
    want[len] = '\0';
    CHECK_EQ_STR(got, want);
}

static const struct etwatch_sink_options plain = {
    .size = sizeof plain,
    .host = "box",
    .os = "Linux 6.1.0",
};

TEST(json_lines_of_a_fixed_set_of_facts_match_the_golden_file)
{
    struct ew_buf text;
    struct etwatch_sink *sink = open_sink(ETWATCH_FORMAT_JSONL, &text, &plain);
    feed(sink);
    check_golden("facts.jsonl", close_sink(sink, &text));
    ew_buf_done(&text);
}

TEST(csv_of_a_fixed_set_of_facts_matches_the_golden_file)
{
    struct ew_buf text;
    struct etwatch_sink *sink = open_sink(ETWATCH_FORMAT_CSV, &text, &plain);
    feed(sink);
    check_golden("facts.csv", close_sink(sink, &text));
    ew_buf_done(&text);
}

TEST(the_table_of_a_fixed_set_of_facts_matches_the_golden_file)
{
    struct ew_buf text;
    struct etwatch_sink *sink = open_sink(ETWATCH_FORMAT_TABLE, &text, &plain);
    feed(sink);
    check_golden("facts.table", close_sink(sink, &text));
    ew_buf_done(&text);
}

TEST(selected_columns_are_in_the_requested_order)
{
    static const char *const names[] = {"name", "pid", "cpu_percent"};
    struct etwatch_sink_options options = plain;
    options.columns = names;
    options.column_count = 3;
    struct ew_buf text;
    struct etwatch_sink *sink = open_sink(ETWATCH_FORMAT_CSV, &text, &options);
    feed(sink);
    CHECK_EQ_STR(close_sink(sink, &text), "name,pid,cpu_percent\n"
                                          "worker,42,\n"
                                          "worker,42,40.000\n"
                                          "worker,42,39.000\n"
                                          "\"evil\n\\x1b[2J\xEF\xBF\xBD\",99,90.000\n"
                                          "worker,42,100.000\n"
                                          "worker,42,53.846\n");
    ew_buf_done(&text);
}

TEST(an_unknown_column_is_named_in_the_error)
{
    static const char *const names[] = {"pid", "cpu_pct"};
    struct etwatch_sink_options options = {
        .size = sizeof options, .columns = names, .column_count = 2};
    struct etwatch_error_info err = {.size = sizeof err};
    struct etwatch_sink *sink = NULL;
    struct ew_buf text;
    ew_buf_init(&text, 0, NULL, NULL);
    CHECK_EQ_INT(etwatch_sink_new(ETWATCH_FORMAT_CSV, keep, &text, &options, &sink, &err),
                 ETWATCH_EINVAL);
    CHECK_CONTAINS(err.message, "cpu_pct");
    CHECK_CONTAINS(err.fix, "cpu_percent");
    CHECK(sink == NULL);
}

TEST(bad_arguments_are_refused)
{
    struct etwatch_sink *sink = NULL;
    struct etwatch_sink_options small = {.size = 4};
    struct ew_buf text;
    ew_buf_init(&text, 0, NULL, NULL);
    CHECK_EQ_INT(etwatch_sink_new(0, keep, &text, NULL, &sink, NULL), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_sink_new(99, keep, &text, NULL, &sink, NULL), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_sink_new(ETWATCH_FORMAT_CSV, NULL, &text, NULL, &sink, NULL),
                 ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_sink_new(ETWATCH_FORMAT_CSV, keep, &text, &small, &sink, NULL),
                 ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_sink_meta(NULL, NULL), ETWATCH_EINVAL);
    CHECK_EQ_INT(sink_samples(NULL, NULL, 1), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_sink_flush(NULL), ETWATCH_EINVAL);
    etwatch_sink_free(NULL);
}

TEST(a_metric_of_zero_is_zero_and_an_unknown_one_is_null)
{
    struct etwatch_sample sample = make_sample(ETWATCH_TYPE_SAMPLE, 1, "a", 0);
    sample.has = EW_METRICS(ETWATCH_M_cpu_ns, ETWATCH_M_user_objects);
    struct ew_buf text;
    struct etwatch_sink *sink = open_sink(ETWATCH_FORMAT_JSONL, &text, NULL);
    CHECK_EQ_INT(sink_samples(sink, &sample, 1), 0);
    const char *got = close_sink(sink, &text);
    CHECK_CONTAINS(got, "\"cpu_ns\":0,");
    CHECK_CONTAINS(got, "\"cpu_user_ns\":null,");
    CHECK_CONTAINS(got, "\"user_objects\":0,");
    ew_buf_done(&text);
}

TEST(a_double_that_is_not_finite_becomes_null)
{
    struct etwatch_sample sample = make_sample(ETWATCH_TYPE_SAMPLE, 1, "a", 0);
    sample.has = EW_METRICS(ETWATCH_M_cpu_percent);
    const double values[] = {(double)NAN, (double)INFINITY};
    for (size_t i = 0; i < 2; i++) {
        sample.cpu_percent = values[i];
        struct ew_buf text;
        struct etwatch_sink *sink = open_sink(ETWATCH_FORMAT_JSONL, &text, NULL);
        CHECK_EQ_INT(sink_samples(sink, &sample, 1), 0);
        CHECK_CONTAINS(close_sink(sink, &text), "\"cpu_percent\":null,");
        ew_buf_done(&text);
    }
}

/* A sample of a newer library may know metrics that have no name here. */
TEST(members_without_a_metric_are_in_no_line)
{
    static const uint32_t formats[] = {ETWATCH_FORMAT_JSONL, ETWATCH_FORMAT_CSV,
                                       ETWATCH_FORMAT_TABLE};
    struct etwatch_sample usual = make_sample(ETWATCH_TYPE_SAMPLE, 1, "a", 0);
    set_cpu(&usual, 5000);
    struct etwatch_sample more = usual;
    etwatch_metric_set_union(&more.has, &EW_METRICS(ETWATCH_METRIC_COUNT, 63, 64, 130, 200, 255));
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        struct ew_buf want, got;
        struct etwatch_sink *sink = open_sink(formats[i], &want, NULL);
        CHECK_EQ_INT(sink_samples(sink, &usual, 1), 0);
        const char *wanted = close_sink(sink, &want);
        sink = open_sink(formats[i], &got, NULL);
        CHECK_EQ_INT(sink_samples(sink, &more, 1), 0);
        CHECK_EQ_STR(close_sink(sink, &got), wanted);
        ew_buf_done(&want);
        ew_buf_done(&got);
    }
}

/* Each metric alone must appear under its own name with its own value. */
TEST(every_metric_is_written_under_its_own_name)
{
    struct etwatch_metric_set shown = ew_metrics_measurable();
    EW_METRIC_SET_EACH (m, &shown) {
        struct etwatch_sample sample = make_sample(ETWATCH_TYPE_EXIT, 1, "a", 0);
        char want[64];
        sample.has = (struct etwatch_metric_set){{0}};
        etwatch_metric_set_add(&sample.has, m);
#define ETWATCH_X(name, type, kind) sample.name = (type)(1000 + ETWATCH_M_##name);
        ETWATCH_METRICS(ETWATCH_X)
#undef ETWATCH_X
        struct ew_buf text;
        struct etwatch_sink *sink = open_sink(ETWATCH_FORMAT_JSONL, &text, NULL);
        CHECK_EQ_INT(sink_samples(sink, &sample, 1), 0);
        const char *got = close_sink(sink, &text);
        (void)snprintf(want, sizeof want, "\"%s\":%u", ew_sink_metric_info[m].name, 1000 + m);
        CHECK_CONTAINS(got, want);
        size_t nulls = 0;
        for (const char *at = got; (at = strstr(at, ":null")) != NULL; at++)
            nulls++;
        CHECK_EQ_UINT(nulls, etwatch_metric_set_count(&shown) - 1);
        ew_buf_done(&text);
    }
}

static int32_t an_hour_ahead(uint64_t unix_ns)
{
    (void)unix_ns;
    return 3600;
}

/* Tables are for people, data are for programs. */
TEST(only_the_table_has_local_time)
{
    static const uint32_t formats[] = {ETWATCH_FORMAT_JSONL, ETWATCH_FORMAT_CSV,
                                       ETWATCH_FORMAT_TABLE};
    struct etwatch_sink_options local = plain;
    local.utc_offset_s = an_hour_ahead;
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        struct ew_buf texts[2];
        const char *got[2];
        for (int k = 0; k < 2; k++) {
            struct etwatch_sink *sink = open_sink(formats[i], &texts[k], k == 0 ? &plain : &local);
            feed(sink);
            got[k] = close_sink(sink, &texts[k]);
        }
        test_row(formats[i] == ETWATCH_FORMAT_TABLE ? "table" : "data");
        if (formats[i] == ETWATCH_FORMAT_TABLE) {
            CHECK_CONTAINS(got[0], "2025-11-16 05:11:03 UTC, over");
            CHECK_CONTAINS(got[1], "2025-11-16 06:11:03 +01:00, over");
            CHECK(strstr(got[1], "UTC") == NULL);
        } else {
            CHECK_EQ_STR(got[1], got[0]);
        }
        ew_buf_done(&texts[0]);
        ew_buf_done(&texts[1]);
    }
}

/* Polling has no events: an exit without final values is no loss of any. */
TEST(an_incomplete_block_of_polled_samples_mentions_no_events)
{
    static const struct {
        uint32_t source;
        const char *text;
    } rows[] = {
        {ETWATCH_SOURCE_POLL, "incomplete: some values could not be read"},
        {ETWATCH_SOURCE_ETW, "incomplete: events were lost"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct etwatch_sample samples[2] = {make_sample(ETWATCH_TYPE_SAMPLE, 7, "a", 100),
                                            make_sample(ETWATCH_TYPE_EXIT, 7, "a", 200)};
        struct ew_buf text;
        struct etwatch_sink *sink = open_sink(ETWATCH_FORMAT_TABLE, &text, NULL);
        set_cpu(&samples[0], 5000000);
        samples[0].source = samples[1].source = rows[i].source;
        samples[1].flags &= ~(uint32_t)ETWATCH_SAMPLE_COMPLETE;
        test_row(rows[i].text);
        CHECK_EQ_INT(sink_samples(sink, samples, 2), 0);
        struct etwatch_stats stats = some_stats();
        CHECK_EQ_INT(etwatch_sink_stats(sink, &stats), 0);
        CHECK_CONTAINS(close_sink(sink, &text), rows[i].text);
        ew_buf_done(&text);
    }
}

TEST(the_command_line_is_written_only_on_request)
{
    struct etwatch_sample sample = make_sample(ETWATCH_TYPE_SAMPLE, 1, "a", 0);
    struct etwatch_sink_options options = {.size = sizeof options, .flags = ETWATCH_SINK_CMDLINE};
    sample.cmdline = "a --b";
    struct ew_buf text;
    struct etwatch_sink *sink = open_sink(ETWATCH_FORMAT_JSONL, &text, NULL);
    CHECK_EQ_INT(sink_samples(sink, &sample, 1), 0);
    CHECK(strstr(close_sink(sink, &text), "cmdline") == NULL);
    ew_buf_done(&text);
    sink = open_sink(ETWATCH_FORMAT_JSONL, &text, &options);
    CHECK_EQ_INT(sink_samples(sink, &sample, 1), 0);
    CHECK_CONTAINS(close_sink(sink, &text), "\"cmdline\":\"a --b\"");
    ew_buf_done(&text);
}

TEST(events_name_the_other_thread_by_its_role)
{
    struct etwatch_event event = {.size = sizeof event,
                                  .kind = ETWATCH_EVENT_WAKEUP,
                                  .t_ns = T0_NS,
                                  .cpu = 1,
                                  .pid = 10,
                                  .tid = 11,
                                  .next_pid = 20,
                                  .next_tid = 21,
                                  .name = "a"};
    struct ew_buf text;
    struct etwatch_sink *sink = open_sink(ETWATCH_FORMAT_JSONL, &text, NULL);
    CHECK_EQ_INT(sink_events(sink, &event, 1), 0);
    event.kind = ETWATCH_EVENT_EXIT;
    event.exit_code = 5 << 8 | 9;
    CHECK_EQ_INT(sink_events(sink, &event, 1), 0);
    CHECK_EQ_STR(
        close_sink(sink, &text),
        "{\"type\":\"event\",\"event\":\"wakeup\",\"t_ns\":1763269862000000000,\"cpu\":1,"
        "\"pid\":10,\"tid\":11,\"name\":\"a\",\"next_pid\":null,\"next_tid\":null,"
        "\"waker_pid\":20,\"waker_tid\":21,\"child_pid\":null,\"child_tid\":null,"
        "\"state\":null,\"io_wait\":null,\"wait_reason\":null,\"wait_ns\":null,\"ready_ns\":null,"
        "\"priority\":0,\"exit_code\":null,\"exit_signal\":null}\n"
        "{\"type\":\"event\",\"event\":\"exit\",\"t_ns\":1763269862000000000,\"cpu\":1,"
        "\"pid\":10,\"tid\":11,\"name\":\"a\",\"next_pid\":null,\"next_tid\":null,"
        "\"waker_pid\":null,\"waker_tid\":null,\"child_pid\":null,\"child_tid\":null,"
        "\"state\":null,\"io_wait\":null,\"wait_reason\":null,\"wait_ns\":null,\"ready_ns\":null,"
        "\"priority\":0,\"exit_code\":5,\"exit_signal\":9}\n");
    ew_buf_done(&text);
}

TEST(a_switch_has_the_waker_and_the_wait_of_the_incoming_thread)
{
    struct etwatch_event event = {.size = sizeof event,
                                  .kind = ETWATCH_EVENT_SWITCH,
                                  .tid = 11,
                                  .next_tid = 21,
                                  .wait_ns = 5,
                                  .ready_ns = UINT64_MAX,
                                  .waker_pid = 30,
                                  .waker_tid = 31,
                                  .wait_reason = "UserRequest"};
    struct ew_buf text;
    struct etwatch_sink *sink = open_sink(ETWATCH_FORMAT_JSONL, &text, NULL);
    CHECK_EQ_INT(sink_events(sink, &event, 1), 0);
    const char *output = close_sink(sink, &text);
    CHECK_CONTAINS(output, "\"waker_pid\":30,\"waker_tid\":31,");
    CHECK_CONTAINS(output, "\"wait_reason\":\"UserRequest\",\"wait_ns\":5,\"ready_ns\":null,");
    ew_buf_done(&text);
}

TEST(windows_without_a_measured_value_have_nulls)
{
    struct etwatch_window window = {
        .size = sizeof window,
        .source = ETWATCH_SOURCE_POLL,
        .flags = ETWATCH_SAMPLE_COMPLETE,
        .pid = 5,
        .start_ns = 6,
        .t_ns = T0_NS,
        .dt_ns = SECOND_NS,
        .name = "a",
        .cpu_percent = {.count = 10, .avg = 1.5, .max = 4, .p95 = 3, .p99 = 4}};
    struct ew_buf text;
    struct etwatch_sink *sink = open_sink(ETWATCH_FORMAT_JSONL, &text, NULL);
    CHECK_EQ_INT(sink_windows(sink, &window, 1), 0);
    CHECK_EQ_STR(close_sink(sink, &text),
                 "{\"type\":\"window\",\"pid\":5,\"start_ns\":6,\"name\":\"a\","
                 "\"t_ns\":1763269862000000000,\"dt_ns\":1000000000,\"source\":\"poll\","
                 "\"complete\":true,\"intervals\":10,\"cpu_percent_avg\":1.500,"
                 "\"cpu_percent_max\":4.000,\"cpu_percent_p95\":3.000,\"cpu_percent_p99\":4.000,"
                 "\"rss_bytes_avg\":null,\"rss_bytes_max\":null,\"rss_bytes_p95\":null,"
                 "\"rss_bytes_p99\":null}\n");
    ew_buf_done(&text);
    sink = open_sink(ETWATCH_FORMAT_CSV, &text, NULL);
    CHECK_EQ_INT(sink_windows(sink, &window, 1), 0);
    CHECK_CONTAINS(close_sink(sink, &text), "\nwindow,5,6,a,1763269862000000000,1000000000,poll,"
                                            "true,10,1.500,4.000,3.000,4.000,,,,\n");
    ew_buf_done(&text);
}

static int refuse(void *ctx, const void *bytes, size_t len)
{
    (void)bytes;
    (void)len;
    ++*(int *)ctx;
    return ETWATCH_EOS;
}

TEST(after_a_failed_write_every_call_fails_and_nothing_is_written)
{
    int calls = 0;
    struct etwatch_sink *sink = NULL;
    struct etwatch_sample sample = make_sample(ETWATCH_TYPE_SAMPLE, 1, "a", 0);
    CHECK_EQ_INT(etwatch_sink_new(ETWATCH_FORMAT_JSONL, refuse, &calls, NULL, &sink, NULL), 0);
    CHECK_EQ_INT(sink_samples(sink, &sample, 1), 0);
    CHECK_EQ_INT(etwatch_sink_flush(sink), ETWATCH_EOS);
    CHECK_EQ_INT(sink_samples(sink, &sample, 1), ETWATCH_EOS);
    CHECK_EQ_INT(etwatch_sink_flush(sink), ETWATCH_EOS);
    CHECK_EQ_INT(calls, 1);
    etwatch_sink_free(sink);
}

static int make_and_feed(void *ctx)
{
    uint32_t format = *(uint32_t *)ctx;
    struct ew_buf text;
    struct etwatch_sink *sink = NULL;
    struct etwatch_stats stats = some_stats();
    struct etwatch_sample sample = make_sample(ETWATCH_TYPE_SAMPLE, 1, "a", 100);
    set_cpu(&sample, 1000000);
    ew_buf_init(&text, 0, NULL, NULL);
    int rc = etwatch_sink_new(format, keep, &text, &plain, &sink, NULL);
    for (int i = 0; i < 40 && rc == 0; i++) {
        sample.pid++;
        rc = sink_samples(sink, &sample, 1);
    }
    if (rc == 0)
        rc = etwatch_sink_stats(sink, &stats);
    if (rc == 0)
        rc = etwatch_sink_flush(sink);
    etwatch_sink_free(sink);
    ew_buf_done(&text);
    return rc;
}

TEST(running_out_of_memory_is_reported_by_every_format)
{
    for (uint32_t format = ETWATCH_FORMAT_TABLE; format <= ETWATCH_FORMAT_CSV; format++)
        TORTURE(make_and_feed, &format);
}

struct batch {
    struct etwatch_sink *sink;
    struct etwatch_sample sample;
};

static void put_batch(void *ctx)
{
    struct batch *batch = ctx;
    for (int i = 0; i < 100; i++)
        (void)sink_samples(batch->sink, &batch->sample, 1);
    (void)etwatch_sink_flush(batch->sink);
}

static int discard(void *ctx, const void *bytes, size_t len)
{
    (void)ctx;
    (void)bytes;
    (void)len;
    return 0;
}

TEST(a_steady_stream_allocates_nothing)
{
    for (uint32_t format = ETWATCH_FORMAT_JSONL; format <= ETWATCH_FORMAT_CSV; format++) {
        struct batch batch = {.sample = make_sample(ETWATCH_TYPE_SAMPLE, 1, "a", 0)};
        set_cpu(&batch.sample, 12345);
        CHECK_EQ_INT(etwatch_sink_new(format, discard, NULL, NULL, &batch.sink, NULL), 0);
        put_batch(&batch);
        CHECK_EQ_UINT(test_count_allocations(put_batch, &batch), 0);
        etwatch_sink_free(batch.sink);
    }
}
