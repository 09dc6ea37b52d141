/* SPDX-License-Identifier: MIT */
/*
 * A workload with a known pattern that knows its CPU time at every instant.
 *
 * Threads compute and sleep in turn. The truth is a list of points (CLOCK_BOOTTIME, CPU time) for
 * each thread, dense enough that linear interpolation is correct everywhere. Two methods:
 *
 *   --truth self   Each thread reads its CPU clock when it starts and stops computing. In between
 *     it reads only the wall clock, which needs no system call, in a tight loop: while it runs, CPU
 *     time and wall time advance together, and a jump of the wall clock shows that it was
 *     interrupted or moved; after a jump the CPU clock is read again. So the truth has the
 *     resolution of microseconds, and the kernel's accounting is not refreshed at the very moments
 *     when a monitor cuts its intervals, which would flatter the monitor.
 *   --truth clock  A thread of the process reads the CPU clocks of all threads at the ends of the
 *     monitor's windows (--window-ns, --phase-ns: a window end in CLOCK_BOOTTIME). It spins over
 *     the last microseconds and keeps the readings just before and after the end. Its own cost is
 *     part of what it reads. The sum of the threads' clocks is what CLOCK_PROCESS_CPUTIME_ID means;
 * that clock itself omits what threads on other CPUs have run since their last timer tick, up to 4
 * ms, so it is too inexact for windows of 10 ms.
 *   --truth both   The first, and the second without its own cost as "check": their agreement shows
 * how good the truth is.
 *
 * Nothing is written while the pattern runs; points go to memory and to FILE.PID at the end, one
 * line each: "thread t_ns cpu_ns". Prints "ready PID" and waits for a line on stdin.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "util.h"

enum { MAX_THREADS = 64, MAX_POINTS = 1 << 20, JUMP_NS = 3000, SPIN_NS = 150000 };

struct options {
    uint64_t on_us, off_us, seconds, threads, depth, window_ns, phase_ns;
    bool pin, migrate, jitter, self, clock;
    const char *log;
};

struct point {
    uint64_t t_ns, cpu_ns;
};

struct worker {
    const struct options *options;
    pthread_t thread;
    uint64_t index, start_ns, end_ns, random;
    struct point *points;
    size_t point_count;
};

static struct worker workers[MAX_THREADS + 1];
static atomic_bool sampling; /* the clocks of the workers are still read */

/* ------------------------------------------------------------------------ truth */

static void keep(struct worker *w, uint64_t t_ns, uint64_t cpu_ns)
{
    if (w->point_count == MAX_POINTS)
        die("too many points: shorten the run");
    w->points[w->point_count++] = (struct point){t_ns, cpu_ns};
}

/* Both clocks at one instant; retries if it was interrupted in between. */
static uint64_t keep_now(struct worker *w)
{
    struct point p = {0, 0};
    for (int i = 0; i < 20; i++) {
        uint64_t before_ns = clock_ns(CLOCK_BOOTTIME);
        p.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        p.t_ns = clock_ns(CLOCK_BOOTTIME);
        if (p.t_ns - before_ns < JUMP_NS)
            break;
    }
    keep(w, p.t_ns, p.cpu_ns);
    return p.t_ns;
}

static void compute_until(struct worker *w, uint64_t end_ns)
{
    bool self = w->options->self;
    uint64_t last_ns = self ? keep_now(w) : clock_ns(CLOCK_BOOTTIME);
    while (last_ns < end_ns) {
        uint64_t now_ns = clock_ns(CLOCK_BOOTTIME);
        if (self && now_ns - last_ns > JUMP_NS) {
            /* Up to last_ns it ran without interruption since the previous point; the difference in
             * rate of the two clocks becomes visible only afterwards. */
            struct point before = w->points[w->point_count - 1];
            size_t at = w->point_count;
            keep(w, last_ns, before.cpu_ns + (last_ns - before.t_ns));
            now_ns = keep_now(w);
            if (w->points[at].cpu_ns > w->points[at + 1].cpu_ns)
                w->points[at].cpu_ns = w->points[at + 1].cpu_ns;
        }
        last_ns = now_ns;
    }
    if (self)
        keep_now(w);
}

