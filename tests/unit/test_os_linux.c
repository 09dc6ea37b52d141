/* SPDX-License-Identifier: MIT */
/* The parts of the operating system layer that only Linux has. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/mask.h"
#include "os/os.h"
#include "test.h"

TEST(a_user_has_a_name_or_a_number)
{
    char name[64];
    ew_os_user_name(0, name, sizeof name);
    CHECK_EQ_STR(name, "root");
    ew_os_user_name(4123456789u, name, sizeof name);
    CHECK_EQ_STR(name, "4123456789");
    /* A name that does not fit is not truncated into another name. */
    ew_os_user_name(0, name, 4);
    CHECK_EQ_STR(name, "0");
    name[0] = 'x';
    ew_os_user_name(0, name, 0);
    CHECK_EQ_INT(name[0], 'x');
}

TEST(arguments_include_their_terminators)
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

TEST(properties_of_a_process_are_read_from_the_tree)
{
    char root[256], group[64];
    (void)snprintf(root, sizeof root, "%s", test_path("golden/proc/users"));
    CHECK(ew_os_process_exists(root, 100));
    CHECK(!ew_os_process_exists(root, 99));
    bool only = false;
    CHECK(ew_os_cgroup(root, 100, group, sizeof group, &only));
    CHECK_EQ_STR(group, "/user.slice/user-1000.slice");
    CHECK(ew_os_cgroup(root, 100, group, 6, &only));
    CHECK_EQ_STR(group, "/user");
    CHECK(!ew_os_cgroup(root, 104, group, sizeof group, &only)); /* of version 1 alone */
    CHECK(!ew_os_cgroup(root, 99, group, sizeof group, &only));
    CHECK(!ew_os_cgroup(root, 100, group, 0, &only));
}

TEST(a_user_is_found_by_name)
{
    uint32_t uid = 1;
    CHECK(ew_os_user_id("root", &uid));
    CHECK_EQ_UINT(uid, 0);
    CHECK(!ew_os_user_id("no-such-user-here", &uid));
}

/* The line of /proc/self/status that starts with label, as a hexadecimal number. */
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

TEST(dropped_privileges_do_not_return)
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

TEST(a_readable_descriptor_ends_the_wait_and_is_not_read)
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

static void read_signal_mask(void *arg)
{
    sigset_t blocked;
    (void)pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    *(bool *)arg = sigismember(&blocked, SIGTERM) == 1;
}

TEST(a_thread_takes_no_signals)
{
    struct ew_thread_handle *thread;
    bool in_thread = false;
    CHECK_EQ_INT(ew_os_thread_start(read_signal_mask, &in_thread, &thread), 0);
    ew_os_thread_join(thread);
    CHECK(in_thread);
    /* The caller's own mask is unchanged. */
    sigset_t blocked;
    CHECK_EQ_INT(pthread_sigmask(SIG_SETMASK, NULL, &blocked), 0);
    CHECK_EQ_INT(sigismember(&blocked, SIGTERM), 0);
}
