/* SPDX-License-Identifier: MIT */
/*
 * The public monitor: its configuration, its states, its limits and the order of what it reports.
 */
#include <string.h>

#include "base/alloc.h"
#include "monitor_kit.h"
#include "os/os.h"

/* ---------------------------------------------------------------- configuration */

TEST(null_arguments_are_refused)
{
    struct etwatch_config config = config_for(ETWATCH_SOURCE_POLL);
    struct etwatch_monitor *monitor = NULL;
    CHECK_EQ_INT(etwatch_monitor_new(NULL, &monitor, NULL), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_monitor_new(&config, NULL, NULL), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_monitor_start(NULL, NULL), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_monitor_open(NULL, NULL), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_monitor_poll(NULL, 0), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_monitor_stop(NULL), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_monitor_stats(NULL, NULL), ETWATCH_EINVAL);
    etwatch_monitor_free(NULL);
    CHECK(monitor == NULL);
}

struct bad_row {
    const char *word; /* what the message must name */
    struct etwatch_config config;
    int code;
};

TEST(a_bad_value_is_refused_by_name)
{
    static const struct bad_row rows[] = {
        {"size", {.size = 0}, ETWATCH_EINVAL},
        {"hz", {.size = sizeof(struct etwatch_config), .hz = 1001}, ETWATCH_EINVAL},
        {"hz", {.size = sizeof(struct etwatch_config), .hz = -1}, ETWATCH_EINVAL},
        {"hz", {.size = sizeof(struct etwatch_config), .hz = 0.05}, ETWATCH_EINVAL},
        {"budget", {.size = sizeof(struct etwatch_config), .budget_percent = -2}, ETWATCH_EINVAL},
        {"latency", {.size = sizeof(struct etwatch_config), .latency_ms = 60001}, ETWATCH_EINVAL},
        {"flags", {.size = sizeof(struct etwatch_config), .flags = 1u << 31}, ETWATCH_EINVAL},
        {"list", {.size = sizeof(struct etwatch_config), .pid_count = 1}, ETWATCH_EINVAL},
        {"list", {.size = sizeof(struct etwatch_config), .name_count = 1}, ETWATCH_EINVAL},
        {"source", {.size = sizeof(struct etwatch_config), .source = 77}, ETWATCH_ENOTSUP},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct etwatch_monitor *monitor = NULL;
        struct etwatch_error_info error = {.size = sizeof error};
        test_row(rows[i].word);
        CHECK_EQ_INT(etwatch_monitor_new(&rows[i].config, &monitor, &error), rows[i].code);
        CHECK_EQ_INT(error.code, rows[i].code);
        CHECK_CONTAINS(error.message, rows[i].word);
        CHECK(monitor == NULL);
    }
}

TEST(a_system_has_one_event_source)
{
    static const uint32_t kinds[] = {ETWATCH_SOURCE_ETW, ETWATCH_SOURCE_EBPF};
    int refused = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct etwatch_config config = config_for(kinds[i]);
        struct etwatch_monitor *monitor = NULL;
        int rc = etwatch_monitor_new(&config, &monitor, NULL);
        CHECK(rc == 0 || rc == ETWATCH_ENOTSUP);
        refused += rc == ETWATCH_ENOTSUP;
        etwatch_monitor_free(monitor);
    }
    CHECK_EQ_INT(refused, 1);
}

struct newer_config {
    struct etwatch_config known;
    uint64_t from_the_future;
};

TEST(a_field_that_the_library_does_not_know_must_be_zero)
{
    struct newer_config config = {.known = config_for(ETWATCH_SOURCE_POLL)};
    struct etwatch_monitor *monitor = NULL;
    config.known.size = sizeof config;
    CHECK_EQ_INT(etwatch_monitor_new(&config.known, &monitor, NULL), 0);
    etwatch_monitor_free(monitor);
    monitor = NULL;
    config.from_the_future = 1;
    CHECK_EQ_INT(etwatch_monitor_new(&config.known, &monitor, NULL), ETWATCH_ENOTSUP);
    CHECK(monitor == NULL);
}

TEST(the_lists_of_a_configuration_may_go_out_of_scope)
{
    struct etwatch_monitor *monitor;
    {
        char name[] = "no-such-program";
        const char *names[] = {name};
        uint32_t pids[] = {test_own_pid()};
        struct etwatch_config config = config_for(ETWATCH_SOURCE_POLL);
        config.names = names;
        config.name_count = 1;
        config.pids = pids;
        config.pid_count = 1;
        monitor = new_monitor(&config);
        memset(name, 'x', sizeof name - 1);
        memset(pids, 0, sizeof pids);
        memset((void *)names, 0, sizeof names);
    }
    CHECK_EQ_INT(etwatch_monitor_open(monitor, NULL), 0);
    struct etwatch_sample self = {.size = sizeof self};
    CHECK_EQ_INT(etwatch_monitor_snapshot(monitor, test_own_pid(), &self, NULL, 0), 0);
    etwatch_monitor_free(monitor);
}