/* The CPU time of all workers, and of the reader itself if its cost is part of the truth. */
static struct point all_clocks(const struct worker *sampler, const clockid_t *clocks)
{
    const struct options *o = sampler->options;
    uint64_t before_ns = clock_ns(CLOCK_BOOTTIME), cpu_ns = 0;
    for (uint64_t i = 0; i < o->threads; i++)
        cpu_ns += clock_ns(clocks[i]);
    if (!o->self)
        cpu_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID);
    uint64_t after_ns = clock_ns(CLOCK_BOOTTIME);
    return (struct point){before_ns + (after_ns - before_ns) / 2, cpu_ns};
}

/* Reads all clocks around every window end. The workers live until this ends. */
static void *sample_clocks(void *arg)
{
    struct worker *w = arg;
    uint64_t window_ns = w->options->window_ns;
    struct sched_param param = {.sched_priority = 10};
    pthread_setschedparam(pthread_self(), SCHED_FIFO, &param); /* better, but not required */
    clockid_t clocks[MAX_THREADS];
    for (uint64_t i = 0; i < w->options->threads; i++)
        pthread_getcpuclockid(workers[i].thread, &clocks[i]);
    uint64_t phase_ns = w->options->phase_ns % window_ns;
    uint64_t end_ns = (w->start_ns / window_ns + 1) * window_ns + phase_ns;
    for (; end_ns < w->end_ns; end_ns += window_ns) {
        sleep_until(CLOCK_BOOTTIME, end_ns - SPIN_NS);
        struct point before = all_clocks(w, clocks), after = before;
        while (after.t_ns < end_ns) {
            before = after;
            after = all_clocks(w, clocks);
        }
        /* Woken too late or interrupted: the value at this end is unknown. */
        if (after.t_ns - before.t_ns > 30000 || before.t_ns > end_ns)
            continue;
        keep(w, before.t_ns, before.cpu_ns);
        keep(w, after.t_ns, after.cpu_ns);
    }
    atomic_store(&sampling, false);
    return NULL;
}

/* ---------------------------------------------------------------------- pattern */

static void pin_to(uint64_t index)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(index % (uint64_t)sysconf(_SC_NPROCESSORS_ONLN), &set);
    sched_setaffinity(0, sizeof set, &set);
}

/* 90 to 110 percent of us, in ns: bursts must not stay in step with the windows. */
static uint64_t jittered_ns(struct worker *w, uint64_t us)
{
    if (!w->options->jitter)
        return us * 1000;
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return us * 900 + (w->random >> 33) % (us * 200 + 1);
}

static void *run_worker(void *arg)
{
    struct worker *w = arg;
    const struct options *o = w->options;
    uint64_t round = 0, next_ns = w->start_ns;
    w->random = w->index + 1;
    if (o->pin)
        pin_to(w->index);
    while (next_ns < w->end_ns) {
        sleep_until(CLOCK_BOOTTIME, next_ns);
        uint64_t on_ns = jittered_ns(w, o->on_us);
        if (o->migrate) {
            compute_until(w, next_ns + on_ns / 2);
            pin_to(w->index + ++round);
        }
        compute_until(w, next_ns + on_ns);
        next_ns += on_ns + jittered_ns(w, o->off_us);
        uint64_t now_ns = clock_ns(CLOCK_BOOTTIME);
        if (next_ns < now_ns)
            next_ns = now_ns; /* other processes had the CPU: continue from here */
    }
    while (atomic_load(&sampling))
        usleep(10000);
    return NULL;
}

static void start_thread(struct worker *w, const struct options *o, uint64_t index,
                         uint64_t start_ns, void *(*run)(void *))
{
    *w = (struct worker){.options = o, .index = index, .start_ns = start_ns};
    w->end_ns = start_ns + o->seconds * 1000000000u;
    w->points = pages(sizeof *w->points * MAX_POINTS);
    if (pthread_create(&w->thread, NULL, run, w) != 0)
        die("no thread");
}

static void write_points(FILE *log, const struct worker *w)
{
    bool check = w->options->self && w->options->clock && w->index == MAX_THREADS;
    for (size_t i = 0; i < w->point_count; i++) {
        if (check)
            fprintf(log, "check ");
        else
            fprintf(log, "%llu ", (unsigned long long)w->index);
        fprintf(log, "%llu %llu\n", (unsigned long long)w->points[i].t_ns,
                (unsigned long long)w->points[i].cpu_ns);
    }
}

