/* SPDX-License-Identifier: MIT */
/* The public monitor used by several threads and from its own callbacks. */
#include <stdatomic.h>

#include "monitor_kit.h"
#include "os/os.h"

struct caller {
    struct etwatch_monitor *monitor;
    atomic_int calls;
    int stop;
};

static void query_and_stop(void *ctx, const struct etwatch_sample *samples, size_t count)
{
    (void)samples;
    (void)count;
    struct caller *caller = ctx;
    struct etwatch_stats stats = {.size = sizeof stats};
    if (caller->monitor == NULL)
        return;
    CHECK_EQ_INT(etwatch_monitor_stats(caller->monitor, &stats), 0);
    if (caller->stop)
        CHECK_EQ_INT(etwatch_monitor_stop(caller->monitor), 0);
    atomic_fetch_add(&caller->calls, 1);
}

static struct etwatch_monitor *monitor_with(struct caller *caller, uint32_t source, uint32_t *pid)
{
    struct etwatch_config config = config_for(source);
    config.flags |= ETWATCH_CONFIG_DENSE;
    config.pids = pid;
    config.pid_count = 1;
    config.callbacks.on_samples = query_and_stop;
    config.callbacks.ctx = caller;
    return new_monitor(&config);
}

static void wait_for_call(struct caller *caller)
{
    for (int i = 0; i < 5000 && atomic_load(&caller->calls) == 0; i++)
        test_sleep_ms(2);
    CHECK(atomic_load(&caller->calls) > 0);
}

TEST(a_callback_may_query_and_stop_its_monitor_on_the_librarys_thread)
{
    for (int s = 0; s < SOURCE_COUNT; s++) {
        if (!can_open(sources[s]))
            continue;
        uint32_t self = test_own_pid();
        struct caller caller = {.stop = 1};
        struct etwatch_monitor *monitor = monitor_with(&caller, sources[s], &self);
        caller.monitor = monitor;
        CHECK_EQ_INT(etwatch_monitor_start(monitor, NULL), 0);
        wait_for_call(&caller);
        CHECK_EQ_INT(etwatch_monitor_stop(monitor), 0);
        CHECK_EQ_INT(etwatch_monitor_open(monitor, NULL), 0);
        etwatch_monitor_free(monitor);
    }
}

TEST(a_callback_may_query_and_stop_its_monitor_in_the_callers_loop)
{
    for (int s = 0; s < SOURCE_COUNT; s++) {
        if (!can_open(sources[s]))
            continue;
        uint32_t self = test_own_pid();
        struct caller caller = {.stop = 1};
        struct etwatch_monitor *monitor = monitor_with(&caller, sources[s], &self);
        CHECK_EQ_INT(etwatch_monitor_open(monitor, NULL), 0);
        caller.monitor = monitor;
        int rc = 0;
        for (int i = 0; i < 200 && rc >= 0; i++)
            rc = etwatch_monitor_poll(monitor, -1);
        CHECK(atomic_load(&caller.calls) > 0);
        CHECK_EQ_INT(rc, ETWATCH_ESTATE);
        etwatch_monitor_free(monitor);
    }
}

/* A step without output must not restart the wait; otherwise this would never return. */
TEST(a_read_ends_at_its_timeout_while_the_monitor_keeps_running)
{
    for (int s = 0; s < SOURCE_COUNT; s++) {
        if (!can_open(sources[s]))
            continue;
        struct etwatch_config config = config_for(sources[s]);
        config.flags |= ETWATCH_CONFIG_QUEUE;
        struct etwatch_monitor *monitor = new_monitor(&config);
        struct etwatch_sample sample = {.size = sizeof sample};
        struct etwatch_stats stats = {.size = sizeof stats};
        CHECK_EQ_INT(etwatch_monitor_start(monitor, NULL), 0);
        CHECK_EQ_INT(etwatch_monitor_read(monitor, &sample, 1, 0), 0);
        CHECK_EQ_INT(etwatch_monitor_read(monitor, &sample, 1, 300), 0);
        CHECK_EQ_INT(etwatch_monitor_stats(monitor, &stats), 0);
        CHECK(stats.wakeups > 1);
        etwatch_monitor_free(monitor);
    }
}

static void stop_soon(void *arg)
{
    test_sleep_ms(30);
    (void)etwatch_monitor_stop(arg);
}

