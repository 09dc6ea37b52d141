/* SPDX-License-Identifier: MIT */
/*
 * How a run ends, and what may be called inside a callback and from another thread. The source is
 * polling, which works everywhere; a wrapper around its drain makes it fail on request.
 */
#include <stdatomic.h>
#include <string.h>

#include <etwatch/device.h>
#include <etwatch/metrics.h>
#include <etwatch/session.h>

#include "monitor/monitor.h"
#include "monitor_kit.h"
#include "os/os.h"

/* ----------------------------------------------------------------- a source that fails */

static struct ew_source_ops wrapped;
static int (*real_drain)(struct ew_source *source, uint64_t now_ns, const struct ew_facts *facts,
                         uint64_t *ret_horizon_ns, struct ew_error *reterr);
static atomic_int fail_with;

static int failing_drain(struct ew_source *source, uint64_t now_ns, const struct ew_facts *facts,
                         uint64_t *ret_horizon_ns, struct ew_error *reterr)
{
    int code = atomic_load(&fail_with);
    if (code != 0) {
        (void)ew_error_set(reterr, code, 42, "the source is gone");
        ew_error_fix(reterr, "restart it");
        return code;
    }
    return real_drain(source, now_ns, facts, ret_horizon_ns, reterr);
}

/* The lock keeps the library's thread out until the source is wrapped. */
static void begin(struct etwatch_monitor *monitor, bool thread)
{
    atomic_store(&fail_with, 0);
    ew_mutex_lock(monitor->lock);
    CHECK_EQ_INT(
        thread ? etwatch_monitor_start(monitor, NULL) : etwatch_monitor_open(monitor, NULL), 0);
    wrapped = *monitor->source->ops;
    real_drain = wrapped.drain;
    wrapped.drain = failing_drain;
    monitor->source->ops = &wrapped;
    ew_mutex_unlock(monitor->lock);
}

/* ------------------------------------------------------------------ the end of a run */

struct end {
    struct etwatch_monitor *monitor;
    atomic_int ends, samples, samples_after_end;
    struct etwatch_error_info error;
};

static void on_samples(void *ctx, const struct etwatch_samples *batch)
{
    struct end *end = ctx;
    atomic_fetch_add(&end->samples, (int)batch->count);
    if (atomic_load(&end->ends) > 0)
        atomic_fetch_add(&end->samples_after_end, 1);
}

static void on_end(void *ctx, const struct etwatch_error_info *error)
{
    struct end *end = ctx;
    if (error != NULL)
        end->error = *error;
    atomic_fetch_add(&end->ends, 1);
}

static struct etwatch_monitor *monitor_of_self(struct end *end, uint32_t flags)
{
    static uint32_t self;
    self = test_own_pid();
    struct etwatch_config config = config_for(ETWATCH_SOURCE_POLL);
    config.flags |= ETWATCH_CONFIG_DENSE | flags;
    config.pids = &self;
    config.pid_count = 1;
    struct etwatch_callbacks callbacks = {
        .size = sizeof callbacks, .ctx = end, .on_samples = on_samples, .on_end = on_end};
    end->monitor = new_monitor(&config, &callbacks);
    return end->monitor;
}

static void wait_for(atomic_int *value, int at_least)
{
    for (int i = 0; i < 5000 && atomic_load(value) < at_least; i++)
        test_sleep_ms(2);
    CHECK(atomic_load(value) >= at_least);
}

static void check_error(const struct etwatch_error_info *error)
{
    CHECK_EQ_INT(error->code, ETWATCH_EOS);
    CHECK_EQ_INT(error->os_code, 42);
    CHECK_EQ_STR(error->message, "the source is gone");
    CHECK_EQ_STR(error->fix, "restart it");
}

TEST(a_failure_in_the_librarys_thread_is_reported_once_and_kept)
{
    struct end end = {0};
    struct etwatch_monitor *monitor = monitor_of_self(&end, ETWATCH_CONFIG_QUEUE);
    struct etwatch_error_info kept = {.size = sizeof kept};
    struct etwatch_samples batch = {.size = sizeof batch};
    begin(monitor, true);
    wait_for(&end.samples, 3);
    CHECK_EQ_INT(etwatch_monitor_last_error(monitor, &kept), 0);
    CHECK_EQ_INT(kept.code, 0);
    atomic_store(&fail_with, ETWATCH_EOS);
    wait_for(&end.ends, 1);
    CHECK_EQ_INT(etwatch_monitor_last_error(monitor, &kept), ETWATCH_EOS);
    check_error(&kept);
    check_error(&end.error);
    /* What was delivered can still be read, then the error. */
    int rc, read = 0;
    while ((rc = etwatch_monitor_read(monitor, 16, -1, &batch)) > 0)
        read += rc;
    CHECK(read >= 3);
    CHECK_EQ_INT(rc, ETWATCH_EOS);
    CHECK_EQ_INT(etwatch_monitor_stop(monitor), ETWATCH_EOS);
    CHECK_EQ_INT(etwatch_monitor_last_error(monitor, NULL), ETWATCH_EOS);
    CHECK_EQ_INT(etwatch_monitor_start(monitor, NULL), 0);
    CHECK_EQ_INT(etwatch_monitor_last_error(monitor, NULL), 0);
    CHECK_EQ_INT(etwatch_monitor_stop(monitor), 0);
    CHECK_EQ_INT(atomic_load(&end.ends), 1);
    etwatch_monitor_free(monitor);
}

