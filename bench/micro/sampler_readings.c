/* SPDX-License-Identifier: MIT */
/*
 * The cost of one reading from the source's callback to the delivered sample: 20 processes that run
 * in each of 1000 intervals a second, a cut every 100 ms, with few and with many idle processes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sampler/sampler.h"

enum { BUSY = 20, CUTS = 300, INTERVALS_A_CUT = 100 };

static const uint64_t interval_ns = 1000000;

static uint64_t delivered, sum_ns;

static uint64_t cpu_now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void take(void *ctx, const struct etwatch_sample *samples, size_t count)
{
    (void)ctx;
    delivered += count;
    for (size_t i = 0; i < count; i++)
        sum_ns += samples[i].cpu_ns;
}

static void see(const struct ew_facts *facts, uint32_t pid)
{
    struct ew_process_fact fact = {.kind = EW_PROCESS_SEEN,
                                   .has = EW_HAS_NAME | EW_HAS_PPID,
                                   .pid = pid,
                                   .start_ns = 1000 + pid,
                                   .t_ns = interval_ns};
    memcpy(fact.name, "inference", sizeof "inference");
    facts->process(facts->ctx, &fact);
}

/* Every thread is opened once per interval; at the end of a drain all are read as they are. */
static uint64_t drain(const struct ew_facts *facts, struct ew_reading *reading, uint64_t t_ns)
{
    uint64_t readings = 0;
    for (int n = 0; n < INTERVALS_A_CUT; n++) {
        for (uint32_t i = 0; i < BUSY; i++) {
            struct ew_reading *r = &reading[i];
            r->kind = EW_READING_OPEN;
            r->t_ns = t_ns + (uint64_t)n * interval_ns + i * 40000u;
            facts->reading(facts->ctx, r);
            r->counter[EW_C_cpu_ns] += 30000;
            r->counter[EW_C_cpu_user_ns] += 20000;
            r->counter[EW_C_cpu_kernel_ns] += 10000;
            r->counter[EW_C_switches_voluntary] += 3;
            r->counter[EW_C_runq_wait_ns] += 1234;
            readings++;
        }
    }
    for (uint32_t i = 0; i < BUSY; i++) {
        struct ew_reading *r = &reading[i];
        r->kind = EW_READING_AT;
        r->t_ns = t_ns + INTERVALS_A_CUT * interval_ns;
        r->gauge_has = EW_HAS_G(rss_bytes) | EW_HAS_G(threads);
        facts->reading(facts->ctx, r);
        r->gauge_has = 0;
        readings++;
    }
    return readings;
}

static void measure(const char *name, uint32_t idle)
{
    struct ew_sampler_config config = {.source = ETWATCH_SOURCE_EBPF,
                                       .epoch_ns = interval_ns,
                                       .interval_ns = interval_ns,
                                       .max_processes = 65536,
                                       .max_threads = 131072,
                                       .emit = take};
    struct ew_sampler *sampler;
    struct ew_facts facts;
    static struct ew_reading reading[BUSY];
    if (ew_sampler_new(&config, &sampler) < 0)
        exit(1);
    ew_sampler_facts(sampler, &facts);
    for (uint32_t i = 0; i < idle + BUSY; i++)
        see(&facts, 100 + i);
    for (uint32_t i = 0; i < BUSY; i++) {
        uint32_t pid = 100 + i * (idle / BUSY + 1);
        reading[i] = (struct ew_reading){.pid = pid,
                                         .tid = pid,
                                         .start_ns = 1000 + pid,
                                         .counter_has = (1u << EW_COUNTER_BASE_COUNT) - 1};
    }
    uint64_t t_ns = interval_ns, readings = 0, start_ns = 0;
    for (int i = 0; i < CUTS; i++) {
        if (i == 3) {
            readings = 0;
            start_ns = cpu_now_ns();
        }
        readings += drain(&facts, reading, t_ns);
        t_ns += INTERVALS_A_CUT * interval_ns;
        if (ew_sampler_deliver(sampler, t_ns) < 0)
            exit(1);
    }
    printf("{\"name\": \"%s\", \"unit\": \"ns a reading\", \"value\": %.1f}\n", name,
           (double)(cpu_now_ns() - start_ns) / (double)readings);
    ew_sampler_free(sampler);
}

int main(void)
{
    measure("20 busy", 0);
    measure("20 busy, 10,000 idle", 10000);
    return delivered > 0 && sum_ns > 0 ? 0 : 1;
}
