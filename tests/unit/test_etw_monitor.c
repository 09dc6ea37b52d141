/* SPDX-License-Identifier: MIT */
/*
 * The whole path through the monitor, in real time: events of the emulator become samples of the
 * source etw. If the session ends for good or cannot be opened, the monitor falls back to polling
 * and reports why.
 */
#include "test.h"

#include <string.h>

#include <etwatch/metrics.h>

#include "etw_emulator.h"
#include "monitor/monitor.h"
#include "source/etw/consumer.h"
#include "system.h"

struct seen {
    uint64_t lost;
    uint32_t last_source;
};

static void on_samples(void *ctx, const struct etwatch_sample *samples, size_t count)
{
    struct seen *seen = ctx;
    for (size_t i = 0; i < count; i++)
        seen->last_source = samples[i].source;
}

static void on_loss(void *ctx, const struct etwatch_loss *loss)
{
    ((struct seen *)ctx)->lost += loss->count;
}

static struct etwatch_monitor *new_monitor(struct seen *seen, const struct ew_etw_config *etw,
                                           uint32_t flags)
{
    struct etwatch_monitor *monitor = NULL;
    struct etwatch_config config = {
        .size = sizeof config,
        .flags = ETWATCH_CONFIG_ALL | ETWATCH_CONFIG_NO_BUDGET | flags,
        .hz = 100,
        .latency_ms = 20,
        .callbacks = {.size = sizeof config.callbacks,
                      .on_samples = on_samples,
                      .on_loss = on_loss,
                      .ctx = seen},
    };
    CHECK_EQ_INT(etwatch_monitor_new(&config, &monitor, NULL), 0);
    monitor->etw = etw;
    return monitor;
}

static struct etwatch_meta meta_of(struct etwatch_monitor *monitor)
{
    struct etwatch_meta meta = {.size = sizeof meta};
    CHECK_EQ_INT(etwatch_monitor_meta(monitor, &meta), 0);
    return meta;
}

static uint32_t flags_for(const char *const *metrics, const char *const *alerts)
{
    struct etw_emulator_session session = {0};
    struct etw_emulator *emulator =
        etw_emulator_new(&(struct etw_emulator_config){.os_build = 19045, .cpu_count = 2});
    struct ew_etw_config etw = {.api = etw_emulator_api(emulator)};
    struct etwatch_monitor *monitor = NULL;
    struct etwatch_config config = {.size = sizeof config,
                                    .flags = ETWATCH_CONFIG_ALL | ETWATCH_CONFIG_NO_BUDGET,
                                    .alerts = alerts,
                                    .alert_count = alerts != NULL ? 1 : 0};
    for (uint32_t i = 0; metrics != NULL && metrics[i] != NULL; i++) {
        struct etwatch_metric_set named = {{0}};
        CHECK_EQ_INT(etwatch_metrics_named(metrics[i], &named), 0);
        etwatch_metric_set_union(&config.metrics, &named);
    }
    CHECK_EQ_INT(etwatch_monitor_new(&config, &monitor, NULL), 0);
    monitor->etw = &etw;
    CHECK_EQ_INT(etwatch_monitor_open(monitor, NULL), 0);
    CHECK(etw_emulator_session(emulator, "etwatch-watch", &session));
    CHECK_EQ_INT(etwatch_monitor_stop(monitor), 0);
    etwatch_monitor_free(monitor);
    etw_emulator_free(emulator);
    return session.enable_flags;
}