static FILE *open_log(const struct options *o)
{
    char path[4096];
    snprintf(path, sizeof path, "%s.%ld", o->log, (long)getpid());
    FILE *log = fopen(path, "w");
    if (log == NULL)
        die("%s: %s", path, strerror(errno));
    return log;
}

/*
 * Waits for a child after it has left the CPU: if reaped at once, its last stretch is not yet
 * charged.
 */
static void reap(pid_t child)
{
    siginfo_t info;
    if (waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) != 0)
        die("waitid: %s", strerror(errno));
    usleep(20000);
    waitpid(child, NULL, 0);
}

/* One process of the chain; the next one down runs at the same time. */
static void run_process(const struct options *o, uint64_t depth, uint64_t start_ns)
{
    pid_t child = 0;
    if (depth > 1) {
        pid_t parent = getpid();
        child = fork();
        if (child < 0)
            die("fork: %s", strerror(errno));
        if (child == 0) {
            end_with_parent(parent);
            run_process(o, depth - 1, start_ns + 3000000);
            _exit(0);
        }
    }
    FILE *log = open_log(o);
    atomic_store(&sampling, o->clock);
    for (uint64_t i = 0; i < o->threads; i++)
        start_thread(&workers[i], o, i, start_ns + i * 1000000, run_worker);
    struct worker *sampler = &workers[o->threads];
    if (o->clock)
        start_thread(sampler, o, MAX_THREADS, start_ns, sample_clocks);
    for (uint64_t i = 0; i < o->threads + o->clock; i++)
        pthread_join(workers[i].thread, NULL);
    for (uint64_t i = 0; i < o->threads + o->clock; i++)
        write_points(log, &workers[i]);
    if (child > 0)
        reap(child);
    if (fclose(log) != 0)
        die("log: %s", strerror(errno));
}

static bool parse_flag(const char *name, struct options *o)
{
    o->pin |= strcmp(name, "--pin") == 0;
    o->migrate |= strcmp(name, "--migrate") == 0;
    o->jitter |= strcmp(name, "--jitter") == 0;
    return strcmp(name, "--pin") == 0 || strcmp(name, "--migrate") == 0 ||
           strcmp(name, "--jitter") == 0;
}

static void parse_truth(const char *value, struct options *o)
{
    o->self = strcmp(value, "self") == 0 || strcmp(value, "both") == 0;
    o->clock = strcmp(value, "clock") == 0 || strcmp(value, "both") == 0;
    if (!o->self && !o->clock)
        die("--truth: self, clock or both");
}

static void parse(int argc, char **argv, struct options *o)
{
    *o = (struct options){.on_us = 5000,
                          .off_us = 5000,
                          .seconds = 5,
                          .threads = 1,
                          .depth = 1,
                          .window_ns = 10000000,
                          .self = true};
    const struct {
        const char *name;
        uint64_t *value;
    } numbers[] = {{"--on-us", &o->on_us},      {"--off-us", &o->off_us},
                   {"--seconds", &o->seconds},  {"--threads", &o->threads},
                   {"--depth", &o->depth},      {"--window-ns", &o->window_ns},
                   {"--phase-ns", &o->phase_ns}};
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        if (parse_flag(name, o))
            continue;
        const char *value = option_value(argc, argv, &i);
        size_t at = 0, count = sizeof numbers / sizeof *numbers;
        while (at < count && strcmp(numbers[at].name, name) != 0)
            at++;
        if (at < count)
            *numbers[at].value = parse_u64(value, name);
        else if (strcmp(name, "--log") == 0)
            o->log = value;
        else if (strcmp(name, "--truth") == 0)
            parse_truth(value, o);
        else
            die("pattern: unknown option %s", name);
    }
    if (o->log == NULL || o->threads == 0 || o->threads > MAX_THREADS || o->window_ns == 0 ||
        o->depth == 0)
        die("usage: pattern --log FILE [--on-us N] [--off-us N] [--seconds N] [--threads 1-64]"
            " [--depth N] [--pin] [--migrate] [--jitter] [--truth self|clock|both] [--window-ns N]"
            " [--phase-ns N]");
}

int main(int argc, char **argv)
{
    struct options o;
    parse(argc, argv, &o);
    printf("ready %ld\n", (long)getpid());
    fflush(stdout);
    char line[16];
    if (!read_command(line, sizeof line))
        return 0;
    run_process(&o, o.depth, clock_ns(CLOCK_BOOTTIME) + 50000000);
    return 0;
}
