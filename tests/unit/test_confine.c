/* SPDX-License-Identifier: MIT */
/* What a confined process can still do, by trying. Each try is a process of its own. */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/os.h"
#include "test.h"

static const char *const own_files[] = {"/proc/self/status", "/nonexistent/file"};

/* --------------------------------------------------------------------- what is tried */

static int try_open(void)
{
    return open("/etc/passwd", O_RDONLY | O_CLOEXEC);
}

static int try_create(void)
{
    return open("/tmp/etwatch-confine", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
}

static int try_open_write(void)
{
    return open("/dev/null", O_WRONLY | O_CLOEXEC);
}

static int try_unlink(void)
{
    return unlink("/nonexistent");
}

static int try_rename(void)
{
    return rename("/nonexistent", "/nonexistent2");
}

static int try_chmod(void)
{
    return chmod("/nonexistent", 0777);
}

static int try_exec(void)
{
    char *const none[] = {NULL};
    return execve("/bin/true", none, none);
}

static int try_fork(void)
{
    return (int)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static int try_local_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int try_internet_socket(void)
{
    return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int try_netlink_socket(void)
{
    return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0);
}

static int try_ptrace(void)
{
    return (int)ptrace(PTRACE_TRACEME, 0, 0, 0);
}

static int try_kill(void)
{
    return kill(getpid(), 0);
}

static int try_setuid(void)
{
    return (int)syscall(SYS_setuid, getuid());
}

static int try_program_memory(void)
{
    return mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                0) == MAP_FAILED
               ? -1
               : 0;
}

static int try_make_executable(void)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return page == MAP_FAILED ? -2 : mprotect(page, 4096, PROT_READ | PROT_EXEC);
}

static int try_load_bpf(void)
{
    union bpf_attr attr;
    memset(&attr, 0, sizeof attr);
    return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof attr);
}

static int try_make_map(void)
{
    union bpf_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.map_type = BPF_MAP_TYPE_ARRAY;
    attr.key_size = attr.value_size = 4;
    attr.max_entries = 1;
    return (int)syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof attr);
}

