/* SPDX-License-Identifier: MIT */
/*
 * The whole path through the monitor, in real time: events of the emulator become samples of the
 * source etw. If the session ends for good or cannot be opened, the monitor falls back to polling
 * and reports why.
 */
#include "test.h"

#include <stdatomic.h>
#include <string.h>
#ifndef _WIN32
#include <unistd.h>
#endif

#include <etwatch/metrics.h>

#include "etw_emulator.h"
#include "monitor/monitor.h"
#include "source/etw/consumer.h"
#include "system.h"

struct seen {
    uint64_t lost;
    uint32_t last_source;
};

static void on_samples(void *ctx, const struct etwatch_samples *batch)
{
    struct seen *seen = ctx;
    for (size_t i = 0; i < batch->count; i++)
        seen->last_source = etwatch_sample_at(batch, i)->source;
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
    };
    struct etwatch_callbacks callbacks = {
        .size = sizeof callbacks, .ctx = seen, .on_samples = on_samples, .on_loss = on_loss};
    CHECK_EQ_INT(etwatch_monitor_new(&config, &callbacks, &monitor, NULL), 0);
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
    CHECK_EQ_INT(etwatch_monitor_new(&config, NULL, &monitor, NULL), 0);
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
        /* processes, threads, counters, switches; no description of the machine */
        BASE = 0x1 | 0x2 | 0x8 | 0x10 | 0x10000000,
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
        CHECK(etwatch_monitor_poll(monitor, 50, NULL) >= 0);
    CHECK(etwatch_monitor_poll(monitor, 50, NULL) >= 0);
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

/* ------------------------------------------------------- a sensor next to GPU events */

static bool sensor_probe(const struct ew_sensor_config *config, struct ew_error *reterr)
{
    (void)config;
    (void)reterr;
    return true;
}

static int sensor_open(const struct ew_sensor_config *config, void **ret_state,
                       struct ew_error *reterr)
{
    (void)config;
    (void)reterr;
    *ret_state = NULL;
    return 0;
}

static void sensor_close(void *state)
{
    (void)state;
}

/* This process uses a GPU all the time, from then on. */
static atomic_bool sensor_begins;

static int sensor_read(void *state, uint64_t now_ns, struct ew_sensor_batch *batch,
                       struct ew_error *reterr)
{
    struct ew_device_reading *reading = ew_sensor_add_device(batch);
    struct ew_device_use *use = NULL;
    (void)state;
    (void)reterr;
    if (reading == NULL)
        return ETWATCH_ENOMEM;
    reading->kind = ETWATCH_DEVICE_GPU;
    reading->t_ns = now_ns;
    if (!atomic_load(&sensor_begins) || (use = ew_sensor_add_use(batch)) == NULL)
        return 0;
    use->t_ns = now_ns;
    use->from_ns = now_ns - 1000000;
    use->process.pid = test_own_pid();
    use->process.has = ETWATCH_DEVICE_PROCESS_GPU_TIME | ETWATCH_DEVICE_PROCESS_MEMORY;
    use->process.gpu_ns = 1000000;
    use->process.memory_bytes = 4096;
    return 0;
}

static const struct ew_sensor_ops sensor = {
    .name = "fake",
    .kinds = 1u << ETWATCH_DEVICE_GPU,
    .min_period_ns = 1000000,
    .metrics = {{UINT64_C(1) << ETWATCH_M_gpu_ns | UINT64_C(1) << ETWATCH_M_gpu_memory_bytes}},
    .estimated = {{UINT64_C(1) << ETWATCH_M_gpu_ns}},
    .probe = sensor_probe,
    .open = sensor_open,
    .close = sensor_close,
    .read = sensor_read,
};

struct used {
    uint64_t gpu_ns, memory_bytes;
};

static void on_used(void *ctx, const struct etwatch_samples *batch)
{
    struct used *used = ctx;
    for (size_t i = 0; i < batch->count; i++) {
        const struct etwatch_sample *s = etwatch_sample_at(batch, i);
        if (s->type != ETWATCH_TYPE_SAMPLE)
            continue;
        used->gpu_ns += etwatch_sample_has(s, ETWATCH_M_gpu_ns) ? s->gpu_ns : 0;
        if (etwatch_sample_has(s, ETWATCH_M_gpu_memory_bytes))
            used->memory_bytes = s->gpu_memory_bytes;
    }
}