TEST(a_failure_in_poll_is_returned_reported_once_and_stops)
{
    struct end end = {0};
    struct etwatch_monitor *monitor = monitor_of_self(&end, 0);
    struct etwatch_error_info error = {.size = sizeof error}, kept = {.size = sizeof kept};
    begin(monitor, false);
    CHECK(etwatch_monitor_poll(monitor, -1, &error) >= 0);
    atomic_store(&fail_with, ETWATCH_EOS);
    CHECK_EQ_INT(etwatch_monitor_poll(monitor, -1, &error), ETWATCH_EOS);
    check_error(&error);
    check_error(&end.error);
    CHECK_EQ_INT(atomic_load(&end.ends), 1);
    CHECK_EQ_INT(etwatch_monitor_poll(monitor, -1, &error), ETWATCH_ESTATE);
    CHECK_CONTAINS(error.message, "not open");
    CHECK_EQ_INT(etwatch_monitor_last_error(monitor, &kept), ETWATCH_EOS);
    check_error(&kept);
    CHECK_EQ_INT(etwatch_monitor_stop(monitor), 0);
    CHECK_EQ_INT(atomic_load(&end.ends), 1);
    CHECK_EQ_INT(atomic_load(&end.samples_after_end), 0);
    CHECK_EQ_INT(etwatch_monitor_open(monitor, NULL), 0);
    etwatch_monitor_free(monitor);
}

TEST(a_stop_is_no_end_by_itself)
{
    for (int thread = 0; thread < 2; thread++) {
        struct end end = {0};
        struct etwatch_monitor *monitor = monitor_of_self(&end, 0);
        begin(monitor, thread != 0);
        if (thread == 0)
            CHECK(etwatch_monitor_poll(monitor, -1, NULL) >= 0);
        wait_for(&end.samples, 1);
        CHECK_EQ_INT(etwatch_monitor_stop(monitor), 0);
        CHECK_EQ_INT(atomic_load(&end.ends), 0);
        etwatch_monitor_free(monitor);
    }
}

TEST(an_older_callbacks_struct_is_honoured)
{
    struct end end = {0};
    struct etwatch_config config = config_for(ETWATCH_SOURCE_POLL);
    struct etwatch_callbacks callbacks = {
        .size = offsetof(struct etwatch_callbacks, on_end), .ctx = &end, .on_end = on_end};
    struct etwatch_monitor *monitor = new_monitor(&config, &callbacks);
    CHECK(monitor->callbacks.on_end == NULL && monitor->callbacks.ctx == &end);
    etwatch_monitor_free(monitor);
    callbacks.size = 0;
    monitor = NULL;
    CHECK_EQ_INT(etwatch_monitor_new(&config, &callbacks, &monitor, NULL), ETWATCH_EINVAL);
    CHECK(monitor == NULL);
}

/* ----------------------------------------------------- calls inside callbacks, threads */

struct calls {
    struct etwatch_monitor *monitor;
    uint32_t self, other;
    atomic_int done; /* rounds of all calls */
    atomic_int ends, alerts, devices;
    bool in_callback;
};

