/* SPDX-License-Identifier: MIT */
/* The tables of the program (summary, screen), and windows. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <etwatch/window.h>

#include "base/buf.h"
#include "cli/device_summary.c"
#include "cli/process_table.c"
#include "cli/top_list.c"
#include "cli/top_screen.c"
#include "sample_maker.h"
#include "test.h"

/* These files use the same names for their own helpers. */
#define shown summary_shown
#define SHOWN_COUNT SUMMARY_SHOWN_COUNT
#define put_line summary_put_line
#define is_thread summary_is_thread
#include "cli/summary.c"
#undef shown
#undef SHOWN_COUNT
#undef put_line
#undef is_thread

/* The functions that summary.c calls in other files, without their operating system code. */
const char *ew_signals_name(int number)
{
    return number == 9 ? "SIGKILL" : "SIG?";
}

void ew_cli_watch_put_cost(struct ew_buf *out, const struct etwatch_stats *stats)
{
    ew_buf_text(out, "cost, lost: ");
    ew_buf_u64(out, stats->lost);
}

static struct etwatch_sample busy(uint32_t type, uint32_t pid, uint64_t at_ms, uint64_t cpu_ms)
{
    struct etwatch_sample sample = make_sample(type, pid, "worker", at_ms);
    set_cpu(&sample, cpu_ms * 1000000);
    set_memory(&sample, 1 << 20);
    return sample;
}

TEST(the_summary_shows_totals_threads_and_exit_statuses)
{
    struct ew_summary summary;
    struct ew_buf out;
    struct etwatch_stats stats = {.size = sizeof stats, .duration_ns = 1500000000, .lost = 3};
    CHECK_EQ_INT(ew_summary_init(&summary), 0);
    struct etwatch_sample sample = busy(ETWATCH_TYPE_START, 10, 0, 0);
    CHECK_EQ_INT(ew_summary_add(&summary, &sample), 0);
    sample = busy(ETWATCH_TYPE_SAMPLE, 10, 100, 60);
    CHECK_EQ_INT(ew_summary_add(&summary, &sample), 0);
    sample = busy(ETWATCH_TYPE_THREAD, 10, 100, 60);
    sample.tid = 11;
    sample.thread_name = "pool";
    CHECK_EQ_INT(ew_summary_add(&summary, &sample), 0);
    sample.tid = 12;
    sample.cpu_ns = 0;
    CHECK_EQ_INT(ew_summary_add(&summary, &sample), 0);
    sample = busy(ETWATCH_TYPE_EXIT, 10, 200, 70);
    sample.dt_ns = 200000000;
    sample.exit_signal = 9;
    etwatch_metric_set_add(&sample.has, ETWATCH_M_exit_signal);
    CHECK_EQ_INT(ew_summary_add(&summary, &sample), 0);
    sample = busy(ETWATCH_TYPE_START, 20, 100, 0);
    CHECK_EQ_INT(ew_summary_add(&summary, &sample), 0);
    sample = busy(ETWATCH_TYPE_THREAD, 20, 200, 1);
    sample.tid = 20;
    sample.thread_name = "lonely";
    CHECK_EQ_INT(ew_summary_add(&summary, &sample), 0);
    ew_buf_init(&out, 0, NULL, NULL);
    CHECK_EQ_INT(ew_summary_write(&summary, &out, "cmd", "ended by SIGKILL", &stats, 0, false), 0);
    ew_buf_char(&out, '\0');
    CHECK_CONTAINS(out.data, "cmd: ended by SIGKILL, wall 1.50 s, CPU 70.0 ms, 2 processes\n");
    CHECK_CONTAINS(out.data, "10  worker   200 ms  35.0  70.0 ms");
    CHECK_CONTAINS(out.data, "SIGKILL\n");
    CHECK_CONTAINS(out.data, "11    pool   100 ms  60.0  60.0 ms");
    CHECK_CONTAINS(out.data, "alive\n");
    CHECK(strstr(out.data, "lonely") == NULL); /* the only thread of its process */
    CHECK_CONTAINS(out.data, "\nmonitor: cost, lost: 3\n");
    ew_buf_done(&out);
    ew_summary_done(&summary);
}