static int make_and_free(void *ctx)
{
    const struct etwatch_config *config = ctx;
    struct etwatch_monitor *monitor = NULL;
    int rc = etwatch_monitor_new(config, &monitor, NULL);
    etwatch_monitor_free(monitor);
    return rc;
}

TEST(making_a_monitor_survives_every_allocation_failure)
{
    const char *names[] = {"a", "b"}, *groups[] = {"/c"};
    uint32_t ids[] = {1, 2};
    struct etwatch_config config = config_for(ETWATCH_SOURCE_POLL);
    config.flags |= ETWATCH_CONFIG_QUEUE;
    config.names = names;
    config.name_count = 2;
    config.cgroups = groups;
    config.cgroup_count = ew_os_has_uids() ? 1 : 0; /* Windows has none */
    config.pids = config.uids = ids;
    config.pid_count = 2;
    config.uid_count = ew_os_has_uids() ? 2 : 0;
    TORTURE(make_and_free, &config);
}

struct countdown {
    size_t calls, refuse;
};

static int refuse_one(void *ctx, size_t size)
{
    (void)size;
    struct countdown *countdown = ctx;
    return ++countdown->calls == countdown->refuse;
}

/*
 * A failure after the start is counted as a loss and the monitor continues, so any result is
 * accepted: this test checks that nothing crashes, leaks or stays open.
 */
TEST(watching_survives_every_allocation_failure)
{
    for (int s = 0; s < SOURCE_COUNT; s++) {
        if (!can_open(sources[s]))
            continue;
        struct etwatch_config config = config_for(sources[s]);
        uint32_t self = test_own_pid();
        config.pids = &self;
        config.pid_count = 1;
        config.flags |= ETWATCH_CONFIG_THREADS | ETWATCH_CONFIG_AGGREGATE | ETWATCH_CONFIG_QUEUE |
                        ETWATCH_CONFIG_CMDLINE;
        int before = test_open_handles();
        for (size_t n = 1; n < 400; n++) {
            struct etwatch_monitor *monitor = new_monitor(&config);
            struct countdown countdown = {0, n};
            ew_alloc_set_hook(refuse_one, &countdown);
            int rc = etwatch_monitor_open(monitor, NULL);
            if (rc == 0)
                (void)etwatch_monitor_poll(monitor, 0);
            (void)etwatch_monitor_stop(monitor);
            ew_alloc_set_hook(NULL, NULL);
            etwatch_monitor_free(monitor);
            if (countdown.calls < n)
                break;
        }
        CHECK_EQ_INT(test_open_handles(), before);
    }
}

/* ----------------------------------------------------------------------- states */

TEST(calls_that_do_not_fit_the_state_are_refused)
{
    struct etwatch_config config = config_for(ETWATCH_SOURCE_POLL);
    struct etwatch_monitor *monitor = new_monitor(&config);
    struct etwatch_sample sample = {.size = sizeof sample};
    struct etwatch_aggregate aggregate = {.size = sizeof aggregate};
    struct etwatch_meta meta = {.size = sizeof meta};
    struct etwatch_error_info error = {.size = sizeof error};
    uint32_t self = test_own_pid();
    CHECK_EQ_INT(etwatch_monitor_poll(monitor, 0), ETWATCH_ESTATE);
    CHECK_EQ_INT(etwatch_monitor_read(monitor, &sample, 1, 0), ETWATCH_ESTATE);
    CHECK_EQ_INT(etwatch_monitor_snapshot(monitor, self, &sample, NULL, 0), ETWATCH_ESTATE);
    CHECK_EQ_INT(etwatch_monitor_meta(monitor, &meta), ETWATCH_ESTATE);
    CHECK_EQ_INT(etwatch_monitor_stop(monitor), 0);
    CHECK_EQ_INT(etwatch_monitor_open(monitor, NULL), 0);
    CHECK_EQ_INT(etwatch_monitor_open(monitor, &error), ETWATCH_ESTATE);
    CHECK_EQ_INT(error.code, ETWATCH_ESTATE);
    CHECK_EQ_INT(etwatch_monitor_start(monitor, NULL), ETWATCH_ESTATE);
    CHECK_EQ_INT(etwatch_monitor_aggregate(monitor, self, 0, &aggregate), ETWATCH_ESTATE);
    CHECK_EQ_INT(etwatch_monitor_meta(monitor, &meta), 0);
    CHECK_EQ_INT(meta.source, ETWATCH_SOURCE_POLL);
    CHECK_EQ_INT(etwatch_monitor_stop(monitor), 0);
    CHECK_EQ_INT(etwatch_monitor_stop(monitor), 0);
    CHECK_EQ_INT(etwatch_monitor_start(monitor, NULL), 0);
    CHECK_EQ_INT(etwatch_monitor_poll(monitor, 0), ETWATCH_ESTATE);
    etwatch_monitor_free(monitor);
}