static void call_all(struct calls *calls)
{
    static _Alignas(8) char buffer[2][ETWATCH_READ_COPY_MIN];
    struct etwatch_monitor *monitor = calls->monitor;
    struct etwatch_config config = config_for(ETWATCH_SOURCE_POLL);
    struct etwatch_monitor *another = NULL;
    struct etwatch_stats stats = {.size = sizeof stats};
    struct etwatch_meta meta = {.size = sizeof meta};
    struct etwatch_sample sample = {.size = sizeof sample};
    struct etwatch_samples batch = {.size = sizeof batch};
    struct etwatch_aggregate aggregate;
    char name[64];
    CHECK_EQ_INT(etwatch_monitor_stats(monitor, &stats), 0);
    CHECK_EQ_INT(etwatch_monitor_meta(monitor, &meta), 0);
    CHECK_EQ_INT(etwatch_monitor_snapshot(monitor, calls->self, &sample, name, sizeof name), 0);
    CHECK_EQ_UINT(sample.pid, calls->self);
    int rc = etwatch_monitor_aggregate(monitor, calls->self, ETWATCH_M_cpu_percent, &aggregate);
    CHECK_EQ_INT(rc, 0);
    CHECK(etwatch_monitor_unavailable_reason(monitor, ETWATCH_M_cpu_ns) == NULL);
    CHECK(etwatch_monitor_last_error(monitor, NULL) <= 0);
    /* Reads take turns with other readers; in a callback even -1 does not wait. */
    (void)etwatch_monitor_read(monitor, 1, calls->in_callback ? -1 : 1, &batch);
    rc = etwatch_monitor_read_copy(monitor, buffer[calls->in_callback], sizeof buffer[0], 1,
                                   calls->in_callback ? -1 : 1, &batch, NULL);
    CHECK(rc >= 0 || rc == ETWATCH_EOS);
    CHECK_EQ_INT(etwatch_monitor_add(monitor, calls->other), 0);
    rc = etwatch_monitor_remove(monitor, calls->other);
    CHECK(rc == 0 || rc == ETWATCH_ENOENT);
    CHECK_EQ_INT(etwatch_monitor_start(monitor, NULL), ETWATCH_ESTATE);
    CHECK_EQ_INT(etwatch_monitor_open(monitor, NULL), ETWATCH_ESTATE);
    CHECK_EQ_INT(etwatch_monitor_new(&config, NULL, &another, NULL), 0);
    etwatch_monitor_free(another);
}

static void call_in_callback(struct calls *calls)
{
    struct etwatch_error_info error = {.size = sizeof error};
    call_all(calls);
    CHECK_EQ_INT(etwatch_monitor_poll(calls->monitor, -1, &error), ETWATCH_ESTATE);
    CHECK_CONTAINS(error.message, "callback");
    CHECK_EQ_INT(etwatch_monitor_set_kernel(calls->monitor, "process", NULL, &error),
                 ETWATCH_ESTATE);
    CHECK_CONTAINS(error.message, "callback");
    CHECK_EQ_INT(etwatch_monitor_start(calls->monitor, &error), ETWATCH_ESTATE);
    CHECK_CONTAINS(error.message, "callback");
    etwatch_monitor_free(calls->monitor); /* does nothing */
}

static void call_on_samples(void *ctx, const struct etwatch_samples *batch)
{
    struct calls *calls = ctx;
    (void)batch;
    if (calls->monitor == NULL || atomic_load(&calls->done) >= 10)
        return;
    call_in_callback(calls);
    atomic_fetch_add(&calls->done, 1);
}

static void call_on_alert(void *ctx, const struct etwatch_alert *alert)
{
    struct calls *calls = ctx;
    CHECK_EQ_UINT(alert->metric, ETWATCH_M_rss_bytes);
    if (calls->monitor == NULL || atomic_load(&calls->alerts) > 0)
        return;
    call_in_callback(calls);
    atomic_fetch_add(&calls->alerts, 1);
}

static void call_on_devices(void *ctx, const struct etwatch_devices *batch)
{
    struct calls *calls = ctx;
    CHECK(batch->count > 0 && etwatch_device_at(batch, 0)->driver != NULL);
    if (calls->monitor == NULL || atomic_load(&calls->devices) > 0)
        return;
    call_in_callback(calls);
    atomic_fetch_add(&calls->devices, 1);
}

static void call_on_end(void *ctx, const struct etwatch_error_info *error)
{
    struct calls *calls = ctx;
    CHECK(error != NULL);
    call_in_callback(calls);
    CHECK_EQ_INT(etwatch_monitor_last_error(calls->monitor, NULL), ETWATCH_EOS);
    CHECK_EQ_INT(etwatch_monitor_stop(calls->monitor), 0);
    atomic_fetch_add(&calls->ends, 1);
}

static void call_in_thread(void *ctx)
{
    struct calls *calls = ctx;
    struct calls own = {.monitor = calls->monitor, .self = calls->self, .other = calls->other};
    while (atomic_load(&calls->done) < 10) {
        call_all(&own);
        CHECK_EQ_INT(etwatch_monitor_set_kernel(calls->monitor, "process", NULL, NULL),
                     ETWATCH_ENOTSUP);
        test_sleep_ms(1);
    }
}

static bool all_called(struct calls *calls)
{
    return atomic_load(&calls->done) >= 10 && atomic_load(&calls->alerts) > 0 &&
           atomic_load(&calls->devices) > 0;
}

