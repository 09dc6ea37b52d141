/* SPDX-License-Identifier: MIT */
/*
 * The operating system layer. Times are compared only in the direction that cannot fail on a slow
 * machine: never early, never backwards.
 */
#include <string.h>

#include "base/alloc.h"
#include "os/os.h"
#include "test.h"

#define MS UINT64_C(1000000)

TEST(the_raw_clock_never_goes_backwards)
{
    uint64_t before_ns = ew_os_raw_ns();
    for (int i = 0; i < 1000; i++) {
        uint64_t now_ns = ew_os_raw_ns();
        CHECK(now_ns >= before_ns);
        before_ns = now_ns;
    }
}

TEST(the_anchor_lies_between_two_reads_of_the_raw_clock)
{
    uint64_t unix_ns = 0, raw_ns = 0, before_ns = ew_os_raw_ns();
    ew_os_anchor(&unix_ns, &raw_ns);
    CHECK(raw_ns >= before_ns);
    CHECK(raw_ns <= ew_os_raw_ns());
    CHECK(unix_ns > UINT64_C(1600000000) * 1000 * MS);
}

TEST(cpu_time_of_a_thread_grows_while_it_works)
{
    uint64_t start_ns = ew_os_thread_cpu_ns();
    while (ew_os_thread_cpu_ns() == start_ns)
        continue;
    CHECK(ew_os_thread_cpu_ns() > start_ns);
    CHECK(ew_os_cpu_count() >= 1);
}

TEST(own_memory_grows_and_its_peak_is_kept)
{
    enum { BLOCK = 32 * 1024 * 1024 };
    uint64_t rss_bytes, peak_bytes, more_bytes, more_peak_bytes;
    CHECK(ew_os_self_rss(&rss_bytes, &peak_bytes));
    CHECK(rss_bytes > 0 && peak_bytes >= rss_bytes);
    char *block = ew_calloc(BLOCK, 1);
    CHECK(block != NULL);
    memset(block, 1, BLOCK);
    CHECK(ew_os_self_rss(&more_bytes, &more_peak_bytes));
    CHECK(block[BLOCK - 1] == 1);
    CHECK(more_peak_bytes >= peak_bytes);
    CHECK(more_bytes >= rss_bytes + BLOCK / 2);
    ew_free(block);
}

TEST(the_machine_and_its_system_have_names)
{
    char name[256], tiny[2] = "x";
    ew_os_host_name(name, sizeof name);
    CHECK(name[0] != '\0');
    ew_os_system_name(name, sizeof name);
    CHECK(strncmp(name, "Linux ", 6) == 0 || strncmp(name, "Windows ", 8) == 0);
    CHECK(name[6] != '\0');
    ew_os_system_name(tiny, sizeof tiny);
    CHECK(tiny[0] == name[0] && tiny[1] == '\0');
}

/* ---------------------------------------------------------------- waiting */

TEST(a_wait_ends_at_its_deadline_and_not_before)
{
    struct ew_waiter *waiter;
    CHECK_EQ_INT(ew_waiter_new(&waiter), 0);
    uint64_t until_ns = ew_os_raw_ns() + 5 * MS;
    CHECK_EQ_INT(ew_waiter_wait(waiter, until_ns, -1), 0);
    CHECK(ew_os_raw_ns() >= until_ns);
    /* A deadline in the past returns at once. */
    CHECK_EQ_INT(ew_waiter_wait(waiter, 0, -1), 0);
    ew_waiter_free(waiter);
    ew_waiter_free(NULL);
}

TEST(a_wake_before_the_wait_counts_and_several_count_as_one)
{
    struct ew_waiter *waiter;
    CHECK_EQ_INT(ew_waiter_new(&waiter), 0);
    ew_waiter_wake(waiter);
    ew_waiter_wake(waiter);
    CHECK_EQ_INT(ew_waiter_wait(waiter, UINT64_MAX, -1), 1);
    CHECK_EQ_INT(ew_waiter_wait(waiter, 0, -1), 0);
    ew_waiter_free(waiter);
}

static void wake(void *arg)
{
    ew_waiter_wake(arg);
}

TEST(a_wait_without_a_deadline_is_ended_by_another_thread)
{
    struct ew_waiter *waiter;
    struct ew_thread_handle *thread;
    CHECK_EQ_INT(ew_waiter_new(&waiter), 0);
    CHECK_EQ_INT(ew_os_thread_start(wake, waiter, &thread), 0);
    CHECK_EQ_INT(ew_waiter_wait(waiter, UINT64_MAX, -1), 1);
    ew_os_thread_join(thread);
    ew_waiter_free(waiter);
}

/* ---------------------------------------------------------------- threads */

struct shared {
    struct ew_mutex *mutex;
    struct ew_cond *cond;
    int value;
};

static void set_value(void *arg)
{
    struct shared *shared = arg;
    ew_mutex_lock(shared->mutex);
    shared->value = 23;
    ew_cond_signal(shared->cond);
    ew_mutex_unlock(shared->mutex);
}

TEST(a_thread_wakes_the_thread_that_waits_for_it)
{
    struct shared shared = {.value = 0};
    struct ew_thread_handle *thread;
    CHECK_EQ_INT(ew_mutex_new(&shared.mutex), 0);
    CHECK_EQ_INT(ew_cond_new(&shared.cond), 0);
    ew_mutex_lock(shared.mutex);
    CHECK(!ew_cond_wait(shared.cond, shared.mutex, 1));
    CHECK_EQ_INT(ew_os_thread_start(set_value, &shared, &thread), 0);
    while (shared.value == 0)
        (void)ew_cond_wait(shared.cond, shared.mutex, -1);
    ew_mutex_unlock(shared.mutex);
    CHECK(!ew_os_thread_is_self(thread));
    ew_os_thread_join(thread);
    CHECK_EQ_INT(shared.value, 23);
    ew_cond_free(shared.cond);
    ew_mutex_free(shared.mutex);
    ew_cond_free(NULL);
    ew_mutex_free(NULL);
    ew_os_thread_join(NULL);
    CHECK(!ew_os_thread_is_self(NULL));
}

static int make_all(void *ctx)
{
    struct ew_waiter *waiter = NULL;
    struct ew_mutex *mutex = NULL;
    struct ew_cond *cond = NULL;
    (void)ctx;
    int rc = ew_waiter_new(&waiter);
    if (rc == 0)
        rc = ew_mutex_new(&mutex);
    if (rc == 0)
        rc = ew_cond_new(&cond);
    ew_cond_free(cond);
    ew_mutex_free(mutex);
    ew_waiter_free(waiter);
    return rc;
}

TEST(every_failed_allocation_is_handled)
{
    TORTURE(make_all, NULL);
}