TEST(gpu_time_comes_from_a_sensor_or_from_events_but_not_from_both)
{
    static const struct ew_sensor_ops *const list[] = {&sensor, NULL};
    for (int events = 0; events < 2; events++) {
        struct used used = {0};
        struct etwatch_monitor *monitor = NULL;
        uint32_t pid = test_own_pid();
        struct etwatch_config config = {.size = sizeof config,
                                        .source = ETWATCH_SOURCE_POLL,
                                        .flags = ETWATCH_CONFIG_NO_BUDGET,
                                        .hz = 50,
                                        .pids = &pid,
                                        .pid_count = 1};
        const struct etwatch_callbacks callbacks = {
            .size = sizeof callbacks, .ctx = &used, .on_samples = on_used};
        test_row(events ? "events" : "sensor");
        atomic_store(&sensor_begins, false);
        CHECK_EQ_INT(etwatch_metrics_named("gpu_ns", &config.metrics), 0);
        etwatch_metric_set_add(&config.metrics, ETWATCH_M_cpu_ns);
        etwatch_metric_set_add(&config.metrics, ETWATCH_M_gpu_memory_bytes);
        CHECK_EQ_INT(etwatch_monitor_new(&config, &callbacks, &monitor, NULL), 0);
        monitor->sensor_ops = list;
        CHECK_EQ_INT(etwatch_monitor_open(monitor, NULL), 0);
        CHECK(!monitor->source_counts_gpu);
        monitor->source_counts_gpu = events != 0;
        atomic_store(&sensor_begins, true);
        for (int i = 0; i < 1000 && used.memory_bytes == 0; i++)
            CHECK(etwatch_monitor_poll(monitor, 20, NULL) >= 0);
        CHECK_EQ_INT(etwatch_monitor_stop(monitor), 0);
        etwatch_monitor_free(monitor);
        CHECK_EQ_UINT(used.memory_bytes, 4096);
        CHECK_EQ_INT(used.gpu_ns > 0, !events);
    }
}

TEST(a_session_with_the_graphics_kernel_counts_gpu_time)
{
    static const struct ew_sensor_ops *const list[] = {&sensor, NULL};
    static const struct ew_etw_provider dxgkrnl = {.guid = {0x5a, 0xc4, 0x2e, 0x80, 0x99, 0x1e,
                                                            0x83, 0x4b, 0x99, 0x20, 0x87, 0xc9,
                                                            0x82, 0x77, 0xba, 0x9d}};
    for (uint32_t providers = 0; providers < 2; providers++) {
        struct etw_emulator_session session = {0};
        struct etw_emulator *emulator =
            etw_emulator_new(&(struct etw_emulator_config){.os_build = 19045, .cpu_count = 2});
        struct ew_etw_config etw = {
            .api = etw_emulator_api(emulator),
            .session = {.providers = &dxgkrnl, .provider_count = providers}};
        struct etwatch_monitor *monitor = NULL;
        struct etwatch_config config = {.size = sizeof config,
                                        .flags = ETWATCH_CONFIG_ALL | ETWATCH_CONFIG_NO_BUDGET};
        etwatch_metric_set_add(&config.metrics, ETWATCH_M_gpu_ns);
        etwatch_metric_set_add(&config.metrics, ETWATCH_M_presents);
        CHECK_EQ_INT(etwatch_monitor_new(&config, NULL, &monitor, NULL), 0);
        monitor->etw = &etw;
        monitor->sensor_ops = list;
        CHECK_EQ_INT(etwatch_monitor_open(monitor, NULL), 0);
        CHECK_EQ_UINT(monitor->source_counts_gpu, providers);
        struct etwatch_meta meta = meta_of(monitor);
        CHECK(etwatch_metric_set_has(&meta.available, ETWATCH_M_gpu_ns));
        CHECK(etwatch_metric_set_has(&meta.available, ETWATCH_M_presents));
        CHECK(etwatch_metric_set_has(&meta.estimated, ETWATCH_M_gpu_ns)); /* it may have queues */
        CHECK(etw_emulator_session(emulator, "etwatch-watch", &session));
        CHECK_EQ_UINT(session.providers, 2 + providers);
        CHECK_EQ_UINT(session.filters, 2); /* presents by their numbers */
        CHECK_EQ_UINT(session.captures, providers);
        CHECK_EQ_INT(etwatch_monitor_stop(monitor), 0);
        etwatch_monitor_free(monitor);
        etw_emulator_free(emulator);
    }
}