TEST(the_summary_excludes_the_time_before_the_child_was_released)
{
    struct ew_summary summary;
    struct ew_buf out;
    struct etwatch_stats stats = {.size = sizeof stats, .duration_ns = 1500000000};
    CHECK_EQ_INT(ew_summary_init(&summary), 0);
    struct etwatch_sample sample = busy(ETWATCH_TYPE_EXIT, 10, 400, 50);
    sample.dt_ns = 300000000;
    summary.child_pid = 10;
    summary.released_ns = sample.t_ns - 100000000;
    CHECK_EQ_INT(ew_summary_add(&summary, &sample), 0);
    sample.pid = 20;
    CHECK_EQ_INT(ew_summary_add(&summary, &sample), 0);
    ew_buf_init(&out, 0, NULL, NULL);
    CHECK_EQ_INT(ew_summary_write(&summary, &out, "cmd", "exit status 0", &stats, 0, false), 0);
    ew_buf_char(&out, '\0');
    CHECK_CONTAINS(out.data, "cmd: exit status 0, wall 100 ms, ");
    CHECK_CONTAINS(out.data, "10  worker   100 ms  50.0");
    CHECK_CONTAINS(out.data, "20  worker   300 ms  16.7");
    ew_buf_done(&out);
    ew_summary_done(&summary);
}