TEST(only_the_kernel_events_that_the_metrics_need_are_enabled)
{
    enum {
        BASE = 0x1 | 0x2 | 0x8 | 0x10, /* processes, threads, counters, switches */
        DISK = 0x100 | 0x400,
        READY = 0x800,
        HARD_FAULTS = 0x2000,
        NETWORK = 0x10000,
        FILES = 0x4000000,
        ALL = BASE | DISK | READY | HARD_FAULTS | NETWORK | FILES,
    };
    static const char *const alert[] = {"disk_read_bytes>1MB"};
#define METRICS(...) ((const char *const[]){__VA_ARGS__, NULL})
    CHECK_EQ_UINT(flags_for(NULL, NULL), ALL);
    CHECK_EQ_UINT(flags_for(METRICS("all"), NULL), ALL);
    CHECK_EQ_UINT(flags_for(METRICS("cpu_ns"), NULL), BASE);
    CHECK_EQ_UINT(flags_for(METRICS("cpu"), NULL), BASE | READY);
    CHECK_EQ_UINT(flags_for(METRICS("memory"), NULL), BASE | HARD_FAULTS);
    CHECK_EQ_UINT(flags_for(METRICS("handles", "net_sent_bytes"), NULL), BASE | NETWORK);
    CHECK_EQ_UINT(flags_for(METRICS("cpu_ns"), alert), BASE | DISK);
}

TEST(events_of_a_session_become_samples)
{
    struct seen seen = {0};
    struct etw_emulator *emulator = etw_emulator_new(&(struct etw_emulator_config){
        .cpu_count = 2, .real_time = true, .generate = 10000, .rate_hz = 100000});
    struct ew_etw_config etw = {.api = etw_emulator_api(emulator), .flush_ms = 5};
    struct etwatch_monitor *monitor = new_monitor(&seen, &etw, 0);
    CHECK_EQ_INT(etwatch_monitor_open(monitor, NULL), 0);
    CHECK_EQ_UINT(meta_of(monitor).source, ETWATCH_SOURCE_ETW);
    CHECK_EQ_STR(meta_of(monitor).fallback, "");
    while (!etw_emulator_done(emulator))
        CHECK(etwatch_monitor_poll(monitor, 50) >= 0);
    CHECK(etwatch_monitor_poll(monitor, 50) >= 0);
    CHECK_EQ_INT(etwatch_monitor_stop(monitor), 0);
    struct etwatch_stats stats = {.size = sizeof stats};
    CHECK_EQ_INT(etwatch_monitor_stats(monitor, &stats), 0);
    CHECK_EQ_UINT(stats.events, 20000);
    CHECK_EQ_UINT(stats.lost, 0);
    CHECK_EQ_UINT(stats.undecoded, 0);
    struct etw_emulator_counts counts;
    etw_emulator_counts(emulator, &counts);
    CHECK_EQ_UINT(counts.sessions, 0);
    etwatch_monitor_free(monitor);
    etw_emulator_free(emulator);
}

/* ------------------------------------------------------------- the session's buffers */

/* Runs until the session has delivered everything; returns what the monitor counted. */
static struct etwatch_stats watch_all(struct etw_emulator *emulator, struct ew_etw_config *etw,
                                      struct seen *seen)
{
    struct etwatch_stats stats = {.size = sizeof stats};
    etw->api = etw_emulator_api(emulator);
    struct etwatch_monitor *monitor = new_monitor(seen, etw, 0);
    CHECK_EQ_INT(etwatch_monitor_open(monitor, NULL), 0);
    while (!etw_emulator_done(emulator))
        CHECK(etwatch_monitor_poll(monitor, 50) >= 0);
    CHECK_EQ_INT(etwatch_monitor_stop(monitor), 0);
    CHECK_EQ_INT(etwatch_monitor_stats(monitor, &stats), 0);
    etwatch_monitor_free(monitor);
    return stats;
}

TEST(no_event_is_lost_in_the_buffers_of_the_session)
{
    for (int whole = 0; whole < 2; whole++) {
        struct seen seen = {0};
        struct etw_emulator_counts counts;
        test_row(whole ? "whole buffers" : "event by event");
        struct etw_emulator *emulator =
            etw_emulator_new(&(struct etw_emulator_config){.cpu_count = 4,
                                                           .real_time = true,
                                                           .session_buffers = true,
                                                           .offers_buffers = whole != 0,
                                                           .generate = 20000,
                                                           .rate_hz = 100000});
        struct etwatch_stats stats = watch_all(emulator, &(struct ew_etw_config){0}, &seen);
        etw_emulator_counts(emulator, &counts);
        CHECK_EQ_UINT(stats.events, 80000);
        CHECK_EQ_UINT(stats.lost + seen.lost, 0);
        CHECK_EQ_INT(counts.buffers > 0, whole);
        etw_emulator_free(emulator);
    }
}

