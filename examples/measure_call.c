/* SPDX-License-Identifier: MIT */
/*
 * The caller's own loop, no thread: the cost of one part of this program.
 *
 * Watches its own process with etwatch_monitor_open and etwatch_monitor_poll around a piece of work
 * and prints what the work cost. Usage: measure_call [MILLISECONDS-OF-WORK]
 */
#include <etwatch/etwatch.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct totals {
    uint64_t samples;
    uint64_t cpu_ns;
    uint64_t switches;
    uint64_t faults;
    double cpu_percent_max;
};

static void add_up(void *ctx, const struct etwatch_sample *samples, size_t count)
{
    struct totals *totals = ctx;
    for (size_t i = 0; i < count; i++) {
        const struct etwatch_sample *s = &samples[i];
        if (s->type != ETWATCH_TYPE_SAMPLE)
            continue;
        totals->samples++;
        /* A value that was not measured has no bit in `has`; it is not zero. */
        if (etwatch_sample_has(s, ETWATCH_M_cpu_ns))
            totals->cpu_ns += s->cpu_ns;
        if (etwatch_sample_has(s, ETWATCH_M_switches_voluntary))
            totals->switches += s->switches_voluntary + s->switches_involuntary;
        if (etwatch_sample_has(s, ETWATCH_M_faults_minor))
            totals->faults += s->faults_minor;
        if (etwatch_sample_has(s, ETWATCH_M_cpu_percent) &&
            s->cpu_percent > totals->cpu_percent_max)
            totals->cpu_percent_max = s->cpu_percent;
    }
}

static double clock_ms(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void work(double ms)
{
    volatile double x = 1;
    double end = clock_ms(CLOCK_PROCESS_CPUTIME_ID) + ms;
    while (clock_ms(CLOCK_PROCESS_CPUTIME_ID) < end)
        for (int i = 0; i < 1000; i++)
            x = x * 1.0000001 + 0.5;
}

int main(int argc, char **argv)
{
    double ms = argc > 1 ? strtod(argv[1], NULL) : 300;
    uint32_t self = (uint32_t)getpid();
    struct totals totals = {0};
    struct etwatch_config config = {
        .size = sizeof config,
        .hz = 100,
        .pids = &self,
        .pid_count = 1,
        .callbacks = {.size = sizeof config.callbacks, .on_samples = add_up, .ctx = &totals},
    };
    struct etwatch_error_info error = {.size = sizeof error};
    struct etwatch_monitor *monitor = NULL;
    int rc = etwatch_monitor_new(&config, &monitor, &error);
    if (rc == 0)
        rc = etwatch_monitor_open(monitor, &error);
    if (rc < 0) {
        fprintf(stderr, "measure_call: %s\n%s\n", error.message, error.fix);
        etwatch_monitor_free(monitor);
        return 1;
    }

    /* In a real program this is the event loop; poll delivers what is due and returns. */
    double before = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < 10; i++) {
        work(ms / 10);
        etwatch_monitor_poll(monitor, 0);
    }
    double used = clock_ms(CLOCK_PROCESS_CPUTIME_ID) - before;
    etwatch_monitor_stop(monitor); /* delivers the rest */

    struct etwatch_meta meta = {.size = sizeof meta};
    etwatch_monitor_meta(monitor, &meta);
    printf("source %s\n", etwatch_source_name(meta.source));
    printf("samples %" PRIu64 "\n", totals.samples);
    printf("cpu_ms %.3f\n", (double)totals.cpu_ns / 1e6);
    printf("clock_ms %.3f\n", used);
    printf("cpu_percent_max %.1f\n", totals.cpu_percent_max);
    printf("switches %" PRIu64 "\n", totals.switches);
    printf("faults %" PRIu64 "\n", totals.faults);
    etwatch_monitor_free(monitor);
    return 0;
}
