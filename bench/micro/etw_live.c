/* SPDX-License-Identifier: MIT */
/*
 * Live ETW: the cost of a switch on the thread that ETW calls and on the accounting thread, event
 * by event and in whole buffers, and the losses at a million events a second with the default
 * buffers and memory.
 *
 *   etw_live                                     all of that, short
 *   etw_live SECONDS events|buffers [LOSE_EVERY [CPUS [BUFFERS]]]
 *                                                a million a second for SECONDS
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

enum { CPUS = 8, EVENTS = 1 << 19, ROUNDS = 4, BATCH = 1024, RATE_HZ = 1000000 };
enum { BUFFER = 65536, BUFFER_HEADER = 72, BUFFER_EVENTS = (BUFFER - 72) / ETW_SWITCH_SIZE };
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
                                       .available = EW_METRIC_SET(ETWATCH_M_cpu_ns),
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
    (void)ew_sampler_deliver(ctx, end_ns);
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

/* The same in buffers, which are built before the clock starts: ETW has them ready. */
static uint64_t put_buffers(struct ew_etw_rings *rings, uint64_t *t_raw)
{
    static uint8_t bytes[CPUS][BUFFER];
    uint64_t spent_ns = 0;
    for (uint32_t at = 0; at < EVENTS; at += CPUS * BUFFER_EVENTS) {
        uint32_t filled = BUFFER_HEADER + BUFFER_EVENTS * ETW_SWITCH_SIZE;
        for (uint16_t cpu = 0; cpu < CPUS; cpu++) {
            uint32_t size = BUFFER, flags = 0x20;
            memset(bytes[cpu], 0, BUFFER_HEADER);
            memcpy(bytes[cpu], &size, 4);
            memcpy(bytes[cpu] + 0x28, &cpu, 2);
            memcpy(bytes[cpu] + 0x30, &filled, 4);
            memcpy(bytes[cpu] + 0x34, &flags, 2);
            for (uint32_t i = 0; i < BUFFER_EVENTS; i++)
                etw_switch_bytes(bytes[cpu] + BUFFER_HEADER + i * ETW_SWITCH_SIZE,
                                 *t_raw + (uint64_t)i * CPUS + cpu, cpu, at / CPUS + i);
        }
        *t_raw += (uint64_t)CPUS * BUFFER_EVENTS;
        uint64_t began_ns = ew_os_thread_cpu_ns();
        for (uint16_t cpu = 0; cpu < CPUS; cpu++)
            ew_etw_rings_put_buffer(rings, bytes[cpu], BUFFER);
        spent_ns += ew_os_thread_cpu_ns() - began_ns;
    }
    return spent_ns;
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

static void measure_threads(bool buffers)
{
    struct ew_facts facts;
    struct ew_etw_rings *rings;
    struct ew_sampler *sampler = make_sampler(0, &facts);
    struct ew_tally_config config = {.cpu_count = CPUS,
                                     .classes_known = EW_TALLY_SWITCHES,
                                     .interval_ns = interval_ns,
                                     .interval_over = cut,
                                     .interval_ctx = sampler};
    struct ew_tally *tally;
    struct etw_event event;
    uint64_t put_ns = 0, take_ns = 0, t_raw = 1;
    char name[80];
    const char *how = buffers ? "whole buffers" : "event by event";
    if (ew_etw_rings_new(CPUS, 64u << 20, &rings) < 0 || ew_tally_new(&config, &tally) < 0)
        exit(1);
    etw_event_switch(&event);
    for (int round = 0; round < ROUNDS; round++) {
        put_ns += buffers ? put_buffers(rings, &t_raw) : put_round(rings, &event, &t_raw);
        take_ns += take_round(rings, tally, &facts);
    }
    double events = (double)(t_raw - 1);
    (void)snprintf(name, sizeof name, "on the thread that ETW calls, %s", how);
    figure(name, "ns an event", (double)put_ns / events, 200);
    (void)snprintf(name, sizeof name, "taken, decoded and added up, %s", how);
    figure(name, "ns an event", (double)take_ns / events, 333);
    ew_tally_free(tally);
    ew_sampler_free(sampler);
    ew_etw_rings_free(rings);
}

/* --------------------------------------------------------------------------- together */

struct trial {
    uint32_t seconds;
    bool buffers;
    uint64_t lose_every;
    uint32_t cpus;
    uint32_t session_buffers; /* 0: the default */
};

static void nap(void)
{
    struct timespec until = {.tv_nsec = 100000000};
    (void)nanosleep(&until, NULL);
}

static void print_trial(const struct trial *trial, const struct etw_emulator_counts *counts,
                        const struct ew_source_stats *stats, uint64_t cpu_ns)
{
    const char *how = trial->buffers ? "whole buffers" : "event by event";
    char name[100];
    uint64_t reported =
        stats->lost > counts->lost ? stats->lost - counts->lost : counts->lost - stats->lost;
    if (trial->lose_every == 0) {
        (void)snprintf(name, sizeof name, "lost of a million a second, %s", how);
        figure(name, "events", (double)stats->lost, 1);
    }
    (void)snprintf(name, sizeof name, "lost but not reported or reported but not lost, %s", how);
    figure(name, "events", (double)reported, 1);
    printf("{\"name\": \"one core at a million a second, %s\", \"unit\": \"%%\", \"value\": "
           "%.1f, \"bar\": 33.3}\n",
           how, (double)cpu_ns * 100 / ((double)trial->seconds * 1e9));
}

static void measure_rate(const struct trial *trial)
{
    struct etw_emulator_config emulated = {.cpu_count = trial->cpus,
                                           .real_time = true,
                                           .offers_buffers = trial->buffers,
                                           .session_buffers = true,
                                           .generate =
                                               (uint64_t)RATE_HZ / trial->cpus * trial->seconds,
                                           .rate_hz = RATE_HZ,
                                           .lose_every = trial->lose_every};
    struct etw_emulator *emulator = etw_emulator_new(&emulated);
    struct ew_etw_config etw = {.api = etw_emulator_api(emulator),
                                .session = {.min_buffers = trial->session_buffers}};
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
    struct etw_emulator_counts counts;
    struct ew_sampler *sampler = make_sampler(epoch_ns, &facts);
    if (ew_source_etw.open(&config, &source, NULL) < 0)
        exit(1);
    while (!etw_emulator_done(emulator)) {
        nap();
        if (source->ops->drain(source, ew_os_raw_ns(), &facts, &horizon_ns, NULL) < 0)
            exit(1);
        (void)ew_sampler_deliver(sampler, horizon_ns);
    }
    (void)source->ops->finish(source, ew_os_raw_ns(), &facts, NULL);
    source->ops->stats(source, &stats);
    etw_emulator_counts(emulator, &counts);
    print_trial(trial, &counts, &stats, ew_os_thread_cpu_ns() - cpu_ns);
    source->ops->close(source);
    ew_sampler_free(sampler);
    etw_emulator_free(emulator);
    if (stats.events + stats.lost != emulated.generate * trial->cpus)
        exit(1);
}

static uint32_t number(char **argv, int argc, int i, uint32_t otherwise)
{
    return argc > i ? (uint32_t)strtoul(argv[i], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    struct trial trial = {.seconds = number(argv, argc, 1, 1),
                          .lose_every = number(argv, argc, 3, 0),
                          .cpus = number(argv, argc, 4, CPUS),
                          .session_buffers = number(argv, argc, 5, 0)};
    for (int way = 0; way < 2; way++) {
        trial.buffers = way == 1;
        if (argc == 1)
            measure_threads(trial.buffers);
        if (argc < 3 || trial.buffers == (strcmp(argv[2], "buffers") == 0))
            measure_rate(&trial);
    }
    return 0;
}
