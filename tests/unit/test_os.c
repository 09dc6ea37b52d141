/* SPDX-License-Identifier: MIT */
/* The border to the operating system. Times are only compared in the direction that cannot fail on
 * a slow machine: never early, never backwards. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "model/mask.h"
#include "os/os.h"
#include "test.h"

#define MS UINT64_C(1000000)

TEST(the_raw_clock_never_goes_back)
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

TEST(own_memory_is_seen_to_grow_and_the_peak_stays)
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

TEST(a_user_has_a_name_or_at_least_a_number)
{
    char name[64];
    ew_os_user_name(0, name, sizeof name);
    CHECK_EQ_STR(name, "root");
    ew_os_user_name(4123456789u, name, sizeof name);
    CHECK_EQ_STR(name, "4123456789");
    /* A name that does not fit is not cut into another one. */
    ew_os_user_name(0, name, 4);
    CHECK_EQ_STR(name, "0");
    name[0] = 'x';
    ew_os_user_name(0, name, 0);
    CHECK_EQ_INT(name[0], 'x');
}

TEST(arguments_come_with_their_ends)
{
    char folder[] = "/tmp/etwatch-os-XXXXXX", path[128], buffer[64];
    static const char args[] = "curl\0--password\0a b";
    size_t len = 0;
    CHECK(mkdtemp(folder) != NULL);
    (void)snprintf(path, sizeof path, "%s/7", folder);
    CHECK_EQ_INT(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/7/cmdline", folder);
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL);
    CHECK_EQ_UINT(fwrite(args, 1, sizeof args, file), sizeof args);
    CHECK_EQ_INT(fclose(file), 0);

    CHECK(ew_os_cmdline(folder, 7, buffer, sizeof buffer, &len));
    CHECK_EQ_UINT(len, sizeof args);
    CHECK_EQ_MEM(buffer, args, sizeof args);
    char shown[64];
    (void)ew_mask_cmdline(buffer, len, shown, sizeof shown);
    CHECK_EQ_STR(shown, "curl --password ***");
    CHECK(ew_os_cmdline(folder, 7, buffer, 6, &len));
    CHECK_EQ_UINT(len, 6);
    CHECK(!ew_os_cmdline(folder, 8, buffer, sizeof buffer, &len));
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/7", folder);
    (void)rmdir(path);
    (void)rmdir(folder);
}

TEST(small_questions_about_a_process_are_answered_from_the_tree)
{
    char root[256], group[64];
    (void)snprintf(root, sizeof root, "%s", test_path("golden/proc/users"));
    CHECK(ew_os_process_exists(root, 100));
    CHECK(!ew_os_process_exists(root, 99));
    CHECK(ew_os_cgroup(root, 100, group, sizeof group));
    CHECK_EQ_STR(group, "/user.slice/user-1000.slice");
    CHECK(ew_os_cgroup(root, 100, group, 6));
    CHECK_EQ_STR(group, "/user");
    CHECK(!ew_os_cgroup(root, 104, group, sizeof group)); /* of version 1 alone */
    CHECK(!ew_os_cgroup(root, 99, group, sizeof group));
    CHECK(!ew_os_cgroup(root, 100, group, 0));
}

TEST(a_user_is_found_by_name)
{
    uint32_t uid = 1;
    CHECK(ew_os_user_id("root", &uid));
    CHECK_EQ_UINT(uid, 0);
    CHECK(!ew_os_user_id("no-such-user-here", &uid));
}

TEST(the_machine_and_its_system_have_names)
{
    char name[256], tiny[2] = "x";
    ew_os_host_name(name, sizeof name);
    CHECK(name[0] != '\0');
    ew_os_system_name(name, sizeof name);
    CHECK_CONTAINS(name, "Linux ");
    ew_os_system_name(tiny, sizeof tiny);
    CHECK_EQ_STR(tiny, "L");
}

/* The line of /proc/self/status that starts with label, as a number in hex. */
static unsigned long long own_status(const char *label)
{
    char line[256];
    unsigned long long value = ~0ull;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, label, strlen(label)) == 0)
            value = strtoull(line + strlen(label), NULL, 16);
    if (file)
        (void)fclose(file);
    return value;
}

