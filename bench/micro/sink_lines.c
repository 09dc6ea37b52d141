/* SPDX-License-Identifier: MIT */
/*
 * The cost of one line of output alone: samples as an eBPF run yields them, formatted as JSON Lines
 * and as CSV and discarded, batch by batch.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <etwatch/sink.h>

enum { BATCH = 256, BATCHES = 400 };

static size_t written_bytes;

static int discard(void *ctx, const void *bytes, size_t len)
{
    (void)ctx;
    (void)bytes;
    written_bytes += len;
    return 0;
}

static uint64_t cpu_now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static const enum etwatch_metric known[] = {
    ETWATCH_M_cpu_percent,
    ETWATCH_M_cpu_ns,
    ETWATCH_M_cpu_user_ns,
    ETWATCH_M_cpu_kernel_ns,
    ETWATCH_M_switches_voluntary,
    ETWATCH_M_switches_involuntary,
    ETWATCH_M_runq_wait_ns,
    ETWATCH_M_priority,
    ETWATCH_M_rss_bytes,
    ETWATCH_M_virtual_bytes,
    ETWATCH_M_faults_minor,
    ETWATCH_M_faults_major,
    ETWATCH_M_threads,
    ETWATCH_M_io_read_bytes,
    ETWATCH_M_io_write_bytes,
    ETWATCH_M_io_read_ops,
    ETWATCH_M_io_write_ops,
};

static void fill(struct etwatch_sample *samples)
{
    for (uint32_t i = 0; i < BATCH; i++) {
        struct etwatch_sample *s = &samples[i];
        memset(s, 0, sizeof *s);
        s->size = sizeof *s;
        s->type = ETWATCH_TYPE_SAMPLE;
        s->source = ETWATCH_SOURCE_EBPF;
        s->flags = ETWATCH_SAMPLE_COMPLETE | ETWATCH_SAMPLE_HAS_PPID | ETWATCH_SAMPLE_HAS_SESSION;
        s->pid = 1000 + i * 37;
        s->ppid = 1;
        s->session_id = 1000;
        s->start_ns = 1700000000123456789u + i * 1234567u;
        s->t_ns = 1700000100000000000u + i * 1000000u;
        s->dt_ns = 10000000;
        s->name = "inference";
        s->user = "runner";
        for (size_t m = 0; m < sizeof known / sizeof known[0]; m++)
            etwatch_metric_set_add(&s->has, known[m]);
        s->cpu_ns = 4321987 + i * 13;
        s->cpu_percent = (double)s->cpu_ns / 100000.0;
        s->cpu_user_ns = s->cpu_ns / 3;
        s->cpu_kernel_ns = s->cpu_ns - s->cpu_user_ns;
        s->switches_voluntary = i % 7;
        s->runq_wait_ns = 5000 + i;
        s->priority = 20;
        s->rss_bytes = 123456789u + i * 4096u;
        s->virtual_bytes = 9876543210u;
        s->faults_minor = i;
        s->threads = 12;
        s->io_read_bytes = i * 1000u;
        s->io_read_ops = i;
    }
}

static void measure(const char *name, uint32_t format, const struct etwatch_sample *samples)
{
    struct etwatch_sink_options options = {.size = sizeof options};
    struct etwatch_error_info info = {.size = sizeof info};
    struct etwatch_sink *sink = NULL;
    if (etwatch_sink_new(format, discard, NULL, &options, &sink, &info) < 0) {
        fprintf(stderr, "sink: %s\n", info.message);
        exit(1);
    }
    written_bytes = 0;
    uint64_t start_ns = cpu_now_ns();
    for (int i = 0; i < BATCHES; i++) {
        if (etwatch_sink_samples(sink, samples, BATCH) < 0 || etwatch_sink_flush(sink) < 0)
            exit(1);
    }
    double lines = (double)BATCH * BATCHES;
    printf("{\"name\": \"%s\", \"unit\": \"ns a line\", \"value\": %.1f}\n", name,
           (double)(cpu_now_ns() - start_ns) / lines);
    printf("{\"name\": \"%s, size\", \"unit\": \"bytes a line\", \"value\": %.1f}\n", name,
           (double)written_bytes / lines);
    etwatch_sink_free(sink);
}

int main(void)
{
    static struct etwatch_sample samples[BATCH];
    fill(samples);
    measure("json lines", ETWATCH_FORMAT_JSONL, samples);
    measure("csv", ETWATCH_FORMAT_CSV, samples);
    return 0;
}