TEST(ten_thousand_processes_make_a_short_summary_that_adds_up)
{
    struct ew_summary summary;
    struct ew_buf out;
    struct etwatch_stats stats = {.size = sizeof stats, .duration_ns = 1000000000};
    CHECK_EQ_INT(ew_summary_init(&summary), 0);
    for (uint32_t pid = 1; pid <= 10000; pid++) {
        struct etwatch_sample sample = busy(ETWATCH_TYPE_START, pid, pid, 0);
        CHECK_EQ_INT(ew_summary_add(&summary, &sample), 0);
        sample = busy(ETWATCH_TYPE_EXIT, pid, pid + 1, 1);
        CHECK_EQ_INT(ew_summary_add(&summary, &sample), 0);
    }
    ew_buf_init(&out, 0, NULL, NULL);
    CHECK_EQ_INT(ew_summary_write(&summary, &out, "cmd", "exit status 0", &stats, 0, false), 0);
    ew_buf_char(&out, '\0');
    CHECK_CONTAINS(out.data, "CPU 10.0 s, 10000 processes\n");
    CHECK_CONTAINS(out.data, "and 9940 more processes with 9.94 s of CPU\n");
    size_t lines = 0;
    for (const char *at = out.data; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    CHECK_EQ_UINT(lines, 60 + 6);
    ew_buf_done(&out);
    ew_summary_done(&summary);
}

TEST(the_screen_has_no_more_lines_and_columns_than_requested)
{
    struct etwatch_rollup *rollup;
    struct ew_buf out;
    struct ew_screen screen = {.columns = 50, .rows = 12, .help = true};
    struct etwatch_stats stats = {.size = sizeof stats,
                                  .source = ETWATCH_SOURCE_EBPF,
                                  .processes = 40,
                                  .self_kernel_percent = -1};
    const struct etwatch_rollup_options options = {.size = sizeof options, .max_rows = 64};
    CHECK_EQ_INT(etwatch_rollup_new(&options, &rollup), 0);
    for (uint32_t pid = 1; pid <= 40; pid++) {
        struct etwatch_sample sample = busy(ETWATCH_TYPE_SAMPLE, pid, 100, pid);
        CHECK_EQ_INT(etwatch_rollup_add(rollup, &sample), 0);
    }
    ew_buf_init(&out, 0, NULL, NULL);
    CHECK_EQ_INT(ew_screen_write(&screen, rollup, &stats, 100000000, &out), 0);
    ew_buf_char(&out, '\0');
    size_t lines = 0;
    for (const char *at = out.data; *at != '\0'; at = strchr(at, '\n') + 1, lines++)
        CHECK((size_t)(strchr(at, '\n') - at) <= 50);
    CHECK_EQ_UINT(lines, 11);
    CHECK_CONTAINS(out.data, "etwatch top, 2025-11-16 05:11:02 UTC, source ebpf");
    CHECK_CONTAINS(out.data, "\n     40   40.0");
    ew_buf_done(&out);
    ew_screen_list_done(&screen.list);
    etwatch_rollup_free(rollup);
}

static struct etwatch_sink *open_jsonl(struct ew_buf *text)
{
    struct etwatch_sink *sink = NULL;
    ew_buf_init(text, 0, NULL, NULL);
    CHECK_EQ_INT(etwatch_sink_new(ETWATCH_FORMAT_JSONL, keep, text, NULL, &sink, NULL), 0);
    return sink;
}

static int put_window(void *sink, const struct etwatch_window *window)
{
    const struct etwatch_windows one = etwatch_windows_of(window, 1);
    return etwatch_sink_windows(sink, &one);
}

static struct etwatch_aggregator *open_windows(struct etwatch_sink *sink)
{
    struct etwatch_aggregator *windows = NULL;
    const struct etwatch_aggregator_options options = {
        .size = sizeof options, .length_ns = 1000000000, .on_window = put_window, .ctx = sink};
    CHECK_EQ_INT(etwatch_aggregator_new(&options, &windows, NULL), 0);
    return windows;
}

TEST(a_window_counts_idle_intervals_as_zero)
{
    struct ew_buf text;
    struct etwatch_sink *sink = open_jsonl(&text);
    struct etwatch_aggregator *windows = open_windows(sink);
    /* 100 % in 2 of the 10 intervals, then a sample that ends the window. */
    static const uint64_t at_ms[] = {100, 500, 1200};
    for (size_t i = 0; i < 3; i++) {
        struct etwatch_sample sample = busy(ETWATCH_TYPE_SAMPLE, 7, at_ms[i], 100);
        CHECK_EQ_INT(etwatch_aggregator_add(windows, &sample), 0);
    }
    CHECK_EQ_INT(etwatch_sink_flush(sink), 0);
    ew_buf_char(&text, '\0');
    CHECK_CONTAINS(text.data,
                   "\"intervals\":10,\"cpu_percent_avg\":20.000,\"cpu_percent_max\":100.000");
    CHECK_CONTAINS(text.data, "\"rss_bytes_avg\":1048576.000");
    CHECK_CONTAINS(text.data, "\"t_ns\":1763269863000000000,\"dt_ns\":1000000000");
    CHECK(strchr(strchr(text.data, '\n') + 1, '{') == NULL);
    text.len--;
    CHECK_EQ_INT(etwatch_aggregator_end(windows), 0);
    CHECK_EQ_INT(etwatch_sink_flush(sink), 0);
    ew_buf_char(&text, '\0');
    CHECK_CONTAINS(text.data,
                   "\"dt_ns\":200000000,\"source\":\"ebpf\",\"complete\":true,\"intervals\":2,"
                   "\"cpu_percent_avg\":50.000");
    etwatch_sink_free(sink);
    etwatch_aggregator_free(windows);
    ew_buf_done(&text);
}

TEST(a_process_that_ended_is_not_idle_for_the_rest_of_the_window)
{
    struct ew_buf text;
    struct etwatch_sink *sink = open_jsonl(&text);
    struct etwatch_aggregator *windows = open_windows(sink);
    struct etwatch_sample sample = busy(ETWATCH_TYPE_SAMPLE, 7, 100, 100);
    CHECK_EQ_INT(etwatch_aggregator_add(windows, &sample), 0);
    sample = busy(ETWATCH_TYPE_EXIT, 7, 300, 100);
    CHECK_EQ_INT(etwatch_aggregator_add(windows, &sample), 0);
    sample = busy(ETWATCH_TYPE_SAMPLE, 8, 2000, 100);
    CHECK_EQ_INT(etwatch_aggregator_add(windows, &sample), 0);
    CHECK_EQ_INT(etwatch_sink_flush(sink), 0);
    ew_buf_char(&text, '\0');
    CHECK_CONTAINS(text.data, "\"pid\":7,");
    CHECK_CONTAINS(text.data, "\"intervals\":3,\"cpu_percent_avg\":33.333");
    etwatch_sink_free(sink);
    etwatch_aggregator_free(windows);
    ew_buf_done(&text);
}

TEST(a_window_with_an_incomplete_sample_is_incomplete)
{
    struct ew_buf text;
    struct etwatch_sink *sink = open_jsonl(&text);
    struct etwatch_aggregator *windows = open_windows(sink);
    struct etwatch_sample sample = busy(ETWATCH_TYPE_SAMPLE, 7, 100, 100);
    sample.flags &= ~(uint32_t)ETWATCH_SAMPLE_COMPLETE;
    CHECK_EQ_INT(etwatch_aggregator_add(windows, &sample), 0);
    CHECK_EQ_INT(etwatch_aggregator_end(windows), 0);
    CHECK_EQ_INT(etwatch_sink_flush(sink), 0);
    ew_buf_char(&text, '\0');
    CHECK_CONTAINS(text.data, "\"complete\":false");
    etwatch_sink_free(sink);
    etwatch_aggregator_free(windows);
    ew_buf_done(&text);
}

static int count_window(void *ctx, const struct etwatch_window *window)
{
    struct etwatch_window *last = ctx;
    *last = *window;
    CHECK(etwatch_metric_set_has(&window->more, ETWATCH_M_io_write_bytes) &&
          etwatch_metric_set_has(&window->more, ETWATCH_M_handles));
    CHECK_EQ_UINT(etwatch_metric_set_count(&window->more), 2);
    CHECK_NEAR(window->more_spreads[0].avg, 50.0, 1e-9); /* 500 in one of ten intervals */
    CHECK(isnan(window->more_spreads[0].max));
    CHECK_EQ_UINT(window->more_spreads[1].count, 1);
    CHECK_NEAR(window->more_spreads[1].max, 9.0, 1e-9);
    return 0;
}

TEST(a_window_has_the_selected_values_of_the_selected_metrics)
{
    struct etwatch_aggregator *windows = NULL;
    struct etwatch_window last = {0};
    const struct etwatch_window_metric metrics[] = {
        {ETWATCH_M_handles, 0},
        {ETWATCH_M_io_write_bytes, ETWATCH_WINDOW_AVG},
        {ETWATCH_M_rss_bytes, ETWATCH_WINDOW_MAX},
    };
    struct etwatch_aggregator_options options = {.size = sizeof options,
                                                 .length_ns = 1000000000,
                                                 .metrics = metrics,
                                                 .metric_count = 3,
                                                 .on_window = count_window,
                                                 .ctx = &last};
    CHECK_EQ_INT(etwatch_aggregator_new(&options, &windows, NULL), 0);
    struct etwatch_sample sample = busy(ETWATCH_TYPE_SAMPLE, 7, 100, 100);
    sample.io_write_bytes = 500;
    sample.handles = 9;
    etwatch_metric_set_add(&sample.has, ETWATCH_M_io_write_bytes);
    etwatch_metric_set_add(&sample.has, ETWATCH_M_handles);
    CHECK_EQ_INT(etwatch_aggregator_add(windows, &sample), 0);
    sample = busy(ETWATCH_TYPE_SAMPLE, 7, 1200, 100);
    CHECK_EQ_INT(etwatch_aggregator_add(windows, &sample), 0);
    CHECK_EQ_UINT(last.pid, 7);
    CHECK(isnan(last.rss_bytes.avg) && last.rss_bytes.max > 0);
    CHECK_EQ_UINT(etwatch_aggregator_dropped(windows), 0);
    etwatch_aggregator_free(windows);
}

TEST(windows_reject_wrong_options)
{
    struct etwatch_aggregator *windows = NULL;
    struct etwatch_error_info error = {.size = sizeof error};
    const struct etwatch_window_metric mask = {ETWATCH_M_affinity, 0}, none = {1000, 0};
    struct etwatch_aggregator_options options = {.size = sizeof options, .on_window = put_window};
    CHECK_EQ_INT(etwatch_aggregator_new(&options, &windows, &error), ETWATCH_EINVAL);
    options.length_ns = 1;
    options.metric_count = 1;
    options.metrics = &mask;
    CHECK_EQ_INT(etwatch_aggregator_new(&options, &windows, &error), ETWATCH_EINVAL);
    CHECK_CONTAINS(error.message, "affinity");
    options.metrics = &none;
    CHECK_EQ_INT(etwatch_aggregator_new(&options, &windows, &error), ETWATCH_EINVAL);
    options.size = 0;
    CHECK_EQ_INT(etwatch_aggregator_new(&options, &windows, &error), ETWATCH_EINVAL);
    CHECK(windows == NULL);
    struct etwatch_sample unset = {0};
    CHECK_EQ_INT(etwatch_aggregator_add(NULL, &unset), ETWATCH_EINVAL);
    etwatch_aggregator_free(NULL);
}