static int try_prctl(void)
{
    return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

static int try_memory(void)
{
    size_t size = (size_t)8 << 20;
    char *block = malloc(size), *larger;
    if (!block)
        return -1;
    memset(block, 1, size);
    larger = realloc(block, 4 * size);
    int rc = larger && larger[size - 1] == 1 ? 0 : -1;
    free(larger);
    return rc;
}

static void *in_thread(void *arg)
{
    *(int *)arg = try_memory();
    return NULL;
}

static int try_thread(void)
{
    pthread_t thread;
    int result = -1;
    if (pthread_create(&thread, NULL, in_thread, &result) != 0)
        return -1;
    return pthread_join(thread, NULL) == 0 ? result : -1;
}

static int try_write(void)
{
    return write(STDERR_FILENO, "", 0) == 0 ? 0 : -1;
}

static int try_wait(void)
{
    return poll(NULL, 0, 1);
}

/* A file that was opened before, and one that could not be. */
static int try_own_files(void)
{
    struct ew_os_file *file;
    uint64_t bytes;
    int64_t code = 0;
    char text[8];
    if (ew_os_file_open(own_files[0], &file, &bytes, &code) != 0)
        return -1;
    int64_t got = ew_os_file_read(file, 0, text, sizeof text);
    ew_os_file_close(file);
    bool missing = ew_os_file_open(own_files[1], &file, &bytes, &code) < 0 && code == ENOENT;
    return got == (int64_t)sizeof text && missing ? 0 : -1;
}

/* Standard input has none to report, which is another error than a refusal. */
static int try_seals(void)
{
    return fcntl(STDIN_FILENO, F_GET_SEALS) < 0 && errno == EPERM ? -1 : 0;
}

static int try_user_name(void)
{
    char name[64];
    ew_os_user_name(0, name, sizeof name);
    return strcmp(name, "root") == 0 ? 0 : -1;
}

/* ------------------------------------------------------------------------- the tests */

enum { REFUSED, ALLOWED };

static const struct {
    const char *what;
    int (*act)(void);
    int reader, live;
} tries[] = {
    {"open a file", try_open, REFUSED, ALLOWED},
    {"create a file", try_create, REFUSED, REFUSED},
    {"open a file for writing", try_open_write, REFUSED, REFUSED},
    {"remove a file", try_unlink, REFUSED, REFUSED},
    {"rename a file", try_rename, REFUSED, REFUSED},
    {"change rights of a file", try_chmod, REFUSED, REFUSED},
    {"start a program", try_exec, REFUSED, REFUSED},
    {"start a process", try_fork, REFUSED, REFUSED},
    {"make a local socket", try_local_socket, REFUSED, ALLOWED},
    {"make an internet socket", try_internet_socket, REFUSED, REFUSED},
    {"make a netlink socket", try_netlink_socket, REFUSED, REFUSED},
    {"trace", try_ptrace, REFUSED, REFUSED},
    {"send a signal", try_kill, REFUSED, ALLOWED},
    {"change the user", try_setuid, REFUSED, REFUSED},
    {"map memory for writing and running", try_program_memory, REFUSED, REFUSED},
    {"make memory executable", try_make_executable, REFUSED, REFUSED},
    {"load a BPF program", try_load_bpf, REFUSED, REFUSED},
    {"make a BPF map", try_make_map, REFUSED, REFUSED},
    {"change the process", try_prctl, REFUSED, REFUSED},
    {"allocate", try_memory, ALLOWED, ALLOWED},
    {"start a thread", try_thread, ALLOWED, ALLOWED},
    {"write to what is open", try_write, ALLOWED, ALLOWED},
    {"wait", try_wait, ALLOWED, ALLOWED},
    {"read the files of the reader", try_own_files, ALLOWED, ALLOWED},
    {"read the seals of a ring", try_seals, REFUSED, ALLOWED},
    {"name a user", try_user_name, REFUSED, ALLOWED},
};

enum { DID = 10, FAILED_EPERM, FAILED_OTHERWISE, NO_FILTER };

/* In a process of its own; how it went. */
static int attempt_server(int (*act)(void), bool connect)
{
    pid_t pid = fork();
    if (pid == 0) {
        int confined = ew_os_confine_server(connect);
        if (confined == 0 || confined == -EPERM)
            _exit(NO_FILTER);
        errno = 0;
        int rc = act();
        _exit(rc >= 0 ? DID : errno == EPERM ? FAILED_EPERM : FAILED_OTHERWISE);
    }
    int status = 0;
    CHECK_EQ_INT(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static int attempt(int (*act)(void), bool live)
{
    pid_t pid = fork();
    if (pid == 0) {
        (void)ew_os_file_keep(own_files, 2);
        int confined = live ? ew_os_confine_live() : ew_os_confine_reader();
        if (confined == 0 || confined == -EPERM)
            _exit(NO_FILTER);
        errno = 0;
        int rc = act();
        _exit(rc >= 0 ? DID : errno == EPERM ? FAILED_EPERM : FAILED_OTHERWISE);
    }
    int status = 0;
    CHECK_EQ_INT(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* The process that serves, without and with a push. */
static const struct {
    const char *what;
    int (*act)(void);
    int serving, pushing;
} server_tries[] = {
    {"start a program", try_exec, REFUSED, REFUSED},
    {"trace", try_ptrace, REFUSED, REFUSED},
    {"load a BPF program", try_load_bpf, REFUSED, REFUSED},
    {"make an internet socket", try_internet_socket, REFUSED, ALLOWED},
    {"make a local socket", try_local_socket, REFUSED, ALLOWED},
    {"open a file", try_open, ALLOWED, ALLOWED},
    {"start a thread", try_thread, ALLOWED, ALLOWED},
    {"write to what is open", try_write, ALLOWED, ALLOWED},
};

static void try_all(bool live)
{
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        test_row(tries[i].what);
        int got = attempt(tries[i].act, live);
        if (got == NO_FILTER)
            SKIP("this build or system has no filter of system calls");
        bool allowed = (live ? tries[i].live : tries[i].reader) == ALLOWED;
        if (tries[i].act == try_user_name && !allowed)
            CHECK(got != DID);
        else
            CHECK_EQ_INT(got, allowed ? DID : FAILED_EPERM);
    }
}

TEST(a_confined_reader_can_only_read_write_and_use_memory)
{
    try_all(false);
}

TEST(a_confined_monitor_can_read_files_but_neither_create_nor_start_anything)
{
    try_all(true);
}

TEST(a_server_reaches_others_only_if_it_pushes)
{
    for (size_t i = 0; i < 2 * (sizeof server_tries / sizeof server_tries[0]); i++) {
        bool connect = i % 2 != 0;
        test_row(server_tries[i / 2].what);
        int got = attempt_server(server_tries[i / 2].act, connect);
        if (got == NO_FILTER)
            SKIP("this build or system has no filter of system calls");
        int wanted = connect ? server_tries[i / 2].pushing : server_tries[i / 2].serving;
        CHECK_EQ_INT(got, wanted == ALLOWED ? DID : FAILED_EPERM);
    }
}