TEST(events_without_a_free_buffer_are_counted_once)
{
    for (int whole = 0; whole < 2; whole++) {
        struct seen seen = {0};
        struct etw_emulator_counts counts;
        struct ew_etw_config etw = {.session = {.min_buffers = 8}};
        test_row(whole ? "whole buffers" : "event by event");
        struct etw_emulator *emulator =
            etw_emulator_new(&(struct etw_emulator_config){.cpu_count = 4,
                                                           .real_time = true,
                                                           .session_buffers = true,
                                                           .offers_buffers = whole != 0,
                                                           .pause_ms = 20,
                                                           .generate = 25000,
                                                           .rate_hz = 500000});
        struct etwatch_stats stats = watch_all(emulator, &etw, &seen);
        etw_emulator_counts(emulator, &counts);
        CHECK(counts.lost > 0);
        CHECK_EQ_UINT(stats.lost, counts.lost);
        CHECK_EQ_UINT(seen.lost, counts.lost);
        CHECK_EQ_UINT(stats.events + stats.lost, 100000);
        etw_emulator_free(emulator);
    }
}

TEST(events_that_arrive_too_late_are_counted)
{
    struct seen seen = {0};
    struct etw_emulator_counts counts;
    /* The events of one CPU arrive long after those of the others for the same time. */
    struct etw_emulator *emulator =
        etw_emulator_new(&(struct etw_emulator_config){.cpu_count = 4,
                                                       .real_time = true,
                                                       .session_buffers = true,
                                                       .offers_buffers = true,
                                                       .pause_ms = 50,
                                                       .generate = 1500,
                                                       .rate_hz = 40000});
    struct ew_etw_config etw = {.flush_ms = 20, .session = {.min_buffers = 512}};
    struct etwatch_stats stats = watch_all(emulator, &etw, &seen);
    etw_emulator_counts(emulator, &counts);
    CHECK_EQ_UINT(counts.lost, 0);
    CHECK_EQ_UINT(stats.events, 6000);
    CHECK_EQ_UINT(stats.lost + seen.lost, 0);
    CHECK(stats.late > 0);
    etw_emulator_free(emulator);
}

/* Waits until the monitor polls. */
static void wait_for_polling(struct etwatch_monitor *monitor)
{
    for (int i = 0; i < 2000 && meta_of(monitor).source != ETWATCH_SOURCE_POLL; i++)
        CHECK(etwatch_monitor_poll(monitor, 20) >= 0);
    CHECK_EQ_UINT(meta_of(monitor).source, ETWATCH_SOURCE_POLL);
}

TEST(after_its_session_has_ended_for_good_the_monitor_polls)
{
    struct seen seen = {0};
    struct etw_emulator *emulator =
        etw_emulator_new(&(struct etw_emulator_config){.cpu_count = 2,
                                                       .real_time = true,
                                                       .generate = 100000,
                                                       .rate_hz = 100000,
                                                       .stop_after = 500,
                                                       .stop_times = 4});
    struct ew_etw_config etw = {.api = etw_emulator_api(emulator), .flush_ms = 5};
    struct etwatch_monitor *monitor = new_monitor(&seen, &etw, 0);
    CHECK_EQ_INT(etwatch_monitor_open(monitor, NULL), 0);
    wait_for_polling(monitor);
    CHECK_CONTAINS(meta_of(monitor).fallback, "stopped by another program; polling instead");
    CHECK_EQ_UINT(seen.lost, 3);
    for (int i = 0; i < 20; i++)
        CHECK(etwatch_monitor_poll(monitor, 20) >= 0);
    CHECK_EQ_UINT(seen.last_source, ETWATCH_SOURCE_POLL);
    CHECK_EQ_INT(etwatch_monitor_stop(monitor), 0);
    etwatch_monitor_free(monitor);
    struct etw_emulator_counts counts;
    etw_emulator_counts(emulator, &counts);
    CHECK_EQ_UINT(counts.sessions, 0);
    etw_emulator_free(emulator);
}

