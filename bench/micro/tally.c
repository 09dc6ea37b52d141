/* SPDX-License-Identifier: MIT */
/*
 * The cost of one event in the tally: 8 CPUs, 400 threads in 40 processes; of ten events six are
 * switches, two readied threads, one a profile sample and one a page fault. Alone, as for a report;
 * and with samples cut at 10 Hz and at 1000 Hz.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "sampler/sampler.h"
#include "tally/tally.h"

enum { CPUS = 8, PROCESSES = 40, THREADS = 400, PLANNED = 1 << 16, ROUNDS = 48 };

/* The precomputed part of an event: the rest is the cost of delivering it. */
struct plan {
    uint8_t kind, state;
    uint16_t cpu;
    uint32_t tid, new_tid;
};

static struct plan plan[PLANNED];
static uint32_t plan_count;
static uint64_t random_state = 88172645463325252u;
static uint64_t delivered;

static uint32_t roll(uint32_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 33) % below;
}

static uint32_t tid_of(uint32_t thread)
{
    return 4000 + 4 * thread;
}

static void make_plan(void)
{
    uint32_t on_cpu[CPUS] = {0};
    bool running[THREADS] = {false};
    while (plan_count < PLANNED - CPUS) {
        struct plan p = {.cpu = (uint16_t)roll(CPUS)};
        uint32_t old = on_cpu[p.cpu];
        uint32_t dice = roll(10), thread = roll(THREADS);
        if (dice < 6 && !running[thread]) {
            bool idle = roll(4) == 0;
            p = (struct plan){.kind = EW_EVENT_SWITCH,
                              .state = roll(3) == 0 ? 1 : 5,
                              .cpu = p.cpu,
                              .tid = old,
                              .new_tid = idle ? 0 : tid_of(thread)};
            if (old != 0)
                running[(old - 4000) / 4] = false;
            running[thread] = !idle;
            on_cpu[p.cpu] = p.new_tid;
        } else if (dice < 8) {
            p.kind = EW_EVENT_READY;
            p.tid = tid_of(thread);
        } else {
            p.kind = dice == 8 ? EW_EVENT_SAMPLE : EW_EVENT_FAULT;
            p.tid = old;
        }
        plan[plan_count++] = p;
    }
    /* Back to idle, so that the plan can be repeated. */
    for (uint16_t cpu = 0; cpu < CPUS; cpu++)
        if (on_cpu[cpu] != 0)
            plan[plan_count++] =
                (struct plan){.kind = EW_EVENT_SWITCH, .state = 5, .cpu = cpu, .tid = on_cpu[cpu]};
}

static void take(void *ctx, const struct etwatch_sample *samples, size_t count)
{
    (void)ctx;
    (void)samples;
    delivered += count;
}

static void cut(void *ctx, uint64_t end_ns)
{
    if (ew_sampler_deliver(ctx, end_ns) < 0)
        exit(1);
}

static uint64_t cpu_now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void give(struct ew_tally *tally, const struct ew_event *event, const struct ew_facts *facts)
{
    static const struct ew_record record = {.pid = EW_NO_ID, .tid = EW_NO_ID};
    if (ew_tally_event(tally, &record, event, facts) < 0)
        exit(1);
}

static void rundown(struct ew_tally *tally, const struct ew_facts *facts)
{
    for (uint32_t i = 0; i < THREADS; i++) {
        struct ew_event event = {.kind = EW_EVENT_PROCESS_THERE, .pid = 400 + i % PROCESSES * 4};
        if (i < PROCESSES)
            give(tally, &event, facts);
        event.kind = EW_EVENT_THREAD_THERE;
        event.tid = tid_of(i);
        give(tally, &event, facts);
    }
}

static double play(struct ew_tally *tally, const struct ew_facts *facts)
{
    struct ew_event event = {.pid = EW_NO_ID, .u.fault.opcode = 11};
    uint64_t t_ns = 0, start_ns = cpu_now_ns();
    for (int round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < plan_count; i++) {
            const struct plan *p = &plan[i];
            t_ns += 1500; /* 667,000 events a second */
            event.t_ns = t_ns;
            event.kind = p->kind;
            event.cpu = p->cpu;
            event.tid = p->tid;
            event.u.cswitch.new_tid = p->new_tid; /* harmless in the others */
            event.u.cswitch.old_state = p->state;
            give(tally, &event, facts);
        }
    }
    ew_tally_finish(tally, t_ns, facts);
    return (double)(cpu_now_ns() - start_ns) / ((double)plan_count * ROUNDS);
}

static void measure(const char *name, uint64_t interval_ns)
{
    struct ew_tally_config config = {.cpu_count = CPUS, .interval_ns = interval_ns};
    struct ew_sampler_config sampler_config = {.source = ETWATCH_SOURCE_ETL,
                                               .interval_ns = interval_ns,
                                               .max_processes = 65536,
                                               .max_threads = 131072,
                                               .emit = take};
    struct ew_sampler *sampler = NULL;
    struct ew_facts facts;
    struct ew_tally *tally;
    if (interval_ns != 0) {
        if (ew_sampler_new(&sampler_config, &sampler) < 0)
            exit(1);
        ew_sampler_facts(sampler, &facts);
        config.interval_over = cut;
        config.interval_ctx = sampler;
    }
    if (ew_tally_new(&config, &tally) < 0)
        exit(1);
    rundown(tally, sampler != NULL ? &facts : NULL);
    printf("{\"name\": \"%s\", \"unit\": \"ns an event\", \"value\": %.1f}\n", name,
           play(tally, sampler != NULL ? &facts : NULL));
    ew_tally_free(tally);
    ew_sampler_free(sampler);
}

int main(void)
{
    make_plan();
    measure("tally, totals only", 0);
    measure("tally and sampler, 10 Hz", 100000000);
    measure("tally and sampler, 1000 Hz", 1000000);
    return delivered > 0 ? 0 : 1;
}