TEST(a_windows_that_refuses_the_providers_of_presents_has_the_rest)
{
    struct etw_emulator_session session = {0};
    struct etw_emulator *emulator = etw_emulator_new(&(struct etw_emulator_config){
        .os_build = 19045,
        .cpu_count = 2,
        .fault = {.call = ETW_CALL_ENABLE, .code = EW_WIN_ACCESS_DENIED}});
    struct ew_etw_config etw = {.api = etw_emulator_api(emulator)};
    struct etwatch_monitor *monitor = NULL;
    struct etwatch_config config = {.size = sizeof config,
                                    .flags = ETWATCH_CONFIG_ALL | ETWATCH_CONFIG_NO_BUDGET};
    etwatch_metric_set_add(&config.metrics, ETWATCH_M_cpu_ns);
    etwatch_metric_set_add(&config.metrics, ETWATCH_M_presents);
    CHECK_EQ_INT(etwatch_monitor_new(&config, NULL, &monitor, NULL), 0);
    monitor->etw = &etw;
    CHECK_EQ_INT(etwatch_monitor_open(monitor, NULL), 0);
    struct etwatch_meta meta = meta_of(monitor);
    CHECK_EQ_UINT(meta.source, ETWATCH_SOURCE_ETW);
    CHECK(etwatch_metric_set_has(&meta.available, ETWATCH_M_cpu_ns));
    CHECK(!etwatch_metric_set_has(&meta.available, ETWATCH_M_presents));
    CHECK(etw_emulator_session(emulator, "etwatch-watch", &session));
    CHECK_EQ_UINT(session.providers, 0);
    CHECK_EQ_INT(etwatch_monitor_stop(monitor), 0);
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
        CHECK(etwatch_monitor_poll(monitor, 50, NULL) >= 0);
    CHECK_EQ_INT(etwatch_monitor_stop(monitor), 0);
    CHECK_EQ_INT(etwatch_monitor_stats(monitor, &stats), 0);
    etwatch_monitor_free(monitor);
    return stats;
}

/* Half a second without a CPU for the delivering thread fills all buffers, which a busy machine can
 * cause: then another attempt counts. */