TEST(rights_that_are_dropped_do_not_come_back)
{
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        unsigned long long admin = 1ull << 21, ptrace = 1ull << 19;
        unsigned long long before = own_status("CapEff:\t");
        ew_os_drop_rights();
        unsigned long long now = own_status("CapEff:\t");
        bool fewer = (now & admin) == 0 && (now & ptrace) == (before & ptrace);
        _exit(fewer && own_status("CapPrm:\t") == now && own_status("NoNewPrivs:\t") == 1 ? 0 : 1);
    }
    int status = -1;
    CHECK_EQ_INT(waitpid(pid, &status, 0), pid);
    CHECK_EQ_INT(status, 0);
}

/* ---------------------------------------------------------------- waiting */

TEST(a_wait_ends_at_its_deadline_and_not_before)
{
    struct ew_waiter *waiter;
    CHECK_EQ_INT(ew_waiter_new(&waiter), 0);
    uint64_t until_ns = ew_os_raw_ns() + 5 * MS;
    CHECK_EQ_INT(ew_waiter_wait(waiter, until_ns, -1), 0);
    CHECK(ew_os_raw_ns() >= until_ns);
    /* One that is over already returns at once, and does not hang. */
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

TEST(a_wait_without_end_is_ended_by_another_thread)
{
    struct ew_waiter *waiter;
    struct ew_thread_handle *thread;
    CHECK_EQ_INT(ew_waiter_new(&waiter), 0);
    CHECK_EQ_INT(ew_os_thread_start(wake, waiter, &thread), 0);
    CHECK_EQ_INT(ew_waiter_wait(waiter, UINT64_MAX, -1), 1);
    ew_os_thread_join(thread);
    ew_waiter_free(waiter);
}

TEST(a_readable_descriptor_ends_the_wait_and_is_left_to_the_caller)
{
    struct ew_waiter *waiter;
    int ends[2];
    char byte = 0;
    CHECK_EQ_INT(pipe(ends), 0);
    CHECK_EQ_INT(ew_waiter_new(&waiter), 0);
    CHECK_EQ_INT(ew_waiter_wait(waiter, 0, ends[0]), 0);
    CHECK_EQ_INT(write(ends[1], "x", 1), 1);
    CHECK_EQ_INT(ew_waiter_wait(waiter, UINT64_MAX, ends[0]), 1);
    CHECK_EQ_INT(read(ends[0], &byte, 1), 1);
    CHECK_EQ_INT(byte, 'x');
    (void)close(ends[0]);
    (void)close(ends[1]);
    ew_waiter_free(waiter);
}

static struct ew_waiter *signalled;

static void on_alarm(int number)
{
    (void)number;
    ew_waiter_wake(signalled);
}

TEST(a_signal_handler_may_wake_and_the_wait_returns)
{
    struct sigaction action = {.sa_handler = on_alarm}, before;
    CHECK_EQ_INT(ew_waiter_new(&signalled), 0);
    CHECK_EQ_INT(sigaction(SIGALRM, &action, &before), 0);
    (void)ualarm(2000, 0);
    CHECK_EQ_INT(ew_waiter_wait(signalled, UINT64_MAX, -1), 1);
    CHECK_EQ_INT(sigaction(SIGALRM, &before, NULL), 0);
    ew_waiter_free(signalled);
}

/* ---------------------------------------------------------------- threads */

struct shared {
    struct ew_mutex *mutex;
    struct ew_cond *cond;
    int value;
    bool signals_blocked;
};

static void set_value(void *arg)
{
    struct shared *shared = arg;
    sigset_t blocked;
    (void)pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    ew_mutex_lock(shared->mutex);
    shared->signals_blocked = sigismember(&blocked, SIGTERM) == 1;
    shared->value = 23;
    ew_cond_signal(shared->cond);
    ew_mutex_unlock(shared->mutex);
}

TEST(a_thread_takes_no_signals_and_wakes_who_waits_for_it)
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
    CHECK(shared.signals_blocked);
    /* The caller's own are as they were. */
    sigset_t blocked;
    CHECK_EQ_INT(pthread_sigmask(SIG_SETMASK, NULL, &blocked), 0);
    CHECK_EQ_INT(sigismember(&blocked, SIGTERM), 0);
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

TEST(any_allocation_may_fail)
{
    TORTURE(make_all, NULL);
}