TEST(a_monitor_starts_and_stops_many_times_and_leaves_nothing_open)
{
    for (int s = 0; s < SOURCE_COUNT; s++) {
        if (!can_open(sources[s]))
            continue;
        int before = test_open_handles();
        struct etwatch_config config = config_for(sources[s]);
        config.flags |= ETWATCH_CONFIG_ALL;
        struct etwatch_monitor *monitor = new_monitor(&config);
        for (int i = 0; i < 10; i++) {
            CHECK_EQ_INT(i % 2 ? etwatch_monitor_start(monitor, NULL)
                               : etwatch_monitor_open(monitor, NULL),
                         0);
            CHECK_EQ_INT(etwatch_monitor_stop(monitor), 0);
        }
        etwatch_monitor_free(monitor);
        CHECK_EQ_INT(test_open_handles(), before);
    }
}

TEST(a_running_monitor_can_be_freed)
{
    for (int s = 0; s < SOURCE_COUNT; s++) {
        if (!can_open(sources[s]))
            continue;
        struct etwatch_config config = config_for(sources[s]);
        struct etwatch_monitor *monitor = new_monitor(&config);
        CHECK_EQ_INT(etwatch_monitor_start(monitor, NULL), 0);
        etwatch_monitor_free(monitor);
    }
}

TEST(a_process_that_does_not_exist_is_refused)
{
    uint32_t gone = test_start_busy();
    test_end_child(gone);
    for (int s = 0; s < SOURCE_COUNT; s++) {
        if (!can_open(sources[s]))
            continue;
        struct etwatch_config config = config_for(sources[s]);
        struct etwatch_monitor *monitor = new_monitor(&config);
        struct etwatch_sample sample = {.size = sizeof sample};
        CHECK_EQ_INT(etwatch_monitor_open(monitor, NULL), 0);
        CHECK_EQ_INT(etwatch_monitor_add(monitor, gone), ETWATCH_ENOENT);
        CHECK_EQ_INT(etwatch_monitor_add(monitor, 0), ETWATCH_EINVAL);
        CHECK_EQ_INT(etwatch_monitor_remove(monitor, gone), ETWATCH_ENOENT);
        CHECK_EQ_INT(etwatch_monitor_snapshot(monitor, gone, &sample, NULL, 0), ETWATCH_ENOENT);
        etwatch_monitor_free(monitor);
    }
}

/* ------------------------------------------------------------------ output */

struct story {
    uint32_t pid;
    int starts, samples, exits;
    int samples_before_start, samples_after_exit;
    uint64_t cpu_ns, exit_cpu_ns;
    uint64_t last_t_ns;
    int backwards;
};

static void listen(void *ctx, const struct etwatch_sample *samples, size_t count)
{
    struct story *story = ctx;
    for (size_t i = 0; i < count; i++) {
        const struct etwatch_sample *s = &samples[i];
        if (s->pid != story->pid || s->type == ETWATCH_TYPE_THREAD)
            continue;
        story->starts += s->type == ETWATCH_TYPE_START;
        if (s->type == ETWATCH_TYPE_SAMPLE) {
            story->samples++;
            story->samples_before_start += story->starts == 0;
            story->samples_after_exit += story->exits != 0;
            story->backwards += s->t_ns < story->last_t_ns;
            story->last_t_ns = s->t_ns;
            story->cpu_ns += etwatch_sample_has(s, ETWATCH_M_cpu_ns) ? s->cpu_ns : 0;
        }
        if (s->type == ETWATCH_TYPE_EXIT) {
            story->exits++;
            story->exit_cpu_ns = etwatch_sample_has(s, ETWATCH_M_cpu_ns) ? s->cpu_ns : 0;
        }
    }
}

