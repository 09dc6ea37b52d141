/* SPDX-License-Identifier: MIT */
/*
 * Processes that live about a millisecond, many at once: --count of them, --burst at a time. Each
 * computes for --cpu-us and sleeps for the rest of --life-us; with --exec it executes another
 * program, which computes. The parent waits for each and prints at the end what the kernel charged
 * for all of them (RUSAGE_CHILDREN): the reference for a monitor's sum.
 *
 * Prints "ready PID", waits for a line on stdin, works, prints one line of JSON, and stays until
 * its stdin ends, so that a watcher can still read it. --pids FILE gets the pid of every child.
 * --forever works until killed (for the soak) and also starts and ends a thread all the time.
 */
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "util.h"

enum { MAX_BURST = 4096 };

struct options {
    uint64_t count, burst, life_us, cpu_us, gap_us;
    bool exec, forever, at_once;
    FILE *pids;
};

static void usage(void)
{
    die("usage: burst [--count N] [--burst N] [--life-us N] [--cpu-us N] [--gap-us N] [--exec]"
        " [--forever] [--reap-at-once] [--pids FILE]");
}

static void parse(int argc, char **argv, struct options *o)
{
    *o = (struct options){
        .count = 10000, .burst = 16, .life_us = 1000, .cpu_us = 100, .gap_us = 3000};
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        if (strcmp(name, "--exec") == 0)
            o->exec = true;
        else if (strcmp(name, "--forever") == 0)
            o->forever = true;
        else if (strcmp(name, "--reap-at-once") == 0)
            o->at_once = true;
        else if (strcmp(name, "--pids") == 0)
            o->pids = fopen(option_value(argc, argv, &i), "w");
        else if (strcmp(name, "--count") == 0)
            o->count = parse_u64(option_value(argc, argv, &i), name);
        else if (strcmp(name, "--burst") == 0)
            o->burst = parse_u64(option_value(argc, argv, &i), name);
        else if (strcmp(name, "--life-us") == 0)
            o->life_us = parse_u64(option_value(argc, argv, &i), name);
        else if (strcmp(name, "--cpu-us") == 0)
            o->cpu_us = parse_u64(option_value(argc, argv, &i), name);
        else if (strcmp(name, "--gap-us") == 0)
            o->gap_us = parse_u64(option_value(argc, argv, &i), name);
        else
            usage();
    }
    if (o->burst == 0 || o->burst > MAX_BURST || o->cpu_us > o->life_us)
        usage();
}

static void live(uint64_t life_us, uint64_t cpu_us)
{
    uint64_t start_ns = clock_ns(CLOCK_MONOTONIC);
    uint64_t cpu_end_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + cpu_us * 1000;
    while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < cpu_end_ns)
        ;
    sleep_until(CLOCK_MONOTONIC, start_ns + life_us * 1000);
}

static pid_t start_one(const struct options *o)
{
    pid_t pid = fork();
    if (pid < 0)
        die("fork: %s", strerror(errno));
    if (pid > 0)
        return pid;
    if (o->exec) {
        char life[24], cpu[24];
        snprintf(life, sizeof life, "%llu", (unsigned long long)o->life_us);
        snprintf(cpu, sizeof cpu, "%llu", (unsigned long long)o->cpu_us);
        execl("/proc/self/exe", "burst", "--live", life, cpu, (char *)NULL);
        _exit(127);
    }
    live(o->life_us, o->cpu_us);
    _exit(0);
}

/*
 * Waits for n children. The kernel charges for a child what it has accounted when the child is
 * reaped, and the last stretch of a child that is still leaving another CPU is not yet included. So
 * all must be dead first, then have a moment to leave the CPU, and only then are they reaped. For a
 * watcher that polls the list of pids this would prolong their lives: --reap-at-once is for that.
 */
static void reap(const struct options *o, const pid_t *pids, uint64_t n)
{
    for (uint64_t i = 0; i < n && !o->at_once; i++) {
        siginfo_t info;
        if (waitid(P_PID, (id_t)pids[i], &info, WEXITED | WNOWAIT) != 0)
            die("waitid: %s", strerror(errno));
    }
    if (!o->at_once)
        usleep((useconds_t)o->gap_us);
    for (uint64_t i = 0; i < n; i++) {
        int status = 0;
        if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
            die("a child failed");
    }
    if (o->at_once)
        usleep((useconds_t)o->gap_us);
}

static void work(const struct options *o)
{
    static pid_t pids[MAX_BURST];
    for (uint64_t made = 0; made < o->count;) {
        uint64_t n = o->count - made < o->burst ? o->count - made : o->burst;
        for (uint64_t i = 0; i < n; i++) {
            pids[i] = start_one(o);
            if (o->pids != NULL)
                fprintf(o->pids, "%ld\n", (long)pids[i]);
        }
        reap(o, pids, n);
        made += n;
    }
}

static void *brief_thread(void *arg)
{
    live(1000, 300);
    return arg;
}

static void work_forever(const struct options *o)
{
    for (;;) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, brief_thread, NULL) != 0)
            die("no thread");
        work(o);
        pthread_join(thread, NULL);
    }
}

static void report(const struct options *o, uint64_t wall_ns)
{
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    uint64_t cpu_us = (uint64_t)usage.ru_utime.tv_sec * 1000000u +
                      (uint64_t)usage.ru_utime.tv_usec +
                      (uint64_t)usage.ru_stime.tv_sec * 1000000u + (uint64_t)usage.ru_stime.tv_usec;
    printf("{\"count\": %llu, \"cpu_ns\": %llu, \"wall_ns\": %llu}\n", (unsigned long long)o->count,
           (unsigned long long)cpu_us * 1000u, (unsigned long long)wall_ns);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--live") == 0) {
        live(parse_u64(argv[2], "life"), parse_u64(argv[3], "cpu"));
        return 0;
    }
    struct options o;
    parse(argc, argv, &o);
    end_with_parent(getppid());
    printf("ready %ld\n", (long)getpid());
    fflush(stdout);
    char line[16];
    if (!read_command(line, sizeof line))
        return 0;
    if (o.forever)
        work_forever(&o);
    uint64_t start_ns = clock_ns(CLOCK_MONOTONIC);
    work(&o);
    if (o.pids != NULL && fclose(o.pids) != 0)
        die("--pids: %s", strerror(errno));
    report(&o, clock_ns(CLOCK_MONOTONIC) - start_ns);
    while (read_command(line, sizeof line))
        ;
    return 0;
}
