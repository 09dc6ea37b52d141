/* SPDX-License-Identifier: MIT */
/*
 * trace_report FILE.etl...: the five busiest processes of Windows recordings, and the most frequent
 * kinds of events.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <etwatch/trace.h>

enum { SHOWN = 5 };

struct top {
    struct {
        char name[64];
        uint32_t pid;
        uint64_t cpu_ns;
        int estimated;
    } process[SHOWN];
    unsigned classes;
};

static int on_class(void *ctx, const struct etwatch_trace_class *klass)
{
    struct top *top = ctx;
    if (top->classes++ < SHOWN)
        printf("events %" PRIu64 " %s %s\n", klass->count, klass->provider, klass->event);
    return 0;
}

/* Keeps the list sorted by CPU time: a larger entry moves the others down. */
static int on_process(void *ctx, const struct etwatch_sample *process,
                      const struct etwatch_metric_set *estimated)
{
    struct top *top = ctx;
    int at = SHOWN;
    if (!etwatch_sample_has(process, ETWATCH_M_cpu_ns) || process->pid == 0)
        return 0;
    while (at > 0 && process->cpu_ns > top->process[at - 1].cpu_ns)
        at--;
    if (at == SHOWN)
        return 0;
    memmove(&top->process[at + 1], &top->process[at],
            (size_t)(SHOWN - 1 - at) * sizeof top->process[0]);
    (void)snprintf(top->process[at].name, sizeof top->process[at].name, "%s",
                   process->name != NULL ? process->name : "-");
    top->process[at].pid = process->pid;
    top->process[at].cpu_ns = process->cpu_ns;
    top->process[at].estimated = etwatch_metric_set_has(estimated, ETWATCH_M_cpu_ns);
    return 0;
}

int main(int argc, char **argv)
{
    struct etwatch_error_info error = {.size = sizeof error};
    struct etwatch_trace_stats stats = {.size = sizeof stats};
    struct etwatch_trace *trace = NULL;
    struct top top = {0};
    struct etwatch_report_callbacks callbacks = {
        .size = sizeof callbacks,
        .on_class = on_class,
        .on_process = on_process,
        .ctx = &top,
    };
    if (argc < 2) {
        fprintf(stderr, "usage: trace_report FILE.etl...\n");
        return 2;
    }
    int rc =
        etwatch_trace_open((const char *const *)&argv[1], (size_t)(argc - 1), NULL, &trace, &error);
    if (rc == 0)
        rc = etwatch_trace_report(trace, &callbacks, NULL, &error);
    if (rc == 0)
        rc = etwatch_trace_stats(trace, &stats);
    if (rc < 0)
        fprintf(stderr, "trace_report: %s\n", error.message);
    for (int i = 0; rc == 0 && i < SHOWN && top.process[i].cpu_ns > 0; i++)
        printf("cpu_ms %s%.1f %" PRIu32 " %s\n", top.process[i].estimated ? "~" : "",
               (double)top.process[i].cpu_ns / 1e6, top.process[i].pid, top.process[i].name);
    if (rc == 0)
        printf("all %" PRIu64 " lost %" PRIu64 "\n", stats.events, stats.lost);
    etwatch_trace_free(trace);
    return rc < 0;
}
