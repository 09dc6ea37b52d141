/* SPDX-License-Identifier: MIT */
/*
 * Storms that know what they did, for the soak: new processes (--processes, per second), new
 * threads (--threads, per second) and context switches (--pipes: that many pairs of threads that
 * wake each other as fast as they can). Prints "ready PID", works, and prints one line of JSON when
 * a line arrives on stdin or stdin ends. A process that is counted was started and reaped.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "util.h"

enum { PIPES_MAX = 64 };

static atomic_bool over;
static atomic_ullong processes, threads, turns;

static void *brief(void *arg)
{
    return arg;
}

static void one_process(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    if (pid < 0 || waitpid(pid, NULL, 0) != pid)
        die("fork: %s", strerror(errno));
    atomic_fetch_add(&processes, 1);
}

static void one_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, brief, NULL) != 0)
        die("no thread");
    pthread_join(thread, NULL);
    atomic_fetch_add(&threads, 1);
}

struct maker {
    uint64_t per_s;
    void (*one)(void);
};

/* At the rate, in steps of 10 ms; what the machine does not manage is not made up for. */
static void *make(void *arg)
{
    const struct maker *maker = arg;
    uint64_t step_ns = 10000000, next_ns = clock_ns(CLOCK_MONOTONIC);
    while (!atomic_load(&over)) {
        for (uint64_t i = 0; i < (maker->per_s + 99) / 100 && !atomic_load(&over); i++)
            maker->one();
        uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        next_ns = next_ns + step_ns > now_ns ? next_ns + step_ns : now_ns;
        sleep_until(CLOCK_MONOTONIC, next_ns);
    }
    return NULL;
}

struct side {
    int in, out;
};

/* In each turn the thread waits once: one switch to it and one from it. */
static void *turn(void *arg)
{
    const struct side *side = arg;
    char byte = 0;
    while (!atomic_load(&over) && write(side->out, &byte, 1) == 1 && read(side->in, &byte, 1) == 1)
        atomic_fetch_add_explicit(&turns, 1, memory_order_relaxed);
    (void)close(side->out); /* ends the other side */
    return NULL;
}

static void start(void *(*run)(void *), void *arg, long cpu)
{
    pthread_attr_t attributes;
    pthread_t thread;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    if (pthread_attr_init(&attributes) != 0 ||
        (cpu >= 0 && pthread_attr_setaffinity_np(&attributes, sizeof set, &set) != 0) ||
        pthread_create(&thread, &attributes, run, arg) != 0)
        die("no thread");
    pthread_detach(thread);
}

int main(int argc, char **argv)
{
    static struct maker process_maker = {0, one_process}, thread_maker = {0, one_thread};
    static struct side sides[2 * PIPES_MAX];
    uint64_t pipes = 0;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    char line[16];
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        uint64_t *value = strcmp(name, "--processes") == 0 ? &process_maker.per_s
                          : strcmp(name, "--threads") == 0 ? &thread_maker.per_s
                          : strcmp(name, "--pipes") == 0   ? &pipes
                                                           : NULL;
        if (value == NULL)
            die("usage: storm [--processes N] [--threads N] [--pipes N]");
        *value = parse_u64(option_value(argc, argv, &i), name);
    }
    if (pipes > PIPES_MAX)
        die("at most %d pipes", PIPES_MAX);
    (void)signal(SIGPIPE, SIG_IGN);
    printf("ready %ld\n", (long)getpid());
    (void)fflush(stdout);
    for (uint64_t i = 0; i < pipes; i++) {
        int to[2], from[2];
        if (pipe(to) != 0 || pipe(from) != 0)
            die("pipe: %s", strerror(errno));
        sides[2 * i] = (struct side){from[0], to[1]};
        sides[2 * i + 1] = (struct side){to[0], from[1]};
        start(turn, &sides[2 * i], (long)i % cpus);
        start(turn, &sides[2 * i + 1], (long)i % cpus);
    }
    if (process_maker.per_s != 0)
        start(make, &process_maker, -1);
    if (thread_maker.per_s != 0)
        start(make, &thread_maker, -1);
    (void)read_command(line, sizeof line);
    atomic_store(&over, true);
    (void)usleep(200000);
    printf("{\"processes\": %llu, \"threads\": %llu, \"switches\": %llu}\n",
           (unsigned long long)atomic_load(&processes), (unsigned long long)atomic_load(&threads),
           (unsigned long long)atomic_load(&turns));
    (void)fflush(stdout);
    return 0;
}