TEST(a_process_is_reported_from_start_through_samples_to_exit)
{
    for (int s = 0; s < SOURCE_COUNT; s++) {
        if (!can_open(sources[s]))
            continue;
        uint32_t busy = test_start_busy();
        struct story story = {.pid = busy};
        struct etwatch_config config = config_for(sources[s]);
        config.pids = &story.pid;
        config.pid_count = 1;
        config.callbacks.on_samples = listen;
        config.callbacks.ctx = &story;
        struct etwatch_monitor *monitor = new_monitor(&config);
        CHECK_EQ_INT(etwatch_monitor_open(monitor, NULL), 0);
        for (int i = 0; i < 200 && story.samples < 5; i++)
            CHECK(etwatch_monitor_poll(monitor, -1) >= 0);
        test_end_child(busy);
        for (int i = 0; i < 200 && story.exits == 0; i++)
            CHECK(etwatch_monitor_poll(monitor, -1) >= 0);
        CHECK_EQ_INT(etwatch_monitor_stop(monitor), 0);
        etwatch_monitor_free(monitor);
        CHECK_EQ_INT(story.starts, 1);
        CHECK_EQ_INT(story.exits, 1);
        CHECK(story.samples >= 5);
        CHECK_EQ_INT(story.samples_before_start, 0);
        CHECK_EQ_INT(story.samples_after_exit, 0);
        CHECK_EQ_INT(story.backwards, 0);
        CHECK(story.cpu_ns > 0);
        CHECK(story.exit_cpu_ns >= story.cpu_ns);
    }
}

TEST(two_monitors_see_the_same_process)
{
    for (int s = 0; s < SOURCE_COUNT; s++) {
        if (!can_open(sources[s]))
            continue;
        uint32_t busy = test_start_busy();
        struct story story[2];
        struct etwatch_monitor *monitor[2];
        for (int i = 0; i < 2; i++) {
            story[i] = (struct story){.pid = busy};
            struct etwatch_config config = config_for(sources[s]);
            config.pids = &story[i].pid;
            config.pid_count = 1;
            config.callbacks.on_samples = listen;
            config.callbacks.ctx = &story[i];
            monitor[i] = new_monitor(&config);
            CHECK_EQ_INT(etwatch_monitor_open(monitor[i], NULL), 0);
        }
        for (int n = 0; n < 200 && (story[0].samples < 3 || story[1].samples < 3); n++)
            for (int i = 0; i < 2; i++)
                CHECK(etwatch_monitor_poll(monitor[i], -1) >= 0);
        for (int i = 0; i < 2; i++) {
            etwatch_monitor_free(monitor[i]);
            CHECK_EQ_INT(story[i].starts, 1);
            CHECK(story[i].samples >= 3);
        }
        test_end_child(busy);
    }
}

TEST(a_queue_without_a_reader_drops_the_oldest_and_counts_them)
{
    for (int s = 0; s < SOURCE_COUNT; s++) {
        if (!can_open(sources[s]))
            continue;
        uint32_t self = test_own_pid();
        struct etwatch_config config = config_for(sources[s]);
        config.flags |= ETWATCH_CONFIG_QUEUE | ETWATCH_CONFIG_DENSE;
        config.queue_samples = 4;
        config.pids = &self;
        config.pid_count = 1;
        struct etwatch_monitor *monitor = new_monitor(&config);
        struct etwatch_stats stats = {.size = sizeof stats};
        CHECK_EQ_INT(etwatch_monitor_open(monitor, NULL), 0);
        for (int i = 0; i < 200 && stats.samples < 12; i++) {
            CHECK(etwatch_monitor_poll(monitor, -1) >= 0);
            CHECK_EQ_INT(etwatch_monitor_stats(monitor, &stats), 0);
        }
        CHECK_EQ_INT(etwatch_monitor_stop(monitor), 0);
        struct etwatch_sample batch[8];
        CHECK_EQ_INT(etwatch_monitor_read(monitor, batch, 8, 0), 4);
        for (int i = 0; i < 4; i++)
            CHECK_EQ_UINT(batch[i].pid, self);
        CHECK(batch[3].name != NULL && batch[3].name[0] != '\0');
        /* Delivered objects stay readable, also after the stop. */
        CHECK(batch[3].user == NULL || strlen(batch[3].user) < 256);
        CHECK(batch[3].cgroup == NULL || strlen(batch[3].cgroup) < 4096);
        CHECK_EQ_INT(etwatch_monitor_stats(monitor, &stats), 0);
        CHECK(stats.queue_dropped >= 8);
        etwatch_monitor_free(monitor);
    }
}