TEST(every_function_works_in_callbacks_and_other_threads_as_documented)
{
    for (int thread = 0; thread < 2; thread++) {
        struct calls calls = {.self = test_own_pid(), .in_callback = true};
        struct etwatch_config config = config_for(ETWATCH_SOURCE_POLL);
        config.flags |= ETWATCH_CONFIG_DENSE | ETWATCH_CONFIG_QUEUE | ETWATCH_CONFIG_AGGREGATE;
        config.pids = &calls.self;
        config.pid_count = 1;
        /* Both are reported once: a condition that always holds, and meters that are not there. */
        static const char *const alerts[] = {"rss_bytes>1"};
        config.alerts = alerts;
        config.alert_count = 1;
        config.sys_root = "/there/is/no/such/folder";
        etwatch_metric_set_add(&config.metrics, ETWATCH_METRIC_DEFAULT);
        etwatch_metric_set_add(&config.metrics, ETWATCH_M_energy_uj);
        struct etwatch_callbacks callbacks = {.size = sizeof callbacks,
                                              .ctx = &calls,
                                              .on_samples = call_on_samples,
                                              .on_alert = call_on_alert,
                                              .on_devices = call_on_devices,
                                              .on_end = call_on_end};
        struct etwatch_monitor *monitor = new_monitor(&config, &callbacks);
        calls.other = test_start_busy();
        test_row(thread ? "thread" : "poll");
        calls.monitor = monitor; /* the first callbacks run inside start and open */
        begin(monitor, thread != 0);
        struct ew_thread_handle *other;
        CHECK_EQ_INT(ew_os_thread_start(call_in_thread, &calls, &other), 0);
        for (int i = 0; i < 1000 && !thread && !all_called(&calls); i++)
            CHECK(etwatch_monitor_poll(monitor, 20, NULL) >= 0);
        wait_for(&calls.done, 10);
        wait_for(&calls.alerts, 1);
        wait_for(&calls.devices, 1);
        ew_os_thread_join(other);
        atomic_store(&fail_with, ETWATCH_EOS);
        if (!thread)
            CHECK_EQ_INT(etwatch_monitor_poll(monitor, -1, NULL), ETWATCH_EOS);
        wait_for(&calls.ends, 1);
        (void)etwatch_monitor_stop(monitor);
        CHECK_EQ_INT(atomic_load(&calls.ends), 1);
        etwatch_monitor_free(monitor);
        test_end_child(calls.other);
    }
}

/* ------------------------------------------------------- changes made in a callback */

struct follow {
    struct etwatch_monitor *monitor;
    uint32_t first, other;
    int added, removed;
    int of_other, after_remove;
};

static void follow_on_samples(void *ctx, const struct etwatch_samples *batch)
{
    struct follow *follow = ctx;
    for (size_t i = 0; i < batch->count; i++) {
        const struct etwatch_sample *sample = etwatch_sample_at(batch, i);
        if (sample->type != ETWATCH_TYPE_SAMPLE || follow->monitor == NULL)
            continue;
        if (follow->added++ == 0)
            CHECK_EQ_INT(etwatch_monitor_add(follow->monitor, follow->other), 0);
        if (sample->pid == follow->other && ++follow->of_other == 3) {
            CHECK_EQ_INT(etwatch_monitor_remove(follow->monitor, follow->other), 0);
            follow->removed = 1;
        } else if (sample->pid == follow->other && follow->removed) {
            follow->after_remove++;
        }
    }
}

TEST(a_callback_may_add_and_remove_processes)
{
    for (int s = 0; s < SOURCE_COUNT; s++) {
        if (!can_open(sources[s]))
            continue;
        struct follow follow = {.first = test_start_busy(), .other = test_start_busy()};
        struct etwatch_config config = config_for(sources[s]);
        config.flags |= ETWATCH_CONFIG_DENSE;
        config.pids = &follow.first;
        config.pid_count = 1;
        struct etwatch_callbacks callbacks = {
            .size = sizeof callbacks, .ctx = &follow, .on_samples = follow_on_samples};
        struct etwatch_monitor *monitor = new_monitor(&config, &callbacks);
        CHECK_EQ_INT(etwatch_monitor_open(monitor, NULL), 0);
        follow.monitor = monitor;
        for (int i = 0; i < 500 && !follow.removed; i++)
            CHECK(etwatch_monitor_poll(monitor, 20, NULL) >= 0);
        CHECK(follow.removed);
        for (int i = 0; i < 10; i++)
            CHECK(etwatch_monitor_poll(monitor, 20, NULL) >= 0);
        /* Intervals of one delivery were complete before the callback. */
        CHECK(follow.after_remove <= 10);
        etwatch_monitor_free(monitor);
        test_end_child(follow.first);
        test_end_child(follow.other);
    }
}
