/* SPDX-License-Identifier: MIT */
/*
 * Live ETW: what a switch costs on the thread that ETW calls and on the one that adds up, and what
 * is lost of a million events a second with the default memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "decode/decode.h"
#include "etw_emulator.h"
#include "etw_events.h"
#include "os/os.h"
#include "sampler/sampler.h"
#include "source/etw/consumer.h"
#include "source/etw/rings.h"
#include "source/source.h"
#include "tally/tally.h"

enum { CPUS = 8, EVENTS = 1 << 19, ROUNDS = 4, BATCH = 1024, RATE_HZ = 1000000, SECONDS = 3 };
static const uint64_t interval_ns = 100000000; /* 10 Hz */
static uint64_t delivered;

static void take_samples(void *ctx, const struct etwatch_sample *samples, size_t count)
{
    (void)ctx;
    (void)samples;
    delivered += count;
}

static void take_loss(void *ctx, const struct etwatch_loss *loss)
{
    (void)ctx;
    (void)loss;
}

static struct ew_sampler *make_sampler(uint64_t epoch_ns, struct ew_facts *ret_facts)
{
    struct ew_sampler_config config = {.source = ETWATCH_SOURCE_ETW,
                                       .available = ETWATCH_HAS(cpu_ns),
                                       .epoch_ns = epoch_ns,
                                       .interval_ns = interval_ns,
                                       .max_processes = 65536,
                                       .max_threads = 131072,
                                       .emit = take_samples,
                                       .loss = take_loss};
    struct ew_sampler *sampler;
    if (ew_sampler_new(&config, &sampler) < 0)
        exit(1);
    ew_sampler_facts(sampler, ret_facts);
    return sampler;
}

static void figure(const char *name, const char *unit, double value, double bar)
{
    printf("{\"name\": \"%s\", \"unit\": \"%s\", \"value\": %.1f, \"bar\": %.1f}\n", name, unit,
           value, bar);
}

/* --------------------------------------------------------------------- thread by thread */

static void cut(void *ctx, uint64_t end_ns)
{
    (void)ew_sampler_cut(ctx, end_ns);
}

static uint64_t put_round(struct ew_etw_rings *rings, struct etw_event *event, uint64_t *t_raw)
{
    uint64_t began_ns = ew_os_thread_cpu_ns();
    for (uint32_t i = 0; i < EVENTS; i++) {
        etw_event_set_switch(event, (*t_raw)++, (uint16_t)(i % CPUS), i / CPUS);
        ew_etw_rings_put(rings, event->bytes);
    }
    return ew_os_thread_cpu_ns() - began_ns;
}

static uint64_t take_round(struct ew_etw_rings *rings, struct ew_tally *tally,
                           const struct ew_facts *facts)
{
    static struct ew_record records[BATCH];
    struct ew_event event;
    size_t count;
    uint64_t began_ns = ew_os_thread_cpu_ns();
    while ((count = ew_etw_rings_take(rings, UINT64_MAX, records, BATCH)) > 0)
        for (size_t i = 0; i < count; i++) {
            records[i].t_ns = records[i].t_raw * 1000;
            if (ew_decode_event(&records[i], &event))
                (void)ew_tally_event(tally, &records[i], &event, facts);
        }
    return ew_os_thread_cpu_ns() - began_ns;
}

static void measure_threads(void)
{
    struct ew_etw_rings *rings;
    struct ew_facts facts;
    struct ew_sampler *sampler = make_sampler(0, &facts);
    struct ew_tally_config config = {.cpu_count = CPUS,
                                     .classes_known = EW_TALLY_SWITCHES,
                                     .interval_ns = interval_ns,
                                     .interval_over = cut,
                                     .interval_ctx = sampler};
    struct ew_tally *tally;
    struct etw_event event;
    uint64_t put_ns = 0, take_ns = 0, t_raw = 1;
    if (ew_etw_rings_new(CPUS, 64u << 20, &rings) < 0 || ew_tally_new(&config, &tally) < 0)
        exit(1);
    etw_event_switch(&event);
    for (int round = 0; round < ROUNDS; round++) {
        put_ns += put_round(rings, &event, &t_raw);
        take_ns += take_round(rings, tally, &facts);
    }
    figure("on the thread that ETW calls", "ns an event", (double)put_ns / EVENTS / ROUNDS, 200);
    figure("taken, decoded and added up", "ns an event", (double)take_ns / EVENTS / ROUNDS, 333);
    ew_tally_free(tally);
    ew_sampler_free(sampler);
    ew_etw_rings_free(rings);
}

/* --------------------------------------------------------------------------- together */

static void nap(void)
{
    struct timespec until = {.tv_nsec = 100000000};
    (void)nanosleep(&until, NULL);
}

static void measure_rate(void)
{
    struct etw_emulator *emulator =
        etw_emulator_new(&(struct etw_emulator_config){.cpu_count = CPUS,
                                                       .real_time = true,
                                                       .generate = RATE_HZ / CPUS * SECONDS,
                                                       .rate_hz = RATE_HZ});
    struct ew_etw_config etw = {.api = etw_emulator_api(emulator)};
    uint64_t epoch_ns = ew_os_raw_ns(), horizon_ns, cpu_ns = ew_os_thread_cpu_ns();
    struct ew_source_config config = {.filter = {.all = true},
                                      .max_processes = 65536,
                                      .max_threads = 131072,
                                      .proc_root = "/proc",
                                      .epoch_ns = epoch_ns,
                                      .interval_ns = interval_ns,
                                      .etw = &etw};
    struct ew_source *source;
    struct ew_facts facts;
    struct ew_source_stats stats;
    struct ew_sampler *sampler = make_sampler(epoch_ns, &facts);
    if (ew_source_etw.open(&config, &source, NULL) < 0)
        exit(1);
    while (!etw_emulator_done(emulator)) {
        nap();
        if (source->ops->drain(source, ew_os_raw_ns(), &facts, &horizon_ns, NULL) < 0)
            exit(1);
        (void)ew_sampler_cut(sampler, horizon_ns);
    }
    (void)source->ops->finish(source, ew_os_raw_ns(), &facts, NULL);
    source->ops->stats(source, &stats);
    figure("lost of a million a second", "events", (double)stats.lost, 1);
    printf("{\"name\": \"one core, a million a second\", \"unit\": \"%%\", \"value\": %.1f}\n",
           (double)(ew_os_thread_cpu_ns() - cpu_ns) * 100 / ((double)SECONDS * 1e9));
    source->ops->close(source);
    ew_sampler_free(sampler);
    etw_emulator_free(emulator);
    if (stats.events + stats.lost != (uint64_t)RATE_HZ * SECONDS)
        exit(1);
}

int main(void)
{
    measure_threads();
    measure_rate();
    return 0;
}