TEST(a_stop_from_another_thread_ends_a_waiting_poll)
{
    for (int s = 0; s < SOURCE_COUNT; s++) {
        if (!can_open(sources[s]))
            continue;
        struct etwatch_config config = config_for(sources[s]);
        config.hz = 0.1;
        config.latency_ms = 20000;
        struct etwatch_monitor *monitor = new_monitor(&config);
        CHECK_EQ_INT(etwatch_monitor_open(monitor, NULL), 0);
        struct ew_thread_handle *stopper;
        CHECK_EQ_INT(ew_os_thread_start(stop_soon, monitor, &stopper), 0);
        int rc = 0;
        for (int i = 0; i < 10 && rc >= 0; i++)
            rc = etwatch_monitor_poll(monitor, -1);
        CHECK_EQ_INT(rc, ETWATCH_ESTATE);
        ew_os_thread_join(stopper);
        etwatch_monitor_free(monitor);
    }
}

TEST(several_threads_may_stop_at_once)
{
    for (int s = 0; s < SOURCE_COUNT; s++) {
        if (!can_open(sources[s]))
            continue;
        uint32_t self = test_own_pid();
        struct caller caller = {.stop = 1};
        struct etwatch_monitor *monitor = monitor_with(&caller, sources[s], &self);
        CHECK_EQ_INT(etwatch_monitor_start(monitor, NULL), 0);
        struct ew_thread_handle *stoppers[4];
        for (int i = 0; i < 4; i++)
            CHECK_EQ_INT(ew_os_thread_start(stop_soon, monitor, &stoppers[i]), 0);
        for (int i = 0; i < 4; i++)
            ew_os_thread_join(stoppers[i]);
        struct etwatch_sample sample = {.size = sizeof sample};
        CHECK_EQ_INT(etwatch_monitor_snapshot(monitor, self, &sample, NULL, 0), ETWATCH_ESTATE);
        etwatch_monitor_free(monitor);
    }
}

struct crowd {
    struct etwatch_monitor *monitor;
    uint32_t pid;
    atomic_int over;
};

static void call_everything(void *arg)
{
    struct crowd *crowd = arg;
    while (!atomic_load(&crowd->over)) {
        char name[64];
        struct etwatch_stats stats = {.size = sizeof stats};
        struct etwatch_meta meta = {.size = sizeof meta};
        struct etwatch_sample sample = {.size = sizeof sample};
        struct etwatch_aggregate aggregate = {.size = sizeof aggregate};
        (void)etwatch_monitor_stats(crowd->monitor, &stats);
        (void)etwatch_monitor_meta(crowd->monitor, &meta);
        (void)etwatch_monitor_remove(crowd->monitor, crowd->pid);
        (void)etwatch_monitor_add(crowd->monitor, crowd->pid);
        (void)etwatch_monitor_snapshot(crowd->monitor, crowd->pid, &sample, name, sizeof name);
        (void)etwatch_monitor_aggregate(crowd->monitor, crowd->pid, ETWATCH_M_cpu_percent,
                                        &aggregate);
        (void)etwatch_monitor_read(crowd->monitor, &sample, 1, 1);
        test_sleep_ms(1);
    }
}

TEST(many_threads_may_use_one_monitor_while_it_starts_and_stops)
{
    for (int s = 0; s < SOURCE_COUNT; s++) {
        if (!can_open(sources[s]))
            continue;
        uint32_t busy = test_start_busy();
        struct etwatch_config config = config_for(sources[s]);
        config.flags |= ETWATCH_CONFIG_QUEUE | ETWATCH_CONFIG_AGGREGATE | ETWATCH_CONFIG_THREADS;
        struct crowd crowd = {.monitor = new_monitor(&config), .pid = busy};
        struct ew_thread_handle *askers[3];
        for (int i = 0; i < 3; i++)
            CHECK_EQ_INT(ew_os_thread_start(call_everything, &crowd, &askers[i]), 0);
        for (int i = 0; i < 4; i++) {
            CHECK_EQ_INT(etwatch_monitor_start(crowd.monitor, NULL), 0);
            test_sleep_ms(60);
            CHECK_EQ_INT(etwatch_monitor_stop(crowd.monitor), 0);
        }
        atomic_store(&crowd.over, 1);
        for (int i = 0; i < 3; i++)
            ew_os_thread_join(askers[i]);
        etwatch_monitor_free(crowd.monitor);
        test_end_child(busy);
    }
}
