/* SPDX-License-Identifier: MIT */
/*
 * The watched population: idle children that never run, and busy children that compute for a while
 * and sleep for a while.
 *
 * A busy child wakes at absolute times, so its pattern does not drift with the load of the machine,
 * and the children are distributed evenly over one period, so that they do not all wake at once.
 * Every child dies with this process, and this process exits when its stdin closes: whatever
 * happens to the driver, nothing remains.
 */
#include "util.h"

struct options {
    uint64_t idle, busy, on_us, off_us;
};

static void parse(int argc, char **argv, struct options *o)
{
    *o = (struct options){.idle = 1000, .busy = 20, .on_us = 500, .off_us = 10000};
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        uint64_t value = parse_u64(option_value(argc, argv, &i), name);
        if (strcmp(name, "--idle") == 0)
            o->idle = value;
        else if (strcmp(name, "--busy") == 0)
            o->busy = value;
        else if (strcmp(name, "--on-us") == 0)
            o->on_us = value;
        else if (strcmp(name, "--off-us") == 0)
            o->off_us = value;
        else
            die("usage: load [--idle N] [--busy N] [--on-us N] [--off-us N]");
    }
}

static void compute(uint64_t ns)
{
    uint64_t end = clock_ns(CLOCK_MONOTONIC) + ns;
    while (clock_ns(CLOCK_MONOTONIC) < end)
        ;
}

static void be_busy(const struct options *o, uint64_t start_ns)
{
    uint64_t period_ns = (o->on_us + o->off_us) * 1000;
    uint64_t next_ns = start_ns;
    for (;;) {
        sleep_until(CLOCK_MONOTONIC, next_ns);
        compute(o->on_us * 1000);
        /* Periods missed on an overloaded machine are skipped, not repeated. */
        uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        do
            next_ns += period_ns;
        while (next_ns <= now_ns);
    }
}

static void spawn(const struct options *o, bool busy, uint64_t start_ns)
{
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid < 0)
        die("fork: %s", strerror(errno));
    if (pid > 0)
        return;
    end_with_parent(parent);
    prctl(PR_SET_NAME, busy ? "load-busy" : "load-idle");
    if (busy)
        be_busy(o, start_ns);
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    struct options o;
    parse(argc, argv, &o);
    end_with_parent(getppid());
    for (uint64_t i = 0; i < o.idle; i++)
        spawn(&o, false, 0);
    uint64_t period_ns = (o.on_us + o.off_us) * 1000;
    uint64_t start_ns = clock_ns(CLOCK_MONOTONIC) + 50000000;
    for (uint64_t i = 0; i < o.busy; i++)
        spawn(&o, true, start_ns + i * period_ns / o.busy);
    printf("ready %ld\n", (long)getpid());
    fflush(stdout);
    char line[16];
    while (read_command(line, sizeof line))
        ;
    return 0;
}
