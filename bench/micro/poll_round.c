/* SPDX-License-Identifier: MIT */
/*
 * One round of the poll source over 1000 idle processes, in CPU time of the reading thread,
 * compared with the two obvious ways to read the same four files of each: with the files kept open,
 * and opened again in each round.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/os.h"
#include "source/source.h"

enum { IDLE = 1000, ROUNDS = 50, FILES = 4 };
static const char *const files[FILES] = {"stat", "status", "io", "schedstat"};
static pid_t pids[IDLE];
static int fds[IDLE][FILES];
static char text[8192];

static int open_file(pid_t pid, const char *file)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static void make_idle(void)
{
    for (int i = 0; i < IDLE; i++) {
        pids[i] = fork();
        if (pids[i] < 0)
            exit(1);
        if (pids[i] == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;)
                (void)pause();
        }
    }
}

static void end_idle(void)
{
    for (int i = 0; i < IDLE; i++)
        (void)kill(pids[i], SIGKILL);
    for (int i = 0; i < IDLE; i++)
        (void)waitpid(pids[i], NULL, 0);
}

static uint64_t read_kept(void)
{
    uint64_t start_ns = ew_os_thread_cpu_ns();
    for (int i = 0; i < IDLE; i++)
        for (int file = 0; file < FILES; file++)
            if (pread(fds[i][file], text, sizeof text, 0) <= 0)
                exit(1);
    return ew_os_thread_cpu_ns() - start_ns;
}

static uint64_t read_reopened(void)
{
    uint64_t start_ns = ew_os_thread_cpu_ns();
    for (int i = 0; i < IDLE; i++)
        for (int file = 0; file < FILES; file++) {
            int fd = open_file(pids[i], files[file]);
            if (fd < 0 || read(fd, text, sizeof text) <= 0)
                exit(1);
            (void)close(fd);
        }
    return ew_os_thread_cpu_ns() - start_ns;
}

static void ignore_process(void *ctx, const struct ew_process_fact *fact)
{
    (void)ctx;
    (void)fact;
}

static void ignore_reading(void *ctx, const struct ew_reading *reading)
{
    (void)ctx;
    (void)reading;
}

static void ignore_loss(void *ctx, const struct etwatch_loss *loss)
{
    (void)ctx;
    (void)loss;
}

static uint64_t read_ours(struct ew_source *source)
{
    static const struct ew_facts facts = {
        .process = ignore_process, .reading = ignore_reading, .loss = ignore_loss};
    struct ew_error error;
    uint64_t horizon_ns, start_ns = ew_os_thread_cpu_ns();
    if (ew_source_poll.drain(source, ew_os_raw_ns(), &facts, &horizon_ns, &error) != 0)
        exit(1);
    return ew_os_thread_cpu_ns() - start_ns;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void print_figure(const char *name, uint64_t *ns, const char *ratio_to)
{
    qsort(ns, ROUNDS, sizeof *ns, compare);
    uint64_t tenths = (ns[ROUNDS / 2] + 50) / 100;
    printf("{\"name\": \"%s\", \"unit\": \"us/round\", \"value\": %llu.%llu", name,
           (unsigned long long)(tenths / 10), (unsigned long long)(tenths % 10));
    if (ratio_to)
        printf(", \"ratio_to\": \"%s\"", ratio_to);
    printf("}\n");
}

int main(void)
{
    static uint64_t kept_ns[ROUNDS], anew_ns[ROUNDS], ours_ns[ROUNDS];
    struct rlimit limit;
    struct ew_source *source;
    struct ew_error error;
    /* Only this program and its children, so that other processes on the machine do not count. */
    uint32_t self = (uint32_t)getpid();
    struct ew_source_config config = {
        .filter = {.pids = &self, .pid_count = 1}, .max_processes = 65536, .proc_root = "/proc"};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 1;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < IDLE * FILES + 100) {
        fprintf(stderr, "poll_round: needs %d descriptors (ulimit -n)\n", IDLE * FILES + 100);
        return 1;
    }
    make_idle();
    for (int i = 0; i < IDLE; i++)
        for (int file = 0; file < FILES; file++)
            if ((fds[i][file] = open_file(pids[i], files[file])) < 0)
                return 1;
    if (ew_source_poll.open(&config, &source, &error) != 0)
        return 1;
    (void)read_ours(source); /* the first round reads everything */
    for (int round = 0; round < ROUNDS; round++) {
        kept_ns[round] = read_kept();
        anew_ns[round] = read_reopened();
        ours_ns[round] = read_ours(source);
    }
    print_figure("files opened again", anew_ns, NULL);
    print_figure("files kept open", kept_ns, "files opened again");
    print_figure("etwatch poll", ours_ns, "files kept open");
    ew_source_poll.close(source);
    end_idle();
    return 0;
}