TEST(without_a_session_the_monitor_polls_or_explains_why_not)
{
    static const struct {
        struct etw_emulator_config emulated;
        int code;
        const char *words;
    } rows[] = {
        {{.no_rights = true}, ETWATCH_EPERM, "access is denied"},
        {{.max_system_loggers = 2}, ETWATCH_ELIMIT, "all system loggers"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct seen seen = {0};
        struct etwatch_error_info error = {.size = sizeof error};
        struct etw_emulator *emulator = etw_emulator_new(&rows[i].emulated);
        struct ew_etw_config etw = {.api = etw_emulator_api(emulator)};
        struct etwatch_monitor *monitor = new_monitor(&seen, &etw, 0);
        CHECK_EQ_INT(etwatch_monitor_open(monitor, NULL), 0);
        CHECK_EQ_UINT(meta_of(monitor).source, ETWATCH_SOURCE_POLL);
        CHECK_CONTAINS(meta_of(monitor).fallback, rows[i].words);
        etwatch_monitor_free(monitor);
        monitor = new_monitor(&seen, &etw, ETWATCH_CONFIG_NO_FALLBACK);
        CHECK_EQ_INT(etwatch_monitor_open(monitor, &error), rows[i].code);
        CHECK_CONTAINS(error.message, rows[i].words);
        CHECK(error.fix[0] != '\0');
        etwatch_monitor_free(monitor);
        etw_emulator_free(emulator);
    }
}

TEST(another_session_is_read_by_name)
{
    struct etwatch_error_info error = {.size = sizeof error};
    struct etw_emulator *emulator = etw_emulator_new(&(struct etw_emulator_config){
        .cpu_count = 2, .real_time = true, .generate = 1000, .rate_hz = 100000});
    struct ew_etw_config etw = {.api = etw_emulator_api(emulator), .flush_ms = 5};
    struct etwatch_config config = {
        .size = sizeof config, .flags = ETWATCH_CONFIG_ALL, .session = "NT Kernel Logger"};
    struct etwatch_monitor *monitor = NULL;
    CHECK_EQ_INT(etwatch_monitor_new(&config, &monitor, NULL), 0);
    monitor->etw = &etw;
    /* Selected by name: no other source may replace it. */
    CHECK_EQ_INT(etwatch_monitor_open(monitor, &error), ETWATCH_ENOENT);
    CHECK_CONTAINS(error.message, "NT Kernel Logger");
    etw_emulator_add(emulator, "NT Kernel Logger", 0x100, 0x13);
    CHECK_EQ_INT(etwatch_monitor_open(monitor, NULL), 0);
    CHECK_EQ_UINT(meta_of(monitor).source, ETWATCH_SOURCE_ETW);
    struct etwatch_metric_set available = meta_of(monitor).available;
    CHECK(etwatch_metric_set_has(&available, ETWATCH_M_cpu_ns));
    CHECK(!etwatch_metric_set_has(&available, ETWATCH_M_disk_read_bytes));
    while (!etw_emulator_done(emulator))
        CHECK(etwatch_monitor_poll(monitor, 20) >= 0);
    CHECK_EQ_INT(etwatch_monitor_stop(monitor), 0);
    struct etwatch_stats stats = {.size = sizeof stats};
    CHECK_EQ_INT(etwatch_monitor_stats(monitor, &stats), 0);
    CHECK_EQ_UINT(stats.events, 2000);
    etwatch_monitor_free(monitor);
    struct etw_emulator_counts counts;
    etw_emulator_counts(emulator, &counts);
    CHECK_EQ_UINT(counts.sessions, 1);
    CHECK_EQ_UINT(counts.stops + counts.flushes, 0);
    config.source = ETWATCH_SOURCE_POLL;
    CHECK_EQ_INT(etwatch_monitor_new(&config, &monitor, &error), ETWATCH_EINVAL);
    CHECK_CONTAINS(error.message, "session");
    etw_emulator_free(emulator);
}