TEST(no_event_is_lost_in_the_buffers_of_the_session)
{
    for (int whole = 0; whole < 2; whole++) {
        uint64_t lost = 1;
        test_row(whole ? "whole buffers" : "event by event");
        for (int attempt = 0; attempt < 5 && lost > 0; attempt++) {
            struct seen seen = {0};
            struct etw_emulator_counts counts;
            struct etw_emulator *emulator =
                etw_emulator_new(&(struct etw_emulator_config){.cpu_count = 4,
                                                               .real_time = true,
                                                               .session_buffers = true,
                                                               .offers_buffers = whole != 0,
                                                               .generate = 20000,
                                                               .rate_hz = 100000});
            struct etwatch_stats stats = watch_all(emulator, &(struct ew_etw_config){0}, &seen);
            etw_emulator_counts(emulator, &counts);
            lost = stats.lost;
            CHECK_EQ_UINT(stats.events + lost, 80000);
            CHECK_EQ_UINT(seen.lost, lost);
            CHECK_EQ_INT(counts.buffers > 0, whole);
            etw_emulator_free(emulator);
        }
        CHECK_EQ_UINT(lost, 0);
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
        CHECK(etwatch_monitor_poll(monitor, 20, NULL) >= 0);
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
        CHECK(etwatch_monitor_poll(monitor, 20, NULL) >= 0);
    CHECK_EQ_UINT(seen.last_source, ETWATCH_SOURCE_POLL);
    CHECK_EQ_INT(etwatch_monitor_stop(monitor), 0);
    etwatch_monitor_free(monitor);
    struct etw_emulator_counts counts;
    etw_emulator_counts(emulator, &counts);
    CHECK_EQ_UINT(counts.sessions, 0);
    etw_emulator_free(emulator);
}

/* A session that another program stops for good, long after it was opened. */
static struct etw_emulator *new_failing(void)
{
    return etw_emulator_new(&(struct etw_emulator_config){.cpu_count = 2,
                                                          .real_time = true,
                                                          .generate = 100000,
                                                          .rate_hz = 100000,
                                                          .stop_after = 15000,
                                                          .stop_times = 4});
}

TEST(after_a_fall_back_the_metrics_are_those_of_polling)
{
    struct seen seen = {0};
    struct etw_emulator *emulator = new_failing();
    struct ew_etw_config etw = {.api = etw_emulator_api(emulator), .flush_ms = 5};
    struct etwatch_monitor *monitor = new_monitor(&seen, &etw, 0);
    CHECK_EQ_INT(etwatch_monitor_open(monitor, NULL), 0);
    wait_for_polling(monitor);
    struct etwatch_meta fallen = meta_of(monitor);
    etwatch_monitor_free(monitor);
    etw_emulator_free(emulator);
    struct etwatch_config config = {
        .size = sizeof config, .source = ETWATCH_SOURCE_POLL, .flags = ETWATCH_CONFIG_ALL};
    CHECK_EQ_INT(etwatch_monitor_new(&config, NULL, &monitor, NULL), 0);
    CHECK_EQ_INT(etwatch_monitor_open(monitor, NULL), 0);
    struct etwatch_meta polling = meta_of(monitor);
    CHECK(etwatch_metric_set_equal(&fallen.available, &polling.available));
    CHECK(etwatch_metric_set_equal(&fallen.estimated, &polling.estimated));
    etwatch_monitor_free(monitor);
}

#ifndef _WIN32
struct ended {
    int ends;
    struct etwatch_error_info error;
};

static void on_end(void *ctx, const struct etwatch_error_info *error)
{
    struct ended *ended = ctx;
    ended->ends++;
    ended->error = *error;
}

static void on_alert(void *ctx, const struct etwatch_alert *alert)
{
    (void)ctx;
    (void)alert;
}

static struct ew_source_ops wrapped;
static int (*real_drain)(struct ew_source *source, uint64_t now_ns, const struct ew_facts *facts,
                         uint64_t *ret_horizon_ns, struct ew_error *reterr);
static int drain_errors, drains_after_error;

static int watched_drain(struct ew_source *source, uint64_t now_ns, const struct ew_facts *facts,
                         uint64_t *ret_horizon_ns, struct ew_error *reterr)
{
    drains_after_error += drain_errors > 0;
    int rc = real_drain(source, now_ns, facts, ret_horizon_ns, reterr);
    drain_errors += rc < 0;
    return rc;
}

static int watched_finish(struct ew_source *source, uint64_t now_ns, const struct ew_facts *facts,
                          struct ew_error *reterr)
{
    (void)source;
    (void)now_ns;
    (void)facts;
    (void)reterr;
    drains_after_error += drain_errors > 0;
    return 0;
}

/* With an alert there is a second sampler in the way of the facts. A source that failed must not
 * deliver through it again. */
TEST(where_polling_cannot_be_opened_either_the_run_ends_with_both_reasons)
{
    static const char *const alerts[] = {"cpu_percent>80 for 20ms"};
    for (int i = 0; i < 2; i++) {
        struct ended ended = {0};
        struct etw_emulator *emulator = new_failing();
        struct ew_etw_config etw = {.api = etw_emulator_api(emulator), .flush_ms = 5};
        struct etwatch_error_info error = {.size = sizeof error};
        struct etwatch_monitor *monitor = NULL;
        struct etwatch_config config = {
            .size = sizeof config,
            .flags = ETWATCH_CONFIG_ALL | ETWATCH_CONFIG_NO_BUDGET,
            .hz = 100,
            .latency_ms = 20,
            .proc_root = "/there-is-no-such-folder",
            .alerts = alerts,
            .alert_count = (uint32_t)i,
        };
        struct etwatch_callbacks callbacks = {
            .size = sizeof callbacks, .ctx = &ended, .on_alert = on_alert, .on_end = on_end};
        CHECK_EQ_INT(etwatch_monitor_new(&config, &callbacks, &monitor, NULL), 0);
        monitor->etw = &etw;
        CHECK_EQ_INT(etwatch_monitor_open(monitor, NULL), 0);
        drain_errors = drains_after_error = 0;
        wrapped = *monitor->source->ops;
        real_drain = wrapped.drain;
        wrapped.drain = watched_drain;
        wrapped.finish = watched_finish;
        monitor->source->ops = &wrapped;
        int rc = 0;
        for (int n = 0; n < 2000 && rc >= 0; n++)
            rc = etwatch_monitor_poll(monitor, 20, &error);
        CHECK(rc < 0 && rc != ETWATCH_ESTATE);
        CHECK_CONTAINS(error.message, "was stopped by another program; polling failed too: ");
        CHECK_EQ_INT(ended.ends, 1);
        CHECK_EQ_STR(ended.error.message, error.message);
        CHECK_EQ_INT(ended.error.code, rc);
        CHECK_EQ_INT(etwatch_monitor_poll(monitor, 0, NULL), ETWATCH_ESTATE);
        CHECK_EQ_UINT(meta_of(monitor).source, ETWATCH_SOURCE_ETW);
        etwatch_monitor_free(monitor);
        CHECK_EQ_INT(drain_errors, 1);
        CHECK_EQ_INT(drains_after_error, 0);
        etw_emulator_free(emulator);
    }
}

static void (*real_close)(struct ew_source *source);
static int wake_pipe[2];

static int pipe_wake_fd(struct ew_source *source)
{
    (void)source;
    return wake_pipe[0];
}

static void close_with_pipe(struct ew_source *source)
{
    CHECK_EQ_INT(close(wake_pipe[0]), 0);
    real_close(source);
}

/* A closed descriptor would be ready at once: the thread would wake up without a pause. */
TEST(after_a_fall_back_the_thread_waits_on_the_new_source)
{
    struct seen seen = {0};
    struct etw_emulator *emulator = new_failing();
    struct ew_etw_config etw = {.api = etw_emulator_api(emulator), .flush_ms = 5};
    struct etwatch_monitor *monitor = new_monitor(&seen, &etw, 0);
    struct etwatch_stats before = {.size = sizeof before}, after = {.size = sizeof after};
    CHECK_EQ_INT(pipe(wake_pipe), 0);
    ew_mutex_lock(monitor->lock); /* the thread starts with the wrapped source */
    CHECK_EQ_INT(etwatch_monitor_start(monitor, NULL), 0);
    wrapped = *monitor->source->ops;
    real_close = wrapped.close;
    wrapped.close = close_with_pipe;
    wrapped.wake_fd = pipe_wake_fd;
    monitor->source->ops = &wrapped;
    ew_mutex_unlock(monitor->lock);
    for (int i = 0; i < 5000 && meta_of(monitor).source != ETWATCH_SOURCE_POLL; i++)
        test_sleep_ms(2);
    CHECK_EQ_UINT(meta_of(monitor).source, ETWATCH_SOURCE_POLL);
    CHECK_EQ_INT(etwatch_monitor_stats(monitor, &before), 0);
    test_sleep_ms(300);
    CHECK_EQ_INT(etwatch_monitor_stats(monitor, &after), 0);
    CHECK(after.wakeups > before.wakeups);
    CHECK(after.wakeups - before.wakeups < 200); /* 30 are due at 100 Hz */
    CHECK_EQ_INT(etwatch_monitor_stop(monitor), 0);
    CHECK_EQ_INT(close(wake_pipe[1]), 0);
    etwatch_monitor_free(monitor);
    etw_emulator_free(emulator);
}
#endif

TEST(without_a_session_the_monitor_polls_or_explains_why_not)
{
    static const struct {
        struct etw_emulator_config emulated;
        int code;
        const char *words;
    } rows[] = {
        {{.no_rights = true}, ETWATCH_EPERM, "access is denied"},
        {{.loggers_in_use = true}, ETWATCH_ELIMIT, "all system loggers"},
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
    CHECK_EQ_INT(etwatch_monitor_new(&config, NULL, &monitor, NULL), 0);
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
        CHECK(etwatch_monitor_poll(monitor, 20, NULL) >= 0);
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
    CHECK_EQ_INT(etwatch_monitor_new(&config, NULL, &monitor, &error), ETWATCH_EINVAL);
    CHECK_CONTAINS(error.message, "session");
    etw_emulator_free(emulator);
}
