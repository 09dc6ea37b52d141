/* SPDX-License-Identifier: MIT */
/*
 * The library's thread and a callback: prints every interval in which a process was above a limit.
 *
 * At 1000 samples a second a spike of 5 ms fills several intervals, so none is missed, and the
 * monitor still wakes only ten times a second. Usage: spikes PID SECONDS [PERCENT]
 */
#include <etwatch/etwatch.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct spikes {
    double limit_percent;
    uint64_t count;
};

/* Runs on the library's thread; samples are valid until it returns. */
static void report(void *ctx, const struct etwatch_sample *samples, size_t count)
{
    struct spikes *spikes = ctx;
    for (size_t i = 0; i < count; i++) {
        const struct etwatch_sample *s = &samples[i];
        if (s->type == ETWATCH_TYPE_EXIT)
            printf("exit %" PRIu32 "\n", s->pid);
        if (s->type != ETWATCH_TYPE_SAMPLE || !etwatch_sample_has(s, ETWATCH_M_cpu_percent))
            continue;
        if (s->cpu_percent < spikes->limit_percent)
            continue;
        spikes->count++;
        printf("spike %" PRIu64 " %" PRIu32 " %s %.0f%%%s\n", s->t_ns, s->pid,
               s->name != NULL ? s->name : "?", s->cpu_percent,
               s->flags & ETWATCH_SAMPLE_COMPLETE ? "" : " (events were lost)");
    }
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: spikes PID SECONDS [PERCENT]\n");
        return 2;
    }
    uint32_t pid = (uint32_t)strtoul(argv[1], NULL, 10);
    double seconds = strtod(argv[2], NULL);
    struct spikes spikes = {.limit_percent = argc > 3 ? strtod(argv[3], NULL) : 80};
    struct etwatch_config config = {
        .size = sizeof config,
        .hz = 1000,
        .pids = &pid,
        .pid_count = 1,
        .callbacks = {.size = sizeof config.callbacks, .on_samples = report, .ctx = &spikes},
    };
    struct etwatch_error_info error = {.size = sizeof error};
    struct etwatch_monitor *monitor = NULL;
    int rc = etwatch_monitor_new(&config, &monitor, &error);
    if (rc == 0)
        rc = etwatch_monitor_start(monitor, &error);
    if (rc < 0) {
        fprintf(stderr, "spikes: %s\n%s\n", error.message, error.fix);
        etwatch_monitor_free(monitor);
        return 1;
    }

    struct timespec pause = {.tv_sec = (time_t)seconds};
    pause.tv_nsec = (long)((seconds - (double)pause.tv_sec) * 1e9);
    nanosleep(&pause, NULL);
    etwatch_monitor_stop(monitor); /* no callback runs after this */

    struct etwatch_stats stats = {.size = sizeof stats};
    etwatch_monitor_stats(monitor, &stats);
    printf("spikes %" PRIu64 " lost %" PRIu64 "\n", spikes.count, stats.lost);
    etwatch_monitor_free(monitor);
    return 0;
}
